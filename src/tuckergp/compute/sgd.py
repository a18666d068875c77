"""One epoch of mini-batch gradient steps on U and W (the updates of the paper's appendix A), for sparse feature rows.

Feature tables of all modes are laid one after the other: row m of mode d has its entries in
``indices/data[indptr[row_start[d] + m] : ...]``; feature j of mode d has its weights at ``u[u_start[d] + j * r_d]``
and is number ``feature_start[d] + j`` among all features. A step reads and writes only features of its batch: the
prior's shrinkage of the others is applied, exactly, when they are next met (``paid[j]``: steps applied so far).

Places in flat arrays are unsigned in inner loops: a signed one might be negative, which Python counts from the end,
and the compiler then gives up vector instructions.
"""

from __future__ import annotations

import numpy as np

from tuckergp.compute.compiled import jit
from tuckergp.compute.contract import IDENTITY, Array, add_core_gradient, all_others
from tuckergp.compute.densities import misfit, score

PLAIN, ADAM = 0, 1
BETA1, BETA2, TINY = 0.9, 0.999, 1e-8
LOG_BETA1, LOG_BETA2 = float(np.log(BETA1)), float(np.log(BETA2))


@jit
def owed(feature: int, log_decay: float, paid: Array, step: int) -> float:
    """The factor by which the prior shrinks the weights of a feature for the steps since it was last met."""
    steps = step - paid[feature]
    return np.exp(steps * log_decay) if steps > 0 and log_decay != 0.0 else 1.0


@jit
def gather(
    rows: Array, b: int, ranks: Array, indptr: Array, indices: Array, data: Array, u: Array, u_start: Array,
    feature_start: Array, log_decay: Array, paid: Array, step: int, psi: Array, at: Array,
) -> None:  # fmt: skip
    """Write psi_d = U_d' phi_d of the rows of observation b of a batch, from ``psi[at[d]]`` on for every mode d."""
    for d in range(ranks.size):
        r, to = np.uintp(ranks[d]), np.uintp(at[d])
        row = rows[b, d]
        first, last = indptr[row], indptr[row + 1]
        if first == last:
            for k in range(r):
                psi[to + k] = 0.0
        for e in range(first, last):
            start = np.uintp(u_start[d] + indices[e] * ranks[d])
            value = data[e] * owed(feature_start[d] + indices[e], log_decay[d], paid, step)
            if e == first:
                for k in range(r):
                    psi[to + k] = value * u[start + k]
            else:
                for k in range(r):
                    psi[to + k] += value * u[start + k]


