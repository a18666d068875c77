"""Which entries the core W has: the patterns that ``core=`` takes, and the places of their entries.

A pattern is a name or a small immutable object. What is computed with the entries is in `tuckergp.model.tucker`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.errors import InputError

__all__ = ["Entries", "Inclusion", "Learned", "Random", "inclusion", "inclusion_prior", "places"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Above this many entries a full core is refused: a pass over the data costs this much per observation.
LARGEST_FULL_CORE = 1_000_000
# The coordinate of a mode that an entry leaves out.
LEFT_OUT = -1
# How many entries the prior of a learned pattern counts for.
PRIOR_COUNT = 2.0


@dataclass(frozen=True)
class Random:
    """A core with entries at random places, which ``random_state`` decides: O(Q D) per observation instead of r^D.

    Parameters
    ----------
    nonzeros : int
        Q, how many.

    Examples
    --------
    >>> places(Random(3), [2, 2, 2], np.random.default_rng(0)).shape
    (3, 3)
    """

    nonzeros: int


@dataclass(frozen=True)
class Entries:
    """A core with entries at places of your choice.

    Parameters
    ----------
    places : sequence of sequences of int or None
        One for each entry, with a component of every mode, counted from 0. None leaves the mode out: the summand of f
        does not depend on that mode's input.

    Examples
    --------
    W_00 psi_1,0 psi_2,0 psi_3,0, an interaction of the first two modes whatever the third, and an intercept:

    >>> Entries([(0, 0, 0), (1, 1, None), (None, None, None)])
    Entries(places=((0, 0, 0), (1, 1, None), (None, None, None)))
    """

    places: Sequence[Sequence[int | None]]

    def __post_init__(self) -> None:
        try:
            given = tuple(tuple(None if k is None else _whole(k) for k in place) for place in self.places)
        except TypeError:
            wanted = "a sequence of places, such as [(0, 0), (1, None)]"
            raise InputError(f"Entries takes {wanted}, not {self.places!r}.") from None
        object.__setattr__(self, "places", given)


@dataclass(frozen=True)
class Learned:
    """A core whose pattern is learned by Gibbs sampling: entries that are not included are exactly 0.

    A spike and slab: an entry is included with an unknown probability, the same for all, and then is N(0, sigma_w^2).

    Parameters
    ----------
    candidates : {"full", "superdiagonal", "cp", "pairwise"}, Random or Entries
        The entries among which to choose. ``"superdiagonal"`` learns how many components there are, ``"pairwise"``
        which modes interact.
    share : float
        The share of candidates that is expected to be included, between 0 and 1; it has the weight of two entries.

    Examples
    --------
    >>> Learned("pairwise", share=0.2)
    Learned(candidates='pairwise', share=0.2)
    """

    candidates: Literal["full", "superdiagonal", "cp", "pairwise"] | Random | Entries = "full"
    share: float = 0.5

    def __post_init__(self) -> None:
        if isinstance(self.share, bool) or not isinstance(self.share, int | float) or not 0 < self.share < 1:
            raise InputError(f"Learned: share must be between 0 and 1, not {self.share!r}.")
        known = ("full", "superdiagonal", "cp", "pairwise")
        if not isinstance(self.candidates, Random | Entries) and self.candidates not in known:
            raise InputError(f"Learned: candidates must be one of {known}, Random or Entries, not {self.candidates!r}.")


CoreSpec = Literal["auto", "identity", "full", "superdiagonal", "cp", "pairwise"] | Random | Entries | Learned


def places(pattern: CoreSpec, ranks: Sequence[int], rng: np.random.Generator | None = None) -> Ints:
    """The coordinates (Q, D) of the entries of a pattern; -1 for a mode that an entry leaves out.

    ``"superdiagonal"``, or ``"cp"``: (k, ..., k), a CP decomposition. ``"pairwise"``: an intercept; the main effect of
    every mode, which is its component 0; and for every two modes their components k = 1, 2, ... together, all other
    modes left out, as in a factorisation machine. ``"full"``: all. ``rng`` is for `Random`.

    Examples
    --------
    >>> places("pairwise", [2, 2, 2]).tolist()  # intercept, main effects, interactions
    [[-1, -1, -1], [0, -1, -1], [-1, 0, -1], [-1, -1, 0], [1, 1, -1], [1, -1, 1], [-1, 1, 1]]
    """
    if isinstance(pattern, Learned):
        return places(pattern.candidates, ranks, rng)
    if isinstance(pattern, Random):
        return _random(pattern, ranks, rng or np.random.default_rng())
    if isinstance(pattern, Entries):
        return _explicit(pattern, ranks)
    if pattern == "full":
        check_full(ranks)
        return np.indices(tuple(ranks)).reshape(len(ranks), -1).T.astype(np.int64)
    if pattern in ("superdiagonal", "cp"):
        if len(set(ranks)) > 1:
            raise InputError(f"A superdiagonal core needs the same rank in every mode, not {tuple(ranks)}.")
        return np.tile(np.arange(ranks[0])[:, None], (1, len(ranks))).astype(np.int64)
    if pattern == "pairwise":
        return _pairwise(ranks)
    raise InputError(f"A core has no pattern {pattern!r}; name 'full', 'superdiagonal', 'pairwise', Random or Entries.")


def check_full(ranks: Sequence[int]) -> None:
    """Refuse a full core that is too large."""
    entries = prod(map(int, ranks))
    if entries > LARGEST_FULL_CORE:
        raise InputError(
            f"A full core of ranks {tuple(ranks)} has {entries:,} entries; lower the rank, or use core='identity', "
            f"'superdiagonal', 'pairwise' or cores.Random(nonzeros)."
        )


def _pairwise(ranks: Sequence[int]) -> Ints:
    modes = len(ranks)
    if modes < 2 or min(ranks) < 2:
        raise InputError(
            f"A pairwise core needs two modes or more, each of rank 2 or more, one for its main effect; not ranks "
            f"{tuple(ranks)}."
        )
    entries = [{}, *({d: 0} for d in range(modes))]
    entries += [
        {d: k, e: k} for d, e in combinations(range(modes), 2) for k in range(1, min(int(ranks[d]), int(ranks[e])))
    ]
    return np.array([[entry.get(d, LEFT_OUT) for d in range(modes)] for entry in entries], dtype=np.int64)


def _random(pattern: Random, ranks: Sequence[int], rng: np.random.Generator) -> Ints:
    entries, count = prod(map(int, ranks)), pattern.nonzeros
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or not 1 <= count <= entries:
        raise InputError(f"cores.Random needs between 1 and {entries:,} nonzeros here, not {count!r}.")
    if entries > 2**63 - 1:
        columns = np.zeros((0, len(ranks)), dtype=np.int64)
        while len(columns) < count:
            more = np.stack([rng.integers(r, size=count) for r in ranks], axis=1)
            columns = np.unique(np.concatenate([columns, more]), axis=0)
        return columns[np.sort(rng.permutation(len(columns))[:count])]
    flat = _distinct_integers(entries, int(count), rng)
    return np.stack(np.unravel_index(flat, tuple(ranks)), axis=1).astype(np.int64)


def _distinct_integers(below: int, count: int, rng: np.random.Generator) -> Ints:
    """Draw ``count`` distinct integers, sorted, without listing all ``below`` of them where they are many."""
    if below <= 10_000_000:
        return np.sort(rng.choice(below, size=count, replace=False)).astype(np.int64)
    distinct = np.zeros(0, dtype=np.int64)
    while len(distinct) < count:
        distinct = np.unique(np.concatenate([distinct, rng.integers(below, size=count)]))
    return np.sort(rng.permutation(distinct)[:count])


def _explicit(pattern: Entries, ranks: Sequence[int]) -> Ints:
    if not pattern.places:
        raise InputError("Entries has no places; a core needs one entry at least.")
    for place in pattern.places:
        if len(place) != len(ranks):
            raise InputError(f"Entries: {place} has {len(place)} coordinates for {len(ranks)} modes.")
        if any(k is not None and not 0 <= k < r for k, r in zip(place, ranks, strict=True)):
            raise InputError(f"Entries: {place} is not within ranks {tuple(ranks)}; components count from 0.")
    if len(set(pattern.places)) < len(pattern.places):
        raise InputError("Entries: a place is there twice.")
    return np.array([[LEFT_OUT if k is None else k for k in place] for place in pattern.places], dtype=np.int64)


def _whole(number: Any) -> int:
    if isinstance(number, bool) or not isinstance(number, int | np.integer):
        raise InputError(f"Entries: coordinates are whole numbers from 0 on, or None, not {number!r}.")
    return int(number)


def inclusion_prior(share: float) -> tuple[float, float]:
    """Parameters of the beta prior of the probability that an entry of a learned pattern is included."""
    return PRIOR_COUNT * share, PRIOR_COUNT * (1 - share)


class Inclusion(NamedTuple):
    """The posterior probability of each entry of a core to be included.

    Attributes
    ----------
    places : tuple of tuples of int or None
        The entries; None for a mode that an entry leaves out.
    probability : ndarray, shape (Q,)
        The share of draws in which the entry is not 0.
    """

    places: tuple[tuple[int | None, ...], ...]
    probability: Floats


def inclusion(model: Any) -> Inclusion:
    """Posterior probabilities of the entries of a core, from the draws of a model fitted with ``core=Learned(...)``.

    They mean most where components cannot be exchanged: which modes interact, how many components there are.

    Parameters
    ----------
    model : TuckerGPRegressor or TuckerRecommender

    Examples
    --------
    Targets that depend on one of two columns:

    >>> from tuckergp import TuckerGPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(150, 2))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(150)
    >>> core = Learned(Entries([(0, None), (None, 0)]))
    >>> model = TuckerGPRegressor(rank=1, core=core, draws=100, warmup=100, random_state=0).fit(X, y)
    >>> entries = inclusion(model)
    >>> entries.places[0], bool(entries.probability[0] > 0.9)
    ((0, None), True)
    """
    if not hasattr(model, "fit_"):
        raise InputError(f"inclusion is for a fitted model, not {model!r}; call fit first.")
    draws = model.fit_.draws
    draws.require_kept()
    core = draws.model.core
    if core.share == 1:
        raise InputError("All entries of this core are there; fit with core=cores.Learned(...) to learn which are.")
    probability = np.mean(draws.W != 0, axis=0)
    named = tuple(tuple(None if k < 0 else k for k in place) for place in core.coords.tolist())
    return Inclusion(named, np.asarray(probability, dtype=np.float64))
