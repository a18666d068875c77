"""What is asked of a recommender, read: which users, which items, which of them new, and how many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.errors import InputError
from tuckergp.history import standard_names
from tuckergp.recommender.entities import Newcomer, Side
from tuckergp.tables import Table, as_table

__all__ = ["allowed_items", "asked_number", "asking_users", "cells", "entity_table", "is_table"]


def is_table(value: Any) -> bool:
    """Whether something is a table rather than an id or a sequence of ids."""
    return isinstance(value, Mapping | Table) or hasattr(value, "columns")


def asking_users(users: Any, side: Side, names: Mapping[str, str] | None) -> Table:
    """The users to answer, as a table with user_id and whatever else was given; None for all with ratings."""
    if users is None:
        ids: Sequence[Any] = side.ids[: side.n_rated]
    elif is_table(users):
        table = standard_names(as_table(users, "users"), names)
        table[side.key]  # says so if there is none
        return table
    elif isinstance(users, list | np.ndarray | range | set | frozenset) or hasattr(users, "__array__"):
        ids = users.tolist() if isinstance(users, np.ndarray) else list(users)
    else:
        ids = [users]
    return Table({side.key: cells(ids)}, "users", len(ids))


def entity_table(entity: Any, name: str, side: Side, names: Mapping[str, str] | None) -> Table:
    """One user or item given by attributes, with an id of its own unless it has one."""
    table = standard_names(as_table(entity, name), names)
    if len(table) != 1:
        raise InputError(f"similar_{name} compares one with all others; the table has {len(table)} rows.")
    columns = {side.key: cells([Newcomer()]), **table.columns}
    return Table(columns, table.name, 1, table.first_line)


def allowed_items(items: Any, exclude: Any, side: Side) -> npt.NDArray[np.bool_]:
    """Which items may be recommended, by their numbers; the unknown one, last, never."""
    allowed = np.full(len(side.number) + 1, items is None)
    for name, given, value in (("items", items, True), ("exclude", exclude, False)):
        if given is None:
            continue
        ids = [given] if isinstance(given, str) or not hasattr(given, "__iter__") else list(given)
        numbers = side.numbers(ids)
        unknown = numbers == len(side.number)
        if value and unknown.any():
            raise InputError(
                f"{name} holds {ids[int(np.argmax(unknown))]!r}, which has neither ratings nor attributes."
            )
        allowed[numbers] = value
    allowed[-1] = False
    return allowed


def asked_number(n: Any, most: int, what: str) -> int:
    """How many are wanted, at most as many as there are."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise InputError(f"n must be a whole number from 1 on, not {n!r}.")
    if n > most:
        raise InputError(f"n is {n:,}, but there are {most:,} {what}; lower n.")
    return int(n)


def cells(values: Sequence[Any]) -> npt.NDArray[Any]:
    """A column of ids as they are."""
    column = np.empty(len(values), dtype=object)
    column[:] = list(values)
    return column
