"""Conditions on the attributes of items: ``{"genre": "Comedy", "year": (1980, 1999)}``.

A column is read as the model reads it: numbers and dates have ranges, a cell with several values meets a condition
with each of them.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tuckergp.data.cells import as_float, is_null
from tuckergp.data.columns import as_bag, column_kind, freeze
from tuckergp.data.tables import Table, is_missing, show_cell
from tuckergp.errors import InputError
from tuckergp.recommender.attributes import Attributes
from tuckergp.recommender.decisions import as_numbers, holds_dates, holds_numbers
from tuckergp.recommender.entities import Side

__all__ = ["Condition", "conditions_of"]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

# What stands for any of several values; a tuple is a range.
SEVERAL = (list, set, frozenset, range, np.ndarray)
# How many values of a column are named where none fits.
NAMED = 5
MICROSECOND = 1 / 86_400e6


@dataclass(frozen=True)
class Condition:
    """A condition on one column of the item table.

    Attributes
    ----------
    ids : ndarray, shape (n,)
        The items of the table.
    holds : ndarray of bool, shape (n,)
        Which of them meet it.
    available : str
        What the column holds, for a warning that no item meets it.
    """

    ids: npt.NDArray[Any]
    holds: Bools
    available: str

    def rows(self, side: Side) -> Bools:
        """The rows of the items that meet it, shape (n_rows,)."""
        out = np.zeros(side.table.n_rows, dtype=bool)
        out[side.numbers(self.ids[self.holds])] = True
        return out


def conditions_of(where: Any, table: Table | None, attributes: Attributes) -> list[Condition]:
    """One condition for each column that is asked for."""
    if not isinstance(where, Mapping):
        raise InputError(f"where must be a dict from columns of the item table to values, not {show_cell(where)}.")
    if table is None:
        raise InputError("where asks for columns of the item table, and the model has none; give fit one.")
    names = [name for name in table.columns if name != attributes.key]
    uses = {attribute.column: attribute.use for attribute in attributes.columns}
    listed = f"the columns of the item table are {', '.join(names) or 'none'}."
    found = []
    for column, asked in where.items():
        if column not in names:
            raise InputError(f"where asks for {column!r}, but there is no such column; {listed}")
        cells = _cells(table, column, uses.get(column, "nothing"))
        try:
            holds = _any_of(cells, asked)
        except _Impossible as error:
            raise InputError(f"where asks for {column!r} to be {_shown(asked)}, but {error}; {listed}") from None
        found.append(Condition(table[attributes.key], holds, f"{column!r} {cells.available(asked)}"))
    return found


class _Impossible(ValueError):
    """A value that a column cannot have; the text says what it holds."""


class _Levels:
    """A column of categories, or of several values per cell."""

    def __init__(self, cells: Sequence[tuple[Any, ...]]) -> None:
        self.n = len(cells)
        self.rows: dict[Any, list[int]] = {}
        for row, cell in enumerate(cells):
            for level in cell:
                self.rows.setdefault(level, []).append(row)

    def between(self, low: Any, high: Any) -> Bools:
        raise _Impossible("it holds neither numbers nor dates, which ranges are for")

    def equal(self, value: Any) -> Bools:
        holds = np.zeros(self.n, dtype=bool)
        for level in self.rows:
            if _same(level, freeze(value)):
                holds[self.rows[level]] = True
        return holds

    def available(self, asked: Any) -> str:
        alike = [level for level in self.rows if str(level).casefold() == str(asked).strip().casefold()]
        common = sorted(self.rows, key=lambda level: -len(self.rows[level]))[:NAMED]
        return f"holds {', '.join(map(show_cell, alike or common)) or 'nothing'}{'' if alike else ', ...'}"


class _Numbers:
    """A column of numbers."""

    def __init__(self, numbers: Floats) -> None:
        self.numbers = numbers

    def between(self, low: Any, high: Any) -> Bools:
        least = -np.inf if low is None else self.span(low)[0]
        most = np.inf if high is None else self.span(high)[1]
        if least > most:
            raise _Impossible("the first is above the second")
        return np.asarray((self.numbers >= least) & (self.numbers <= most))  # False for NaN

    def equal(self, value: Any) -> Bools:
        return self.between(value, value)

    def span(self, value: Any) -> tuple[float, float]:
        """The smallest and the largest number that count as this value."""
        try:
            number = as_float(value) if not isinstance(value, datetime.date) else np.nan
        except (TypeError, ValueError):
            number = np.nan
        if np.isnan(number):
            raise _Impossible("it holds numbers")
        return number, number

    def shown(self, number: float) -> str:
        return f"{number:.10g}"

    def available(self, asked: Any) -> str:
        known = self.numbers[~np.isnan(self.numbers)]
        return f"is from {self.shown(known.min())} to {self.shown(known.max())}" if len(known) else "holds nothing"


class _Dates(_Numbers):
    """A column of dates, as days since 1970-01-01. The text 1999 is that whole year, 1999-12-31 that whole day."""

    def span(self, value: Any) -> tuple[float, float]:
        try:
            if isinstance(value, str) and len(value.strip()) > len("1999-12-31"):
                value = datetime.datetime.fromisoformat(value.strip())
            if isinstance(value, datetime.datetime):
                first = as_float(value)
                last = first + MICROSECOND
            elif isinstance(value, str | datetime.date | np.datetime64):
                period: Any = np.datetime64(value)
                first, last = (_days(when) for when in (period, period + 1))
            else:
                first = last = np.nan
        except ValueError:
            first = last = np.nan
        if np.isnan(first):
            raise _Impossible("it holds dates such as '1999-12-31'")
        return first - MICROSECOND / 2, last - MICROSECOND / 2  # days are rounded to less

    def shown(self, number: float) -> str:
        return str(np.datetime64(0, "D") + int(number // 1))


_Cells: TypeAlias = _Levels | _Numbers


def _cells(table: Table, column: str, use: str) -> _Cells:
    """The cells of a column, as the model reads them; where it does not, as they look."""
    values = table[column]
    missing = is_missing(values)
    present = values[~missing]
    if holds_numbers(present):
        return (_Dates if holds_dates(present) else _Numbers)(as_numbers(table, column))
    bag = use == "bag" or (use in ("nothing", "kernel") and column_kind(values) == "bag")
    read = as_bag if bag else lambda value: (freeze(value),)
    return _Levels([() if gone else read(value) for value, gone in zip(values.tolist(), missing, strict=True)])


def _any_of(cells: _Cells, asked: Any) -> Bools:
    """Which cells have a value, are in a range (a tuple), or meet any of several conditions."""
    if isinstance(asked, tuple):
        if len(asked) != 2:
            raise _Impossible("a tuple is a range (low, high), and several values are a list")
        return cells.between(*asked)
    if isinstance(asked, SEVERAL):
        several = [_any_of(cells, one) for one in (asked.tolist() if isinstance(asked, np.ndarray) else asked)]
        if not several:
            raise _Impossible("nothing is in the list")
        return np.asarray(np.any(several, axis=0))
    if is_null(asked) or isinstance(asked, Mapping):
        raise _Impossible(f"{show_cell(asked)} is no value")
    return cells.equal(asked)


def _shown(asked: Any) -> str:
    """A condition in words."""
    if isinstance(asked, tuple) and len(asked) == 2:
        low, high = asked
        ends = [*([] if low is None else [f"from {low}"]), *([] if high is None else [f"to {high}"])]
        return " ".join(ends) or "anything"
    if isinstance(asked, list) and asked:
        return " or ".join(map(_shown, asked[:NAMED])) + (" or ..." if len(asked) > NAMED else "")
    return show_cell(asked)


def _same(level: Any, value: Any) -> bool:
    """Whether a value is meant by another, which may be its text: 'true' is True, '7' is 7."""
    if isinstance(value, str) and not isinstance(level, str):
        return str(level).casefold() == value.strip().casefold()
    return bool(level == value)


def _days(when: np.datetime64) -> float:
    """Days since 1970-01-01; NaN for no time."""
    microseconds = when.astype("datetime64[us]")
    return np.nan if np.isnat(when) else float(microseconds.astype(np.int64)) * MICROSECOND
