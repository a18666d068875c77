"""From a Spark data frame of ratings to shards that stay in the workers.

Users are numbered in the order of their ids, items in that of their first user, then of their ids: the numbers of a
table that is sorted by user and item. So nothing depends on the order of rows or on partitions. A shard holds about as
many ratings as any other; a user with more than that has several, which share the work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.data.history import KEYS, RATING, History
from tuckergp.data.names import COUNT, USUAL, missing_column, taken_names
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.linalg import Matrix
from tuckergp.recommender.settings import RecommenderSettings
from tuckergp.spark.shards import NOTHING, Shard, Summary, features_of

__all__ = ["Sharded", "SparkRatings", "read_ratings"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Ratings of a shard, about, and the fewest shards.
SHARD, FEWEST = 2_000_000, 8
# The fixed cost of a user, counted in ratings.
USER = 32
# Types of ids.
WHOLE = ("byte", "short", "integer", "long")


@dataclass(frozen=True)
class SparkRatings:
    """A data frame whose columns have the usual names, and what was counted in it.

    Attributes
    ----------
    frame : pyspark.sql.DataFrame
        With user_id, item_id and rating (for clicks: their counts).
    ids : tuple of list
    per_user, per_item : ndarray, shapes (users,), (items,)
        How many ratings each has.
    typical : float
        The median of the counts of clicks; 1 for ratings.
    names : dict
        The names that columns had.
    """

    frame: Any
    ids: tuple[list[Any], list[Any]]
    per_user: Ints
    per_item: Ints
    typical: float
    names: dict[str, str]

    def __len__(self) -> int:
        return int(self.per_user.sum())

    @property
    def history(self) -> History:
        """The ids with no ratings, for what depends on ids alone."""
        none = np.zeros(0, dtype=np.int32)
        return History(self.ids, (none, none), np.zeros(0), Table({}, "ratings", 0))

    def sharded(self, features: Matrix, partitions: int | None, shards: int | None) -> Sharded:
        """Send the ratings to the workers, once, with the features of their users (M, n)."""
        context = self.frame.sparkSession.sparkContext
        partitions = partitions or context.defaultParallelism
        plan = Plan.of(self.per_user, shards or shards_for(len(self)))
        sent = context.broadcast((self.ids, features, plan))
        encoded = self.frame.mapInArrow(lambda batches: _encoded(batches, sent.value), "shard int, data binary").rdd
        count, usual = plan.n_shards, plan.n_usual

        def gathered(of: int, total: int) -> Any:
            """Shards from ``of`` on, so many of them, evenly in order over the partitions."""
            parts = max(1, min(partitions, total))
            mine = encoded.filter(lambda row: of <= row[0] < of + total).map(lambda row: (row[0], bytes(row[1])))
            placed = mine.partitionBy(parts, lambda shard: (shard - of) * parts // total)
            return placed.mapPartitionsWithIndex(
                lambda part, rows: _gathered(rows, _numbers(part, parts, of, total), sent.value), True
            )

        from pyspark import StorageLevel

        usual_shards = gathered(0, usual).persist(StorageLevel.MEMORY_AND_DISK)
        hot = gathered(usual, count - usual).persist(StorageLevel.MEMORY_AND_DISK) if count > usual else None
        return Sharded(context, usual_shards, hot, plan, sent)


def shards_for(ratings: int) -> int:
    """How many shards to make of so many ratings: a power of two."""
    return int(max(FEWEST, 2 ** int(np.ceil(np.log2(max(ratings / SHARD, 1))))))


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
    def n_usual(self) -> int:
        """The number of shards of whole users."""
        return len(self.bounds) - 1

    @property
    def n_shards(self) -> int:
        """The number of all shards."""
        return self.n_usual + int(self.pieces[-1])

    def shard_of(self, user: npt.NDArray[Any], item: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
        """The shard of each rating; ratings of a hot user are dealt out by item."""
        shard = np.searchsorted(self.bounds, user, side="right") - 1
        place = np.searchsorted(self.hot, user)
        mine = np.flatnonzero(np.isin(user, self.hot))
        pieces = np.diff(self.pieces)[place[mine]]
        shard[mine] = self.n_usual + self.pieces[place[mine]] + item[mine] % pieces
        return shard.astype(np.int32)

    def users(self, shard: int) -> tuple[int, int]:
        """The users of a shard, from the first to before the last."""
        if shard < self.n_usual:
            return int(self.bounds[shard]), int(self.bounds[shard + 1])
        user = int(self.hot[np.searchsorted(self.pieces, shard - self.n_usual, side="right") - 1])
        return user, user + 1


@dataclass(frozen=True)
class Sharded:
    """Ratings as shards in the workers: those of whole users, and pieces of hot users or None."""

    context: Any
    usual: Any
    hot: Any
    plan: Plan
    sent: Any

    @cached_property
    def all(self) -> Any:
        """Both together."""
        return self.usual if self.hot is None else self.context.union([self.usual, self.hot])

    @cached_property
    def summary(self) -> Summary:
        """Of all ratings; the first job, which makes the shards."""
        found = sorted(self.all.map(lambda shard: (shard.number, shard.summary())).collect())
        return reduce(Summary.joined, (summary for _, summary in found), NOTHING)

    def release(self) -> None:
        """Free the memory of the workers."""
        for shards in (self.usual, self.hot):
            if shards is not None:
                shards.unpersist()
        self.sent.destroy()


def read_ratings(frame: Any, settings: RecommenderSettings) -> tuple[SparkRatings, RecommenderSettings]:
    """Check the data frame and number its ids; also the settings with the likelihood that ``"auto"`` means for it."""
    frame, names, settings = _usual_names(frame, settings)
    _check_types(frame)
    _refuse_missing(frame)
    from pyspark.sql import functions as F

    users = frame.groupBy(KEYS[0]).agg(F.count("*").alias("n")).toArrow().sort_by(KEYS[0])
    if not len(users):
        raise InputError("ratings is empty; there is nothing to learn from.")
    items = frame.groupBy(KEYS[1]).agg(F.count("*").alias("n"), F.min(KEYS[0]).alias("first")).toArrow()
    items = items.sort_by([("first", "ascending"), (KEYS[1], "ascending")])
    ids = (users[KEYS[0]].to_pylist(), items[KEYS[1]].to_pylist())
    per_user, per_item = (table["n"].to_numpy().astype(np.int64) for table in (users, items))
    typical = 1.0
    if settings.kind.all_pairs:
        given = frame.groupBy(RATING).agg(F.count("*").alias("n")).toArrow().sort_by(RATING)
        values = given[RATING].to_numpy().astype(np.float64)
        settings.kind.check(values, lambda row: f"ratings: a value of column {names.get(COUNT, COUNT)!r}")
        typical = median(values, given["n"].to_numpy())
    return SparkRatings(frame, ids, per_user, per_item, typical, names), settings


def median(values: Floats, counts: npt.NDArray[Any]) -> float:
    """The median of numbers, given the distinct ones in rising order and how often each occurs."""
    ends = np.cumsum(counts)
    middle = np.searchsorted(ends, [(ends[-1] - 1) // 2, ends[-1] // 2], side="right")
    return float(values[middle].mean())


def _usual_names(frame: Any, settings: RecommenderSettings) -> tuple[Any, dict[str, str], RecommenderSettings]:
    """The three columns that count, by their usual names; clicks have a rating that is their count, or 1."""
    from pyspark.sql import functions as F

    existing, given = list(frame.columns), settings.columns or {}
    taken = taken_names(existing, "ratings", given, USUAL[:3], (), settings.kind.counts)
    settings = settings.decided(RATING in taken or RATING in existing)
    value = RATING
    if settings.kind.all_pairs:
        value = COUNT
        taken = taken_names(existing, "ratings", given, (*KEYS, COUNT), ())
    columns = {usual: taken.get(usual, given.get(usual, usual)) for usual in (*KEYS, value)}
    for usual in (*KEYS, *(() if value == COUNT else (value,))):
        if columns[usual] not in existing:
            raise missing_column("ratings", usual, existing, given)
    chosen = [F.col(f"`{columns[key]}`").alias(key) for key in KEYS]
    number = F.col(f"`{columns[value]}`") if columns[value] in existing else F.lit(1.0)
    frame = frame.select(*chosen, number.alias(RATING))
    if value == COUNT:  # what was chosen twice counts twice
        frame = frame.groupBy(*KEYS).agg(F.sum(RATING).alias(RATING))
    return frame, {usual: name for usual, name in columns.items() if usual != name and name in existing}, settings


def _check_types(frame: Any) -> None:
    kinds = {field.name: field.dataType.typeName() for field in frame.schema.fields}
    for key in KEYS:
        if kinds[key] not in (*WHOLE, "string"):
            raise InputError(
                f"ratings column {key!r} is of type {kinds[key]}, and ids are whole numbers or texts; cast it to "
                f"bigint or string."
            )
    if kinds[RATING] not in (*WHOLE, "float", "double", "decimal"):
        raise InputError(f"ratings column {RATING!r} is of type {kinds[RATING]}; cast it to double.")


def _refuse_missing(frame: Any) -> None:
    """Refuse ids and ratings that are not there, by one pass over the data."""
    from pyspark.sql import functions as F

    value = F.col(RATING).cast("double")
    wrong = {key: F.col(key).isNull() for key in KEYS}
    wrong[RATING] = value.isNull() | F.isnan(value) | (F.abs(value) > 1e150)
    counted = frame.agg(*(F.sum(what.cast("long")).alias(name) for name, what in wrong.items())).first()
    for name in wrong:
        if counted[name]:
            raise InputError(
                f"ratings column {name!r} has no value in {counted[name]:,} rows; leave them out with ratings.dropna()."
            )


# In the workers


def _encoded(batches: Iterable[Any], sent: tuple[Any, Matrix, Plan]) -> Iterator[Any]:
    """Ratings by shard: numbers of users and of items, and ratings, as bytes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ids, _, plan = sent
    columns: list[tuple[Any, ...]] = []
    known: list[Any] = [None, None]
    for batch in batches:
        codes = []
        for d, key in enumerate(KEYS):
            values = batch.column(key)
            if known[d] is None:
                known[d] = pa.array(ids[d], type=values.type)
            codes.append(pc.fill_null(pc.index_in(values, value_set=known[d]), -1).to_numpy(zero_copy_only=False))
        rating = batch.column(RATING).cast(pa.float64()).to_numpy(zero_copy_only=False)
        found = (codes[0] >= 0) & (codes[1] >= 0)  # ids that were not counted are noticed by the driver
        columns.append(tuple(values[found] for values in (*codes, rating)))
    if not columns:
        return
    user, item, rating = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    if not len(user):
        return
    shard = plan.shard_of(user, item)
    order = np.argsort(shard, kind="stable")
    numbers, begin = np.unique(shard[order], return_index=True)
    for number, rows in zip(numbers.tolist(), np.split(order, begin[1:]), strict=True):
        data = b"".join(values[rows].tobytes() for values in (user, item, rating))
        yield pa.RecordBatch.from_arrays(
            [pa.array([number], pa.int32()), pa.array([data], pa.binary())], names=["shard", "data"]
        )


