"""Partial dependence: how predictions change with one column, on average over inputs, with a band from the draws."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.checks import check, probability
from tuckergp.data.tables import Table, as_table
from tuckergp.errors import InputError
from tuckergp.model.kinds import as_dates, check_kinds, kinds_of, plain
from tuckergp.posterior.fitted import Fit
from tuckergp.regressor.columns import is_numeric
from tuckergp.regressor.learning import FittedRegressor
from tuckergp.regressor.plots import Places, panels_of
from tuckergp.showing import Shown

__all__ = ["MOST_INPUTS", "PartialDependence", "partial_dependence", "plot"]

Floats = npt.NDArray[np.float64]

MOST_INPUTS = 200
"""The most inputs over which predictions are averaged, evenly spread among those given."""

MOST_VALUES = 40
"""The most values of a column at which they are."""

RANGE = (0.05, 0.95)
"""The quantiles of a column of many numbers between which its values are spread."""


@dataclass(frozen=True, repr=False)
class PartialDependence(Shown):
    """Predictions as a function of one column, averaged over inputs.

    Attributes
    ----------
    column : str
    values : ndarray, shape (G,)
        Values of the column.
    mean : ndarray, shape (G,)
        Posterior mean of the average prediction, in the units of the targets.
    std, lower, upper : ndarray, shape (G,), or None
        Posterior standard deviation, and the bounds of the interval; None for a MAP estimate.
    """

    column: str
    values: npt.NDArray[Any]
    mean: Floats
    std: Floats | None = None
    lower: Floats | None = None
    upper: Floats | None = None

    def __str__(self) -> str:
        shown = [("mean", self.mean)] + [
            (n, v) for n, v in (("lower", self.lower), ("upper", self.upper)) if v is not None
        ]
        width = max(len(self.column), *(len(str(value)) for value in self.values))
        lines = ["  ".join([self.column.ljust(width), *(name.rjust(10) for name, _ in shown)])]
        for g, value in enumerate(self.values):
            lines.append("  ".join([str(value).ljust(width), *(f"{numbers[g]:10.4g}" for _, numbers in shown)]))
        return "\n".join(lines)

    def draw(self, ax: Any) -> None:
        """Draw the mean and the band in a panel: a line over numbers and dates, bars of the interval over levels."""
        x = Places(Table({self.column: self.values}, "the values", len(self.values)), self.column)
        order = np.argsort(x.at, kind="stable")
        ax.plot(x.at[order], self.mean[order], "-" if x.levels is None else "o")
        if self.lower is not None and self.upper is not None:
            if x.levels is None:
                ax.fill_between(x.at[order], self.lower[order], self.upper[order], alpha=0.25, linewidth=0)
            else:
                ax.vlines(x.at, self.lower, self.upper, alpha=0.5)
        x.name_on(ax, "x")


def partial_dependence(
    fitted: FittedRegressor, table: Table, column: str, values: Any = None, interval: float = 0.9
) -> PartialDependence:
    """The partial dependence on one column of inputs, as `TuckerGPRegressor.partial_dependence` describes."""
    check("interval", interval, probability())
    at = _values(table[column]) if values is None else _asked(values, column, table[column])
    some = table.take(np.unique(np.linspace(0, len(table) - 1, min(len(table), MOST_INPUTS)).round().astype(np.intp)))
    whole = some.take(np.tile(np.arange(len(some)), len(at)))
    whole = replace(whole, columns={**whole.columns, column: np.repeat(at, len(some))})
    averages = _averages(fitted.fit, fitted, whole, len(some))
    found = PartialDependence(column, at, averages.mean(axis=0))
    if not fitted.fit.draws.sampled:
        return found
    lower, upper = np.quantile(averages, [(1 - interval) / 2, (1 + interval) / 2], axis=0)
    return replace(found, std=averages.std(axis=0, ddof=int(len(averages) > 1)), lower=lower, upper=upper)


def plot(found: Sequence[PartialDependence], axes: Any = None) -> npt.NDArray[Any]:
    """One panel for each column, with one scale of values; returns the axes."""
    panels = panels_of(axes, len(found), sharex=False)
    for ax, one in zip(panels, found, strict=True):
        one.draw(ax)
    return panels


def _values(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Values of a column: all where they are few; of numbers, some between two quantiles; of levels, the commonest."""
    if not is_numeric(column):
        commonest = [value for value, _ in Counter(column.tolist()).most_common(MOST_VALUES)]
        found = np.empty(len(commonest), dtype=object)
        found[:] = sorted(commonest, key=lambda value: (type(value).__name__, value))
        return found
    distinct = np.unique(column)
    if len(distinct) <= MOST_VALUES:
        return distinct
    low, high = np.quantile(column.astype("i8") if column.dtype.kind == "M" else column, RANGE)
    return np.linspace(low, high, MOST_VALUES).astype(column.dtype if column.dtype.kind == "M" else np.float64)


def _asked(values: Any, column: str, known: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Values that were asked for, read as those of the column are; they may lie between whole numbers."""
    asked = plain(as_table({column: values}, "values"))
    if not len(asked):
        raise InputError("values has no entry; give at least one, or leave it out.")
    if known.dtype.kind == "M":
        asked = as_dates(asked, [column])
    check_kinds(asked, [column], kinds_of(Table({column: known}, "X", len(known))))
    if known.dtype.kind == "M":
        return asked[column].astype(known.dtype)
    if not is_numeric(known):
        return asked[column].astype(object)
    numbers = asked.numeric(column)
    same = numbers.astype(known.dtype)
    return same if (same == numbers).all() else numbers


def _averages(fit: Fit, fitted: FittedRegressor, table: Table, each: int) -> Floats:
    """Means of predictions over blocks of ``each`` rows of a table, in every draw, (S, blocks)."""
    fit.draws.require_kept()
    totals = np.zeros((len(fit.draws), len(table) // each))
    for rows, at in fit.blocks(fitted.design(table), unseen=True):
        means = fit.likelihood.means(at)
        block = np.arange(rows.start, rows.stop) // each
        first, starts = np.unique(block, return_index=True)
        totals[:, first] += np.add.reduceat(means, starts, axis=1)
    return totals / each
