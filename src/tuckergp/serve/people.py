"""People of a request: those who are known, and new ones with attributes, ratings, or both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tuckergp.data.names import KEYS
from tuckergp.serve.recommending import ServedRecommender
from tuckergp.serve.schemas import Person

__all__ = ["including", "row_of"]


def including(served: ServedRecommender, people: Sequence[Person]) -> tuple[ServedRecommender, list[Any]]:
    """The model for one answer, with what is said about people, and their ids.

    Whoever is not known, and of whom nothing is said, must be a mistake: 404.
    """
    ids = [_id_of(served, person, number) for number, person in enumerate(people)]
    rows = [{KEYS[0]: user, **person.attributes} for user, person in zip(ids, people, strict=True)]
    ratings = [
        {KEYS[0]: user, **row_of(rating)} for user, person in zip(ids, people, strict=True) for rating in person.ratings
    ]
    served = served.with_people(rows)
    return (served.with_ratings(ratings) if ratings else served), ids


def row_of(model: Any) -> dict[str, Any]:
    """A rating, or attributes, as a row without what is not given."""
    return {name: value for name, value in model.model_dump().items() if value is not None}


def _id_of(served: ServedRecommender, person: Person, number: int) -> Any:
    if person.user_id is None:
        return _new_id(served.model.layout_.sides[0].example, number)
    if person.attributes or person.ratings:
        return served.users.read(person.user_id)
    return served.users.known(person.user_id)


def _new_id(example: Any, number: int) -> Any:
    """An id that nobody has, of the type that ids have."""
    if isinstance(example, float):
        return -1e300 - number * 1e290
    if isinstance(example, int):
        return -(2**62) - number
    return f"\0new person {number}"
