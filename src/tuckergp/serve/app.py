"""The app of one model file: its addresses, its page, its errors, and the guard around them."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from anyio import to_thread
from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.types import ASGIApp

import tuckergp
from tuckergp.serve.errors import say_errors
from tuckergp.serve.guard import Guard
from tuckergp.serve.metrics import Metrics
from tuckergp.serve.openapi import OPEN, completed
from tuckergp.serve.pages import PageState
from tuckergp.serve.routes import ROUTERS
from tuckergp.serve.service import Service
from tuckergp.serve.settings import ServeSettings
from tuckergp.serve.static import add_page, page_files
from tuckergp.serve.warming import warm
from tuckergp.serve.watching import Watcher
from tuckergp.store.journal import Journal

__all__ = ["create_app"]


def create_app(path: str | Path, **settings: Any) -> App:
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


class App(FastAPI):
    """An app with a `Guard` around all of it, also around what answers errors."""

    def openapi(self) -> dict[str, Any]:
        """What there is to ask, with examples."""
        if self.openapi_schema is None:
            self.openapi_schema = completed(super().openapi(), self.state.settings.token is not None)
        return self.openapi_schema

    def build_middleware_stack(self) -> ASGIApp:
        """The layers of the app, the guard outside."""
        metrics: Metrics = self.state.metrics
        return Guard(super().build_middleware_stack(), self.state.settings, metrics, {*OPEN, *page_files()})


def app_of(settings: ServeSettings, page: PageState | None = None) -> App:
    """The app with these settings; a folder for what workers share that nobody named is deleted at the end."""
    own = None if settings.folder is not None else tempfile.TemporaryDirectory(prefix="tuckergp-")
    folder = settings.folder or Path(own.name)  # type: ignore[union-attr]
    service = Service(settings, Journal(settings.journal or folder / "journal"))
    page = page or PageState()
    service.prepare = lambda served: warm(served, page)
    watcher = Watcher(service, settings.watch, lambda: app.state.metrics.note(service.figures))

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        to_thread.current_default_thread_limiter().total_tokens = settings.threads
        app.state.metrics.note(service.figures)
        watcher.start()
        threading.Thread(target=service.warm_up, name="tuckergp warm-up", daemon=True).start()
        yield
        watcher.stop()
        if own is not None:
            own.cleanup()

    app = App(
        title="tuckergp",
        version=tuckergp.__version__,
        description="Predictions and recommendations of one model, with their uncertainty and the reasons for them. "
        "Examples are of `tuckergp explore --demo`; long lists of its answers are cut short.",
        docs_url=None,  # these pages load scripts of others
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    for router in ROUTERS:
        app.include_router(router)
    say_errors(app)
    add_page(app)
    app.state.settings, app.state.service, app.state.watcher = settings, service, watcher
    app.state.page = page
    # not from OpenAPI, which takes most of a start to make and is made when it is first asked for
    routes = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    addresses = [f"{method} {route.path_format}" for route in routes for method in sorted(route.methods or ())]
    app.state.metrics = Metrics(addresses, folder / "metrics", settings.workers, settings.worker)
    return app
