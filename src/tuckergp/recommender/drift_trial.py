"""The trial behind ``time="auto"``: short runs on most of the training ratings, judged on the held-out rest."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from tuckergp.data.periods import Unit
from tuckergp.data.tables import Table
from tuckergp.errors import DataWarning, NotConvergedWarning
from tuckergp.evaluation.metrics import normal_nll
from tuckergp.random import stream
from tuckergp.recommender.answering import predict
from tuckergp.recommender.learning import Run, learn
from tuckergp.recommender.reading import Given
from tuckergp.recommender.settings import RecommenderSettings
from tuckergp.running.control import Control
from tuckergp.running.fit import ranks_of
from tuckergp.running.loop import ctrl_c_interrupts

__all__ = ["drift_helps"]

# The trial uses about this many ratings, all of those of some users, a tenth of them held out.
MOST_RATINGS = 100_000
LEAST_RATINGS = 500
HELD_OUT = 0.1
RANK, WARMUP, DRAWS = 8, 30, 30
UNITS: tuple[Unit | None, ...] = ("week", None)


def drift_helps(model: Any, ratings: Table, users: Any, items: Any, seed: int, max_time: float | None = None) -> bool:
    """Whether drift over weeks raises the log score of held-out ratings by more than its standard error.

    Runs two short chains on nine tenths of the ratings (of some users, where there are many), with and without weeks.
    ``model`` is a recommender or its settings. With less than it takes in ``max_time`` seconds, the answer is no, with
    a warning. Ctrl-C interrupts it: there is no result so far.
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
        objective="rating",
        n_jobs=None,
        random_state=seed,
    )
    scores = []
    until = None if max_time is None else time.monotonic() + max_time
    for unit in UNITS:
        left = None if until is None else max(0.0, until - time.monotonic())
        control = Control(progress=False, max_time=left)
        with warnings.catch_warnings(), ctrl_c_interrupts():
            warnings.simplefilter("ignore", NotConvergedWarning)
            trial = learn(replace(short, time=unit), Given(kept, users, items), Run(control))
        if len(trial.fit.steps) < WARMUP + DRAWS:
            warnings.warn(
                "The time was too short to try out whether users drift, so they do not; raise max_time, or say it by "
                "time='week' or time=None.",
                DataWarning,
                stacklevel=6,
            )
            return False
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
