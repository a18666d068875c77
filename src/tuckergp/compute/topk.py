"""The k largest of the products of every row of Q with all rows of V, exactly, without the matrix of products.

Rows are taken in blocks and items in tiles. For a tile, one matrix product in float32 gives upper bounds of all its
products (see `tuckergp.compute.bounds`); an item whose bound does not reach the row's k-th best so far is done with.
The others' bounds are tightened step by step, and what is left is multiplied out in float64. What is returned
therefore depends neither on blocks and tiles nor on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from tuckergp.compute.bounds import STEP, Bounds, make_bounds, rotate, tighten
from tuckergp.compute.contract import Array, jit
from tuckergp.compute.threads import share

__all__ = ["top_products"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Rows from which bounds are worth making; fewer are multiplied out.
FEW_ROWS = 256

# Rows of a block. A thread holds a block's bounds for one tile.
BLOCK = 512

# Bounds compared at once in the search for one that reaches the threshold.
CHUNK = 32


def top_products(
    Q: npt.NDArray[np.float32],
    V: npt.NDArray[np.float32],
    k: int,
    seen_indptr: npt.NDArray[np.integer],
    seen_indices: npt.NDArray[np.integer],
    allowed: npt.NDArray[np.bool_] | None = None,
) -> tuple[Ints, Floats]:
    """The best k items of every row by q_i . v_j, best first; equal ones in order of the items.

    Products are sums in float64. On as many threads as numba is set to use. Beside arguments and results it holds at
    most about 9 w + 1,000 bytes an item, 0.3 MB times w while it looks for coordinates, and 4 MB + 0.02 MB times w a
    thread, however many rows there are.

    Parameters
    ----------
    Q : ndarray of float32, shape (n, w)
        Finite, as V.
    V : ndarray of float32, shape (m, w)
    k : int
        1 or more.
    seen_indptr : ndarray of int, shape (n + 1,)
        Items that row i must not get are ``seen_indices[seen_indptr[i] : seen_indptr[i + 1]]``.
    seen_indices : ndarray of int
    allowed : ndarray of bool, shape (m,), or None
        Items that anyone may get; None for all.

    Returns
    -------
    items : ndarray of int64, shape (n, k)
        -1 where a row has fewer than k items.
    scores : ndarray of float64, shape (n, k)
        Minus infinity there.

    Examples
    --------
    >>> Q, V = np.float32([[1, 0], [0, 1]]), np.float32([[3, 1], [2, 2], [1, 3]])
    >>> items, scores = top_products(Q, V, 2, np.array([0, 1, 1]), np.array([0]))
    >>> items
    array([[1, 2],
           [2, 1]])
    >>> scores
    array([[2., 1.],
           [3., 2.]])
    """
    Q, V = (np.ascontiguousarray(table, dtype=np.float32) for table in (Q, V))
    candidates = np.arange(len(V)) if allowed is None else np.flatnonzero(allowed)
    indptr, seen = in_order(seen_indptr, seen_indices)
    items, scores = np.full((len(Q), k), -1, dtype=np.int64), np.full((len(Q), k), -np.inf)
    if not len(Q) or not len(candidates):
        return items, scores
    with threadpool_limits(limits=1, user_api="blas"):  # rows are shared, products of one block are not
        few = len(Q) < FEW_ROWS
        block = 1 if few else BLOCK
        starts = np.append(np.arange(0, len(Q), block), len(Q))
        if few:
            share(multiply_out, starts, Q, V, candidates, indptr, seen, items, scores)
        else:
            bounds = make_bounds(Q, V, candidates, k, indptr, seen)
            share(search, starts, Q, V, candidates, bounds, indptr, seen, items, scores)
    return items, scores


def search(
    first: int, last: int, Q: Array, V: Array, candidates: Array, bounds: Bounds, indptr: Array, seen: Array,
    items: Array, scores: Array,
) -> None:  # fmt: skip
    """The best items of some rows, by blocks."""
    widest = max(tile.last - tile.first for tile in bounds.tiles)
    work = np.empty(BLOCK * widest, dtype=np.float32)
    for start in range(first, last, BLOCK):
        rows = slice(start, min(start + BLOCK, last))
        block = rotate(Q[rows], bounds.to_rows, bounds.error, bounds.unit)
        for tile in bounds.tiles:
            sums = work[: len(block.rows) * len(tile.tail)].reshape(len(block.rows), -1)
            np.matmul(block.rows[:, : tile.level * STEP], tile.columns, out=sums)
            if tile.first == 0:
                start_heaps(
                    sums, block.units, bounds.number, Q[rows], V, indptr[start:], seen, items[rows], scores[rows]
                )
            scan(
                sums, tile.level, tile.first, tile.tail, *block, *bounds.items[:2], bounds.number, Q[rows], V,
                indptr[start:], seen, items[rows], scores[rows],
            )  # fmt: skip
        fill(block.units, candidates, indptr[start:], seen, items[rows], scores[rows])
        finish(items[rows], scores[rows])


def in_order(indptr: npt.NDArray[Any], indices: npt.NDArray[Any]) -> tuple[Ints, npt.NDArray[Any]]:
    """The same sets, each in ascending order."""
    starts = np.ascontiguousarray(indptr, dtype=np.int64) - int(indptr[0])
    values = np.ascontiguousarray(indices[int(indptr[0]) : int(indptr[-1])], dtype=np.int32)
    if not ascending(starts, values):
        values = values[np.lexsort((values, np.repeat(np.arange(len(starts) - 1), np.diff(starts))))]
    return starts, values


@jit
def ascending(indptr: Array, indices: Array) -> bool:
    """Whether the indices of every row are."""
    for i in range(indptr.size - 1):
        for e in range(indptr[i] + 1, indptr[i + 1]):
            if indices[e] < indices[e - 1]:
                return False
    return True


@jit
def contains(values: Array, first: int, last: int, wanted: int) -> bool:
    """Whether ascending values have one of this size between two places."""
    while first < last:
        middle = (first + last) // 2
        if values[middle] < wanted:
            first = middle + 1
        elif values[middle] > wanted:
            last = middle
        else:
            return True
    return False


@jit
def product(q: Array, v: Array) -> float:
    """The inner product in float64."""
    total = 0.0
    for j in range(q.size):
        total += np.float64(q[j]) * np.float64(v[j])
    return total


@jit
def worse(score: float, item: int, other_score: float, other: int) -> bool:
    """Whether an item comes after another one; an empty place, -1, comes last."""
    if score != other_score or other < 0 or item < 0:
        return score < other_score or (score == other_score and item < 0 <= other)
    return item > other


@jit
def sift(items: Array, scores: Array, size: int, score: float, item: int) -> None:
    """Replace the root, the worst, of a heap of this size."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and worse(scores[child + 1], items[child + 1], scores[child], items[child]):
            child += 1
        if not worse(scores[child], items[child], score, item):
            break
        scores[at], items[at] = scores[child], items[child]
        at = child
    scores[at], items[at] = score, item


