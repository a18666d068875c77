"""`tuckergp tune`: compare settings on the same folds, show their scores, and save a model with the best."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from tuckergp.cli.evaluate import Folds, Split, Test, parts
from tuckergp.cli.options import Items, Json, Quiet, Ratings, Settings, Users, takes_settings

__all__ = ["read_grid", "tune"]


@takes_settings()
def tune(
    ratings: Ratings,
    users: Users = None,
    items: Items = None,
    grid: Annotated[
        list[str] | None,
        typer.Option(
            help="A setting and its values, rank=8,16,32; may be repeated. For optuna also a range, rank=4..64 or "
            "inference__sigma_u=0.1..1:log. Without one, the usual settings are tried.",
            metavar="NAME=VALUES",
        ),
    ] = None,
    metric: Annotated[str | None, typer.Option(help="The metric to choose by, as in evaluate.")] = None,
    search: Annotated[Literal["grid", "optuna"], typer.Option(help="All combinations, or Optuna's choice.")] = "grid",
    trials: Annotated[int, typer.Option(help="Configurations that Optuna may try.", min=1)] = 50,
    split: Split = "folds",
    folds: Folds = None,
    test: Test = None,
    k: Annotated[int, typer.Option(help="Length of the lists for ndcg, recall and the like.", min=1)] = 10,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Learn from all ratings with the best settings and write the model here."),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    *,
    settings: Settings,
) -> None:
    """Compare settings on the same folds and show their scores."""
    from tuckergp.cli.notes import collected, say
    from tuckergp.cli.tables import read_side, to_json
    from tuckergp.evaluation.tuning import tune as search_for
    from tuckergp.files import check_writable

    if output is not None:
        check_writable(output)
    usual = split == "folds" and folds is None
    data, splitter = parts(ratings, "random" if test is not None and usual else split, folds, test, settings)
    tables = [
        read_side(path, side, settings.columns, settings.exclude) for path, side in ((users, "users"), (items, "items"))
    ]
    with collected() as notes:
        tuning = search_for(
            settings.recommender(),
            data,
            *tables,
            grid=read_grid(grid) if grid else None,
            split=None if usual and test is None else splitter,
            metric=metric,
            k=k,
            search=search,
            trials=trials,
            refit=output is not None and data is not None,
            progress=False if quiet else None,
            random_state=settings.seed,
        )
    unsaved = False
    if output is not None:
        best = tuning.best_model
        if data is None:  # the parts were given: learn from what was trained on
            best.fit(parts(ratings, "random", None, None, settings)[0], *tables, progress=False if quiet else None)
        if hasattr(best, "fit_"):
            best.save(output)
        else:
            notes.append("The search was stopped, or the best settings fail on all ratings: no model was saved.")
            output, unsaved = None, True
    if as_json:
        saved = None if output is None else str(output)
        print(to_json({**tuning.to_dict(), "model": saved, "notes": notes}))
        if unsaved:
            raise typer.Exit(1)
        return
    if sys.stdout.isatty():
        from rich.console import Console

        Console().print(tuning)
    else:
        print(tuning)
    chosen = ", ".join(f"{name}={value}" for name, value in tuning.best_params.items())
    print(f"Best: {chosen} ({tuning.metric} {tuning.best_score:.4f})")
    if output is not None:
        print(f"Saved as {output}.")
    say(*notes)
    if unsaved:
        raise typer.Exit(1)


def read_grid(given: list[str]) -> dict[str, Any]:
    """Read a grid from texts such as ``rank=8,16`` and ``rank=4..64:log``.

    Examples
    --------
    >>> read_grid(["rank=8,16", "time=week,none", "inference__sigma_u=0.1..1:log"])
    {'rank': [8, 16], 'time': ['week', None], 'inference__sigma_u': (0.1, 1, 'log')}
    """
    from tuckergp.errors import InputError

    grid: dict[str, Any] = {}
    for text in given:
        name, equals, values = text.partition("=")
        if not (name and equals and values):
            raise InputError(f"--grid takes a setting and its values, such as rank=8,16,32, not {text!r}.")
        if name in grid:
            raise InputError(f"--grid names {name} twice; give all its values at once.")
        low, dots, rest = values.partition("..")
        high, _, log = rest.partition(":")
        if dots:
            grid[name] = (_value(low), _value(high), *([log] if log else []))
        else:
            grid[name] = [_value(value) for value in values.split(",")]
    return grid


def _value(text: str) -> Any:
    words = {"true": True, "yes": True, "false": False, "no": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
