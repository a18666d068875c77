"""The command line. Commands import what they need when they run, so that ``--help`` is quick."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="tuckergp",
    help="Tucker Gaussian Processes: recommenders that use side information, regression on space, time and grids.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        from tuckergp import __version__

        typer.echo(__version__)
        raise typer.Exit


Version = Annotated[
    bool, typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=_print_version)
]


@app.callback()
def options(version: Version = False) -> None:
    """Tucker Gaussian Processes: recommenders that use side information, regression on space, time and grids."""


@app.command()
def demo(
    data: Annotated[Path | None, typer.Option(help="Folder with MovieLens 100K (ml-100k/), used instead.")] = None,
    download: Annotated[bool, typer.Option("--download", help="Download MovieLens 100K and use it instead.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the data, the split and the model.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Also write the JSON object to this file.")
    ] = None,
) -> None:
    """Train on ratings with and without side information, and recommend; no data or network needed."""
    from tuckergp.cli.demo import run

    run(data=data, download=download, seed=seed, as_json=json, output=output)


def main() -> None:
    """Run the command line; bad input ends with one line on standard error and exit code 1."""
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        from tuckergp.errors import DivergenceError, InputError

        if not isinstance(error, InputError | DivergenceError):
            raise
        typer.echo(f"tuckergp: {error}", err=True)
        sys.exit(1)
