"""`tuckergp explore`: the page of one model on this machine, in a browser that is opened for it."""

from __future__ import annotations

import threading
import time
import webbrowser
from collections.abc import Callable
from pathlib import Path

import uvicorn

from tuckergp.serve.app import app_of
from tuckergp.serve.computing import cores_shared
from tuckergp.serve.connections import listen, server_of
from tuckergp.serve.pages import PageState
from tuckergp.serve.settings import ServeSettings

__all__ = ["explore"]

HOST = "127.0.0.1"


def explore(path: Path, page: PageState, port: int, opened: bool, say: Callable[[str], None]) -> None:
    """Serve the page of a model file until Ctrl-C; port 0 is any that is free, and ``opened`` opens a browser."""
    settings = ServeSettings(path, answer_within=0.0)  # a copy of the model takes as long as a fit
    app = app_of(settings, page)
    page.check(app.state.service.current().model)
    with listen(HOST, port) as listening:
        address = f"http://{HOST}:{listening.getsockname()[1]}/"
        server = server_of(app, settings)
        if opened:
            threading.Thread(target=_open, args=(server, address), daemon=True).start()
        say(address)
        with cores_shared(settings):
            server.run(sockets=[listening])


def _open(server: uvicorn.Server, address: str) -> None:
    while not server.started and not server.should_exit:
        time.sleep(0.02)
    if server.started:
        webbrowser.open(address)
