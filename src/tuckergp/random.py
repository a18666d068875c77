"""Counter-based random numbers: a stream is named by its key, so a repeated step repeats its draws.

Nothing carries generator state from one step to the next. A run that is interrupted and resumed, or split over
threads, therefore draws the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tuckergp.errors import DivergenceError, InputError

__all__ = [
    "BLOCK",
    "DrawStreams",
    "Keys",
    "block_streams",
    "gammas",
    "log_slice",
    "mixed",
    "normals",
    "normals_of_rows",
    "overrelaxed",
    "seed_of",
    "stream",
    "uniforms",
]

Floats = npt.NDArray[np.float64]
Keys = npt.NDArray[np.uint64]

# Of SplitMix64 (Steele, Lea and Flood 2014).
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
S30, S27, S31, S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)

MOST_STEPS = 50
"""How often a slice is widened at each end."""

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


def mixed(keys: Keys) -> Keys:
    """Mix the bits of keys: keys that differ in few bits then differ in about half of them, and stay distinct."""
    z = keys + GOLDEN
    z = (z ^ (z >> S30)) * FIRST
    z = (z ^ (z >> S27)) * SECOND
    return np.asarray(z ^ (z >> S31))


@dataclass(frozen=True)
class DrawStreams:
    """Random numbers for what draws do not determine, such as rows never seen; each draw has its own stream.

    Attributes
    ----------
    seed : int
    names : ndarray of int64, shape (S, 2)
        Chain and number of each draw.
    """

    seed: int
    names: npt.NDArray[np.int64]
    _made: dict[int, np.random.Generator] = field(default_factory=dict, repr=False, compare=False)

    def __call__(self, s: int) -> np.random.Generator:
        """The stream of draw s, made when it is first asked for."""
        if s not in self._made:
            self._made[s] = stream(self.seed, *self.names[s].tolist())
        return self._made[s]

    def of_mode(self, d: int) -> DrawStreams:
        """The same draws with random numbers of their own for one mode."""
        (seed,) = mixed(mixed(np.array([self.seed], dtype=np.uint64)) ^ np.uint64(d)).tolist()
        return DrawStreams(seed, self.names)

    @cached_property
    def keys(self) -> Keys:
        """A key for each draw, (S,), for random numbers that are functions of chain and number."""
        chain, number = self.names.astype(np.uint64).T
        return mixed(mixed(mixed(np.full(len(chain), self.seed, dtype=np.uint64)) ^ chain) ^ number)


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
    """The blocks of ``count`` rows or observations, each with its own stream; takes one number from ``rng``."""
    seed = int(rng.integers(2**63))
    for block, first in enumerate(range(0, count, BLOCK)):
        yield slice(first, min(first + BLOCK, count)), stream(seed, block)


def normals(shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Standard normal numbers, by blocks of the first axis."""
    out = np.empty(shape)
    for block, block_rng in block_streams(shape[0], rng):
        block_rng.standard_normal(out=out[block])
    return out


def normals_of_rows(first: int, last: int, r: int, seed: int) -> Floats:
    """The rows first:last of `normals`, (last - first, r), whose generator gave this seed, without the other rows."""
    begin = first // BLOCK
    out = np.empty((max(-(-last // BLOCK) - begin, 0) * BLOCK, r))
    for k in range(len(out) // BLOCK):
        stream(seed, begin + k).standard_normal(out=out[k * BLOCK : (k + 1) * BLOCK])
    return out[first - begin * BLOCK :][: last - first]


def uniforms(shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Numbers between 0 and 1, by blocks of the first axis."""
    out = np.empty(shape)
    for block, block_rng in block_streams(shape[0], rng):
        block_rng.random(out=out[block])
    return out


def gammas(shape: Floats, rng: np.random.Generator) -> Floats:
    """Gamma variables of these shapes and rate 1, by blocks of the first axis."""
    out = np.empty(shape.shape)
    for block, block_rng in block_streams(len(shape), rng):
        out[block] = block_rng.standard_gamma(shape[block])
    return out


def overrelaxed(draw: Callable[[float], Floats], last: Floats, share: float) -> Floats:
    """A draw from a normal distribution on the other side of its mean, seen from the last one (Adler 1981).

    With mean m and noise e the draw is m - share (last - m) + (1 - share^2)^1/2 e, which leaves the distribution as it
    is. Along a narrow ridge, where draws of some unknowns given others make a random walk, such draws go on in one
    direction for a while.

    Parameters
    ----------
    draw : callable
        The mean plus so much times noise; called once.
    last : ndarray
        The present value.
    share : float
        From 0, a draw that does not depend on ``last``, to below 1.
    """
    if share == 0:
        return draw(1.0)
    # (1 + share) (m + c e) - share last, c = ((1 - share) / (1 + share))^1/2: one solve has both m and e
    return (1 + share) * draw(float(np.sqrt((1 - share) / (1 + share)))) - share * last


def log_slice(
    log_density: Callable[[float], float], x: float, width: float, rng: np.random.Generator, widen: bool = True
) -> float:
    """One slice-sampling step with stepping out and shrinkage (Neal 2003).

    With ``widen=False`` there is no stepping out, which saves evaluations where ``width`` is generous: x then moves by
    ``width`` at most.
    """
    # the slice: all points whose log density is above log p(x) + log u
    level = log_density(x) - rng.exponential()
    if np.isnan(level):  # nothing would ever be above it
        raise DivergenceError("f, or an unknown drawn with it, is not a number any more; standardise the inputs.")
    # stepping out: an interval around x, widened until both ends are outside the slice
    left = x - width * rng.random()
    right = left + width
    steps = MOST_STEPS if widen else 0
    for _ in range(steps):
        if log_density(left) <= level:
            break
        left -= width
    for _ in range(steps):
        if log_density(right) <= level:
            break
        right += width
    # shrinkage: points outside the slice cut the interval, until it has no room for another point
    while right - left > 4 * np.spacing(abs(x)):
        proposal = left + (right - left) * rng.random()
        if log_density(proposal) > level:
            return float(proposal)
        if proposal < x:
            left = proposal
        else:
            right = proposal
    return x
