"""Cells of tables as text or as plain values for JSON, and what things are called."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tuckergp.data.cells import is_null
from tuckergp.data.columns import as_bag
from tuckergp.data.tables import Table
from tuckergp.recommender.titles import title_column

__all__ = ["bag_of", "facts", "numbers", "shown", "titles"]


def numbers(values: Iterable[float], digits: int = 5) -> list[float]:
    """Numbers with few digits, which is all that a picture shows."""
    return [float(f"{value:.{digits}g}") for value in values]


def shown(cell: Any) -> str:
    """A cell as text; empty for a missing one."""
    values = bag_of(cell)
    return ", ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in values)


def bag_of(cell: Any) -> list[Any]:
    """The values of a cell: none of a missing one, several of a list or of text such as ``Action|Comedy``."""
    return [] if is_null(cell) else list(as_bag(cell))


def titles(table: Table | None, key: str) -> dict[Any, str]:
    """What each id is called, where that is known."""
    column = title_column(table)
    if table is None or column is None:
        return {}
    pairs = zip(table[key].tolist(), table[column].tolist(), strict=True)
    return {value: str(cell) for value, cell in pairs if not is_null(cell)}


def facts(table: Table | None, key: str, value: Any) -> list[dict[str, str]]:
    """The attributes of one id as names and texts, without missing ones and without its title."""
    if table is None:
        return []
    rows = [row for row, known in enumerate(table[key].tolist()) if known == value]
    hidden = (key, title_column(table))
    cells = [(name, shown(column[row])) for row in rows[:1] for name, column in table.columns.items()]
    return [{"name": str(name), "value": text} for name, text in cells if text and name not in hidden]
