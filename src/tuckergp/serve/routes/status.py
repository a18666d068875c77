"""`/health`, `/version` and `/metrics`: whether the server answers, what it serves, and how it fares."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import PlainTextResponse

import tuckergp
from tuckergp.serve.replies import Reply
from tuckergp.serve.routes.common import ERRORS, service_of

__all__ = ["router"]

router = APIRouter(tags=["status"], responses=ERRORS)


class Health(BaseModel):
    """Whether the server answers."""

    status: str = Field(examples=["ok"])
    fault: str | None = Field(None, description="Why a newer model file was not taken; the old model is served.")


class Version(BaseModel):
    """What is served."""

    tuckergp: str = Field(examples=["0.1.0"])
    model: dict[str, Any] = Field(examples=[{"kind": "recommender", "users": 943, "items": 1682, "draws": 250}])


@router.get("/health", response_model=Health, summary="Whether the server answers")
async def health(request: Request) -> Any:
    """Status ``ok``. It is answered while others wait for the model."""
    return Reply({"status": "ok", "fault": service_of(request).fault})


@router.get("/version", response_model=Version, summary="What is served")
def version(request: Request) -> Any:
    """The version of tuckergp, and the model: its kind, its size, when its file was written and loaded."""
    return Reply({"tuckergp": tuckergp.__version__, "model": service_of(request).facts})


@router.get("/metrics", response_class=PlainTextResponse, summary="Figures for Prometheus")
async def metrics(request: Request) -> Any:
    """Requests by status, latencies, age of the model, memory, and how far recent ratings are from predictions."""
    service = service_of(request)
    text = request.app.state.metrics.text(*service.times, service.reloads, service.fault)
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")
