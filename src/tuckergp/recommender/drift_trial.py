"""The trial behind ``time="auto"``: short runs on most of the training ratings, judged on the held-out rest."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from tuckergp.data.periods import Unit
from tuckergp.data.tables import Table
from tuckergp.errors import NotConvergedWarning
from tuckergp.evaluation.metrics import normal_nll
from tuckergp.random import stream
from tuckergp.recommender.answering import predict
from tuckergp.recommender.learning import Run, learn
from tuckergp.recommender.reading import Given
from tuckergp.recommender.settings import RecommenderSettings
from tuckergp.running.control import Control
from tuckergp.running.fit import ranks_of

__all__ = ["drift_helps"]

# The trial uses about this many ratings, all of those of some users, a tenth of them held out.
MOST_RATINGS = 100_000
LEAST_RATINGS = 500
HELD_OUT = 0.1
RANK, WARMUP, DRAWS = 8, 30, 30
UNITS: tuple[Unit | None, ...] = ("week", None)


def drift_helps(model: Any, ratings: Table, users: Any, items: Any, seed: int) -> bool:
    """Whether drift over weeks raises the log score of held-out ratings by more than its standard error.

    Runs two short chains on nine tenths of the ratings (of some users, where there are many), with and without weeks.
    ``model`` is a recommender or its settings.
    """
    if len(ratings) < LEAST_RATINGS:
        return False
    held, kept = _parts(ratings, stream(seed, 3))
    short = replace(
        RecommenderSettings.of(model),
        rank=min(RANK, ranks_of(model.rank, 2)[0]),
        inference="gibbs",
        likelihood="gaussian",
        warmup=WARMUP,
        draws=DRAWS,
        chains=1,
        implicit=False,
        n_jobs=None,
        random_state=seed,
    )
    scores = []
    for unit in UNITS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConvergedWarning)
            trial = learn(replace(short, time=unit), Given(kept, users, items), Run(Control(progress=False)))
        mean, std = predict(trial, held, return_std=True, clip=False)
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
