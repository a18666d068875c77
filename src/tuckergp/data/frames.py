"""Data frames as answers, of the library that the user's data came in."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

__all__ = ["as_frame", "backend_of", "usable_backend"]

BACKENDS = ("pandas", "polars", "pyarrow", "modin", "cudf")


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


def as_frame(columns: Mapping[str, Any], backend: str) -> Any:
    """A data frame of one of pandas, polars and PyArrow."""
    import narwhals as nw

    return nw.from_dict(dict(columns), backend=backend).to_native()  # type: ignore[arg-type]
