"""From a Spark data frame of ratings to shards that stay in the workers.

Users are numbered in the order of their ids, items in that of their first user, then of their ids: the numbers of a
table that is sorted by user and item. So nothing depends on the order of rows or on partitions. A shard holds about as
many ratings as any other; a user with more than that has several, which share the work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.checks import one_of, whole
from tuckergp.data.history import KEYS, RATING, History
from tuckergp.data.names import COUNT, USUAL, missing_column, taken_names
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.recommender.settings import RecommenderSettings
from tuckergp.spark.counting import Counted, CountedHere, CountedThere, Totals, counts_by_user
from tuckergp.spark.encoding import Plan, encoded, gathered
from tuckergp.spark.frames import column_of
from tuckergp.spark.sessions import returned
from tuckergp.spark.shards import NOTHING, Features, Summary
from tuckergp.spark.sums import cut, nodes, total

__all__ = ["TASKS", "Sharded", "SparkRatings", "kind_of", "read_ratings"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
# Numbers of users or items, and which of some users, given by number, are meant.
Codes = npt.NDArray[np.int32]
Chosen = Callable[[Codes], npt.NDArray[np.bool_]]

# How many partitions, shards or tasks there may be.
TASKS = whole(1) | one_of(None)
# Ratings of a shard, about, and the fewest shards.
SHARD, FEWEST = 2_000_000, 8
# So many branches, of at most so many bytes, are added up by the driver; the workers merge more, and larger ones in
# pieces of that size, which so many jobs bring to the driver one after the other.
TOGETHER, PIECE, JOBS = 2, 2**28, 4
# Types of ids, and those of numbers whose sums are exact.
WHOLE = ("byte", "short", "integer", "long")
EXACT = (*WHOLE, "decimal")


@dataclass(frozen=True)
class SparkRatings:
    """A data frame whose columns have the usual names, and what was counted in it.

    Attributes
    ----------
    frame : pyspark.sql.DataFrame
        With user_id, item_id and rating (for clicks: their counts).
    users : Counted
    items : pyarrow.Array
        The ids of all items.
    per_item : ndarray, shape (items,)
        How many ratings each has.
    typical : float
        The median of the counts of clicks; 1 for ratings.
    names : dict
        The names that columns had.
    """

    frame: Any
    users: Counted
    items: Any
    per_item: Ints
    typical: float
    names: dict[str, str]

    def __len__(self) -> int:
        return self.users.totals.ratings

    @cached_property
    def ids(self) -> tuple[list[Any], list[Any]]:
        """The ids of users, as far as the driver knows them, and of items."""
        return self.users.ids, self.items.to_pylist()

    @property
    def history(self) -> History:
        """The ids with no ratings, for what depends on ids alone."""
        none = np.zeros(0, dtype=np.int32)
        return History(self.ids, (none, none), np.zeros(0), Table({}, "ratings", 0))

    def sharded(self, features: Features, partitions: int | None, shards: int | None) -> Sharded:
        """Send the ratings to the workers, once, with the features of their users."""
        from pyspark import StorageLevel

        context = self.frame.sparkSession.sparkContext
        partitions = partitions or context.defaultParallelism
        plan = Plan.of(self.users, shards or shards_for(len(self)))
        items, alike = context.broadcast(self.items), features.alike
        rows = self.frame.mapInArrow(
            lambda batches: encoded(batches, items.value, plan), "shard int, users binary, data binary"
        ).rdd.map(lambda row: (row[0], (bytes(row[1]), bytes(row[2]))))
        places = _places(plan, partitions)
        numbers = [np.flatnonzero(places == part).tolist() for part in range(int(places[-1]) + 1)]
        if alike is None:
            about = [(number, features.between(*plan.users(number))) for number in range(plan.n_usual)]
            rows = rows.union(context.parallelize(about, len(numbers)))
        placed = rows.partitionBy(len(numbers), lambda shard: int(places[shard]))
        made = placed.mapPartitionsWithIndex(lambda part, found: gathered(found, numbers[part], plan, alike), True)
        hot = range(int(places[plan.n_usual - 1]) + 1, len(numbers))
        count = sum(len(nodes(each)) for each in numbers)
        return Sharded(context, made.persist(StorageLevel.MEMORY_AND_DISK), hot, plan, items, count)


def _places(plan: Plan, partitions: int) -> Ints:
    """The partition of each shard: those of whole users evenly in order, then the pieces of hot users."""
    parts, first = [], 0
    for count in (plan.n_usual, plan.n_shards - plan.n_usual):
        most = min(partitions, count)
        parts.append(first + np.arange(count) * most // max(count, 1))
        first += most
    return np.concatenate(parts)


def shards_for(ratings: int) -> int:
    """How many shards to make of so many ratings: a power of two."""
    return int(max(FEWEST, 2 ** int(np.ceil(np.log2(max(ratings / SHARD, 1))))))


@dataclass(frozen=True)
class Sharded:
    """Ratings as shards in the workers.

    Attributes
    ----------
    context : SparkContext
    all : RDD of Shard
    hot : range
        The partitions of pieces of hot users.
    plan : Plan
    items : Broadcast
        The ids of items, from which shards are made, again where a worker died.
    branches : int
        Of the tree of sums (`tuckergp.spark.sums`) that the partitions return together.
    """

    context: Any
    all: Any
    hot: range
    plan: Plan
    items: Any
    branches: int

    @cached_property
    def summary(self) -> Summary:
        """Of all ratings; the first job, which makes the shards."""
        found = sorted(self.run(lambda shards: ((shard.number, shard.summary()) for shard in shards)))
        return reduce(Summary.joined, (summary for _, summary in found), NOTHING)

    def run(self, task: Callable[[Iterable[Any]], Iterable[Any]], hot: bool = False) -> list[Any]:
        """What a task makes of the shards of each partition, of all or of those of hot users."""
        return self._run(self.all, task, list(self.hot) if hot else None)

    def _run(self, rdd: Any, task: Callable[[Iterable[Any]], Iterable[Any]], partitions: list[int] | None) -> list[Any]:
        with returned():
            found: list[Any] = self.context.runJob(rdd, task, partitions)
        return found

    def sum(self, task: Callable[[Iterable[Any]], Iterable[Any]], size: int) -> Floats | None:
        """The sum over all shards of arrays (size,), whose branches ``task`` makes; None where some are missing."""
        pieces, place = self._pieces(size), 0
        if pieces == 1:
            return total(self.run(task), self.plan.n_shards)  # type: ignore[no-any-return]
        whole = np.empty(size)
        for piece in self._merged(task, pieces):
            if piece is None:
                return None
            whole[place : place + len(piece)] = piece
            place += len(piece)
        return whole

    @contextmanager
    def sending(self, value: Any) -> Iterator[Any]:
        """Have a value in the workers, as that of what this yields, until the jobs inside are done."""
        sent = self.context.broadcast(value)
        try:
            yield sent
        finally:
            sent.destroy()

    def returned_by(self, size: int) -> int:
        """About how many bytes of the branches of such arrays a job returns at most."""
        pieces = self._pieces(size)
        return 8 * size * self.branches if pieces == 1 else -(-pieces // JOBS) * -(-8 * size // pieces)

    def _pieces(self, size: int) -> int:
        """Into how many pieces the workers cut arrays (size,), each of which one of them adds up; 1 for none of it."""
        if self.branches <= TOGETHER and 8 * size <= PIECE:
            return 1
        return max(2, int(self.all.getNumPartitions()), -(-8 * size // PIECE))

    def _merged(self, task: Callable[[Iterable[Any]], Iterable[Any]], pieces: int) -> Iterator[Floats | None]:
        leaves = self.plan.n_shards
        placed = self.all.mapPartitions(lambda shards: cut(task(shards), pieces)).partitionBy(pieces, int)
        merged = placed.mapPartitions(lambda found: [total((branch for _, branch in found), leaves)])
        try:
            for some in np.array_split(np.arange(pieces), min(pieces, JOBS)):
                yield from self._run(merged, iter, some.tolist())
        finally:  # the files of the shuffle, which Spark would keep until its next collection of garbage
            placed._jrdd.rdd().cleanShuffleDependencies(False)

    def of_users(self, chosen: Chosen) -> tuple[Codes, Codes, Floats]:
        """Users, items and ratings of the users that are chosen, sorted by user and item."""
        found = self.run(lambda shards: (shard.some(chosen(shard.user)) for shard in shards))
        user, item, rating = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        order = np.lexsort((rating, item, user))
        return user[order], item[order], rating[order].astype(np.float64)

    def release(self) -> None:
        """Free the memory of the workers."""
        self.all.unpersist()
        self.items.destroy()


def read_ratings(
    frame: Any, settings: RecommenderSettings, there: bool = False
) -> tuple[SparkRatings, RecommenderSettings]:
    """Check the data frame and number its ids; also the settings with the likelihood that ``"auto"`` means for it.

    ``there`` leaves the ids of users in the workers.
    """
    from pyspark.sql import functions as F

    frame, names, settings = _usual_names(frame, settings)
    clicks = settings.kind.all_pairs
    value = COUNT if clicks else RATING
    shown = {**{key: names.get(key, key) for key in KEYS}, RATING: names.get(value, value)}
    _check_types(frame, shown)
    users = (CountedThere if there else CountedHere).of(counts_by_user(frame, clicks))
    _check_counts(users.totals, shown)
    number = F.count_distinct(KEYS[0]) if clicks else F.count("*")
    with returned():
        items = frame.groupBy(KEYS[1]).agg(number.alias("n"), F.min(KEYS[0]).alias("first")).toArrow()
    items = items.sort_by([("first", "ascending"), (KEYS[1], "ascending")])
    typical = 1.0
    if clicks:
        settings.kind.check(
            np.array([users.totals.low]),
            lambda row: f"ratings: a value of column {shown[RATING]!r}",
        )
        frame = _added_up(frame)
        typical = float(frame.agg(F.median(RATING)).first()[0])
    per_item = items["n"].to_numpy().astype(np.int64)
    return SparkRatings(frame, users, items[KEYS[1]].combine_chunks(), per_item, typical, names), settings


def _usual_names(frame: Any, settings: RecommenderSettings) -> tuple[Any, dict[str, str], RecommenderSettings]:
    """The three columns that count, by their usual names; clicks have a rating that is their count, or 1."""
    from pyspark.sql import functions as F

    existing, given = list(frame.columns), settings.columns or {}
    taken = taken_names(existing, "ratings", given, USUAL[:3], (), settings.kind.counts)
    settings = settings.decided(RATING in taken or RATING in existing)
    value = RATING
    if settings.kind.all_pairs:
        value = COUNT
        if RATING in given:
            raise InputError(
                f"Clicks have counts and no ratings; name their column by columns={{'count': {given[RATING]!r}}}."
            )
        taken = taken_names(existing, "ratings", given, (*KEYS, COUNT), ())
    columns = {usual: taken.get(usual, given.get(usual, usual)) for usual in (*KEYS, value)}
    for usual in (*KEYS, *(() if value == COUNT and COUNT not in given else (value,))):
        if columns[usual] not in existing:
            raise missing_column("ratings", usual, existing, given)
    chosen = [column_of(frame, columns[key], "ratings").alias(key) for key in KEYS]
    number = column_of(frame, columns[value], "ratings") if columns[value] in existing else F.lit(1)
    frame = frame.select(*chosen, number.alias(RATING))
    return frame, {usual: name for usual, name in columns.items() if usual != name and name in existing}, settings


def _check_types(frame: Any, shown: dict[str, str]) -> None:
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    for key in KEYS:
        kind = kinds[key].simpleString()
        if kinds[key].typeName() not in WHOLE and kind != "string":  # a collation would take several ids for one
            raise InputError(
                f"ratings column {shown[key]!r} is of type {kind}, and ids are whole numbers or texts; cast it to "
                f"bigint or string."
            )
    if kinds[RATING].typeName() not in (*EXACT, "float", "double"):
        kind = kinds[RATING].simpleString()
        raise InputError(f"ratings column {shown[RATING]!r} is of type {kind}; cast it to double.")


def _check_counts(totals: Totals, shown: dict[str, str]) -> None:
    """Refuse what is empty, or has missing or infinite values; ``shown`` are the names that columns had."""
    *missing, beyond = totals.missing
    for name, count in zip((*KEYS, RATING), missing, strict=True):
        if count:
            raise InputError(
                f"ratings column {shown[name]!r} has no value in {count:,} rows; leave them out with ratings.dropna()."
            )
    if beyond:
        raise InputError(
            f"ratings column {shown[RATING]!r} is infinite, or beyond 1e150, in {beyond:,} rows; correct them, or "
            f"leave them out with ratings.filter()."
        )
    if not totals.users:
        raise InputError("ratings is empty; there is nothing to learn from.")


def _added_up(frame: Any) -> Any:
    """Counts of one pair added up, in one order whatever that of the rows is: what was chosen twice counts twice."""
    from pyspark.sql import functions as F

    if frame.schema[RATING].dataType.typeName() in EXACT:
        total = F.sum(RATING).cast("double")
    else:
        counts = F.array_sort(F.collect_list(F.col(RATING).cast("double")))
        total = F.aggregate(counts, F.lit(0.0), lambda sum_so_far, count: sum_so_far + count)
    return frame.groupBy(*KEYS).agg(total.alias(RATING))


def kind_of(ids: list[Any]) -> str:
    """The type of ids in Spark."""
    return "bigint" if isinstance(ids[0], int) else "string"
