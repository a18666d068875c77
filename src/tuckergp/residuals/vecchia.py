"""A Matern process at many places in several dimensions, by Vecchia's approximation.

Each place depends on some nearest earlier ones alone, so that K^-1 = R'R with a sparse triangular R: exact where a
place has all earlier ones as neighbours, linear in the number of places otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tuckergp.compute import field as compute
from tuckergp.compute import field_data
from tuckergp.compute.places import Search, coarse_to_fine, nearest_earlier
from tuckergp.compute.threads import run_ranges
from tuckergp.errors import NotPositiveDefinite
from tuckergp.residuals.process import JITTER, PlaceData, PlaceProcess

__all__ = ["NewAmongMany", "VecchiaData", "VecchiaProcess"]

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int32]

ROWS = 4_096
"""Rows that a thread takes at once."""

WIDEST, LEAST = 60, 4
"""Neighbours times ranks in the preconditioner, and the least neighbours."""


def _ranges(count: int) -> npt.NDArray[np.int64]:
    return np.append(np.arange(0, count, ROWS), count)


@dataclass(frozen=True, eq=False)
class VecchiaProcess(PlaceProcess):
    """A Matern process of unit variance at places, each of which depends on its neighbours among the earlier ones.

    Parameters
    ----------
    X : ndarray, shape (M, p)
        Places, in their order, in units of the lengthscales.
    neighbours : ndarray of int32, shape (k, m)
        Numbers of neighbours of the last k places, each less than the place's own; -1 for none. The values of the
        M - k places before them are known.
    order : {1, 2, 3}
        Matern-1/2, -3/2, -5/2.
    nugget : ndarray, shape (M,), or None
        Variance of each place of its own; None for `JITTER`.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [3.0, 4.0]])
    >>> process = VecchiaProcess(X, np.array([[-1], [0]], dtype=np.int32), 1)
    >>> bool(np.isclose((process.colour(np.eye(2)) @ process.colour(np.eye(2)).T)[0, 1], np.exp(-5.0)))
    True
    """

    X: Floats
    neighbours: Index
    order: int
    nugget: Floats | None = None

    @cached_property
    def scaled(self) -> Floats:
        """Places in the units of `tuckergp.compute.field.matern`."""
        return np.ascontiguousarray(self.X * np.sqrt(2 * self.order - 1))

    @cached_property
    def R(self) -> Floats:
        """R of K^-1 = R'R by rows, (k, 1 + m); see `tuckergp.compute.field`."""
        nugget = np.full(len(self.X), JITTER) if self.nugget is None else self.nugget
        R = np.empty((len(self.neighbours), 1 + self.neighbours.shape[1]))
        arguments = (self.scaled, self.neighbours, self.order, nugget, R)
        if sum(run_ranges(compute.factor_rows, _ranges(len(R)), *arguments)):
            raise NotPositiveDefinite("The covariance of neighbours in a field is singular; use shorter lengthscales.")
        return R

    def whiten(self, E: Floats) -> Floats:
        """R E for E (M, c), whose inner products are E'K^-1 E."""
        E = np.ascontiguousarray(E, dtype=np.float64)
        out = np.empty_like(E)
        run_ranges(compute.times, _ranges(len(E)), self.R, self.neighbours, E, out)
        return out

    def colour(self, Z: Floats, known: Floats | None = None) -> Floats:
        """E (k, c) with R E = Z: standard normal columns become draws; ``known`` are the values before (M - k, c)."""
        known = np.zeros((0, Z.shape[1])) if known is None else known
        both = np.concatenate([known, Z], dtype=np.float64)
        compute.solve_rows(self.R, self.neighbours, both)
        return both[len(known) :]

    def covariance_times(self, x: Floats) -> Floats:
        """K x for x (M, c)."""
        x = x.copy()
        compute.solve_transposed(self.R, self.neighbours, x)
        compute.solve_rows(self.R, self.neighbours, x)
        return x

    @property
    def log_determinant(self) -> float:
        """The logarithm of |K|."""
        return float(-2 * np.log(self.R[:, 0]).sum())

    def with_nugget(self, nugget: Floats) -> VecchiaProcess:
        """The same with other variances (M,) that each place has of its own."""
        return replace(self, nugget=nugget)

    def data(self, G: Floats, d: Floats) -> VecchiaData:
        """What the data say: d = G e + z for each place."""
        return VecchiaData(self, G, d)


