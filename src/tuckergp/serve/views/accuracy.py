"""How far predictions are from ratings that a model has not learned from, and whether its intervals hold as many.

Ratings that it has learned from do not tell, however they are weighted or hidden afterwards: the items know them. So
there are two sources, and the page says which: a table that was held out of the fit, or a copy of the model that is
learned from nine tenths of the ratings in its file and predicts the rest. Pairs of such a table that the file has as
ratings are left out.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.data.history import History
from tuckergp.data.names import KEYS
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.inference import INFERENCES
from tuckergp.recommender import TuckerRecommender
from tuckergp.recommender.answering import best_items, predict
from tuckergp.recommender.filters import ratings_per_item
from tuckergp.recommender.fitted import FittedRecommender
from tuckergp.recommender.learning import Run, learn
from tuckergp.recommender.reading import Given
from tuckergp.recommender.settings import RecommenderSettings
from tuckergp.running.control import Control

__all__ = ["check_held_out", "figures", "of_copy", "of_recommender", "of_regressor"]

Floats = npt.NDArray[np.float64]

HELD_OUT, MOST_RATINGS = 0.1, 200_000
"""The share of ratings that a copy is judged by, and how many ratings it has, all of those of some people."""

MOST_TESTED = 2_000
"""How many held-out ratings are predicted."""

WARMUP, DRAWS = 40, 60
"""The settings of a copy that is learned by sampling: enough for its error to be within a percent or so."""

SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
LIST = 10


def of_recommender(fitted: FittedRecommender, held: Table) -> dict[str, Any]:
    """Figures at ratings, or clicks, that the fit has not had; ``held`` has the usual names of columns."""
    given, held = len(held), unseen(fitted, held)
    left_out = None if fitted.history.is_withheld else given - len(held)
    return {**_of_unseen(fitted, held), "left_out": left_out}


def unseen(fitted: FittedRecommender, held: Table) -> Table:
    """The rows of a test table whose pairs the model has not learned from, as far as its file has ratings."""
    if not len(held):
        raise InputError(f"{held.name} has no rows to judge the model by; give another table.")
    history = fitted.history.base
    if history.is_withheld:
        return held
    numbers = [np.array([known.get(value, -1) for value in held[key].tolist()], dtype=np.int64)
               for key, known in zip(KEYS, (history.users, history.items), strict=True)]  # fmt: skip
    users = np.unique(numbers[0][numbers[0] >= 0])
    items, starts = history.items_of(users)
    width = len(history.ids[1])
    learned = np.repeat(users, np.diff(starts)) * width + items
    is_known = np.isin(numbers[0] * width + numbers[1], learned) & (numbers[0] >= 0) & (numbers[1] >= 0)
    if is_known.all():
        raise InputError(
            f"The model has learned from all {len(held):,} rows of {held.name}, which cannot judge it; give ratings or "
            f"clicks that were held out of the fit."
        )
    return held.take(np.flatnonzero(~is_known))


def check_held_out(fitted: FittedRecommender, held: Table) -> None:
    """Refuse a table that figures cannot be computed from, at the cost of one prediction."""
    held = unseen(fitted, held)
    if fitted.history.clicks:
        _wanted(fitted, held)
    else:
        _of_unseen(fitted, held.head(1))


def _of_unseen(fitted: FittedRecommender, held: Table) -> dict[str, Any]:
    rows = np.random.default_rng(0).permutation(len(held))[:MOST_TESTED]
    if fitted.history.clicks:
        return {"source": "held out", **_hits(fitted, held)}
    some = held.take(np.sort(rows))
    rating = some.numeric("rating")
    usual = np.full(len(rating), float(fitted.fit.mean))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of newcomers, who are predicted like others
        found = figures(lambda **asked: predict(fitted, some, **asked), rating, usual, fitted)
    return {"source": "held out", "of": len(held), **found}


def of_regressor(model: Any, inputs: Table, target: Floats, output: str | None = None) -> dict[str, Any]:
    """Figures at observations that the fit has not had, where there are several outputs of one of them."""
    rows = np.sort(np.random.default_rng(0).permutation(len(target))[:MOST_TESTED])
    some, y = inputs.take(rows), target[rows]

    def answer(clip: bool = True, **asked: Any) -> Any:
        return model.predict(some, output=output, **asked)

    fitted = model._outputs.chosen(output).in_units(model._fitted)
    found = figures(answer, y, np.full(len(y), float(fitted.fit.mean)), fitted)
    return {"source": "held out", "of": len(target), **found}


def of_copy(model: TuckerRecommender) -> dict[str, Any]:
    """Learn a copy from nine tenths of the ratings in a file, as long as a short fit takes; judge it by the rest."""
    fitted, settings = model._fitted, RecommenderSettings.of(model)
    kept, held = _parts(fitted.history.base)
    short: dict[str, Any] = {"time": fitted.time, "objective": "rating", "n_jobs": None, "random_state": 0}
    if isinstance(settings.inference, str) and "draws" in INFERENCES[settings.inference].takes:
        short |= {"warmup": min(WARMUP, settings.warmup), "draws": min(DRAWS, settings.draws), "chains": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        copy = learn(replace(settings, **short), Given(kept, *fitted.tables), Run(Control(progress=False)))
    return {**_of_unseen(copy, held), "source": "copy", "learned_from": len(kept)}


def _parts(history: History) -> tuple[Table, Table]:
    """Nine tenths of the ratings and the rest as tables, of as many people as have the largest number allowed."""
    rng = np.random.default_rng(0)
    people = len(history.ids[0])
    if len(history) > MOST_RATINGS:
        share = MOST_RATINGS / len(history)
        history = history.of_users(np.sort(rng.permutation(people)[: max(1, round(share * people))]))
    flat = history.flat
    columns: dict[str, npt.NDArray[Any]] = dict(flat.occasion.columns)
    for key, ids, code in zip(("user_id", "item_id"), flat.ids, flat.codes, strict=True):
        known = np.empty(len(ids), dtype=object)
        known[:] = ids
        columns[key] = known[code]
    table = Table({**columns, **({} if flat.clicks else {"rating": flat.rating})}, "ratings", len(flat))
    held = rng.random(len(flat)) < HELD_OUT
    return table.take(np.flatnonzero(~held)), table.take(np.flatnonzero(held))


def figures(answer: Any, y: Floats, usual: Floats, fitted: Any) -> dict[str, Any]:
    """Errors of predictions and of a usual value, and for each share the part of targets within their interval."""
    error = y - answer()
    coverage = []
    if fitted.fit.draws.sampled:
        for share in SHARES:
            _, ends = answer(interval=share, clip=False)
            coverage.append({"share": share, "inside": float(np.mean((ends[:, 0] <= y) & (y <= ends[:, 1])))})
    return {
        "n": len(y),
        "rmse": float(np.sqrt(np.mean(error**2))),
        "mae": float(np.mean(np.abs(error))),
        "usual_rmse": float(np.sqrt(np.mean((y - usual) ** 2))),
        "coverage": coverage,
    }


def _hits(fitted: FittedRecommender, held: Table) -> dict[str, Any]:
    """For how many people a list of ten holds a held-out item: the model's list, and that of the most chosen items."""
    wanted = _wanted(fitted, held)
    people = list(wanted)[:MOST_TESTED]
    listed = best_items(fitted, people, LIST, True, None, None, "mean", 1.0, 0, None)
    names = fitted.names or {}
    ours: dict[Any, set[Any]] = {person: set() for person in people}
    for person, item in zip(*(list(listed[names.get(key, key)]) for key in ("user_id", "item_id")), strict=True):
        ours[person].add(item)
    side = fitted.layout.sides[1]
    known = np.flatnonzero(side.current)
    popular = side.ids_at(known[np.argsort(-ratings_per_item(fitted.history, side)[known], kind="stable")])
    usual = []
    for person in people:
        own = fitted.history.base.of_users(np.array([fitted.history.users[person]]))
        seen = set(own.ids[1])
        best = (item for item in popular if item not in seen)
        usual.append(any(item in wanted[person] for _, item in zip(range(LIST), best, strict=False)))
    return {
        "n": len(held),
        "people": len(people),
        "hit_rate": float(np.mean([bool(wanted[person] & ours[person]) for person in people])),
        "usual_hit_rate": float(np.mean(usual)),
    }


def _wanted(fitted: FittedRecommender, held: Table) -> dict[Any, set[Any]]:
    """The held-out items of each person whom the model knows."""
    wanted: dict[Any, set[Any]] = {}
    for person, item in zip(held["user_id"].tolist(), held["item_id"].tolist(), strict=True):
        if person in fitted.history.users:
            wanted.setdefault(person, set()).add(item)
    if not wanted:
        raise InputError(f"The model knows nobody in {held.name}, so that there are no lists to judge; give others.")
    return wanted
