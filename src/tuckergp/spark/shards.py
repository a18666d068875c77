"""Shards: fixed ranges of users with their ratings, as compact arrays, and what a Python worker does with one.

A shard is the same for any number of partitions. Everything here runs inside Spark's workers and knows nothing of
Spark: a task is given shards and a `Request`, and returns arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuckergp.compute.packed import add_statistics, packed_size
from tuckergp.data.standard import ROUNDING
from tuckergp.likelihoods.background import Background
from tuckergp.likelihoods.precision import Precision
from tuckergp.linalg import Matrix
from tuckergp.model.tucker import Core
from tuckergp.priors.regression import dense
from tuckergp.random import normals_of_rows
from tuckergp.spark.sums import branches
from tuckergp.statistics.evidence import Evidence, Number, Sorted, sort_index

__all__ = ["NOTHING", "Features", "Request", "Shard", "Summary", "Targets", "factors", "noise", "pieces", "sweep"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]


class Targets(NamedTuple):
    """How ratings become targets and weights.

    Attributes
    ----------
    likelihood : Likelihood
        That has read the ratings.
    zeros : ndarray, shape (items,), or None
        Weights of the zeros beside clicks; None for ratings.
    """

    likelihood: Any
    zeros: Floats | None = None

    def of(self, rating: Floats, item: Ints) -> tuple[Floats, Floats | None]:
        """Targets and weights of ratings (n,) of these items."""
        if self.zeros is None:
            return self.likelihood.targets(rating), None
        target, weight = self.likelihood.beside_zeros(rating, self.zeros[item])
        return target, weight


class Request(NamedTuple):
    """What is sent to every worker in each sweep.

    Attributes
    ----------
    items : ndarray, shape (M, r)
        Factors of the items.
    B : ndarray, shape (n, r)
        Weights of the users' features.
    precision : ndarray, shape (r, r)
        Of the prior of a user.
    alpha : float
    seed : int or None
        Of the random numbers of all users; None for means.
    core : Core
    number : type
        What factors are rounded to.
    targets : Targets
    fingerprints : tuple of str
        Of all shards.
    hot : dict of int to ndarray
        Factors of users whose ratings are in several shards, which were drawn before.
    """

    items: Floats
    B: Floats
    precision: Floats
    alpha: float
    seed: int | None
    core: Core
    number: type[Number]
    targets: Targets
    fingerprints: tuple[str, ...]
    hot: dict[int, Floats]


class Summary(NamedTuple):
    """How many ratings there are, the least, the largest, their mean, and the sum of squares around it."""

    size: int
    low: float
    high: float
    mean: float
    square: float

    def joined(self, other: Summary) -> Summary:
        """Of both together (Chan, Golub and LeVeque 1983)."""
        if not self.size or not other.size:
            return self if self.size else other
        n, apart = self.size + other.size, other.mean - self.mean
        mean = self.mean + apart * other.size / n
        square = self.square + other.square + apart**2 * self.size * other.size / n
        return Summary(n, min(self.low, other.low), max(self.high, other.high), mean, square)

    @property
    def std(self) -> float:
        """The standard deviation; 0 where all ratings are the same but for rounding."""
        std = float(np.sqrt(self.square / self.size))
        return std if std > ROUNDING * abs(self.mean) else 0.0


NOTHING = Summary(0, np.inf, -np.inf, 0.0, 0.0)


@dataclass(frozen=True)
class Features:
    """Features of all users.

    Attributes
    ----------
    users : int
    table : ndarray or csr_array, shape (users, n) or (1, n)
        One row where all users have the same, because they have no attributes.
    """

    users: int
    table: Matrix

    @property
    def alike(self) -> Floats | None:
        """The features of each user, (n,), where they are the same for all."""
        return dense(self.table)[0] if self.table.shape[0] == 1 else None

    @cached_property
    def gram(self) -> Floats:
        """Phi'Phi, (n, n)."""
        return np.asarray(dense(self.table.T @ self.table)) * (self.users if self.alike is not None else 1)

    def of(self, users: npt.NDArray[Any]) -> Matrix:
        """Of some users, by number."""
        return self.table[users if self.alike is None else np.zeros_like(users)]

    def between(self, first: int, last: int) -> Matrix:
        """Of the users of a shard."""
        rows = self.table[first:last]
        return sparse.csr_array(rows) if sparse.issparse(rows) else np.ascontiguousarray(rows)


