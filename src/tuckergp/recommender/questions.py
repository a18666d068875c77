"""Reads the arguments of requests to a recommender: which users, which items, new ones among them, and how many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.checks import check, instance, number
from tuckergp.data.ids import number_ids
from tuckergp.data.names import TIMESTAMP, named_table
from tuckergp.data.tables import Table, show_cell
from tuckergp.errors import InputError
from tuckergp.recommender.entities import Newcomer, Side, one_row_each
from tuckergp.recommender.fitted import FittedRecommender

__all__ = [
    "allowed_items",
    "asking_users",
    "attributes_of",
    "cells",
    "entity_table",
    "first_rows",
    "is_table",
    "item_boosts",
    "known_type",
    "users_of",
]


def is_table(value: Any) -> bool:
    """Whether a value is a table rather than an id or a sequence of ids."""
    return isinstance(value, Mapping | Table) or hasattr(value, "columns")


def asking_users(users: Any, side: Side, names: Mapping[str, str] | None) -> Table:
    """The users of a request as a table with user_id and any other columns given; None means all with ratings."""
    if users is None:
        ids: Sequence[Any] = side.rated_ids
    elif is_table(users):
        table = named_table(users, "users", names, [side.key, TIMESTAMP])
        table[side.key]  # says so if there is none
        return side.aligned(table)
    else:
        ids = _listed(users, side)
    return side.aligned(Table({side.key: cells(ids)}, "users", len(ids)))


def known_type(ids: Any, side: Side) -> list[Any]:
    """One id, or several, in the type that was decided at the fit."""
    ids = _listed(ids, side)
    return list(side.aligned(Table({side.key: cells(ids)}, side.key, len(ids)))[side.key].tolist())


def _listed(users: Any, side: Side) -> list[Any]:
    """One id, or several, as Python objects."""
    listed = _as_list(users, side)
    for value in listed:
        if isinstance(value, list | dict | set | np.ndarray):
            raise _no_id(value, side)
    return listed


def _no_id(value: Any, side: Side) -> InputError:
    return InputError(f"{show_cell(value)} is no {side.key}; give an id, or a list of ids.")


def _as_list(users: Any, side: Side) -> list[Any]:
    if isinstance(users, np.generic):
        return [users.item()]
    for name in ("to_pylist", "tolist", "to_list"):  # of PyArrow, NumPy and pandas, polars
        if hasattr(users, name):
            read = getattr(users, name)()
            return list(read) if isinstance(read, list) else [read]
    if isinstance(users, Mapping):
        raise _no_id(users, side)
    several = isinstance(users, list | range | set | frozenset) or (
        isinstance(users, tuple) and int(side.numbers([users])[0]) == side.unknown
    )
    return [user.item() if isinstance(user, np.generic) else user for user in users] if several else [users]


def entity_table(entity: Any, name: str, side: Side, names: Mapping[str, str] | None) -> Table:
    """One user or item given by attributes, with an id of its own unless it has one."""
    table = side.aligned(named_table(entity, name, names, [side.key]))
    if len(table) != 1:
        raise InputError(
            f"similar_{name} compares one with all others; give one id, or a table of one row, not of {len(table)}."
        )
    columns = {side.key: cells([Newcomer()]), **table.columns}
    return Table(columns, table.name, 1, table.first_line)


def allowed_items(
    items: Any, exclude: Any, side: Side, names: Mapping[str, str] | None = None
) -> npt.NDArray[np.bool_]:
    """Which items may be recommended, by their rows; never the row for unknown ids."""
    allowed = side.current.copy() if items is None else np.zeros(side.table.n_rows, dtype=bool)
    for name, given, value in (("items", items, True), ("exclude", exclude, False)):
        if given is None:
            continue
        ids = known_type(named_table(given, name, names, [side.key])[side.key] if is_table(given) else given, side)
        numbers = side.numbers(ids)
        unknown = numbers == side.unknown
        if value and unknown.any():
            raise InputError(
                f"{name} holds {ids[int(np.argmax(unknown))]!r}, which has neither ratings nor attributes."
            )
        allowed[numbers] = value
    allowed[side.unknown] = False
    return allowed


def item_boosts(boosts: Any, side: Side) -> npt.NDArray[np.float64] | None:
    """What is added to the score of each item, by its row; items that the model does not know are left out."""
    if boosts is None:
        return None
    check("boosts", boosts, instance("a dict from items to numbers", Mapping))
    for value in boosts.values():
        check("a boost", value, number())
    rows = side.numbers(known_type(list(boosts), side))
    added = np.zeros(side.table.n_rows)
    added[rows] = list(boosts.values())
    added[side.unknown] = 0.0
    return added


def attributes_of(users: Any, fitted: FittedRecommender) -> Table | None:
    """The attributes in a table of users of a request; None for ids alone."""
    if not is_table(users):
        return None
    side = fitted.layout.sides[0]
    return first_rows(asking_users(users, side, fitted.names), side)


def users_of(ratings: Table, fitted: FittedRecommender) -> list[Any]:
    """The users of a table of ratings, in the order of their first one."""
    side = fitted.layout.sides[0]
    return number_ids(side.aligned(ratings), side.key)[0]


def first_rows(table: Table, side: Side) -> Table | None:
    """The row of each id in a table with attributes of users or items; None for a table without attributes."""
    columns = side.described_by(table)
    if not columns:
        return None
    first = one_row_each(table, side.key, columns, range(len(table)))
    return table.select([side.key, *columns]).take(np.array(list(first.values()), dtype=np.intp))


def cells(values: Sequence[Any]) -> npt.NDArray[Any]:
    """A column of ids as an array of Python objects."""
    column = np.empty(len(values), dtype=object)
    column[:] = list(values)
    return column
