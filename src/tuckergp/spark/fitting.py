"""`tuckergp.spark.fit`: a recommender learned where the ratings are.

Settings are those of `TuckerRecommender`, and so is the result. What needs more of the ratings than sums over users and
items is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.checks import Allowed, check
from tuckergp.data.history import KEYS
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.inference.algorithm import Sampled
from tuckergp.inference.base import Problem
from tuckergp.likelihoods.all_pairs import ITEM, USER, Cells
from tuckergp.likelihoods.background import Background
from tuckergp.model.design import Design
from tuckergp.model.tucker import Core
from tuckergp.posterior.fitted import Fit
from tuckergp.random import stream
from tuckergp.recommender import TuckerRecommender
from tuckergp.recommender.choice_trial import recentred, settled_choices
from tuckergp.recommender.choosing import attribute_choices, inference_of
from tuckergp.recommender.entities import read_attributes
from tuckergp.recommender.fitted import FittedRecommender
from tuckergp.recommender.layout import SIDES, Layout
from tuckergp.recommender.reading import Given, attribute_tables
from tuckergp.recommender.settings import RecommenderSettings
from tuckergp.running.control import Callback, Control
from tuckergp.running.fit import Inference, learn_problem, ranks_of, seed_for
from tuckergp.running.trials import MOST, settle
from tuckergp.spark.collecting import check_sizes, collected_draws, collected_ratings
from tuckergp.spark.frames import require_dataframe
from tuckergp.spark.problem import SparkProblem, Workers
from tuckergp.spark.reading import TASKS, Sharded, SparkRatings, read_ratings
from tuckergp.spark.sessions import returned
from tuckergp.spark.shards import Features, Summary, Targets
from tuckergp.spark.stored import Learned, StoredRecommender, check_unused, written
from tuckergp.spark.summed import summed
from tuckergp.statistics.evidence import NUMBERS

__all__ = ["fit"]

Floats = npt.NDArray[np.float64]

# What "auto" means here, and what else is refused: settings that need more of the ratings than sums over rows.
HERE: dict[str, tuple[Any, str]] = {
    "implicit": (False, "Co-rating kernels need the sets of all raters"),
    "time": (None, "Drift needs a row for each user and week"),
    "noise": ("shared", "Noise factors of rows need the residuals of each row"),
    "objective": ("rating", "A model of choices beside that of ratings is a second fit"),
}
SETTLED: dict[str, tuple[Any, ...]] = {
    "core": ("identity",),
    "context": ((), []),
    "duplicates": ("keep",),
    "chains": (1,),
}
# What a local fit may keep instead of draws.
MOMENTS = {"moments_of", "keep_draws"}
LIKELIHOODS = ("auto", "gaussian", "clicks")
FOLDER = Allowed(("a folder",), lambda value: isinstance(value, str | Path) and str(value) != "")


def fit(
    ratings: Any,
    users: Any = None,
    items: Any = None,
    *,
    partitions: int | None = None,
    shards: int | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_minutes: float = 5.0,
    max_time: float | None = None,
    callback: Callback | None = None,
    progress: bool | None = None,
    keep: int | None = None,
    store: str | Path | None = None,
    **settings: Any,
) -> TuckerRecommender | StoredRecommender:
    """Learn from a Spark data frame of ratings; while it learns, ratings and users' factors stay in Spark's workers.

    It draws the numbers that `TuckerRecommender.fit` draws, with the same settings and seed, from the same ratings
    sorted by user and item: results agree but for rounding. They are the same, bit for bit, for any number of
    partitions and of machines of one kind, and when tasks are repeated.

    Parameters
    ----------
    ratings : pyspark.sql.DataFrame
        With columns user_id, item_id and rating; other names are found as by `TuckerRecommender`. Ids are whole numbers
        or texts.
    users, items : table with user_id (item_id) and attributes, or None
        Spark data frames are collected.
    partitions : int or None
        Tasks of each sweep, at most as many as shards; None for as many as Spark has cores.
    shards : int or None
        Into how many ranges of users the ratings are cut, whose sums are added in a fixed order. None decides by the
        number of ratings alone: one for each two million, at least 8.
    checkpoint, checkpoint_minutes, max_time, callback, progress, keep
        As in `TuckerRecommender.fit`; the folder of the checkpoint is the driver's, and ``keep`` is at least 1.
    store : str, Path or None
        A new folder of any file system that Spark writes to. The workers write the factors and the ratings of the users
        there, as Parquet, and the driver holds neither; see `tuckergp.spark.StoredRecommender`. ``keep`` says how many
        draws there are of them.
    **settings
        Of `TuckerRecommender`: rank, inference ("gibbs" or "als", or an object), likelihood ("gaussian" or "clicks"),
        draws, random_state and so on.

    Returns
    -------
    TuckerRecommender
        As if it had been fitted here. The factors of all users, and all ratings, are then in the driver's memory. With
        ``store`` a `StoredRecommender`, for `tuckergp.spark.recommend` and `tuckergp.spark.predict`.
    """
    require_dataframe(ratings)
    if ratings.isStreaming:
        raise InputError("ratings is a stream, which has no end to learn from; write it to Parquet, and read that.")
    if keep == 0 or MOMENTS & set(settings):
        raise InputError(
            "tuckergp.spark.fit keeps draws, spread evenly over the sweeps, and no moments of predictions; say by keep "
            "how many, from 1 on, and leave moments_of and keep_draws out."
        )
    for name, value in (("partitions", partitions), ("shards", shards)):
        check(name, value, TASKS)
    model = TuckerRecommender(**_settings(settings))
    asked = RecommenderSettings.of(model)
    inference_of(asked)
    control = Control(checkpoint, checkpoint_minutes, max_time, callback, progress, None, keep=keep)
    if store is not None:
        check("store", store, FOLDER)
        store = str(store)
        check_unused(ratings.sparkSession, store)
    data, asked = read_ratings(ratings, asked, there=store is not None and users is None)
    inference = inference_of(asked)
    seed = seed_for(asked.random_state, checkpoint)
    given = Given(None, _collected(users), _collected(items))
    sources = zip(attribute_tables(given, asked, data.names), SIDES, KEYS, data.ids, strict=True)
    of_users, of_items = (read_attributes(source, name, key, ids) for source, name, key, ids in sources)
    tables = (of_users, of_items)
    layout, design = Layout.fit(data.history, tables, choices=attribute_choices(asked), rng=stream(seed, 1, 1))
    rows = design.modes[0].features
    features = Features(data.users.totals.users, rows[:1] if of_users is None else rows)
    sharded = data.sharded(features, partitions, shards)
    try:
        learned = _learn(asked, inference, data, design, features, sharded, seed, control, store is not None)
        low, high = asked.rating_scale or asked.kind.target_range(np.array([sharded.summary.low, sharded.summary.high]))
        history = replace(data.history, clicks=asked.kind.all_pairs)
        names = {**(asked.columns or {}), **data.names}
        whole = FittedRecommender(
            layout, learned.fit, history, None, tables, (float(low), float(high)), "pandas", names
        )
        if store is not None:
            return written(model, whole, learned, data, store, seed)
        return model._keep(_here(whole, learned, data.users, design, seed))
    finally:
        sharded.release()
        data.users.release()


def _here(whole: FittedRecommender, learned: Learned, users: Any, design: Design, seed: int) -> FittedRecommender:
    """The recommender with the factors of all users and all ratings in memory."""
    fit = replace(learned.fit, draws=collected_draws(learned.workers, learned.fit.draws, learned.number))
    user, item, rating = collected_ratings(learned.workers.sharded, users.per_user)
    occasion = Table({}, "ratings", len(rating))
    history = replace(whole.history, codes=(user, item), rating=rating, occasion=occasion)
    if history.clicks:
        fit = recentred(fit, replace(design, index=np.stack([user, item], axis=1)), seed)
    return replace(whole, fit=fit, history=history)


def _settings(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of a recommender, with what "auto" means here; refuses what cannot be."""
    for name, (meaning, why) in HERE.items():
        if settings.get(name, "auto") not in ("auto", meaning):
            raise InputError(f"{why}, which Spark's partitions do not have; use {name}={meaning!r}.")
    for name, allowed in SETTLED.items():
        given = settings.get(name, allowed[0])
        if (given.tolist() if isinstance(given, np.ndarray) else given) not in allowed:
            raise InputError(f"tuckergp.spark takes {name}={allowed[0]!r} alone; fit locally for another.")
    likelihood = settings.get("likelihood", "auto")
    if isinstance(likelihood, str) and likelihood not in LIKELIHOODS:
        raise InputError(f"tuckergp.spark learns likelihood='gaussian' and 'clicks', not {likelihood!r}; fit locally.")
    kind = settings.get("inference", "gibbs")
    algorithm = kind if isinstance(kind, str) else getattr(type(kind), "name", None)
    if algorithm is not None and algorithm not in ("gibbs", "als"):  # what has no name is refused by the settings
        raise InputError(f"tuckergp.spark learns by inference='gibbs' or 'als', not {kind!r}; fit locally.")
    if getattr(kind, "noise", "shared") == "rows":
        raise InputError(f"{HERE['noise'][1]}, which Spark's partitions do not have; use Gibbs(noise='shared').")
    unknown = set(settings) - set(TuckerRecommender._parameter_names())
    if unknown:
        raise InputError(f"tuckergp.spark.fit has no setting {min(unknown)!r}; it takes those of TuckerRecommender.")
    named = isinstance(kind, str) and kind == "gibbs"
    return {**settings, **{n: v for n, (v, _) in HERE.items() if n != "noise" or named}, "n_jobs": None}


