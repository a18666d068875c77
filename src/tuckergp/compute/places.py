"""Places in any number of dimensions: a coarse-to-fine order, and the nearest places before each in it.

Both are what Vecchia's approximation needs (`tuckergp.compute.field`). Distances are Euclidean, so coordinates are in
units of their lengthscales.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.random import mixed

__all__ = ["Search", "coarse_to_fine", "nearest_earlier"]

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int32]

FINEST = 16
"""Halvings of the largest extent after which places are the same for the order."""

SHARES = (1 / 8, 1 / 64)
"""Shares of the places, the first in their order, of which some nearest ones surround a new place."""

FEW_COLUMNS = 3
"""Dimensions in which they do: a gap is no hole with an edge in more, and the nearest places tell most."""

SOME = 65_536
"""Places whose neighbours are looked up at once."""


def coarse_to_fine(X: Floats) -> npt.NDArray[np.intp]:
    """An order of places X (M, p) in which each is far from those before it, as nearly as cells of a grid tell.

    An approximate maximin order in O(M log M): of every cell of a grid that no place was taken from, the place nearest
    to its centre is next, in pseudo-random order of cells; then come cells of half the volume.
    """
    extent = float(np.ptp(X, axis=0).max(initial=0.0)) if len(X) else 0.0
    unit = (X - X.min(axis=0, initial=np.inf)) / (extent or 1.0)
    order: list[npt.NDArray[np.intp]] = []
    left, taken = np.arange(len(X)), np.zeros(0, dtype=np.intp)
    for level in range(FINEST * X.shape[1]):
        if not len(left):
            break
        places = unit * 2.0 ** (level / X.shape[1])
        cell = np.floor(places)
        key = _key(cell)
        free = left[~np.isin(key[left], key[taken])]
        offset = ((places[free] - cell[free] - 0.5) ** 2).sum(axis=1)
        by_cell = free[np.lexsort((offset, key[free]))]
        _, firsts = np.unique(key[by_cell], return_index=True)
        order.append(by_cell[firsts])
        taken = np.concatenate(order)
        rest = np.ones(len(X), dtype=bool)
        rest[taken] = False
        left = np.flatnonzero(rest)
    return np.concatenate([*order, left])


def _key(cell: Floats) -> npt.NDArray[np.uint64]:
    """A number for each cell (M, p): two cells that share one, which is next to impossible, cost a little accuracy."""
    key = np.zeros(len(cell), dtype=np.uint64)
    for column in cell.astype(np.uint64).T:
        key = mixed(key ^ column)
    return key


def nearest_earlier(X: Floats, m: int) -> Index:
    """The m nearest of the places before each place, (M, m), nearest first; -1 where there are fewer."""
    rows, m = len(X), min(m, max(len(X) - 1, 0))
    out = np.full((rows, m), -1, dtype=np.int32)
    first = min(rows, 2 * m + 1)
    for i in range(1, first):
        by_distance = np.argsort(((X[:i] - X[i]) ** 2).sum(axis=1), kind="stable")[:m]
        out[i, : len(by_distance)] = by_distance
    while first < rows:
        # at least half of the places of the tree are before each of those asked about
        last = min(2 * first, rows)
        tree = _tree(X[:last])
        for begin in range(first, last, SOME):
            _search(tree, X, np.arange(begin, min(begin + SOME, last)), m, out)
        first = last
    return out


def _tree(X: Floats) -> Any:
    from scipy.spatial import KDTree  # a tenth of a second to load, for models with places alone

    return KDTree(X)


def _search(tree: Any, X: Floats, asked: npt.NDArray[np.intp], m: int, out: Index) -> None:
    """Write the m nearest earlier places of those asked about to their rows of ``out``."""
    count = 2 * m + 2
    while len(asked):
        count = min(count, tree.n)
        found = tree.query(X[asked], count)[1]
        earlier = found < asked[:, None]
        done = (earlier.sum(axis=1) >= m) | (count == tree.n)
        places = np.argsort(~earlier[done], axis=1, kind="stable")[:, :m]
        out[asked[done]] = np.take_along_axis(found[done], places, axis=1)
        asked, count = asked[~done], 2 * count


class Search:
    """Which of the places X (M, p), in an order from coarse to fine, are near to points."""

    def __init__(self, X: Floats) -> None:
        self.X = X
        self._trees: dict[int, Any] = {}

    def nearest(self, points: Floats, k: int, first: int | None = None) -> Index:
        """The k nearest places to points (n, p), of the ``first`` or of all, (n, min(k, M)), nearest first."""
        count = len(self.X) if first is None else first
        if count not in self._trees:
            self._trees[count] = _tree(self.X[:count])
        return np.asarray(self._trees[count].query(points, np.arange(1, min(k, count) + 1))[1], dtype=np.int32)

    def around(self, points: Floats, k: int) -> Index:
        """The k places around points (n, p), all if there are fewer, (n, min(k, M)).

        In few dimensions a third are the nearest of each of the coarser parts `SHARES`: those of all may lie on one
        side of a point in a wide gap. The rest are the nearest of all.
        """
        nearest = self.nearest(points, k)
        part = k // (1 + len(SHARES))
        if k >= len(self.X) or self.X.shape[1] > FEW_COLUMNS or not part:
            return nearest
        coarse = [self.nearest(points, part, max(int(share * len(self.X)), part)) for share in SHARES]
        places = np.concatenate([*coarse, nearest], axis=1)
        # the first k different ones of each row
        sorter = np.argsort(places, axis=1, kind="stable")
        ascending = np.take_along_axis(places, sorter, axis=1)
        again = np.zeros(places.shape, dtype=bool)
        np.put_along_axis(again, sorter[:, 1:], ascending[:, 1:] == ascending[:, :-1], axis=1)
        return np.take_along_axis(places, np.argsort(again, axis=1, kind="stable")[:, :k], axis=1)
