"""The hot loop of samplers by gradients: squared residuals as a function of all weights.

They are all that Gaussian noise of any precision needs of the data. `FoldedSquares` multiplies the core once per row
of one mode; `PlainSquares` is for the cores where that does not help.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuckergp.compute import squares as compute
from tuckergp.compute.contract import FULL, SPARSE, evaluate, gradient
from tuckergp.linalg import Matrix
from tuckergp.model.design import Design
from tuckergp.model.tucker import Core, pack
from tuckergp.statistics.evidence import Sorted, sort_by_row

__all__ = ["FoldedSquares", "PlainSquares", "Squares", "cheapest_fold", "squares_of"]

Floats = npt.NDArray[np.float64]

# A sparse table with at most this many cells, or with more than this share of them filled, is made dense.
SMALL_TABLE, FILLED = 20_000, 0.2
# The most numbers in the cores of all rows together.
LARGEST_CORES = 50_000_000


def cheapest_fold(core: Core, design: Design) -> int | None:
    """The mode whose rows are to get cores of their own; None where none would save work, or for other cores.

    Examples
    --------
    >>> from tuckergp.model.tucker import make_core
    >>> from tuckergp.model.mode_table import ModeTable
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
    # M_d cores of size prod r, then prod r / r_d per observation; without a fold prod r per observation
    size = prod(map(int, core.ranks))
    costs = [rows[d] * size + design.n_observations * size / int(core.ranks[d]) for d in modes]
    best = min(modes, key=costs.__getitem__)
    small = rows[best] * size / int(core.ranks[best]) <= LARGEST_CORES
    return best if small and costs[best] < design.n_observations * size else None


def _product_ready(table: Matrix) -> Matrix:
    """The table in the form that is multiplied fastest, in float64."""
    if isinstance(table, np.ndarray):
        return np.ascontiguousarray(table, dtype=np.float64)
    cells = prod(table.shape)
    if cells <= SMALL_TABLE or table.nnz > FILLED * cells:
        return table.toarray().astype(np.float64)
    return table.astype(np.float64)


class Squares(Protocol):
    """Squared residuals as a function of theta: U_1 ... U_D and W, one after the other."""

    def __call__(self, theta: Floats) -> tuple[float, Floats]:
        """Sum of weight (y - f)^2, and the gradient of -1/2 of it in theta."""


def squares_of(core: Core, design: Design, y: Floats, weight: Floats | None) -> Squares:
    """Squared residuals as a function of theta, by the faster of the two classes for this core and these data."""
    tables = tuple(_product_ready(mode.table) for mode in design.modes)
    fold = cheapest_fold(core, design)
    if fold is None:
        return PlainSquares(core, tables, design.index, y, weight)
    by_row = sort_by_row(design, fold)
    weight = np.zeros(0) if weight is None else weight[by_row.order]
    return FoldedSquares(core, tables, by_row, y[by_row.order], weight, fold)


@dataclass(frozen=True)
class _OnTables:
    """Factors of theta, and gradients of theta from those of factors.

    Attributes
    ----------
    core : Core
    tables : tuple of ndarray or csr_array, shapes (M_d, n_d)
    """

    core: Core
    tables: tuple[Matrix, ...]

    @cached_property
    def ranks(self) -> list[int]:
        """Ranks of the modes."""
        return [int(r) for r in self.core.ranks]

    @cached_property
    def ends(self) -> list[int]:
        """The index in theta at which each U_d ends."""
        sizes = [table.shape[1] * r for table, r in zip(self.tables, self.ranks, strict=True)]
        return [int(end) for end in np.cumsum(sizes)]

    @cached_property
    def transposed(self) -> list[Matrix]:
        """The transposed tables."""
        return [table.T if isinstance(table, np.ndarray) else sparse.csr_array(table.T) for table in self.tables]

    def factors(self, theta: Floats) -> list[Floats]:
        """psi_d = Phi_d U_d, shapes (M_d, r_d)."""
        blocks = zip(self.tables, self.ranks, [0, *self.ends], self.ends, strict=False)
        return [np.asarray(table @ theta[first:last].reshape(-1, r)) for table, r, first, last in blocks]

    def gradient(self, d_psi: Sequence[Floats], d_w: Floats) -> Floats:
        """The gradient in theta from those in the factors, d U_d = Phi_d' d psi_d, and in W."""
        d_theta = np.empty(self.ends[-1] + d_w.size)
        for table, d, first, last in zip(self.transposed, d_psi, [0, *self.ends], self.ends, strict=False):
            d_theta[first:last] = np.ravel(table @ d)
        d_theta[self.ends[-1] :] = d_w
        return d_theta


