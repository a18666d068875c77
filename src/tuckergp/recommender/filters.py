"""Which items may be recommended: those listed, those with some attributes, and those with enough ratings."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.checks import check, whole
from tuckergp.data.history import History
from tuckergp.errors import DataWarning, InputError
from tuckergp.recommender.conditions import conditions_of
from tuckergp.recommender.entities import Side
from tuckergp.recommender.fitted import FittedRecommender
from tuckergp.recommender.questions import allowed_items

__all__ = ["eligible_items", "ratings_per_item"]


def eligible_items(
    fitted: FittedRecommender, items: Any, exclude: Any, where: Any, min_ratings: int
) -> npt.NDArray[np.bool_]:
    """Which items may be recommended, by their rows; with a warning where ``where`` and ``min_ratings`` leave none."""
    side = fitted.layout.sides[1]
    allowed = allowed_items(items, exclude, side, fitted.names)
    if not allowed.any():
        raise InputError("There is nothing to recommend: items and exclude leave no item.")
    check("min_ratings", min_ratings, whole(0))
    conditions = [] if where is None else conditions_of(where, fitted.tables[1], side.attributes)
    for condition in conditions:
        allowed &= condition.rows(side)
    if min_ratings:
        allowed &= ratings_per_item(fitted.history, side) >= min_ratings
    if not allowed.any():
        asked = [*(["where"] if conditions else []), *([f"min_ratings={min_ratings}"] if min_ratings else [])]
        why = next((f": {condition.available}" for condition in conditions if not condition.holds.any()), "")
        warnings.warn(
            f"There is nothing to recommend: no item is left by {' and '.join(asked)}{why}.", DataWarning, stacklevel=4
        )
    return allowed


def ratings_per_item(history: History, side: Side) -> npt.NDArray[np.int64]:
    """The number of ratings, or of choices, of the item of each row, those folded in included, shape (n_rows,)."""
    counts = np.zeros(side.table.n_rows, dtype=np.int64)
    for part in (history.base, *history.parts):
        np.add.at(counts, side.numbers(part.ids[1]), part.ratings_per_item)
    return counts
