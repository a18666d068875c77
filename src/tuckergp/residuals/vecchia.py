"""A Matern process at places in several dimensions, by Vecchia's approximation: draws, densities, values given data.

Each place depends on some nearest earlier ones alone, so that K^-1 = R'R with a sparse triangular R: exact where a
place has all earlier ones as neighbours, linear in the number of places otherwise. What a sampler does with it is in
`tuckergp.residuals.field`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import LinearOperator, cg

from tuckergp.compute import field as compute
from tuckergp.compute import field_data
from tuckergp.compute.places import Search, nearest_earlier
from tuckergp.compute.threads import run_ranges
from tuckergp.errors import NotPositiveDefinite
from tuckergp.residuals.markov import independent_ranks

__all__ = ["JITTER", "PlaceData", "Places", "VecchiaProcess"]

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int32]

JITTER = 1e-9
"""Variance of each place of its own, relative to that of the process: places may lie as close together as they like."""

TOLERANCE = 1e-6
"""Of conjugate gradients: the size of what is left of the right-hand side relative to it."""

STEPS = 2_000
"""The most steps of them."""

ROWS = 4_096
"""Rows that a thread takes at once."""

WIDEST, LEAST = 60, 4
"""Neighbours times ranks in the preconditioner, and the least neighbours."""

ROUNDING = 1e-12
"""Eigenvalues of A smaller than this, relative to the largest, are 0."""


def _ranges(count: int) -> npt.NDArray[np.int64]:
    return np.append(np.arange(0, count, ROWS), count)


@dataclass(frozen=True, eq=False)
class VecchiaProcess:
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

    @property
    def log_determinant(self) -> float:
        """The logarithm of |K|."""
        return float(-2 * np.log(self.R[:, 0]).sum())

    # Given data

    def values_given_data(
        self, A: Floats, b: Floats, mean: Floats, precision: Floats, noise: Floats | None = None
    ) -> Floats:
        """Mean of p(E | data), (M, r); with standard normal ``noise`` (2, M, r), a draw.

        A draw e0 of the prior, corrected by what the data differ from draws of them (Matheron's rule): e0 + K G V^-1
        (d + z - G'e0), A = G G', b - A mean = G d. Conjugate gradients solve with V, by a Vecchia approximation of
        V^-1 as preconditioner, in some 10 to 100 steps.

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
        data = PlaceData.of(self, A, b)
        prior = np.zeros_like(b) if noise is None else self.colour(noise[0])
        right = data.d - _each(data.G, prior, transposed=True)
        u = data.solve(right if noise is None else right + noise[1])
        return (prior + self.covariance_times(_each(data.G, u))) @ inverse

    def covariance_times(self, x: Floats) -> Floats:
        """K x for x (M, c)."""
        x = x.copy()
        compute.solve_transposed(self.R, self.neighbours, x)
        compute.solve_rows(self.R, self.neighbours, x)
        return x

    def log_evidence(self, A: Floats, b: Floats) -> float:
        """Logarithm of p(data), E integrated out, by Vecchia's approximation of the data, up to a constant.

        Parameters are statistics from `independent_ranks`. Other than the rest it is no property of this process: both
        approximate the same one.
        """
        return PlaceData.of(self, A, b).log_density


def _each(G: Floats, x: Floats, transposed: bool = False) -> Floats:
    """G_m x_m, or G_m'x_m, of each place, (M, r)."""
    return np.asarray(np.einsum("mji,mj->mi" if transposed else "mij,mj->mi", G, x))


@dataclass(frozen=True, eq=False)
class PlaceData:
    """What the data say about a process with independent ranks: d = G'e + z for each place, z standard normal.

    Attributes
    ----------
    process : VecchiaProcess
    G : ndarray, shape (M, r, r)
    d : ndarray, shape (M, r)
    """

    process: VecchiaProcess
    G: Floats
    d: Floats

    @classmethod
    def of(cls, process: VecchiaProcess, A: Floats, b: Floats) -> PlaceData:
        """The same data as statistics A = G G' and b = G d."""
        values, vectors = np.linalg.eigh(A) if A.shape[1] > 1 else (A[:, 0], np.ones_like(A))
        # no observation, or fewer than ranks: what they do not tell of e has a root of 0
        root = np.sqrt(np.where(values <= ROUNDING * values.max(axis=1, keepdims=True), 0, values))
        along = _each(vectors, b, transposed=True)
        return cls(process, vectors * root[:, None], np.divide(along, root, out=np.zeros_like(along), where=root != 0))

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

    @property
    def log_density(self) -> float:
        """log N(d; 0, V) up to a constant."""
        diagonal = np.diagonal(self.S, axis1=1, axis2=2)
        return float(np.log(diagonal).sum() - (self.whitened(self.d) ** 2).sum() / 2)

    def solve(self, right: Floats) -> Floats:
        """V^-1 right."""
        shape, size = right.shape, right.size

        def product(x: Floats) -> Floats:
            u = x.reshape(shape)
            e = self.process.covariance_times(_each(self.G, u))
            return (u + _each(self.G, e, transposed=True)).ravel()

        def precondition(x: Floats) -> Floats:
            white, out = self.whitened(np.ascontiguousarray(x.reshape(shape))), np.empty(shape)
            field_data.times_blocks_transposed(self.S, self.neighbours, white, out)
            return out.ravel()

        V, inverse = (LinearOperator((size, size), matvec=step, dtype=np.float64) for step in (product, precondition))
        x, failed = cg(V, right.ravel(), rtol=TOLERANCE, maxiter=STEPS, M=inverse)
        if failed:
            raise FloatingPointError(f"conjugate gradients for a field did not converge in {STEPS} steps")
        return np.asarray(x).reshape(shape)


@dataclass(frozen=True, eq=False)
class Places:
    """The training places of a field, in their order, and which of them are near to which.

    What was looked up last is kept; distances are in units of lengthscales (1,) or (p,), of which one for all columns
    changes nothing.

    Attributes
    ----------
    X : ndarray, shape (M, p)
    order : {1, 2, 3}
    count : int
        The most neighbours.
    """

    X: Floats
    order: int
    count: int
    _found: dict[str, tuple[Floats, Any]] = field(default_factory=dict, repr=False)

    def _once(self, name: str, metric: Floats, make: Callable[[Floats], Any]) -> Any:
        """What ``make`` returns for the places in units of the metric over its first entry."""
        shape = metric / metric[0]
        if name not in self._found or not np.array_equal(self._found[name][0], shape):
            self._found[name] = (shape, make(self.X / shape))
        return self._found[name][1]

    def process(self, lengthscale: Floats, metric: Floats) -> VecchiaProcess:
        """The process of unit variance, with neighbours that are nearest by ``metric``."""
        key = np.concatenate([lengthscale, metric])
        if "process" not in self._found or not np.array_equal(self._found["process"][0], key):
            neighbours = self._once("neighbours", metric, lambda X: nearest_earlier(X, self.count))
            self._found["process"] = (key, VecchiaProcess(self.X / lengthscale, neighbours, self.order))
        process: VecchiaProcess = self._found["process"][1]
        return process

    def around(self, metric: Floats, points: Floats, k: int) -> Index:
        """At most k places near to each point (n, p), nearer and farther ones; see `tuckergp.compute.places.Search`."""
        search: Search = self._once("search", metric, Search)
        return search.around(points / (metric / metric[0]), k)

    def places_of(self, points: Floats) -> npt.NDArray[np.intp]:
        """The place that each point (n, p) is, -1 for none."""
        search: Search = self._once("search", np.ones(1), Search)
        found = search.nearest(points, 1)[:, 0]
        return np.where((self.X[found] == points).all(axis=1), found, -1)
