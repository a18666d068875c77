"""The result of a search: the configurations tried and their scores, as a printed table or as rows of data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tuckergp.evaluation.tuning.space import Params
from tuckergp.showing import Shown

if TYPE_CHECKING:
    from rich.table import Table as RichTable

__all__ = ["Trial", "Tuning"]

NOTE_WIDTH = 60


@dataclass(frozen=True)
class Trial:
    """One configuration: its parameters, scores on the folds and time, and the reason if it failed, or None."""

    params: Params
    folds: list[float]
    seconds: float
    failed: str | None = None

    @property
    def mean(self) -> float:
        """Mean score over the folds; NaN where a fold failed."""
        return float(np.mean(self.folds)) if self.failed is None else np.nan

    @property
    def sd(self) -> float:
        """Standard deviation over the folds; NaN for fewer than two."""
        return float(np.std(self.folds, ddof=1)) if self.failed is None and len(self.folds) > 1 else np.nan


@dataclass(frozen=True, repr=False)
class Tuning(Shown):
    """The result of `tuckergp.tune`.

    Attributes
    ----------
    trials : sequence of Trial
        In the order in which they were tried.
    metric : str
    larger_is_better : bool
    best_model : estimator
        The model with the best parameters, fitted to all ratings if ``refit`` was asked for.
    n_folds : int
    seed : int
        Seed of the folds, of models without their own, and of Optuna.
    complete : bool
        False if the search was interrupted.
    """

    trials: Sequence[Trial] = field(repr=False)
    metric: str
    larger_is_better: bool
    best_model: Any
    n_folds: int
    seed: int
    complete: bool = True

    @property
    def best_params(self) -> Params:
        """The parameters with the best mean score."""
        return self._sorted()[0].params

    @property
    def best_score(self) -> float:
        """The best mean score, which is optimistic for new ratings because it was selected."""
        return self._sorted()[0].mean

    @property
    def table(self) -> list[dict[str, Any]]:
        """One row per configuration, best first, failed ones last (``pandas.DataFrame(tuning.table)``).

        The columns are the parameters; ``mean`` and ``sd`` over the folds; ``behind`` and ``behind_sd``, the same of
        the difference to the best on each fold, which varies less than the scores; ``folds``, ``seconds``; and
        ``failed``, the reason or None.
        """
        return [
            {
                **trial.params,
                "mean": trial.mean,
                "sd": trial.sd,
                "behind": self._behind(trial).mean,
                "behind_sd": self._behind(trial).sd,
                "folds": list(trial.folds),
                "seconds": trial.seconds,
                "failed": trial.failed,
            }
            for trial in self._sorted()
        ]

    def to_dict(self) -> dict[str, Any]:
        """The result without the model as plain numbers, text, lists and dicts; objects become text, NaN None."""
        return {
            "metric": self.metric,
            "n_folds": self.n_folds,
            "seed": self.seed,
            "complete": self.complete,
            "best_params": {name: _plain(value) for name, value in self.best_params.items()},
            "best_score": self.best_score,
            "table": [{name: _plain(value) for name, value in row.items()} for row in self.table],
        }

    def __rich__(self) -> RichTable:
        from rich.table import Table as RichTable
        from rich.text import Text

        names = list(dict.fromkeys(name for trial in self.trials for name in trial.params))
        folds = "1 fold" if self.n_folds == 1 else f"{self.n_folds} folds"
        caption = f"{len(self.trials)} configurations on {folds}; {_better(self.larger_is_better)} is better"
        table = RichTable(caption=caption + ("" if self.complete else "; interrupted"), caption_justify="left")
        for name in names:
            table.add_column(name.replace("__", "__\n"), overflow="fold")
        for name in (self.metric, "sd", "behind", "its sd", "seconds"):
            table.add_column(name, justify="right", no_wrap=True)
        failures = any(trial.failed for trial in self.trials)
        if failures:
            table.add_column("failed", max_width=NOTE_WIDTH)
        for trial in self._sorted():
            cells = [_shown(trial.params[name]) if name in trial.params else "-" for name in names]
            behind = self._behind(trial)
            figures = [*map(_figure, (trial.mean, trial.sd, behind.mean, behind.sd)), f"{trial.seconds:.1f}"]
            table.add_row(*map(Text, [*cells, *figures, *([trial.failed or ""] if failures else [])]))
        return table

    def __str__(self) -> str:
        from io import StringIO

        from rich.console import Console

        text = StringIO()
        width = 90 + NOTE_WIDTH + 24 * len(self.best_params)
        Console(file=text, width=width, color_system=None).print(self)
        return "\n".join(line.rstrip() for line in text.getvalue().rstrip("\n").split("\n"))

    def _behind(self, trial: Trial) -> Trial:
        """By how much a trial is worse than the best, by fold; at least 0 on average."""
        best, sign = self._sorted()[0], -1.0 if self.larger_is_better else 1.0
        folds = [] if trial.failed else [sign * (a - b) for a, b in zip(trial.folds, best.folds, strict=True)]
        return Trial(trial.params, folds, trial.seconds, trial.failed)

    def _sorted(self) -> list[Trial]:
        """Best first; among equals the one tried first."""
        sign = -1.0 if self.larger_is_better else 1.0
        return sorted(self.trials, key=lambda trial: np.inf if trial.failed is not None else sign * trial.mean)


def _better(larger: bool) -> str:
    return "larger" if larger else "smaller"


def _figure(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.4f}"


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value if isinstance(value, str | int | float | bool | None) else repr(value)
