"""One epoch of mini-batch gradient steps on U and W (the updates of the paper's appendix A), for sparse feature rows.

Feature tables of all modes are laid one after the other: row m of mode d has its entries in
``indices/data[indptr[row_start[d] + m] : ...]``; feature j of mode d has its weights at ``u[u_start[d] + j * ranks[d]]``
and is number ``feature_start[d] + j`` among all features. A step reads and writes only features of its batch: the
prior's pull is owed by the others and paid, exactly, when they are next met (``paid[j]``: steps paid so far).
"""

from __future__ import annotations

import numpy as np

from tuckergp.compute.contract import IDENTITY, Array, add_core_gradient, all_others, jit

PLAIN, ADAM = 0, 1
BETA1, BETA2, TINY = 0.9, 0.999, 1e-8


@jit
def score(likelihood: int, parameters: Array, y: float, f: float) -> float:
    """D log p(y | f) / d f for the likelihood of this code (see `tuckergp.likelihoods`); 0 is Gaussian."""
    return (y - f) / parameters[0]


@jit
def pay(feature: int, at: int, r: int, u: Array, decay: float, paid: Array, step: int) -> None:
    """Apply the prior's pull of the steps in which this feature was not met."""
    owed = step - paid[feature]
    if owed > 0:
        factor = decay**owed
        for k in range(r):
            u[at + k] *= factor
        paid[feature] = step


@jit
def gather(
    index: Array, i: int, ranks: Array, indptr: Array, indices: Array, data: Array, row_start: Array,
    u: Array, u_start: Array, feature_start: Array, decay: Array, paid: Array, step: int, psi: Array, at: Array,
) -> None:  # fmt: skip
    """psi_d = U_d' phi_d of observation i for every mode, laid one after the other from ``at[0]`` on."""
    place = at[0]
    for d in range(ranks.size):
        r = ranks[d]
        at[d] = place
        for k in range(r):
            psi[place + k] = 0.0
        row = row_start[d] + index[i, d]
        for e in range(indptr[row], indptr[row + 1]):
            where = u_start[d] + indices[e] * r
            pay(feature_start[d] + indices[e], where, r, u, decay[d], paid, step)
            value = data[e]
            for k in range(r):
                psi[place + k] += value * u[where + k]
        place += r


@jit
def epoch(
    order: Array, batch: int, index: Array, y: Array, weight: Array, scale: float,
    kind: int, w: Array, coords: Array, ranks: Array, likelihood: int, parameters: Array,
    indptr: Array, indices: Array, data: Array, row_start: Array,
    u: Array, u_start: Array, feature_start: Array, paid: Array, step: int,
    method: int, step_u: float, step_w: float, precision_u: Array, precision_w: float,
    counts: Array, u_moments: Array, w_moments: Array, u_steps: Array, slot: Array, widest: int,
) -> tuple[int, float]:  # fmt: skip
    """Go once through ``order`` in mini-batches, changing u and w in place.

    Returns the number of steps done so far and the mean squared residual met on the way. ``scale`` is N: a batch of m
    observations stands for N / m times as many. PLAIN: theta += step / 2 (prior gradient + N / m data gradient).
    ADAM: the same gradient divided by N, the prior's shared out over the ``counts`` of observations that meet a
    feature so that it stays unbiased, with moments of the features met only; ``slot`` is -1 for every feature, and
    ``widest`` the most entries of a feature row.
    """
    modes = ranks.size
    total_rank = ranks.sum()
    psi = np.empty(batch * total_rank)
    z = np.empty(batch * total_rank)
    work = np.empty(2 * w.size + modes)
    at = np.empty(modes, dtype=np.int64)
    g = np.empty(batch)
    d_w = np.zeros(w.size)
    decay = np.ones(modes)
    if method == PLAIN:
        decay[:] = 1.0 - 0.5 * step_u * precision_u
    squares = 0.0
    # Adam sums gradients by the features met in a batch: at most this many
    met = np.empty(min(batch * modes * widest, paid.size) if method == ADAM else 1, dtype=np.int64)
    sums = np.empty(met.size * ranks.max())
    n = order.size
    for first in range(0, n, batch):
        m = min(batch, n - first)
        share = scale / m
        # all factors of the batch are read before anything is written, so the gradient is taken at one point
        for b in range(m):
            i = order[first + b]
            at[0] = b * total_rank
            gather(
                index, i, ranks, indptr, indices, data, row_start, u, u_start, feature_start, decay, paid, step, psi, at
            )
            f = all_others(kind, w, coords, ranks, psi, at, z[b * total_rank :], work)
            g[b] = weight[i] * score(likelihood, parameters, y[i], f)
            squares += weight[i] * (y[i] - f) ** 2
            if kind != IDENTITY:
                add_core_gradient(kind, coords, ranks, psi, at, g[b], d_w, work)
        step += 1
        if method == PLAIN:
            update_plain(
                order[first : first + m], index, g, z, 0.5 * step_u * share, ranks, indptr, indices, data, row_start,
                u, u_start, feature_start, decay, paid, step,
            )  # fmt: skip
            if kind != IDENTITY:
                for k in range(w.size):
                    w[k] += 0.5 * step_w * (share * d_w[k] - precision_w * w[k])
                    d_w[k] = 0.0
        else:
            update_adam(
                order[first : first + m], index, g, z, scale, ranks, indptr, indices, data, row_start,
                u, u_start, feature_start, step_u, precision_u, counts, u_moments, u_steps, slot, met, sums,
            )  # fmt: skip
            if kind != IDENTITY:
                for k in range(w.size):
                    gradient = d_w[k] / m - precision_w * w[k] / scale
                    w[k] += adam_step(gradient, w_moments, 2 * k, step, step_w)
                    d_w[k] = 0.0
    return step, squares / n


