"""Rows of JSON read with Python's own parser: lists of objects, and lines that PyArrow refuses or would change.

PyArrow makes floats of integers from 2^63 on and dates of text that looks like them; ids must keep their spelling.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.data.sources import Source
from tuckergp.errors import InputError

__all__ = ["json_columns"]


def json_columns(source: Source, names: Sequence[str] | None = None) -> dict[str, npt.NDArray[Any]]:
    """Columns of a file with JSON objects, all of them or those named; None where an object lacks one."""
    rows = list(_objects_of(source))
    taken = dict.fromkeys(key for row in rows for key in row) if names is None else names
    return {name: _column([row.get(name) for row in rows]) for name in taken}


def _objects_of(source: Source) -> Iterator[dict[str, Any]]:
    """The objects of a list, or of the lines of a file."""
    with source.open() as file:
        if source.format == "jsonl":
            for line, text in enumerate(file, 1):
                if text.strip():
                    yield _parsed(text, f"{source.name} line {line}", dict)
        else:
            yield from _parsed(file.read(), source.name, list)


def _parsed(text: bytes, name: str, kind: type) -> Any:
    what = "a JSON object such as {...}" if kind is dict else "a list of JSON objects such as [{...}, {...}]"
    try:
        read: Any = json.loads(text.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        why = str(error).split(":")[0]
        raise InputError(f"{name} must be {what}, and cannot be read ({why}); correct or remove it.") from None
    rows = read if isinstance(read, list) else [read]
    if not isinstance(read, kind) or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{name} must be {what}; correct or remove it.")
    return read


def _column(cells: list[Any]) -> npt.NDArray[Any]:
    """Cells as integers or numbers where all of them are, else as objects."""
    kinds = {type(cell) for cell in cells} - {type(None)}
    if kinds and kinds <= {int, float} and all(abs(cell or 0) < 2**63 for cell in cells):
        return np.array(cells, dtype=np.int64 if kinds == {int} and None not in cells else np.float64)
    if kinds == {bool} and None not in cells:
        return np.array(cells)
    column = np.empty(len(cells), dtype=object)
    column[:] = cells
    return column
