"""Linear algebra of K_1 kron ... kron K_D on a grid, of which some cells may be missing (Saatci, 2012).

No matrix over all cells is ever made: products go mode by mode. Systems over the observed cells are solved by
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
from scipy.linalg import cho_solve, eigh, qr, svd
from scipy.linalg.lapack import dpstrf

from tuckergp.errors import NotConvergedWarning, NotPositiveDefinite
from tuckergp.linalg import NEGATIVE, safe_cholesky

__all__ = ["KroneckerSystem", "along", "conjugate_gradients", "contract", "eigen_of", "multiply", "outer"]

Floats: TypeAlias = npt.NDArray[np.float64]
Cells: TypeAlias = npt.NDArray[np.intp]

WORKSPACE = 16_000_000
"""Numbers in the largest array that prediction makes at a time."""


RANK = 500
"""Most eigenvectors of the grid in the preconditioner."""

SMALL = 500
"""Up to here all eigenvectors of a mode are computed."""

NIL = 1e-12
"""Variance, as a share of the largest, that eigenvectors of larger modes may leave out."""

NEGLIGIBLE = 0.01
"""Eigenvalues below this share of the noise are left out of the preconditioner."""


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


DENSE = 4
"""A grid with at most this many cells for each input is computed whole."""


def contract(matrices: Sequence[Floats], codes: Sequence[Cells], tensor: Floats) -> Floats:
    """Sum over cells of tensor * A_1[c_1] * ... * A_D[c_D], for inputs with row c_d of each A_d; shape (n,).

    Where the inputs are most of a grid of their own, the product is computed mode by mode for the whole grid. Otherwise
    the longest axis goes first, so that only the time grows with n times the number of cells, not the memory.
    """
    if np.prod([len(A) for A in matrices], dtype=np.float64) <= DENSE * len(codes[0]):
        everywhere: Floats = multiply(matrices, tensor)[tuple(codes)]
        return everywhere
    order = np.argsort([-A.shape[1] for A in matrices], kind="stable")
    tensor = np.transpose(tensor, order)
    n = len(codes[0])
    at_a_time = max(1, WORKSPACE // max(1, tensor[0].size))
    sums = np.empty(n)
    for start in range(0, n, at_a_time):
        rows = slice(start, start + at_a_time)
        first = matrices[order[0]][codes[order[0]][rows]]
        contracted = np.tensordot(first, tensor, axes=(1, 0))
        for d in order[1:]:
            contracted = np.einsum("ij...,ij->i...", contracted, matrices[d][codes[d][rows]])
        sums[rows] = contracted
    return sums


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
        # step = r'z / p'A p; x += step p; r -= step A p; p = z + (new r'z / old r'z) p
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
    """K + noise I over the observed cells, K = scale K_1 kron ... kron K_D.

    Attributes
    ----------
    grams : sequence of ndarray, shapes (M_d, M_d)
    scale, noise : float
    cells : ndarray of int, shape (N,)
        Flat numbers of the observed cells, each once.
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
        """Eigenvalues, not negative, and eigenvectors of every mode, k_d <= M_d of them; the others are zero."""
        return [eigen_of(K) for K in self.grams]

    @cached_property
    def spectrum(self) -> Floats:
        """The eigenvalues of K over the whole grid, shape (k_1, ..., k_D); the others are zero."""
        return self.scale * outer([values for values, _ in self.eigen])

    def scatter(self, V: Floats) -> Floats:
        """Columns over the observed cells, (N, k), as tensors with zeros elsewhere, (M_1, ..., M_D, k)."""
        tensor = np.zeros((self.n_cells, V.shape[1]))
        tensor[self.cells] = V
        return tensor.reshape(*self.shape, V.shape[1])

    def gather(self, tensor: Floats) -> Floats:
        """The observed cells of a tensor (M_1, ..., M_D, k), as columns (N, k)."""
        return tensor.reshape(self.n_cells, -1)[self.cells]

    def apply(self, V: Floats) -> Floats:
        """(K + noise I) V, shape (N, k)."""
        return self.scale * self.gather(multiply(self.grams, self.scatter(V))) + self.noise * V

    def solve(self, B: Floats) -> Floats:
        """(K + noise I)^-1 B, shape (N, k); without missing cells by the eigenvectors, otherwise iteratively."""
        if not self.full:
            return conjugate_gradients(self.apply, self.precondition, B, self.tolerance, self.max_cg)
        # K = U diag(lambda) U': (K + s I)^-1 B = (B - U diag(lambda / (lambda + s)) U'B) / s
        vectors = [vectors for _, vectors in self.eigen]
        share = self.spectrum / (self.spectrum + self.noise)
        rotated = multiply([U.T for U in vectors], self.scatter(B)) * share[..., None]
        return (B - self.gather(multiply(vectors, rotated))) / self.noise

    def precondition(self, V: Floats) -> Floats:
        """Apply (F F' + rest I)^-1 to V: F F' is K with the leading eigenvalues of the grid alone."""
        # Woodbury: (V - F (F'F + rest I)^-1 F'V) / rest
        F, L, rest = self._leading_features
        product: Floats = (V - F @ cho_solve((L, True), F.T @ V, check_finite=False)) / rest
        return product

    @cached_property
    def _leading_features(self) -> tuple[Floats, Floats, float]:
        """F, shape (N, k), the Cholesky factor of F'F + rest I, and noise plus the mean variance that F leaves."""
        # eigenvectors of K are products of those of the modes; F = U diag(lambda)^1/2 at the observed cells
        values = self.spectrum.ravel()
        top = largest(values, min(RANK, len(self.cells)))
        top = top[values[top] > NEGLIGIBLE * self.noise]
        rows, columns = np.unravel_index(self.cells, self.shape), np.unravel_index(top, self.spectrum.shape)
        F = np.tile(np.sqrt(values[top]), (len(self.cells), 1))
        for (_, U), row, column in zip(self.eigen, rows, columns, strict=True):
            F *= U[np.ix_(row, column)]
        rest = self.noise + max(float(values.sum() - values[top].sum()), 0.0) / self.n_cells
        return F, safe_cholesky(F.T @ F + rest * np.eye(len(top)), "the preconditioner"), rest

    @cached_property
    def leading(self) -> Floats:
        """Weights of the eigenvalues that stand for those of K over the observed cells: N / M times the N largest.

        Wilson et al. (2014); exact where no cell is missing. Shape (k_1, ..., k_D): N / M where an eigenvalue of the
        grid counts, 0 elsewhere. Where there are fewer than N, the others are zero.
        """
        count = np.zeros(self.spectrum.size)
        n = len(self.cells)
        count[largest(self.spectrum.ravel(), n)] = n / self.n_cells
        return count.reshape(self.spectrum.shape)

    def log_determinant(self) -> float:
        """Log |K + noise I| over the observed cells, by the `leading` eigenvalues."""
        # sum log(N / M lambda + noise) over the leading ones, log noise for each of the others
        counted = self.leading > 0
        logs = np.log(self.leading[counted] * self.spectrum[counted] + self.noise)
        return float(logs.sum() + (len(self.cells) - len(logs)) * np.log(self.noise))


