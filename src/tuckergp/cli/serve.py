"""`tuckergp serve`: a model behind HTTP."""

from __future__ import annotations

from typing import Annotated

import typer

from tuckergp.cli.options import Model

__all__ = ["serve"]


def serve(
    model: Model,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 for any that is free.", min=0, max=65535)] = 8000,
) -> None:
    """Serve predictions and recommendations over HTTP, as JSON and as a page (extra serve)."""
    from tuckergp.errors import InputError

    try:
        from tuckergp.serve.running import run
        from tuckergp.serve.settings import ServeSettings
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "starlette", "uvicorn", "pydantic"):
            raise
        raise InputError("tuckergp serve needs FastAPI and uvicorn: pip install 'tuckergp[serve]'.") from None
    run(ServeSettings(model), host, port)