def _collected(table: Any) -> Any:
    """A table of attributes on the driver."""
    if not hasattr(table, "toPandas"):
        return table
    with returned():
        return table.toPandas()


def _learn(
    asked: RecommenderSettings,
    inference: Inference,
    data: SparkRatings,
    design: Design,
    features: Features,
    sharded: Sharded,
    seed: int,
    control: Control,
    stored: bool,
) -> Learned:
    """Learn from ratings in workers."""
    core = inference.core(asked.core, ranks_of(asked.rank, 2), stream(seed, 1, 0), len(data))
    asked.kind.check_core(core)
    inference.check_likelihood(asked.kind)
    if sharded.summary.size != len(data):
        raise InputError(
            f"ratings gave {len(data):,} rows first and {sharded.summary.size:,} of the same users and items later, so "
            f"it is not the same each time that it is computed; write it to Parquet, or checkpoint() it."
        )
    rank, items = int(core.ranks[0]), design.modes[1].n_rows
    drawn = inference.draws // inference.thin if isinstance(inference, Sampled) else 1
    check_sizes(data, sharded, rank, drawn if control.keep is None else control.keep, stored)
    sample = Sample(data, sharded, design, seed)
    if asked.kind.all_pairs:
        likelihood, inference, control = sample.choices(asked, inference, core, control)
    else:
        _check_scale(asked, sharded.summary)
        likelihood = asked.kind(mean=sharded.summary.mean, scale=sharded.summary.std or 1.0)  # type: ignore[call-arg]
    zeros = likelihood.weights_of_zeros(data.per_item.astype(np.float64)) if asked.kind.all_pairs else None
    workers = Workers(sharded, Targets(likelihood, zeros), features)
    few = replace(design, modes=(summed(design.modes[0], features, rank, items), design.modes[1]))
    derived = {} if zeros is None else {"cells": _cells(zeros, few, workers)}

    def pose(algorithm: Inference) -> SparkProblem:
        return SparkProblem.of(algorithm.model(core, likelihood), few, workers, derived)

    inference, control = settle(inference, core, lambda asked: sample.problem(asked, core, likelihood), seed, control)
    control = replace(control, unit=likelihood.scale)
    draws, steps = learn_problem(inference, pose(inference), seed, control, None)
    number = NUMBERS[getattr(inference, "precision", "float64")]
    return Learned(Fit(draws, steps), workers, number)


