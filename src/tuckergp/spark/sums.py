"""Sums over shards that are the same, bit for bit, however shards are divided among partitions.

The shards are the leaves of a binary tree. A partition adds up what lies below whole branches of it, and whoever has
the branches goes on with these, for all of an array or for a piece of it: the order of additions is that of the tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

__all__ = ["Node", "branches", "cut", "nodes", "total"]

# Level and place of a branch: it holds the shards from place * 2^level on, 2^level of them where there are so many.
Node = tuple[int, int]


def branches(leaves: Iterable[tuple[int, Any]]) -> Iterator[tuple[Node, Any]]:
    """The sums of the largest branches that consecutive leaves, given by number in rising order, fill.

    Arrays are added in place, so those of the leaves are used up.
    """
    waiting: list[tuple[Node, Any]] = []
    for number, value in leaves:
        node: Node = (0, number)
        # a branch on the right joins the one on its left, if that is here
        while node[1] % 2 and waiting and waiting[-1][0] == (node[0], node[1] - 1):
            left = waiting.pop()[1]
            left += value
            node, value = (node[0] + 1, node[1] // 2), left
        waiting.append((node, value))
    yield from waiting


def nodes(leaves: Iterable[int]) -> list[Node]:
    """The branches that consecutive leaves fill."""
    return [node for node, _ in branches((leaf, 0) for leaf in leaves)]


def cut(found: Iterable[tuple[Node, Any]], pieces: int) -> Iterator[tuple[int, tuple[Node, Any]]]:
    """Arrays of branches cut into so many pieces, each with its number: equal numbers add up apart from the others."""
    for node, value in found:
        for number, piece in enumerate(np.array_split(value, pieces)):
            yield number, (node, piece)


def total(found: Iterable[tuple[Node, Any]], leaves: int) -> Any:
    """The sum over the whole tree of so many leaves, from sums of branches; None where some leaf is in none of them.

    Arrays are added in place, so those of the branches are used up.
    """
    sums = dict(found)
    del found  # so that what is added up is freed
    if sum(min((place + 1) << level, leaves) - (place << level) for level, place in sums) != leaves:
        return None
    level, count = 0, leaves
    while count > 1:
        for place in range(0, count, 2):
            left, right = sums.pop((level, place), None), sums.pop((level, place + 1), None)
            if left is not None:  # else it is part of a larger branch that was given
                if right is not None:
                    left += right
                sums[level + 1, place // 2] = left
        level, count = level + 1, -(-count // 2)
    ((_, value),) = sums.items()
    return value
