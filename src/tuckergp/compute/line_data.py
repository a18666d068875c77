"""A Matern process on a line given data: a square-root filter forward over the rows, an exact draw backward.

The steps of the process, and its density and draws without data, are in `tuckergp.compute.line`.
"""

from __future__ import annotations

import numpy as np

from tuckergp.compute.compiled import jit
from tuckergp.compute.contract import Array
from tuckergp.compute.line import LOST
from tuckergp.compute.triangular import cholesky, copy, solve_lower, solve_upper


@jit
def mix(T: Array, X: Array, r: int, out: Array) -> None:
    """Write (T kron I_r) X to ``out``, (p r, c)."""
    out[:] = 0.0
    p = len(T)
    for i in range(p):
        for j in range(p):
            weight = T[i, j]
            if weight != 0.0:
                for k in range(r):
                    for c in range(X.shape[1]):
                        out[i * r + k, c] += weight * X[j * r + k, c]


@jit
def predicted_root(half: Array, L: Array, r: int, root: Array) -> None:
    """Write a lower triangular root of half half' + (L L') kron I_r, (p r, p r).

    Its Cholesky factor, unless the pivots show that digits were lost; then by orthogonal rotations, about ten times
    the work, which happens where precise data meet gaps that are small but larger than the data's precision.
    """
    n, p = len(half), len(L)
    # half half'
    for i in range(n):
        for j in range(n):
            root[i, j] = 0.0
        for j in range(i + 1):
            total = 0.0
            for k in range(n):
                total += half[i, k] * half[j, k]
            root[i, j] = total
    # + (L L') kron I_r
    for a in range(p):
        for b in range(a + 1):
            total = 0.0
            for c in range(b + 1):
                total += L[a, c] * L[b, c]
            for k in range(r):
                root[a * r + k, b * r + k] += total
    # a pivot root_ii^2 far below the diagonal entry it came from, sum_j root_ij^2, has lost its digits
    fine = cholesky(root)
    for i in range(n):
        total = 0.0
        for j in range(i + 1):
            total += root[i, j] * root[i, j]
        fine = fine and root[i, i] * root[i, i] > LOST * total
    if not fine:
        # [half, L kron I_r]' = Q R, so R' is a root of the same matrix
        both = np.zeros((2 * n, n))
        for i in range(n):
            for j in range(n):
                both[j, i] = half[i, j]
        for a in range(p):
            for b in range(a + 1):
                for k in range(r):
                    both[n + b * r + k, a * r + k] = L[a, b]
        upper = np.linalg.qr(both)[1]
        for i in range(n):
            for j in range(i + 1):
                root[i, j] = upper[j, i]


