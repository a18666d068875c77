"""`tuckergp explore`: a model in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["explore"]


def explore(
    model: Annotated[Path | None, typer.Argument(help="File that fit has written.", show_default=False)] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Show the model of tuckergp demo, which needs no data.")] = False,
    test: Annotated[
        Path | None, typer.Option(help="Table that the model has not learned from, to judge it by.", metavar="FILE")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Column of it with the targets of a regression model.", metavar="NAME")
    ] = None,
    port: Annotated[int, typer.Option(help="Port to listen on; 0 for any that is free.", min=0, max=65535)] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the demo.")] = 0,
) -> None:
    """Look at a model in the browser: recommendations, reasons, a map, accuracy (extra serve). Ctrl-C ends it."""
    from tempfile import TemporaryDirectory

    from tuckergp.cli.serve import needs_server
    from tuckergp.errors import InputError

    if (model is None) != demo:
        raise InputError("Give either a model file that tuckergp fit has written, or --demo.")
    if demo and test is not None:
        raise InputError("--demo has held-out ratings of its own; leave --test out.")
    with needs_server():
        from tuckergp.serve import exploring
        from tuckergp.serve.pages import PageState
    with TemporaryDirectory(prefix="tuckergp-") as folder:
        page = PageState(test, target, copies=True)
        if model is None:
            typer.echo("Learning from synthetic ratings ...", err=True)
            model = Path(folder) / "demo.tgp"
            page = PageState(demo_model(model, seed))
        exploring.explore(model, page, port, browser, _say)


def demo_model(path: Path, seed: int) -> object:
    """Fit the model of ``tuckergp demo`` with side information into a file, and return the ratings held out of it."""
    import warnings

    from tuckergp.cli.demo import settings, synthetic
    from tuckergp.errors import NotConvergedWarning
    from tuckergp.recommender import TuckerRecommender

    made = synthetic(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        TuckerRecommender(**settings(seed)).fit(made.train, made.users, made.items).save(path)
    return made.test


def _say(address: str) -> None:
    typer.echo(f"The page is at {address} (Ctrl-C ends it)")
