"""Columns of any values as Parquet, with their types: numbers, text, dates, collections, and mixtures as JSON text.

A column is an array, or a list of Python values (ids, names, cells). Its kind, a piece of JSON that is kept beside the
file, says which, so that it is read back as it was.
"""

from __future__ import annotations

import datetime
import io
import json
from collections.abc import Mapping, Sequence
from itertools import chain, pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import parquet

from tuckergp.store.trees import Reader, Writer

__all__ = ["read_columns", "write_columns"]

Column: TypeAlias = npt.NDArray[Any] | list[Any]
Kind: TypeAlias = Any

# A column of equal values takes next to nothing in a file but 8 bytes per value in memory, so a small file could need
# any amount. ALWAYS bytes are allowed, or MOST times the size of the file: tables of models need less.
BYTES, ALWAYS, MOST = 8, 1 << 26, 200

_SIMPLE: dict[type, tuple[str, Any]] = {
    str: ("text", pa.string()),
    int: ("int", pa.int64()),
    float: ("float", pa.float64()),
    bool: ("bool", pa.bool_()),
    bytes: ("bytes", pa.binary()),
    datetime.date: ("date", pa.date32()),
    datetime.datetime: ("datetime", pa.timestamp("us")),
}
_COLLECTIONS: dict[type, str] = {list: "list", tuple: "tuple", set: "set", frozenset: "frozenset"}
_MAKERS: dict[str, Any] = {name: kind for kind, name in _COLLECTIONS.items()}


def write_columns(columns: Mapping[str, Column]) -> tuple[bytes, list[Kind]]:
    """Write columns of equal length as a Parquet file; TypeError for values that cannot be stored.

    Returns the content of the file and the kind of each column.

    Examples
    --------
    >>> content, kinds = write_columns({"id": [("a", 1), ("b", 2)], "age": np.array([30, 40])})
    >>> kinds
    ['json', {'dtype': '<i8'}]
    >>> read_columns(content, kinds, 2)
    [[('a', 1), ('b', 2)], array([30, 40])]
    """
    made = [_to_arrow(values) for values in columns.values()]
    names = [name.encode("utf-8", "replace").decode() for name in columns]
    table = pa.Table.from_arrays([array for array, _ in made], names=names)
    file = io.BytesIO()
    parquet.write_table(table, file, compression="zstd", store_schema=False, version="2.6")
    return file.getvalue(), [kind for _, kind in made]


def read_columns(content: bytes | bytearray, kinds: Sequence[Kind], length: int | None = None) -> list[Column]:
    """Read the columns that `write_columns` wrote, in their order; ValueError if they have another ``length``."""
    file = parquet.ParquetFile(pa.BufferReader(content))
    if length is not None and file.metadata.num_rows != length:
        raise ValueError(f"a table has {file.metadata.num_rows} rows, not {length}")
    if BYTES * _cells(file.metadata) > max(ALWAYS, MOST * len(content)):
        raise ValueError(f"a table of {file.metadata.num_rows} rows cannot be as short as it is")
    table = file.read(use_threads=False)
    return [_from_arrow(column, kind) for column, kind in zip(table.columns, kinds, strict=True)]


def _cells(metadata: Any) -> int:
    """The number of values in a file according to its metadata, those inside collections included."""
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    inside: int = sum(group.column(j).num_values for group in groups for j in range(group.num_columns))
    return max(int(metadata.num_rows * metadata.num_columns), inside)


def _to_arrow(values: Column) -> tuple[Any, Kind]:
    if not isinstance(values, np.ndarray):
        return _list_to_arrow(values)
    if values.dtype.kind == "O":
        array, kind = _list_to_arrow(values.tolist())
        return array, {"objects": kind}
    dtype = values.dtype.newbyteorder("<")
    if dtype.kind not in "fiubmM":
        raise TypeError(f"an array of {values.dtype} cannot be stored")
    native = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("="))
    return pa.array(native.view(np.int64) if dtype.kind in "mM" else native), {"dtype": dtype.str}