@jit
def forward(T: Array, L: Array, A: Array, b: Array) -> tuple[Array, Array, Array, float]:
    """Filter: what the data of all rows up to m say about the state of row m, m = 0, 1, ...

    Ranks are independent a priori (Lambda = I); A (M, r, r) and b (M, r) are the statistics of the rows. With P the
    predicted covariance and L0 the root of its value part, the root after the data is P's with its first r columns
    times C^-T, C C' = I + L0' A L0: nothing is subtracted, and A may be singular.

    Returns
    -------
    roots : (M, p r, p r)
        Lower triangular roots of the predicted covariances.
    inner : (M, r, r)
        C of every row, lower triangular.
    means : (M, p r)
        Means of the states given the data up to them.
    evidence : float
        log of the integral of exp(sum_m b_m'e_m - e_m'A_m e_m / 2) over the prior; NaN if a matrix was not positive
        definite.
    """
    rows, p, r = T.shape[0], T.shape[1], A.shape[1]
    n = p * r
    roots, inner, means = np.zeros((rows, n, n)), np.zeros((rows, r, r)), np.empty((rows, n))
    known, half = np.zeros((n, n)), np.zeros((n, n))
    before, mean = np.zeros((n, 1)), np.zeros((n, 1))
    product, u = np.empty((r, r)), np.empty(r)
    evidence = 0.0
    for m in range(rows):
        # predict: mean T x, covariance P = T R R' T' + L L', with R R' the covariance given the data before
        mix(T[m], known, r, half)
        mix(T[m], before, r, mean)
        root, C = roots[m], inner[m]
        predicted_root(half, L[m], r, root)
        # C C' = I + L0' A L0
        product[:] = 0.0
        for i in range(r):
            for k in range(r):
                for j in range(k + 1):
                    product[i, j] += A[m, i, k] * root[k, j]
        for k in range(r):
            for i in range(k + 1):
                for j in range(i + 1):
                    C[i, j] += root[k, i] * product[k, j]
        for i in range(r):
            C[i, i] += 1.0
        if not cholesky(C):
            evidence = np.nan
        # u = L0'(b - A mean); the evidence of the row is (b - A mean / 2)'mean - log |C| + |C^-1 u|^2 / 2
        u[:] = 0.0
        for i in range(r):
            score, half_score = b[m, i], b[m, i]
            for j in range(r):
                score -= A[m, i, j] * mean[j, 0]
                half_score -= A[m, i, j] * mean[j, 0] / 2
            evidence += half_score * mean[i, 0] - np.log(C[i, i])
            for j in range(i + 1):
                u[j] += root[i, j] * score
        solve_lower(C, u)
        for i in range(r):
            evidence += u[i] * u[i] / 2
        # update: the mean by root[:, :r] (C C')^-1 u, the root by root[:, :r] C^-T
        solve_upper(C, u)
        copy(root, known)
        for i in range(n):
            total = mean[i, 0]
            for j in range(r):
                total += root[i, j] * u[j]
            before[i, 0] = total
            means[m, i] = total
            solve_lower(C, known[i, :r])
    return roots, inner, means, evidence


@jit
def times_root(root: Array, C: Array, x: Array, out: Array) -> None:
    """Add R x to ``out`` (p r), R the root after the data (see `forward`); x is overwritten."""
    n, r = len(root), len(C)
    solve_upper(C, x[:r])
    for i in range(n):
        total = 0.0
        for j in range(i + 1):
            total += root[i, j] * x[j]
        out[i] += total


@jit
def backward(T: Array, L: Array, roots: Array, inner: Array, means: Array, noise: Array) -> Array:
    """Draw the states given all data, (M, p r), last row first; ``noise`` (M, 2, p r), zero for the mean.

    By the same rule as `tuckergp.compute.line.smooth_values`.
    """
    rows, n, r = means.shape[0], means.shape[1], inner.shape[1]
    p = n // r
    out = np.empty((rows, n))
    miss, correction = np.empty(n), np.empty(n)
    for m in range(rows - 1, -1, -1):
        # x = mean + R w
        x = out[m]
        for i in range(n):
            x[i], correction[i] = means[m, i], noise[m, 0, i]
        times_root(roots[m], inner[m], correction, x)
        if m + 1 == rows:
            continue
        # miss = x_next - T x - L w'
        for a in range(p):
            for k in range(r):
                total = out[m + 1, a * r + k]
                for c in range(p):
                    total -= T[m + 1, a, c] * x[c * r + k] + L[m + 1, a, c] * noise[m, 1, c * r + k]
                miss[a * r + k] = total
        # x += R R' T' P^-1 miss, P the predicted covariance of the next state
        solve_lower(roots[m + 1], miss)
        solve_upper(roots[m + 1], miss)
        correction[:] = 0.0
        for c in range(p):
            for k in range(r):
                total = 0.0
                for a in range(p):
                    total += T[m + 1, a, c] * miss[a * r + k]
                for j in range(c * r + k + 1):
                    correction[j] += roots[m, c * r + k, j] * total
        solve_lower(inner[m], correction[:r])
        times_root(roots[m], inner[m], correction, x)
    return out
