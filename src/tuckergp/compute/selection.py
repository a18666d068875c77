"""Entries of a core drawn one after the other, each possibly 0: O(Q D) per observation."""

from __future__ import annotations

import numpy as np

from tuckergp.compute.compiled import jit
from tuckergp.compute.contract import Array


@jit
def write_products(coords: Array, ranks: Array, psi: Array, start: Array, index: Array, out: Array) -> None:
    """Write df/dw of one entry, whose coordinates are ``coords`` (D,), at every observation to ``out`` (N,)."""
    out[:] = 1.0
    for d in range(ranks.size):
        if coords[d] >= 0:
            begin = start[d] + coords[d]
            for i in range(len(index)):
                out[i] *= psi[begin + index[i, d] * ranks[d]]


@jit
def draw_entries(
    order: Array, w: Array, coords: Array, ranks: Array, psi: Array, start: Array, index: Array,
    residual: Array, precision: Array, prior: float, a: float, b: float, uniform: Array, normal: Array,
) -> None:  # fmt: skip
    """Draw every entry of ``w`` (Q,) given the others, in place, in this ``order``; updates ``residual`` = y - f.

    Whether entry q is included is drawn first, with its value integrated out: the odds are those of the prior, given
    how many others are included, times N(y; prior with the entry) / N(y; without). The probability of being included
    has the prior Beta(a, b) and is integrated out too. ``precision`` (N,) is that of the noise, ``prior`` that of an
    entry.
    """
    x = np.empty(len(index))
    included = 0
    for q in range(w.size):
        if w[q] != 0.0:
            included += 1
    for q in order:
        write_products(coords[q], ranks, psi, start, index, x)
        # square = sum_i w_i x_i^2, with_residual = sum_i w_i x_i (y_i - f_i)
        square = 0.0
        with_residual = 0.0
        for i in range(x.size):
            share = precision[i] * x[i]
            square += share * x[i]
            with_residual += share * residual[i]
        old = w[q]
        if old != 0.0:
            included -= 1
        with_residual += old * square  # as if the entry were 0
        total = square + prior
        # (a + k) / (b + Q - 1 - k) of the prior, k others included, times (prior / total)^1/2 exp(c^2 / (2 total)),
        # c = with_residual
        log_odds = np.log((a + included) / (b + w.size - 1 - included))
        log_odds += 0.5 * (np.log(prior / total) + with_residual * with_residual / total)
        new = 0.0
        if np.log(uniform[q] / (1.0 - uniform[q])) < log_odds:
            # N(c / total, 1 / total)
            new = with_residual / total + normal[q] / np.sqrt(total)
            included += 1
        w[q] = new
        if new != old:
            for i in range(x.size):
                residual[i] -= (new - old) * x[i]
