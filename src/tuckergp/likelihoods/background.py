"""Cells without an observation, as observations of 0: a background that costs no more than the rows it is made of.

Feedback without ratings observes every cell of users x items, the chosen ones with value 1, all others with value 0.
The others need no list, because their weights are products.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

__all__ = ["Background"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Background:
    """Zeros in every cell: each occasion (a user, in some circumstances) together with each row of one crossed mode.

    The weight of a cell is the weight of its occasion times that of its row of the crossed mode. The cells of
    observations are among them, so those count with the weight they have on top of it.

    Attributes
    ----------
    crossed : int
        The mode, such as that of items, each row of which meets every occasion.
    index : ndarray of int32, shape (P, D)
        The rows of the occasions; the column of the crossed mode is not read.
    weight : ndarray, shape (P,)
        Weights of the occasions.
    across : ndarray, shape (M,)
        Weights of the rows of the crossed mode.
    rows : tuple of int
        How many rows each mode has.
    """

    crossed: int
    index: Ints
    weight: Floats
    across: Floats
    rows: tuple[int, ...]

    @classmethod
    def of(cls, index: Ints, rows: tuple[int, ...], weight: Floats, across: Floats, crossed: int = 1) -> Background:
        """The background of observations with this ``index`` (N, D).

        The circumstances of a row of mode 0, which has this ``weight`` (M_0,), share it in proportion to its
        observations in them, so that a pair weighs the same however many circumstances there are.
        """
        others = [d for d in range(index.shape[1]) if d != crossed]
        if len(others) == 1:
            occasions = np.zeros((rows[others[0]], index.shape[1]), dtype=np.int32)
            occasions[:, others[0]] = np.arange(len(occasions))
            return cls(crossed, occasions, weight, across, rows)
        flat = np.ravel_multi_index(tuple(index[:, others].T.astype(np.int64)), [rows[d] for d in others])
        _, first, count = np.unique(flat, return_index=True, return_counts=True)
        occasions = index[first]
        whole = np.bincount(occasions[:, 0], count, rows[0])
        return cls(crossed, occasions, weight[occasions[:, 0]] * count / whole[occasions[:, 0]], across, rows)

    def of_rows(self, d: int) -> Floats:
        """The sum of the weights of the occasions of each row of a mode, (M_d,)."""
        return np.bincount(self.index[:, d], self.weight, self.rows[d]).astype(np.float64)

    @cached_property
    def by_row(self) -> dict[int, tuple[npt.NDArray[np.int64], npt.NDArray[np.intp]]]:
        """For each mode but the crossed one, where the occasions of each row begin, and the occasions by row."""
        sorted_by = {}
        for d in range(self.index.shape[1]):
            if d != self.crossed:
                count = np.bincount(self.index[:, d], minlength=self.rows[d])
                ptr = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
                sorted_by[d] = ptr, np.argsort(self.index[:, d], kind="stable")
        return sorted_by
