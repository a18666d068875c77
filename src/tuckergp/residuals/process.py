"""A Matern process at places in several dimensions: what data say about its values, however it is computed.

`tuckergp.residuals.dense` factors the covariance of few places, `tuckergp.residuals.vecchia` approximates that of many.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import LinearOperator, cg

from tuckergp.residuals.markov import independent_ranks

__all__ = ["JITTER", "PlaceData", "PlaceProcess"]

Floats = npt.NDArray[np.float64]

JITTER = 1e-9
"""Variance of each place of its own, relative to that of the process: places may lie as close together as they like."""

TOLERANCE = 1e-6
"""Of conjugate gradients: the size of what is left of the right-hand side relative to it."""

STEPS = 2_000
"""The most steps of them."""

ROUNDING = 1e-12
"""Eigenvalues of A smaller than this, relative to the largest, are 0."""


class PlaceProcess:
    """A Matern process of unit variance at places."""

    def whiten(self, E: Floats) -> Floats:
        """R E for E (M, c) and K^-1 = R'R, whose inner products are E'K^-1 E."""
        raise NotImplementedError

    def colour(self, Z: Floats) -> Floats:
        """E (M, c) with R E = Z: standard normal columns become draws."""
        raise NotImplementedError

    def covariance_times(self, x: Floats) -> Floats:
        """K x for x (M, c)."""
        raise NotImplementedError

    @property
    def log_determinant(self) -> float:
        """The logarithm of |K|."""
        raise NotImplementedError

    def with_nugget(self, nugget: Floats) -> PlaceProcess:
        """The same with other variances (M,) that each place has of its own."""
        raise NotImplementedError

    def data(self, G: Floats, d: Floats) -> PlaceData:
        """What the data say: d = G e + z for each place."""
        raise NotImplementedError

    def values_given_data(
        self, A: Floats, b: Floats, mean: Floats, precision: Floats, noise: Floats | None = None
    ) -> Floats:
        """Mean of p(E | data), (M, r); with standard normal ``noise`` (2, M, r), a draw.

        A draw e0 of the prior, corrected by what the data differ from draws of them (Matheron's rule): e0 + K G V^-1
        (d + z - G e0), A = G^2, b - A mean = G d. Conjugate gradients solve with V.

        Parameters
        ----------
        A, b : ndarray, shapes (M, r, r) and (M, r)
            Statistics of the places, noise precision included.
        mean : ndarray, shape (M, r)
            What is added to E.
        precision : ndarray, shape (r, r)
            Lambda.
        """
        inverse, A, b = independent_ranks(A, b, mean, precision)
        data = self.data(*_roots(A, b))
        prior = np.zeros_like(b) if noise is None else self.colour(noise[0])
        right = data.d - _each(data.G, prior)
        u = data.solve(right if noise is None else right + noise[1])
        return (prior + self.covariance_times(_each(data.G, u))) @ inverse

    def log_evidence(self, A: Floats, b: Floats) -> float:
        """Logarithm of p(data), E integrated out, up to a constant: exact or by an approximation of its own.

        Parameters are statistics from `independent_ranks`.
        """
        return self.data(*_roots(A, b)).log_density


def _roots(A: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Symmetric G (M, r, r) and d (M, r) with A = G^2 and b = G d."""
    if not (np.isfinite(A).all() and np.isfinite(b).all()):
        raise FloatingPointError("the statistics A of the places of a field are not numbers")
    values, vectors = np.linalg.eigh(A) if A.shape[1] > 1 else (A[:, 0], np.ones_like(A))
    # no observation, or fewer than ranks: what they do not tell of e has a root of 0
    root = np.sqrt(np.where(values <= ROUNDING * values.max(axis=1, keepdims=True), 0, values))
    along = np.einsum("mji,mj->mi", vectors, b)
    d = np.divide(along, root, out=np.zeros_like(along), where=root != 0)
    return (vectors * root[:, None]) @ vectors.transpose(0, 2, 1), _each(vectors, d)


def _each(G: Floats, x: Floats) -> Floats:
    """G_m x_m of each place, (M, r)."""
    return np.asarray(np.einsum("mij,mj->mi", G, x))


@dataclass(frozen=True, eq=False)
class PlaceData:
    """What the data say about a process with independent ranks: d = G e + z for each place, z standard normal.

    Attributes
    ----------
    process : PlaceProcess
    G : ndarray, shape (M, r, r)
        Symmetric.
    d : ndarray, shape (M, r)
    """

    process: PlaceProcess
    G: Floats
    d: Floats

    def precondition(self, x: Floats) -> Floats:
        """An approximation of V^-1 x, (M, r), where V = I + G K G is the covariance of d."""
        raise NotImplementedError

    @property
    def log_density(self) -> float:
        """log N(d; 0, V) up to a constant, for that approximation of V."""
        raise NotImplementedError

    def solve(self, right: Floats) -> Floats:
        """V^-1 right."""
        shape, size = right.shape, right.size

        def product(x: Floats) -> Floats:
            u = x.reshape(shape)
            return (u + _each(self.G, self.process.covariance_times(_each(self.G, u)))).ravel()

        def precondition(x: Floats) -> Floats:
            return self.precondition(np.ascontiguousarray(x.reshape(shape))).ravel()

        V, inverse = (LinearOperator((size, size), matvec=step, dtype=np.float64) for step in (product, precondition))
        x, failed = cg(V, right.ravel(), rtol=TOLERANCE, maxiter=STEPS, M=inverse)
        if failed:
            raise FloatingPointError(f"conjugate gradients for a field did not converge in {STEPS} steps")
        return np.asarray(x).reshape(shape)
