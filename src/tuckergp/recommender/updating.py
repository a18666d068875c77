"""More ratings for a fitted recommender: folded in without a new fit, or by continued learning."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tuckergp.data.names import KEYS, RATING, named_table
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.inference.algorithm import Sampled
from tuckergp.random import seed_of, stream
from tuckergp.recommender.choosing import inference_of
from tuckergp.recommender.continuation import check_continuation, continued_seed, last_draws
from tuckergp.recommender.fitted import FittedRecommender
from tuckergp.recommender.fold_in import Folded, fold_in
from tuckergp.recommender.growth import compacted, merged_tables
from tuckergp.recommender.learning import Material, Run, beside, learn_from
from tuckergp.recommender.reading import AttributeTables, Given, attribute_tables
from tuckergp.recommender.settings import RecommenderSettings
from tuckergp.recommender.value import choice_settings

__all__ = ["go_on", "with_ratings"]


def with_ratings(fitted: FittedRecommender, settings: RecommenderSettings, given: Given) -> FittedRecommender:
    """The recommender with new ratings folded in, as `TuckerRecommender.fold_in` describes."""
    table, tables = _read(fitted, settings, given)
    seed = int(stream(seed_of(settings.random_state), 4).integers(2**63))  # each row has a stream named by its id
    layout, fit, history = fold_in(
        fitted.layout, fitted.fit, fitted.history, table, tables, **_reading(settings), seed=seed
    )
    low, high = fitted.rating_range
    if settings.rating_scale is None and not history.clicks:
        latest = history.parts[-1] if history.parts else history
        low, high = min(low, float(latest.rating.min())), max(high, float(latest.rating.max()))
    return replace(
        fitted,
        layout=layout,
        fit=fit,
        history=history,
        tables=_merged(fitted.tables, tables),
        rating_range=(low, high),
        moments=None,
        choice=fitted.choice and with_ratings(fitted.choice, choice_settings(settings), Given(table, *tables)),
    )


def go_on(
    fitted: FittedRecommender, settings: RecommenderSettings, given: Given, run: Run, warmup: int
) -> FittedRecommender:
    """The recommender after more learning from old and new ratings, as `TuckerRecommender.partial_fit` describes."""
    if fitted.history.is_withheld:
        raise InputError("The file was saved without ratings, so learning cannot go on; load the one with them.")
    settings = settings.decided(not fitted.history.clicks)
    inference = inference_of(settings)
    if isinstance(inference, Sampled):
        inference = replace(inference, warmup=warmup)
    check_continuation(fitted, settings, inference)
    inference = inference.settled_as(fitted.fit.draws.model)
    last = Folded(fitted.layout, last_draws(fitted.fit), fitted.history)
    seed = continued_seed(settings.random_state, run.control.checkpoint, last.fit)
    table, tables = _read(fitted, settings, given)
    if len(table):
        last = fold_in(*last, table, tables, **_reading(settings), seed=seed)
    last = Folded(*compacted(*last))
    material = Material(
        last.history.flat, _merged(fitted.tables, tables), fitted.time, seed, fitted.backend, fitted.names or {}
    )
    learned = learn_from(settings, inference, material, run, last)
    if fitted.choice is None:
        return learned
    choice = go_on(fitted.choice, choice_settings(settings), Given(table, *tables), beside(run), warmup)
    return replace(learned, choice=choice)


def _read(fitted: FittedRecommender, settings: RecommenderSettings, given: Given) -> tuple[Table, AttributeTables]:
    """The new ratings and attributes, with ids of the types that were decided at the fit."""
    layout = fitted.layout
    table = named_table(given.ratings, "ratings", fitted.names)
    for side in layout.sides:
        table = side.to_keep(table)
    if fitted.fit.likelihood.all_pairs:  # every row is a choice, whatever its rating
        table = table.select(name for name in table.columns if name != RATING)
    users, items = (
        None if one is None else side.to_keep(one)
        for side, one in zip(layout.sides, attribute_tables(given, settings, fitted.names), strict=True)
    )
    return table, (users, items)


def _reading(settings: RecommenderSettings) -> dict[str, Any]:
    """The settings that say how to read ratings."""
    return {"scale": settings.rating_scale, "duplicates": settings.duplicates, "negatives": settings.negatives}


def _merged(before: AttributeTables, new: AttributeTables) -> AttributeTables:
    """The attribute tables of a model, with new rows added or replaced."""
    users, items = (merged_tables(before[d], new[d], KEYS[d]) for d in range(2))
    return users, items
