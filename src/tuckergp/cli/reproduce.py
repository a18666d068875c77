"""`tuckergp reproduce`: run the paper's experiments and ours, and write them as one report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from tuckergp.cli.options import Json

__all__ = ["reproduce"]

Part = Literal["movielens", "california", "wind", "theory", "future", "all"]


def reproduce(
    part: Annotated[Part, typer.Argument(help="Which experiments.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for report.html and results.json; a finished cell is kept.")
    ] = Path("report"),
    data: Annotated[Path | None, typer.Option(help="Folder that holds the data; without, it is downloaded.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Less data and short chains, in minutes: see that all of it runs.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run the paper's experiments and ours, and write tables and figures side by side.

    Full runs take hours. A run that was stopped goes on where it was: give it the same folder.
    """
    import json

    from tuckergp.errors import InputError
    from tuckergp.paper.cells import fill_all
    from tuckergp.paper.report.build import write
    from tuckergp.paper.report.plan import PARTS, pieces
    from tuckergp.paper.report.results import FILE, checksums, collect
    from tuckergp.paper.report.stored import read
    from tuckergp.paper.report.svg import look

    if output.exists() and not output.is_dir():
        raise InputError(f"{output} is a file; name a folder for the report.")
    with look():  # says before hours of work that figures could not be drawn
        pass
    output.mkdir(parents=True, exist_ok=True)
    parts = list(PARTS) if part == "all" else [part]
    todo = [piece for name in parts for piece in pieces(name, data, output, quick)]
    fill_all(todo, lambda line: typer.echo(line, err=True))
    results = collect(output, read(output), checksums(parts, data))
    report = write(output, results)
    if as_json:
        count = sum(len(found["cells"]) for found in results["experiments"].values())
        typer.echo(json.dumps({"report": str(report), "results": str(output / FILE), "cells": count}))
    else:
        typer.echo(f"{report} shows tables and figures, {output / FILE} has all numbers.")
