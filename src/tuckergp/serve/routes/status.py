"""`/health`, `/version` and `/metrics`: whether the server answers, what it serves, and how it fares."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import PlainTextResponse

import tuckergp
from tuckergp.serve.computing import TimedRoute
from tuckergp.serve.metrics import Metrics
from tuckergp.serve.replies import Reply
from tuckergp.serve.routes.common import ERRORS, service_of

__all__ = ["router"]

router = APIRouter(tags=["status"], responses=ERRORS, route_class=TimedRoute)


class Health(BaseModel):
    """Whether the server answers."""

    status: str = Field(examples=["ok"])
    fault: bool = Field(description="Whether a newer model file was not taken; /version says why.")


class Version(BaseModel):
    """What is served."""

    tuckergp: str = Field(examples=["0.1.0"])
    model: dict[str, Any] = Field(examples=[{"kind": "recommender", "users": 943, "items": 1682, "draws": 250}])


@router.head("/health", include_in_schema=False)
@router.get("/health", response_model=Health, summary="Whether the server answers")
async def health(request: Request) -> Any:
    """Status ``ok``. It is answered while others wait for the model."""
    return Reply({"status": "ok", "fault": service_of(request).fault is not None})


@router.get("/version", response_model=Version, summary="What is served")
def version(request: Request) -> Any:
    """The version of tuckergp, and the model: its kind, its size, when its file was written and loaded."""
    return Reply({"tuckergp": tuckergp.__version__, "model": service_of(request).facts})


@router.get("/metrics", response_class=PlainTextResponse, summary="Figures for Prometheus")
async def figures(request: Request) -> Any:
    """Requests by status, latencies, age of the model, memory, and how far recent ratings are from predictions."""
    metrics: Metrics = request.app.state.metrics
    metrics.note(service_of(request).figures)
    return PlainTextResponse(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
