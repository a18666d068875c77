"""Ratings that take the place of earlier ones of the same user and item, where a person changes an opinion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tuckergp.data.history import History
from tuckergp.data.names import KEYS, RATING
from tuckergp.recommender.fitted import FittedRecommender
from tuckergp.recommender.fold_in import ratings_of

__all__ = ["without_earlier"]

Row = dict[str, Any]


def without_earlier(fitted: FittedRecommender, rows: Sequence[Row]) -> tuple[FittedRecommender, list[Row]]:
    """The model without the ratings of those who rate an item again, and all their ratings, the last of each item.

    Others keep theirs, and ``rows`` are then only new ones. For clicks, which add up, nothing changes.
    """
    if fitted.history.clicks:
        return fitted, list(rows)
    last = {(row[KEYS[0]], row[KEYS[1]]): row for row in rows}
    users = list(dict.fromkeys(user for user, _ in last))
    before = ratings_of(fitted.history, users, fitted.layout.sides[0])
    earlier = dict(zip(_pairs(before), _rows(before), strict=True))
    again = {user for user, item in earlier if (user, item) in last}
    kept = [row for pair, row in earlier.items() if pair[0] in again and pair not in last]
    for user in again:
        fitted = _unrated(fitted, user)
    return fitted, [*kept, *last.values()]


def _unrated(fitted: FittedRecommender, user: Any) -> FittedRecommender:
    """The model without the ratings of a user, who stays known."""
    choice = fitted.choice and _unrated(fitted.choice, user)
    return replace(fitted, history=fitted.history.without_user(user), choice=choice)


def _pairs(history: History) -> list[tuple[Any, Any]]:
    users, items = history.ids
    codes = zip(history.codes[0].tolist(), history.codes[1].tolist(), strict=True)
    return [(users[user], items[item]) for user, item in codes]


def _rows(history: History) -> list[Row]:
    names = list(history.occasion.columns)
    occasions = zip(*(history.occasion[name].tolist() for name in names), strict=True) if names else None
    cells = occasions or ((),) * len(history)
    return [
        {KEYS[0]: user, KEYS[1]: item, RATING: rating, **dict(zip(names, cell, strict=True))}
        for (user, item), rating, cell in zip(_pairs(history), history.rating.tolist(), cells, strict=True)
    ]
