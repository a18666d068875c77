"""The server: one process, or several that share a socket."""

from __future__ import annotations

import uvicorn

from tuckergp.serve.app import app_of
from tuckergp.serve.settings import ServeSettings

__all__ = ["run"]


def run(settings: ServeSettings, host: str, port: int) -> None:
    """Serve until SIGTERM or Ctrl-C."""
    uvicorn.Server(uvicorn.Config(app_of(settings), host=host, port=port, log_level="warning")).run()
