"""Titles: a column of an item table shown beside the ids."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tuckergp.cli.tables import read_table
from tuckergp.data.names import shown_names
from tuckergp.errors import InputError
from tuckergp.recommender.entities import Side

__all__ = ["own_column", "with_titles"]


def own_column(titles: str | None) -> str | None:
    """The column of the model's own item table that ``--titles`` names, if it names no file."""
    return None if titles is None or ":" in titles else titles


def with_titles(
    columns: Mapping[str, Any], titles: str | None, side: Side, names: Mapping[str, str]
) -> Mapping[str, Any]:
    """The columns with titles from ``FILE:COLUMN`` after the items' ids; empty for items that the file lacks."""
    if titles is None or own_column(titles):
        return columns
    file, _, column = titles.rpartition(":")
    if not file or not column:
        raise InputError(f"--titles takes a file and a column, such as items.csv:title, or a column, not {titles!r}.")
    table = side.aligned(read_table(Path(file), "items", names, [side.key], [side.key]))
    title = dict(zip(table[side.key].tolist(), table[column].tolist(), strict=True))
    shown: dict[str, Any] = {}
    for name, values in columns.items():
        shown[name] = values
        if name == shown_names(names).get(side.key, side.key):
            shown[column] = [title.get(value) for value in values.tolist()]
    return shown
