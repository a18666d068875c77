"""`/health` and `/version`: whether the server answers, and what it serves. Neither waits for the model."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

import tuckergp
from tuckergp.serve.replies import Reply
from tuckergp.serve.routes.common import ERRORS, service_of

__all__ = ["router"]

router = APIRouter(tags=["status"], responses=ERRORS)


@router.get("/health", summary="Whether the server answers")
async def health(request: Request) -> dict[str, Any]:
    """Status ``ok``. It is answered while others wait for the model."""
    return {"status": "ok"}


@router.get("/version", summary="What is served")
def version(request: Request) -> Any:
    """The version of tuckergp, and the model: its kind, its size, when its file was written and loaded."""
    return Reply({"tuckergp": tuckergp.__version__, "model": service_of(request).facts})
