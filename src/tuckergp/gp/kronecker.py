"""Linear algebra of K_1 kron ... kron K_D on a grid, of which some cells may be missing (Saatci, 2012).

No matrix over all cells is ever made: products go mode by mode. Systems over the cells that are there are solved by
conjugate gradients, preconditioned by the largest eigenvalues of the whole grid and their eigenvectors.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_solve, eigh

from tuckergp.errors import NotConvergedWarning
from tuckergp.linalg import safe_cholesky

__all__ = ["KroneckerSystem", "along", "conjugate_gradients", "contract", "multiply"]

Floats: TypeAlias = npt.NDArray[np.float64]
Cells: TypeAlias = npt.NDArray[np.intp]

WORKSPACE = 16_000_000
"""Numbers in the largest array that prediction makes at a time."""


RANK = 500
"""Most eigenvectors of the grid in the preconditioner."""

NEGLIGIBLE = 0.01
"""Eigenvalues below this part of the noise are left out of the preconditioner."""


def along(A: Floats, tensor: Floats, d: int) -> Floats:
    """Multiply axis d of a tensor by a matrix."""
    return np.moveaxis(np.tensordot(A, tensor, axes=(1, d)), 0, d)


def multiply(matrices: Sequence[Floats], tensor: Floats) -> Floats:
    """(A_1 kron ... kron A_D) t as a tensor; axes after the D-th are batches.

    Examples
    --------
    >>> multiply([2.0 * np.eye(2), np.ones((1, 3))], np.ones((2, 3)))
    array([[6.],
           [6.]])
    """
    for d, A in enumerate(matrices):
        tensor = along(A, tensor, d)
    return tensor


def contract(matrices: Sequence[Floats], codes: Sequence[Cells], tensor: Floats) -> Floats:
    """Sum over cells of tensor * A_1[c_1] * ... * A_D[c_D], for inputs with row c_d of each A_d; shape (n,).

    The longest axis goes first, so that n times the number of cells is only the time that it takes, not the memory.
    """
    order = np.argsort([-A.shape[1] for A in matrices], kind="stable")
    tensor = np.transpose(tensor, order)
    n = len(codes[0])
    at_a_time = max(1, WORKSPACE // max(1, tensor[0].size))
    found = np.empty(n)
    for start in range(0, n, at_a_time):
        rows = slice(start, start + at_a_time)
        first = matrices[order[0]][codes[order[0]][rows]]
        part = np.tensordot(first, tensor, axes=(1, 0))
        for d in order[1:]:
            part = np.einsum("ij...,ij->i...", part, matrices[d][codes[d][rows]])
        found[rows] = part
    return found


def conjugate_gradients(
    apply: Callable[[Floats], Floats],
    precondition: Callable[[Floats], Floats],
    B: Floats,
    tolerance: float,
    max_iter: int,
) -> Floats:
    """Solve A X = B for each column of B, shape (N, k), A symmetric positive definite.

    Stops when every residual is at most ``tolerance`` times its right-hand side in length; warns when it never is.
    """
    X, R = np.zeros_like(B), B.copy()
    goal = tolerance * np.linalg.norm(B, axis=0)
    Z = precondition(R)
    P, rho = Z.copy(), np.einsum("ij,ij->j", R, Z)
    for _ in range(max_iter):
        if (np.linalg.norm(R, axis=0) <= goal).all():
            return X
        Q = apply(P)
        curvature = np.einsum("ij,ij->j", P, Q)
        step = np.divide(rho, curvature, out=np.zeros_like(rho), where=curvature > 0)
        X += step * P
        R -= step * Q
        Z = precondition(R)
        rho, before = np.einsum("ij,ij->j", R, Z), rho
        P = Z + np.divide(rho, before, out=np.zeros_like(rho), where=before > 0) * P
    if not (np.linalg.norm(R, axis=0) <= goal).all():
        warnings.warn(
            f"Conjugate gradients stopped after {max_iter} steps before they converged; raise max_cg, the noise or the "
            "tolerance.",
            NotConvergedWarning,
            stacklevel=2,
        )
    return X


@dataclass(frozen=True)
class KroneckerSystem:
    """K + noise I over the cells that are there, K = scale K_1 kron ... kron K_D.

    Attributes
    ----------
    grams : sequence of ndarray, shapes (M_d, M_d)
    scale, noise : float
    cells : ndarray of int, shape (N,)
        Flat numbers of the cells that are there, each once.
    tolerance : float
    max_cg : int
        Most steps of conjugate gradients.
    """

    grams: Sequence[Floats]
    scale: float
    noise: float
    cells: Cells
    tolerance: float = 1e-8
    max_cg: int = 1000

    @property
    def shape(self) -> tuple[int, ...]:
        """(M_1, ..., M_D)."""
        return tuple(len(K) for K in self.grams)

    @property
    def n_cells(self) -> int:
        """M, the number of cells of the grid."""
        return int(np.prod(self.shape))

    @property
    def full(self) -> bool:
        """Whether no cell is missing."""
        return len(self.cells) == self.n_cells

    @cached_property
    def eigen(self) -> list[tuple[Floats, Floats]]:
        """Eigenvalues, not negative, and eigenvectors of every mode."""
        pairs = (eigh(K, check_finite=False) for K in self.grams)
        return [(np.maximum(values, 0.0), vectors) for values, vectors in pairs]

    @cached_property
    def spectrum(self) -> Floats:
        """The eigenvalues of K over the whole grid, shape (M_1, ..., M_D)."""
        return self.scale * outer([values for values, _ in self.eigen])

    def scatter(self, V: Floats) -> Floats:
        """Columns over the cells that are there, (N, k), as tensors with zeros elsewhere, (M_1, ..., M_D, k)."""
        tensor = np.zeros((self.n_cells, V.shape[1]))
        tensor[self.cells] = V
        return tensor.reshape(*self.shape, V.shape[1])

    def gather(self, tensor: Floats) -> Floats:
        """The cells that are there, (N, k)."""
        return tensor.reshape(self.n_cells, -1)[self.cells]

    def apply(self, V: Floats) -> Floats:
        """(K + noise I) V, shape (N, k)."""
        return self.scale * self.gather(multiply(self.grams, self.scatter(V))) + self.noise * V

    def solve(self, B: Floats) -> Floats:
        """(K + noise I)^-1 B, shape (N, k); without missing cells by the eigenvectors, otherwise iteratively."""
        if not self.full:
            return conjugate_gradients(self.apply, self.precondition, B, self.tolerance, self.max_cg)
        vectors = [vectors for _, vectors in self.eigen]
        rotated = multiply([U.T for U in vectors], self.scatter(B)) / (self.spectrum + self.noise)[..., None]
        return self.gather(multiply(vectors, rotated))

    def precondition(self, V: Floats) -> Floats:
        """Apply (F F' + rest I)^-1 to V: F F' is K with the leading eigenvalues of the grid alone."""
        F, L, rest = self._leading_features
        product: Floats = (V - F @ cho_solve((L, True), F.T @ V, check_finite=False)) / rest
        return product

    @cached_property
    def _leading_features(self) -> tuple[Floats, Floats, float]:
        """F, shape (N, k), the Cholesky factor of F'F + rest I, and noise plus the mean variance that F leaves."""
        values = self.spectrum.ravel()
        k = min(RANK, len(self.cells))
        top = np.argpartition(values, self.n_cells - k)[self.n_cells - k :]
        top = top[values[top] > NEGLIGIBLE * self.noise]
        rows, columns = np.unravel_index(self.cells, self.shape), np.unravel_index(top, self.shape)
        F = np.tile(np.sqrt(values[top]), (len(self.cells), 1))
        for (_, U), row, column in zip(self.eigen, rows, columns, strict=True):
            F *= U[np.ix_(row, column)]
        rest = self.noise + max(float(values.sum() - values[top].sum()), 0.0) / self.n_cells
        return F, safe_cholesky(F.T @ F + rest * np.eye(len(top)), "the preconditioner"), rest

    @cached_property
    def leading(self) -> tuple[Floats, Floats]:
        """What stands for the eigenvalues of K over the cells that are there: N / M times the N largest of the grid.

        Wilson et al. (2014); exact where no cell is missing. Returns those over the whole grid, and weights N / M
        where they count and 0 elsewhere.
        """
        weight = np.zeros(self.n_cells)
        n = len(self.cells)
        largest = np.argpartition(self.spectrum.ravel(), self.n_cells - n)[self.n_cells - n :]
        weight[largest] = n / self.n_cells
        return self.spectrum, weight.reshape(self.shape)


def outer(vectors: Sequence[Floats]) -> Floats:
    """The outer product of vectors as a tensor."""
    return reduce(np.multiply.outer, vectors)
