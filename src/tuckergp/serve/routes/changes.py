"""`/fold-in` and ``DELETE /users``: ratings that are kept, and people who are forgotten, in all workers."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from tuckergp.errors import InputError
from tuckergp.serve.computing import TimedRoute
from tuckergp.serve.people import row_of
from tuckergp.serve.replies import Reply
from tuckergp.serve.routes.common import ERRORS, service_of
from tuckergp.serve.routes.lists import UserId
from tuckergp.serve.schemas import Folded, FoldInRequest, Forgotten

__all__ = ["router"]

router = APIRouter(tags=["changes"], responses=ERRORS, route_class=TimedRoute)


@router.post("/fold-in", response_model=Folded, summary="Add ratings")
def fold_in(request: Request, asked: FoldInRequest) -> Any:
    """Add ratings of known or new users: the next answer of any worker takes them into account.

    The model file stays as it is. A rating of an item that the user rated before takes the place of that one; clicks
    add up. Attributes without ratings change those of their users; attributes that are not named stay as they were.
    """
    ratings, users = [row_of(rating) for rating in asked.ratings], [row_of(user) for user in asked.users]
    if not ratings and not users:
        raise InputError("There is nothing to add: give ratings, or attributes of users.")
    before, after = service_of(request).fold_in(ratings, users)
    request.app.state.metrics.drift.add(before, ratings)
    ids = after.users.read_all([row["user_id"] for row in [*ratings, *users]])
    return Reply({"ratings": len(ratings), "users": list(dict.fromkeys(ids))})


@router.delete("/users/{user_id}", response_model=Forgotten, summary="Forget a user")
def forget(request: Request, user_id: UserId) -> Any:
    """Forget a user: ratings, attributes and vectors, in all workers and in the journal; the model file stays as it is.

    The journal keeps the id, so that a restart forgets the user again, until a file without the user takes its place.
    """
    return Reply({"forgotten": service_of(request).forget(user_id)})
