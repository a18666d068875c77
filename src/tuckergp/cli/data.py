"""`tuckergp data describe`: a summary of a table of ratings, and its faults."""

from __future__ import annotations

import typer

from tuckergp.cli.options import Items, Json, Output, Ratings, Settings, Users, takes_settings

__all__ = ["app"]

app = typer.Typer(name="data", help="Look at tables before learning from them.", no_args_is_help=True)

NOT_COLUMNS = tuple(name for name in Settings.__dataclass_fields__ if not name.endswith("_column"))


@app.callback()
def options() -> None:
    """Look at tables before learning from them."""


@app.command()
@takes_settings(*NOT_COLUMNS)
def describe(
    ratings: Ratings,
    users: Users = None,
    items: Items = None,
    output: Output = None,
    as_json: Json = False,
    *,
    settings: Settings,
) -> None:
    """Show counts, density, repeated pairs, a histogram of ratings, attributes, and all rows that look wrong."""
    from tuckergp.cli.tables import check_output, ratings_names, read_side, to_json, write_result
    from tuckergp.data.names import KEYS
    from tuckergp.data.tables import as_table
    from tuckergp.recommender.describe import describe as describe_ratings

    check_output(output, [".json"])
    names = ratings_names(ratings, settings.columns)
    table = as_table(ratings, "ratings", ids=[names.get(key, key) for key in KEYS])
    user_table, item_table = read_side(users, "users", names), read_side(items, "items", names)
    description = describe_ratings(table, user_table, item_table, names)
    if output is not None:
        write_result(output, description.to_dict())
    print(to_json(description.to_dict()) if as_json else str(description))
