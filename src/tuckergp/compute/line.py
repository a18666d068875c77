"""Rows on a line under a Matern kernel, as a Markov process with states of p = 1, 2 or 3 (Matern-1/2, -3/2, -5/2).

State-space form of Hartikainen and Sarkka (2010): dx = F x dt + noise, with stationary covariance P. Time is counted in
units of 1 / lambda, lambda = sqrt(2 p - 1) / lengthscale, so the state is (f, f'/lambda, f''/lambda^2) and one P serves
all lengthscales. ``gaps[m]`` is the time since the row before, infinite for the first, which makes its state
stationary. Covariances are kept as square roots and only ever added: small gaps make the noise of a step as small as
gap^(2p - 1), which a difference of covariances would lose. The p x p matrices decide the accuracy there, so their sums
are in the order that is written (`exact`).
"""

from __future__ import annotations

import numpy as np

from tuckergp.compute.compiled import exact
from tuckergp.compute.contract import Array
from tuckergp.compute.triangular import cholesky, copy, solve_lower, solve_upper

# Values have an error of this size, in prior standard deviations: rows much closer than they can resolve would
# otherwise compare rounding errors with a step's noise of gap^(p - 1/2).
RESOLUTION = 1e-11

FAR = 500.0  # beyond this many units of time nothing is remembered
NEAR = 4.0  # up to here the noise of a step comes from quadrature, beyond from a harmless difference
NODES, WEIGHTS = (np.ascontiguousarray(x) for x in np.polynomial.legendre.leggauss(16))
LOST = 1e-6  # a Cholesky pivot this small, relative to its diagonal, asks for orthogonal rotations instead


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
def transitions(gaps: Array, p: int) -> tuple[Array, Array]:
    """Every step's T and L, (M, p, p) each; equal gaps in a row are computed once."""
    T, L = np.empty((gaps.size, p, p)), np.empty((gaps.size, p, p))
    for m in range(gaps.size):
        if m > 0 and gaps[m] == gaps[m - 1]:
            copy(T[m - 1], T[m])
            copy(L[m - 1], L[m])
        else:
            transition(gaps[m], T[m], L[m])
    return T, L


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
def filtered_root(root: Array, deviation: float, out: Array) -> None:
    """Root of the state's covariance once its value is known, from the lower triangular one before.

    The value is root[0, 0] times the first noise alone, so only the first column shrinks: by the square root of
    1 - root[0, 0]^2 / deviation^2 = RESOLUTION^2 / deviation^2.
    """
    copy(root, out)
    for i in range(len(out)):
        out[i, 0] *= RESOLUTION / deviation


@exact
def innovations(T: Array, L: Array) -> tuple[Array, Array]:
    """Predict every state from the values before it.

    Returns
    -------
    roots : (M, p, p)
        Lower triangular roots of the covariances of the predicted states.
    deviations : (M,)
        Standard deviations of the values: the diagonal of the Cholesky factor of K + RESOLUTION^2 I.
    """
    rows, p = T.shape[0], T.shape[1]
    roots, deviations = np.empty((rows, p, p)), np.empty(rows)
    known, both = np.zeros((p, p)), np.empty((p, 2 * p))
    for m in range(rows):
        # root of the predicted covariance T R R' T' + L L', R the root given the values before: [T R, L], rotated
        both[:, :p] = 0.0
        for i in range(p):
            for c in range(p):
                for j in range(p):
                    both[i, j] += T[m, i, c] * known[c, j]
        copy(L[m], both[:, p:])
        rotate(both, p)
        copy(both[:, :p], roots[m])
        deviations[m] = np.hypot(both[0, 0], RESOLUTION)
        filtered_root(roots[m], deviations[m], known)
    return roots, deviations


@exact
def predict_mean(T: Array, before: Array, out: Array) -> None:
    """Write T before to ``out``, (p, c); rows of ``before`` are derivatives."""
    p, columns = out.shape
    out[:] = 0.0
    for i in range(p):
        for j in range(p):
            for k in range(columns):
                out[i, k] += T[i, j] * before[j, k]


@exact
def filter_values(
    T: Array, roots: Array, deviations: Array, X: Array, colour: bool, states: Array, keep: bool
) -> Array:
    """Whiten X (M, c) to C^-1 X, or colour it to C X, with C C' = K + RESOLUTION^2 I, in O(M c p^2).

    ``states`` (M, p, c) receives the mean of every state given the values up to it, if ``keep``; else it is not read.
    """
    rows, columns, p = X.shape[0], X.shape[1], T.shape[1]
    out = np.empty((rows, columns))
    before, mean = np.zeros((p, columns)), np.empty((p, columns))
    for m in range(rows):
        predict_mean(T[m], before, mean)
        for k in range(columns):
            # innovation: x_m = E(x_m | before) + deviation_m white_m
            white = X[m, k] if colour else (X[m, k] - mean[0, k]) / deviations[m]
            out[m, k] = mean[0, k] + deviations[m] * white if colour else white
            # Kalman gain: Cov(state, value) / deviation^2 = root[:, 0] root[0, 0] / deviation^2
            for i in range(p):
                before[i, k] = mean[i, k] + roots[m, i, 0] * (roots[m, 0, 0] / deviations[m]) * white
        if keep:
            copy(before, states[m])
    return out


