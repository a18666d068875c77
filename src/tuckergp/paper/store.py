"""Results as one small JSON file, a cell at a time: written atomically, and never computed twice."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np

import tuckergp
from tuckergp.errors import InputError

__all__ = ["Store", "versions"]


def versions() -> dict[str, str]:
    """What the numbers depend on."""
    return {
        "tuckergp": tuckergp.__version__,
        "numpy": np.__version__,
        "numba": numba.__version__,
        "python": platform.python_version(),
    }


class Store:
    """Named cells of one experiment, kept in a file (None: in memory).

    Parameters
    ----------
    path : Path or None
        Cells already there are kept, provided that the file has the same ``identity``.
    identity : dict
        What the cells have in common, such as the protocol and the seed.
    about : dict
        Told along with the results of this run: the command, the versions.
    """

    def __init__(self, path: Path | None, identity: dict[str, Any], about: dict[str, Any]) -> None:
        self.path = path
        self.identity = identity
        self.results: dict[str, Any] = {**identity, **about, "cells": self._stored()}

    def _stored(self) -> dict[str, Any]:
        """The cells in the file."""
        path = self.path
        if path is None or not path.exists():
            return {}
        try:
            found = json.loads(path.read_text())
            cells: dict[str, Any] = found["cells"]
        except (json.JSONDecodeError, KeyError, TypeError):
            raise InputError(f"{path} does not hold results of this experiment; name another file.") from None
        for key, value in self.identity.items():
            if found.get(key) != value:
                raise InputError(
                    f"{path} holds results with {key}={found.get(key)!r}, not {value!r}; name another file."
                )
        return cells

    def cell(self, name: str, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The cell of this name, computed and saved unless it is there already."""
        cells = self.results["cells"]
        if name not in cells:
            cells[name] = compute()
            self.save()
        found: dict[str, Any] = cells[name]
        return found

    def save(self) -> None:
        """Write all of it to a file beside, then put that in place; cells that another run has put there are kept."""
        if self.path is None:
            return
        self.results["cells"] = self._stored() | self.results["cells"]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        beside.write_text(_lines(self.results))
        beside.replace(self.path)


def _lines(results: dict[str, Any]) -> str:
    """JSON with a line a cell, so that differences between two runs can be read."""
    head = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in results.items() if key != "cells"]
    cells = [f"{json.dumps(name)}: {json.dumps(cell)}" for name, cell in results["cells"].items()]
    return "{\n " + ",\n ".join([*head, '"cells": {\n  ' + ",\n  ".join(cells) + "\n }"]) + "\n}\n"