def eigen_of(K: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues, not negative, and eigenvectors of a Gram matrix; of a large one those that are not negligible.

    A smooth kernel on many inputs has few of them, which a pivoted Cholesky factorisation finds in O(M k^2).
    """
    if len(K) > SMALL:
        factor, order, rank, _ = dpstrf(K, tol=NIL * float(np.diag(K).max()), lower=1)
        if rank <= len(K) // 2:
            # K = F F', F = Q R, R = U diag(s) V': K = Q U diag(s^2) U'Q'
            F = np.empty((len(K), rank))
            F[order - 1] = np.tril(factor[:, :rank])
            _require_positive(np.diag(K) - np.einsum("ij,ij->i", F, F), float(np.diag(K).max()))
            Q, R = qr(F, mode="economic", check_finite=False)
            U, roots, _ = svd(R, check_finite=False)
            return roots**2, Q @ U
    values, vectors = eigh(K, check_finite=False)
    _require_positive(values, float(np.abs(values).max()))
    return np.maximum(values, 0.0), vectors


def _require_positive(values: Floats, largest: float) -> None:
    if values.min() < -NEGATIVE * largest:
        raise NotPositiveDefinite(
            "The Gram matrix of an axis has negative eigenvalues beyond rounding; check its kernel."
        )


def largest(values: Floats, n: int) -> Cells:
    """The places of the n largest values, or of all."""
    if n >= len(values):
        return np.arange(len(values))
    return np.argpartition(values, len(values) - n)[len(values) - n :]


def outer(vectors: Sequence[Floats]) -> Floats:
    """The outer product of vectors as a tensor."""
    return reduce(np.multiply.outer, vectors)
