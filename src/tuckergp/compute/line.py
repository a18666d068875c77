"""Rows on a line under a Matern kernel or a sum of them, as a Markov process whose steps are in `line_steps`.

``T`` and ``L`` (M, p, p) are the steps to the rows; that to the first makes its state stationary. The value is the
first entry of a state. Covariances are kept as square roots and only ever added: small gaps make the noise of a step as
small as gap^(2p - 1), which a difference of covariances would lose. The p x p matrices decide the accuracy there, so
their sums are in the order that is written (`exact`).
"""

from __future__ import annotations

import numpy as np

from tuckergp.compute.compiled import exact
from tuckergp.compute.contract import Array
from tuckergp.compute.line_steps import rotate, stack
from tuckergp.compute.triangular import copy, solve_lower, solve_upper

# Values have an error of this size, in prior standard deviations: rows much closer than they can resolve would
# otherwise compare rounding errors with a step's noise of gap^(p - 1/2).
RESOLUTION = 1e-11

LOST = 1e-6  # a Cholesky pivot this small, relative to its diagonal, asks for orthogonal rotations instead


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
def bridge(
    gap: float,
    rest: float,
    orders: Array,
    rates: Array,
    scales: Array,
    work: Array,
    T: Array,
    onward: Array,
    L: Array,
) -> None:
    """Prepare the state between two known ones, ``gap`` after the left and ``rest`` before the right.

    An infinite distance stands for no neighbour on that side; `stack` has the other parameters.

    Rotates work (2 p, 2 p) = [[T2 L1, L2], [L1, 0]] to [[S, 0], [G, C]]: the state is T1 x_left + G S^-1 miss + C w,
    miss = x_right - T2 T1 x_left. ``T`` receives T1, ``onward`` T2; ``L`` is scratch.
    """
    p = len(T)
    work[:] = 0.0
    # x = T1 x_left + L1 w1 and x_right = T2 x + L2 w2, so (x_right, x) has the root [[T2 L1, L2], [L1, 0]]
    stack(gap, orders, rates, scales, T, L)
    copy(L, work[p:, :p])
    stack(rest, orders, rates, scales, onward, L)
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
    gaps: Array,
    rests: Array,
    orders: Array,
    rates: Array,
    scales: Array,
    place: Array,
    states: Array,
    noise: Array,
    joint: bool,
) -> tuple[Array, Array]:
    """States at new times given those at the rows, (M*, p, c), and the variance of their values, (M*,).

    Parameters
    ----------
    gaps, rests : (M*,)
        Distance from the known state before, and to the next row; infinite where there is none.
    orders, rates, scales : (processes,)
        See `stack`.
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
        bridge(gaps[m], rests[m], orders, rates, scales, work, T, onward, L)
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
