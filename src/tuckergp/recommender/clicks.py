"""Negative sampling: for clicks, random pairs without a click are the zeros of a Bernoulli model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.checks import check, whole
from tuckergp.data.history import History
from tuckergp.errors import InputError

__all__ = ["Sample", "with_negatives"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.integer]


class Sample(NamedTuple):
    """Clicks and sampled pairs: their codes, 1 or 0, and the click whose user and occasion each pair shares."""

    user: npt.NDArray[np.int32]
    item: npt.NDArray[np.int32]
    y: Floats
    row: Ints


def with_negatives(
    history: History,
    negatives: int,
    rng: np.random.Generator,
    required: bool = True,
    never: Ints | None = None,
) -> Sample:
    """Add up to ``negatives`` pairs per click, each with its user and occasion and an item the user never clicked.

    The items of a user are drawn uniformly and without repetition, all of them where there are fewer, so that the model
    also learns what is popular, and no absence counts twice. They take the occasions of the user's clicks in turn.

    Parameters
    ----------
    history : History
        Distinct clicks.
    negatives : int
    rng : Generator
    required : bool
        Raise an error if there is no pair without a click.
    never : ndarray of int or None
        Numbers that stand for no item.
    """
    check("negatives", negatives, whole(1))
    n_items = len(history.ids[1])
    user, item = history.codes
    clicks = np.bincount(user, minlength=len(history.ids[0]))
    never = np.zeros(0, dtype=np.intp) if never is None else never
    free = n_items - len(never) - clicks
    wanted = np.minimum(negatives * clicks, free)
    if required and not wanted.any():
        raise InputError("Every user clicked every item; there is nothing to tell apart.")
    closed = (np.arange(len(clicks))[:, None] * n_items + never).ravel()
    clicked = np.sort(np.concatenate([history.pairs(), closed]))
    # where most pairs are wanted, drawing until all are distinct takes longer than a shuffle
    most = wanted > free // 2
    shuffled = _shuffled(clicked, np.flatnonzero(most), wanted, n_items, rng)
    pairs = np.concatenate([shuffled, _drawn(clicked, np.where(most, 0, wanted), n_items, rng)])
    pairs = pairs[np.argsort(pairs // n_items, kind="stable")]
    other = pairs // n_items
    # the user's clicks in turn
    by_user = np.argsort(user, kind="stable")
    turn = np.arange(len(pairs)) - np.repeat(np.cumsum(wanted) - wanted, wanted)
    row = by_user[(np.cumsum(clicks) - clicks)[other] + turn % clicks[other]]
    rows = np.concatenate([np.arange(len(user)), row])
    y = np.concatenate([np.ones(len(user)), np.zeros(len(pairs))])
    return Sample(user[rows], np.concatenate([item, (pairs % n_items).astype(np.int32)]), y, rows)


def _drawn(clicked: Ints, wanted: Ints, n_items: int, rng: np.random.Generator) -> Ints:
    """Draw the wanted number of pairs of each user, again until none is a click and all are distinct."""
    taken = np.zeros(0, dtype=np.intp)
    while True:
        short = wanted - np.bincount(taken // n_items, minlength=len(wanted))
        if not short.any():
            return rng.permutation(taken)
        tried = np.repeat(np.arange(len(wanted)), short) * n_items + rng.integers(n_items, size=int(short.sum()))
        place = np.minimum(np.searchsorted(clicked, tried), len(clicked) - 1)
        taken = np.union1d(taken, tried[clicked[place] != tried])


def _shuffled(clicked: Ints, users: Ints, wanted: Ints, n_items: int, rng: np.random.Generator) -> Ints:
    """The wanted number of pairs of each user, from a random order of all pairs without a click."""
    cells = [np.zeros(0, dtype=np.intp)]
    for user in users:
        first, last = np.searchsorted(clicked, [user * n_items, (user + 1) * n_items])
        free = np.ones(n_items, dtype=bool)
        free[clicked[first:last] - user * n_items] = False
        cells.append(user * n_items + rng.permutation(np.flatnonzero(free))[: wanted[user]])
    return np.concatenate(cells)
