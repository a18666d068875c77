"""Conversion of single values that JSON lacks to JSON and back: bytes, dates, UUIDs, decimals.

Ids and cells of tables are made of these. Containers and arrays are converted in `tuckergp.store.trees`.
"""

from __future__ import annotations

import base64
import datetime
import decimal
import math
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["is_plain", "pack", "unpack"]

Json = Any

LONGEST_RANGE = 100_000


def pack(value: Any) -> Json:
    """Convert one value to JSON; TypeError for a type that cannot be stored.

    Examples
    --------
    >>> pack(3), pack(b"id"), pack(datetime.date(1998, 4, 22))
    (3, {'bytes': 'aWQ='}, {'date': '1998-04-22'})
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"float": repr(float(value))}
    if isinstance(value, np.datetime64 | np.timedelta64):
        return {"time64": [int(value.astype(np.int64)), value.dtype.str]}
    if isinstance(value, datetime.datetime):
        return _pack_datetime(value)
    for kind, (tag, take_apart) in _WRITERS.items():
        if isinstance(value, kind):
            return {tag: take_apart(value)}
    if type(value).__name__ == "NAType":  # pandas' missing value, which pandas alone can make
        return None
    raise TypeError(f"a {type(value).__name__} cannot be stored")


def is_plain(value: Any) -> bool:
    """Whether `pack` can convert a value; of NumPy's scalars, only dates and time differences."""
    if isinstance(value, np.generic):
        return isinstance(value, np.datetime64 | np.timedelta64)
    return value is None or isinstance(value, _KINDS) or type(value).__name__ == "NAType"


def unpack(tag: str, content: Json) -> Any:
    """The value that `pack` wrote as ``{tag: content}``; KeyError for an unknown tag.

    Examples
    --------
    >>> unpack("bytes", "aWQ=")
    b'id'
    """
    return _READERS[tag](content)


def _pack_datetime(value: datetime.datetime) -> Json:
    if value != value:  # pandas' missing time
        return None
    if getattr(value, "nanosecond", 0):
        raise TypeError("a time with nanoseconds cannot be stored")
    return {"datetime": value.isoformat()}


def _read_time64(content: list[Any]) -> Any:
    number, name = content
    dtype = np.dtype(name)
    if dtype.kind not in "mM":
        raise ValueError(f"{name} is no time")
    return np.int64(number).view(dtype)


def _short(value: range, error: type[Exception]) -> range:
    """A range that is not long: it takes three numbers in a file, but any amount of time and memory in use."""
    if value[LONGEST_RANGE:]:
        raise error(f"{value} is too long to be stored")
    return value


def _ends(value: range) -> list[int]:
    return [value.start, value.stop, value.step]


_WRITERS: dict[type, tuple[str, Callable[[Any], Json]]] = {
    bytes: ("bytes", lambda value: base64.b64encode(value).decode()),
    datetime.date: ("date", datetime.date.isoformat),
    datetime.time: ("hour", datetime.time.isoformat),
    datetime.timedelta: ("duration", lambda value: [value.days, value.seconds, value.microseconds]),
    uuid.UUID: ("uuid", str),
    decimal.Decimal: ("decimal", str),
    slice: (
        "slice",
        lambda value: [None if end is None else int(end) for end in (value.start, value.stop, value.step)],
    ),
    range: ("range", lambda value: _ends(_short(value, TypeError))),
}

_KINDS = (bool, int, str, float, np.datetime64, np.timedelta64, *_WRITERS)

_READERS: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "time64": _read_time64,
    "datetime": datetime.datetime.fromisoformat,
    "bytes": lambda text: base64.b64decode(text, validate=True),
    "date": datetime.date.fromisoformat,
    "hour": datetime.time.fromisoformat,
    "duration": lambda parts: datetime.timedelta(*parts),
    "uuid": uuid.UUID,
    "decimal": decimal.Decimal,
    "slice": lambda ends: slice(*ends),
    "range": lambda ends: _short(range(*ends), ValueError),
}
