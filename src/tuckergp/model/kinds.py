"""What the columns of X hold (numbers, dates, text), and values of other types as one of these.

A column means the same in `predict` as in `fit`: dates may come as text, and levels of another type are announced.
"""

from __future__ import annotations

import datetime
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.data.tables import Table, is_missing, show_cell
from tuckergp.errors import DataWarning, InputError
from tuckergp.kernels import Identity, Kernel, Linear

__all__ = ["as_dates", "check_kinds", "kinds_of", "plain", "reads_levels", "values_of", "warn_of_levels"]

MOST_VALUES = 101
"""How many values of a column a model keeps."""

KINDS = {"f": "numbers", "i": "numbers", "u": "numbers", "b": "truth values", "M": "dates"}


def plain(table: Table) -> Table:
    """The same table with objects as numbers or dates where all are such: durations in days, periods as their start."""
    columns = dict(table.columns)
    for name, values in table.columns.items():
        if values.dtype.kind != "O":
            continue
        if any(isinstance(value, complex) for value in values):
            raise InputError(
                f"{table.name} column {name!r} holds complex numbers; give their real and imaginary parts as two "
                f"columns."
            )
        convert = _conversion(values[~is_missing(values)])
        if convert is not None:
            cells = zip(values, is_missing(values), strict=True)
            columns[name] = np.array([None if gone else convert(value) for value, gone in cells]).astype(
                np.float64 if convert in (float, _days) else "datetime64[us]"
            )
    return replace(table, columns=columns)


def _conversion(values: npt.NDArray[Any]) -> Callable[[Any], Any] | None:
    """What makes all of some objects numbers or dates; None for nothing."""
    if not len(values):
        return None
    if all(isinstance(value, datetime.timedelta) for value in values):
        return _days
    if all(isinstance(value, Decimal) for value in values):
        return float
    if all(isinstance(value, datetime.date) for value in values):
        return _utc
    if all(hasattr(value, "to_timestamp") for value in values):  # periods of pandas
        return _start
    return None


def _days(value: datetime.timedelta) -> float:
    return value / datetime.timedelta(days=1)


def _utc(value: datetime.date) -> datetime.date:
    """A date, or a time of which the zone has been taken into account."""
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC).replace(tzinfo=None)
    return value


def _start(period: Any) -> datetime.datetime:
    start: datetime.datetime = period.to_timestamp().to_pydatetime()
    return start


def as_dates(table: Table, columns: Iterable[str]) -> Table:
    """The same table with text in some columns read as dates; an error for text that is none."""
    changed = dict(table.columns)
    for name in columns:
        values = table[name]
        if values.dtype.kind != "O":
            continue
        dates = np.empty(len(values), dtype="datetime64[us]")
        for row, value in enumerate(values):
            try:
                dates[row] = np.datetime64("NaT") if value is None else _utc(datetime.datetime.fromisoformat(value))
            except (TypeError, ValueError):
                raise InputError(
                    f"{table.name} column {name!r} must hold dates, but {table.row_label(row)} holds "
                    f"{show_cell(value)}; write them as 2000-12-31 or 2000-12-31T23:59:00."
                ) from None
        changed[name] = dates
    return replace(table, columns=changed)


def kinds_of(table: Table) -> dict[str, str]:
    """In one word for each column, what it holds."""
    return {name: _kind(values) for name, values in table.columns.items()}


def values_of(table: Table) -> dict[str, list[Any]]:
    """The distinct values of each column in their order, which say what inputs are usual.

    Of more than `MOST_VALUES`: of numbers and dates as many quantiles, the lowest and the highest value among them; of
    others the most frequent. Dates are text.
    """
    return {name: _values(column) for name, column in table.columns.items()}


def _values(column: npt.NDArray[Any]) -> list[Any]:
    there = column[~is_missing(column)]
    if there.dtype.kind in "fiubM":
        distinct = np.unique(there)
        if len(distinct) > MOST_VALUES:
            places = np.linspace(0, len(there) - 1, MOST_VALUES).round().astype(int)
            distinct = np.unique(np.sort(there)[places])
        return list(np.datetime_as_string(distinct) if distinct.dtype.kind == "M" else distinct.tolist())
    counted = Counter(value for value in there.tolist() if isinstance(value, str | int | float))
    return sorted((value for value, _ in counted.most_common(MOST_VALUES)), key=lambda value: (str(type(value)), value))


def _kind(values: npt.NDArray[Any]) -> str:
    if values.dtype.kind in KINDS:
        return KINDS[values.dtype.kind]
    there = values[~is_missing(values)]
    if len(there) and all(isinstance(value, str) for value in there):
        return "text"
    numbers = len(there) and all(isinstance(value, int | float | np.number) for value in there)
    return "numbers" if numbers else "other values"


def reads_levels(kernel: Kernel) -> bool:
    """Whether a kernel compares some values as levels, as Identity does, or may do so."""
    return any(isinstance(leaf, Identity | Linear) for leaf in kernel.leaves())


def check_kinds(table: Table, columns: Iterable[str], known: Mapping[str, str]) -> None:
    """Refuse dates in columns that held numbers in training, and numbers in columns that held dates."""
    for name in columns:
        now, before = _kind(table[name]), known.get(name)
        if before is not None and now != before and {now, before} == {"numbers", "dates"}:
            raise InputError(
                f"{table.name} column {name!r} held {before} in training, and now holds {now}; give {before}."
            )


def warn_of_levels(table: Table, columns: Iterable[str], known: Mapping[str, str]) -> None:
    """Warn of columns of levels that hold other things than those of training, so that all of them are new."""
    for name in columns:
        now, before = _kind(table[name]), known.get(name)
        if before is not None and now != before and {now, before} <= {"text", "numbers", "dates"}:
            warnings.warn(
                f"{table.name} column {name!r} holds {now}, but {before} in training: {show_cell(table[name][0])} is "
                f"none of the levels that were learned. Convert the column.",
                DataWarning,
                stacklevel=4,
            )
