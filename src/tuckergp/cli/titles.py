"""Titles: a column of an item table shown beside the ids."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tuckergp.cli.tables import read_table
from tuckergp.errors import InputError
from tuckergp.recommender.entities import Side

__all__ = ["with_titles"]


def with_titles(columns: Mapping[str, Any], titles: str, side: Side, names: Mapping[str, str]) -> dict[str, Any]:
    """The columns with titles from ``FILE:COLUMN`` after the items' ids; empty for items that the file lacks."""
    file, _, column = titles.rpartition(":")
    if not file or not column:
        raise InputError(f"--titles takes a file and a column, such as items.csv:title, not {titles!r}.")
    table = side.aligned(read_table(Path(file), "items", names, [side.key], [side.key]))
    title = dict(zip(table[side.key].tolist(), table[column].tolist(), strict=True))
    shown: dict[str, Any] = {}
    for name, values in columns.items():
        shown[name] = values
        if name == names.get(side.key, side.key):
            shown[column] = [title.get(value) for value in values.tolist()]
    return shown
