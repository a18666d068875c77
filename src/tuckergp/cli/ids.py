"""Ids from the command line, which are text, and from files as ids of the model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tuckergp.cli.tables import read_table
from tuckergp.data.names import standard_names
from tuckergp.errors import InputError
from tuckergp.recommender.entities import Side
from tuckergp.recommender.questions import known_type

__all__ = ["ids_of_file", "known_id"]


def known_id(text: str, side: Side) -> Any:
    """The id that a text on the command line means."""
    (read_as,) = known_type([text], side)
    if read_as in side.number:
        return read_as
    what = side.key.removesuffix("_id")
    alike = side.alike(text)
    hint = f"Did you mean {alike!r}?" if alike is not None else f"Its {what}s are like {next(iter(side.number))!r}."
    raise InputError(f"The model knows no {what} {text!r}. {hint}")


def ids_of_file(path: Path, side: Side, columns: Mapping[str, str]) -> list[Any]:
    """The ids in the id column of a file."""
    table = read_table(path, side.key.replace("_id", "s"), columns, roles=[side.key])
    if side.key not in table and len(table.columns) == 1:
        table = standard_names(table, {side.key: next(iter(table.columns))})
    ids: list[Any] = table[side.key].tolist()
    if not ids:
        raise InputError(f"{table.name} lists no {side.key}; give at least one, or leave the option out.")
    return ids
