"""Rows of a tensor in a mapped file, compared with their checksums when they are first read.

A tensor is divided into pieces of whole rows, each with a CRC-32. Reading a few rows reads only the pieces they are in;
a piece that matched its checksum is not compared again.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.errors import InputError
from tuckergp.residuals.grown import RowsInPlace

__all__ = ["PIECE", "DamagedFile", "StoredRows", "damaged", "pieces_of", "rows_in_piece"]

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.integer]

PIECE = 1 << 20
"""Bytes per checksum, approximately."""

LARGEST = 1e100
"""No float of a model is larger; the squares of numbers beyond would soon be infinite."""


class DamagedFile(InputError):
    """The error for a damaged file."""


def damaged(file: str, what: str) -> DamagedFile:
    """The error for a damaged file, saying ``what`` is wrong with it."""
    return DamagedFile(f"{file} is damaged or no tuckergp model: {what}. Fit and save it again.")


def rows_in_piece(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """The number of rows per piece of a tensor: as many as fit, at least one.

    Examples
    --------
    >>> rows_in_piece((1000, 250, 16), np.dtype(np.float32))
    65
    """
    return max(1, PIECE // max(1, prod(shape[1:]) * dtype.itemsize))


def pieces_of(rows: Any, step: int) -> Iterator[Array]:
    """Yield the rows of an array or of `StoredRows`, ``step`` at a time; those of a file are checked on the way."""
    for first in range(0, len(rows), step):
        yield rows.part(first, first + step) if isinstance(rows, StoredRows) else rows[first : first + step]


@dataclass(frozen=True, eq=False)
class StoredRows(RowsInPlace):
    """The rows of a tensor in a mapped file.

    Attributes
    ----------
    array : ndarray, shape (M, S, ...)
        The tensor as it is in the file.
    checksums : ndarray of uint32, shape (pieces,)
    step : int
        Rows per piece.
    file, name : str
        Names of the file and of the tensor, for messages.
    below : int or None
        Whole numbers must be from 0 to ``below`` - 1.
    between : tuple of float
        The smallest and the largest float that there may be.
    draws : slice, ndarray of int, or None
        Which of the draws to read; None for all.
    checked : ndarray of bool, shape (pieces,)
        Which pieces matched their checksums; shared by all readers of this tensor.
    """

    array: Array
    checksums: Array
    step: int
    file: str
    name: str
    below: int | None = None
    draws: Any = None
    between: tuple[float, float] = (-LARGEST, LARGEST)
    checked: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.checked is None:
            object.__setattr__(self, "checked", np.zeros(len(self.checksums), dtype=bool))

    def limit(self, low: float, high: float) -> None:
        """Refuse floats outside when they are read."""
        object.__setattr__(self, "between", (max(low, -LARGEST), min(high, LARGEST)))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the rows, restricted to ``draws``."""
        return (len(self.array), *self._in_draws(self.array[:0]).shape[1:])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the tensor."""
        return self.array.dtype

    def take(self, numbers: Ints) -> Array:
        """Some of the rows; their pieces are compared with their checksums."""
        self._check(np.unique(numbers // self.step))
        if isinstance(self.draws, np.ndarray):
            return np.asarray(self.array[numbers[:, None], self.draws])
        return np.asarray(self._in_draws(self.array)[numbers])

    def in_draws(self, which: Any) -> StoredRows:
        """The same tensor, restricted to some of its draws."""
        if self.draws is not None:
            which = np.arange(self.array.shape[1])[self.draws][which]
        return replace(self, draws=which if isinstance(which, slice) else np.asarray(which))

    def part(self, first: int, last: int) -> Array:
        """The rows from ``first`` to ``last`` - 1, compared with their checksums; a view if the draws are a slice."""
        last = min(last, len(self.array))
        self._check(np.arange(first // self.step, -(-last // self.step)))
        return self._in_draws(self.array[first:last])

    def whole(self) -> Array:
        """All rows, as in `part`."""
        return self.part(0, len(self.array))

    def verify(self) -> None:
        """Compare all pieces with their checksums; InputError where one differs."""
        self._check(np.arange(len(self.checksums)))

    def _in_draws(self, array: Array) -> Array:
        return array if self.draws is None else array[:, self.draws]

    def _check(self, pieces: Ints) -> None:
        for piece in pieces[~self.checked[pieces]].tolist():
            first = piece * self.step
            rows = self.array[first : first + self.step]
            where = f"rows {first} to {first + len(rows) - 1} of {self.name}"
            if zlib.crc32(rows.reshape(-1).view(np.uint8).data) != self.checksums[piece]:
                raise damaged(self.file, f"{where} differ from their checksum")
            if rows.size and not self._makes_sense(rows.min(), rows.max()):
                raise damaged(self.file, f"{where} hold numbers that make no sense")
            self.checked[piece] = True

    def _makes_sense(self, smallest: Any, largest: Any) -> bool:
        """Whether numbers with these extremes (NaN would be one) are in range."""
        if self.dtype.kind == "f":
            return float(smallest) >= self.between[0] and float(largest) <= self.between[1]
        return self.below is None or bool(smallest >= 0 and largest < self.below)
