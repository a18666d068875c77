"""The type of ids, integers or text: the training ratings decide it for all later tables and arguments.

In text files an id column holds integers if every id is written as Python writes that integer and fits 64 bits; else
all of it is text, and every id keeps its spelling: 007, 07 and 7 are three ids. UUIDs of Arrow are their usual text.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["ID_COLUMNS", "aligned", "describe_type", "holds_uuids", "integers_of", "uuid_texts"]

ID_COLUMNS = ("user_id", "item_id")
"""The usual names of columns with ids."""

UUID_BYTES = 16

CANONICAL = re.compile(r"0|-?[1-9][0-9]*")
# What files write for a missing number; text such as NA is missing only among integers.
MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "#N/A")


def integers_of(column: Any) -> npt.NDArray[Any] | None:
    """Ids of a text file as integers, None in place of missing ones; None if they have to stay text.

    Parameters
    ----------
    column : pyarrow.ChunkedArray of strings

    Examples
    --------
    >>> import pyarrow as pa
    >>> integers_of(pa.chunked_array([["7", "12"]]))
    array([ 7, 12])
    >>> integers_of(pa.chunked_array([["7", "007"]])) is None
    True
    """
    from pyarrow import compute

    numbers = _canonical(column)
    if numbers is not None:
        return numbers
    trimmed = compute.utf8_trim_whitespace(column)
    missing = compute.is_in(trimmed, value_set=_missing(column.type))
    numbers = _canonical(trimmed.filter(compute.invert(missing)))
    if numbers is None or not len(numbers):
        return None
    gone = missing.to_numpy()
    if not gone.any():
        return numbers
    out = np.full(len(column), None, dtype=object)
    out[~gone] = numbers.tolist()
    return out


def _canonical(column: Any) -> npt.NDArray[np.int64] | None:
    """Texts as integers if all are written as Python writes them."""
    import pyarrow as pa
    from pyarrow import compute

    try:
        numbers = np.asarray(column.cast(pa.int64()).to_numpy())
    except pa.ArrowInvalid:
        return None
    if compute.any(compute.match_substring(column, "x", ignore_case=True)).as_py():  # 0x1F
        return None
    # no decimals are shorter than what Python writes, so all are the same if they are as long in total
    if len(numbers) and compute.sum(compute.binary_length(column)).as_py() != _length(numbers):
        return None
    return numbers


def _length(numbers: npt.NDArray[np.int64]) -> int:
    """The total number of characters of integers."""
    sizes = np.abs(numbers).view(np.uint64)  # the lowest integer stays itself, and is right without its sign
    powers = [10**k for k in range(1, 19) if 10**k <= int(sizes.max())]
    return len(numbers) + int((numbers < 0).sum()) + sum(int(np.count_nonzero(sizes >= p)) for p in powers)


def _missing(kind: Any) -> Any:
    import pyarrow as pa

    return pa.array(MISSING, kind)


def holds_uuids(kind: Any) -> bool:
    """Whether a type of Arrow is that of UUIDs, or of 16 bytes, as which they come from older files."""
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        return bool(kind.extension_name == "arrow.uuid")
    return bool(pa.types.is_fixed_size_binary(kind)) and kind.byte_width == UUID_BYTES


def uuid_texts(column: Any) -> npt.NDArray[Any]:
    """A column of Arrow for which `holds_uuids` is true as text, None where it is missing.

    Examples
    --------
    >>> import pyarrow as pa
    >>> uuid_texts(pa.array([bytes(range(16)), None], pa.binary(16)))
    array(['00010203-0405-0607-0809-0a0b0c0d0e0f', None], dtype=object)
    """
    return _objects(
        None if value is None else str(uuid.UUID(bytes=value) if isinstance(value, bytes) else value)
        for value in column.to_pylist()
    )


def aligned(values: npt.NDArray[Any], example: Any) -> npt.NDArray[Any]:
    """Ids in the type of known ones, of which one is given, where they have an equal spelling in it.

    Integers and UUIDs become text if known ids are text; text becomes an integer if known ids are integers and Python
    would write the integer so, or a UUID if known ids are UUIDs. All others stay as they are.

    Examples
    --------
    >>> aligned(np.array([7, 12]), "007")
    array(['7', '12'], dtype=object)
    >>> aligned(np.array(["12", "007"], dtype=object), 3)
    array([12, '007'], dtype=object)
    """
    kind = values.dtype.kind
    if isinstance(example, str) and kind in "iu":
        texts = {number: str(number) for number in np.unique(values).tolist()}
        return _objects(texts[number] for number in values.tolist())
    if kind != "O":
        return values
    kinds = set(map(type, values.tolist()))
    if isinstance(example, str) and any(issubclass(kind, int | np.integer | uuid.UUID) for kind in kinds):
        return _objects(str(value) if _is_integer(value) or isinstance(value, uuid.UUID) else value for value in values)
    if isinstance(example, uuid.UUID) and str in kinds:
        return _objects(_as_uuid(value) if isinstance(value, str) else value for value in values)
    if isinstance(example, int | float) and not isinstance(example, bool) and str in kinds:
        return _objects(_as_number(value, example) if isinstance(value, str) else value for value in values)
    return values


def _as_number(text: str, example: Any) -> Any:
    if CANONICAL.fullmatch(text):
        return int(text)
    if isinstance(example, float):
        try:
            return float(text)
        except ValueError:
            return text
    return text


def _as_uuid(text: str) -> Any:
    try:
        return uuid.UUID(text)
    except ValueError:
        return text


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _objects(values: Iterable[Any]) -> npt.NDArray[Any]:
    listed = list(values)
    out = np.empty(len(listed), dtype=object)
    out[:] = listed
    return out


def describe_type(values: npt.NDArray[Any]) -> str:
    """The type of a column of ids in one word."""
    if values.dtype.kind in "iu":
        return "integers"
    kinds = {type(value) for value in values.tolist() if value is not None}
    if kinds <= {int}:
        return "integers"
    return "text" if kinds <= {str} else " and ".join(sorted(kind.__name__ for kind in kinds))
