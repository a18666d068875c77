"""What the rows of a table say of their pairs: ratings or counts, and one value for a pair that several rows have."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from tuckergp.data.names import COUNT, RATING
from tuckergp.data.tables import Table
from tuckergp.errors import InputError

__all__ = ["Duplicates", "counts_of", "one_of_each", "ratings_of"]

Floats = npt.NDArray[np.float64]
Duplicates: TypeAlias = Literal["keep", "mean", "last", "refuse"]
# Beyond this a count is taken for an error.
LARGEST_COUNT = 1e15


def ratings_of(table: Table, scale: tuple[float, float] | None) -> Floats:
    """The ratings, which must lie within the scale if there is one."""
    y = table.numeric(RATING, dates=False)
    if scale is None:
        return y
    low, high = map(float, scale)
    outside = (y < low) | (y > high)
    if outside.any():
        row = int(np.argmax(outside))
        raise InputError(
            f"{table.name} column {RATING!r} holds {y[row]:g} at {table.row_label(row)}, outside the scale from "
            f"{low:g} to {high:g} ({int(outside.sum()):,} of {len(y):,} rows)."
        )
    return y


def counts_of(table: Table) -> Floats:
    """The counts of clicks; ones where the table has none."""
    if COUNT not in table.columns:
        return np.ones(len(table))
    counts = table.numeric(COUNT, dates=False)
    wrong = ~((counts > 0) & (counts < LARGEST_COUNT))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"{table.name} column {COUNT!r} at {table.row_label(row)} holds {counts[row]:g}; counts are positive "
            f"numbers. Leave out pairs that were not chosen."
        )
    return counts


def one_of_each(
    pairs: npt.NDArray[np.int64], values: Floats, how: Literal["last", "mean", "sum"]
) -> tuple[npt.NDArray[np.intp], Floats]:
    """One row for each pair, in the order of the rows, and its value: the last one, or the mean or sum of all.

    A row is the last of its pair with ``"last"``, else the first.

    >>> rows, values = one_of_each(np.array([7, 3, 7]), np.array([1.0, 5.0, 2.0]), "mean")
    >>> rows.tolist(), values.tolist()
    ([0, 1], [1.5, 5.0])
    """
    if how == "last":
        rows = np.sort(len(pairs) - 1 - np.unique(pairs[::-1], return_index=True)[1])
        return rows, values[rows]
    _, first, inverse = np.unique(pairs, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    together: Any = np.bincount(inverse, values)
    if how == "mean":
        together = together / np.bincount(inverse)
    return first[order], together[order]
