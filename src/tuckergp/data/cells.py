"""Single cells of columns: whether they are missing, their numbers, and how messages show them."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["as_float", "is_missing", "is_null", "joined_arrays", "show_cell"]


def is_missing(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """True where a column holds None, NaN or NaT."""
    if values.dtype.kind in "fM":
        return np.asarray(np.isnan(values) if values.dtype.kind == "f" else np.isnat(values))
    if values.dtype.kind in "iub":
        return np.zeros(len(values), dtype=bool)
    # NaN, NaT and pandas.NA are the values that do not equal themselves
    return np.fromiter((is_null(value) for value in values), dtype=bool, count=len(values))


def is_null(value: Any) -> bool:
    """Whether a cell is missing: None, NaN, NaT or pandas.NA."""
    if value is None:
        return True
    if isinstance(value, str | list | tuple | set | frozenset | np.ndarray):
        return False
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA refuses to be a truth value
        return True


def as_float(value: Any) -> float:
    """A cell as a number: dates are days since 1970-01-01, a missing cell is NaN."""
    if is_null(value):
        return np.nan
    if isinstance(value, datetime.datetime):
        utc = value.astimezone(datetime.UTC).replace(tzinfo=None) if value.tzinfo else value
        return (utc - datetime.datetime(1970, 1, 1)) / datetime.timedelta(days=1)
    if isinstance(value, datetime.date):
        return float((value - datetime.date(1970, 1, 1)).days)
    return float(value)


def joined_arrays(arrays: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Columns one after the other, as objects where their types differ."""
    if len(arrays) == 1:
        return arrays[0]
    if len({array.dtype.kind for array in arrays}) > 1:  # dates finer than microseconds would become numbers
        dates = [array.astype("datetime64[us]") if array.dtype.kind == "M" else array for array in arrays]
        arrays = [array.astype(object) for array in dates]
    return np.concatenate(arrays)


def show_cell(value: Any) -> str:
    """A value as messages show it: short, and without NumPy's names."""
    try:
        text = repr(value.item() if isinstance(value, np.generic) else value)
    except ValueError:  # an integer of more digits than Python writes
        text = "an integer of very many digits"
    return text if len(text) <= 40 else text[:37] + "..."
