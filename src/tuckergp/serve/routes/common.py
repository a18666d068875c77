"""What all addresses share: the service behind a request, and the errors that every answer may be."""

from __future__ import annotations

from typing import Any

from fastapi import Request

from tuckergp.serve.schemas import Error
from tuckergp.serve.service import Service

__all__ = ["ERRORS", "service_of"]

ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": Error, "description": "This is no HTTP request."},
    401: {"model": Error, "description": "The token is missing or wrong."},
    403: {"model": Error, "description": "Asked by another name, or by a page of another site."},
    404: {"model": Error, "description": "The model does not know it."},
    405: {"model": Error, "description": "The address takes no such method."},
    408: {"model": Error, "description": "The request did not come to its end."},
    413: {"model": Error, "description": "The request is too large."},
    422: {"model": Error, "description": "The request makes no sense."},
    429: {"model": Error, "description": "Too many requests."},
    500: {"model": Error, "description": "A fault of the server; its log says which."},
    503: {"model": Error, "description": "Not now."},
}


def service_of(request: Request) -> Service:
    """What answers a request."""
    service: Service = request.app.state.service
    return service
