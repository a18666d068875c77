"""The data sets that experiments read, each read once in a process, and checksums of what was read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from tuckergp.data.datasets import load_california, load_movielens_100k, load_wind
from tuckergp.data.tables import Table

__all__ = ["SOURCES", "checksum", "load", "table_checksum"]

Source: TypeAlias = tuple[Callable[[Path | None], Any], Callable[[Any], Table]]

SOURCES: dict[str, Source] = {
    "ml-100k": (load_movielens_100k, lambda data: data.ratings),
    "california": (load_california, lambda data: data.table),
    "wind": (load_wind, lambda data: data.values),
}
"""By name: how it is read, and the table that tells it from other data."""


@lru_cache
def load(name: str, folder: Path | None) -> Any:
    """A data set from a folder; None looks where the loaders of `tuckergp.data.datasets` do."""
    return SOURCES[name][0](folder)


@lru_cache
def checksum(name: str, folder: Path | None) -> str:
    """Of the content of a data set, whatever file it came from."""
    return table_checksum(SOURCES[name][1](load(name, folder)))


def table_checksum(table: Table) -> str:
    """SHA-256 of the names and values of all columns."""
    sha = hashlib.sha256()
    for name in sorted(table.columns):
        sha.update("\n".join([name, *map(str, table[name].tolist())]).encode())
    return sha.hexdigest()
