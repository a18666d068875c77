"""`tuckergp recommend`: the best items for each user."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from tuckergp.cli.options import Json

__all__ = ["recommend"]

Source = Annotated[
    str,
    typer.Argument(metavar="MODEL", help="File that fit has written, or folder of its --store.", show_default=False),
]
Written = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        help="Write to this file; the ending says how: .csv, .tsv, .parquet (a folder for --store) or .json.",
        metavar="PATH",
    ),
]


def recommend(
    model: Source,
    user: Annotated[
        list[str] | None, typer.Option("--user", help="A user's id; may be repeated.", metavar="ID")
    ] = None,
    users: Annotated[
        Path | None,
        typer.Option(help="Table with user_id; attributes in it describe new users.", metavar="FILE"),
    ] = None,
    everyone: Annotated[bool, typer.Option("--all", help="All users with ratings.")] = False,
    n: Annotated[int, typer.Option("-n", help="Items per user.", min=1)] = 10,
    ratings: Annotated[
        Path | None, typer.Option(help="Further ratings to use, of known or new users.", metavar="FILE")
    ] = None,
    items: Annotated[Path | None, typer.Option(help="Recommend among these items only.", metavar="FILE")] = None,
    exclude: Annotated[Path | None, typer.Option(help="Never recommend these items.", metavar="FILE")] = None,
    include_seen: Annotated[bool, typer.Option("--include-seen", help="Also items that the user has rated.")] = False,
    strategy: Annotated[
        Literal["mean", "ucb", "thompson"],
        typer.Option(help="Mean, upper confidence bound, or one draw."),
    ] = "mean",
    kappa: Annotated[float, typer.Option(help="Standard deviations that ucb adds.")] = 1.0,
    by: Annotated[
        Literal["value", "rating", "choice"] | None,
        typer.Option(help="Sort by value, expected rating or probability of a choice.", show_default=False),
    ] = None,
    titles: Annotated[
        str | None,
        typer.Option(help="A column of the item table to show beside the ids.", metavar="[FILE:]COLUMN"),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            help="Only items with this attribute: genre=Comedy, year=1980..1999; may be repeated.",
            metavar="COLUMN=VALUE",
        ),
    ] = None,
    min_ratings: Annotated[int, typer.Option(help="Only items with at least so many ratings.", min=0)] = 0,
    diversity: Annotated[
        float, typer.Option(help="How much similar items are avoided in a list, from 0 to 1.", min=0, max=1)
    ] = 0.0,
    together: Annotated[
        Literal["mean", "least"] | None,
        typer.Option(help="One list for all these users: by the mean, or the least, of their scores."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of thompson.", min=0)] = 0,
    master: Annotated[
        str | None, typer.Option(help="Spark's master, for a folder of --store.", show_default=False)
    ] = None,
    output: Written = None,
    as_json: Json = False,
) -> None:
    """Recommend the best items for each user; prints a table on a terminal, CSV in a pipe."""
    from tuckergp.cli.ids import ids_of_file
    from tuckergp.cli.models import load_recommender
    from tuckergp.cli.notes import collected, say
    from tuckergp.cli.stored import check_stored, is_stored, put_stored_lists
    from tuckergp.cli.tables import check_output, put_table, read_table
    from tuckergp.cli.titles import own_column, with_titles
    from tuckergp.data.tables import as_table
    from tuckergp.errors import InputError
    from tuckergp.recommender.questions import first_rows
    from tuckergp.recommender.written import written_conditions

    chosen = bool(user) + (users is not None) + everyone
    if chosen > 1 or (not chosen and ratings is None):
        raise InputError("Say for whom: one of --user ID, --users FILE, --ratings FILE and --all.")
    if together and (everyone or strategy != "mean" or diversity):
        raise InputError("--together is for users who are named, and takes no --all, --strategy and --diversity.")
    plain: dict[str, Any] = {
        "n": n,
        "exclude_seen": not include_seen,
        "titles": own_column(titles),
        "where": written_conditions(where, "--where"),
        "min_ratings": min_ratings,
        "by": by,
    }
    ranking: dict[str, Any] = {"strategy": strategy, "kappa": kappa, "random_state": seed, "diversity": diversity}
    if is_stored(model):
        check_stored({"--ratings": ratings, "--together": together, "--titles FILE:COLUMN": titles and ":" in titles})
        files = {"items": items, "exclude": exclude}
        put_stored_lists(model, master, user, users, files, {**plain, **ranking}, output, as_json)
        return
    if master is not None:
        raise InputError("--master is for a folder of --store; leave it out for a model file.")
    written = None if output is None else Path(output)
    check_output(written)
    recommender = load_recommender(Path(model))
    names = recommender.columns_
    layout = recommender.layout_
    asked: Any = (
        None
        if users is None
        else layout.aligned(read_table(users, "users", names, ["user_id"], ["user_id", "timestamp"]))
    )
    if ratings is not None:
        new = layout.aligned(read_table(ratings, "ratings", names, ["user_id", "item_id"]))
        recommender = recommender.fold_in(new, None if asked is None else first_rows(asked, layout.sides[0]))
        if not chosen:
            asked = list(dict.fromkeys(new["user_id"].tolist()))
    items_side = recommender.layout_.sides[1]
    if user:
        asked = list(user)
    choice: dict[str, Any] = {
        **plain,
        "items": None if items is None else ids_of_file(items, items_side, names),
        "exclude": None if exclude is None else ids_of_file(exclude, items_side, names),
    }
    with collected() as notes:
        if together:
            lists = recommender.recommend_together(asked, how=together, **choice)
        else:
            lists = recommender.recommend(asked, **choice, **ranking)
    columns = with_titles(as_table(lists, "recommendations").columns, titles, items_side, names)
    put_table(columns, written, as_json, "Recommendations")
    say(*notes)