@jit
def epoch(
    order: Array, batch: int, index: Array, y: Array, weight: Array, offset: Array, scale: float,
    kind: int, w: Array, coords: Array, ranks: Array, likelihood: int, parameters: Array,
    indptr: Array, indices: Array, data: Array, row_start: Array,
    u: Array, u_start: Array, feature_start: Array, paid: Array, step: int,
    method: int, step_u: float, step_w: float, precision_u: Array, precision_w: float,
    counts: Array, u_moments: Array, w_moments: Array, u_steps: Array, slot: Array, widest: int,
) -> tuple[int, float]:  # fmt: skip
    """Go once through ``order`` in mini-batches, changing u and w in place.

    Returns the number of steps done so far and the mean `misfit` met on the way. ``scale`` is N: a batch of m
    observations stands for N / m times as many. ``offset`` is added to f, nothing if it is empty.
    PLAIN: theta += step / 2 (prior gradient + N / m data gradient).
    ADAM: the same gradient divided by N, the prior's divided among the ``counts`` of observations that meet a
    feature so that it stays unbiased, with moments of the features met only; ``slot`` is -1 for every feature, and
    ``widest`` the most entries of a feature row.
    """
    modes = ranks.size
    total_rank = ranks.sum()
    z = np.empty(batch * total_rank)
    psi = np.empty(total_rank)
    work = np.empty(2 * w.size + modes)
    at = np.zeros(modes, dtype=np.int64)
    for d in range(1, modes):
        at[d] = at[d - 1] + ranks[d - 1]
    # with two modes and W = I, z_0 is psi_1 and z_1 is psi_0: factors are gathered where they are needed
    swap = kind == IDENTITY and modes == 2
    if swap:
        at[0], at[1] = at[1], at[0]
    rows = np.empty((batch, modes), dtype=np.int64)
    y_batch, weight_batch, g = np.empty(batch), np.empty(batch), np.empty(batch)
    d_w = np.zeros(w.size)
    log_decay = np.zeros(modes)
    if method == PLAIN:
        for d in range(modes):
            log_decay[d] = np.log(1.0 - 0.5 * step_u * precision_u[d])
    total = 0.0
    # Adam sums gradients by the features met in a batch: at most this many
    most = min(batch * modes * widest, paid.size) if method == ADAM else 1
    met, times = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    sums = np.empty(most * ranks.max())
    n = order.size
    for first in range(0, n, batch):
        m = min(batch, n - first)
        share = scale / m
        # observations are scattered in memory: fetched in a separate loop, their cache misses overlap
        for b in range(m):
            i = order[first + b]
            y_batch[b], weight_batch[b] = y[i], weight[i]
            for d in range(modes):
                rows[b, d] = row_start[d] + index[i, d]
        # all factors of the batch are read before anything is written, so the gradient is taken at one point
        for b in range(m):
            z_b = z[b * total_rank : (b + 1) * total_rank]
            gather(
                rows, b, ranks, indptr, indices, data, u, u_start, feature_start, log_decay, paid, step,
                z_b if swap else psi, at,
            )  # fmt: skip
            f = dot_halves(z_b) if swap else all_others(kind, w, coords, ranks, psi, at, z_b, work)
            if offset.size:
                f += offset[order[first + b]]
            g[b] = weight_batch[b] * score(likelihood, parameters, y_batch[b], f)
            total += weight_batch[b] * misfit(likelihood, parameters, y_batch[b], f)
            if kind != IDENTITY:
                add_core_gradient(kind, coords, ranks, psi, at, g[b], d_w, work)
        step += 1
        if method == PLAIN:
            update_plain(
                m, rows, g, z, 0.5 * step_u * share, ranks, indptr, indices, data, u, u_start, feature_start,
                log_decay, paid, step,
            )  # fmt: skip
            if kind != IDENTITY:
                for k in range(w.size):
                    w[k] += 0.5 * step_w * (share * d_w[k] - precision_w * w[k])
        else:
            update_adam(
                m, rows, g, z, ranks, indptr, indices, data, u, u_start, feature_start,
                step_u, precision_u, counts, u_moments, u_steps, slot, met, times, sums,
            )  # fmt: skip
            if kind != IDENTITY:
                adam_move(w.size, d_w, 0, 1.0 / m, precision_w / scale, w, 0, w_moments, step, step_w)
        d_w[:] = 0.0
    return step, total / n


