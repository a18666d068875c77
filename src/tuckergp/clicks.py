"""Feedback without ratings: pairs that were not chosen, drawn at random, stand for the zeros of a Bernoulli model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.errors import InputError
from tuckergp.history import History

__all__ = ["Sample", "with_negatives"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Rows = npt.NDArray[np.intp]

# How often pairs that turn out to be clicks are drawn anew before they are left out.
TRIES = 20


class Sample(NamedTuple):
    """Clicks and pairs without a click: their codes, 1 or 0, and the click that a pair shares user and moment with."""

    user: Ints
    item: Ints
    y: Floats
    row: Rows


def with_negatives(history: History, negatives: int, rng: np.random.Generator) -> Sample:
    """Add ``negatives`` pairs for every click: its user and moment, and an item the user never clicked.

    Items are drawn evenly, so that the model learns what is popular, too.

    Parameters
    ----------
    history : History
        Distinct clicks.
    negatives : int
    rng : Generator
    """
    if not isinstance(negatives, int | np.integer) or negatives < 1:
        raise InputError(f"negatives must be a whole number from 1 on, not {negatives!r}.")
    n, n_items = len(history), len(history.ids[1])
    user, item = history.codes
    clicked = np.sort(history.pairs())
    row = np.repeat(np.arange(n), negatives)
    other = np.full(len(row), -1, dtype=np.int32)
    todo = np.arange(len(row))
    for _ in range(TRIES):
        other[todo] = rng.integers(n_items, size=len(todo), dtype=np.int32)
        pair = user[row[todo]].astype(np.int64) * n_items + other[todo]
        place = np.minimum(np.searchsorted(clicked, pair), n - 1)
        todo = todo[clicked[place] == pair]
        if not len(todo):
            break
    keep = np.ones(len(row), dtype=bool)
    keep[todo] = False  # of users who clicked nearly everything
    row = row[keep]
    if not len(row):
        raise InputError("Every user clicked every item; there is nothing to tell apart.")
    rows = np.concatenate([np.arange(n), row])
    y = np.concatenate([np.ones(n), np.zeros(len(row))])
    return Sample(user[rows], np.concatenate([item, other[keep]]), y, rows)