def _check_scale(asked: RecommenderSettings, summary: Summary) -> None:
    scale = asked.rating_scale
    if scale is not None and (summary.low < scale[0] or summary.high > scale[1]):
        raise InputError(
            f"The ratings go from {summary.low:g} to {summary.high:g}, outside the scale from {scale[0]:g} to "
            f"{scale[1]:g}."
        )


def _cells(zeros: Floats, design: Design, workers: Workers) -> Cells:
    """The background of clicks, beside few rows that stand for users; the clicks themselves are in the workers."""
    rows = (design.modes[USER].n_rows, design.modes[ITEM].n_rows)
    background = Background.of(design.index, rows, np.ones(rows[USER]), zeros, ITEM)
    none, users = np.zeros(0), workers.sharded.plan.n_users
    return Cells(none, none, background, workers.facts.surplus, float(users * rows[ITEM]))


@dataclass
class Sample:
    """Ratings of some users on the driver, enough for trials; fetched when they are asked for.

    Attributes
    ----------
    data : SparkRatings
    sharded : Sharded
    whole : Design
        With a row for each user, or with one that stands for each.
    seed : int
    """

    data: SparkRatings
    sharded: Sharded
    whole: Design
    seed: int

    @cached_property
    def ratings(self) -> tuple[Design, Floats]:
        """Their design and the ratings: all, where they are not too many."""
        import pyarrow.compute as pc

        users, n = self.sharded.plan.n_users, len(self.data)
        chosen = np.ones(users, dtype=bool) if n <= MOST else stream(self.seed, 1, 3).random(users) < MOST / n
        user, item, rating = self.sharded.of_users(lambda user: chosen[user])
        # in the order of ids, which is that of a sorted table: what is held out depends on it
        places = np.argsort(pc.sort_indices(self.data.items).to_numpy())
        order = np.lexsort((rating, places[item], user))
        user, item, rating = user[order], item[order], rating[order]
        rows, (first, second) = np.unique(user), self.whole.modes
        table = first.take(rows if first.n_rows > 1 else np.zeros_like(rows))
        alone = table.with_residual(table.residual.renumbered(len(rows)))
        index = np.stack([np.searchsorted(rows, user), item], axis=1).astype(np.int32)
        return Design((alone, second), index), rating

    def problem(self, algorithm: Inference, core: Core, likelihood: Any) -> Problem:
        """Of a trial of ratings."""
        design, rating = self.ratings
        return Problem(algorithm.model(core, likelihood), design, likelihood.targets(rating))

    def choices(
        self, asked: RecommenderSettings, inference: Inference, core: Core, control: Control
    ) -> tuple[Any, Inference, Control]:
        """What is left open of clicks, by the trial of the local fit, and the algorithm and the time that is left."""
        given: Any = asked.kind() if isinstance(asked.likelihood, str) else asked.likelihood
        if given.activity not in ("auto", 0):
            raise InputError("Clicks(activity=...) is for TuckerRecommender without Spark; leave it out here.")
        given = replace(given, activity=0.0)
        design, counts = self.ratings
        likelihood, inference, control = settled_choices(given, inference, core, design, counts, self.seed, control)
        return replace(likelihood, typical=self.data.typical), inference, control
