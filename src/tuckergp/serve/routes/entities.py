"""`/users` and `/items`: who and what the model knows, searched by id or title, in pages."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from tuckergp.serve.computing import TimedRoute
from tuckergp.serve.replies import Reply
from tuckergp.serve.routes.common import ERRORS, service_of
from tuckergp.serve.routes.lists import UserId
from tuckergp.serve.schemas import Items, UserDetails, Users

__all__ = ["router"]

router = APIRouter(tags=["users and items"], responses=ERRORS, route_class=TimedRoute)

Search = Annotated[
    str, Query(description="Text in the id or the title, in any case.", max_length=200, examples=["star"])
]
Offset = Annotated[int, Query(description="How many to pass over.", ge=0, le=2**31)]
Limit = Annotated[int, Query(description="The most of them.", ge=1, le=1000)]


@router.get("/users", response_model=Users, summary="Users by id")
def users(request: Request, search: Search = "", offset: Offset = 0, limit: Limit = 50) -> Any:
    """Users whose id, or title where users have one, holds a text; all without one."""
    known = service_of(request).recommender().users
    total, ids = known.page(search, offset, limit)
    return Reply({"total": total, "offset": offset, "users": known.described(ids)})


@router.get("/items", response_model=Items, summary="Items by id or title")
def items(request: Request, search: Search = "", offset: Offset = 0, limit: Limit = 50) -> Any:
    """Items whose id or title holds a text; all without one."""
    known = service_of(request).recommender().items
    total, ids = known.page(search, offset, limit)
    return Reply({"total": total, "offset": offset, "items": known.described(ids)})


@router.get("/users/{user_id}", response_model=UserDetails, summary="What is known of a user")
def user(request: Request, user_id: UserId) -> Any:
    """The attributes and the ratings of a user, those folded in included."""
    served = service_of(request).recommender()
    known = served.users.known(user_id)
    return Reply({**served.users.described([known])[0], "ratings": served.ratings_of(known)})
