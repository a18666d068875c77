"""Titles of items: shown beside their ids, and understood in their place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.recommender.attributes import join
from tuckergp.recommender.entities import Side

__all__ = ["by_title", "title_column", "titles_of"]

# The columns that say what items are called, the first that there is.
NAMES = ("title", "name")


def title_column(table: Table | None) -> str | None:
    """The column of an attribute table that says what things are called; None where there is none."""
    columns = [] if table is None else list(table.columns)
    return next((name for kind in NAMES for name in columns if name.casefold() == kind), None)


def titles_of(ids: Sequence[Any], table: Table | None, side: Side, column: str) -> list[Any]:
    """A column of the item table for some ids; None for items that it lacks."""
    if table is None:
        raise InputError(f"titles={column!r} is a column of the item table, and the model has none; give fit one.")
    titles: list[Any] = join(table.select([side.key, column]), side.key, ids, table.name)[column].tolist()
    return titles


def by_title(asked: Any, table: Table | None, side: Side) -> Any:
    """The id of the one item that is called so, whatever the case of letters; what is asked for if none is.

    Ids come first. An error where several items are called so.
    """
    if table is None or not isinstance(asked, str) or asked in side.number:
        return asked
    plain, ids = asked.strip().casefold(), table[side.key].tolist()
    for column in (name for name in table.columns if name.casefold() in NAMES):
        titles = table[column].tolist()
        found = [value for value, title in zip(ids, titles, strict=True) if str(title).strip().casefold() == plain]
        if len(found) > 1:
            raise InputError(f"{len(found)} items have the {column} {asked!r}: {found[:5]}; give an id.")
        if found:
            return found[0]
    return asked
