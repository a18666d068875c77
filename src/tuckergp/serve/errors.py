"""Every error as JSON with the right status: ``{"detail": "sentence"}``."""

from __future__ import annotations

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from tuckergp.errors import InputError
from tuckergp.serve.faults import sentences
from tuckergp.serve.refusals import NotFound, Unavailable
from tuckergp.serve.replies import Reply
from tuckergp.store.journal import JournalFault
from tuckergp.store.stored_rows import DamagedFile

__all__ = ["say_errors"]

log = logging.getLogger("tuckergp.serve")

SENTENCES = {
    404: "There is nothing at this address; /openapi.json lists what there is.",
    405: "This address takes no such method; /openapi.json lists what it takes.",
}


STATUS = ((NotFound, 404), (Unavailable, 503), (DamagedFile, 503), (JournalFault, 503), (InputError, 422))


def say_errors(app: FastAPI) -> None:
    """Make every error of an app a sentence in JSON with the right status."""
    app.add_exception_handler(InputError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(MemoryError, _no_memory)
    app.add_exception_handler(Exception, _bug)


def _sentence(status: int, text: str, headers: Any = None) -> Reply:
    return Reply({"detail": text}, status, headers)


async def _refused(request: Request, error: Exception) -> Reply:
    return _sentence(next(status for kind, status in STATUS if isinstance(error, kind)), str(error))


async def _invalid(request: Request, error: Exception) -> Reply:
    """What is wrong with a request, without what it sent."""
    assert isinstance(error, RequestValidationError)
    return _sentence(422, sentences(error.errors(), error.body, request.headers.get("content-type")))


async def _http(request: Request, error: Exception) -> Reply:
    assert isinstance(error, HTTPException)
    if error.status_code == 400:  # what FastAPI says of bodies that it cannot read
        return _sentence(422, "The body is broken JSON, or no UTF-8 text.")
    plain = error.detail == _phrase(error.status_code)
    return _sentence(error.status_code, SENTENCES.get(error.status_code, error.detail) if plain else error.detail,
                     error.headers)  # fmt: skip


def _phrase(status: int) -> str:
    return HTTPException(status).detail


async def _no_memory(request: Request, error: Exception) -> Reply:
    return _sentence(503, "There is not enough memory for this answer; ask for less at once.", {"Retry-After": "1"})


async def _bug(request: Request, error: Exception) -> Reply:
    log.exception(
        "%s %s failed", request.method, getattr(request.scope.get("route"), "path_format", "?"), exc_info=error
    )
    return _sentence(500, "Something went wrong here; the server's log says what.")
