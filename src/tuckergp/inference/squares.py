"""The hot loop of samplers by gradients: squared residuals as a function of all weights, on rows.

What Gaussian noise of any precision needs of the data. `TuckerModel.log_joint_and_gradient` says the same for every
likelihood and core, with the core multiplied once an observation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuckergp.compute import squares as compute
from tuckergp.compute.contract import FULL, SPARSE
from tuckergp.design import Design
from tuckergp.mode_table import Matrix
from tuckergp.model import Core, pack
from tuckergp.priors.evidence import Sorted, sort_by_row

__all__ = ["Squares", "cheapest_fold"]

Floats = npt.NDArray[np.float64]

# A sparse table of so many cells, or with this share of them filled, is multiplied faster as a dense one.
SMALL_TABLE, FILLED = 20_000, 0.2
# Numbers that the cores of all rows may take together.
LARGEST_CORES = 50_000_000


def cheapest_fold(core: Core, design: Design) -> int | None:
    """The mode whose rows are to get cores of their own; None where none would save work, or for other cores.

    Examples
    --------
    >>> from tuckergp.model import make_core
    >>> from tuckergp.mode_table import ModeTable
    >>> design = Design((ModeTable(np.ones((3, 1))), ModeTable(np.ones((2, 1)))), np.zeros((9, 2), dtype=np.int32))
    >>> cheapest_fold(make_core("full", [2, 2]), design)
    1
    """
    modes = range(core.modes)
    if core.modes == 1 or core.kind == SPARSE:
        return None
    rows = [mode.n_rows for mode in design.modes]
    if core.kind != FULL:  # the identity: factors of two modes are multiplied as they are
        return min(modes, key=rows.__getitem__) if core.modes == 2 else None
    size = prod(map(int, core.ranks))
    costs = [rows[d] * size + design.n_observations * size / int(core.ranks[d]) for d in modes]
    best = min(modes, key=costs.__getitem__)
    small = rows[best] * size / int(core.ranks[best]) <= LARGEST_CORES
    return best if small and costs[best] < design.n_observations * size else None


def _product_ready(table: Matrix) -> Matrix:
    """The table as it is multiplied fastest, in float64."""
    if isinstance(table, np.ndarray):
        return np.ascontiguousarray(table, dtype=np.float64)
    cells = prod(table.shape)
    if cells <= SMALL_TABLE or table.nnz > FILLED * cells:
        return table.toarray().astype(np.float64)
    return table.astype(np.float64)


@dataclass(frozen=True)
class Squares:
    """Sum of weight (y - f)^2 and the gradient of -1/2 of it, with mode ``fold`` folded.

    Examples
    --------
    >>> from tuckergp.model import make_core
    >>> from tuckergp.mode_table import ModeTable
    >>> design = Design((ModeTable(np.ones((1, 1))), ModeTable(np.ones((1, 1)))), np.zeros((1, 2), dtype=np.int32))
    >>> squares = Squares(make_core("full", [1, 1]), design, np.array([3.0]), None, 0)
    >>> squares(np.array([1.0, 2.0, 1.0]))  # f = 1 * 2 * 1
    (1.0, array([2., 1., 2.]))
    """

    core: Core
    design: Design
    y: Floats
    weight: Floats | None
    fold: int

    @cached_property
    def _sorted(self) -> Sorted:
        return sort_by_row(self.design, self.fold)

    @cached_property
    def _targets(self) -> tuple[Floats, Floats]:
        order = self._sorted.order
        return self.y[order], np.zeros(0) if self.weight is None else self.weight[order]

    @cached_property
    def _tables(self) -> list[Matrix]:
        return [_product_ready(mode.table) for mode in self.design.modes]

    @cached_property
    def _transposed(self) -> list[Matrix]:
        return [t.T if isinstance(t, np.ndarray) else sparse.csr_array(t.T) for t in self._tables]

    def __call__(self, theta: Floats) -> tuple[float, Floats]:
        """The sum, and the gradient in theta: U_1 ... U_D and W, one after the other."""
        a, others, ranks = self.fold, self._others, [int(r) for r in self.core.ranks]
        gradient = np.empty(theta.size)
        psi, ends, begin = [], [], 0
        for table, r in zip(self._tables, ranks, strict=True):
            end = begin + table.shape[1] * r
            psi.append(np.asarray(table @ theta[begin:end].reshape(-1, r)))
            ends.append((begin, end))
            begin = end
        W = np.moveaxis(theta[begin:].reshape(ranks), a, 0).reshape(ranks[a], -1) if self.core.kind == FULL else None
        T = psi[a] if W is None else psi[a] @ W
        d_T = np.empty(T.shape)
        (y, weight), (ptr, other) = self._targets, (self._sorted.ptr, self._sorted.other)
        if len(others) == 1:
            d_psi = [np.empty(psi[others[0]].shape)]
            total = compute.of_pairs(ptr, other, y, weight, T, psi[others[0]], d_T, d_psi[0])
        else:
            flat, start = pack([psi[e] for e in others])
            d_flat = np.empty(flat.shape)
            total = compute.of_rows(ptr, other, y, weight, T, self.core.ranks[others], flat, start, d_T, d_flat)
            d_psi = [d_flat[start[c] : start[c + 1]].reshape(psi[e].shape) for c, e in enumerate(others)]
        if W is not None:
            axes = [ranks[a], *(ranks[e] for e in others)]
            gradient[begin:] = np.moveaxis((psi[a].T @ d_T).reshape(axes), 0, a).ravel()
            d_T = d_T @ W.T
        for d, (first, last) in enumerate(ends):
            gradient[first:last] = np.ravel(self._transposed[d] @ (d_T if d == a else d_psi[others.index(d)]))
        return total, gradient

    @cached_property
    def _others(self) -> list[int]:
        return [d for d in range(self.core.modes) if d != self.fold]
