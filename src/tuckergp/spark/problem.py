"""The problem of a fit whose ratings are in Spark's workers: what algorithms ask of the data becomes jobs.

Algorithms run on the driver as they do locally. One job draws all users, inside their partitions, and returns sums over
them: the statistics of the items given them, from which the driver draws the items and the noise, and what the users'
prior asks for. No user's factors are returned or kept; they can be drawn again from what they were drawn from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import fsum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.compute.packed import explained, packed_size, solve_packed
from tuckergp.compute.threads import run_ranges
from tuckergp.errors import InputError
from tuckergp.inference.base import Problem
from tuckergp.likelihoods.given import Observed
from tuckergp.likelihoods.precision import Precision, RowSums
from tuckergp.linalg import Matrix
from tuckergp.model.design import Design
from tuckergp.model.tucker import Core, TuckerModel
from tuckergp.random import normals, normals_of_rows
from tuckergp.spark.reading import Sharded
from tuckergp.spark.shards import Features, Request, Shard, Targets, noise, pieces, split, sweep
from tuckergp.spark.summed import Drawn
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
    """What is counted once: ratings of each shard, the sum of weight times squared target, and fingerprints of shards.

    ``surplus`` is the sum of target times weight of the zero in the same cell, for clicks.
    """

    sizes: npt.NDArray[np.int64]
    square: float
    surplus: float
    fingerprints: tuple[str, ...]


@dataclass
class Workers:
    """Ratings in the workers, and the statistics of items that the last job returned.

    Attributes
    ----------
    sharded : Sharded
    targets : Targets
    features : Features
    """

    sharded: Sharded
    targets: Targets
    features: Features
    last: tuple[Any, Floats] = field(default=(None, np.zeros((0, 0))))

    @cached_property
    def facts(self) -> Facts:
        """What is counted once."""
        targets = self.targets
        found = sorted(self.sharded.run(lambda shards: (shard.facts(targets) for shard in shards)))
        _, sizes, squares, surplus, fingerprints = zip(*found, strict=True)
        return Facts(np.array(sizes), fsum(squares), fsum(surplus), fingerprints)

    def some(self, observations: npt.NDArray[Any]) -> tuple[Ints, Ints, Floats]:
        """Users, items and ratings of some observations, in the order given."""
        ends = np.cumsum(self.facts.sizes)
        shard = np.searchsorted(ends, observations, side="right")
        place = observations - (ends - self.facts.sizes)[shard]
        wanted = {int(k): place[shard == k] for k in np.unique(shard)}
        found = self.sharded.run(
            lambda shards: ((s.number, s.some(wanted[s.number])) for s in shards if s.number in wanted)
        )
        user, item, rating = np.zeros(len(place), np.int32), np.zeros(len(place), np.int32), np.zeros(len(place))
        for number, values in found:
            mine = shard == number
            user[mine], item[mine], rating[mine] = values
        return user, item, rating

    def draw_users(self, request: Request) -> tuple[Floats, Floats]:
        """Draw all users; returns Phi'psi (n, r) and psi'psi (r, r), and keeps the statistics of items."""
        self.last, (items, r) = (None, np.zeros((0, 0))), request.items.shape
        n = len(request.B)
        with self.sharded.sending(request) as sent:
            size = items * packed_size(r) + n * r + r * r
            sums = self.sharded.sum(lambda shards: sweep(shards, sent.value), size)
        if sums is None:
            raise InputError(
                "ratings changed while they were learned from: what had to be read again is not what it was. Write "
                "them to Parquet, or checkpoint() them, and start again."
            )
        T, cross, gram = split(sums, items, n, r)
        self.last = None, T
        return cross.copy(), gram.copy()  # views would keep T

    def stands_for(self, psi: Floats) -> None:
        """Say which rows stand for the users that were drawn last."""
        self.last = psi, self.last[1]

    def noise(self, rng: np.random.Generator, r: int) -> Floats:
        """Phi'N (n, r) of standard normal numbers N for all users, those that `normals` would draw."""
        seed = int(rng.integers(2**63))
        found = self.sharded.run(lambda shards: noise(shards, seed, r))
        return np.asarray(total(found, self.sharded.plan.n_usual))

    def of_hot_users(self, request: Request) -> dict[int, tuple[Floats, Floats]]:
        """Statistics of the users whose ratings are in several shards, A (r, r) and b (r,) of each."""
        if not len(self.sharded.hot):
            return {}
        with self.sharded.sending(request) as sent:
            found = self.sharded.run(lambda shards: pieces(shards, sent.value), hot=True)
        sums: dict[int, tuple[Floats, Floats]] = {}
        for user, _, A, b in sorted(found, key=lambda piece: piece[1]):
            sums[user] = (sums[user][0] + A, sums[user][1] + b) if user in sums else (A, b)
        return sums

    def of_items(self, psi: Floats) -> Floats:
        """Statistics of the items given the users for which these rows stand, those that were drawn last."""
        if self.last[0] is not psi:
            raise RuntimeError("the statistics of items are those of other users")
        return self.last[1]

    def request(self, drawn: Drawn, core: Core, number: type[Number]) -> Request:
        """What the workers need to draw users from these numbers, once more."""
        high, low = drawn.seed.tolist()
        seed = None if high < 0 else (int(high) << 32) + int(low)
        hot = dict(zip(self.sharded.plan.hot.tolist(), drawn.hot, strict=True))
        fixed = (core, number, self.targets, self.facts.fingerprints)
        return Request(drawn.items, drawn.B, drawn.precision, float(drawn.alpha), seed, *fixed, hot)


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
        """A draw of every item under the prior N(B'phi_m, precision^-1); the mean without ``rng``."""
        shift = np.asarray(features @ B) @ precision
        noise = np.zeros_like(shift) if rng is None else normals(shift.shape, rng)
        return self._solved(self.workers.of_items(self.psi[0]), self.precision.alpha, shift, precision, noise)

    def users(self, B: Floats, precision: Floats, rng: np.random.Generator | None) -> tuple[Floats, Floats, Drawn]:
        """Draw all users under the prior N(B'phi_m, precision^-1): Phi'psi, psi'psi, and what they were drawn from."""
        workers, r = self.workers, len(precision)
        seed = np.array([-1.0, 0.0])
        if rng is not None:
            seed = np.array(divmod(int(rng.integers(2**63)), 2**32), dtype=np.float64)
        hot = np.zeros((len(workers.sharded.plan.hot), r))
        drawn = Drawn(self.psi[1], B, precision, np.asarray(float(self.precision.alpha)), seed, hot)
        if len(hot):
            drawn = drawn._replace(hot=self._hot(workers.request(drawn, self.core, self.number)))
        cross, gram = workers.draw_users(workers.request(drawn, self.core, self.number))
        return cross, gram, drawn

    def _hot(self, request: Request) -> Floats:
        """Factors of the users whose ratings are in several shards, (h, r)."""
        hot, r = self.workers.of_hot_users(request), request.items.shape[1]
        users, upper = np.array(list(hot)), np.triu_indices(r)
        T = np.stack([np.concatenate([A[upper], b]) for A, b in hot.values()])
        shift = np.asarray(self.workers.features.of(users) @ request.B) @ request.precision
        noise = np.zeros_like(shift)
        if request.seed is not None:
            noise = np.concatenate([normals_of_rows(user, user + 1, r, request.seed) for user in users.tolist()])
        return self._solved(T, 1.0, shift, request.precision, noise)  # alpha is in T

    def _solved(self, T: Floats, alpha: float, shift: Floats, precision: Floats, noise: Floats) -> Floats:
        """Rows given their packed statistics, and what zeros add to them; all users have the same share of those."""
        zeros = NO_BACKGROUND
        if self.precision.background is not None:
            zeros = background_statistics(
                self.precision.background, self.precision.alpha, self.core, self.d, self.psi, self.W
            )
        out, share = np.empty(shift.shape), zeros.share
        if self.d == 0 and share.size:
            share = np.full(len(out), share[0])
        arrays = [np.require(a, np.float64, ["C", "W"]) for a in (T, zeros.gram, share, shift, precision, noise)]
        bounds = np.append(np.arange(0, len(out), ROWS), len(out))
        if sum(run_ranges(solve_packed, bounds, float(alpha), *arrays, out)):
            raise FloatingPointError(f"the precision of rows of mode {self.d} is not positive definite")
        return out

    def residuals(self) -> RowSums:
        """How far f is from the targets, summed over all ratings."""
        workers, zeros = self.workers, self.precision.background
        T = workers.of_items(self.psi[0])
        # a difference of large numbers: rounding must not make it negative
        left = workers.facts.square - float(explained(T, np.ascontiguousarray(self.psi[1])).sum())
        square = np.array([max(left, 0.0)])
        over_zeros = 0.0 if zeros is None else background_squares(zeros, self.core, self.psi, self.W)
        return RowSums(square, square, over_zeros)

    def statistics(self) -> tuple[Floats, Floats]:
        """Statistics of all rows, which no residual of users and items asks for."""
        raise NotImplementedError


