"""From tables to a fitted recommender: reading, choosing defaults, building the modes, fitting the model.

Each step is in a file of its own. How a fitted recommender takes in more ratings is in `tuckergp.recommender.updating`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tuckergp.data.frames import backend_of
from tuckergp.data.history import KEYS, History
from tuckergp.data.periods import Unit
from tuckergp.data.tables import Table
from tuckergp.errors import InputError, NotConvergedWarning
from tuckergp.model.design import Design
from tuckergp.posterior.moments import Moments, MomentsOf, of_draws
from tuckergp.random import stream
from tuckergp.recommender.choice_trial import recentred, settled_choices
from tuckergp.recommender.choosing import attribute_choices, check_context, inference_of, time_unit, uses_implicit
from tuckergp.recommender.clicks import with_negatives
from tuckergp.recommender.continuation import start_from
from tuckergp.recommender.entities import read_attributes
from tuckergp.recommender.fitted import FittedRecommender
from tuckergp.recommender.fold_in import Folded
from tuckergp.recommender.layout import SIDES, Layout
from tuckergp.recommender.reading import Given, attribute_tables, pairs_table, ratings_table, read_history
from tuckergp.recommender.settings import RecommenderSettings
from tuckergp.recommender.value import choice_settings, wants_choices
from tuckergp.running.checkpoint import store_choice, stored_choice
from tuckergp.running.control import Control
from tuckergp.running.fit import Inference, fit_model, ranks_of, seed_for
from tuckergp.store.trees import digest

__all__ = ["Material", "Run", "learn", "learn_from"]


# The folder of a checkpoint for the model of choices.
CHOICES = "choices"
# A function that tells whether drift over weeks helps, given settings, ratings, both attribute tables, a seed, and
# seconds for the answer.
Trial: TypeAlias = Callable[[RecommenderSettings, Table, Any, Any, int, float | None], bool]


class Run(NamedTuple):
    """Run control of a fit, the pairs whose moments are wanted, and how many draws to keep."""

    control: Control = Control()
    moments_of: Any = None
    keep: int | None = None


class Material(NamedTuple):
    """The data to learn from: ratings, attributes, unit of drift, seed, kind of data frames, names of columns."""

    history: History
    tables: tuple[Table | None, Table | None]
    unit: Unit | None
    seed: int
    backend: str
    names: Mapping[str, str]


def learn(
    settings: RecommenderSettings, given: Given, run: Run, drift_helps: Trial = lambda *_: False
) -> FittedRecommender:
    """Fit a recommender to tables, as `TuckerRecommender.fit` describes.

    ``drift_helps`` decides what ``time="auto"`` means where drift is possible.
    """
    began = time.monotonic()
    inference_of(settings)  # refuses what cannot be, before anything is read
    table, names, settings = ratings_table(given.ratings, settings)
    inference = inference_of(settings)
    seed = seed_for(settings.random_state, run.control.checkpoint)
    check_context(settings, inference)
    history = read_history(table, settings)
    sources = zip(attribute_tables(given, settings, names), SIDES, KEYS, history.ids, strict=True)
    users, items = (read_attributes(source, name, key, ids) for source, name, key, ids in sources)

    def helps() -> bool:
        folder = run.control.checkpoint
        whose = "" if folder is None else digest((table.columns, seed))
        known = stored_choice(folder, whose)
        if known is None:
            # at most half of the time is for the trial
            limit = None if run.control.max_time is None else run.control.max_time / 2
            known = {"choice": drift_helps(settings, table, given.users, given.items, seed, limit)}
            store_choice(folder, whose, known["choice"])
        return bool(known["choice"])

    unit = time_unit(settings, inference, table, history.clicks, helps)
    if unit is None:
        history = replace(history, occasion=history.occasion.select(settings.contexts))
    names = {**(settings.columns or {}), **names}
    material = Material(history, (users, items), unit, seed, backend_of(given.ratings), names)
    if run.control.max_time is not None:
        left = max(0.0, run.control.max_time - (time.monotonic() - began))
        run = run._replace(control=replace(run.control, max_time=left))
    fitted = learn_from(settings, inference, material, run)
    if not wants_choices(settings, history.clicks, len(history)):
        return fitted
    return replace(fitted, choice=_choices(settings, material, run, began))


def beside(run: Run) -> Run:
    """The run of a model of choices beside that of ratings: it has a part of the checkpoint of its own."""
    folder = run.control.checkpoint
    return Run(replace(run.control, checkpoint=None if folder is None else Path(folder) / CHOICES))


def _choices(settings: RecommenderSettings, material: Material, run: Run, began: float) -> FittedRecommender:
    """The model of choices beside that of ratings; it has a part of the checkpoint, and the time that is left."""
    limit = run.control.max_time
    left = None if limit is None else max(0.0, limit - (time.monotonic() - began))
    own = choice_settings(settings)
    material = material._replace(history=material.history.choices(), unit=None)
    run = beside(run)
    run = run._replace(control=replace(run.control, max_time=left))
    with warnings.catch_warnings():  # few draws do for the order of items, and users did not ask for more
        warnings.simplefilter("ignore", NotConvergedWarning)
        return learn_from(own, inference_of(own), material, run)


def learn_from(
    settings: RecommenderSettings, inference: Inference, material: Material, run: Run, last: Folded | None = None
) -> FittedRecommender:
    """Fit a recommender to data that were read, from scratch or from the last draws of a model with the same rows."""
    history, seed = material.history, material.seed
    later = settings.kind.all_pairs  # the link is set right after the fit, and moments follow it
    if later and run.keep == 0:
        raise InputError("Clicks need draws after the fit, for the link: leave out keep=0 or keep_draws=False.")
    codes, y, occasion = history.codes, history.rating, history.occasion
    likelihood: Any = settings.likelihood
    if history.clicks and not settings.kind.all_pairs:
        sample = with_negatives(history, settings.negatives, stream(seed, 1, 2))
        codes, y, occasion = (sample.user, sample.item), sample.y, history.occasion.take(sample.row)
    layout, design = Layout.fit(
        history,
        material.tables,
        codes=codes,
        occasion=occasion,
        choices=attribute_choices(settings),
        implicit=uses_implicit(settings, inference, history),
        unit=material.unit,
        context=settings.contexts,
        rng=stream(seed, 1, 1),
    )
    wanted = None if run.moments_of is None else MomentsOf(_pairs(run.moments_of, layout, material.names))
    control = replace(run.control, moments_of=None if later else wanted, keep=run.keep)
    ranks = ranks_of(settings.rank, len(design.modes))
    core = settings.core if last is None else last.fit.draws.model.core
    if settings.kind.all_pairs and last is None:
        asked: Any = settings.kind() if isinstance(likelihood, str) else likelihood
        core = inference.core(core, ranks, stream(seed, 1, 0), len(y))
        settings.kind.check_core(core)
        likelihood, inference, control = settled_choices(asked, inference, core, design, y, seed, control)
    fit = fit_model(
        design,
        y,
        None,
        ranks=ranks,
        core=core,
        inference=inference,
        seed=seed,
        likelihood=likelihood,
        control=control,
        start=last and start_from(last.layout, last.fit, layout, design, occasion, inference, seed),
    )
    if settings.kind.all_pairs:
        fit = recentred(fit, design, seed)
        if wanted is not None:
            fit = replace(fit, draws=replace(fit.draws, moments=of_draws(fit.draws, wanted)))
    low, high = settings.rating_scale if settings.rating_scale is not None else fit.likelihood.target_range(y)
    between = (float(low), float(high))
    moments = None if wanted is None else _clipped(fit.moments(), between)
    return FittedRecommender(
        layout, fit, history, material.unit, material.tables, between, material.backend, material.names, moments
    )


def _pairs(asked: Any, layout: Layout, names: Mapping[str, str]) -> Design:
    """The design of the pairs whose moments are wanted."""
    return layout.pairs(pairs_table(asked, names, layout))


def _clipped(moments: Moments, between: tuple[float, float]) -> Moments:
    return replace(moments, mean=np.clip(moments.mean, *between))
