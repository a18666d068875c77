"""Conversion of a fitted model to JSON, tensors and Parquet tables, and back.

What is large is kept out of the JSON: arrays become tensors; tables, ids and long lists become Parquet. The classes
that a file may hold are listed in `tuckergp.store.schema`.
"""

from __future__ import annotations

import datetime
import decimal
import re
import uuid
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuckergp.data.tables import Table
from tuckergp.store import schema
from tuckergp.store.cells import Column, read_columns, write_columns
from tuckergp.store.plain import pack
from tuckergp.store.stored_rows import StoredRows
from tuckergp.store.trees import Reader, Writer
from tuckergp.store.typed import check_fields

__all__ = ["Packer", "Unpacker"]

Array = npt.NDArray[Any]
Json = Any

CELLS = (
    *(bool, int, float, str, bytes, list, tuple, set, frozenset, np.datetime64, np.timedelta64, datetime.date),
    *(datetime.time, datetime.timedelta, uuid.UUID, decimal.Decimal),
)
"""What a cell of a table may be."""

LONG = 100
"""Lists of at least this length become Parquet."""


class Packer(Writer):
    """Converts a model to JSON, tensors and tables.

    Attributes
    ----------
    arrays : dict of str to ndarray
        Tensors by name that are read whole.
    rows : dict of str to ndarray or RowsInPlace
        Tensors by name of which single rows are read.
    tables : dict of str to bytes
        Parquet files by name.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[str, Any] = {}
        self.tables: dict[str, bytes] = {}
        self._stored: dict[int, tuple[Array, Json]] = {}

    def encode(self, tree: Any) -> Json:
        """The structure of a tree."""
        if isinstance(tree, schema.AsRows):
            return {"rows": self._rows(*tree)}
        if isinstance(tree, Table):
            return self._table(tree)
        if sparse.issparse(tree):
            return self._sparse(tree)
        if isinstance(tree, list):
            return self._list(tree)
        if isinstance(tree, Mapping) and len(tree) >= LONG:
            return {"items": [self.at("keys", list(tree)), self.at("values", list(tree.values()))]}
        return super().encode(tree)

    def name(self, kind: type) -> str:
        """The name of a class in files."""
        return schema.name_of(kind)

    def fields(self, tree: Any) -> dict[str, Any] | None:
        """The fields of an object; None for a value that is no listed object."""
        return schema.fields(tree)

    def array(self, values: Any) -> Json:
        """Store an array as a tensor and return the reference to it; an array that occurs twice is stored once."""
        if not isinstance(values, np.ndarray):
            if values.dtype.kind in "US":
                return pack(values.item())
            return {"number": self._store(np.array(values), self.arrays)}
        if id(values) not in self._stored:
            self._stored[id(values)] = values, self._new_array(values)
        return self._stored[id(values)][1]

    def _new_array(self, values: Array) -> Json:
        if values.dtype.kind in "OmM" and values.ndim == 1:
            if values.dtype.kind == "O" and len(values) < LONG:
                return {"objects": self.each(values.tolist())}
            return self._column(values)
        transposed = _fortran(values)
        return {"transposed" if transposed else "array": self._store(values.T if transposed else values, self.arrays)}

    def _rows(self, values: Any, below: int | None) -> Json:
        known = {"shape": list(values.shape), "below": below}
        if values.dtype.kind in "mM":
            known["times"] = values.dtype.newbyteorder("<").str
        return {"key": self._store(values, self.rows, "fiubmM"), **known}

    def _store(self, values: Any, place: dict[str, Any], kinds: str = "fiub") -> str:
        if values.dtype.kind not in kinds or values.dtype.itemsize > 8:
            raise TypeError(f"an array of {values.dtype} cannot be stored")
        key = self._key(place)
        place[key] = values
        return key

    def _key(self, taken: Mapping[str, Any]) -> str:
        """A new name from the path in the tree, with characters that are safe on any system."""
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", ".".join(self.path))[:150].strip(".") or "model"
        key, number = name, 2
        while key in taken:
            key, number = f"{name}-{number}", number + 1
        return key

    def _write(self, columns: Mapping[str, Column]) -> tuple[str, list[Json]]:
        content, kinds = write_columns(columns)
        key = self._key(self.tables)
        self.tables[key] = content
        return key, kinds

    def _column(self, values: Column) -> Json:
        key, (kind,) = self._write({"value": values})
        return {"column": [key, kind, len(values)]}

    def _table(self, table: Table) -> Json:
        known = {"name": table.name, "n_rows": table.n_rows, "first_line": table.first_line}
        if not table.columns:
            return {"table": {**known, "file": None, "columns": []}}
        key, kinds = self._write(table.columns)
        return {"table": {**known, "file": key, "columns": list(map(list, zip(table.columns, kinds, strict=True)))}}

    def _sparse(self, matrix: Any) -> Json:
        matrix = sparse.csr_array(matrix)
        parts = {name: self.at(name, getattr(matrix, name)) for name in ("data", "indices", "indptr")}
        return {"sparse": {"shape": [int(size) for size in matrix.shape], **parts}}

    def _list(self, values: list[Any]) -> Json:
        if len(values) >= LONG:
            try:
                return self._column(values)
            except TypeError:  # not a list of plain values
                pass
        return self.each(values)


def _check_sparse(data: Array, indices: Array, indptr: Array, rows: int, columns: int) -> None:
    """Raise a ValueError for invalid indices, which compiled code would trust and SciPy does not check fully."""
    whole = all(part.dtype.kind == "i" and part.ndim == 1 for part in (indices, indptr)) and data.dtype.kind in "fiub"
    right = whole and len(indptr) == rows + 1 and indptr[0] == 0 and indptr[-1] == len(indices) and data.ndim == 1
    if not right or len(data) != len(indices) or (np.diff(indptr) < 0).any():
        raise ValueError("the rows of a sparse matrix do not lie one after the other")
    if len(indices) and not (indices.min() >= 0 and indices.max() < columns):
        raise ValueError("a sparse matrix has entries outside")
    if data.dtype.kind == "f" and not np.isfinite(data).all():
        raise ValueError("a sparse matrix is not finite")


def _fortran(values: Array) -> bool:
    return values.flags.f_contiguous and not values.flags.c_contiguous


class Content(Protocol):
    """The tensors and tables of a file, by the names that its structure refers to."""

    @property
    def size(self) -> int:
        """Bytes of the whole file."""

    @property
    def arrays(self) -> Mapping[str, Array]:
        """The tensors that are read whole."""

    def rows(self, key: str, shape: list[int], below: int | None, times: str | None = None) -> StoredRows:
        """A tensor of the given shape that is read by rows: whole numbers below ``below``, or times, if so given."""

    def table(self, key: str) -> bytearray:
        """The content of a Parquet file."""


class Unpacker(Reader):
    """Rebuilds a model from JSON, tensors and tables."""

    def __init__(self, content: Content) -> None:
        super().__init__(content.arrays)
        self.content = content

    def kind(self, name: str) -> Any:
        """The class that has this name in files."""
        return schema.class_of(name)

    def build(self, kind: Any, fields: dict[str, Any]) -> Any:
        """Build an object from its fields."""
        return schema.build(kind, fields)

    def special(self, tag: str, content: Json) -> Any:
        """The value of ``{tag: content}``."""
        if tag == "transposed":
            return self.arrays[content].T
        if tag == "rows":
            return self.content.rows(**content)
        if tag == "objects":
            objects = np.empty(len(content), dtype=object)
            objects[:] = self.decode(content)
            if not all(value is None or isinstance(value, CELLS) for value in objects):
                raise ValueError("a cell holds what no table has")
            return objects
        if tag == "column":
            key, kind, length = content
            return read_columns(self.content.table(key), [kind], length)[0]
        if tag == "table":
            return self._table(**content)
        if tag == "sparse":
            return self._sparse(**content)
        return super().special(tag, content)

    def _table(self, name: str, n_rows: int, first_line: int | None, file: str | None, columns: list[Any]) -> Table:
        names, kinds = [column for column, _ in columns], [kind for _, kind in columns]
        if file is None and not 0 <= n_rows <= self.content.size:  # what it is about takes a byte for each row
            raise ValueError(f"a table of {n_rows} rows is more than there can be")
        values = [] if file is None else read_columns(self.content.table(file), kinds, n_rows)
        if not all(isinstance(column, np.ndarray) for column in values):
            raise ValueError(f"{file} has columns that are no arrays")
        table = Table(dict(zip(names, values, strict=True)), name, n_rows, first_line)  # type: ignore[arg-type]
        check_fields(table, schema.declared(Table))
        return table

    def _sparse(self, shape: list[int], data: Json, indices: Json, indptr: Json) -> Any:
        values, places, ends = map(self.decode, (data, indices, indptr))
        rows, columns = shape
        _check_sparse(values, places, ends, rows, columns)
        return sparse.csr_array((values, places, ends), shape=(rows, columns))