@dataclass(frozen=True)
class Shard:
    """Users ``first`` to ``last`` with their ratings; or some of the ratings of one user who has very many.

    Attributes
    ----------
    number : int
    first, last : int
    user, item : ndarray of int32, shape (n,)
        Sorted by user, then by item.
    rating : ndarray, shape (n,)
        Of float32 where that changes none of them.
    features : ndarray or csr_array, shape (last - first, k)
    ids : pyarrow.Array
        Of the users.
    piece : bool
        Whether other shards hold ratings of the same user; then it has neither features nor ids.
    fingerprint : str
        Of the ratings.
    names : ndarray of int, shape (last - first,), or None
        The numbers of the users, where they are not ``first`` to ``last``.
    """

    number: int
    first: int
    last: int
    user: Ints
    item: Ints
    rating: npt.NDArray[Any]
    features: Any
    ids: Any = None
    piece: bool = False
    fingerprint: str = ""
    names: npt.NDArray[Any] | None = None

    @property
    def n_rows(self) -> int:
        """The number of users."""
        return self.last - self.first

    @cached_property
    def _index(self) -> Ints:
        return np.stack([self.user - np.int32(self.first), self.item], axis=1)

    def observations(self, targets: Targets) -> tuple[Floats, Floats | None]:
        """Targets and weights (n,)."""
        return targets.of(self.rating.astype(np.float64), self.item)

    def summary(self) -> Summary:
        """Of these ratings."""
        y = self.rating.astype(np.float64)
        if not len(y):
            return NOTHING
        mean = float(y.mean())
        return Summary(len(y), float(y.min()), float(y.max()), mean, float(((y - mean) ** 2).sum()))

    def facts(self, targets: Targets) -> tuple[int, int, float, float, str]:
        """Number, size, sum of weight times squared target, sum of target times weight of zero, and fingerprint."""
        y, weight = self.observations(targets)
        square = float(np.sum(y**2 if weight is None else weight * y**2))
        surplus = 0.0 if targets.zeros is None else float(np.sum(y * targets.zeros[self.item]))
        return self.number, len(y), square, surplus, self.fingerprint

    def some(self, places: npt.NDArray[Any]) -> tuple[Ints, Ints, npt.NDArray[Any]]:
        """Users, items and ratings at some places, or where a mask says so."""
        return self.user[places], self.item[places], self.rating[places]

    def by_user(self) -> Sorted:
        """The observations by user."""
        return sort_index(self._index, 0, self.n_rows)

    def by_item(self, items: int) -> Sorted:
        """The observations by item."""
        return sort_index(self._index, 1, items)

    def of_users(self, request: Request) -> Evidence:
        """What the ratings say about the users."""
        y, weight = self.observations(request.targets)
        zeros, background = request.targets.zeros, None
        if zeros is not None and not self.piece:
            rows = (self.n_rows, len(zeros))
            background = Background.of(self._index[:0], rows, np.ones(self.n_rows), zeros)
        precision = Precision(request.alpha, weight, background=background)
        psi = [np.zeros((self.n_rows, request.items.shape[1])), request.items]
        return Evidence(self.by_user(), y, precision, request.core, 0, psi, np.ones(1), request.number)

    def users(self, request: Request) -> Floats:
        """New factors of the users, (last - first, r)."""
        shift = np.asarray(self.features @ request.B) @ request.precision
        noise = np.zeros_like(shift) if request.seed is None else self.noise(request.seed, shift.shape[1])
        psi = self.of_users(request).solve(shift, request.precision, noise)
        numbers = np.arange(self.first, self.last) if self.names is None else self.names
        for place in np.flatnonzero(np.isin(numbers, list(request.hot))).tolist():
            psi[place] = request.hot[int(numbers[place])]
        return psi

    def noise(self, seed: int, r: int) -> Floats:
        """The rows of `tuckergp.random.normals` that belong to the users."""
        if self.names is None:
            return normals_of_rows(self.first, self.last, r, seed)
        return np.concatenate([normals_of_rows(user, user + 1, r, seed) for user in self.names.tolist()])

    def of_items(self, psi: Floats, request: Request, T: Floats) -> None:
        """Add the statistics of all items given the factors of these users to T (`compute.packed`), but for alpha."""
        y, weight = self.observations(request.targets)
        data, factors = self.by_item(len(request.items)), [psi, request.items]
        evidence = Evidence(data, y, Precision(1.0, weight), request.core, 1, factors, np.ones(1), request.number)
        A, b = evidence.statistics()
        add_statistics(0, len(b), A, b, T)


