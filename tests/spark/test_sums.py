"""Sums over shards do not depend on how shards are divided."""

from itertools import pairwise

import numpy as np
import pytest

from tuckergp.spark.sums import branches, total


def divided(values, parts):
    """Branch sums of consecutive leaves, a part after the other."""
    n = len(values)
    cuts = [k * n // parts for k in range(parts + 1)]
    return [each for first, last in pairwise(cuts) for each in branches((k, values[k]) for k in range(first, last))]


@pytest.mark.parametrize("leaves", [1, 2, 7, 8, 13, 32])
def test_any_division_gives_the_same_bits(leaves):
    values = list(np.random.default_rng(leaves).standard_normal(leaves) * 10.0 ** np.arange(leaves))
    whole = total(divided(values, 1), leaves)
    assert np.isclose(whole, sum(values))
    assert {total(divided(values, parts), leaves) for parts in range(1, leaves + 1)} == {whole}


def test_a_partition_sends_few_branches():
    assert [node for node, _ in branches((k, 1.0) for k in range(8))] == [(3, 0)]
    assert [node for node, _ in branches((k, 1.0) for k in range(3, 8))] == [(0, 3), (2, 1)]


def test_the_order_is_that_of_the_tree():
    values = ["a", "b", "c", "d", "e"]
    assert total(divided(values, 2), 5) == "abcde"