@dataclass(frozen=True)
class SparkProblem(Problem):
    """A problem whose observations are in workers: ``design.index`` and ``y`` are empty, few rows stand for users.

    ``fingerprint`` stands for ratings and features of users in checkpoints.
    """

    fingerprint: str = ""
    _workers: Any = None  # no part of what a checkpoint compares, as its name begins with _
    _derived: Any = None

    @classmethod
    def of(cls, model: TuckerModel, design: Design, workers: Workers, derived: Mapping[str, Any]) -> SparkProblem:
        """The problem of a model; ``derived`` is what its likelihood computes from the data once."""
        whose = digest((list(workers.facts.fingerprints), workers.features.table))
        return cls(model, design, np.zeros(0), None, None, whose, workers, derived)

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
        """The same problem with few of the observations, by their numbers in the order of shards, on the driver."""
        user, item, rating = self._workers.some(np.asarray(observations))
        y, weight = self._workers.targets.of(rating, item)
        users, place = np.unique(user, return_inverse=True)
        index = np.stack([place, item], axis=1).astype(np.int32)
        shard = self._shard(users)
        return WatchedProblem(self.model, replace(self.design, index=index), y, weight, None, self._workers, shard)

    def _shard(self, users: npt.NDArray[Any]) -> Shard:
        """Some users with their ratings on the driver; those in several shards have none here."""
        usual = np.setdiff1d(users, self._workers.sharded.plan.hot)
        user, item, rating = self._workers.sharded.of_users(lambda user: np.isin(user, usual))
        place = np.searchsorted(users, user).astype(np.int32)
        return Shard(0, 0, len(users), place, item, rating, self._workers.features.of(users), names=users)


@dataclass(frozen=True)
class WatchedProblem(Problem):
    """Few observations, whose users are drawn on the driver from what all users were drawn from."""

    _workers: Any = None
    _shard: Any = None

    def factors(self, modes: Sequence[Any]) -> list[Floats]:
        """The factors of these users, and of all items."""
        request = self._workers.request(Drawn(*modes[0].own), self.model.core, np.float64)
        return [self._shard.users(request), modes[1].psi]