def split(sums: Floats, items: int, n: int, r: int) -> tuple[Floats, Floats, Floats]:
    """The sums that `sweep` returns: statistics of items (items, k), Phi'psi (n, r) and psi'psi (r, r), as views."""
    first, second = items * packed_size(r), items * packed_size(r) + n * r
    return (
        sums[:first].reshape(items, packed_size(r)),
        sums[first:second].reshape(n, r),
        sums[second:].reshape(r, r),
    )


def sweep(shards: Iterable[Shard], request: Request) -> Iterator[tuple[Any, Any]]:
    """Draw the users of some shards; yields branches with sums over their users (see `split`), and no user.

    They end before a shard that has other ratings than at first: then there is no sum over all shards.
    """
    numba.set_num_threads(1)
    items, r = request.items.shape
    n = len(request.B)

    def leaves() -> Iterator[tuple[int, Floats]]:
        for shard in shards:
            if shard.fingerprint != request.fingerprints[shard.number]:
                return
            sums = np.zeros(items * packed_size(r) + n * r + r * r)
            T, cross, gram = split(sums, items, n, r)
            psi = request.hot[shard.first][None] if shard.piece else shard.users(request)
            shard.of_items(psi, request, T)
            if not shard.piece:
                cross += np.asarray(shard.features.T @ psi)
                gram += psi.T @ psi
            yield shard.number, sums

    yield from branches(leaves())


def noise(shards: Iterable[Shard], seed: int, r: int) -> Iterator[tuple[Any, Floats]]:
    """Branches of Phi'N, (n, r), over all users; N as `tuckergp.random.normals` draws it for this seed."""
    usual = (shard for shard in shards if not shard.piece)
    yield from branches((shard.number, np.asarray(shard.features.T @ shard.noise(seed, r))) for shard in usual)


def factors(
    shards: Iterable[Shard], requests: Sequence[Request], dtype: str
) -> Iterator[tuple[Shard, npt.NDArray[Any]]]:
    """Shards of whole users with their factors in several draws, (last - first, S, r), drawn once more."""
    numba.set_num_threads(1)
    for shard in shards:
        if not shard.piece:
            psi = np.empty((shard.n_rows, len(requests), requests[0].items.shape[1]), dtype=dtype)
            for s, request in enumerate(requests):
                psi[:, s] = shard.users(request)
            yield shard, psi


def pieces(shards: Iterable[Shard], request: Request) -> Iterator[tuple[int, int, Floats, Floats]]:
    """Statistics of a user whose ratings are in several shards: user, shard, A (r, r) and b (r,) of each."""
    numba.set_num_threads(1)
    for shard in shards:
        A, b = shard.of_users(request).statistics()
        yield shard.first, shard.number, A[0], b[0]
