"""`tuckergp journal`: a model file goes on learning from what its server has kept; a journal is begun anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tuckergp.cli.options import Json, Model, Quiet

__all__ = ["app"]

app = typer.Typer(name="journal", help="What tuckergp serve has kept: learn from it, or move it.", no_args_is_help=True)

JournalFile = Annotated[Path, typer.Argument(help="File that tuckergp serve --journal writes.", show_default=False)]


@app.callback()
def options() -> None:
    """What tuckergp serve has kept: learn from it, or move it."""


@app.command()
def learn(
    model: Model,
    journal: JournalFile,
    warmup: Annotated[int, typer.Option(help="Sweeps before draws are kept again.", min=0)] = 10,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Let a model go on learning from the journal of its server, forget whom it says, and take out what is learned."""
    from tuckergp.cli.notes import collected, say
    from tuckergp.cli.tables import to_json
    from tuckergp.serve.journal import learn as learn_from

    with collected() as notes:
        learned = learn_from(model, journal, warmup, False if quiet else None)
    ratings = f"{learned.ratings:,} {'rating' if learned.ratings == 1 else 'ratings'}"
    people = f"{learned.forgotten:,} {'person' if learned.forgotten == 1 else 'people'}"
    text = f"{model} has learned from {ratings}, and forgotten {people}."
    print(to_json(learned._asdict()) if as_json else text)
    say(*notes)


@app.command()
def rotate(
    journal: JournalFile,
    to: Annotated[Path, typer.Option(help="File that gets the lines.", metavar="FILE", show_default=False)],
    model: Annotated[
        Path, typer.Option(help="The model file that is served from now on.", metavar="FILE", show_default=False)
    ],
    as_json: Json = False,
) -> None:
    """Move the lines of a journal to another file, once a model fitted anew has them; who was forgotten stays so."""
    from tuckergp.cli.tables import to_json
    from tuckergp.serve.journal import rotate as move

    left = move(journal, to, model)
    lines = f"{left:,} {'line that forgets' if left == 1 else 'lines that forget'} somebody"
    text = f"{journal} is begun anew, with {lines}; {to} has what it held."
    print(to_json({"left": left}) if as_json else text)
