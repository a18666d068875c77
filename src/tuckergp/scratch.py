"""Large arrays in files instead of memory: where a folder is named, the system writes out what it needs the memory for.

Arrays of the length of the data, but not those of rows, are made here. Their files have no names, so that they are gone
with the last array, also when a process is killed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.errors import InputError

__all__ = ["counts", "empty", "in_files"]

_FOLDER: ContextVar[Path | None] = ContextVar("scratch_folder", default=None)
# Numbers that are cast at a time.
CHUNK = 2**22


@contextmanager
def in_files(folder: str | Path) -> Iterator[None]:
    """Make the arrays of `empty` in files of this folder."""
    if not Path(folder).is_dir():
        raise InputError(f"There is no folder {folder} for scratch files; make it first.")
    token = _FOLDER.set(Path(folder))
    try:
        yield
    finally:
        _FOLDER.reset(token)


def empty(shape: int | tuple[int, ...], dtype: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
    """An array to be filled, in memory or, inside `in_files`, in a file."""
    folder = _FOLDER.get()
    if folder is None or 0 in np.atleast_1d(shape):
        return np.empty(shape, dtype=dtype)
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            return np.asarray(np.memmap(file, dtype=dtype, mode="w+", shape=shape))
    except OSError as error:
        raise InputError(f"{folder} cannot hold scratch files: {error.strerror or error}.") from None


def counts(numbers: npt.NDArray[np.integer], length: int) -> npt.NDArray[np.intp]:
    """How often each of 0, ..., length - 1 occurs, without a copy of all numbers."""
    total = np.zeros(length, dtype=np.intp)
    for first in range(0, len(numbers), CHUNK):
        total += np.bincount(numbers[first : first + CHUNK], minlength=length)
    return total
