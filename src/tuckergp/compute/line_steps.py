"""The steps of a Matern process on a line: what a gap between two rows does to the state, of p = 1, 2 or 3 numbers.

State-space form of Hartikainen and Sarkka (2010): dx = F x dt + noise, with stationary covariance P. Time is counted in
units of 1 / lambda, lambda = sqrt(2 p - 1) / lengthscale, so the state is (f, f'/lambda, f''/lambda^2) and one P serves
all lengthscales. A sum of processes stacks their states. The p x p matrices decide the accuracy at small gaps, so their
sums are in the order that is written (`exact`).
"""

from __future__ import annotations

import numpy as np

from tuckergp.compute.compiled import exact
from tuckergp.compute.contract import Array
from tuckergp.compute.triangular import cholesky, copy

FAR = 500.0  # beyond this many units of time nothing is remembered
NEAR = 4.0  # up to here the noise of a step comes from quadrature, beyond from a harmless difference
NODES, WEIGHTS = (np.ascontiguousarray(x) for x in np.polynomial.legendre.leggauss(16))


@exact
def stationary_root(L: Array) -> None:
    """Write the Cholesky factor, (p, p), of the stationary covariance P of the state: F P + P F' + q e_p e_p' = 0."""
    L[:] = 0.0
    L[0, 0] = 1.0
    if len(L) == 2:
        L[1, 1] = 1.0
    elif len(L) == 3:
        L[1, 1] = np.sqrt(1 / 3)
        L[2, 0] = -1 / 3
        L[2, 2] = np.sqrt(8 / 9)


@exact
def propagator(s: float, T: Array) -> None:
    """Write T = exp(F s), (p, p), which takes the mean of the state s further.

    F + I is nilpotent, so exp(F s) is exp(-s) times a polynomial in s.
    """
    decay = np.exp(-s)
    if len(T) == 1:
        T[0, 0] = decay
    elif len(T) == 2:
        T[0, 0], T[0, 1] = decay * (1 + s), decay * s
        T[1, 0], T[1, 1] = -decay * s, decay * (1 - s)
    else:
        half = s * s / 2
        T[0, 0], T[0, 1], T[0, 2] = decay * (1 + s + half), decay * (s + s * s), decay * half
        T[1, 0], T[1, 1], T[1, 2] = -decay * half, decay * (1 + s - s * s), decay * (s - half)
        T[2, 0], T[2, 1], T[2, 2] = decay * (half - s), decay * (s * s - 3 * s), decay * (1 - 2 * s + half)


@exact
def noise_root(s: float, T: Array, L: Array) -> None:
    """Write the Cholesky factor of Q(s) = P - T P T', (p, p), to full relative accuracy for every s.

    Q(s) = q int_0^s exp(-2u) g(u) g(u)' du with g the last column of exp(u (F + I)). Substituting u = s v takes the
    powers of s out of the integral, so what is factored is well conditioned even where Q is all but singular.
    """
    p = len(L)
    if p == 1:
        # Q = 1 - exp(-2 s)
        L[0, 0] = np.sqrt(-np.expm1(-2 * s))
        return
    Q = np.zeros((p, p))
    scale = np.ones(p)
    if s <= NEAR:
        # Gauss-Legendre: int_0^1 q exp(-2 s v) g g' dv, g_i over s^(p - 1 - i); q = 4 or 16/3
        g = np.empty(p)
        for k in range(NODES.size):
            v = (1 + NODES[k]) / 2
            w = WEIGHTS[k] / 2 * np.exp(-2 * s * v) * (4.0 if p == 2 else 16 / 3)
            if p == 2:
                g[0], g[1] = v, 1 - s * v
            else:
                g[0], g[1], g[2] = v * v / 2, v - s * v * v / 2, 1 - 2 * s * v + (s * v) ** 2 / 2
            for i in range(p):
                for j in range(i + 1):
                    Q[i, j] += w * g[i] * g[j]
        # the powers of s that were taken out, du = s dv included
        scale[p - 1] = np.sqrt(s)
        for i in range(p - 2, -1, -1):
            scale[i] = scale[i + 1] * s
    else:
        # Q = P - T P T' with P = L L'
        stationary_root(L)
        for i in range(p):
            for j in range(i + 1):
                for k in range(p):
                    before, after_i, after_j = L[i, k] * L[j, k], 0.0, 0.0
                    for c in range(p):
                        after_i += T[i, c] * L[c, k]
                        after_j += T[j, c] * L[c, k]
                    Q[i, j] += before - after_i * after_j
    cholesky(Q)
    for i in range(p):
        for j in range(p):
            L[i, j] = Q[i, j] * scale[i] if j <= i else 0.0


@exact
def transition(s: float, T: Array, L: Array) -> None:
    """Write what a step of length s does to the state, x' = T x + L w: T and L, (p, p) each."""
    if s > FAR:
        T[:] = 0.0
        stationary_root(L)
    else:
        propagator(s, T)
        noise_root(s, T, L)


@exact
def rotate(X: Array, rows: int) -> None:
    """Make the first ``rows`` rows of X lower triangular by rotating its columns; X X' stays the same.

    Givens rotations by small angles keep small entries to their relative accuracy.
    """
    for i in range(rows):
        for j in range(i + 1, X.shape[1]):
            if X[i, j] != 0.0:
                length = np.hypot(X[i, i], X[i, j])
                cosine, sine = X[i, i] / length, X[i, j] / length
                for k in range(i, len(X)):
                    a, b = X[k, i], X[k, j]
                    X[k, i], X[k, j] = cosine * a + sine * b, cosine * b - sine * a
                X[i, j] = 0.0


@exact
def stack(gap: float, orders: Array, rates: Array, scales: Array, T: Array, L: Array) -> None:
    """Write T and L, (P, P) each, of a step of the sum of several processes, ``gap`` long.

    The state of the sum is that of the first process with the value of the sum in place of its own, then those of the
    others, each times its scale; P is the sum of the orders. So the first entry is the value, as it is of one process,
    and L is lower triangular.
    """
    T[:] = 0.0
    L[:] = 0.0
    first = 0
    for k in range(orders.size):
        last = first + orders[k]
        transition(gap * rates[k], T[first:last, first:last], L[first:last, first:last])
        for i in range(first, last):
            for j in range(first, last):
                L[i, j] *= scales[k]
        first = last
    # with S x the state, x those of the processes side by side: S T S^-1, then S L
    first = orders[0]
    for k in range(1, orders.size):
        for i in range(len(T)):
            T[i, first] -= T[i, 0]
        first += orders[k]
    first = orders[0]
    for k in range(1, orders.size):
        for j in range(len(T)):
            T[0, j] += T[first, j]
            L[0, j] += L[first, j]
        first += orders[k]
    rotate(L, len(L))


@exact
def transitions(gaps: Array, orders: Array, rates: Array, scales: Array) -> tuple[Array, Array]:
    """Every step's T and L, (M, P, P) each; equal gaps in a row are computed once. Parameters are those of `stack`."""
    size = orders.sum()
    T, L = np.empty((gaps.size, size, size)), np.empty((gaps.size, size, size))
    for m in range(gaps.size):
        if m > 0 and gaps[m] == gaps[m - 1]:
            copy(T[m - 1], T[m])
            copy(L[m - 1], L[m])
        else:
            stack(gaps[m], orders, rates, scales, T[m], L[m])
    return T, L
