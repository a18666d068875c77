"""The regression of factors on features, psi = Phi B + E: B given psi needs no pass over the observations.

The prior precision T of B and the noise of E share the covariance Lambda^-1 across ranks, so one system of n unknowns,
Phi'Phi + T, serves all r of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, cg

from tuckergp.errors import InputError
from tuckergp.linalg import Factored, Matrix, safe_cholesky

__all__ = ["Collapsed", "Regression", "dense"]

Floats = npt.NDArray[np.float64]
Collapsed: TypeAlias = Callable[[Floats], tuple[float, Floats]]

# Up to this many unknowns a system is factored; beyond it conjugate gradients solve it.
LARGEST_DENSE = 3_000
ITERATIONS = 2_000

# Factoring a system of at most this many unknowns costs little beside a pass over the data.
CHEAP = 300


class Regression:
    """Solves (Phi'Phi + T) B = Phi'target + extra for any diagonal T.

    Primal with n unknowns, dual with M of them where that is smaller, or conjugate gradients where both are large.

    Parameters
    ----------
    features : ndarray or csr_array, shape (M, n)
    blocks : sequence of slice
        Columns that share a precision.
    """

    def __init__(self, features: Matrix, blocks: Sequence[slice]) -> None:
        self.features = features
        self.sizes = [block.stop - block.start for block in blocks]
        rows, columns = features.shape
        smaller = min(rows, columns)
        self.route = "iterative" if smaller > LARGEST_DENSE else "primal" if columns <= rows else "dual"
        self.cheap = smaller <= CHEAP

    @cached_property
    def _gram(self) -> Floats:
        return dense(self.features.T @ self.features)

    @cached_property
    def _block_grams(self) -> list[Floats]:
        ends = np.cumsum(self.sizes)
        columns = sparse.csc_array(self.features) if sparse.issparse(self.features) else self.features
        blocks = [columns[:, end - size : end] for end, size in zip(ends, self.sizes, strict=True)]
        return [dense(block @ block.T) for block in blocks]

    def solve(self, target: Floats, extra: Floats, tau: Floats, start: Floats) -> Floats:
        """Return B, shape (n, r).

        Parameters
        ----------
        target : ndarray, shape (M, r)
        extra : ndarray, shape (n, r)
        tau : ndarray, shape (blocks,)
            The diagonal of T, one number for each block.
        start : ndarray, shape (n, r)
            Where conjugate gradients start.
        """
        if self.features.shape[1] == 0:
            return start
        precision = np.repeat(tau, self.sizes)
        if self.route == "primal":
            # (Phi'Phi + T)^-1 (Phi't + e)
            system = self._gram.copy()
            system[np.diag_indices(len(system))] += precision
            return _solve_spd(system, np.asarray(self.features.T @ target) + extra)
        if self.route == "dual":
            # Woodbury: T^-1 e + T^-1 Phi' (I + Phi T^-1 Phi')^-1 (t - Phi T^-1 e)
            shrunk = extra / precision[:, None]
            dual_weights = _solve_spd(self._covariance(tau), target - np.asarray(self.features @ shrunk))
            return np.asarray(shrunk + np.asarray(self.features.T @ dual_weights) / precision[:, None])
        return self._iterate(np.asarray(self.features.T @ target) + extra, precision, start)

    def collapse(self, target: Floats) -> Collapsed | None:
        """Return the function tau -> (log det K, target' K^-1 target), K = I + Phi T^-1 Phi' with B integrated out.

        None where a factorisation would cost too much.
        """
        if self.features.shape[1] == 0 or self.route == "iterative":
            return None
        if self.route == "primal":
            cross, squares = np.asarray(self.features.T @ target), target.T @ target

            def primal(tau: Floats) -> tuple[float, Floats]:
                precision = np.repeat(tau, self.sizes)
                system = self._gram.copy()
                system[np.diag_indices(len(system))] += precision
                factor = Factored(system, overwrite=True)
                # log |K| = log |Phi'Phi + T| - log |T|
                log_det = factor.log_det - float(np.log(precision).sum())
                # t'K^-1 t = t't - t'Phi (Phi'Phi + T)^-1 Phi't
                return log_det, squares - cross.T @ factor.solve(cross)

            return primal

        def dual(tau: Floats) -> tuple[float, Floats]:
            factor = Factored(self._covariance(tau), overwrite=True)
            return factor.log_det, target.T @ factor.solve(target)

        return dual

    def _covariance(self, tau: Floats) -> Floats:
        """K = I + sum_g Phi_g Phi_g' / tau_g over the blocks g, (M, M)."""
        system = np.eye(self.features.shape[0])
        for gram, t in zip(self._block_grams, tau, strict=True):
            system += gram / t
        return system

    def _iterate(self, right: Floats, precision: Floats, start: Floats) -> Floats:
        """(Phi'Phi + T)^-1 right by conjugate gradients, preconditioned by the diagonal."""
        features, n = self.features, self.features.shape[1]
        squares = features.power(2) if sparse.issparse(features) else features**2
        diagonal = np.asarray(squares.sum(axis=0)).ravel() + precision
        operator = LinearOperator((n, n), matvec=lambda v: features.T @ (features @ v) + precision * v, dtype=float)
        scale = LinearOperator((n, n), matvec=lambda v: v / diagonal, dtype=float)
        columns = []
        for k in range(right.shape[1]):
            solution, failed = cg(operator, right[:, k], x0=start[:, k], rtol=1e-8, maxiter=ITERATIONS, M=scale)
            if failed:
                raise InputError(
                    f"Conjugate gradients did not solve for {n} weights in {ITERATIONS} steps; use fewer features."
                )
            columns.append(solution)
        return np.stack(columns, axis=1)


def dense(matrix: Any) -> Floats:
    """Return a matrix that may be sparse as a dense one."""
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=np.float64)


def _solve_spd(system: Floats, right: Floats) -> Floats:
    """Solve a positive definite system, which may be singular but for rounding: features that a smooth process whitens.

    Then its diagonal is made one, which Cholesky's algorithm needs least, and its factor is the safe one.
    """
    try:
        return Factored(system).solve(right)
    except linalg.LinAlgError:
        scale = 1 / np.sqrt(np.diag(system))
        L = safe_cholesky(system * scale[:, None] * scale, "the Gram matrix of the features")
        return np.asarray(scale[:, None] * linalg.cho_solve((L, True), scale[:, None] * right))
