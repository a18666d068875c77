"""How many ratings each user has: a table sorted by id, on the driver or in the workers, and totals of it.

A task is run on each part of the table, in the order of ids. What follows from parts and the totals of those before
does not depend on how many parts there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.data.names import KEYS, RATING
from tuckergp.spark.blobs import blob_of, table_in
from tuckergp.spark.sessions import returned

__all__ = ["GAPS", "NUMBER", "Counted", "CountedHere", "CountedThere", "Totals", "counts_by_user"]

# Columns: ratings of a user, and the lowest of them.
NUMBER, LOW = "n", "low"
# What rows may be without: a value of a column, or one that is finite.
GAPS = (*KEYS, RATING, "bounds")


class Totals(NamedTuple):
    """Of all users: how many, their ratings, rows that lack what `GAPS` names, the lowest rating, the first id."""

    users: int
    ratings: int
    missing: tuple[int, ...]
    low: float
    first: Any


@dataclass(frozen=True)
class Counted:
    """Users with the number of their ratings, sorted by id."""

    def run(self, task: Callable[[int, Any], Any]) -> list[tuple[int, Any]]:
        """The parts by number, in the order of ids, with what a task makes of the number and the table of each."""
        raise NotImplementedError

    def release(self) -> None:
        """Free what the workers hold."""

    @property
    def ids(self) -> list[Any]:
        """The ids that the driver knows: all, or the first one."""
        return [self.totals.first]

    @cached_property
    def totals(self) -> Totals:
        """Sums over all users."""
        found = [each for _, each in self.run(_totals)]
        users, ratings, missing, low, first = zip(Totals(0, 0, (0,) * len(GAPS), np.nan, None), *found, strict=True)
        gaps = tuple(map(sum, zip(*missing, strict=True)))
        return Totals(sum(users), sum(ratings), gaps, float(np.fmin.reduce(low)), first[1] if found else None)


@dataclass(frozen=True)
class CountedHere(Counted):
    """A table on the driver.

    Attributes
    ----------
    table : pyarrow.Table
        The columns of `counts_by_user`.
    """

    table: Any

    @classmethod
    def of(cls, counts: Any) -> CountedHere:
        """From a data frame of `counts_by_user`."""
        with returned():
            return cls(counts.toArrow().sort_by(KEYS[0]))

    def run(self, task: Callable[[int, Any], Any]) -> list[tuple[int, Any]]:
        """The whole table is the one part."""
        return [(0, task(0, self.table))] if len(self.table) else []

    @cached_property
    def ids(self) -> list[Any]:
        """All ids."""
        return list(self.table[KEYS[0]].to_pylist())

    @property
    def per_user(self) -> npt.NDArray[np.int64]:
        """The number of ratings of each user."""
        return np.asarray(self.table[NUMBER].to_numpy(), dtype=np.int64)


@dataclass(frozen=True)
class CountedThere(Counted):
    """Tables in the workers: the driver holds no list of users.

    Attributes
    ----------
    blobs : RDD of bytes
        Batches of Arrow, sorted by id through all partitions.
    """

    blobs: Any

    @classmethod
    def of(cls, counts: Any) -> CountedThere:
        """From a data frame of `counts_by_user`."""
        from pyspark import StorageLevel

        blobs = counts.sort(KEYS[0]).mapInArrow(_as_bytes, "data binary").rdd.map(lambda row: bytes(row[0]))
        return cls(blobs.persist(StorageLevel.MEMORY_AND_DISK))

    def run(self, task: Callable[[int, Any], Any]) -> list[tuple[int, Any]]:
        """A job over the parts that are not empty."""

        def of_part(part: int, blobs: Iterable[bytes]) -> Iterator[tuple[int, Any]]:
            table = _table(blobs)
            if table is not None:
                yield part, task(part, table)

        with returned():
            return sorted(self.blobs.mapPartitionsWithIndex(of_part).collect(), key=lambda found: int(found[0]))

    def release(self) -> None:
        """Free the tables."""
        self.blobs.unpersist()


def counts_by_user(frame: Any, clicks: bool) -> Any:
    """A data frame of users: the number of ratings (clicks: items), of missing values, and the lowest rating."""
    from pyspark.sql import functions as F

    value = F.col(RATING).cast("double")
    no_value = value.isNull() | F.isnan(value)
    absent = (F.col(KEYS[0]).isNull(), F.col(KEYS[1]).isNull(), no_value, ~no_value & (F.abs(value) > 1e150))
    return frame.groupBy(KEYS[0]).agg(
        (F.count_distinct(KEYS[1]) if clicks else F.count("*")).alias(NUMBER),
        *(F.sum(which.cast("long")).alias(f"no {name}") for name, which in zip(GAPS, absent, strict=True)),
        F.min(value).alias(LOW),
    )


# In the workers


def _totals(part: int, table: Any) -> Totals:
    missing = tuple(int(table[f"no {name}"].to_numpy().sum()) for name in GAPS)
    low = float(np.fmin.reduce(table[LOW].to_numpy().astype(np.float64)))
    return Totals(len(table), int(table[NUMBER].to_numpy().sum()), missing, low, table[KEYS[0]][0].as_py())


def _as_bytes(batches: Iterable[Any]) -> Iterator[Any]:
    """Each batch as bytes in one row."""
    import pyarrow as pa

    for batch in batches:
        yield pa.RecordBatch.from_arrays([pa.array([blob_of(batch)], pa.binary())], names=["data"])


def _table(blobs: Iterable[bytes]) -> Any:
    """The table of all batches; None where there is no row."""
    import pyarrow as pa

    tables = list(map(table_in, blobs))
    return pa.concat_tables(tables) if sum(map(len, tables)) else None
