"""The files of the page, read once at the start: no path of a request touches the disk."""

from __future__ import annotations

import mimetypes
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from fastapi import FastAPI, Request
from starlette.responses import Response

__all__ = ["add_page", "page_files"]

INDEX = "index.html"


def page_files() -> dict[str, tuple[bytes, str]]:
    """Content and media type of each file, by its address; ``/`` is the index."""
    found = dict(_files(files("tuckergp.serve") / "page", ""))
    return {**found, "/": found[f"/{INDEX}"]} if f"/{INDEX}" in found else found


def _files(folder: Traversable, above: str) -> Any:
    for entry in folder.iterdir():
        address = f"{above}/{entry.name}"
        if entry.is_dir():
            yield from _files(entry, address)
        elif not entry.name.startswith((".", "__")):
            yield address, (entry.read_bytes(), _media_type(entry.name))


def _media_type(name: str) -> str:
    kind = "text/javascript" if name.endswith((".js", ".mjs")) else mimetypes.guess_type(name)[0]
    kind = kind or "application/octet-stream"
    return f"{kind}; charset=utf-8" if kind.startswith("text/") else kind


def add_page(app: FastAPI) -> None:
    """Serve the files of the page, each at its own address."""
    for address, (content, kind) in page_files().items():
        app.add_route(address, _serving(content, kind), include_in_schema=False)


def _serving(content: bytes, kind: str) -> Any:
    async def answer(request: Request) -> Response:
        return Response(content, media_type=kind)

    return answer
