"""Data frames: answers of the library that the user's data came in, and what pandas keeps beside the columns."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

__all__ = ["COLUMNS", "Frame", "as_frame", "backend_of", "usable_backend", "with_index"]

COLUMNS = "columns"
"""In place of a library: no data frame, but a dict of columns, for programs that take answers apart at once."""

BACKENDS = ("pandas", "polars", "pyarrow", "modin", "cudf")


class Frame(Protocol):
    """What the tables of pandas, polars and PyArrow have in common."""

    def __getitem__(self, column: str, /) -> Any:
        """One column."""

    def __len__(self) -> int:
        """The number of rows."""

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""


def backend_of(data: Any) -> str:
    """The library whose tables to answer with: that of the data, else pandas where it is installed, else PyArrow."""
    import narwhals as nw

    try:
        frame: Any = nw.from_native(data)
        name = str(nw.get_native_namespace(frame).__name__)
    except TypeError:
        name = ""
    return name if name in BACKENDS else "pandas" if find_spec("pandas") else "pyarrow"


def usable_backend(name: str) -> str:
    """A library by its name where it is installed, else what `backend_of` would choose."""
    return name if name in BACKENDS and find_spec(name) else backend_of(None)


def as_frame(columns: Mapping[str, Any], backend: str) -> Frame:
    """A data frame of one of pandas, polars and PyArrow; of `COLUMNS` the columns as they are."""
    if backend == COLUMNS:
        return dict(columns)  # type: ignore[return-value]  # only who asked for it gets it
    import narwhals as nw

    if backend in ("polars", "pyarrow"):
        columns = {name: _in_enough_bits(values) for name, values in columns.items()}
    frame: Frame = nw.from_dict(dict(columns), backend=backend).to_native()  # type: ignore[arg-type]
    return frame


def with_index(data: Any) -> Any:
    """A data frame of pandas with the named levels of its index as columns; anything else as it is."""
    levels = getattr(getattr(data, "index", None), "names", None) or ()
    if hasattr(data, "reset_index") and any(name is not None and name not in data for name in levels):
        return data.reset_index()
    return data


def _in_enough_bits(values: Any) -> Any:
    """Integers of which some are too large for the type that the library would choose, in one that holds all."""
    if not isinstance(values, list) or set(map(type, values)) != {int}:
        return values
    low, high = min(values), max(values)
    if low >= -(2**63) and high < 2**63:
        return values
    return np.array(values, np.uint64) if low >= 0 and high < 2**64 else list(map(Decimal, values))