@jit
def dot_halves(z: Array) -> float:
    """The inner product of the two halves of z."""
    half = np.uintp(z.size // 2)
    total = 0.0
    for k in range(half):
        total += z[k] * z[half + k]
    return total


@jit
def update_plain(
    m: int, rows: Array, g: Array, z: Array, rate: float, ranks: Array, indptr: Array, indices: Array, data: Array,
    u: Array, u_start: Array, feature_start: Array, log_decay: Array, paid: Array, step: int,
) -> None:  # fmt: skip
    """Apply the shrinkage due to every feature met, this step's included, and add rate * score * phi * z."""
    offset = np.uintp(0)
    for b in range(m):
        for d in range(ranks.size):
            r = np.uintp(ranks[d])
            row = rows[b, d]
            for e in range(indptr[row], indptr[row + 1]):
                feature = feature_start[d] + indices[e]
                start = np.uintp(u_start[d] + indices[e] * ranks[d])
                keep = owed(feature, log_decay[d], paid, step)
                paid[feature] = step
                factor = rate * g[b] * data[e]
                for k in range(r):
                    u[start + k] = keep * u[start + k] + factor * z[offset + k]
            offset += r


@jit
def adam_move(
    n: int,
    sums: Array,
    at: int,
    share: float,
    shrinkage: float,
    u: Array,
    u_at: int,
    moments: Array,
    t: int,
    size: float,
) -> None:
    """Move n numbers from ``u[u_at]`` on uphill along ``share * sums - shrinkage * u``, by their t-th Adam step.

    Their first moments start at ``moments[2 * u_at]``, their second moments follow.
    """
    # Kingma and Ba (2015), alg. 1: mean / (sqrt(square) + TINY), both moments divided by 1 - BETA^t; these divisions
    # are taken out of the loop
    root = np.sqrt(1.0 - np.exp(t * LOG_BETA2))
    rate, tiny = size * root / (1.0 - np.exp(t * LOG_BETA1)), TINY * root
    source, to, first = np.uintp(at), np.uintp(u_at), np.uintp(2 * u_at)
    second = first + np.uintp(n)
    for k in range(np.uintp(n)):
        gradient = share * sums[source + k] - shrinkage * u[to + k]
        mean = BETA1 * moments[first + k] + (1 - BETA1) * gradient
        square = BETA2 * moments[second + k] + (1 - BETA2) * gradient * gradient
        moments[first + k] = mean
        moments[second + k] = square
        u[to + k] += rate * mean / (np.sqrt(square) + tiny)


@jit
def update_adam(
    m: int, rows: Array, g: Array, z: Array, ranks: Array, indptr: Array, indices: Array, data: Array, u: Array,
    u_start: Array, feature_start: Array, step_u: float, precision_u: Array,
    counts: Array, moments: Array, steps: Array, slot: Array, met: Array, times: Array, sums: Array,
) -> None:  # fmt: skip
    """Sum the gradient of every feature met in its slot of ``sums``, then move each by Adam's rule."""
    widest = ranks.max()
    n_met = 0
    offset = np.uintp(0)
    for b in range(m):
        for d in range(ranks.size):
            r = np.uintp(ranks[d])
            row = rows[b, d]
            for e in range(indptr[row], indptr[row + 1]):
                feature = feature_start[d] + indices[e]
                factor = g[b] * data[e]
                if slot[feature] < 0:
                    slot[feature] = n_met
                    met[n_met] = feature
                    times[n_met] = 1
                    to = np.uintp(n_met * widest)
                    for k in range(r):
                        sums[to + k] = factor * z[offset + k]
                    n_met += 1
                else:
                    times[slot[feature]] += 1
                    to = np.uintp(slot[feature] * widest)
                    for k in range(r):
                        sums[to + k] += factor * z[offset + k]
            offset += r
    for s in range(n_met):
        feature = met[s]
        d = 0
        while feature >= feature_start[d + 1]:
            d += 1
        where = u_start[d] + (feature - feature_start[d]) * ranks[d]
        steps[feature] += 1
        shrinkage = precision_u[d] * times[s] / (counts[feature] * m)
        adam_move(ranks[d], sums, s * widest, 1.0 / m, shrinkage, u, where, moments, steps[feature], step_u)
        slot[feature] = -1


@jit
def predict(
    index: Array, kind: int, w: Array, coords: Array, ranks: Array, indptr: Array, indices: Array, data: Array,
    row_start: Array, u: Array, u_start: Array, feature_start: Array, decay: Array, paid: Array, step: int,
) -> Array:  # fmt: skip
    """f of some observations during training, with the shrinkage that is due to their features applied."""
    modes = ranks.size
    f = np.empty(len(index))
    psi = np.empty(ranks.sum())
    z = np.empty(ranks.sum())
    work = np.empty(2 * w.size + modes)
    at = np.cumsum(ranks) - ranks
    log_decay = np.log(decay)
    rows = np.empty((1, modes), dtype=np.int64)
    for i in range(len(index)):
        for d in range(modes):
            rows[0, d] = row_start[d] + index[i, d]
        gather(rows, 0, ranks, indptr, indices, data, u, u_start, feature_start, log_decay, paid, step, psi, at)
        f[i] = all_others(kind, w, coords, ranks, psi, at, z, work)
    return f


@jit
def settle(ranks: Array, u: Array, u_start: Array, feature_start: Array, decay: Array, paid: Array, step: int) -> None:
    """Apply the shrinkage that is due to every feature."""
    for d in range(ranks.size):
        log_decay, r = np.log(decay[d]), np.uintp(ranks[d])
        for j in range(feature_start[d + 1] - feature_start[d]):
            factor = owed(feature_start[d] + j, log_decay, paid, step)
            start = np.uintp(u_start[d] + j * ranks[d])
            for k in range(r):
                u[start + k] *= factor
            paid[feature_start[d] + j] = step