@exact
def smooth_values(T: Array, L: Array, roots: Array, deviations: Array, states: Array, noise: Array) -> None:
    """Overwrite the filtered means ``states`` (M, p, c) by a draw of the states given all values, last row first.

    Every row draws its filtered state and the next state that follows from it, then corrects its own by how far the
    latter is from the next state that was really drawn (Matheron's rule): no difference of covariances is needed.
    ``noise`` (M, 2 p, c), zero for the mean.
    """
    rows, p, columns = states.shape
    known, ahead = np.empty((p, p)), np.empty((p, p))
    miss, correction = np.empty(p), np.empty(p)
    for m in range(rows - 1, -1, -1):
        filtered_root(roots[m], deviations[m], known)
        # ahead = T R, R R' the covariance given the values up to m
        if m + 1 < rows:
            predict_mean(T[m + 1], known, ahead)
        for k in range(columns):
            # x = mean + R w
            for i in range(p):
                for j in range(p):
                    states[m, i, k] += known[i, j] * noise[m, j, k]
            if m + 1 == rows:
                continue
            # miss = x_next - T x - L w'
            for i in range(p):
                miss[i] = states[m + 1, i, k]
                for j in range(p):
                    miss[i] -= T[m + 1, i, j] * states[m, j, k]
                for j in range(p):
                    miss[i] -= L[m + 1, i, j] * noise[m, p + j, k]
            # x += R R' T' P^-1 miss, P the predicted covariance of the next state
            solve_lower(roots[m + 1], miss)
            solve_upper(roots[m + 1], miss)
            for j in range(p):
                correction[j] = 0.0
                for i in range(p):
                    correction[j] += ahead[i, j] * miss[i]
            for i in range(p):
                for j in range(p):
                    states[m, i, k] += known[i, j] * correction[j]


@exact
def bridge(s: float, rest: float, work: Array, T: Array, onward: Array, L: Array) -> None:
    """Prepare the state between two known ones, s after the left and ``rest`` before the right.

    An infinite distance stands for no neighbour on that side.

    Rotates work (2 p, 2 p) = [[T2 L1, L2], [L1, 0]] to [[S, 0], [G, C]]: the state is T1 x_left + G S^-1 miss + C w,
    miss = x_right - T2 T1 x_left. ``T`` receives T1, ``onward`` T2; ``L`` is scratch.
    """
    p = len(T)
    work[:] = 0.0
    # x = T1 x_left + L1 w1 and x_right = T2 x + L2 w2, so (x_right, x) has the root [[T2 L1, L2], [L1, 0]]
    transition(s, T, L)
    copy(L, work[p:, :p])
    transition(rest, onward, L)
    for i in range(p):
        for c in range(p):
            for j in range(p):
                work[i, j] += onward[i, c] * work[p + c, j]
    copy(L, work[:p, p:])
    rotate(work, p)


@exact
def bridge_mean(work: Array, T: Array, onward: Array, left: Array, right: Array, miss: Array, mean: Array) -> None:
    """Write the mean of one column of the state of `bridge` given those of its neighbours, (p,) each."""
    p = len(T)
    # mean = T1 x_left
    for i in range(p):
        mean[i] = 0.0
        for j in range(p):
            mean[i] += T[i, j] * left[j]
    # miss = x_right - T2 mean
    for i in range(p):
        miss[i] = right[i]
        for j in range(p):
            miss[i] -= onward[i, j] * mean[j]
    # S^-1 miss, by forward substitution
    for i in range(p):
        for j in range(i):
            miss[i] -= work[i, j] * miss[j]
        # a row of zeros: the right neighbour is where the left one is
        miss[i] = miss[i] / work[i, i] if work[i, i] != 0.0 else 0.0
    # mean += G S^-1 miss
    for i in range(p):
        for j in range(p):
            mean[i] += work[p + i, j] * miss[j]


@exact
def interpolate(
    gaps: Array, rests: Array, place: Array, states: Array, noise: Array, joint: bool
) -> tuple[Array, Array]:
    """States at new times given those at the rows, (M*, p, c), and the variance of their values, (M*,).

    Parameters
    ----------
    gaps, rests : (M*,)
        Time since the known state before, and until the next row; infinite where there is none.
    place : (M*,)
        How many rows lie at or before the new time.
    states : (M, p, c)
    noise : (M*, p, c)
        Zero for means.
    joint : bool
        Whether the known state before is that of the previous new time, where ``place`` is the same; else always a row.
    """
    count, (rows, p, columns) = gaps.size, states.shape
    out, variance = np.empty((count, p, columns)), np.empty(count)
    work, T, onward, L = np.empty((2 * p, 2 * p)), np.empty((p, p)), np.empty((p, p)), np.empty((p, p))
    miss, mean, nothing = np.empty(p), np.empty(p), np.zeros(p)
    for m in range(count):
        bridge(gaps[m], rests[m], work, T, onward, L)
        # the variance of the value is the first diagonal entry of C C'
        variance[m] = 0.0
        for j in range(p):
            variance[m] += work[p, p + j] ** 2
        chained = joint and m > 0 and place[m] == place[m - 1]
        for k in range(columns):
            left = out[m - 1, :, k] if chained else states[place[m] - 1, :, k] if place[m] > 0 else nothing
            right = states[place[m], :, k] if place[m] < rows else nothing
            bridge_mean(work, T, onward, left, right, miss, mean)
            # x = mean + C w
            for i in range(p):
                out[m, i, k] = mean[i]
                for j in range(p):
                    out[m, i, k] += work[p + i, p + j] * noise[m, j, k]
    return out, variance
