"""Sums over shards that are the same, bit for bit, however shards are divided among partitions.

The shards are the leaves of a binary tree. A partition adds up what lies below whole branches of it, and the driver
goes on with these: the order of additions is that of the tree, whoever makes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["Node", "branches", "total"]

# Level and place of a branch: it holds the shards from place * 2^level on, 2^level of them where there are so many.
Node = tuple[int, int]


def branches(leaves: Iterable[tuple[int, Any]]) -> Iterator[tuple[Node, Any]]:
    """The sums of the largest branches that consecutive leaves, given by number in rising order, fill."""
    waiting: list[tuple[Node, Any]] = []
    for number, value in leaves:
        node: Node = (0, number)
        # a branch on the right joins the one on its left, if that is here
        while node[1] % 2 and waiting and waiting[-1][0] == (node[0], node[1] - 1):
            value = waiting.pop()[1] + value
            node = (node[0] + 1, node[1] // 2)
        waiting.append((node, value))
    yield from waiting


def total(found: Iterable[tuple[Node, Any]], leaves: int) -> Any:
    """The sum over the whole tree of so many leaves, from sums of branches that together hold each leaf once."""
    sums = dict(found)
    level, count = 0, leaves
    while count > 1:
        for place in range(0, count, 2):
            left, right = sums.pop((level, place), None), sums.pop((level, place + 1), None)
            if left is not None:  # else it is part of a larger branch that was given
                sums[level + 1, place // 2] = left if right is None else left + right
        level, count = level + 1, -(-count // 2)
    ((_, value),) = sums.items()
    return value
