"""`tuckergp similar`: the items or users most similar to one."""

from __future__ import annotations

from typing import Annotated

import typer

from tuckergp.cli.options import Json, Model, Output

__all__ = ["similar"]


def similar(
    model: Model,
    item: Annotated[str | None, typer.Option(help="An item's id.", metavar="ID")] = None,
    user: Annotated[str | None, typer.Option(help="A user's id.", metavar="ID")] = None,
    n: Annotated[int, typer.Option("-n", help="How many.", min=1)] = 10,
    titles: Annotated[
        str | None,
        typer.Option(help="A column of the item table to show beside the ids.", metavar="[FILE:]COLUMN"),
    ] = None,
    output: Output = None,
    as_json: Json = False,
) -> None:
    """List the items, or users, most similar to one; prints a table on a terminal, CSV in a pipe."""
    from tuckergp.cli.ids import known_id
    from tuckergp.cli.models import load_recommender
    from tuckergp.cli.tables import check_output, put_table
    from tuckergp.cli.titles import own_column, with_titles
    from tuckergp.data.tables import as_table
    from tuckergp.errors import InputError

    check_output(output)
    recommender = load_recommender(model)
    users, items = recommender.layout_.sides
    if item is not None and user is None:
        neighbours = recommender.similar_items(known_id(item, items), n=n, titles=own_column(titles))
    elif user is not None and item is None:
        neighbours = recommender.similar_users(known_id(user, users), n=n)
    else:
        raise InputError("Give one of --item ID and --user ID to compare with.")
    if titles is not None and item is None:
        raise InputError("--titles is for items; leave it out with --user.")
    columns = with_titles(as_table(neighbours, "similar").columns, titles, items, recommender.columns_)
    put_table(columns, output, as_json, f"Most like {item if user is None else user}")
