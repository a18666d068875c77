"""Arrays of rows that are read by row number and extended by more rows without a copy.

Draws of millions of rows are neither copied nor written to when a few rows are read or added: the array may be a file
that other processes read too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Self

import numpy as np
import numpy.typing as npt

__all__ = ["GrownRows", "RowsInPlace", "count_in_place", "grown", "rows_in_place"]

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.integer]


class RowsInPlace(ABC):
    """An array (M, S, ...) of which some rows, or all rows in some of the draws, are read without a copy of the rest.

    ``rows[numbers]`` are rows by an array of their numbers or by a slice, ``rows[:, which]`` all rows in some draws,
    read when they are asked for, ``rows[:, s]`` and ``np.asarray(rows)`` all of them as an array.
    """

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole array."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """The type of its numbers."""

    @property
    def nbytes(self) -> int:
        """The bytes of the whole array."""
        return int(np.prod(self.shape)) * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def take(self, numbers: Ints) -> Array:
        """Some of the rows, as an array."""

    @abstractmethod
    def in_draws(self, which: Any) -> Self:
        """All rows in some of the draws, given by a slice or their numbers."""

    @abstractmethod
    def whole(self) -> Array:
        """All rows, as an array."""

    def __getitem__(self, key: Any) -> Any:
        rows, *rest = key if isinstance(key, tuple) else (key,)
        if not (isinstance(rows, slice) and rows == slice(None)):
            numbers = np.arange(*rows.indices(len(self))) if isinstance(rows, slice) else np.asarray(rows)
            taken = self.take(np.flatnonzero(numbers) if numbers.dtype == bool else numbers)
            return taken[(slice(None), *rest)] if rest else taken
        if len(rest) == 1 and isinstance(rest[0], slice | list | np.ndarray):
            return self.in_draws(rest[0])
        return self.whole()[(slice(None), *rest)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        array = self.whole()
        return array if dtype is None else array.astype(dtype, copy=False)


@dataclass(frozen=True)
class GrownRows(RowsInPlace):
    """Rows of ``base`` (M, ...), then those of ``more`` (k, ...), which lie in ``room`` where it may grow in place."""

    base: Any
    more: Array
    room: Room | None = field(default=None, repr=False, compare=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of all rows together."""
        return (len(self.base) + len(self.more), *self.base.shape[1:])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the numbers of both."""
        dtype: np.dtype[Any] = self.base.dtype
        return dtype

    def take(self, numbers: Ints) -> Array:
        """Some of the rows, each from the array that holds it."""
        out = np.empty((len(numbers), *self.shape[1:]), dtype=self.dtype)
        old = numbers < len(self.base)
        out[old] = self.base[numbers[old]]
        out[~old] = self.more[numbers[~old] - len(self.base)]
        return out

    def in_draws(self, which: Any) -> GrownRows:
        """All rows in some of the draws, of both arrays."""
        return GrownRows(self.base[:, which], self.more[:, which])

    def whole(self) -> Array:
        """All rows as one array."""
        return np.concatenate([np.asarray(self.base), self.more])


class Room:
    """An array with room for more rows after the first ``used``: rows added one by one are copied rarely.

    Those that are there are never written to again, so whoever has a view of them keeps what it saw.
    """

    def __init__(self, rows: Array, capacity: int) -> None:
        self.rows = np.empty((capacity, *rows.shape[1:]), dtype=rows.dtype)
        self.used, self._lock = 0, Lock()
        self.add(0, rows)

    def add(self, after: int, rows: Array) -> Array | None:
        """Write rows after the first ``after``, and return all up to them; None if others are there, or no room is."""
        end = after + len(rows)
        with self._lock:
            if self.used != after or end > len(self.rows):
                return None
            self.used = end
        self.rows[after:end] = rows
        return self.rows[:end]


def grown(rows: Any, more: Array) -> GrownRows:
    """The rows of an array, which may have been grown before, and more after them.

    The cost grows with ``more`` alone, on the average over many calls.
    """
    if not isinstance(rows, GrownRows):
        return GrownRows(rows, more)
    both = None if rows.room is None else rows.room.add(len(rows.more), more)
    if both is not None:
        return GrownRows(rows.base, both, rows.room)
    both = np.concatenate([rows.more, more])
    room = Room(both, 2 * len(both))
    return GrownRows(rows.base, room.rows[: len(both)], room)


def rows_in_place(rows: Any) -> Array:
    """The rows that are stored as one array, without those that were added."""
    return np.asarray(rows.base if isinstance(rows, GrownRows) else rows)


def count_in_place(rows: Any) -> int:
    """How many rows are stored as one array, without those that were added."""
    return len(rows.base if isinstance(rows, GrownRows) else rows)
