"""What the page has to know of a model before it shows anything: its kind, its scale, and how to describe a person."""

from __future__ import annotations

from typing import Any

import numpy as np

from tuckergp.recommender.attributes import join
from tuckergp.recommender.decisions import as_numbers
from tuckergp.recommender.filters import ratings_per_item
from tuckergp.recommender.fitted import FittedRecommender
from tuckergp.recommender.titles import title_column
from tuckergp.serve.recommending import ServedRecommender
from tuckergp.serve.views.cells import bag_of

__all__ = ["about_recommender"]

POPULAR = 80
"""How many of the items with the most ratings a new person is shown first."""

MOST_CHOICES = 100


def about_recommender(served: ServedRecommender, levels: list[float]) -> dict[str, Any]:
    """Scale and levels of ratings, attributes of people, and items that many know."""
    fitted, side = served.fitted, served.items.side
    count = ratings_per_item(fitted.history, side)
    rows = np.flatnonzero(side.current)
    rows = rows[np.argsort(-count[rows], kind="stable")[:POPULAR]]
    popular = side.ids_at(rows)
    clicks = fitted.history.clicks
    return {
        "clicks": clicks,
        "has_ratings": len(fitted.history.base) > 0,  # a file may be saved without them
        "whole_ids": isinstance(fitted.layout.sides[0].example, int),
        "range": None if clicks else list(fitted.rating_range),
        "levels": levels,
        "sampled": fitted.fit.draws.sampled,
        "has_titles": title_column(fitted.tables[1]) is not None,
        "by": served.by,
        "questions": questions(fitted),
        "popular": [
            {"id": str(value), "title": title}
            for value, title in zip(popular, served.items.titles(popular), strict=True)
        ],
    }


def questions(fitted: FittedRecommender) -> list[dict[str, Any]]:
    """What can be said of a new person: a number with its range, or one of the values that others have."""
    table, side = fitted.tables[0], fitted.layout.sides[0]
    if table is None:
        return []
    rows = join(table, side.key, table[side.key].tolist()[:10_000], table.name)
    found: list[dict[str, Any]] = []
    for attribute in side.attributes.used:
        if attribute.column not in rows.columns or attribute.column == side.key:
            continue
        if attribute.use == "number":
            values = as_numbers(rows, attribute.column)
            ends = [float(np.nanmin(values)), float(np.nanmax(values))] if np.isfinite(values).any() else None
            found.append({"name": attribute.column, "use": "number", "range": ends})
        elif attribute.use in ("category", "bag"):
            each = sorted({str(value) for cell in rows[attribute.column].tolist() for value in bag_of(cell)})
            if len(each) <= MOST_CHOICES:
                found.append({"name": attribute.column, "use": "category", "values": each})
    return found
