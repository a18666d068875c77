"""Normal and gamma random numbers that are functions of the keys of their row and draw, and of their place.

A row never seen has the same numbers in a draw, but for rounding, whichever other rows are predicted with it. The
mixing function is that of `tuckergp.random.mixed`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tuckergp.compute.compiled import exact
from tuckergp.compute.contract import Array
from tuckergp.compute.threads import run_ranges
from tuckergp.random import FIRST, GOLDEN, S11, S27, S30, S31, SECOND, Keys, mixed

__all__ = ["keyed_gammas", "keyed_normals"]

Floats = npt.NDArray[np.float64]

# How many rows one call fills.
ROWS = 256

# Up to this many numbers are made by NumPy: a process that makes one short list then need not load compiled code.
FEW = 131_072

UNIT = 2.0**-53


def keyed_normals(rows: Keys, draws: Keys, r: int) -> Floats:
    """Standard normal numbers, (m, S, r), for rows and draws with these keys, (m,) and (S,)."""
    if len(rows) * len(draws) * r <= FEW:
        return _few_normals(rows, draws, r)
    out = np.empty((len(rows), len(draws), r))
    bounds = np.append(np.arange(0, len(rows), ROWS), len(rows))
    run_ranges(_normals, bounds, np.ascontiguousarray(rows), np.ascontiguousarray(draws), out)
    return out


def _few_normals(rows: Keys, draws: Keys, r: int) -> Floats:
    """The numbers of `_normals`, but for rounding."""
    steps = np.arange(1, r + r % 2 + 1, dtype=np.uint64) * GOLDEN
    state = mixed(rows[:, None] ^ mixed(draws))
    uniform = (mixed(state[:, :, None] + steps) >> S11) * UNIT
    radius, angle = np.sqrt(-2.0 * np.log(1.0 - uniform[:, :, ::2])), 2.0 * np.pi * uniform[:, :, 1::2]
    pairs = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
    return np.ascontiguousarray(pairs.reshape(len(rows), len(draws), len(steps))[:, :, :r])


def keyed_gammas(rows: Keys, draws: Keys, shapes: Floats, count: int = 1) -> Floats:
    """Gamma variables of shapes (m, S), all at least 1, and rate 1: ``count`` for each row and draw, (m, S, count)."""
    out = np.empty((len(rows), len(draws), count))
    bounds = np.append(np.arange(0, len(rows), ROWS), len(rows))
    shapes = np.ascontiguousarray(np.broadcast_to(shapes, out.shape[:2]), dtype=np.float64)
    run_ranges(_gammas, bounds, np.ascontiguousarray(rows), np.ascontiguousarray(draws), shapes, out)
    return out


@exact
def _mix(key: np.uint64) -> np.uint64:
    z = key + GOLDEN
    z = (z ^ (z >> S30)) * FIRST
    z = (z ^ (z >> S27)) * SECOND
    return z ^ (z >> S31)


@exact
def _normals(first: int, last: int, rows: Array, draws: Array, out: Array) -> None:
    r = out.shape[2]
    for i in range(first, last):
        for s in range(len(draws)):
            state = _mix(rows[i] ^ _mix(draws[s]))
            for j in range(0, r, 2):
                # Box and Muller's pairs; the first uniform is never 0
                state += GOLDEN
                radius = np.sqrt(-2.0 * np.log(1.0 - np.float64(_mix(state) >> S11) * UNIT))
                state += GOLDEN
                angle = 2.0 * np.pi * (np.float64(_mix(state) >> S11) * UNIT)
                out[i, s, j] = radius * np.cos(angle)
                if j + 1 < r:
                    out[i, s, j + 1] = radius * np.sin(angle)


@exact
def _gammas(first: int, last: int, rows: Array, draws: Array, shapes: Array, out: Array) -> None:
    for i in range(first, last):
        for s in range(len(draws)):
            state = _mix(rows[i] ^ _mix(draws[s]))
            # Marsaglia and Tsang (2000): d (1 + c x)^3, x normal, is nearly gamma; rejection makes it exact
            d = shapes[i, s] - 1.0 / 3.0
            c = 1.0 / np.sqrt(9.0 * d)
            for j in range(out.shape[2]):
                accepted = False
                while not accepted:
                    state += GOLDEN
                    radius = np.sqrt(-2.0 * np.log(1.0 - np.float64(_mix(state) >> S11) * UNIT))
                    state += GOLDEN
                    x = radius * np.cos(2.0 * np.pi * (np.float64(_mix(state) >> S11) * UNIT))
                    state += GOLDEN
                    log_u = np.log(1.0 - np.float64(_mix(state) >> S11) * UNIT)
                    v = (1.0 + c * x) ** 3
                    accepted = v > 0.0 and log_u < 0.5 * x * x + d - d * v + d * np.log(v)
                out[i, s, j] = d * v
