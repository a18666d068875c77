"""The user's tables (pandas, polars, pyarrow, CSV or Parquet files, dicts) as named NumPy columns.

The one place that knows about data frames; files are opened in `tuckergp.data.reading`. Everything behind it sees a
`Table`: column name -> 1-D array, numbers as float64, integer or bool, anything else as objects. Errors name the table,
the column and the first offending row.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.data.reading import is_text_file, line_of_row, lines_of_rows, no_column, read_columns, wanted_columns
from tuckergp.errors import InputError

__all__ = ["Table", "as_table", "distinct_rows", "is_missing", "require_finite", "show_cell", "stacked"]


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
    path : Path or None
        The text file, for tables read from one: messages look up the line of a row in it.
    """

    columns: dict[str, npt.NDArray[Any]]
    name: str
    n_rows: int
    first_line: int | None = None
    path: Path | None = None

    def __len__(self) -> int:
        return self.n_rows

    def __contains__(self, column: object) -> bool:
        return column in self.columns

    def __getitem__(self, column: str) -> npt.NDArray[Any]:
        try:
            return self.columns[column]
        except KeyError:
            raise no_column(self.name, column, list(self.columns)) from None

    def row_label(self, row: int) -> str:
        """The words for a row in messages: a line of a file, or a row counted from 0."""
        if self.path is not None and self.path.is_file():
            return f"line {line_of_row(self.path, row)}"
        return f"row {row}" if self.first_line is None else f"line {self.first_line + row}"

    def row_labels(self, rows: Sequence[int]) -> list[str]:
        """The words for several rows in messages; faster than one label after the other."""
        if self.path is not None and self.path.is_file():
            return [f"line {line}" for line in lines_of_rows(self.path, rows)]
        return [self.row_label(row) for row in rows]

    def take(self, rows: npt.NDArray[np.integer]) -> Table:
        """The same columns at some rows (line numbers are lost)."""
        return Table({name: values[rows] for name, values in self.columns.items()}, self.name, len(rows))

    def select(self, columns: Iterable[str]) -> Table:
        """Some of the columns, in the order given."""
        return replace(self, columns={name: self[name] for name in columns})

    def numeric(self, column: str, missing: bool = False) -> npt.NDArray[np.float64]:
        """One column as float64 numbers; dates become days since 1970-01-01.

        Missing values are refused, or NaN with ``missing``; infinite ones are always refused.
        """
        values = self[column]
        if values.dtype.kind == "M":
            days = values.astype("datetime64[us]").astype(np.float64) / 86_400e6
            return require_finite(np.where(np.isnat(values), np.nan, days), self, column, missing)
        if values.dtype.kind in "fiub":
            return require_finite(values.astype(np.float64), self, column, missing)
        numbers = np.empty(len(values))
        for row, value in enumerate(values):
            try:
                numbers[row] = _as_float(value)
            except (TypeError, ValueError):
                raise InputError(
                    f"{self.name} column {column!r} must be numeric, but {self.row_label(row)} holds "
                    f"{show_cell(value)}."
                ) from None
        return require_finite(numbers, self, column, missing)


def as_table(data: Any, name: str, columns: Sequence[str] | None = None, optional: Sequence[str] = ()) -> Table:
    """Read any supported table.

    Parameters
    ----------
    data : pandas, polars or pyarrow table, dict of columns, or path to a CSV or Parquet file
    name : str
        What messages call it; a file keeps its own name.
    columns : sequence of str or None
        Take these columns alone, and do not read the others; one that is not there is refused. None takes all.
    optional : sequence of str
        Take these as well where they are there; only with ``columns``.

    Examples
    --------
    >>> as_table({"user_id": ["ann", "bob"], "rating": [4, 5]}, "ratings")["rating"]
    array([4, 5])
    """
    if isinstance(data, Table):
        return (
            data if columns is None else data.select(wanted_columns(list(data.columns), data.name, columns, optional))
        )
    if isinstance(data, str | Path):
        path = Path(data)
        read = {key: _as_column(values) for key, values in read_columns(path, columns, optional).items()}
        n_rows = len(next(iter(read.values()), ()))
        return (
            Table(read, path.name, n_rows, 2, path.absolute()) if is_text_file(path) else Table(read, path.name, n_rows)
        )
    if isinstance(data, Mapping):
        keys = {str(key): key for key in data}
        taken = {key: _as_column(data[keys[key]]) for key in wanted_columns(list(keys), name, columns, optional)}
        lengths = {key: len(value) for key, value in taken.items()}
        if len(set(lengths.values())) > 1:
            shown = ", ".join(f"{key!r} has {length}" for key, length in lengths.items())
            raise InputError(f"The columns of {name} differ in length: {shown}.")
        return Table(taken, name, next(iter(lengths.values()), 0))
    import narwhals as nw

    try:
        frame = nw.from_native(data, eager_only=True)
    except TypeError:
        raise InputError(
            f"{name} must be a pandas, polars or pyarrow table, a dict of columns, or a path to a CSV or Parquet file; "
            f"got {type(data).__name__}."
        ) from None
    series = {str(one.name): one for one in frame.iter_columns()}
    taken = {key: _as_column(series[key].to_numpy()) for key in wanted_columns(list(series), name, columns, optional)}
    return Table(taken, name, frame.shape[0])


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
    if array.dtype.kind == "m":  # durations become days
        return np.where(np.isnat(array), np.nan, array / np.timedelta64(1, "D"))
    return array if array.dtype.kind in "fiubMO" else array.astype(object)


def require_finite(
    values: npt.NDArray[np.float64], table: Table, column: str, missing: bool = False
) -> npt.NDArray[np.float64]:
    """Return the values, or refuse them and name the first row with NaN (unless ``missing``) or infinity."""
    bad = np.isinf(values) if missing else ~np.isfinite(values)
    if bad.any():
        row = int(np.argmax(bad))
        what = "is missing (NaN)" if np.isnan(values[row]) else "is infinite"
        raise InputError(
            f"{table.name} column {column!r} {what} at {table.row_label(row)}; "
            f"remove or fill such rows ({int(bad.sum())} of {len(values)})."
        )
    return values


def _as_float(value: Any) -> float:
    """A cell as a number: dates are days since 1970-01-01, a missing cell is NaN."""
    if _is_null(value):
        return np.nan
    if isinstance(value, datetime.datetime):
        utc = value.astimezone(datetime.UTC).replace(tzinfo=None) if value.tzinfo else value
        return (utc - datetime.datetime(1970, 1, 1)) / datetime.timedelta(days=1)
    if isinstance(value, datetime.date):
        return float((value - datetime.date(1970, 1, 1)).days)
    return float(value)


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
        arrays = [
            table.columns.get(column, np.full(len(table), None, dtype=object))
            for table in (first, second)
            if len(table)
        ]
        if len({array.dtype.kind for array in arrays}) > 1:  # dates finer than microseconds would become numbers
            dates = [array.astype("datetime64[us]") if array.dtype.kind == "M" else array for array in arrays]
            arrays = [array.astype(object) for array in dates]
        columns[column] = np.concatenate(arrays) if arrays else first.columns.get(column, second.columns.get(column))
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


def show_cell(value: Any) -> str:
    """A value as messages show it: short, and without NumPy's names."""
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 40 else text[:37] + "..."
