"""Cells of tables as text or as plain values for JSON, and what things are called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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


def facts(attributes: Mapping[str, Any], hidden: str | None) -> list[dict[str, str]]:
    """Attributes as names and texts, without missing ones, and without a hidden one such as the title."""
    texts = {str(name): shown(cell) for name, cell in attributes.items() if name != hidden}
    return [{"name": name, "value": text} for name, text in texts.items() if text]
