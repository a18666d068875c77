"""Data about a process at places, by Vecchia's approximation: sparse block triangular S with V^-1 ~ S'S.

V = I + G'(K kron I_r)G is the covariance of G_m'e_m plus standard normal noise, r numbers per place. Row m of ``S``
(M, r, (1 + m) r) has the block of its own place first, then those of its neighbours. The process itself, and what
``neighbours`` are, is in `tuckergp.compute.field`.
"""

from __future__ import annotations

import numpy as np

from tuckergp.compute.compiled import jit
from tuckergp.compute.contract import Array
from tuckergp.compute.field import gap, matern
from tuckergp.compute.triangular import cholesky, solve_lower, solve_upper


@jit
def block(k: float, G: Array, H: Array, out: Array) -> None:
    """Write k G'H to ``out``, (r, r)."""
    r = len(G)
    for a in range(r):
        for b in range(r):
            total = 0.0
            for c in range(r):
                total += G[c, a] * H[c, b]
            out[a, b] = k * total


@jit
def own_block(k: float, G: Array, out: Array) -> None:
    """Write I + k G'G to ``out``, (r, r)."""
    block(k, G, G, out)
    for a in range(len(G)):
        out[a, a] += 1.0


@jit
def data_rows(
    first: int, last: int, X: Array, neighbours: Array, order: int, variance: float, G: Array, S: Array
) -> int:
    """Write rows ``first`` to ``last`` of S for places X (M, p) whose data have the roots G (M, r, r).

    ``variance`` is that of one place, 1 and a little more; returns how many rows have no variance.
    """
    most, r, failed = neighbours.shape[1], G.shape[1], 0
    V, cross, own = np.empty((most * r, most * r)), np.empty((r, most * r)), np.empty((r, r))
    c = np.empty(most, dtype=np.int64)
    for i in range(first, last):
        n = 0
        for j in neighbours[i]:
            if j >= 0:
                rows = slice(n * r, (n + 1) * r)
                c[n] = j
                for k in range(n):
                    block(matern(order, gap(X[j], X[c[k]])), G[j], G[c[k]], V[rows, k * r : (k + 1) * r])
                own_block(variance, G[j], V[rows, rows])
                block(matern(order, gap(X[j], X[i])), G[i], G[j], cross[:, rows])
                n += 1
        L, half = V[: n * r, : n * r], cross[:, : n * r]
        fine = cholesky(L)
        own_block(variance, G[i], own)
        for a in range(r):
            solve_lower(L, half[a])
        for a in range(r):
            for b in range(a + 1):
                for k in range(n * r):
                    own[a, b] -= half[a, k] * half[b, k]
        failed += not (cholesky(own) and fine)
        S[i] = 0.0
        for a in range(r):
            solve_upper(L, half[a])
            S[i, a, a] = 1.0
        n = 0
        for k in range(most):
            if neighbours[i, k] >= 0:
                for a in range(r):
                    for b in range(r):
                        S[i, a, (1 + k) * r + b] = -half[a, n * r + b]
                n += 1
        # C^-1 [I, -weights], C C' the covariance given the neighbours
        for a in range(r):
            for k in range(a):
                for b in range(S.shape[2]):
                    S[i, a, b] -= own[a, k] * S[i, k, b]
            for b in range(S.shape[2]):
                S[i, a, b] /= own[a, a]
    return failed


@jit
def times_blocks(first: int, last: int, S: Array, neighbours: Array, x: Array, out: Array) -> None:
    """Write rows ``first`` to ``last`` of S x to ``out``; both (M, r)."""
    r = x.shape[1]
    for i in range(first, last):
        for a in range(r):
            total = 0.0
            for b in range(r):
                total += S[i, a, b] * x[i, b]
            for k in range(neighbours.shape[1]):
                j = neighbours[i, k]
                if j >= 0:
                    for b in range(r):
                        total += S[i, a, (1 + k) * r + b] * x[j, b]
            out[i, a] = total


@jit
def times_blocks_transposed(S: Array, neighbours: Array, x: Array, out: Array) -> None:
    """Write S'x to ``out``; both (M, r)."""
    r = x.shape[1]
    out[:] = 0.0
    for i in range(len(S)):
        for a in range(r):
            for b in range(r):
                out[i, b] += S[i, a, b] * x[i, a]
            for k in range(neighbours.shape[1]):
                j = neighbours[i, k]
                if j >= 0:
                    for b in range(r):
                        out[j, b] += S[i, a, (1 + k) * r + b] * x[i, a]
