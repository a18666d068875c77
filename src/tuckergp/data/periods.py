"""Times of ratings as numbers of weeks or months."""

from __future__ import annotations

import datetime
import re
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from tuckergp.data.tables import Table, is_missing, show_cell
from tuckergp.errors import InputError

__all__ = ["FINEST", "UNKNOWN", "Unit", "period_name", "periods", "times", "times_at", "unit_steps"]

Unit: TypeAlias = Literal["week", "month"]

UNKNOWN = np.iinfo(np.int64).min
"""The period of a row without a time."""

# Seconds since 1970 stay below this for 3,000 years; larger numbers are milli-, micro- or nanoseconds.
LARGEST_SECONDS = 1e11
# Of the units in steps of a thousand from seconds on, the finest that is used: nanoseconds.
FINEST = 3


_NUMBER = re.compile(r"\s*-?\d{5,}(\.\d*)?\s*")
_ZONE = re.compile(r"[T ]\d\d.*(Z|[+-]\d\d:?\d\d)$")


def periods(table: Table, column: str, unit: Unit) -> npt.NDArray[np.int64]:
    """The week (from Monday on) or month of every row, counted from 1970; UNKNOWN where the time is missing.

    Dates, text such as ``1998-04-22 10:30`` (with a time zone or without: then it is UTC), or numbers, also as text:
    seconds since 1970, or milli-, micro- or nanoseconds where they are too large for that.

    Examples
    --------
    >>> from tuckergp.data.tables import as_table
    >>> times = as_table({"timestamp": ["1970-01-01", "1970-01-05", "1970-02-01"]}, "ratings")
    >>> periods(times, "timestamp", "week"), periods(times, "timestamp", "month")
    (array([0, 1, 4]), array([0, 0, 1]))
    """
    when = times(table, column)
    if unit == "month":
        out = when.astype("datetime64[M]").astype(np.int64)
    else:
        out = (when.astype("datetime64[D]").astype(np.int64) + 3) // 7
    out[np.isnat(when)] = UNKNOWN
    return out


def period_name(number: int, unit: Unit) -> str:
    """A week or month in words.

    Examples
    --------
    >>> period_name(1, "week"), period_name(1, "month")
    ('week of 1970-01-05', '1970-02')
    """
    if unit == "month":
        return str(np.datetime64(number, "M"))
    return f"week of {np.datetime64(7 * number - 3, 'D')}"


def times(table: Table, column: str) -> npt.NDArray[Any]:
    """The time of every row to the second; NaT where it is missing. See `periods` for what is read."""
    values = table[column]
    missing = is_missing(values)
    seconds = np.full(len(values), "NaT", dtype="datetime64[s]")
    seconds[~missing] = times_at(table, column, np.flatnonzero(~missing))
    return seconds


def times_at(table: Table, column: str, rows: npt.NDArray[np.intp]) -> npt.NDArray[Any]:
    """Times at some rows, none of them missing, to the second."""
    values = table[column][rows]
    if values.dtype.kind == "M":
        return values.astype("datetime64[s]")
    if values.dtype.kind == "O" and not all(map(_is_number, values)):
        times = np.empty(len(values), dtype="datetime64[s]")
        for place, value in enumerate(values):
            try:
                times[place] = _moment(value)
            except (TypeError, ValueError, OverflowError):
                raise _no_time(table, column, int(rows[place])) from None
        return times
    numbers = np.asarray(table.numeric(column, missing=True)[rows])
    finest = unit_steps(numbers)
    if (finest > FINEST).any():
        raise _no_time(table, column, int(rows[np.argmax(finest > FINEST)]))
    steps = int(finest.max(initial=0))
    return (numbers / 1_000.0**steps).astype(np.int64).astype("datetime64[s]")


def _is_number(value: Any) -> bool:
    """Whether a value is a number, also as text; text of four digits is a year."""
    return isinstance(value, int | float | np.number) or (isinstance(value, str) and bool(_NUMBER.fullmatch(value)))


def _moment(value: Any) -> np.datetime64:
    """A date, a time or a text as a time in UTC."""
    if isinstance(value, str):
        text = value.strip()
        value = datetime.datetime.fromisoformat(text) if _ZONE.search(text) else text.replace(" ", "T")
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return np.datetime64(value, "s")


def _no_time(table: Table, column: str, row: int) -> InputError:
    return InputError(
        f"{table.name} column {column!r} must hold times, but {table.row_label(row)} holds "
        f"{show_cell(table[column][row])}; write 1998-04-22 10:30, or seconds since 1970."
    )


def unit_steps(numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """The unit that every number would be in by itself: 0 for seconds, 1 milli-, 2 micro-, 3 nanoseconds, and so on."""
    sizes = np.maximum(np.abs(numbers) / LARGEST_SECONDS, 1.0)
    return np.asarray(np.ceil(np.log(sizes) / np.log(1_000.0)), dtype=np.int64)
