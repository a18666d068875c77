"""The result of an evaluation: figures with confidence intervals, as a printed table or as rows of data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tuckergp.errors import InputError
from tuckergp.evaluation.metrics.intervals import Estimate, Part, estimate
from tuckergp.evaluation.scoring import DISTRIBUTIONS, KINDS, Metric
from tuckergp.showing import Shown

if TYPE_CHECKING:
    from rich.table import Table as RichTable

__all__ = ["Scoreboard"]


@dataclass(frozen=True, repr=False)
class Scoreboard(Shown):
    """Figures of one or more models on the same test parts.

    Attributes
    ----------
    parts : mapping of str to mapping of str to sequence of Part
        By model and metric, one part per fold, summed by user.
    metrics : sequence of str
        In the order asked for.
    n_users, n_folds, n_ratings : int
        Test users, folds, and test ratings of all folds.
    k : int
        Length of the lists.
    interval, confidence : float
        Level of the predicted intervals whose coverage is reported, and of the confidence intervals.
    seconds : mapping of str to float
        Time for fitting, by model, for all folds together.
    seed : int
    ranked_by : mapping of str to str
        What the lists of each model were sorted by, such as ``"value"``, ``"rating"`` or ``"choice"``; empty without
        lists.
    """

    parts: Mapping[str, Mapping[str, Sequence[Part]]] = field(repr=False)
    metrics: tuple[str, ...]
    n_users: int
    n_folds: int
    n_ratings: int
    k: int
    interval: float
    confidence: float
    seconds: Mapping[str, float]
    seed: int = 0
    ranked_by: Mapping[str, str] = field(default_factory=dict)

    @property
    def models(self) -> list[str]:
        """Names of the models, those asked for first, then baselines."""
        return list(self.parts)

    @cached_property
    def estimates(self) -> dict[str, dict[str, Estimate]]:
        """By model and metric, the mean over folds with its confidence interval."""
        return {
            model: {metric: self._estimate(metric, parts[metric]) for metric in self.metrics if metric in parts}
            for model, parts in self.parts.items()
        }

    def value(self, metric: str, model: str | None = None) -> float:
        """The figure of a model, by default of the first one."""
        name = self.models[0] if model is None else model
        self._part(name, metric)
        return self.estimates[name][metric].value

    def difference(self, metric: str, model: str, other: str) -> Estimate:
        """The figure of one model minus that of another, with the confidence interval of the difference.

        The same users are resampled in both, so the interval is narrower than those of the two models suggest.
        """
        return self._estimate(metric, self._part(model, metric), self._part(other, metric))

    def rows(self) -> list[dict[str, Any]]:
        """One row per model and metric (``pandas.DataFrame(board.rows())``): model, metric, value, low, high, folds."""
        return [
            {
                "model": model,
                "metric": metric,
                "value": estimate.value,
                "low": estimate.low,
                "high": estimate.high,
                "folds": [part.value for part in self.parts[model][metric]],
            }
            for model, by_metric in self.estimates.items()
            for metric, estimate in by_metric.items()
        ]

    def to_dict(self) -> dict[str, Any]:
        """All figures and settings as plain numbers, text, lists and dicts."""
        scores: dict[str, dict[str, Any]] = {model: {} for model in self.parts}
        for row in self.rows():
            scores[row["model"]][row["metric"]] = {name: row[name] for name in ("value", "low", "high", "folds")}
        settings = ("n_users", "n_folds", "n_ratings", "k", "interval", "confidence", "seed")
        by_model = {"seconds": dict(self.seconds), "ranked_by": dict(self.ranked_by)}
        return {**{name: getattr(self, name) for name in settings}, **by_model, "scores": scores}

    def __rich__(self) -> RichTable:
        from rich.table import Table as RichTable

        folds = "1 fold" if self.n_folds == 1 else f"mean of {self.n_folds} folds"
        caption = f"{self.n_ratings} test ratings of {self.n_users} users, {folds}; {self.confidence:.0%} intervals"
        table = RichTable("metric", *self.models, caption=caption, caption_justify="left")
        for metric in self.metrics:
            table.add_row(self._label(metric), *(_cell(self.estimates[model].get(metric)) for model in self.models))
        if self.ranked_by:
            table.add_row("lists sorted by", *(self.ranked_by[model] for model in self.models))
        table.add_row("seconds to fit", *(f"{self.seconds[model]:.1f}" for model in self.models))
        return table

    def __str__(self) -> str:
        from io import StringIO

        from rich.console import Console

        text = StringIO()
        Console(file=text, width=30 + 32 * len(self.models), color_system=None).print(self)
        return text.getvalue().rstrip("\n")

    def _estimate(self, metric: str, folds: Sequence[Part], minus: Sequence[Part] | None = None) -> Estimate:
        return estimate(
            folds,
            self.n_users,
            kind=KINDS.get(Metric.read(metric).name, "mean"),
            minus=minus,
            level=self.confidence,
            seed=self.seed,
        )

    def _part(self, model: str, metric: str) -> Sequence[Part]:
        if model not in self.parts:
            raise InputError(f"There is no model {model!r}; there are {', '.join(map(repr, self.models))}.")
        if metric not in self.parts[model]:
            listed = ", ".join(map(repr, self.parts[model])) or "none"
            raise InputError(f"{metric!r} was not measured for {model!r}; there are {listed}.")
        return self.parts[model][metric]

    def _label(self, metric: str) -> str:
        if metric == DISTRIBUTIONS[-1]:
            return f"{metric} ({self.interval:.0%})"
        return Metric.read(metric).label(self.k)


def _cell(estimate: Estimate | None) -> str:
    if estimate is None:
        return "-"
    # the brackets are escaped for rich
    return f"{estimate.value:.4f}" + ("" if np.isnan(estimate.low) else f" \\[{estimate.low:.4f}, {estimate.high:.4f}]")
