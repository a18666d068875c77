"""The report of how each column of X is used, as a table of text, or of HTML in a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np

from tuckergp.features import Field, Line, LineSum, Rows
from tuckergp.kernels import Periodic
from tuckergp.model.fitted_mode import FittedMode
from tuckergp.model.kinds import MOST_VALUES

__all__ = ["ColumnReport", "ColumnUse", "column_report"]


class ColumnUse(NamedTuple):
    """How one column is used: its name, what it holds, what it has become, and a note."""

    column: str
    holds: str
    use: str
    note: str


class ColumnReport(Mapping[str, ColumnUse]):
    """How each column of X is used, or why not.

    Parameters
    ----------
    uses : sequence of ColumnUse

    Examples
    --------
    >>> print(ColumnReport([ColumnUse("day", "numbers", "line", "365 values, Linear() + Matern32(lengthscale=1.0)")]))
    column  holds    use   note
    day     numbers  line  365 values, Linear() + Matern32(lengthscale=1.0)
    """

    def __init__(self, uses: Sequence[ColumnUse]) -> None:
        self._uses = {use.column: use for use in uses}

    def __getitem__(self, column: str) -> ColumnUse:
        return self._uses[column]

    def __iter__(self) -> Iterator[str]:
        return iter(self._uses)

    def __len__(self) -> int:
        return len(self._uses)

    def __str__(self) -> str:
        rows = [ColumnUse._fields, *self._uses.values()]
        widths = [max(len(row[j]) for row in rows) for j in range(3)]
        return "\n".join("  ".join([*map(str.ljust, row, widths), row[3]]).rstrip() for row in rows)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in ColumnUse._fields)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in self.values())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def column_report(
    names: Sequence[str], kinds: Mapping[str, str], values: Mapping[str, list[Any]], modes: Sequence[FittedMode]
) -> ColumnReport:
    """The report of columns with the kinds and usual values that were found in training, and the fitted modes."""
    return ColumnReport([_use(name, kinds.get(name, ""), len(values.get(name, ())), modes) for name in names])


def _use(name: str, holds: str, count: int, modes: Sequence[FittedMode]) -> ColumnUse:
    inside = [fitted for fitted in modes if name in map(str, fitted.mode.columns)]
    counted = "" if not count else "constant" if count == 1 else f"{count} values"
    if count >= MOST_VALUES - 1:  # of more, only some are kept
        counted = "many values"
    if not inside:
        return ColumnUse(name, holds, "not used", counted)
    uses = ", ".join(dict.fromkeys(_word(fitted) for fitted in inside))
    seasons = (f"a season of {period:.6g}" for fitted in inside for period in _periods(name, fitted))
    notes = [counted, *(f"{fitted.mode.kernel!r}{_others(name, fitted)}" for fitted in inside), *seasons]
    return ColumnUse(name, holds, uses, ", ".join(filter(None, notes)))


def _word(fitted: FittedMode) -> str:
    words = {Line: "line", LineSum: "line", Field: "field", Rows: "levels"}
    return next((word for kind, word in words.items() if isinstance(fitted.residual, kind)), "features")


def _periods(name: str, fitted: FittedMode) -> list[float]:
    """The periods of a standardised column of numbers in its own units; none for others, whose kernel shows them."""
    if name not in fitted.whitening or len(fitted.mode.columns) > 1:
        return []
    _, scale = fitted.whitening[name]
    kernels = [leaf for leaf in fitted.mode.kernel.leaves() if isinstance(leaf, Periodic)]
    return [scale * float(period) for kernel in kernels for period in np.ravel(kernel.period)]


def _others(name: str, fitted: FittedMode) -> str:
    others = [str(column) for column in fitted.mode.columns if str(column) != name]
    return f" with {', '.join(others)}" if others else ""