@jit
def update_plain(
    batch: Array, index: Array, g: Array, z: Array, rate: float, ranks: Array, indptr: Array, indices: Array,
    data: Array, row_start: Array, u: Array, u_start: Array, feature_start: Array, decay: Array, paid: Array, step: int,
) -> None:  # fmt: skip
    """u += rate * score * phi * z for every feature met, after this step's pull of the prior, once each."""
    total_rank = ranks.sum()
    for b in range(batch.size):
        offset = b * total_rank
        for d in range(ranks.size):
            r = ranks[d]
            row = row_start[d] + index[batch[b], d]
            for e in range(indptr[row], indptr[row + 1]):
                where = u_start[d] + indices[e] * r
                pay(feature_start[d] + indices[e], where, r, u, decay[d], paid, step)
                factor = rate * g[b] * data[e]
                for k in range(r):
                    u[where + k] += factor * z[offset + k]
            offset += r


@jit
def adam_step(gradient: float, moments: Array, at: int, steps: int, size: float) -> float:
    """Update the two moments of one number and return its move uphill."""
    moments[at] = BETA1 * moments[at] + (1 - BETA1) * gradient
    moments[at + 1] = BETA2 * moments[at + 1] + (1 - BETA2) * gradient * gradient
    mean = moments[at] / (1 - BETA1**steps)
    square = moments[at + 1] / (1 - BETA2**steps)
    return size * mean / (np.sqrt(square) + TINY)


@jit
def update_adam(
    batch: Array, index: Array, g: Array, z: Array, scale: float, ranks: Array, indptr: Array, indices: Array,
    data: Array, row_start: Array, u: Array, u_start: Array, feature_start: Array,
    step_u: float, precision_u: Array, counts: Array, moments: Array, steps: Array, slot: Array, met: Array, sums: Array,
) -> None:  # fmt: skip
    """Sum the gradient of every feature met in its slot of ``sums``, then move each by Adam's rule."""
    total_rank = ranks.sum()
    widest = ranks.max()
    m = batch.size
    n_met = 0
    for b in range(m):
        offset = b * total_rank
        for d in range(ranks.size):
            r = ranks[d]
            row = row_start[d] + index[batch[b], d]
            for e in range(indptr[row], indptr[row + 1]):
                feature = feature_start[d] + indices[e]
                where = u_start[d] + indices[e] * r
                if slot[feature] < 0:
                    slot[feature] = n_met
                    met[n_met] = feature
                    sums[n_met * widest : n_met * widest + r] = 0.0
                    n_met += 1
                to = slot[feature] * widest
                factor = g[b] * data[e] / m
                pull = precision_u[d] / (counts[feature] * m)
                for k in range(r):
                    sums[to + k] += factor * z[offset + k] - pull * u[where + k]
            offset += r
    for s in range(n_met):
        feature = met[s]
        d = 0
        while feature >= feature_start[d + 1]:
            d += 1
        where = u_start[d] + (feature - feature_start[d]) * ranks[d]
        steps[feature] += 1
        for k in range(ranks[d]):
            u[where + k] += adam_step(sums[s * widest + k], moments, 2 * (where + k), steps[feature], step_u)
        slot[feature] = -1


@jit
def predict(
    index: Array, kind: int, w: Array, coords: Array, ranks: Array, indptr: Array, indices: Array, data: Array,
    row_start: Array, u: Array, u_start: Array, feature_start: Array, decay: Array, paid: Array, step: int,
) -> Array:  # fmt: skip
    """F of some observations while training: pays what their features owe, touches no others."""
    modes = ranks.size
    f = np.empty(len(index))
    psi = np.empty(ranks.sum())
    z = np.empty(ranks.sum())
    work = np.empty(2 * w.size + modes)
    at = np.empty(modes, dtype=np.int64)
    for i in range(len(index)):
        at[0] = 0
        gather(index, i, ranks, indptr, indices, data, row_start, u, u_start, feature_start, decay, paid, step, psi, at)
        f[i] = all_others(kind, w, coords, ranks, psi, at, z, work)
    return f


@jit
def settle(ranks: Array, u: Array, u_start: Array, feature_start: Array, decay: Array, paid: Array, step: int) -> None:
    """Pay what every feature owes."""
    for d in range(ranks.size):
        for j in range(feature_start[d + 1] - feature_start[d]):
            pay(feature_start[d] + j, u_start[d] + j * ranks[d], ranks[d], u, decay[d], paid, step)
