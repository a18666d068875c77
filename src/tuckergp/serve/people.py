"""People of a request: those who are known, and new ones with attributes, ratings, or both."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Sequence
from itertools import count
from typing import Any

from tuckergp.data.names import KEYS
from tuckergp.errors import InputError
from tuckergp.serve.recommending import ServedRecommender
from tuckergp.serve.schemas import Person

__all__ = ["including", "new_id", "row_of"]


def including(served: ServedRecommender, people: Sequence[Person]) -> tuple[ServedRecommender, list[Any]]:
    """The model for one answer, with what is said about people, and their ids.

    Whoever is not known, and of whom nothing is said, must be a mistake: 404.
    """
    ids = _ids_of(served, people)
    rows = [_of(user, person.attributes) for user, person in zip(ids, people, strict=True) if person.attributes]
    ratings = [_of(user, row_of(rating)) for user, person in zip(ids, people, strict=True) for rating in person.ratings]
    return (served.with_ratings(ratings, rows) if ratings or rows else served), ids


def _of(user: Any, row: dict[str, Any]) -> dict[str, Any]:
    if KEYS[0] in row:
        raise InputError("Ratings and attributes of a person have no user_id of their own; it stands beside them.")
    return {**row, KEYS[0]: user}


def row_of(model: Any) -> dict[str, Any]:
    """A rating, or attributes, as a row without what is not given."""
    return {name: value for name, value in model.model_dump().items() if value is not None}


def _ids_of(served: ServedRecommender, people: Sequence[Person]) -> list[Any]:
    """The ids of people; those who have none get one that nobody has, in the model or in the request."""
    ids = [None if person.user_id is None
           else (served.users.read if person.attributes or person.ratings else served.users.known)(person.user_id)
           for person in people]  # fmt: skip
    side, named = served.users.side, set(ids)
    free = (value for value in (new_id(side.example, number) for number in count())
            if value not in side.number and value not in named)  # fmt: skip
    return [next(free) if value is None else value for value in ids]


def new_id(example: Any, number: int) -> Any:
    """An id of the type that ids have."""
    if isinstance(example, float):
        return -1e300 - number * 1e290
    if isinstance(example, int):
        return -(2**62) - number
    if isinstance(example, datetime.datetime):
        return datetime.datetime.max.replace(tzinfo=example.tzinfo) - datetime.timedelta(microseconds=number)
    if isinstance(example, datetime.date):
        return datetime.date.max - datetime.timedelta(days=number)
    if isinstance(example, uuid.UUID):
        return uuid.UUID(int=2**128 - 1 - number)
    name = f"\0new person {number}"
    return (name,) if isinstance(example, tuple) else name.encode() if isinstance(example, bytes) else name