def _from_arrow(column: Any, kind: Kind) -> Column:
    if isinstance(kind, dict) and "dtype" in kind:
        dtype = np.dtype(kind["dtype"])
        if dtype.kind not in "fiubmM" or column.null_count:
            raise ValueError(f"a column of {dtype} cannot be read")
        numbers = _numbers(column.combine_chunks())
        # a copy, because what Arrow gives cannot be written to
        return np.array(numbers.view(dtype) if dtype.kind in "mM" else numbers, dtype=dtype.newbyteorder("="))
    if isinstance(kind, dict) and "objects" in kind:
        objects = np.empty(len(column), dtype=object)
        objects[:] = _list_from_arrow(column.combine_chunks(), kind["objects"])
        return objects
    return _list_from_arrow(column.combine_chunks(), kind)


def _numbers(array: Any) -> npt.NDArray[Any]:
    """Numbers without missing ones; unlike `to_numpy` this does not load pandas, which takes a quarter of a second."""
    if pa.types.is_boolean(array.type):
        bits = np.frombuffer(array.buffers()[1] or b"", np.uint8)  # a cast would load all of Arrow's functions
        return np.unpackbits(bits, bitorder="little")[array.offset : array.offset + len(array)].astype(bool)
    return np.from_dlpack(array)


def _list_to_arrow(values: list[Any]) -> tuple[Any, Kind]:
    kinds = {type(value) for value in values} - {type(None)}
    if not kinds:
        return pa.nulls(len(values)), "none"
    kind = next(iter(kinds)) if len(kinds) == 1 else None
    try:
        if kind in _SIMPLE and not (kind is datetime.datetime and any(v is not None and v.tzinfo for v in values)):
            name, arrow = _SIMPLE[kind]
            return pa.array(values, arrow), name
        if kind in _COLLECTIONS:
            inner, inside = _list_to_arrow(list(chain.from_iterable(value or () for value in values)))
            if inside != "json":  # which is plainer for whole cells
                return _nested(values, inner), {_COLLECTIONS[kind]: inside}
    except (OverflowError, UnicodeError, pa.ArrowInvalid):  # whole numbers beyond 64 bits, text that is not Unicode
        pass
    return pa.array([None if value is None else _to_json(value) for value in values], pa.string()), "json"


def _nested(values: list[Any], inner: Any) -> Any:
    ends = np.cumsum([0, *(0 if value is None else len(value) for value in values)]).astype(np.int32)
    missing = pa.array([value is None for value in values], pa.bool_())
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), inner, mask=missing)


def _list_from_arrow(array: Any, kind: Kind) -> list[Any]:
    if kind == "json":
        return [None if text is None else _from_json(text) for text in array.to_pylist()]
    if isinstance(kind, str):
        expected = (dict(_SIMPLE.values()) | {"none": pa.null()})[kind]
        return list((array if array.type == expected else array.cast(expected)).to_pylist())
    ((name, inside),) = kind.items()
    values, lengths = _values_of_lists(array)
    inner = _list_from_arrow(values, inside)
    ends = np.cumsum([0, *(length or 0 for length in lengths)]).tolist()
    cells = (_MAKERS[name](inner[start:end]) for start, end in pairwise(ends))
    return [None if length is None else cell for length, cell in zip(lengths, cells, strict=True)]


def _values_of_lists(array: Any) -> tuple[Any, list[int | None]]:
    """The values of all cells one after the other, and how many each cell has, None if it is missing."""
    if array.null_count:
        return array.flatten(), array.value_lengths().to_pylist()
    offsets = np.from_dlpack(array.offsets)  # the methods above would load all of Arrow's functions
    return array.values[int(offsets[0]) : int(offsets[-1])], np.diff(offsets).tolist()


class _CellWriter(Writer):
    """Writes a cell as one piece of JSON: values and collections of them, but no objects."""

    def array(self, values: Any) -> Any:
        if values.dtype.kind not in "fiubOUSmM" or values.dtype == np.longdouble:
            raise TypeError(f"an array of {values.dtype} cannot be stored")
        return self.encode(values.tolist() if isinstance(values, np.ndarray) else values.item())

    def fields(self, tree: Any) -> None:
        return None

    def encode(self, tree: Any) -> Any:
        if isinstance(tree, tuple) and hasattr(tree, "_fields"):
            raise TypeError(f"a {type(tree).__name__} cannot be stored")
        return super().encode(tree)


class _CellReader(Reader):
    def kind(self, name: str) -> Any:
        raise ValueError(f"a cell cannot hold a {name}")


def _to_json(value: Any) -> str:
    return json.dumps(_CellWriter().encode(value), allow_nan=False)


def _from_json(text: str) -> Any:
    return _CellReader({}).decode(json.loads(text))
