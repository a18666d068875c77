"""A Matern process at few places in several dimensions: its covariance matrix is factored, and nothing approximated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular

from tuckergp.compute.field import covariances
from tuckergp.errors import NotPositiveDefinite
from tuckergp.linalg import safe_cholesky
from tuckergp.residuals.process import JITTER, PlaceData, PlaceProcess

__all__ = ["DenseData", "DenseProcess", "NewAmongFew"]

Floats = npt.NDArray[np.float64]

TOGETHER = 500
"""New places that are drawn jointly."""


def _covariance(X: Floats, Y: Floats, order: int) -> Floats:
    out = np.empty((len(X), len(Y)))
    scale = np.sqrt(2 * order - 1)
    covariances(np.ascontiguousarray(X * scale), np.ascontiguousarray(Y * scale), order, X is Y, out)
    return out


@dataclass(frozen=True, eq=False)
class DenseProcess(PlaceProcess):
    """A Matern process of unit variance at places.

    Parameters
    ----------
    X : ndarray, shape (M, p)
        Places, in units of the lengthscales.
    order : {1, 2, 3}
        Matern-1/2, -3/2, -5/2.
    nugget : ndarray, shape (M,), or None
        Variance of each place of its own; None for `JITTER`.
    """

    X: Floats
    order: int
    nugget: Floats | None = None

    @cached_property
    def correlations(self) -> Floats:
        """The Matern correlations of all places, (M, M)."""
        return _covariance(self.X, self.X, self.order)

    @cached_property
    def L(self) -> Floats:
        """K = L L'."""
        nugget = JITTER if self.nugget is None else self.nugget
        K = self.correlations + np.diag(np.broadcast_to(nugget, len(self.X)))
        try:
            return np.asarray(cholesky(K, lower=True, overwrite_a=True, check_finite=False))
        except LinAlgError as error:
            raise NotPositiveDefinite(
                "The covariance of the places of a field is singular; use shorter lengthscales."
            ) from error

    def whiten(self, E: Floats) -> Floats:
        """L^-1 E."""
        return np.asarray(solve_triangular(self.L, E, lower=True, check_finite=False))

    def colour(self, Z: Floats) -> Floats:
        """L Z."""
        return np.asarray(self.L @ Z)

    def covariance_times(self, x: Floats) -> Floats:
        """K x for x (M, c)."""
        return np.asarray(self.L @ (self.L.T @ x))

    @property
    def log_determinant(self) -> float:
        """The logarithm of |K|."""
        return float(2 * np.log(np.diagonal(self.L)).sum())

    def with_nugget(self, nugget: Floats) -> DenseProcess:
        """The same with other variances (M,) that each place has of its own."""
        other = replace(self, nugget=nugget)
        vars(other)["correlations"] = self.correlations
        return other

    def data(self, G: Floats, d: Floats) -> DenseData:
        """What the data say: d = G e + z for each place."""
        return DenseData(self, G, d)


@dataclass(frozen=True, eq=False)
class DenseData(PlaceData):
    """Data about a process at places, as if they told each rank apart, which is exact for one rank.

    Ranks are along the axes that the data tell of most.
    """

    process: DenseProcess

    @cached_property
    def axes(self) -> Floats:
        """The axes as columns, (r, r)."""
        return np.asarray(np.linalg.eigh(np.einsum("mij,mjk->ik", self.G, self.G))[1])

    @cached_property
    def roots(self) -> list[Floats]:
        """The Cholesky factor of I + g K g' for each axis."""
        along = self.G @ self.axes
        K, out = self.process.correlations, []
        for g in np.sqrt((along**2).sum(axis=1)).T:
            V = g[:, None] * K * g + np.diag(1 + JITTER * g**2)
            out.append(np.asarray(cholesky(V, lower=True, overwrite_a=True, check_finite=False)))
        return out

    def precondition(self, x: Floats) -> Floats:
        """(I + g K g')^-1 x along each axis."""
        pairs = zip(self.roots, (x @ self.axes).T, strict=True)
        solved = [cho_solve((L, True), along, check_finite=False) for L, along in pairs]
        return np.asarray(np.stack(solved, axis=1) @ self.axes.T)

    @property
    def log_density(self) -> float:
        """log N(d; 0, V) up to a constant, where the axes are independent."""
        half = sum(float(np.log(np.diagonal(L)).sum()) for L in self.roots)
        return -half - float(np.vdot(self.d, self.precondition(self.d))) / 2


class NewAmongFew:
    """New places among few: each depends on all known ones, and on the other new ones of its group.

    Parameters
    ----------
    X : ndarray, shape (M, p)
        The known places.
    points : ndarray, shape (n, p)
        The new ones.
    order : {1, 2, 3}
    """

    def __init__(self, X: Floats, points: Floats, order: int) -> None:
        self.X, self.points, self.order = X, points, order

    def values(self, lengthscale: Floats, known: Floats, noise: Floats | None = None) -> Floats:
        """The mean at the new places (n, r) given values at the known ones (M, r); with ``noise`` (n, r), a draw."""
        process, points = DenseProcess(self.X / lengthscale, self.order), self.points / lengthscale
        white = process.whiten(known)
        if noise is None:
            weights = solve_triangular(process.L.T, white, lower=False, check_finite=False)
            return _covariance(points, process.X, self.order) @ weights
        out = np.empty((len(points), known.shape[1]))
        for first in range(0, len(points), TOGETHER):
            some = slice(first, first + TOGETHER)
            cross = process.whiten(_covariance(process.X, points[some], self.order))
            C = DenseProcess(points[some], self.order).correlations - cross.T @ cross
            C[np.diag_indices_from(C)] += JITTER
            out[some] = cross.T @ white + safe_cholesky(C, "the covariance of new places of a field") @ noise[some]
        return out
