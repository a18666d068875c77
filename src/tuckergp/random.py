"""Counter-based random numbers: a stream is named by its key, so a repeated step repeats its draws.

Nothing carries generator state from one step to the next. A run that is interrupted and resumed, or split over
threads, therefore draws the same numbers.
"""

from __future__ import annotations

import numpy as np

from tuckergp.errors import InputError

__all__ = ["seed_of", "stream"]


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
