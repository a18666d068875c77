"""`tuckergp evaluate`: a model, the same without side information, and baselines, in one table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from tuckergp.cli.options import Items, Json, Output, Quiet, Ratings, Settings, Users, takes_settings

__all__ = ["Folds", "Split", "Test", "evaluate", "parts"]

Split = Annotated[
    str,
    typer.Option(
        help="What to test on: random, user, last, time, cold-users, cold-items, folds or folds:COLUMN; "
        "a size after a colon, as in random:0.1, last:3, time:1998-03-01."
    ),
]
Folds = Annotated[int | None, typer.Option(help="Random folds, each held out once.", min=2, show_default=False)]
Test = Annotated[Path | None, typer.Option(help="Table of ratings to test on, instead of a split.", metavar="FILE")]


@takes_settings()
def evaluate(
    ratings: Ratings,
    users: Users = None,
    items: Items = None,
    split: Split = "random",
    folds: Folds = None,
    test: Test = None,
    metrics: Annotated[
        str, typer.Option(help="Names, separated by commas; recall@20 is of lists of 20.")
    ] = "rmse,mae,ndcg,recall,recall@20,recall@50,catalogue_coverage,novelty",
    k: Annotated[int, typer.Option(help="Length of the lists where a metric does not say.", min=1)] = 10,
    relevant: Annotated[
        float | None, typer.Option(help="Ratings of at least this are relevant; by default the median.")
    ] = None,
    output: Output = None,
    as_json: Json = False,
    quiet: Quiet = False,
    *,
    settings: Settings,
) -> None:
    """Compare the model with and without side information, biases and the global mean on held-out ratings."""
    from tuckergp.cli.notes import collected, say
    from tuckergp.cli.tables import check_output, read_side, to_json, write_result
    from tuckergp.evaluation.baselines import Biases, GlobalMean
    from tuckergp.evaluation.evaluate import evaluate as measure

    check_output(output)
    data, splitter = parts(ratings, split, folds, test, settings)
    tables = [
        read_side(path, side, settings.columns, settings.exclude) for path, side in ((users, "users"), (items, "items"))
    ]
    models: dict[str, Any] = {}
    if settings.side_information and any(table is not None for table in tables):
        models["with side information"] = settings.recommender()
    models["without side information"] = settings.recommender(side_information=False)
    models |= {"biases": Biases(), "global mean": GlobalMean()}
    with collected() as notes:
        board = measure(
            models,
            data,
            split=splitter,
            users=tables[0],
            items=tables[1],
            metrics=[name.strip() for name in metrics.split(",")],
            k=k,
            relevant=relevant,
            seed=settings.seed,
            progress=False if quiet else None,
        )
    result = {**board.to_dict(), "split": split if test is None else str(test), "notes": notes}
    if output is not None:
        write_result(output, result, board.rows())
    if as_json:
        print(to_json(result))
        return
    if sys.stdout.isatty():
        from rich.console import Console

        Console().print(board)
    else:
        print(board)
    say(*notes)


def parts(ratings: Path, split: str, folds: int | None, test: Path | None, settings: Settings) -> tuple[Any, Any]:
    """The ratings and how to split them; no ratings if the parts are given."""
    from tuckergp.cli.splits import read_split
    from tuckergp.cli.tables import read_ratings
    from tuckergp.data.history import KEYS, RATING
    from tuckergp.errors import InputError

    needed = (*KEYS, RATING)
    data = read_ratings(ratings, settings.columns, needed)
    if test is None:
        return data, read_split(split, folds, settings.seed)
    if folds is not None or split != "random":
        raise InputError("--test says what to test on; leave out --split and --folds.")
    return None, [(data, read_ratings(test, settings.columns, needed, "test"))]
