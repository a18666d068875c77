"""`tuckergp reproduce`: run the paper's experiments and ours, and write them as one report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tuckergp.cli.options import Json

if TYPE_CHECKING:
    from tuckergp.paper.experiment import Experiment
    from tuckergp.paper.run import Run

__all__ = ["reproduce"]


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME...", help="Experiments or groups of them, or all; without any they are listed."),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for report.html and results; finished cells are kept.")
    ] = Path("report"),
    data: Annotated[Path | None, typer.Option(help="Folder that holds the data; without, it is downloaded.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Less data and short chains: a test that everything runs, in minutes.")
    ] = False,
    only: Annotated[str, typer.Option(help="Run cells whose names begin with this; several with commas.")] = "",
    again: Annotated[bool, typer.Option("--again", help="Compute cells of another commit again; others stay.")] = False,
    as_json: Json = False,
) -> None:
    """Run the paper's experiments and ours, and write tables and figures side by side.

    Full runs take hours. A stopped run is continued when it is given the same folder.
    """
    from tuckergp.errors import InputError
    from tuckergp.paper.experiments import EXPERIMENTS, find
    from tuckergp.paper.pictures import figure_style
    from tuckergp.paper.run import Run

    if not names:
        _list(EXPERIMENTS, as_json)
        return
    chosen = find(names)
    if output.exists() and not output.is_dir():
        raise InputError(f"{output} is a file; name a folder for the report.")
    with figure_style():  # says before hours of work that figures could not be drawn
        pass
    output.mkdir(parents=True, exist_ok=True)
    _run([Run(one, output, data, quick) for one in chosen], only, again, output, as_json)


def _list(experiments: tuple[Experiment, ...], as_json: bool) -> None:
    import json

    rows = [{"name": one.name, "group": one.group, "title": one.title, "data": one.data} for one in experiments]
    if as_json:
        typer.echo(json.dumps(rows))
        return
    width = max(len(one.name) for one in experiments)
    for group in dict.fromkeys(one.group for one in experiments):
        typer.echo(f"{group}:")
        for one in experiments:
            if one.group == group:
                typer.echo(f"  {one.name:{width}}  {one.title}")


def _run(runs: list[Run], only: str, again: bool, output: Path, as_json: bool) -> None:
    import json

    from tuckergp.paper.report import REPORT, RESULTS, write
    from tuckergp.paper.run import fill

    try:
        fill(runs, only, lambda line: typer.echo(line, err=True), again)
    except KeyboardInterrupt:
        typer.echo("Stopped; finished cells are kept, and the same command goes on from here.", err=True)
        raise
    results = write(output)
    if as_json:
        count = sum(len(result["cells"]) for result in results.values())
        typer.echo(json.dumps({"report": str(output / REPORT), "results": str(output / RESULTS), "cells": count}))
    else:
        typer.echo(f"{output / REPORT} shows tables and figures, {output / RESULTS} has all numbers.")
