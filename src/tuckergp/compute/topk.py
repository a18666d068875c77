"""The k largest scores of each row, without sorting the others."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tuckergp.compute.compiled import jit
from tuckergp.compute.contract import Array
from tuckergp.compute.threads import run_ranges

__all__ = ["top_k"]

# How many rows one call takes.
ROWS = 16

# Up to this many scores NumPy sorts all of them: a process that makes one short list then need not load compiled code.
FEW = 8_192


def top_k(
    scores: npt.NDArray[np.float32], k: int, seen_indptr: npt.NDArray[np.int64], seen_indices: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """The columns of the k largest scores of each row, best first, equal ones in the order of the columns.

    Parameters
    ----------
    scores : ndarray of float32, shape (n, m)
        Overwritten. Minus infinity never counts.
    k : int
    seen_indptr, seen_indices : ndarray of int64
        Columns that row i must not get are ``seen_indices[seen_indptr[i] : seen_indptr[i + 1]]``.

    Returns
    -------
    ndarray of int64, shape (n, k)
        -1 where a row has fewer.

    Examples
    --------
    >>> scores = np.array([[3, 2, 1], [1, 2, 3]], dtype=np.float32)
    >>> top_k(scores, 2, np.array([0, 1, 1]), np.array([0]))
    array([[1, 2],
           [2, 1]])
    """
    items = np.full((len(scores), k), -1, dtype=np.int64)
    if scores.size <= FEW:
        for i, row in enumerate(scores):
            row[seen_indices[seen_indptr[i] : seen_indptr[i + 1]]] = -np.inf
            best = np.argsort(-row, kind="stable")[:k]
            best = best[row[best] > -np.inf]
            items[i, : len(best)] = best
        return items
    bounds = np.append(np.arange(0, len(scores), ROWS), len(scores))
    run_ranges(_top_rows, bounds, np.ascontiguousarray(scores), seen_indptr, seen_indices, items)
    return items


@jit
def _top_rows(first: int, last: int, scores: Array, seen_indptr: Array, seen_indices: Array, items: Array) -> None:
    k = items.shape[1]
    best = np.empty(k, dtype=np.float32)
    for i in range(first, last):
        for place in range(seen_indptr[i], seen_indptr[i + 1]):
            scores[i, seen_indices[place]] = -np.inf
        count = 0
        least = np.float32(-np.inf)
        for j in range(scores.shape[1]):
            value = scores[i, j]
            if value > least:
                # insertion into the sorted list: few values get here once it is full
                at = count if count < k else k - 1
                while at > 0 and best[at - 1] < value:
                    best[at] = best[at - 1]
                    items[i, at] = items[i, at - 1]
                    at -= 1
                best[at] = value
                items[i, at] = j
                if count < k:
                    count += 1
                if count == k:
                    least = best[k - 1]