def _numbers(part: int, parts: int, of: int, total: int) -> list[int]:
    """The shards of a partition, in rising order."""
    return [of + k for k in range(total) if k * parts // total == part]


def _gathered(
    rows: Iterable[tuple[int, bytes]], numbers: Sequence[int], sent: tuple[Any, Matrix, Plan]
) -> Iterator[Shard]:
    """The shards of one partition, from their parts in any order."""
    _, features, plan = sent
    found: dict[int, list[bytes]] = {number: [] for number in numbers}
    for number, data in rows:
        found[number].append(data)
    for number in numbers:
        parts = [_columns(data) for data in found.pop(number)]
        none = (np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32), np.zeros(0))
        user, item, rating = (np.concatenate(arrays) for arrays in zip(none, *parts, strict=True))
        order = np.lexsort((rating, item, user))
        user, item, rating = user[order], item[order], rating[order]
        single = rating.astype(np.float32)
        first, last = plan.users(number)
        yield Shard(
            number,
            first,
            last,
            user,
            item,
            single if (single == rating).all() else rating,
            features_of(features, first, last),
            number >= plan.n_usual,
        )


def _columns(data: bytes) -> tuple[Any, Any, Any]:
    n = len(data) // 16
    return (
        np.frombuffer(data, np.int32, n),
        np.frombuffer(data, np.int32, n, 4 * n),
        np.frombuffer(data, np.float64, n, 8 * n),
    )
