"""Counts of users and parts of shards, as Spark's workers make them, in this process."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from tuckergp.data.names import KEYS, RATING
from tuckergp.spark.counting import GAPS, Counted
from tuckergp.spark.encoding import encoded


@dataclass(frozen=True)
class InParts(Counted):
    """Users in several parts, some of them empty."""

    parts: list[Any]

    def run(self, task):
        return [(part, task(part, table)) for part, table in enumerate(self.parts) if len(table)]


def counted_of(ids, per_user, parts=1):
    """Users with the numbers of their ratings, in parts of any sizes."""
    n, none = len(ids), np.zeros(len(ids), dtype=np.int64)
    columns = {KEYS[0]: ids, "n": per_user, **{f"no {name}": none for name in GAPS}, "low": np.ones(n)}
    table, cuts = pa.table(columns), np.sort(np.random.default_rng(parts).integers(n + 1, size=parts - 1))
    return InParts([table.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, n], strict=True)])


def rows_of(table, plan, order=None, batches=3):
    """Parts of shards from a table of ratings, whose rows are in any order."""
    items = pa.array(list(dict.fromkeys(table[KEYS[1]])))
    given = pa.table({name: table[name] for name in (*KEYS, RATING)})
    given = given if order is None else given.take(pa.array(order))
    size = -(-len(given) // batches)
    found = [list(encoded(given.slice(k * size, size).to_batches(), items, plan)) for k in range(batches)]
    rows = [batch for some in found for batch in some]
    return [(row["shard"], (row["users"], row["data"])) for batch in rows for row in batch.to_pylist()]


def moved(values):
    """What comes out at the other end where values were sent one by one."""
    for value in values:
        yield pickle.loads(pickle.dumps(value, protocol=5))


@dataclass(frozen=True)
class Parts:
    """An RDD in this process: what each partition holds is made when it is asked for, and copied where it is moved."""

    count: int
    made: Callable[[int], Any]

    def getNumPartitions(self):
        return self.count

    def mapPartitions(self, task, keep=False):
        return Parts(self.count, lambda part: task(self.made(part)))

    def partitionBy(self, count, place):
        placed = [[] for _ in range(count)]
        for part in range(self.count):
            for key, value in self.made(part):
                placed[place(key)].append((key, value))
        return Parts(count, lambda part: moved(placed[part]))

    @property
    def _jrdd(self):
        return SimpleNamespace(rdd=lambda: SimpleNamespace(cleanShuffleDependencies=lambda blocking: None))


class Apart:
    """A Spark context for those."""

    def broadcast(self, value):
        return SimpleNamespace(value=value, destroy=lambda: None)

    def runJob(self, rdd, task, partitions):
        chosen = range(rdd.count) if partitions is None else partitions
        return [value for part in chosen for value in moved(task(rdd.made(part)))]
