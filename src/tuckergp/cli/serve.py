"""`tuckergp serve`: a model behind HTTP."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from tuckergp.cli.options import Json, Model

__all__ = ["serve"]

TOKEN = "TUCKERGP_TOKEN"


def serve(
    model: Model,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 for any that is free.", min=0, max=65535)] = 8000,
    workers: Annotated[int, typer.Option(help="Processes that answer.", min=1, max=256)] = 1,
    journal: Annotated[
        Path | None,
        typer.Option(help="Keep what is folded in here, for restarts; else it ends with the server.", metavar="FILE"),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(help=f"File with the token that requests must send; or set {TOKEN}.", metavar="FILE"),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="A name under which the server may be asked without a token.", metavar="NAME"),
    ] = None,
    no_token: Annotated[bool, typer.Option("--no-token", help="Let everybody in who reaches the port.")] = False,
    proxy: Annotated[
        list[str] | None,
        typer.Option(help="Address of a proxy in front, which says who asks (X-Forwarded-For).", metavar="ADDRESS"),
    ] = None,
    rate: Annotated[float, typer.Option(help="Requests per second, client and worker; 0: no limit.", min=0)] = 1000,
    connections: Annotated[int, typer.Option(help="Connections that are open, per client and worker.", min=1)] = 256,
    most_bytes: Annotated[int, typer.Option(help="The longest body of a request.", min=1)] = 2_000_000,
    most_journal: Annotated[int, typer.Option(help="The longest journal in bytes.", min=1)] = 100_000_000,
    answer_within: Annotated[
        float, typer.Option(help="Seconds after which an answer is given up; 0: no limit.", min=0)
    ] = 30.0,
    watch: Annotated[
        float, typer.Option(help="Seconds between looks at whether the file has changed; 0 for SIGHUP alone.", min=0)
    ] = 1.0,
    as_json: Json = False,
) -> None:
    """Serve predictions and recommendations over HTTP, as JSON and as a page (extra serve)."""
    from tuckergp.cli.tables import to_json
    from tuckergp.errors import InputError

    with needs_server():
        from tuckergp.serve.connections import listen
        from tuckergp.serve.running import run
        from tuckergp.serve.settings import ServeSettings
    token = token_of(token_file)
    if token is None and not no_token and not is_loopback(host):
        raise InputError(
            f"On {host} whoever reaches the port may ask; give a token (--token-file or {TOKEN}), or say --no-token."
        )
    settings = ServeSettings(
        model,
        journal=journal,
        token=token,
        hosts=tuple(allow_host or ()),
        proxies=tuple(proxy or ()),
        rate=rate,
        connections=connections,
        most_bytes=most_bytes,
        most_journal=most_journal,
        answer_within=answer_within,
        watch=watch,
        workers=workers,
    )
    listening = listen(host, port)
    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{listening.getsockname()[1]}"

    def say() -> None:
        line = to_json({"url": url, "model": model.name, "workers": workers}).replace("\n", "")
        print(line if as_json else f"{model.name} is served at {url} (Ctrl-C stops).", flush=True)

    run(settings, listening, say)


def token_of(file: Path | None) -> str | None:
    """The token from a file, or from the environment; None where there is none."""
    return os.environ.get(TOKEN) if file is None else file.read_text().strip()


def is_loopback(host: str) -> bool:
    """Whether an address is of this machine alone."""
    from ipaddress import ip_address

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def needs_server() -> Iterator[None]:
    """Say what to install where a package of the server is missing."""
    from tuckergp.errors import InputError

    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "starlette", "uvicorn", "pydantic", "h11"):
            raise
        raise InputError("This needs FastAPI and uvicorn: pip install 'tuckergp[serve]'.") from None
