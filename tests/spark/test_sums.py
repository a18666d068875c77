"""Sums over shards do not depend on how shards are divided, and the driver holds few of them."""

import tracemalloc
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from tests.spark.pieces import Apart, Parts
from tuckergp.compute.packed import packed_size
from tuckergp.errors import InputError
from tuckergp.spark import reading
from tuckergp.spark.problem import Workers
from tuckergp.spark.reading import Sharded
from tuckergp.spark.sums import branches, cut, nodes, total


def divided(values, parts):
    """Branch sums of consecutive leaves, a part after the other."""
    n = len(values)
    cuts = [k * n // parts for k in range(parts + 1)]
    return [each for first, last in pairwise(cuts) for each in branches((k, values[k]) for k in range(first, last))]


def by_hand(values):
    """The sum along a binary tree, a level after the other."""
    while len(values) > 1:
        pairs = [values[k : k + 2] for k in range(0, len(values), 2)]
        values = [pair[0] + pair[1] if len(pair) == 2 else pair[0] for pair in pairs]
    return values[0]


def tables(leaves, size=7):
    return np.random.default_rng(leaves).standard_normal((leaves, size)) * 10.0 ** np.arange(leaves)[:, None]


@pytest.mark.parametrize("leaves", [1, 2, 7, 8, 13, 32])
def test_any_division_gives_the_same_bits(leaves):
    values = list(np.random.default_rng(leaves).standard_normal(leaves) * 10.0 ** np.arange(leaves))
    whole = total(divided(values, 1), leaves)
    assert np.isclose(whole, sum(values))
    assert whole == by_hand(values)
    assert {total(divided(values, parts), leaves) for parts in range(1, leaves + 1)} == {whole}


@pytest.mark.parametrize("leaves", [1, 7, 8, 13, 32])
def test_sums_of_pieces_are_pieces_of_the_sum(leaves):
    values = tables(leaves)
    for pieces in (1, 3, 9):
        parts = list(cut(divided(values.copy(), 5), pieces))
        found = [total((branch for number, branch in parts if number == k), leaves) for k in range(pieces)]
        np.testing.assert_array_equal(np.concatenate(found), by_hand(list(values)))


def test_a_partition_sends_few_branches():
    assert nodes(range(8)) == [(3, 0)]
    assert nodes(range(3, 8)) == [(0, 3), (2, 1)]


def test_the_order_is_that_of_the_tree():
    values = ["a", "b", "c", "d", "e"]
    assert total(divided(values, 2), 5) == "abcde"


def test_a_missing_leaf_leaves_no_total():
    found = divided(list(np.arange(13.0)), 4)
    for missing in range(len(found)):
        assert total(found[:missing] + found[missing + 1 :], 13) is None
    assert total([], 13) is None


def sharded(leaves, partitions, task=lambda part: []):
    """Shards whose partitions are given by number and send what a task makes of it."""
    cuts = [k * leaves // partitions for k in range(partitions + 1)]
    rdd = Parts(partitions, lambda part: iter(range(cuts[part], cuts[part + 1])))
    count = sum(len(nodes(range(a, b))) for a, b in pairwise(cuts))
    return Sharded(Apart(), rdd, range(0), SimpleNamespace(n_shards=leaves), None, count)


@pytest.mark.parametrize("partitions", [1, 2, 3, 8, 13])
def test_sums_are_those_of_the_tree_whoever_adds_them_up(partitions, monkeypatch):
    values = tables(13, 1_000)
    task = lambda shards: branches((shard, values[shard].copy()) for shard in shards)  # noqa: E731
    given = sharded(13, partitions)
    for most in (reading.PIECE, 1_000):  # bytes, so that even one branch is taken apart
        monkeypatch.setattr(reading, "PIECE", most)
        np.testing.assert_array_equal(given.sum(task, 1_000), by_hand(list(values)))


def test_ratings_that_changed_leave_no_sum(monkeypatch):
    request = SimpleNamespace(items=np.zeros((30, 2)), B=np.zeros((1, 2)))
    for partitions in (2, 5):
        workers = Workers(sharded(8, partitions), None, None)
        monkeypatch.setattr("tuckergp.spark.problem.sweep", lambda shards, request: iter([]))
        with pytest.raises(InputError, match="ratings changed while they were learned from"):
            workers.draw_users(request)


@pytest.mark.parametrize("partitions", [1, 2, 8, 32])
def test_the_driver_holds_three_tables_of_sums_at_most(partitions, monkeypatch):
    """Of 32 shards in two sweeps; what workers hold, in this process, is one table before and some pieces of it."""
    items, r = 20_000, 8
    size = items * packed_size(r) + r + r * r
    table, given = np.ones(size), sharded(32, partitions)
    monkeypatch.setattr(
        "tuckergp.spark.problem.sweep", lambda shards, request: ((node, table) for node in nodes(shards))
    )
    workers = Workers(given, None, None)
    request = SimpleNamespace(items=np.zeros((items, r)), B=np.zeros((1, r)))
    tracemalloc.start()
    for _ in range(2):
        cross, _ = workers.draw_users(request)
    peak = tracemalloc.get_traced_memory()[1] / table.nbytes
    tracemalloc.stop()
    assert (workers.last[1] == partitions).all()
    assert cross == pytest.approx(partitions)
    assert peak < 3.3
    assert given.returned_by(size) <= 2 * table.nbytes