@dataclass(frozen=True, eq=False)
class VecchiaData(PlaceData):
    """Data about a process at places, whose covariance V has a Vecchia approximation, too: V^-1 ~ S'S.

    It preconditions solves, which take some 10 to 100 steps, and gives a density. Other than the rest that is no
    property of the process: both approximate the same one.
    """

    process: VecchiaProcess

    @cached_property
    def neighbours(self) -> Index:
        """The nearest of the neighbours, fewer where there are many ranks: blocks of them are factored."""
        most = max(LEAST, WIDEST // self.d.shape[1])
        return np.ascontiguousarray(self.process.neighbours[:, :most])

    @cached_property
    def S(self) -> Floats:
        """S of V^-1 ~ S'S by rows; see `tuckergp.compute.field_data`."""
        rows, r = self.d.shape
        S = np.empty((rows, r, (1 + self.neighbours.shape[1]) * r))
        scaled = self.process.scaled
        arguments = (scaled, self.neighbours, self.process.order, 1 + JITTER, self.G, S)
        if sum(run_ranges(field_data.data_rows, _ranges(rows), *arguments)):
            raise FloatingPointError("the statistics A of the places of a field are not positive semi-definite")
        return S

    def whitened(self, x: Floats) -> Floats:
        """S x."""
        out = np.empty_like(x)
        run_ranges(field_data.times_blocks, _ranges(len(x)), self.S, self.neighbours, x, out)
        return out

    def precondition(self, x: Floats) -> Floats:
        """S'S x."""
        out = np.empty_like(x)
        field_data.times_blocks_transposed(self.S, self.neighbours, self.whitened(x), out)
        return out

    @property
    def log_density(self) -> float:
        """log N(d; 0, (S'S)^-1) up to a constant."""
        diagonal = np.diagonal(self.S, axis1=1, axis2=2)
        return float(np.log(diagonal).sum() - (self.whitened(self.d) ** 2).sum() / 2)


class NewAmongMany:
    """New places among many: each depends on known places around it and, to be drawn jointly, on other new ones.

    Parameters
    ----------
    search : Search
        The known places, in units of ``metric``.
    points : ndarray, shape (n, p)
        The new ones.
    metric : ndarray, shape (1,) or (p,)
        The units in which places are near to each other.
    order : {1, 2, 3}
    around, earlier : int
        How many known places each depends on, and how many other new ones where ``joint``.
    """

    def __init__(
        self, search: Search, points: Floats, metric: Floats, order: int, around: int, earlier: int, joint: bool
    ) -> None:
        scaled = points / metric
        self.sorter = coarse_to_fine(scaled) if joint else np.arange(len(points))
        scaled = scaled[self.sorter]
        near = search.around(scaled, around)
        # of the known places those alone that some new one depends on
        self.known, renumbered = np.unique(near, return_inverse=True)
        neighbours = renumbered.reshape(near.shape).astype(np.int32)
        if joint:
            others = nearest_earlier(scaled, earlier)
            others[others >= 0] += len(self.known)
            neighbours = np.concatenate([neighbours, others], axis=1)
        self.neighbours = neighbours
        self.X = np.concatenate([search.X[self.known] * metric, points[self.sorter]])
        self.order = order

    def values(self, lengthscale: Floats, known: Floats, noise: Floats | None = None) -> Floats:
        """The mean at the new places (n, r) given values at all known ones (M, r); with ``noise`` (n, r), a draw."""
        n = len(self.sorter)
        process = VecchiaProcess(self.X / lengthscale, self.neighbours, self.order)
        Z = np.zeros((n, known.shape[1])) if noise is None else noise[self.sorter]
        out = np.empty_like(Z)
        out[self.sorter] = process.colour(Z, known[self.known])
        return out
