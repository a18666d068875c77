"""`tuckergp explore`: the page of one model on this machine, in a browser that is opened for it."""

from __future__ import annotations

import socket
import threading
import time
import webbrowser
from collections.abc import Callable
from pathlib import Path

import uvicorn

from tuckergp.errors import InputError
from tuckergp.serve.app import create_app
from tuckergp.serve.pages import PageState

__all__ = ["explore"]

HOST = "127.0.0.1"


def explore(path: Path, page: PageState, port: int, opened: bool, say: Callable[[str], None]) -> None:
    """Serve the page of a model file until Ctrl-C; port 0 is any that is free, and ``opened`` opens a browser."""
    app = create_app(path)
    app.state.page = page
    with _listening(port) as listener:
        address = f"http://{HOST}:{listener.getsockname()[1]}/"
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        if opened:
            threading.Thread(target=_open, args=(server, address), daemon=True).start()
        say(address)
        server.run(sockets=[listener])


def _listening(port: int) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen(128)  # who asks before the server is ready waits for it
    except OSError:
        listener.close()
        raise InputError(f"Port {port} is in use; give another one, or none for one that is free.") from None
    return listener


def _open(server: uvicorn.Server, address: str) -> None:
    while not server.started and not server.should_exit:
        time.sleep(0.02)
    if server.started:
        webbrowser.open(address)
