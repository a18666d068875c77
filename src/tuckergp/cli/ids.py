"""Ids from the command line, which are text, and from CSV files, whose type is guessed, as ids of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tuckergp.cli.tables import read_table
from tuckergp.data.history import KEYS
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.recommender.entities import Side

__all__ = ["align", "ids_of_file", "known_id", "unknown_rows"]


def known_id(text: str, side: Side) -> Any:
    """The id that a text on the command line means."""
    read_as = _reading(text, side)
    if read_as in side.number:
        return read_as
    what = side.key.removesuffix("_id")
    plain = text.strip().casefold()
    alike = next((value for value in side.number if str(value).strip().casefold() == plain), None)
    hint = f"Did you mean {alike!r}?" if alike is not None else f"Its {what}s are like {next(iter(side.number))!r}."
    raise InputError(f"The model knows no {what} {text!r}. {hint}")


def _reading(value: Any, side: Side) -> Any:
    """A value in the type of the model's ids."""
    if value in side.number:
        return value
    if isinstance(value, str):
        for kind in (int, float):
            try:
                if kind(value) in side.number:
                    return kind(value)
            except (ValueError, OverflowError):
                continue
    return value


def align(table: Table, sides: Sequence[Side]) -> Table:
    """The table with ids of the model's type: text ids may look like numbers in a file, and the other way round."""
    columns = dict(table.columns)
    for side in sides:
        values = columns.get(side.key)
        if values is None or not side.number or not len(values):
            continue
        ids_are_text = isinstance(next(iter(side.number)), str)
        if ids_are_text and values.dtype.kind in "iuf":
            # a file gives 7 for 007
            texts = {_number(value): value for value in side.number if _number(value) is not None}
            columns[side.key] = _objects([_as_text(value, side, texts) for value in values.tolist()])
        elif not ids_are_text and values.dtype.kind == "O":
            columns[side.key] = _objects([_reading(value, side) for value in values.tolist()])
    return replace(table, columns=columns)


def _as_text(value: float, side: Side, texts: Mapping[float | None, str]) -> str | None:
    """The text id that a number in a file stands for; None if it is missing."""
    if value != value:
        return None
    text = str(int(value)) if float(value).is_integer() else str(value)
    return text if text in side.number else texts.get(value, text)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except (TypeError, ValueError):
        return None


def _objects(values: list[Any]) -> Any:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def ids_of_file(path: Path, side: Side, columns: Mapping[str, str]) -> list[Any]:
    """The ids in the id column of a file."""
    table = align(read_table(path, side.key.replace("_id", "s"), columns), [side])
    if side.key not in table and len(table.columns) == 1:
        only = next(iter(table.columns))
        table = align(replace(table, columns={side.key: table[only]}), [side])
    ids: list[Any] = table[side.key].tolist()
    if not ids:
        raise InputError(f"{table.name} lists no {side.key}; give at least one, or leave the option out.")
    return ids


def unknown_rows(table: Table, sides: Sequence[Side]) -> int:
    """The number of rows with an unknown id."""
    unknown = np.zeros(len(table), dtype=bool)
    for key, side in zip(KEYS, sides, strict=True):
        if key in table:
            unknown |= side.numbers(table[key]) == len(side.number)
    return int(unknown.sum())
