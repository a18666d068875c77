"""Rows of a tensor in a file: read where they lie, and compared with their checksums when they are first read.

A tensor is cut into pieces of whole rows, each with a CRC-32. Whoever reads a few rows reads the pieces they are in and
nothing else; a piece that was found to be in order is not looked at again.
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
"""About so many bytes have one checksum."""


class DamagedFile(InputError):
    """What a reader of a file that is not in order is told."""


def damaged(file: str, what: str) -> DamagedFile:
    """The same in words."""
    return DamagedFile(f"{file} is damaged or no tuckergp model: {what}. Fit and save it again.")


def rows_in_piece(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """How many rows of a tensor make a piece: as many as fit, one at least.

    Examples
    --------
    >>> rows_in_piece((1000, 250, 16), np.dtype(np.float32))
    65
    """
    return max(1, PIECE // max(1, prod(shape[1:]) * dtype.itemsize))


def pieces_of(rows: Any, step: int) -> Iterator[Array]:
    """The rows of an array, or of what is like one, so many at a time; those of a file are compared with checksums."""
    for first in range(0, len(rows), step):
        yield rows.part(first, first + step) if isinstance(rows, StoredRows) else rows[first : first + step]


@dataclass(frozen=True, eq=False)
class StoredRows(RowsInPlace):
    """The rows of a tensor.

    Attributes
    ----------
    array : ndarray, shape (M, S, ...)
        As it lies in the file.
    checksums : ndarray of uint32, shape (pieces,)
    step : int
        Rows of a piece.
    file, name : str
        Of the file and of the tensor, for messages.
    below : int or None
        Whole numbers are from 0 to ``below`` - 1.
    draws : slice, ndarray of int, or None
        Which of the draws are asked for; None for all.
    checked : ndarray of bool, shape (pieces,)
        Which pieces are known to be in order; shared by all that read this tensor.
    """

    array: Array
    checksums: Array
    step: int
    file: str
    name: str
    below: int | None = None
    draws: Any = None
    checked: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.checked is None:
            object.__setattr__(self, "checked", np.zeros(len(self.checksums), dtype=bool))

    @property
    def shape(self) -> tuple[int, ...]:
        """In the draws asked for."""
        return (len(self.array), *self._in_draws(self.array[:0]).shape[1:])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the numbers."""
        return self.array.dtype

    def take(self, numbers: Ints) -> Array:
        """Some of the rows; their pieces are compared with their checksums."""
        self._check(np.unique(numbers // self.step))
        if isinstance(self.draws, np.ndarray):
            return np.asarray(self.array[numbers[:, None], self.draws])
        return np.asarray(self._in_draws(self.array)[numbers])

    def in_draws(self, which: Any) -> StoredRows:
        """The same tensor in some of these draws."""
        if self.draws is not None:
            which = np.arange(self.array.shape[1])[self.draws][which]
        return replace(self, draws=which if isinstance(which, slice) else np.asarray(which))

    def part(self, first: int, last: int) -> Array:
        """Rows one after the other, compared with their checksums; a view where the draws are a slice."""
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
        """Whether floats are finite (infinity and NaN would be the smallest or the largest), whole numbers inside."""
        if self.dtype.kind == "f":
            return bool(np.isfinite(smallest) and np.isfinite(largest))
        return self.below is None or bool(smallest >= 0 and largest < self.below)
