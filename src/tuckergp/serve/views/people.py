"""One person and one item as the page shows them: attributes, ratings, and how an item's ratings are distributed."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.data.history import History
from tuckergp.recommender.fitted import FittedRecommender
from tuckergp.serve.entities import Entities
from tuckergp.serve.recommending import ServedRecommender
from tuckergp.serve.views.cells import facts

__all__ = ["about_item", "about_person", "distribution", "levels_of", "some_ratings"]

Floats = npt.NDArray[np.float64]

MOST_LEVELS = 12
"""More different ratings than that are shown in as many bins."""

MOST_PEOPLE = 1_000
"""How many people's ratings tell the levels, and how ratings are distributed."""

MOST_RATINGS = 500
"""How many ratings of one person are listed, the highest first."""


def about_person(served: ServedRecommender, user: Any) -> dict[str, Any]:
    """Attributes of a user and what the user has rated, the last rating of each item, the highest first."""
    rated = {line["item_id"]: line for line in served.ratings_of(user)}
    listed = sorted(rated.values(), key=lambda line: -line["rating"])[:MOST_RATINGS]
    return {
        **_described(served.users, user),
        "count": len(rated),
        "ratings": [{"id": str(line["item_id"]), "title": line["title"], "rating": line["rating"]} for line in listed],
    }


def _described(entities: Entities, value: Any) -> dict[str, Any]:
    (described,) = entities.described([value])
    attributes = facts(described["attributes"], entities.texts.title_column)
    return {"id": str(value), "title": described["title"], "attributes": attributes}


def about_item(served: ServedRecommender, item: Any, levels: list[float]) -> dict[str, Any]:
    """Attributes of an item, and how often it has each rating."""
    fitted = served.fitted
    given = fitted.history.of_item(item)
    return {
        **_described(served.items, item),
        "count": len(given),
        "mean": float(given.mean()) if len(given) and not fitted.history.clicks else None,
        "distribution": [] if fitted.history.clicks else distribution(given, levels),
    }


def levels_of(fitted: FittedRecommender) -> list[float]:
    """The ratings that can be given: levels of the model, else those that occur if they are few and regular."""
    if fitted.history.clicks:
        return []
    if len(fitted.fit.levels):
        return [float(level) for level in fitted.fit.levels]
    base, (low, high) = fitted.history.base, fitted.rating_range
    if not len(base):  # saved without ratings
        return [float(level) for level in np.arange(low, high + 0.5)] if high - low < MOST_LEVELS else []
    known = np.unique(some_ratings(base))
    return [float(level) for level in known] if len(known) <= MOST_LEVELS and _regular(known) else []


def some_ratings(history: History) -> Floats:
    """The ratings of up to a thousand people, those of the others being alike."""
    return history.of_users(np.arange(min(MOST_PEOPLE, len(history.ids[0])))).rating


def _regular(values: Floats) -> bool:
    """Whether the distances of some values are multiples of the smallest one, as those of half stars are."""
    steps = np.diff(values)
    return len(steps) == 0 or bool(np.allclose(steps / steps.min(), np.round(steps / steps.min())))


def distribution(given: Floats, levels: list[float]) -> list[dict[str, Any]]:
    """How many of some ratings are at each level, or in each of ten bins of equal width where there are no levels."""
    if levels:
        nearest = np.abs(given[:, None] - np.array(levels)).argmin(axis=1)
        counts = np.bincount(nearest, minlength=len(levels))
        return [{"label": f"{level:g}", "count": int(n)} for level, n in zip(levels, counts, strict=True)]
    if not len(given):
        return []
    counts, edges = np.histogram(given, bins=min(10, len(given)))
    spans = zip(edges[:-1], edges[1:], counts, strict=True)
    return [{"label": f"{low:.3g} to {high:.3g}", "count": int(n)} for low, high, n in spans]
