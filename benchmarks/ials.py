"""Implicit ALS with a penalty scaled by frequency (Rendle, Krichene, Zhang and Koren, 2022), in NumPy: a peer.

    sum over clicks of (1 - f)^2 + w0 sum over all pairs of f^2 + sum over rows of lambda_row |factors|^2
    lambda_user = lambda (clicks of the user + w0 items)^nu,   lambda_item = lambda (clicks of the item + w0 users)^nu

Each round solves for all users, then for all items. Clicks may have weights, which multiply their squares.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

__all__ = ["factorised"]


def factorised(
    clicks: sparse.csr_array,
    factors: int,
    unobserved: float,
    regularization: float,
    nu: float = 1.0,
    iterations: int = 16,
    seed: int = 0,
) -> tuple[Any, Any]:
    """Factors of users and items, (n_users, r) and (n_items, r); ``clicks`` (n_users, n_items) holds their weights."""
    rng = np.random.default_rng(seed)
    sides = [clicks.tocsr(), clicks.T.tocsr()]
    rows = [0.1 / factors**0.5 * rng.standard_normal((side.shape[0], factors)) for side in sides]
    for _ in range(iterations):
        for d, side in enumerate(sides):
            rows[d] = solved(side, rows[1 - d], unobserved, regularization, nu)
    return rows[0], rows[1]


def solved(clicks: sparse.csr_array, others: Any, unobserved: float, regularization: float, nu: float) -> Any:
    """The factors of the rows of a sparse matrix given those of its columns."""
    count, r = np.diff(clicks.indptr), others.shape[1]
    penalty = regularization * (count + unobserved * len(others)) ** nu
    gram, b = unobserved * others.T @ others, clicks @ others
    out = np.zeros((len(count), r))
    for m in range(len(count)):  # a row at a time: as little memory as there are clicks in it
        some = slice(clicks.indptr[m], clicks.indptr[m + 1])
        z = others[clicks.indices[some]]
        A = gram + (z * clicks.data[some, None]).T @ z
        A[np.diag_indices(r)] += penalty[m]
        out[m] = np.linalg.solve(A, b[m])
    return out
