"""EASE and nearest items where there are many more items than users: the same scores without a dense matrix of items.

`tuckergp.baselines` has both for usual sizes; here clicks may also have weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

__all__ = ["ease", "nearest_items"]


def ease(clicks: sparse.csr_array, rows: Any, l2: float) -> Any:
    """Scores of all items for some rows of ``clicks`` X (n_users, n_items) by EASE, shape (n_rows, n_items).

    The inverse of X'X + l2 is (1 - X' K X) / l2 with K = (X X' + l2)^-1, of users by users (Woodbury).
    """
    K = np.linalg.inv((clicks @ clicks.T).toarray() + l2 * np.eye(clicks.shape[0]))
    half = (clicks.T @ K).T  # K X
    diagonal = 1.0 - np.asarray(clicks.multiply(half).sum(axis=0)).ravel()
    mine = clicks[rows]
    projected = mine.toarray() - (mine @ clicks.T) @ half
    return mine.toarray() - projected / diagonal


def nearest_items(clicks: sparse.csr_array, rows: Any, neighbours: int, shrinkage: float) -> Any:
    """Scores of all items for some rows of ``clicks`` by each item's most similar ones, shape (n_rows, n_items)."""
    together = sparse.coo_array(clicks.T @ clicks)
    root = np.sqrt(together.diagonal())
    similar = together.data / (root[together.row] * root[together.col] + shrinkage)
    others = together.row != together.col
    table = sparse.csc_array((similar[others], (together.row[others], together.col[others])), shape=together.shape)
    for start, end in zip(table.indptr[:-1], table.indptr[1:], strict=True):
        if end - start > neighbours:
            column = table.data[start:end]
            column[column < np.partition(column, -neighbours)[-neighbours]] = 0.0
    return (clicks[rows] @ table).toarray()
