"""Choices that are made by trying: short runs on a part of the training ratings, judged on another part of them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from tuckergp.data.tables import Table
from tuckergp.errors import NotConvergedWarning
from tuckergp.evaluation.metrics import normal_nll
from tuckergp.random import stream
from tuckergp.running.fit import ranks_of

__all__ = ["drift_helps"]

# The ratings of so many users are tried as make this many, a tenth of them held out.
MOST_RATINGS = 100_000
LEAST_RATINGS = 500
HELD_OUT = 0.1
RANK, WARMUP, DRAWS = 8, 30, 30


def drift_helps(model: Any, ratings: Table, users: Any, items: Any, seed: int) -> bool:
    """Whether weeks raise the log score of held-out ratings by more than its standard error.

    Two short chains on nine tenths of the ratings (of some users, where there are many), with weeks and without.
    """
    if len(ratings) < LEAST_RATINGS:
        return False
    rng = stream(seed, 3)
    held, kept = _parts(ratings, rng)
    settings = {
        "rank": min(RANK, ranks_of(model.rank, 2)[0]),
        "warmup": WARMUP,
        "draws": DRAWS,
        "chains": 1,
        "n_jobs": None,
    }
    scores = []
    for unit in ("week", None):
        trial = clone(model).set_params(**settings, implicit=False, time=unit, likelihood="gaussian", random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConvergedWarning)
            trial.set_params(inference="gibbs").fit(kept, users, items, progress=False)
        mean, std = trial.predict(held, return_std=True, clip=False)
        scores.append(normal_nll(held.numeric("rating"), mean, std))
    gain = scores[1] - scores[0]
    return bool(gain.mean() > gain.std() / np.sqrt(len(gain)))


def _parts(ratings: Table, rng: np.random.Generator) -> tuple[Table, Table]:
    rows = np.arange(len(ratings))
    if len(rows) > MOST_RATINGS:
        number = {value: place for place, value in enumerate(dict.fromkeys(ratings["user_id"].tolist()))}
        user = np.array([number[value] for value in ratings["user_id"].tolist()])
        chosen = rng.random(len(number)) < MOST_RATINGS / len(rows)
        rows = rows[chosen[user]]
    held = rng.random(len(rows)) < HELD_OUT
    return ratings.take(rows[held]), ratings.take(rows[~held])
