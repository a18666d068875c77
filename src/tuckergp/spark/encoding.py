"""What Python workers do to make shards of batches of ratings: number ids, cut by shard, gather and sort."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.data.names import KEYS, RATING
from tuckergp.random import mixed
from tuckergp.spark.blobs import blob_of, table_in
from tuckergp.spark.counting import NUMBER, Counted
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
    """Which shard each rating is in; users are numbered in the order of their ids.

    Attributes
    ----------
    bounds : ndarray, shape (usual shards + 1,)
        The users of shard k are bounds[k]:bounds[k + 1].
    last : ndarray of int64 or object, shape (usual shards,)
        The id of the last user up to the end of each shard.
    hot : ndarray, shape (h,)
        Users, in rising order, who have several shards of their own.
    hot_ids : list, length h
    pieces : ndarray, shape (h + 1,)
        The shards of hot user j are n_usual + pieces[j] to n_usual + pieces[j + 1].
    """

    bounds: Ints
    last: npt.NDArray[Any]
    hot: Ints
    hot_ids: list[Any]
    pieces: Ints

    @classmethod
    def of(cls, users: Counted, shards: int) -> Plan:
        """Users in equal shares, those with more than a share alone."""
        totals = users.totals
        share = max(1.0, totals.ratings / shards)
        found = users.run(lambda part, table: _costs(table, share))
        before, number, cost, hot = {}, 0, 0, []
        for part, (count, costs, many) in found:
            before[part] = number, cost
            hot += [(number + place, user, ratings) for place, user, ratings in many]
            number, cost = number + count, cost + costs
        ends = np.linspace(0, cost, shards + 1)[1:]
        found = users.run(lambda part, table: _cuts(table, share, *before[part], ends))
        cuts = [cut for _, some in found for cut in some]
        bounds, last = [0, *(place for place, _ in cuts)], [user for _, user in cuts]
        sizes = np.array([ratings for _, _, ratings in hot], dtype=np.int64)
        return cls(
            np.array(bounds, dtype=np.int64),
            np.array(last, dtype=np.int64 if isinstance(last[0], int) else object),
            np.array([user for user, _, _ in hot], dtype=np.int64),
            [user for _, user, _ in hot],
            np.concatenate([[0], np.cumsum(np.ceil(sizes / share))]).astype(np.int64),
        )

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
        self, ids: Any, code: npt.NDArray[Any], item: npt.NDArray[Any], rating: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.int32]:
        """The shard of each rating of user ids[code]; ratings of a hot user are dealt out by item and rating."""
        distinct = ids.to_numpy(zero_copy_only=False)
        usual = np.searchsorted(self.last[:-1], distinct.astype(self.last.dtype, copy=False))
        places = {user: place for place, user in enumerate(self.hot_ids)}
        which = np.array([places.get(user, -1) for user in distinct.tolist()] if places else [], dtype=np.int64)
        shard, place = usual[code], which[code] if places else np.full(len(code), -1)
        mine = np.flatnonzero(place >= 0)
        pieces = np.diff(self.pieces)[place[mine]]
        dealt = mixed(mixed(item[mine].astype(np.uint64)) ^ rating[mine].view(np.uint64)) >> np.uint64(1)
        shard[mine] = self.n_usual + self.pieces[place[mine]] + dealt.astype(np.int64) % pieces
        return np.asarray(shard, dtype=np.int32)

    def hot_of(self, shard: int) -> list[Any]:
        """The ids of hot users among those of a shard."""
        first, last = np.searchsorted(self.hot, self.users(shard))
        return self.hot_ids[first:last]

    def users(self, shard: int) -> tuple[int, int]:
        """The users of a shard, from the first to before the last."""
        if shard < self.n_usual:
            return int(self.bounds[shard]), int(self.bounds[shard + 1])
        user = int(self.hot[np.searchsorted(self.pieces, shard - self.n_usual, side="right") - 1])
        return user, user + 1


def _costs(table: Any, share: float) -> tuple[int, int, list[tuple[int, Any, int]]]:
    """Of a part of the users: how many, their costs, and places, ids and ratings of those with more than a share."""
    per_user = table[NUMBER].to_numpy()
    many = np.flatnonzero(per_user > share).tolist()
    hot = [(place, table[KEYS[0]][place].as_py(), int(per_user[place])) for place in many]
    return len(table), int(_costs_of(per_user, share).sum()), hot


def _cuts(table: Any, share: float, number: int, cost: int, ends: npt.NDArray[np.float64]) -> list[tuple[int, Any]]:
    """Of the shards that end in this part of the users: where, and the id before, given users and costs before it."""
    costs = cost + np.cumsum(_costs_of(table[NUMBER].to_numpy(), share))
    mine = ends[(ends > cost) & (ends <= costs[-1])]
    places = np.searchsorted(costs, mine).tolist()
    return [(number + place + 1, table[KEYS[0]][place].as_py()) for place in places]


def _costs_of(per_user: Ints, share: float) -> Ints:
    return np.where(per_user > share, 0, per_user) + USER


def encoded(batches: Iterable[Any], items: Any, plan: Plan) -> Iterator[Any]:
    """Ratings by shard: distinct ids of users; places among them, numbers of items, and ratings, as bytes.

    ``items`` are the ids of all items as an array of Arrow, in the order of their numbers.
    """
    import pyarrow as pa

    for table in _larger(batches):
        user = table.column(KEYS[0]).combine_chunks().dictionary_encode()
        ids, code, item = user.dictionary, user.indices.to_numpy(), _numbers(table.column(KEYS[1]), items)
        rating = table.column(RATING).cast(pa.float64()).to_numpy()
        known = np.flatnonzero(item >= 0)  # items that were not counted are noticed by the driver
        shard = plan.shard_of(ids, code[known], item[known], rating[known])
        order = np.argsort(shard, kind="stable")
        distinct, begin = np.unique(shard[order], return_index=True)
        for number, rows in zip(distinct.tolist(), np.split(known[order], begin[1:]), strict=False):
            some, place = np.unique(code[rows], return_inverse=True)
            data = b"".join(each.tobytes() for each in (place.astype(np.int32), item[rows], rating[rows]))
            users = blob_of(pa.RecordBatch.from_arrays([ids.take(pa.array(some))], names=[KEYS[0]]))
            columns = [[number], [users], [data]]
            arrays = [pa.array(one, kind) for one, kind in zip(columns, (pa.int32(), *[pa.binary()] * 2), strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, names=["shard", "users", "data"])


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


def gathered(rows: Iterable[tuple[int, Any]], numbers: Sequence[int], plan: Plan, alike: Any = None) -> Iterator[Shard]:
    """The shards of one partition, from their parts in any order: ids of users and ratings as bytes, features of users.

    ``alike`` (n,) are the features of each user, where they are the same for all.
    """
    found: dict[int, list[tuple[bytes, bytes]]] = {number: [] for number in numbers}
    features: dict[int, Any] = {}
    for number, data in rows:
        if isinstance(data, tuple):
            found[number].append(data)
        else:
            features[number] = data
    for number in numbers:
        ids, user, item, rating = _joined(number, found.pop(number), plan)
        order = np.lexsort((rating, item, user))
        user, item, rating = user[order], item[order], rating[order]
        single = rating.astype(np.float32)
        rating = single if (single == rating).all() else rating
        first, last = plan.users(number)
        piece = number >= plan.n_usual
        about = features.get(number) if alike is None or piece else np.tile(alike, (last - first, 1))
        whose = digest((number, user, item, rating))
        yield Shard(number, first, last, user, item, rating, about, None if piece else ids, piece, whose)


def _joined(number: int, parts: Sequence[tuple[bytes, bytes]], plan: Plan) -> tuple[Any, Any, Any, Any]:
    """Ids of the users of a shard, in order, and its ratings: numbers of users and items, and ratings.

    A shard of other users than were counted has no ratings, which the driver notices.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    first, last = plan.users(number)
    listed = [table_in(ids).column(0).combine_chunks() for ids, _ in parts]
    kind = listed[0].type if listed else pa.int64() if plan.last.dtype == np.int64 else pa.string()
    together = pa.concat_arrays([*listed, pa.array(plan.hot_of(number), kind)])
    ids = pc.unique(together)
    ids = ids.take(pc.sort_indices(ids))
    none = (np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32), np.zeros(0))
    if len(ids) != last - first:
        return ids, *none
    place = np.asarray(pc.index_in(together, value_set=ids).to_numpy(), dtype=np.int32) + np.int32(first)
    starts = np.cumsum([0, *map(len, listed)])
    columns = [_columns(data) for _, data in parts]
    numbered = [(place[start + user], *rest) for start, (user, *rest) in zip(starts, columns, strict=False)]
    user, item, rating = (np.concatenate(arrays) for arrays in zip(none, *numbered, strict=True))
    return ids, user, item, rating


def _columns(data: bytes) -> tuple[Any, Any, Any]:
    n = len(data) // 16
    return (
        np.frombuffer(data, np.int32, n),
        np.frombuffer(data, np.int32, n, 4 * n),
        np.frombuffer(data, np.float64, n, 8 * n),
    )
