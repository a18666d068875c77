"""The order in which a search tries parameters: all of a grid, or what Optuna proposes from the scores so far.

The values to try are in `tuckergp.evaluation.tuning.space`; fitting and scoring are in `tuckergp.evaluation.tuning`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, Protocol

from tuckergp.errors import InputError
from tuckergp.evaluation.tuning.space import Params, Range, Space

__all__ = ["GridProposals", "OptunaProposals", "Proposals"]


class Proposals(Protocol):
    """The interface of a search: it proposes parameters and is told their scores."""

    total: int

    def ask(self) -> Params | None:
        """The parameters to try next; None at the end."""

    def tell(self, score: float | None) -> None:
        """Take the score of the last proposal; None if it failed."""


class GridProposals:
    """Proposes each combination of the values of a grid once.

    Parameters
    ----------
    spaces : sequence of dict
        The grids, which are tried one after the other.
    own : dict
        The model's own parameters, used where a grid lacks a parameter of another grid.
    """

    def __init__(self, spaces: Sequence[Space], own: Params) -> None:
        names = list(dict.fromkeys(name for space in spaces for name in space))
        self._todo: list[Params] = []
        for space in spaces:
            for cell in product(*(_values(name, space[name]) for name in space)):
                chosen = dict(zip(space, cell, strict=True))
                params = {name: chosen.get(name, own.get(name)) for name in names if name in chosen or name in own}
                if params not in self._todo:
                    self._todo.append(params)
        self.total = len(self._todo)
        self._next = iter(self._todo)

    def ask(self) -> Params | None:
        """The next combination; None at the end."""
        return next(self._next, None)

    def tell(self, score: float | None) -> None:
        """Ignore the score, which does not change what is tried."""


def _values(name: str, values: list[Any] | Range) -> list[Any]:
    if isinstance(values, Range):
        raise InputError(f"{name!r} has a range; a grid search needs a list of values, or use search='optuna'.")
    return values


class OptunaProposals:
    """Proposes parameters by Optuna's tree-structured Parzen estimator, each combination at most once."""

    def __init__(self, spaces: Sequence[Space], trials: int, maximize: bool, seed: int) -> None:
        if len(spaces) != 1:
            raise InputError("search='optuna' needs one dict of parameters as grid, not a list of them.")
        self._optuna = _import_optuna()
        self._space = spaces[0]
        self.total = trials
        self._left = trials
        self._told: list[tuple[Params, float | None]] = []
        sampler = self._optuna.samplers.TPESampler(seed=seed % 2**32)
        before = self._optuna.logging.get_verbosity()
        self._optuna.logging.set_verbosity(self._optuna.logging.WARNING)
        try:
            self._study = self._optuna.create_study(direction="maximize" if maximize else "minimize", sampler=sampler)
        finally:
            self._optuna.logging.set_verbosity(before)

    def ask(self) -> Params | None:
        """Parameters that were not tried before; None when the trials are used up."""
        while self._left:
            self._left -= 1
            self._trial = self._study.ask()
            self._asked = {name: self._suggest(name, values) for name, values in self._space.items()}
            known = [score for params, score in self._told if params == self._asked]
            if not known:
                return self._asked
            self._report(known[0])
        return None

    def tell(self, score: float | None) -> None:
        """Pass the score to Optuna."""
        self._told.append((self._asked, score))
        self._report(score)

    def _report(self, score: float | None) -> None:
        if score is None:
            self._study.tell(self._trial, state=self._optuna.trial.TrialState.FAIL)
        else:
            self._study.tell(self._trial, score)

    def _suggest(self, name: str, values: list[Any] | Range) -> Any:
        if not isinstance(values, Range):
            # by number, because Optuna supports only numbers and text as values
            return values[self._trial.suggest_categorical(name, list(range(len(values))))]
        if isinstance(values.low, int) and isinstance(values.high, int):
            return self._trial.suggest_int(name, values.low, values.high, log=values.log)
        return self._trial.suggest_float(name, float(values.low), float(values.high), log=values.log)


def _import_optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise InputError("search='optuna' needs Optuna: pip install 'tuckergp[tune]'.") from None
    return optuna
