"""All results of a folder in one file: every figure with its settings, seed and time, versions, machine, data."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tuckergp.data.datasets import load_california, load_movielens_100k, load_wind
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.files import write_text
from tuckergp.paper.report.stored import Stored
from tuckergp.paper.store import versions

__all__ = ["FILE", "checksums", "collect", "load"]

FILE = "results.json"

DATA: dict[str, dict[str, Callable[[Path | None], Table]]] = {
    "movielens": {"ml-100k": lambda folder: load_movielens_100k(folder).ratings},
    "california": {"california": lambda folder: load_california(folder).table},
    "wind": {"wind": lambda folder: load_wind(folder).values},
}
DATA["theory"] = DATA["movielens"] | DATA["california"]
DATA["future"] = DATA["movielens"] | DATA["california"] | DATA["wind"]
"""The tables that every part learns from."""


def checksum(table: Table) -> str:
    """Of a table's content, whatever file it came from."""
    found = hashlib.sha256()
    for name in sorted(table.columns):
        found.update("\n".join([name, *map(str, table[name].tolist())]).encode())
    return found.hexdigest()


def checksums(parts: Iterable[str], data: Path | None) -> dict[str, str]:
    """Of the data of some parts of the report."""
    used = {name: load for part in parts for name, load in DATA[part].items()}
    return {name: checksum(load(data)) for name, load in used.items()}


def collect(folder: Path, stored: Stored, data: dict[str, str]) -> dict[str, Any]:
    """Write the file; checksums of data that were not used this time are kept."""
    path = folder / FILE
    before = load(path)["data"] if path.is_file() else {}
    found = {
        "versions": versions(),
        "machine": {"processors": os.cpu_count(), "system": f"{platform.system()} {platform.machine()}"},
        "data": before | data,
        "experiments": dict(stored),
    }
    write_text(path, _lines(found))
    return found


def _lines(found: dict[str, Any]) -> str:
    """JSON with a line a cell."""
    plain = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in found.items() if key != "experiments"]
    told = []
    for name, results in found["experiments"].items():
        head = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in results.items() if key != "cells"]
        cells = ",\n   ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in results["cells"].items())
        told.append(f'{json.dumps(name)}: {{{", ".join(head)}, "cells": {{\n   {cells}\n  }}}}')
    return "{\n " + ",\n ".join([*plain, '"experiments": {\n  ' + ",\n  ".join(told) + "\n }"]) + "\n}\n"


def load(path: Path) -> dict[str, Any]:
    """Read the file again."""
    try:
        found: dict[str, Any] = json.loads(path.read_text())
        if not {"versions", "machine", "data", "experiments"} <= set(found):
            raise KeyError
    except (json.JSONDecodeError, KeyError, TypeError, UnicodeDecodeError):
        raise InputError(f"{path} does not hold results of a report; move it away or name another folder.") from None
    return found
