"""What Python workers do to make shards of batches of ratings: number ids, cut by shard, gather and sort."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.data.names import KEYS, RATING
from tuckergp.random import mixed
from tuckergp.spark.shards import Shard
from tuckergp.store.trees import digest

__all__ = ["Plan", "encoded", "gathered"]

Ints = npt.NDArray[np.int64]

# The fixed cost of a user, counted in ratings.
USER = 32
# Rows whose ids are numbered at a time: each time a table of all ids is hashed.
ROWS = 1_000_000


@dataclass(frozen=True)
class Plan:
    """Which shard each rating is in.

    Attributes
    ----------
    bounds : ndarray, shape (usual shards + 1,)
        The users of shard k are bounds[k]:bounds[k + 1].
    hot : ndarray, shape (h,)
        Users, in rising order, who have several shards of their own.
    pieces : ndarray, shape (h + 1,)
        The shards of hot user j are n_usual + pieces[j] to n_usual + pieces[j + 1].
    """

    bounds: Ints
    hot: Ints
    pieces: Ints

    @classmethod
    def of(cls, per_user: Ints, shards: int) -> Plan:
        """Users in equal shares, those with more than a share alone."""
        share = max(1.0, per_user.sum() / shards)
        hot = np.flatnonzero(per_user > share)
        usual = per_user.copy()
        usual[hot] = 0
        cost = np.concatenate([[0], np.cumsum(usual + USER)])
        bounds = np.searchsorted(cost, np.linspace(0, cost[-1], shards + 1))
        bounds[0], bounds[-1] = 0, len(per_user)
        pieces = np.concatenate([[0], np.cumsum(np.ceil(per_user[hot] / share))])
        return cls(bounds.astype(np.int64), hot.astype(np.int64), pieces.astype(np.int64))

    @property
    def n_users(self) -> int:
        """The number of users."""
        return int(self.bounds[-1])

    @property
    def n_usual(self) -> int:
        """The number of shards of whole users."""
        return len(self.bounds) - 1

    @property
    def n_shards(self) -> int:
        """The number of all shards."""
        return self.n_usual + int(self.pieces[-1])

    def shard_of(
        self, user: npt.NDArray[Any], item: npt.NDArray[Any], rating: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.int32]:
        """The shard of each rating; ratings of a hot user are dealt out by item and rating."""
        shard = np.searchsorted(self.bounds, user, side="right") - 1
        place = np.searchsorted(self.hot, user)
        mine = np.flatnonzero(np.isin(user, self.hot))
        pieces = np.diff(self.pieces)[place[mine]]
        dealt = mixed(mixed(item[mine].astype(np.uint64)) ^ rating[mine].view(np.uint64)) >> np.uint64(1)
        shard[mine] = self.n_usual + self.pieces[place[mine]] + dealt.astype(np.int64) % pieces
        return shard.astype(np.int32)

    def users(self, shard: int) -> tuple[int, int]:
        """The users of a shard, from the first to before the last."""
        if shard < self.n_usual:
            return int(self.bounds[shard]), int(self.bounds[shard + 1])
        user = int(self.hot[np.searchsorted(self.pieces, shard - self.n_usual, side="right") - 1])
        return user, user + 1


def encoded(batches: Iterable[Any], ids: Sequence[Any], plan: Plan) -> Iterator[Any]:
    """Ratings by shard: numbers of users and of items, and ratings, as bytes.

    ``ids`` are the distinct ones of users and of items as arrays of Arrow, in the order of their numbers.
    """
    import pyarrow as pa

    for table in _larger(batches):
        numbers = [_numbers(table.column(key), known) for key, known in zip(KEYS, ids, strict=True)]
        given = table.column(RATING).cast(pa.float64()).to_numpy()
        found = (numbers[0] >= 0) & (numbers[1] >= 0)  # ids that were not counted are noticed by the driver
        user, item, rating = (values[found] for values in (*numbers, given))
        shard = plan.shard_of(user, item, rating)
        order = np.argsort(shard, kind="stable")
        distinct, begin = np.unique(shard[order], return_index=True)
        for number, rows in zip(distinct.tolist(), np.split(order, begin[1:]), strict=False):
            data = b"".join(values[rows].tobytes() for values in (user, item, rating))
            columns = [pa.array([number], pa.int32()), pa.array([data], pa.binary())]
            yield pa.RecordBatch.from_arrays(columns, names=["shard", "data"])


def _larger(batches: Iterable[Any]) -> Iterator[Any]:
    """Tables of many batches."""
    import pyarrow as pa

    waiting: list[Any] = []
    for batch in batches:
        waiting.append(batch)
        if sum(map(len, waiting)) >= ROWS:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


def _numbers(values: Any, known: Any) -> npt.NDArray[np.int32]:
    import pyarrow.compute as pc

    return np.asarray(pc.fill_null(pc.index_in(values, value_set=known.cast(values.type)), -1).to_numpy())


def gathered(rows: Iterable[tuple[int, Any]], numbers: Sequence[int], plan: Plan) -> Iterator[Shard]:
    """The shards of one partition, from their parts in any order: ratings as bytes, features and ids of users."""
    found: dict[int, list[bytes]] = {number: [] for number in numbers}
    about: dict[int, tuple[Any, Any]] = {}
    for number, data in rows:
        if isinstance(data, bytes):
            found[number].append(data)
        else:
            about[number] = data
    for number in numbers:
        parts = [_columns(data) for data in found.pop(number)]
        none = (np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32), np.zeros(0))
        user, item, rating = (np.concatenate(arrays) for arrays in zip(none, *parts, strict=True))
        order = np.lexsort((rating, item, user))
        user, item, rating = user[order], item[order], rating[order]
        single = rating.astype(np.float32)
        rating = single if (single == rating).all() else rating
        features, ids = about.get(number, (None, None))
        whose = digest((number, user, item, rating))
        yield Shard(number, *plan.users(number), user, item, rating, features, ids, number >= plan.n_usual, whose)


def _columns(data: bytes) -> tuple[Any, Any, Any]:
    n = len(data) // 16
    return (
        np.frombuffer(data, np.int32, n),
        np.frombuffer(data, np.int32, n, 4 * n),
        np.frombuffer(data, np.float64, n, 8 * n),
    )
