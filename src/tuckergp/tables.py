"""Tables of the outside world (pandas, polars, pyarrow, CSV or Parquet files, dicts) as named NumPy columns.

The one place that knows about data frames. Everything behind it sees a `Table`: column name -> 1-D array, numbers as
float64, integer or bool, anything else as objects. Errors name the table, the column and the first offending row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.errors import InputError

__all__ = ["Table", "as_table", "distinct_rows", "is_missing", "require_finite", "stacked"]


@dataclass(frozen=True)
class Table:
    """Named columns of one length.

    Attributes
    ----------
    columns : dict of str to ndarray, shape (n_rows,)
    name : str
        What messages call this table: ``ratings``, or the file it came from.
    n_rows : int
    first_line : int or None
        Line number of the first row in its text file, None for tables in memory.
    """

    columns: dict[str, npt.NDArray[Any]]
    name: str
    n_rows: int
    first_line: int | None = None

    def __len__(self) -> int:
        return self.n_rows

    def __contains__(self, column: object) -> bool:
        return column in self.columns

    def __getitem__(self, column: str) -> npt.NDArray[Any]:
        try:
            return self.columns[column]
        except KeyError:
            there = ", ".join(map(str, self.columns)) or "none"
            raise InputError(f"{self.name} has no column {column!r}; its columns are {there}.") from None

    def row_label(self, row: int) -> str:
        """Where a row is, in the words of its source: a line of a file, or a row counted from 0."""
        return f"row {row}" if self.first_line is None else f"line {self.first_line + row}"

    def take(self, rows: npt.NDArray[np.intp]) -> Table:
        """The same columns at some rows (line numbers are lost)."""
        return Table({name: values[rows] for name, values in self.columns.items()}, self.name, len(rows))

    def select(self, columns: Iterable[str]) -> Table:
        """Some of the columns, in the order given."""
        return Table({name: self[name] for name in columns}, self.name, self.n_rows, self.first_line)

    def numeric(self, column: str) -> npt.NDArray[np.float64]:
        """One column as finite float64 numbers; dates become days since 1970-01-01."""
        values = self[column]
        if values.dtype.kind == "M":
            days = values.astype("datetime64[us]").astype(np.float64) / 86_400e6
            return require_finite(np.where(np.isnat(values), np.nan, days), self, column)
        if values.dtype.kind in "fiub":
            return require_finite(values.astype(np.float64), self, column)
        numbers = np.empty(len(values))
        for row, value in enumerate(values):
            try:
                numbers[row] = float(value)
            except (TypeError, ValueError):
                raise InputError(
                    f"{self.name} column {column!r} must be numeric, but {self.row_label(row)} holds {_show(value)}."
                ) from None
        return require_finite(numbers, self, column)


def as_table(data: Any, name: str) -> Table:
    """Read any supported table.

    Parameters
    ----------
    data : pandas, polars or pyarrow table, dict of columns, or path to a CSV or Parquet file
    name : str
        What messages call it; a file keeps its own name.

    Examples
    --------
    >>> as_table({"user_id": ["ann", "bob"], "rating": [4, 5]}, "ratings")["rating"]
    array([4, 5])
    """
    if isinstance(data, Table):
        return data
    if isinstance(data, str | Path):
        return _read_file(Path(data))
    if isinstance(data, Mapping):
        columns = {str(key): _as_column(value) for key, value in data.items()}
        lengths = {key: len(value) for key, value in columns.items()}
        if len(set(lengths.values())) > 1:
            shown = ", ".join(f"{key!r} has {length}" for key, length in lengths.items())
            raise InputError(f"The columns of {name} differ in length: {shown}.")
        return Table(columns, name, next(iter(lengths.values()), 0))
    import narwhals as nw

    try:
        frame = nw.from_native(data, eager_only=True)
    except TypeError:
        raise InputError(
            f"{name} must be a pandas, polars or pyarrow table, a dict of columns, or a path to a CSV or Parquet file; "
            f"got {type(data).__name__}."
        ) from None
    columns = {str(series.name): _as_column(series.to_numpy()) for series in frame.iter_columns()}
    return Table(columns, name, frame.shape[0])


def _read_file(path: Path) -> Table:
    if not path.is_file():
        raise InputError(f"There is no file {path}.")
    import pyarrow as pa

    try:
        if path.suffix == ".parquet":
            from pyarrow import parquet

            table, first_line = parquet.read_table(path), None
        elif path.suffix in (".csv", ".tsv", ".txt"):
            from pyarrow import csv

            delimiter = "," if path.suffix == ".csv" else "\t"
            table, first_line = csv.read_csv(path, parse_options=csv.ParseOptions(delimiter=delimiter)), 2
        else:
            raise InputError(f"{path.name} must end in .csv, .tsv or .parquet, so that its format is known.")
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path.name} cannot be read: {str(error).splitlines()[0]}.") from None
    columns = {column: _as_column(table.column(column).to_numpy(zero_copy_only=False)) for column in table.column_names}
    return Table(columns, path.name, table.num_rows, first_line)


def _as_column(values: Any) -> npt.NDArray[Any]:
    """One column as a 1-D array; strings, lists and mixtures as objects."""
    if isinstance(values, np.ndarray) and values.ndim == 1:
        array = values
    else:
        values = list(values)
        if any(isinstance(value, list | tuple | set | frozenset | np.ndarray) for value in values):
            array = np.empty(len(values), dtype=object)
            array[:] = values
        else:
            # a list that mixes text and numbers must not become all text
            mixed = any(isinstance(value, str) for value in values)
            array = np.array(values, dtype=object) if mixed else np.asarray(values)
    return array if array.dtype.kind in "fiubMO" else array.astype(object)


def require_finite(values: npt.NDArray[np.float64], table: Table, column: str) -> npt.NDArray[np.float64]:
    """Return the values, or say which row first holds NaN or infinity."""
    bad = ~np.isfinite(values)
    if bad.any():
        row = int(np.argmax(bad))
        what = "is missing (NaN)" if np.isnan(values[row]) else "is infinite"
        raise InputError(
            f"{table.name} column {column!r} {what} at {table.row_label(row)}; "
            f"remove or fill such rows ({int(bad.sum())} of {len(values)})."
        )
    return values


def stacked(first: Table, second: Table) -> Table:
    """The rows of one table, then those of another; missing (None) where one of them lacks a column.

    Examples
    --------
    >>> both = stacked(as_table({"id": [1], "age": [30]}, "users"), as_table({"id": [2]}, "users"))
    >>> both["id"], both["age"]
    (array([1, 2]), array([30, None], dtype=object))
    """
    columns = {}
    for column in dict.fromkeys([*first.columns, *second.columns]):
        parts = [
            table.columns.get(column, np.full(len(table), None, dtype=object))
            for table in (first, second)
            if len(table)
        ]
        if len({part.dtype.kind for part in parts}) > 1:
            parts = [part.astype(object) for part in parts]
        columns[column] = np.concatenate(parts) if parts else first.columns.get(column, second.columns.get(column))
    return Table(columns, second.name, len(first) + len(second))  # type: ignore[arg-type]


def is_missing(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """True where a column holds None, NaN or NaT."""
    if values.dtype.kind in "fM":
        return np.asarray(np.isnan(values) if values.dtype.kind == "f" else np.isnat(values))
    if values.dtype.kind in "iub":
        return np.zeros(len(values), dtype=bool)
    # NaN, NaT and pandas.NA are the values that do not equal themselves
    return np.fromiter((_is_null(value) for value in values), dtype=bool, count=len(values))


def _is_null(value: Any) -> bool:
    if value is None:
        return True
    if isinstance(value, str | list | tuple | set | frozenset | np.ndarray):
        return False
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA refuses to be a truth value
        return True


def distinct_rows(table: Table, columns: Sequence[str]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Number the distinct combinations of some columns, in order of their sorted values where they can be sorted.

    Returns
    -------
    first : ndarray, shape (n_distinct,)
        For each distinct combination, the first row that holds it.
    code : ndarray, shape (n_rows,)
        For each row, the number of its combination.
    """
    code = np.zeros(len(table), dtype=np.intp)
    for column in columns:
        _, inner = _factorize(table[column])
        both = code * (int(inner.max(initial=0)) + 1) + inner
        _, code = np.unique(both, return_inverse=True)
    _, first = np.unique(code, return_index=True)
    return first, code


def _factorize(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    if values.dtype.kind != "O":
        distinct, code = np.unique(values, return_inverse=True)
        return distinct, code
    keys: list[Any] = [tuple(v) if isinstance(v, list | np.ndarray) else None if _is_null(v) else v for v in values]
    try:
        numbers: dict[Any, int] = {key: number for number, key in enumerate(sorted(set(keys)))}
    except TypeError:  # mixed types do not sort: number them by first appearance
        numbers = {}
        for key in keys:
            numbers.setdefault(key, len(numbers))
    code = np.fromiter((numbers[key] for key in keys), dtype=np.intp, count=len(keys))
    distinct = np.empty(len(numbers), dtype=object)
    distinct[:] = list(numbers)
    return distinct, code


def _show(value: Any) -> str:
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 40 else text[:37] + "..."