@jit
def finish(items: Array, scores: Array) -> None:
    """Put heaps in order, best first."""
    for i in range(len(items)):
        for size in range(items.shape[1] - 1, 0, -1):
            item, score = items[i, size], scores[i, size]
            items[i, size], scores[i, size] = items[i, 0], scores[i, 0]
            sift(items[i], scores[i], size, score, item)


@jit
def multiply_out(
    first: int, last: int, Q: Array, V: Array, candidates: Array, indptr: Array, seen: Array, items: Array,
    scores: Array,
) -> None:  # fmt: skip
    """The best items of some rows by all products."""
    k = items.shape[1]
    for i in range(first, last):
        for item in candidates:
            score = product(Q[i], V[item])
            if worse(scores[i, 0], items[i, 0], score, item) and not contains(seen, indptr[i], indptr[i + 1], item):
                sift(items[i], scores[i], k, score, item)
    finish(items[first:last], scores[first:last])


@jit
def threshold(score: float, unit: float) -> np.float32:
    """What a bound must reach so that its item may be as good as this: in units of the bounds, rounded down."""
    value = np.float32(score / unit)
    return np.float32(value - abs(value) * np.float32(3e-7))


@jit
def any_reaches(sums: Array, rest: np.float32, tail: Array, limit: np.float32) -> bool:
    """Whether any sum + rest * tail does; a count, unlike a search, is vectorised."""
    count = np.int32(0)
    for j in range(sums.size):
        count += np.int32(sums[j] + rest * tail[j] >= limit)
    return bool(count > 0)


@jit
def start_heaps(
    sums: Array, units: Array, number: Array, Q: Array, V: Array, indptr: Array, seen: Array, items: Array,
    scores: Array,
) -> None:  # fmt: skip
    """Fill heaps from the first tile by the largest sums, which are about the best, so that few items pass later."""
    k = items.shape[1]
    about = np.empty(k)
    for i in range(len(sums)):
        if units[i] == np.inf:
            continue
        about[:] = -np.inf
        for j in range(sums.shape[1]):
            if sums[i, j] > about[0] and not contains(seen, indptr[i], indptr[i + 1], number[j]):
                sift(items[i], about, k, sums[i, j], number[j])
        chosen = items[i].copy()
        items[i] = -1
        for item in chosen:
            if item >= 0:
                sift(items[i], scores[i], k, product(Q[i], V[item]), item)


@jit
def scan(
    sums: Array, level: int, start: int, tail: Array, rows: Array, tails: Array, units: Array, item_rows: Array,
    item_tails: Array, number: Array, Q: Array, V: Array, indptr: Array, seen: Array, items: Array, scores: Array,
) -> None:  # fmt: skip
    """Take from a tile, whose first item is ``start``, what belongs among the best; heaps have the worst first."""
    columns, k = sums.shape[1], items.shape[1]
    for i in range(len(sums)):
        if units[i] == np.inf:
            continue
        own, rest = sums[i], tails[i, level]
        limit = threshold(scores[i, 0], units[i])
        for first in range(0, columns, CHUNK):
            last = min(first + CHUNK, columns)
            if not any_reaches(own[first:last], rest, tail[first:last], limit):
                continue
            for j in range(first, last):
                if own[j] + rest * tail[j] < limit:
                    continue
                at = start + j
                if not tighten(own[j], limit, level, rows[i], tails[i], item_rows[at], item_tails[at]):
                    continue
                item = number[at]
                if contains(seen, indptr[i], indptr[i + 1], item):
                    continue
                score = product(Q[i], V[item])
                if worse(scores[i, 0], items[i, 0], score, item) and not (items[i] == item).any():
                    sift(items[i], scores[i], k, score, item)
                    limit = threshold(scores[i, 0], units[i])


@jit
def fill(units: Array, candidates: Array, indptr: Array, seen: Array, items: Array, scores: Array) -> None:
    """Give rows of zeros the first items, as all are alike."""
    for i in range(units.size):
        if units[i] == np.inf:
            for item in candidates:
                if items[i, 0] >= 0:
                    break
                if not contains(seen, indptr[i], indptr[i + 1], item):
                    sift(items[i], scores[i], items.shape[1], 0.0, item)
