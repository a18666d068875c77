"""The problem of a fit whose ratings are in Spark's workers: what algorithms ask of the data becomes jobs.

Algorithms run on the driver as they do locally. One job draws all users, inside their partitions, and returns them
with the statistics of the items given them; from these statistics the driver draws the items and the noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import fsum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.compute.packed import explained, solve_packed
from tuckergp.compute.threads import run_ranges
from tuckergp.inference.base import Problem
from tuckergp.likelihoods.base import Observed
from tuckergp.likelihoods.precision import Precision, RowSums
from tuckergp.linalg import Matrix
from tuckergp.model.design import Design
from tuckergp.model.tucker import Core, TuckerModel
from tuckergp.random import normals, normals_of_rows
from tuckergp.spark.reading import Sharded
from tuckergp.spark.shards import Request, Targets, pieces, sweep
from tuckergp.spark.sums import total
from tuckergp.statistics.background import NO_BACKGROUND, background_squares, background_statistics
from tuckergp.statistics.evidence import Number
from tuckergp.store.trees import digest

__all__ = ["SparkEvidence", "SparkProblem", "Workers"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]

# Items that a thread of the driver draws at a time.
ROWS = 1_024


class Facts(NamedTuple):
    """What is counted once: ratings of each shard, the sum of weight times squared target, and a fingerprint.

    ``surplus`` is the sum of target times weight of the zero in the same cell, for clicks.
    """

    sizes: npt.NDArray[np.int64]
    square: float
    surplus: float
    fingerprint: str


@dataclass
class Workers:
    """Ratings in the workers, and the statistics of items that the last job returned.

    Attributes
    ----------
    sharded : Sharded
    targets : Targets
    moved : int
        Bytes that the last sweep brought to the driver.
    """

    sharded: Sharded
    targets: Targets
    last: tuple[Any, Floats] = field(default=(None, np.zeros((0, 0))))
    moved: int = 0

    @cached_property
    def facts(self) -> Facts:
        """What is counted once."""
        targets = self.targets
        found = sorted(self.sharded.all.map(lambda shard: shard.facts(targets)).collect())
        _, sizes, squares, surplus, digests = zip(*found, strict=True)
        return Facts(np.array(sizes), fsum(squares), fsum(surplus), digest(list(digests)))

    def of_users(self, chosen: npt.NDArray[np.bool_]) -> tuple[Ints, Ints, Floats]:
        """Users, items and ratings of the users that are chosen, (M,), sorted by user and item."""
        found = self.sharded.all.map(lambda shard: shard.some(chosen[shard.user])).collect()
        user, item, rating = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        order = np.lexsort((rating, item, user))
        return user[order], item[order], rating[order].astype(np.float64)

    def some(self, observations: npt.NDArray[Any]) -> tuple[Ints, Ints, Floats]:
        """Users, items and ratings of some observations, in the order given."""
        ends = np.cumsum(self.facts.sizes)
        shard = np.searchsorted(ends, observations, side="right")
        place = observations - (ends - self.facts.sizes)[shard]
        wanted = {int(k): place[shard == k] for k in np.unique(shard)}
        here = self.sharded.all.filter(lambda s: s.number in wanted)
        user, item, rating = np.zeros(len(place), np.int32), np.zeros(len(place), np.int32), np.zeros(len(place))
        for number, found in here.map(lambda s: (s.number, s.some(wanted[s.number]))).collect():
            mine = shard == number
            user[mine], item[mine], rating[mine] = found
        return user, item, rating

    def draw_users(self, request: Request) -> Floats:
        """New factors of all users, (M, r); the statistics of items given them are kept for `of_items`."""
        context = self.sharded.context
        sent = context.broadcast(request)
        try:
            found = self.sharded.all.mapPartitions(lambda shards: sweep(shards, sent.value), True).collect()
        finally:
            sent.destroy()
        self.moved = sum(values.nbytes for _, _, values in found)
        psi = np.empty((int(self.sharded.plan.bounds[-1]), request.items.shape[1]))
        for kind, first, rows in found:
            if kind == "users":
                psi[first : first + len(rows)] = rows
        sums = [(branch, T) for kind, branch, T in found if kind == "items"]
        self.last = psi, total(sums, self.sharded.plan.n_shards)
        return psi

    def of_hot_users(self, request: Request) -> dict[int, tuple[Floats, Floats]]:
        """Statistics of the users whose ratings are in several shards, A (r, r) and b (r,) of each."""
        if self.sharded.hot is None:
            return {}
        sent = self.sharded.context.broadcast(request)
        try:
            found = self.sharded.hot.mapPartitions(lambda shards: pieces(shards, sent.value), True).collect()
        finally:
            sent.destroy()
        sums: dict[int, tuple[Floats, Floats]] = {}
        for user, _, A, b in sorted(found, key=lambda piece: piece[1]):
            sums[user] = (sums[user][0] + A, sums[user][1] + b) if user in sums else (A, b)
        return sums

    def of_items(self, psi: Floats) -> Floats:
        """Statistics of the items given these factors of users, those that `draw_users` returned last."""
        if self.last[0] is not psi:
            raise RuntimeError("the statistics of items are those of other users")
        return self.last[1]


@dataclass(frozen=True)
class SparkEvidence:
    """What ratings in workers say about mode d given the other; see `tuckergp.residuals.base.Evidence`."""

    workers: Workers
    core: Core
    precision: Precision
    d: int
    psi: Sequence[Floats]
    W: Floats
    number: type[Number]

    def rows(self, features: Matrix, B: Floats, precision: Floats, rng: np.random.Generator | None) -> Floats:
        """A draw of every row under the prior N(B'phi_m, precision^-1); the mean without ``rng``."""
        if self.d == 0:
            return self._users(features, B, precision, rng)
        shift = np.asarray(features @ B) @ precision
        noise = np.zeros_like(shift) if rng is None else normals(shift.shape, rng)
        return self._solved(self.workers.of_items(self.psi[0]), self.precision.alpha, shift, precision, noise)

    def _users(self, features: Matrix, B: Floats, precision: Floats, rng: np.random.Generator | None) -> Floats:
        workers, alpha = self.workers, self.precision.alpha
        seed = None if rng is None else int(rng.integers(2**63))
        request = Request(self.psi[1], B, precision, alpha, seed, self.core, self.number, workers.targets, {})
        hot = workers.of_hot_users(request)
        if not hot:
            return workers.draw_users(request)
        users, r = np.array(list(hot)), len(precision)
        upper = np.triu_indices(r)
        T = np.stack([np.concatenate([A[upper], b]) for A, b in hot.values()])
        shift = np.asarray(features[users] @ B) @ precision
        noise = np.zeros_like(shift)
        if seed is not None:
            noise = np.concatenate([normals_of_rows(user, user + 1, r, seed) for user in users.tolist()])
        drawn = self._solved(T, 1.0, shift, precision, noise, users)  # alpha is in T
        return workers.draw_users(request._replace(hot=dict(zip(users.tolist(), drawn, strict=True))))

    def _solved(
        self,
        T: Floats,
        alpha: float,
        shift: Floats,
        precision: Floats,
        noise: Floats,
        some: npt.NDArray[Any] | slice = slice(None),
    ) -> Floats:
        """Rows given their packed statistics, and what zeros add to them."""
        zeros = NO_BACKGROUND
        if self.precision.background is not None:
            zeros = background_statistics(
                self.precision.background, self.precision.alpha, self.core, self.d, self.psi, self.W
            )
        out, share = np.empty(shift.shape), zeros.share[some] if zeros.share.size else zeros.share
        arrays = [np.require(a, np.float64, ["C", "W"]) for a in (T, zeros.gram, share, shift, precision, noise)]
        bounds = np.append(np.arange(0, len(out), ROWS), len(out))
        if sum(run_ranges(solve_packed, bounds, float(alpha), *arrays, out)):
            raise FloatingPointError(f"the precision of rows of mode {self.d} is not positive definite")
        return out

    def residuals(self) -> RowSums:
        """How far f is from the targets, summed over all ratings."""
        workers, zeros = self.workers, self.precision.background
        T = workers.of_items(self.psi[0])
        square = np.array([workers.facts.square - float(explained(T, np.ascontiguousarray(self.psi[1])).sum())])
        over_zeros = 0.0 if zeros is None else background_squares(zeros, self.core, self.psi, self.W)
        return RowSums(square, square, over_zeros)

    def statistics(self) -> tuple[Floats, Floats]:
        """Statistics of all rows, which no residual of users and items asks for."""
        raise NotImplementedError


@dataclass(frozen=True)
class SparkProblem(Problem):
    """A problem whose observations are in workers: ``design.index`` and ``y`` are empty.

    ``fingerprint`` stands for the data in checkpoints.
    """

    fingerprint: str = ""
    _workers: Any = None  # no part of what a checkpoint compares, as its name begins with _
    _derived: Any = None

    @classmethod
    def of(cls, model: TuckerModel, design: Design, workers: Workers, derived: Mapping[str, Any]) -> SparkProblem:
        """The problem of a model; ``derived`` is what its likelihood computes from the data once."""
        return cls(model, design, np.zeros(0), None, None, workers.facts.fingerprint, workers, derived)

    @property
    def n_observations(self) -> int:
        """The number of observations, N."""
        return int(self._workers.facts.sizes.sum())

    @cached_property
    def count(self) -> float:
        """The number of observations, which have no weights."""
        return float(self.n_observations)

    @cached_property
    def observed(self) -> Observed:
        """What a likelihood sees: how many observations there are, and rows, but none of the observations."""
        modes = self.design.modes
        groups, n_groups = tuple(mode.groups for mode in modes), tuple(mode.n_groups for mode in modes)
        observed = Observed(self.y, None, None, self.design.index, groups, n_groups, dict(self._derived))
        observed.__dict__["count"] = self.count
        return observed

    def evidence(  # type: ignore[override]
        self,
        d: int,
        y: Floats,
        precision: Precision,
        psi: Sequence[Floats],
        W: Floats,
        number: type[Number] = np.float64,
    ) -> SparkEvidence:
        """What the ratings say about mode d given the other; they are where they are, and y is not read."""
        return SparkEvidence(self._workers, self.model.core, precision, d, psi, W, number)

    def take(self, observations: npt.NDArray[Any]) -> Problem:
        """The same problem with some of the observations, by their numbers in the order of shards, on the driver."""
        return self._here(*self._workers.some(np.asarray(observations)))

    def of_users(self, chosen: npt.NDArray[np.bool_]) -> Problem:
        """The same problem with the observations of some users, (M,), on the driver."""
        return self._here(*self._workers.of_users(chosen))

    def _here(self, user: Ints, item: Ints, rating: Floats) -> Problem:
        y, weight = self._workers.targets.of(rating, item)
        index = np.stack([user, item], axis=1)
        return Problem(self.model, replace(self.design, index=index), y, weight)
