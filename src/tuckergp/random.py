"""Counter-based random numbers: a stream is named by its key, so a repeated step repeats its draws.

Nothing carries generator state from one step to the next. A run that is interrupted and resumed, or split over
threads, therefore draws the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from tuckergp.errors import DivergenceError, InputError

__all__ = ["BLOCK", "block_streams", "gammas", "log_slice", "normals", "seed_of", "stream", "uniforms"]

Floats = npt.NDArray[np.float64]

BLOCK = 1_024
"""Rows, or observations, that share a stream: a partition of whole blocks draws the same numbers as the whole."""


def stream(seed: int, *key: int) -> np.random.Generator:
    """Return the generator of one key, such as (chain, step, mode).

    Examples
    --------
    >>> bool(stream(1, 0, 7).integers(100) == stream(1, 0, 7).integers(100))
    True
    """
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, *key])))


def seed_of(random_state: object) -> int:
    """Turn scikit-learn's ``random_state`` (None, int, RandomState or Generator) into one seed."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> 1)
    if isinstance(random_state, int | np.integer) and random_state >= 0:
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    raise InputError(
        f"random_state must be None, a whole number from 0 on, or a NumPy generator, not {random_state!r}."
    )


def block_streams(count: int, rng: np.random.Generator) -> Iterator[tuple[slice, np.random.Generator]]:
    """The blocks of so many rows or observations, each with a stream of its own; takes one number from ``rng``."""
    seed = int(rng.integers(2**63))
    for block, first in enumerate(range(0, count, BLOCK)):
        yield slice(first, min(first + BLOCK, count)), stream(seed, block)


def normals(shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Standard normal numbers, by blocks of the first axis."""
    out = np.empty(shape)
    for block, own in block_streams(shape[0], rng):
        own.standard_normal(out=out[block])
    return out


def uniforms(shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Numbers between 0 and 1, by blocks of the first axis."""
    out = np.empty(shape)
    for block, own in block_streams(shape[0], rng):
        own.random(out=out[block])
    return out


def gammas(shape: Floats, rng: np.random.Generator) -> Floats:
    """Gamma variables of these shapes and rate 1, by blocks of the first axis."""
    out = np.empty(shape.shape)
    for block, own in block_streams(len(shape), rng):
        out[block] = own.standard_gamma(shape[block])
    return out


def log_slice(log_density: Callable[[float], float], x: float, width: float, rng: np.random.Generator) -> float:
    """One slice-sampling step with stepping out and shrinkage (Neal 2003)."""
    level = log_density(x) - rng.exponential()
    if np.isnan(level):  # nothing would ever be above it
        raise DivergenceError("f, or an unknown drawn with it, is not a number any more; standardise the inputs.")
    left = x - width * rng.random()
    right = left + width
    for _ in range(50):
        if log_density(left) <= level:
            break
        left -= width
    for _ in range(50):
        if log_density(right) <= level:
            break
        right += width
    while right - left > 4 * np.spacing(abs(x)):
        proposal = left + (right - left) * rng.random()
        if log_density(proposal) > level:
            return float(proposal)
        if proposal < x:
            left = proposal
        else:
            right = proposal
    return x
