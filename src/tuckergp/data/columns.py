"""How the inputs of kernels and features are read: tables and arrays in, numbers, levels and distinct rows out.

The one place that decides whether a column holds numbers, categories or bags (several values in a cell). Nothing here
knows what a kernel is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuckergp.data.tables import Table, as_table, distinct_rows, is_missing
from tuckergp.errors import InputError

__all__ = [
    "ARRAY",
    "COLLECTIONS",
    "Encoder",
    "Kind",
    "as_bag",
    "as_inputs",
    "column_kind",
    "distinct",
    "freeze",
    "joint_codes",
    "keys_of",
    "numbers",
    "row_keys",
    "row_names",
]

Floats: TypeAlias = npt.NDArray[np.float64]
Codes: TypeAlias = npt.NDArray[np.intp]
Kind: TypeAlias = Literal["number", "category", "bag"]

ARRAY = "the array"
"""The name of a table made from an array: its columns are x0, x1, ... and cannot be asked for by other names."""

COLLECTIONS = (list, tuple, set, frozenset, np.ndarray)


def as_inputs(X: Any) -> Table:
    """Return a table as it is, and an array of shape (n, p) or (n,) as a table with the columns x0, x1, ..."""
    if isinstance(X, Table):
        return X
    if isinstance(X, Mapping) or hasattr(X, "columns"):
        return as_table(X, "X")
    array = np.asarray(X)
    if array.dtype.kind in "US" and not isinstance(X, np.ndarray):
        array = np.array(X, dtype=object)  # numbers next to text stay numbers
    if array.ndim not in (1, 2):
        raise InputError(f"Inputs must be a table, or an array of shape (n, p) or (n,); got shape {array.shape}.")
    array = array.reshape(len(array), -1) if array.ndim == 1 else array
    columns = as_table({f"x{j}": array[:, j] for j in range(array.shape[1])}, ARRAY).columns
    return Table(columns, ARRAY, len(array))


def numbers(table: Table, names: Sequence[str]) -> Floats:
    """Some columns as finite numbers, shape (n, p)."""
    if not names:
        return np.empty((len(table), 0))
    return np.column_stack([table.numeric(name) for name in names])


def distinct(table: Table) -> tuple[Codes, Codes]:
    """The first of each set of equal rows, shape (n_distinct,), and the number of its set for each row, shape (n,)."""
    hashable = Table({k: _hashable(v) for k, v in table.columns.items()}, table.name, table.n_rows)
    return distinct_rows(hashable, list(table.columns))


def joint_codes(first: Table, second: Table) -> tuple[Codes, Codes]:
    """Number the rows of two tables with the same columns so that equal rows have equal numbers."""
    columns = {}
    for name, a in first.columns.items():
        b = second[name]
        if a.dtype.kind != b.dtype.kind:  # as objects 1 equals 1.0, and long ids keep their digits
            a, b = a.astype(object), b.astype(object)
        columns[name] = np.concatenate([a, b])
    _, code = distinct(Table(columns, first.name, len(first) + len(second)))
    return code[: len(first)], code[len(first) :]


def row_names(table: Table) -> list[str]:
    """Each row in words: ``user_id=ann,week=3``."""
    cells = [[f"{name}={_text(cell[0])}" for cell in _cells(v, "category")] for name, v in table.columns.items()]
    return [",".join(row) for row in zip(*cells, strict=True)] if cells else [""] * len(table)


def row_keys(table: Table) -> npt.NDArray[np.uint64]:
    """A key for each row that depends on its names and values alone, the same in every process, shape (n,)."""
    return keys_of(row_names(table))


def keys_of(names: Sequence[str]) -> npt.NDArray[np.uint64]:
    """A key for each name, the same in every process, shape (n,)."""
    digests = (blake2b(name.encode(errors="replace"), digest_size=8).digest() for name in names)
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def column_kind(values: npt.NDArray[Any]) -> Kind:
    """The kind of a column: numbers and dates, one category per cell (text, bool), or bags (collections, ``a|b``)."""
    if values.dtype.kind in "fiuM":
        return "number"
    if values.dtype.kind == "O" and any(
        isinstance(v, COLLECTIONS) or (isinstance(v, str) and "|" in v) for v in values
    ):
        return "bag"
    return "category"


@dataclass(frozen=True)
class Encoder:
    """How one column becomes exact linear features.

    A number is itself; a category is one-hot, missing being a level of its own; a bag has a one for each of its
    values, and a missing bag is empty. Levels that were not learned are zeros.
    """

    name: str
    kind: Kind
    levels: dict[Any, int]

    @classmethod
    def learn(cls, name: str, *tables: Table, kind: Kind | None = None) -> Encoder:
        """Learn the levels of a column from some tables, and its kind unless it is known."""
        if kind is None:
            kinds = {column_kind(table[name]) for table in tables}
            kind = "bag" if "bag" in kinds else "number" if kinds == {"number"} else "category"
        if kind == "number":
            for table in tables:
                table.numeric(name)  # missing numbers are refused while fitting, not later
            return cls(name, kind, {})
        values = {value for table in tables for cell in _cells(table[name], kind) for value in cell}
        try:
            ordered = sorted(values, key=lambda value: (value is None, value))
        except TypeError:  # mixed types do not sort
            ordered = sorted(values, key=lambda value: (value is None, _text(value)))
        return cls(name, kind, {value: number for number, value in enumerate(ordered)})

    @property
    def feature_names(self) -> list[str]:
        """Names of the features: ``age`` for numbers, ``occupation=doctor`` for levels."""
        return [self.name] if self.kind == "number" else [f"{self.name}={_text(value)}" for value in self.levels]

    def transform(self, table: Table) -> Floats | sparse.csr_array:
        """Features of the column: shape (n, 1) for numbers, sparse (n, n_levels) otherwise."""
        if self.kind == "number":
            return table.numeric(self.name)[:, None]
        return _indicators(_cells(table[self.name], self.kind), self.levels)

    def new_levels(self, table: Table) -> tuple[sparse.csr_array, list[str]]:
        """One-hot features of the levels of a table that were not learned, (n, k), and their names."""
        if self.kind == "number":
            return sparse.csr_array((len(table), 0)), []
        cells = _cells(table[self.name], self.kind)
        levels = dict.fromkeys(value for cell in cells for value in cell if value not in self.levels)
        numbered = {value: number for number, value in enumerate(levels)}
        return _indicators(cells, numbered), [f"{self.name}={_text(value)}" for value in levels]


def _indicators(cells: Sequence[tuple[Any, ...]], levels: Mapping[Any, int]) -> sparse.csr_array:
    """A one for each value of a cell that is among the levels, shape (n, n_levels)."""
    codes = [[levels[value] for value in cell if value in levels] for cell in cells]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in codes], dtype=np.int64)])
    indices = np.fromiter((code for row in codes for code in row), dtype=np.int64, count=int(indptr[-1]))
    return sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=(len(cells), len(levels)))


def _cells(values: npt.NDArray[Any], kind: Kind) -> list[tuple[Any, ...]]:
    """The values of each cell, None for a missing category."""
    missing = is_missing(values)
    listed = (values.astype("datetime64[us]") if values.dtype.kind == "M" else values).tolist()
    if kind == "category":
        return [(None if gone else freeze(value),) for value, gone in zip(listed, missing, strict=True)]
    return [() if gone else as_bag(value) for value, gone in zip(listed, missing, strict=True)]


def as_bag(value: Any) -> tuple[Any, ...]:
    """The distinct values of a cell: of a collection, or of text separated by ``|``."""
    if isinstance(value, str):
        value = [text.strip() for text in value.split("|") if text.strip()]
    if isinstance(value, set | frozenset):  # whose order differs between processes
        return tuple(sorted(value, key=lambda each: (type(each).__name__, _text(each))))
    if not isinstance(value, COLLECTIONS):
        return (freeze(value),)
    try:
        return tuple(dict.fromkeys(value))
    except TypeError:  # some of them cannot be hashed as they are
        return tuple(dict.fromkeys(map(freeze, value)))


def freeze(value: Any) -> Any:
    """A value that can be hashed: collections as tuples or frozen sets, all else as it is, or as its text."""
    if isinstance(value, list | tuple | np.ndarray):
        return tuple(map(freeze, value))
    if isinstance(value, set):
        return frozenset(map(freeze, value))
    try:
        hash(value)
    except TypeError:
        return str(value)
    return value


def _hashable(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if values.dtype.kind != "O" or not any(isinstance(v, set) for v in values):
        return values
    frozen = np.empty(len(values), dtype=object)
    frozen[:] = [freeze(value) for value in values]
    return frozen


def _text(value: Any) -> str:
    """A value in words, so that equal values read the same: 3 and 3.0 are both ``3``."""
    if value is None:
        return "<missing>"
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(map(_text, value)))}}}"
    if isinstance(value, int | float | np.number) and not isinstance(value, bool) and float(value).is_integer():
        return str(int(value))
    return str(value)
