"""What the data say about one mode while the others stand still: the statistics A_m and b_m of its rows.

Observations are sorted by row once for every mode; each update then passes over them in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.compute import rows as compute
from tuckergp.compute.contract import IDENTITY
from tuckergp.design import Design
from tuckergp.model import Core, pack

__all__ = ["Evidence", "Sorted", "sort_by_row"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Sorted:
    """Observations in the order of their rows of one mode; those of row m are ``ptr[m]:ptr[m + 1]``."""

    ptr: Ints
    order: Ints
    index: npt.NDArray[np.int32]


def sort_by_row(design: Design, d: int) -> Sorted:
    """Sort the observations by their row of mode d."""
    rows = design.index[:, d]
    order = np.argsort(rows, kind="stable")
    ptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=design.modes[d].n_rows))]).astype(np.int64)
    return Sorted(ptr, order, design.index[order])


@dataclass(frozen=True)
class Evidence:
    """The data as mode d hears them: y_i = z_i'psi_d + noise of precision w_i, z = W x_{e != d} psi_e.

    Attributes
    ----------
    data : Sorted
    y, weight : ndarray, shape (N,)
        Targets and noise precisions, in the order of the design (not sorted).
    core, W : Core and its weights
    psi : sequence of ndarray
        Factors of all modes; those of mode d are not read.
    """

    data: Sorted
    y: Floats
    weight: Floats
    core: Core
    d: int
    psi: Sequence[Floats]
    W: Floats

    def _arguments(self) -> tuple[Any, ...]:
        data, core, d = self.data, self.core, self.d
        tables, kind, ranks, w = list(self.psi), core.kind, core.ranks, self.W
        if core.modes == 2 and kind != IDENTITY:
            # z depends on the other mode's row alone, so contract it once a row: then the core is the identity
            dense = core.dense(self.W)
            tables[1 - d] = tables[1 - d] @ (dense.T if d == 0 else dense)
            kind, ranks = IDENTITY, np.full(2, ranks[d])
        if kind == IDENTITY:
            w = np.ones(1)
        flat, start = pack(tables)
        return (
            data.ptr, data.index, self.y[data.order], self.weight[data.order],
            d, kind, w, core.coords, ranks, flat, start,
        )  # fmt: skip

    def statistics(self) -> tuple[Floats, Floats]:
        """A (M, r, r) and b (M, r)."""
        A, b = compute.statistics(*self._arguments())
        return A, b

    def solve(self, pull: Floats, precision: Floats, noise: Floats) -> Floats:
        """Conditional of every row under N(precision^-1 pull_m, precision^-1); see `tuckergp.compute.rows.solve`."""
        arguments: tuple[Any, ...] = (*self._arguments(), pull, precision, noise)
        psi, failed = compute.solve(*arguments)
        if failed:
            raise FloatingPointError(f"the precision of {failed} rows of mode {self.d} is not positive definite")
        return psi
