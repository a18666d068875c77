"""The Tucker contraction of one observation, and of all of them.

A core is a kind (IDENTITY, FULL or SPARSE), its weights ``w`` flattened in C order (the Q non-zeros if sparse) and,
for SPARSE, the ``coords`` (Q, D) of the non-zeros. A negative coordinate leaves the mode out of that entry: a factor 1
stands for it. ``at[d]`` is where the factors of the observation's row of mode d start in the flat array ``psi``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.compute.compiled import jit
from tuckergp.compute.threads import run_ranges

Array = npt.NDArray[Any]

IDENTITY, FULL, SPARSE = 0, 1, 2

# How many observations one call evaluates.
EVALUATED = 65_536

# Up to this many numbers NumPy evaluates: a process that makes one short list then need not load compiled code.
FEW = 131_072


@jit
def locate(index: Array, i: int, start: Array, ranks: Array, at: Array) -> None:
    """Find where the factors of observation i start in the flat array."""
    for d in range(ranks.size):
        at[d] = start[d] + index[i, d] * ranks[d]


@jit
def fold_last(source: Array, size: int, r: int, psi: Array, at: int, out: Array) -> int:
    """Contract the last axis, of length r, of a tensor of ``size`` entries; ``out`` may be ``source``."""
    size //= r
    for k in range(size):
        total = 0.0
        for j in range(r):
            total += source[k * r + j] * psi[at + j]
        out[k] = total
    return size


@jit
def fold_first(source: Array, size: int, r: int, psi: Array, at: int, out: Array) -> int:
    """Contract the first axis, of length r, of a tensor of ``size`` entries; ``out`` may be ``source``."""
    size //= r
    value = psi[at]
    for k in range(size):
        out[k] = value * source[k]
    for j in range(1, r):
        value = psi[at + j]
        for k in range(size):
            out[k] += value * source[j * size + k]
    return size


@jit
def others(
    kind: int, w: Array, coords: Array, ranks: Array, psi: Array, at: Array, d: int, z: Array, work: Array
) -> float:
    """Write z = W x_{e != d} psi_e, of length ranks[d]; return what entries that leave mode d out add to z'psi_d.

    ``work`` holds at least ``w.size`` entries.
    """
    modes = ranks.size
    r = ranks[d]
    rest = 0.0
    if kind == IDENTITY:
        for k in range(r):
            z[k] = 1.0
        for e in range(modes):
            if e != d:
                for k in range(r):
                    z[k] *= psi[at[e] + k]
    elif kind == FULL:
        size = w.size
        if modes == 1:
            for k in range(r):
                z[k] = w[k]
            return rest
        if d < modes - 1:
            size = fold_last(w, size, ranks[modes - 1], psi, at[modes - 1], work)
            for e in range(modes - 2, d, -1):
                size = fold_last(work, size, ranks[e], psi, at[e], work)
            for e in range(d):
                size = fold_first(work, size, ranks[e], psi, at[e], work)
        else:
            size = fold_first(w, size, ranks[0], psi, at[0], work)
            for e in range(1, d):
                size = fold_first(work, size, ranks[e], psi, at[e], work)
        for k in range(r):
            z[k] = work[k]
    else:
        for k in range(r):
            z[k] = 0.0
        for q in range(w.size):
            product = w[q]
            for e in range(modes):
                if e != d and coords[q, e] >= 0:
                    product *= psi[at[e] + coords[q, e]]
            if coords[q, d] >= 0:
                z[coords[q, d]] += product
            else:
                rest += product
    return rest


@jit
def all_others(kind: int, w: Array, coords: Array, ranks: Array, psi: Array, at: Array, z: Array, work: Array) -> float:
    """Write z_d for every mode, one after the other, into ``z`` (length sum of ranks); return f.

    FULL keeps the partial contractions over the last modes, so that all z_d cost about two full contractions instead
    of D; ``work`` holds at least ``2 * w.size + D`` entries.
    """
    modes = ranks.size
    if kind == IDENTITY:
        r = ranks[0]
        if modes == 2:
            for k in range(r):
                z[k] = psi[at[1] + k]
            for k in range(r):
                z[r + k] = psi[at[0] + k]
        else:
            # product of the modes after d, then times the modes before d
            for k in range(r):
                product = 1.0
                for d in range(modes - 1, -1, -1):
                    z[d * r + k] = product
                    product *= psi[at[d] + k]
                product = 1.0
                for d in range(modes):
                    z[d * r + k] *= product
                    product *= psi[at[d] + k]
    elif kind == FULL:
        offset = ranks.sum()
        size = w.size
        free = work[w.size :]
        suffix = w  # axes 0..d of the core with the modes after d contracted
        for d in range(modes - 1, 0, -1):
            offset -= ranks[d]
            rest = fold_first(suffix, size, ranks[0], psi, at[0], free)
            for e in range(1, d):
                rest = fold_first(free, rest, ranks[e], psi, at[e], free)
            for k in range(ranks[d]):
                z[offset + k] = free[k]
            size = fold_last(suffix, size, ranks[d], psi, at[d], work)
            suffix = work
        for k in range(ranks[0]):
            z[k] = suffix[k]
    else:
        for k in range(ranks.sum()):
            z[k] = 0.0
        total = 0.0
        for q in range(w.size):
            product = w[q]
            for d in range(modes - 1, -1, -1):
                work[d] = product
                if coords[q, d] >= 0:
                    product *= psi[at[d] + coords[q, d]]
            total += product
            product = 1.0
            offset = 0
            for d in range(modes):
                if coords[q, d] >= 0:
                    z[offset + coords[q, d]] += work[d] * product
                    product *= psi[at[d] + coords[q, d]]
                offset += ranks[d]
        return total
    f = 0.0
    for k in range(ranks[0]):
        f += z[k] * psi[at[0] + k]
    return f


@jit
def add_core_gradient(
    kind: int, coords: Array, ranks: Array, psi: Array, at: Array, g: float, gradient: Array, work: Array
) -> None:
    """Add g times df/dw, the outer product of the factors, to ``gradient``; nothing for IDENTITY."""
    modes = ranks.size
    if kind == FULL:
        work[0] = g
        size = 1
        for d in range(modes - 1):
            r = ranks[d]
            for k in range(size - 1, -1, -1):
                value = work[k]
                for j in range(r):
                    work[k * r + j] = value * psi[at[d] + j]
            size *= r
        last, r = at[modes - 1], ranks[modes - 1]
        for k in range(size):
            value = work[k]
            for j in range(r):
                gradient[k * r + j] += value * psi[last + j]
    elif kind == SPARSE:
        for q in range(gradient.size):
            product = g
            for d in range(modes):
                if coords[q, d] >= 0:
                    product *= psi[at[d] + coords[q, d]]
            gradient[q] += product


def evaluate(kind: int, w: Array, coords: Array, ranks: Array, psi: Array, start: Array, index: Array) -> Array:
    """f of every observation, shape (N,)."""
    f = np.empty(len(index))
    bounds = [*range(0, len(index), EVALUATED), len(index)]
    run_ranges(evaluate_range, bounds, kind, w, coords, ranks, psi, start, index, f)
    return f


@jit
def evaluate_range(
    first: int, last: int,
    kind: int, w: Array, coords: Array, ranks: Array, psi: Array, start: Array, index: Array, f: Array,
) -> None:  # fmt: skip
    """Write f of the observations first:last."""
    at = np.empty(ranks.size, dtype=np.int64)
    z = np.empty(ranks[0])
    work = np.empty(w.size + 1)
    for i in range(first, last):
        locate(index, i, start, ranks, at)
        total = others(kind, w, coords, ranks, psi, at, 0, z, work)
        for k in range(ranks[0]):
            total += z[k] * psi[at[0] + k]
        f[i] = total


def evaluate_draws(kind: int, W: Array, coords: Array, ranks: Array, psi: Array, start: Array, index: Array) -> Array:
    """f of each observation in each draw, shape (N, S), from cores W (S, Q) and factors of rows by draws, laid flat.

    Row m of mode d has its S vectors of length r_d one after the other, at ``start[d] + m S r_d``.
    """
    draws = len(W)
    if kind == IDENTITY and len(index) * draws * int(ranks[0]) <= FEW:
        tables = (table.reshape(-1, draws, int(ranks[0])) for table in np.split(psi, start[1 : len(ranks)]))
        factors = [table[index[:, d]] for d, table in enumerate(tables)]
        return np.asarray(np.prod(factors, axis=0).sum(axis=-1))
    f = np.empty((len(index), draws))
    step = max(1, EVALUATED // max(draws, 1))
    bounds = [*range(0, len(index), step), len(index)]
    run_ranges(evaluate_draws_range, bounds, kind, W, coords, ranks, psi, start, index, f)
    return f


@jit
def evaluate_draws_range(
    first: int, last: int,
    kind: int, W: Array, coords: Array, ranks: Array, psi: Array, start: Array, index: Array, f: Array,
) -> None:  # fmt: skip
    """Write f of the observations first:last, all draws."""
    draws = W.shape[0]
    at = np.empty(ranks.size, dtype=np.int64)
    z = np.empty(ranks[0])
    work = np.empty(W.shape[1] + 1)
    for i in range(first, last):
        for s in range(draws):
            for d in range(ranks.size):
                at[d] = start[d] + (index[i, d] * draws + s) * ranks[d]
            total = others(kind, W[s], coords, ranks, psi, at, 0, z, work)
            for k in range(ranks[0]):
                total += z[k] * psi[at[0] + k]
            f[i, s] = total


@jit
def gradient(
    kind: int, w: Array, coords: Array, ranks: Array, psi: Array, start: Array, index: Array, g: Array
) -> tuple[Array, Array]:
    """Back-propagate g_i = d log p(y_i | f_i) / d f_i to the factors (flat, like psi) and to the core weights."""
    n, modes = index.shape
    d_psi = np.zeros(psi.size)
    d_w = np.zeros(0 if kind == IDENTITY else w.size)
    at = np.empty(modes, dtype=np.int64)
    z = np.empty(ranks.sum())
    work = np.empty(2 * w.size + modes)
    for i in range(n):
        locate(index, i, start, ranks, at)
        all_others(kind, w, coords, ranks, psi, at, z, work)
        offset = 0
        for d in range(modes):
            for k in range(ranks[d]):
                d_psi[at[d] + k] += g[i] * z[offset + k]
            offset += ranks[d]
        add_core_gradient(kind, coords, ranks, psi, at, g[i], d_w, work)
    return d_psi, d_w
