"""Data frames: answers of the library that the user's data came in, and what pandas keeps beside the columns."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, Protocol

__all__ = ["Frame", "as_frame", "backend_of", "usable_backend", "with_index"]

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
    """A data frame of one of pandas, polars and PyArrow."""
    import narwhals as nw

    frame: Frame = nw.from_dict(dict(columns), backend=backend).to_native()  # type: ignore[arg-type]
    return frame


def with_index(data: Any) -> Any:
    """A data frame of pandas with the named levels of its index as columns; anything else as it is."""
    levels = getattr(getattr(data, "index", None), "names", None) or ()
    if hasattr(data, "reset_index") and any(name is not None and name not in data for name in levels):
        return data.reset_index()
    return data
