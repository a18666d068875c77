"""Statistics of rows packed into one table, so that those of several machines add up: triangle of A_m, then b_m.

Row m of a table T (M, r (r + 1) / 2 + r) holds the upper triangle of A_m, row by row, and b_m.
"""

from __future__ import annotations

import numpy as np

from tuckergp.compute.compiled import jit
from tuckergp.compute.contract import Array
from tuckergp.compute.rows import finish_row
from tuckergp.compute.vectors import padded, pointer

__all__ = ["add_statistics", "explained", "packed_size", "solve_packed"]


def packed_size(r: int) -> int:
    """How many numbers the statistics of one row are."""
    return r * (r + 1) // 2 + r


@jit
def add_statistics(first: int, last: int, A: Array, b: Array, T: Array) -> None:
    """Add A (M, r, r) and b (M, r) of the rows first:last to T."""
    r = b.shape[1]
    for m in range(first, last):
        at = 0
        for j in range(r):
            for k in range(j, r):
                T[m, at] += A[m, j, k]
                at += 1
        for j in range(r):
            T[m, at + j] += b[m, j]


@jit
def solve_packed(
    first: int, last: int, alpha: float, T: Array, background: Array, share: Array,
    prior_shift: Array, precision: Array, draws: Array, out: Array,
) -> int:  # fmt: skip
    """Write factors of the rows first:last, as `tuckergp.compute.rows.solve` does, from statistics alpha T.

    ``background`` (r, r) times ``share`` (M,) is added to A where it has an entry. Returns how many rows failed.
    """
    r = precision.shape[0]
    width = padded(r)
    A, b, prior = np.empty((width, width)), np.empty(width), np.zeros((width, width))
    inverse, u, failed = np.empty(width), np.empty((4, 4)), 0
    for j in range(width):
        prior[j, j] = 1.0
    for j in range(r):
        for k in range(r):
            prior[j, k] = precision[j, k]
    for m in range(first, last):
        A[:] = 0.0
        b[:] = 0.0
        at = 0
        for j in range(r):
            for k in range(j, r):
                A[j, k] = alpha * T[m, at]
                if share.size:
                    A[j, k] += share[m] * background[j, k]
                A[k, j] = A[j, k]
                at += 1
        for j in range(r):
            b[j] = alpha * T[m, at + j]
        failed += not finish_row(
            r, width, m, pointer(A), pointer(b), pointer(prior), pointer(prior_shift), pointer(draws),
            pointer(out), pointer(inverse), pointer(u),
        )  # fmt: skip
    return failed


@jit
def explained(T: Array, psi: Array) -> Array:
    """2 b_m'psi_m - psi_m'A_m psi_m of every row, (M,): by how much psi (M, r) lowers the sum of squares."""
    r = psi.shape[1]
    out = np.zeros(len(psi))
    for m in range(len(psi)):
        at = 0
        for j in range(r):
            for k in range(j, r):
                out[m] -= T[m, at] * psi[m, j] * psi[m, k] * (1.0 if j == k else 2.0)
                at += 1
        for j in range(r):
            out[m] += 2.0 * T[m, at + j] * psi[m, j]
    return out
