"""Rows of an array that stays where it lies, and more rows after them.

Draws of millions of rows are neither copied nor written to when a few rows are added: the array may be a file that
other processes read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["GrownRows", "grown", "lying"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class GrownRows:
    """Rows of ``base`` (M, ...), then those of ``more`` (k, ...)."""

    base: Array
    more: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """Of all rows together."""
        return (len(self), *self.base.shape[1:])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of either."""
        return self.base.dtype

    @property
    def nbytes(self) -> int:
        """Of both."""
        return int(self.base.nbytes + self.more.nbytes)

    def __len__(self) -> int:
        return len(self.base) + len(self.more)

    def __getitem__(self, key: Any) -> Any:
        """Some rows, by an array of their numbers; or of all rows some of the rest, as ``rows[:, which]``."""
        if isinstance(key, tuple):
            first, *rest = key
            if first != slice(None):
                return self[first][(slice(None), *rest)]
            return GrownRows(self.base[key], self.more[key])
        rows = np.asarray(key)
        out = np.empty((len(rows), *self.base.shape[1:]), dtype=self.dtype)
        old = rows < len(self.base)
        out[old] = self.base[rows[old]]
        out[~old] = self.more[rows[~old] - len(self.base)]
        return out

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.concatenate([self.base, self.more]).astype(dtype or self.dtype, copy=False)


def grown(rows: Any, more: Array) -> GrownRows:
    """The rows of an array, grown before or not, and more after them."""
    if isinstance(rows, GrownRows):
        return GrownRows(rows.base, np.concatenate([rows.more, more]))
    return GrownRows(rows, more)


def lying(rows: Any) -> Array:
    """The rows that lie in one piece."""
    return rows.base if isinstance(rows, GrownRows) else np.asarray(rows)
