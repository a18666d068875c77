"""What the data say about every row of one mode, and the small solve a row that follows from it.

Given the other modes, f = z'psi_d, so row m hears only A_m = sum w z z' and b_m = sum w z y over its observations.
Observations come sorted by the row of mode d: those of row m are ``ptr[m]:ptr[m + 1]`` of index, y and weight.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from tuckergp.compute.contract import FAST, FULL, SPARSE, Array, add_core_gradient, jit, locate, others

parallel = nb.njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy", parallel=True)


@jit
def accumulate(
    first: int, last: int, index: Array, y: Array, weight: Array, d: int,
    kind: int, w: Array, coords: Array, ranks: Array, psi: Array, start: Array,
    A: Array, b: Array, z: Array, work: Array, at: Array,
) -> None:  # fmt: skip
    """Add the statistics of some observations to b and to the lower triangle of A."""
    r = ranks[d]
    for i in range(first, last):
        locate(index, i, start, ranks, at)
        others(kind, w, coords, ranks, psi, at, d, z, work)
        for j in range(r):
            value = weight[i] * z[j]
            b[j] += value * y[i]
            for k in range(j + 1):
                A[j, k] += value * z[k]


@parallel
def statistics(
    ptr: Array, index: Array, y: Array, weight: Array, d: int,
    kind: int, w: Array, coords: Array, ranks: Array, psi: Array, start: Array,
) -> tuple[Array, Array]:  # fmt: skip
    """A (M, r, r) and b (M, r) of every row of mode d."""
    rows, r = ptr.size - 1, ranks[d]
    A = np.zeros((rows, r, r))
    b = np.zeros((rows, r))
    for m in nb.prange(rows):
        z, work, at = np.empty(r), np.empty(w.size + 1), np.empty(ranks.size, dtype=np.int64)
        accumulate(ptr[m], ptr[m + 1], index, y, weight, d, kind, w, coords, ranks, psi, start, A[m], b[m], z, work, at)
        for j in range(r):
            for k in range(j):
                A[m, k, j] = A[m, j, k]
    return A, b


@jit
def cholesky(A: Array) -> bool:
    """Overwrite the lower triangle of A with its Cholesky factor; False if A is not positive definite."""
    r = len(A)
    for j in range(r):
        pivot = A[j, j]
        for k in range(j):
            pivot -= A[j, k] * A[j, k]
        if not pivot > 0.0:
            return False
        pivot = np.sqrt(pivot)
        A[j, j] = pivot
        for i in range(j + 1, r):
            total = A[i, j]
            for k in range(j):
                total -= A[i, k] * A[j, k]
            A[i, j] = total / pivot
    return True


@jit
def solve_lower(L: Array, x: Array) -> None:
    """Solve L x = x in place."""
    for i in range(len(L)):
        total = x[i]
        for k in range(i):
            total -= L[i, k] * x[k]
        x[i] = total / L[i, i]


@jit
def solve_upper(L: Array, x: Array) -> None:
    """Solve L' x = x in place."""
    for i in range(len(L) - 1, -1, -1):
        x[i] /= L[i, i]
        for k in range(i):
            x[k] -= L[i, k] * x[i]


@parallel
def solve(
    ptr: Array, index: Array, y: Array, weight: Array, d: int,
    kind: int, w: Array, coords: Array, ranks: Array, psi: Array, start: Array,
    pull: Array, precision: Array, noise: Array,
) -> tuple[Array, int]:  # fmt: skip
    """New factors of every row of mode d, (M, r), under the prior N(precision^-1 pull_m, precision^-1).

    Each is the mean of its conditional plus L^-T noise_m, with L L' the posterior precision A_m + precision:
    zero ``noise`` gives the mean, standard normal noise a draw. A is never stored. Also returns how many rows had a
    precision that is not positive definite (their factors are NaN).
    """
    rows, r = ptr.size - 1, ranks[d]
    out = np.empty((rows, r))
    failed = 0
    for m in nb.prange(rows):
        z, work, at = np.empty(r), np.empty(w.size + 1), np.empty(ranks.size, dtype=np.int64)
        A, b = np.zeros((r, r)), np.zeros(r)
        accumulate(ptr[m], ptr[m + 1], index, y, weight, d, kind, w, coords, ranks, psi, start, A, b, z, work, at)
        for j in range(r):
            b[j] += pull[m, j]
            for k in range(j + 1):
                A[j, k] += precision[j, k]
        if cholesky(A):
            solve_lower(A, b)
            for j in range(r):
                b[j] += noise[m, j]
            solve_upper(A, b)
            out[m] = b
        else:
            out[m] = np.nan
            failed += 1
    return out, failed


@parallel
def core_rows(
    first: int,
    last: int,
    n_weights: int,
    coords: Array,
    ranks: Array,
    psi: Array,
    start: Array,
    index: Array,
) -> Array:
    """Df/dw for the observations first:last, (last - first, n_weights): what W is regressed on."""
    modes = ranks.size
    kind = FULL if coords.shape[0] == 0 else SPARSE
    out = np.zeros((last - first, n_weights))
    for i in nb.prange(last - first):
        at = np.empty(modes, dtype=np.int64)
        locate(index, first + i, start, ranks, at)
        add_core_gradient(kind, coords, ranks, psi, at, 1.0, out[i], np.empty(n_weights))
    return out