@dataclass(frozen=True)
class PlainSquares(_OnTables):
    """Squares with the core multiplied once per observation.

    Examples
    --------
    >>> from tuckergp.model.tucker import make_core
    >>> one, index = np.ones((1, 1)), np.zeros((1, 2), dtype=np.int32)
    >>> PlainSquares(make_core("full", [1, 1]), (one, one), index, np.array([3.0]), None)(np.array([1.0, 2.0, 1.0]))
    (1.0, array([2., 1., 2.]))
    """

    index: npt.NDArray[np.int32]
    y: Floats
    weight: Floats | None

    def __call__(self, theta: Floats) -> tuple[float, Floats]:
        """Sum of weight (y - f)^2, and the gradient of -1/2 of it in theta."""
        core, w = self.core, theta[self.ends[-1] :] if self.core.learned else np.ones(1)
        psi = self.factors(theta)
        flat, start = pack(psi)
        # S = sum_i w_i e_i^2, e = y - f, so d(-S / 2) / d f_i = w_i e_i = g_i
        e = self.y - evaluate(core.kind, w, core.coords, core.ranks, flat, start, self.index)
        g = e if self.weight is None else self.weight * e
        d_flat, d_w = gradient(core.kind, w, core.coords, core.ranks, flat, start, self.index, g)
        d_psi = [d_flat[start[d] : start[d + 1]].reshape(table.shape) for d, table in enumerate(psi)]
        return float(g @ e), self.gradient(d_psi, d_w)


@dataclass(frozen=True)
class FoldedSquares(_OnTables):
    """Squares with mode ``fold`` multiplied into the core once per row.

    Attributes
    ----------
    sorted : Sorted
        The observations by their row of that mode.
    y, weight : ndarray, shapes (N,)
        In that order; an empty ``weight`` stands for ones.
    """

    sorted: Sorted
    y: Floats
    weight: Floats
    fold: int

    @cached_property
    def others(self) -> list[int]:
        """The modes that are not folded."""
        return [d for d in range(self.core.modes) if d != self.fold]

    def __call__(self, theta: Floats) -> tuple[float, Floats]:
        """Sum of weight (y - f)^2, and the gradient of -1/2 of it in theta."""
        a, psi = self.fold, self.factors(theta)
        if self.core.kind != FULL:
            total, d_psi = self._with_cores(psi[a], psi)
            return total, self.gradient(d_psi, np.zeros(0))
        # with W unfolded along mode a, rows have the cores T = psi_a W: dW = psi_a' dT, dpsi_a = dT W'
        W = np.moveaxis(theta[self.ends[-1] :].reshape(self.ranks), a, 0).reshape(self.ranks[a], -1)
        total, d_psi = self._with_cores(psi[a] @ W, psi)
        axes = [self.ranks[a], *(self.ranks[e] for e in self.others)]
        d_w = np.moveaxis((psi[a].T @ d_psi[a]).reshape(axes), 0, a).ravel()
        d_psi[a] = d_psi[a] @ W.T
        return total, self.gradient(d_psi, d_w)

    def _with_cores(self, T: Floats, psi: list[Floats]) -> tuple[float, list[Floats]]:
        """The sum, and its derivatives in the cores T of the rows of the folded mode and in the other factors."""
        data = self.sorted.ptr, self.sorted.other, self.y, self.weight
        gradients = [np.empty(T.shape if d == self.fold else table.shape) for d, table in enumerate(psi)]
        if len(self.others) == 1:
            (b,) = self.others
            return compute.of_pairs(*data, T, psi[b], gradients[self.fold], gradients[b]), gradients
        flat, start = pack([psi[e] for e in self.others])
        d_flat = np.empty(flat.shape)
        total = compute.of_rows(*data, T, self.core.ranks[self.others], flat, start, gradients[self.fold], d_flat)
        for c, e in enumerate(self.others):
            gradients[e] = d_flat[start[c] : start[c + 1]].reshape(psi[e].shape)
        return total, gradients
