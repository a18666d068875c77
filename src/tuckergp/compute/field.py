"""Sparse triangular R with K^-1 ~ R'R for places in several dimensions (Vecchia's approximation), and its products.

Row i of R is what place i adds to its neighbours, which are earlier places: (e_i - w'e_c) / sd, with the weights w and
the standard deviation of a Gaussian process given its values at the neighbours. ``R`` (M, 1 + m) has 1 / sd first, then
-w / sd; ``neighbours`` (M, m) are numbers of places, -1 for none.
"""

from __future__ import annotations

import numpy as np

from tuckergp.compute.compiled import jit
from tuckergp.compute.contract import Array
from tuckergp.compute.triangular import cholesky, solve_lower, solve_upper


@jit
def matern(order: int, distance: float) -> float:
    """The Matern correlation of smoothness order - 1/2 at a distance in units of lengthscale / sqrt(2 nu)."""
    k = np.exp(-distance)
    if order == 2:
        k *= 1.0 + distance
    elif order == 3:
        k *= 1.0 + distance + distance * distance / 3.0
    return float(k)


@jit
def gap(x: Array, y: Array) -> float:
    """The distance of two places."""
    total = 0.0
    for j in range(len(x)):
        total += (x[j] - y[j]) ** 2
    return float(np.sqrt(total))


@jit
def covariances(X: Array, Y: Array, order: int, symmetric: bool, out: Array) -> None:
    """Write the Matern correlations of places X (M, p) and Y (n, p) to ``out``; ``symmetric`` where X is Y."""
    for i in range(len(X)):
        for j in range(i + 1 if symmetric else len(Y)):
            out[i, j] = matern(order, gap(X[i], Y[j]))
            if symmetric:
                out[j, i] = out[i, j]


@jit
def factor_rows(first: int, last: int, X: Array, neighbours: Array, order: int, nugget: Array, R: Array) -> int:
    """Write rows ``first`` to ``last`` of R for places X (M, p) with covariance matern + diag(nugget).

    Row i belongs to place len(X) - len(R) + i, as do row i of ``neighbours``; returns how many rows have no variance.
    """
    most, begin, failed = neighbours.shape[1], len(X) - len(R), 0
    near, K, w = np.empty((most, X.shape[1])), np.empty((most, most)), np.empty(most)
    c = np.empty(most)
    for i in range(first, last):
        x, n = X[begin + i], 0
        for j in neighbours[i]:
            if j >= 0:
                for k in range(X.shape[1]):
                    near[n, k] = X[j, k]
                K[n, n] = 1.0 + nugget[j]
                for k in range(n):
                    K[n, k] = matern(order, gap(near[n], near[k]))
                c[n] = w[n] = matern(order, gap(near[n], x))
                n += 1
        fine = cholesky(K[:n, :n])
        solve_lower(K[:n, :n], w[:n])
        variance = 1.0 + nugget[begin + i]
        for k in range(n):
            variance -= w[k] * w[k]
        if not (fine and variance > 0.0):
            failed += 1
            variance = 1.0
        solve_upper(K[:n, :n], w[:n])
        R[i, 0] = 1.0 / np.sqrt(variance)
        n = 0
        for k in range(most):
            R[i, 1 + k] = 0.0
            if neighbours[i, k] >= 0:
                R[i, 1 + k] = -w[n] * R[i, 0]
                n += 1
    return failed


@jit
def times(first: int, last: int, R: Array, neighbours: Array, x: Array, out: Array) -> None:
    """Write rows ``first`` to ``last`` of R x to ``out``; both (M, c)."""
    for i in range(first, last):
        for a in range(x.shape[1]):
            out[i, a] = R[i, 0] * x[i, a]
        for k in range(neighbours.shape[1]):
            j = neighbours[i, k]
            if j >= 0:
                for a in range(x.shape[1]):
                    out[i, a] += R[i, 1 + k] * x[j, a]


@jit
def solve_rows(R: Array, neighbours: Array, x: Array) -> None:
    """Replace the last len(R) rows of x (M, c), z, by those of e with R e = z; the others have e already."""
    begin = len(x) - len(R)
    for i in range(len(R)):
        for k in range(neighbours.shape[1]):
            j = neighbours[i, k]
            if j >= 0:
                for a in range(x.shape[1]):
                    x[begin + i, a] -= R[i, 1 + k] * x[j, a]
        for a in range(x.shape[1]):
            x[begin + i, a] /= R[i, 0]


@jit
def solve_transposed(R: Array, neighbours: Array, x: Array) -> None:
    """Replace x (M, c) by R'^-1 x."""
    for i in range(len(R) - 1, -1, -1):
        for a in range(x.shape[1]):
            x[i, a] /= R[i, 0]
        for k in range(neighbours.shape[1]):
            j = neighbours[i, k]
            if j >= 0:
                for a in range(x.shape[1]):
                    x[j, a] -= R[i, 1 + k] * x[i, a]
