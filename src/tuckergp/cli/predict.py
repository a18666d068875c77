"""`tuckergp predict`: a prediction for each pair of user and item in a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from tuckergp.cli.options import Json, Model, Output, number_list

__all__ = ["predict"]


def predict(
    model: Model,
    pairs: Annotated[Path, typer.Argument(help="Table with columns user_id and item_id.", show_default=False)],
    output: Output = None,
    std: Annotated[bool, typer.Option("--std", help="Add the standard deviation of a new rating.")] = False,
    quantiles: Annotated[
        str | None, typer.Option(help="Add quantiles of a new rating: 0.05,0.95.", metavar="NUMBERS")
    ] = None,
    interval: Annotated[
        float | None, typer.Option(help="Add an interval that holds a new rating with this probability.")
    ] = None,
    on_unknown: Annotated[
        Literal["predict", "nan", "raise"],
        typer.Option(help="For ids without ratings and attributes: the average, NaN, or an error."),
    ] = "predict",
    clip: Annotated[bool, typer.Option("--clip/--no-clip", help="Keep predictions on the rating scale.")] = True,
    as_json: Json = False,
) -> None:
    """Predict the rating of each pair of user and item; prints CSV without --output."""
    from tuckergp.cli.models import load_recommender
    from tuckergp.cli.notes import collected, say
    from tuckergp.cli.tables import check_output, put_table, read_table
    from tuckergp.data.names import KEYS, taken_names
    from tuckergp.data.tables import as_table, column_names
    from tuckergp.errors import InputError

    check_output(output)
    levels = number_list(quantiles, "--quantiles")
    recommender = load_recommender(model)
    names = taken_names(*column_names(pairs, "pairs"), recommender.columns_)
    given = as_table(pairs, "pairs", ids=[names.get(key, key) for key in KEYS])
    table = recommender.layout_.aligned(read_table(given, "pairs", recommender.columns_, KEYS))
    with collected() as notes:
        predicted = recommender.predict(
            table, return_std=std, quantiles=levels, interval=interval, clip=clip, on_unknown=on_unknown
        )
    mean, *more = predicted if isinstance(predicted, tuple) else (predicted,)
    clash = next((name for name in ("prediction", "std", "low", "high") if name in given.columns), None)
    if clash is not None:
        raise InputError(f"{given.name} has a column {clash!r} already; rename it.")
    columns = {**given.columns, "prediction": mean}
    parts = iter(more)
    if std:
        columns["std"] = next(parts)
    if levels is not None:
        columns |= {f"quantile_{level:g}": column for level, column in zip(levels, next(parts).T, strict=True)}
    if interval is not None:
        columns |= dict(zip(("low", "high"), next(parts).T, strict=True))
    put_table(columns, output, as_json)
    say(*notes)
