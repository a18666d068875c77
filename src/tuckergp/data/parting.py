"""What splitters have in common: times as numbers, tables in two parts, and checks of settings."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.data.periods import times_at
from tuckergp.data.tables import Table, is_missing
from tuckergp.errors import InputError

__all__ = ["both", "count_of", "parted", "refuse_missing", "share_of", "times_of"]


def times_of(table: Table, column: str) -> npt.NDArray[Any]:
    """The times in a column as numbers that can be sorted."""
    if column not in table:
        raise InputError(f"A split by time needs a column {column!r}, which {table.name} does not have.")
    if len(table) == 0:
        raise InputError(f"{table.name} is empty.")
    refuse_missing(table, column)
    values = table[column]
    if values.dtype.kind in "iuf":
        return values
    if values.dtype.kind == "M":
        return values.astype("datetime64[us]").astype(np.int64)
    return times_at(table, column, np.arange(len(table))).astype(np.int64)


def refuse_missing(table: Table, column: str) -> None:
    """Refuse a column with missing values, naming the first."""
    missing = is_missing(table[column])
    if missing.any():
        raise InputError(f"{table.name} column {column!r} is missing at {table.row_label(int(np.argmax(missing)))}.")


def parted(table: Table, test: npt.NDArray[np.bool_]) -> tuple[Table, Table]:
    """The training rows and the test rows of a table."""
    return table.take(np.flatnonzero(~test)), table.take(np.flatnonzero(test))


def both(train: Table, test: Table, remedy: str) -> tuple[Table, Table]:
    """Return training and test rows, refusing if either is empty."""
    for rows, name in ((train, "train"), (test, "test")):
        if len(rows) == 0:
            raise InputError(f"There is no rating to {name} on; {remedy}.")
    return train, test


def share_of(value: object, name: str) -> float:
    """Check that a value is a number between 0 and 1, and return it."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < 1:
        raise InputError(f"{name} must be a share between 0 and 1, not {value!r}.")
    return float(value)


def count_of(value: object, name: str, least: int) -> int:
    """Check that a value is a whole number of at least ``least``, and return it."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}, not {value!r}.")
    return int(value)
