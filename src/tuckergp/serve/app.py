"""The app of one model file: its addresses, its page, and its errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import FastAPI

import tuckergp
from tuckergp.serve.errors import say_errors
from tuckergp.serve.routes import ROUTERS
from tuckergp.serve.service import Service
from tuckergp.serve.settings import ServeSettings
from tuckergp.serve.static import add_page

__all__ = ["create_app"]


def create_app(path: str | Path, **settings: Any) -> FastAPI:
    """An ASGI app that serves a model file.

    Parameters
    ----------
    path : path
    **settings
        Those of `ServeSettings`.

    Raises
    ------
    InputError
        For a file that is missing, damaged, or of a newer version.
    """
    return app_of(ServeSettings(Path(path), **settings))


def app_of(settings: ServeSettings) -> FastAPI:
    """The app with these settings."""
    app = FastAPI(
        title="tuckergp",
        version=tuckergp.__version__,
        description="Predictions and recommendations of one model, with their uncertainty and the reasons for them.",
        docs_url=None,  # these pages load scripts of others
        redoc_url=None,
    )
    app.state.service = Service(settings)
    for router in ROUTERS:
        app.include_router(router)
    say_errors(app)
    add_page(app)
    return app
