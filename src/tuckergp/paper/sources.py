"""The data sets of the experiments, each read once per process, and their checksums."""

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
"""By name: the loader of a data set, and the table whose checksum identifies it."""


@lru_cache
def load(name: str, folder: Path | None) -> Any:
    """Load a data set from a folder; None uses the default of the loaders in `tuckergp.data.datasets`."""
    return SOURCES[name][0](folder)


@lru_cache
def checksum(name: str, folder: Path | None) -> str:
    """The checksum of the content of a data set, whatever file it came from."""
    return table_checksum(SOURCES[name][1](load(name, folder)))


def table_checksum(table: Table) -> str:
    """SHA-256 of the names and values of all columns."""
    sha = hashlib.sha256()
    for name in sorted(table.columns):
        sha.update("\n".join([name, *map(str, table[name].tolist())]).encode())
    return sha.hexdigest()
