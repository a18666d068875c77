"""Peers for rows without clicks (new items, or new users) that know only words of them: ridge, and nearest rows.

Rows are what may be new: for new items the matrix of clicks is (n_items, n_users), for new users (n_users, n_items).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from ials import factorised
from scipy import sparse

__all__ = ["nearest", "regressed"]


def regressed(clicks: sparse.csr_array, words: sparse.csr_array, penalty: float, seed: int, **options: Any) -> Any:
    """Scores of all columns for all rows, (n_rows, n_columns), from factors by `ials`.

    Those of rows without clicks are predicted from ``words`` (n_rows, n_words) by ridge regression on the other rows,
    with an intercept.
    """
    known = np.diff(clicks.indptr) > 0
    learned, columns = factorised(clicks[known], **options, seed=seed)
    X = words.toarray() - words[known].mean(axis=0)
    A, mean = X[known], learned.mean(axis=0)
    B = np.linalg.solve(A.T @ A + penalty * np.eye(A.shape[1]), A.T @ (learned - mean))
    rows = mean + X @ B
    rows[known] = learned
    return rows @ columns.T


def nearest(clicks: sparse.csr_array, words: sparse.csr_array, neighbours: int) -> Any:
    """Clicks as scores, (n_rows, n_columns).

    A row without clicks has the mean of the rows with clicks that are the most similar by the cosine of ``words``,
    weighted by it; of equally similar ones all count.
    """
    known, scores = np.diff(clicks.indptr) > 0, clicks.toarray()
    unit = words.toarray() / np.sqrt(np.maximum(words.sum(axis=1), 1.0))[:, None]
    alike = unit[~known] @ unit[known].T
    k = min(neighbours, alike.shape[1])
    alike[alike < np.partition(alike, -k, axis=1)[:, -k, None]] = 0.0
    scores[~known] = alike @ scores[known] / np.maximum(alike.sum(axis=1, keepdims=True), 1e-9)
    return scores
