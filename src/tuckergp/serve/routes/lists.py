"""Lists of recommendations."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request

from tuckergp.serve.replies import Reply
from tuckergp.serve.routes.common import ERRORS, service_of
from tuckergp.serve.schemas import Recommendations

__all__ = ["router"]

router = APIRouter(tags=["recommendations"], responses=ERRORS)

UserId = Annotated[str, Path(description="The user's id as text.", examples=["u0001"])]


@router.get(
    "/users/{user_id:path}/recommendations", response_model=Recommendations, summary="The best items for a known user"
)
def recommendations(request: Request, user_id: UserId, n: Annotated[int, Query(ge=1, le=1000)] = 10) -> Any:
    """The best items for a known user, best first."""
    served = service_of(request).recommender()
    user = served.users.known(user_id)
    return Reply({"user_id": user, "items": served.recommend([user], n=n)})
