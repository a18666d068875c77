"""The command line, one file per command. Commands import what they need when they run, so that ``--help`` is fast."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from tuckergp.cli import data, journal
from tuckergp.cli.doctor import doctor
from tuckergp.cli.evaluate import evaluate
from tuckergp.cli.explain import explain
from tuckergp.cli.explore import explore
from tuckergp.cli.export import export
from tuckergp.cli.fit import fit
from tuckergp.cli.predict import predict
from tuckergp.cli.recommend import recommend
from tuckergp.cli.reproduce import reproduce
from tuckergp.cli.serve import serve
from tuckergp.cli.similar import similar
from tuckergp.cli.tune import tune

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
def options(
    context: typer.Context,
    version: Version = False,
    sep: Annotated[
        str | None, typer.Option(help="Delimiter of all text files that are read; else found out.", metavar="TEXT")
    ] = None,
    encoding: Annotated[
        str | None, typer.Option(help="Encoding of all text files that are read; else found out.", metavar="NAME")
    ] = None,
) -> None:
    """Tucker Gaussian Processes: recommenders that use side information, regression on space, time and grids."""
    if sep is not None or encoding is not None:
        from tuckergp.data.sources import insisting

        context.with_resource(insisting("\t" if sep == "\\t" else sep, encoding))


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


for command in (fit, predict, recommend, similar, explain, serve, explore, export, evaluate, tune, reproduce, doctor):
    app.command()(command)
app.add_typer(data.app)
app.add_typer(journal.app)


def main() -> None:
    """Run the command line.

    Bad input ends with one line on standard error and exit code 1, a wrong use of options with exit code 2.
    """
    try:
        code = app(standalone_mode=False) or 0
        sys.stdout.flush()
        sys.exit(code)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # the reader of the output, such as head, has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        code = _report(error)
        if code is None:
            raise
        sys.exit(code)


def _report(error: Any) -> int | None:
    """Print one line that says what is wrong and return the exit code, or None for a bug."""
    from tuckergp.errors import DivergenceError, InputError

    if isinstance(error, InputError | DivergenceError):
        text, code = str(error), 1
    elif hasattr(error, "format_message"):  # the options were used wrongly
        text, code = error.format_message(), int(error.exit_code)
        if type(error).__name__ == "NoArgsIsHelpError":
            typer.echo(text)
            return code
        path = getattr(getattr(error, "ctx", None), "command_path", "tuckergp")
        text = f"{text.rstrip('.')}. See {path} --help."
    elif isinstance(error, OSError):
        text, code = f"{error.filename or 'A file'} cannot be read or written: {error.strerror or error}.", 1
    elif isinstance(error, MemoryError):
        text, code = "There is not enough memory; take fewer draws (--draws) or a lower --rank.", 1
    else:
        return None
    typer.echo(f"tuckergp: {' '.join(text.split())}", err=True)
    return code
