"""Lists: recommendations for known people, new ones and groups; similar users and items."""

from __future__ import annotations

import re
from typing import Annotated, Any
from urllib.parse import unquote

from fastapi import APIRouter, Path, Query, Request
from pydantic import AfterValidator

from tuckergp.serve.computing import TimedRoute
from tuckergp.serve.options import arguments, together
from tuckergp.serve.people import including
from tuckergp.serve.replies import Reply
from tuckergp.serve.routes.common import ERRORS, service_of
from tuckergp.serve.schemas import Lists, QueryOptions, Recommendations, RecommendRequest, SimilarItems, SimilarUsers

__all__ = ["router"]

router = APIRouter(tags=["lists"], responses=ERRORS, route_class=TimedRoute)


def id_of_segment(text: str) -> str:
    """The id that a segment of a path stands for; paths come as they were sent (see `Guard`).

    Clients take ``.`` and ``..`` out of paths, however they are encoded, and nothing is no segment. So these have a
    tilde before them, and ids of tildes before such dots have one tilde more.

    Examples
    --------
    >>> [id_of_segment(text) for text in ("~..", "~", "~~.", "a%2Fb", "~ann")]
    ['..', '', '~.', 'a/b', '~ann']
    """
    value = unquote(text)
    return value[1:] if re.fullmatch(r"~+\.{0,2}", value) else value


TILDE = "A tilde stands before the ids `.`, `..` and the empty one: `~..`."
UserId = Annotated[
    str, Path(description=f"The user's id as text. {TILDE}", examples=["u0001"]), AfterValidator(id_of_segment)
]
ItemId = Annotated[
    str, Path(description=f"The item's id as text. {TILDE}", examples=["i0001"]), AfterValidator(id_of_segment)
]
Count = Annotated[int, Query(description="How many.", ge=1, le=1000)]


@router.get(
    "/users/{user_id}/recommendations", response_model=Recommendations, summary="The best items for a known user"
)
def recommendations(request: Request, user_id: UserId, asked: Annotated[QueryOptions, Query()]) -> Any:
    """The best items for a known user, best first, with standard deviations of the score and reasons if asked for."""
    served = service_of(request).recommender()
    user = served.users.known(user_id)
    (items,) = served.recommend([user], **arguments(served, asked))
    return Reply({"user_id": user, "items": items})


@router.post(
    "/recommendations",
    response_model=Lists,
    summary="Lists for known people, new people and groups",
)
def recommend(request: Request, asked: RecommendRequest) -> Any:
    """Lists for some people, or one for them together. What is said about new people counts for this answer alone."""
    known = service_of(request).recommender()
    served, users = including(known, asked.users)
    given = arguments(served, asked, lists=len(users))
    if asked.together is not None:
        items = served.recommend_together(users, how=asked.together, **together(given))
        return Reply({"lists": [{"user_id": None, "items": items}]})
    lists = served.recommend(users, **given)
    shown = [None if person.user_id is None else user for person, user in zip(asked.users, users, strict=True)]
    return Reply({"lists": [{"user_id": user, "items": items} for user, items in zip(shown, lists, strict=True)]})


@router.get("/items/{item_id}/similar", response_model=SimilarItems, summary="Items like one")
def similar_items(request: Request, item_id: ItemId, n: Count = 10) -> Any:
    """The items that the same people like, relative to what all like, with their correlation."""
    served = service_of(request).recommender()
    item = served.items.known(item_id)
    return Reply({"item_id": item, "items": served.similar(1, item, n)})


@router.get("/users/{user_id}/similar", response_model=SimilarUsers, summary="Users like one")
def similar_users(request: Request, user_id: UserId, n: Count = 10) -> Any:
    """The users who like the same items, relative to their own average, with their correlation."""
    served = service_of(request).recommender()
    user = served.users.known(user_id)
    return Reply({"user_id": user, "users": served.similar(0, user, n)})
