"""The user's tables (pandas, polars, pyarrow, CSV or Parquet files, dicts) as named NumPy columns.

The one place that knows about data frames; files are opened in `tuckergp.data.reading`. Everything behind it sees a
`Table`: column name -> 1-D array, numbers as float64, integer or bool, anything else as objects. Errors name the table,
the column and the first offending row.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.data.cells import as_float, is_missing, is_null, joined_arrays, show_cell
from tuckergp.data.frames import as_frame
from tuckergp.data.id_types import ID_COLUMNS, aligned, holds_uuids, uuid_texts
from tuckergp.data.reading import columns_of, lines_of_rows, no_column, read_columns, wanted_columns
from tuckergp.data.sources import Source, sources_of
from tuckergp.data.unnamed import columns_by_order, matrix_columns
from tuckergp.errors import InputError
from tuckergp.showing import Shown

# The rows, and the characters of a cell, that are shown of a table.
HEAD, WIDEST = 5, 40

__all__ = [
    "Table",
    "as_table",
    "column_names",
    "distinct_rows",
    "from_matrix",
    "is_missing",
    "joined_arrays",
    "read_table",
    "require_finite",
    "show_cell",
    "stacked",
]


@dataclass(frozen=True, repr=False)
class Table(Shown):
    """Named columns of one length.

    Attributes
    ----------
    columns : dict of str to ndarray, shape (n_rows,)
    name : str
        What messages call this table: ``ratings``, or the file it came from.
    n_rows : int
    first_line : int or None
        Line number of the first row in its text file, None for tables in memory.
    sources : tuple of (Source, int)
        The text files that it was read from, and the rows of each: messages look up the line of a row in them.
    ids : tuple of str
        Columns of a text file that were read as ids, see `tuckergp.data.id_types`.
    numbers : ndarray, shape (n_rows,), or None
        What messages call the rows, where they are some of those that a user gave; None counts them from 0.
    """

    columns: dict[str, npt.NDArray[Any]]
    name: str
    n_rows: int
    first_line: int | None = None
    sources: tuple[tuple[Source, int], ...] = ()
    ids: tuple[str, ...] = ()
    numbers: npt.NDArray[np.intp] | None = None

    def __len__(self) -> int:
        return self.n_rows

    def __contains__(self, column: object) -> bool:
        return column in self.columns

    def __getitem__(self, column: str) -> npt.NDArray[Any]:
        try:
            return self.columns[column]
        except KeyError:
            raise no_column(self.name, column, list(self.columns)) from None

    def head(self, n: int = 5) -> Table:
        """The first rows."""
        return self.take(np.arange(min(n, len(self))))

    def to_pandas(self) -> Any:
        """The columns as a pandas DataFrame."""
        return as_frame(self.columns, "pandas")

    def __str__(self) -> str:
        shown = {name: [str(name), *map(_cell_text, v[:HEAD].tolist())] for name, v in self.columns.items()}
        widths = {name: max(map(len, cells)) for name, cells in shown.items()}
        rows = zip(*([cell.ljust(widths[name]) for cell in cells] for name, cells in shown.items()), strict=True)
        more = ["..."] if len(self) > HEAD else []
        size = f"{self.name}: {len(self):,} rows, {len(self.columns)} columns"
        return "\n".join([size, *("  ".join(row).rstrip() for row in rows), *more])

    def row_label(self, row: int) -> str:
        """The words for a row in messages: a line of a file, or a row counted from 0."""
        return self.row_labels([row])[0]

    def row_labels(self, rows: Sequence[int]) -> list[str]:
        """The words for several rows in messages; faster than one label after the other."""
        if self.numbers is not None:
            return replace(self, numbers=None).row_labels(self.numbers[list(rows)].tolist())
        if not self.sources or not all(source.is_there for source, _ in self.sources):
            return [f"row {row}" if self.first_line is None else f"line {self.first_line + row}" for row in rows]
        labels: dict[int, str] = {}
        first = 0
        for source, count in self.sources:
            inside = [row for row in rows if first <= row < first + count]
            of = "" if len(self.sources) == 1 else f" of {source.name}"
            lines = lines_of_rows(source, [row - first for row in inside]) if inside else []
            labels |= {row: f"line {line}{of}" for row, line in zip(inside, lines, strict=True)}
            first += count
        return [labels.get(row, f"row {row}") for row in rows]

    def take(self, rows: npt.NDArray[np.integer]) -> Table:
        """The same columns at some rows (line numbers are lost)."""
        return Table({name: values[rows] for name, values in self.columns.items()}, self.name, len(rows))

    def select(self, columns: Iterable[str]) -> Table:
        """Some of the columns, in the order given."""
        return replace(self, columns={name: self[name] for name in columns})

    def with_ids(self, column: str) -> Table:
        """The same table, with a column that holds ids read again from its text file where it was read otherwise."""
        if column in self.ids or not self.sources or not all(source.is_there for source, _ in self.sources):
            return self
        parts = [read_columns(source, [column], ids=[column])[column] for source, _ in self.sources]
        return replace(self, columns={**self.columns, column: _joined_ids(parts)}, ids=(*self.ids, column))

    def numeric(self, column: str, missing: bool = False, dates: bool = True) -> npt.NDArray[np.float64]:
        """One column as float64 numbers; dates become days since 1970-01-01, or are refused without ``dates``.

        Missing values are refused, or NaN with ``missing``; infinite ones are always refused.
        """
        values = self[column]
        if not dates:
            self._refuse_dates(column)
        if values.dtype.kind == "M":
            days = values.astype("datetime64[us]").astype(np.float64) / 86_400e6
            return require_finite(np.where(np.isnat(values), np.nan, days), self, column, missing)
        if values.dtype.kind in "fiub":
            return require_finite(values.astype(np.float64), self, column, missing)
        numbers = np.empty(len(values))
        for row, value in enumerate(values):
            try:
                numbers[row] = as_float(value)
            except OverflowError:
                raise InputError(
                    f"{self.name} column {column!r} holds a number at {self.row_label(row)} that is too large; correct "
                    f"or remove it, or divide the column by a number."
                ) from None
            except (TypeError, ValueError):
                raise InputError(
                    f"{self.name} column {column!r} must be numeric, but {self.row_label(row)} holds "
                    f"{show_cell(value)}."
                ) from None
        return require_finite(numbers, self, column, missing)

    def _refuse_dates(self, column: str) -> None:
        values = self[column]
        kinds = (datetime.date, datetime.datetime, np.datetime64)
        flags = (
            np.full(len(values), values.dtype.kind == "M")
            if values.dtype.kind != "O"
            else np.fromiter((isinstance(value, kinds) for value in values), dtype=bool, count=len(values))
        )
        if flags.any():
            row = int(np.argmax(flags))
            raise InputError(
                f"{self.name} column {column!r} must be numeric, but {self.row_label(row)} holds the date "
                f"{values[row]}; name the right column with columns={{{column!r}: ...}}."
            )


def _cell_text(value: Any) -> str:
    """A cell of a table that is shown, on one line and shortened."""
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= WIDEST else f"{text[:WIDEST]}..."


def as_table(
    data: Any,
    name: str,
    columns: Sequence[str] | None = None,
    optional: Sequence[str] = (),
    ids: Sequence[str] = ID_COLUMNS,
) -> Table:
    """Read any supported table.

    Parameters
    ----------
    data : pandas, polars (also lazy) or pyarrow table, dict of columns, list of tuples or dicts, 2-D array, or path
        Also a sparse matrix of SciPy, users by items. `read_table` describes paths.
    name : str
        What messages call it; a file keeps its own name.
    columns : sequence of str or None
        Take these columns alone, and do not read the others; one that is not there is refused. None takes all.
    optional : sequence of str
        Take these as well where they are there; only with ``columns``.
    ids : sequence of str
        Columns with ids, which keep their spelling when they come from a text file; see `tuckergp.data.id_types`.

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
        return read_table(data, columns=columns, optional=optional, ids=ids)
    unnamed = columns_by_order(data, name)
    data = data if unnamed is None else unnamed
    if isinstance(data, Mapping):
        keys = {str(key): key for key in data}
        given = {key: data[keys[key]] for key in wanted_columns(list(keys), name, columns, optional)}
        taken = {key: _as_column([value] if _is_scalar(value) else value) for key, value in given.items()}
        longest = max(map(len, taken.values()), default=0)
        taken |= {key: np.repeat(taken[key], longest) for key, value in given.items() if _is_scalar(value)}
        lengths = {key: len(value) for key, value in taken.items()}
        if len(set(lengths.values())) > 1:
            shown = ", ".join(f"{key!r} has {length}" for key, length in lengths.items())
            raise InputError(f"The columns of {name} differ in length: {shown}.")
        return Table(taken, name, next(iter(lengths.values()), 0))
    import narwhals as nw

    try:
        frame: Any = nw.from_native(data)
    except nw.exceptions.DuplicateError:
        twice = Counter(column_names(data, name)[0]).most_common(1)[0][0]
        raise InputError(f"{name} has two columns called {twice!r}; rename one.") from None
    except TypeError:
        raise InputError(
            f"{name} must be a pandas, polars or pyarrow table, a dict of columns, a list of tuples, or a path to a "
            f"CSV or Parquet file; got {type(data).__name__}."
        ) from None
    frame = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    series = {str(one.name): one for one in frame.iter_columns()}
    taken = {key: _of_series(series[key]) for key in wanted_columns(list(series), name, columns, optional)}
    return Table(taken, name, frame.shape[0])


def _of_series(series: Any) -> npt.NDArray[Any]:
    native = series.to_native()
    if type(native).__module__ == "pyarrow.lib" and holds_uuids(native.type):
        return uuid_texts(native)
    try:
        array = series.to_numpy()
    except Exception:  # a type that NumPy does not have, such as integers of 128 bits
        return _as_column(series.to_list())
    # NumPy's own text loses zero bytes at its end
    return _as_column(series.to_list() if array.dtype.kind in "US" else array)


def _is_scalar(value: Any) -> bool:
    """Whether a value of a dict is one cell, which stands for a column of equal ones."""
    return (
        isinstance(value, str | bytes | np.generic) or not hasattr(value, "__iter__") or getattr(value, "ndim", 1) == 0
    )


def read_table(
    path: str | Path,
    sep: str | None = None,
    encoding: str | None = None,
    columns: Sequence[str] | None = None,
    optional: Sequence[str] = (),
    ids: Sequence[str] = ID_COLUMNS,
) -> Table:
    r"""Read a table from a file; wherever a table is expected, the result will do, and so will the path itself.

    Parameters
    ----------
    path : path
        Text (``.csv``, ``.tsv``, ``.txt``, ``.dat``), ``.jsonl``, ``.feather`` or ``.parquet``; text also compressed
        (``.gz``, ``.bz2``, ``.xz``, ``.zip``). ``~`` is the home folder, ``part-*.csv`` several files with the same
        columns, and ``-`` standard input.
    sep, encoding : str or None
        The delimiter, such as ``";"`` or ``"::"``, and the encoding of text; None finds them out.
    columns, optional, ids
        As in `as_table`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "ratings.csv")
    ...     _ = path.write_text("user_id;item_id;rating\n007;1;4,5\n")
    ...     read_table(path).columns
    {'user_id': array(['007'], dtype=object), 'item_id': array([1]), 'rating': array([4.5])}
    """
    sources = sources_of(path, sep, encoding)
    name = sources[0].name if len(sources) == 1 else Path(path).name
    parts = [read_columns(source, columns, optional, ids) for source in sources]
    for source, part in zip(sources, parts, strict=True):
        if list(part) != list(parts[0]):
            raise InputError(
                f"{source.name} has the columns {', '.join(part)}, and {sources[0].name} has {', '.join(parts[0])}; "
                f"give all files the same."
            )
    sizes = [len(next(iter(part.values()), ())) for part in parts]
    joined = {}
    for key in parts[0]:
        arrays = [_as_column(part[key]) for part in parts]
        joined[key] = _joined_ids(arrays) if key in ids else joined_arrays(arrays)
    if not all(source.is_text for source in sources):
        return Table(joined, name, sum(sizes))
    first = 1 + (sources[0].format == "text" and sources[0].dialect.header)
    read_as_ids = tuple(key for key in joined if key in ids)
    return Table(joined, name, sum(sizes), first, tuple(zip(sources, sizes, strict=True)), read_as_ids)


def from_matrix(matrix: Any, users: Sequence[Any] | None = None, items: Sequence[Any] | None = None) -> Table:
    """A sparse matrix of SciPy, users by items, as a table of ratings: one row per stored entry.

    Parameters
    ----------
    matrix : sparse matrix, shape (n_users, n_items)
    users, items : sequence of ids, or None
        The ids of rows and of columns; None numbers them from 0 on.

    Examples
    --------
    >>> from scipy import sparse
    >>> from_matrix(sparse.csr_array([[5, 0], [0, 3]]), items=["Heat", "Big"])["item_id"]
    array(['Heat', 'Big'], dtype=object)
    """
    return as_table(matrix_columns(matrix, users, items), "ratings")


def column_names(data: Any, name: str) -> tuple[list[str], str]:
    """The columns of a table that `as_table` reads, and what messages call it, without reading its rows."""
    if isinstance(data, Table):
        return list(data.columns), data.name
    if isinstance(data, str | Path):
        sources = sources_of(data)
        return columns_of(sources[0]), sources[0].name if len(sources) == 1 else Path(data).name
    if isinstance(data, Mapping):
        return [str(key) for key in data], name
    if hasattr(data, "collect_schema"):
        return [str(key) for key in data.collect_schema().names()], name
    if hasattr(data, "columns") or hasattr(data, "column_names"):
        return [str(key) for key in getattr(data, "column_names", None) or data.columns], name
    return list(as_table(data, name).columns), name


def _joined_ids(parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Ids of several files: all of them text if those of one file are."""
    text = next((value for part in parts if part.dtype.kind == "O" for value in part if isinstance(value, str)), None)
    return joined_arrays(parts if text is None else [aligned(part, text) for part in parts])


def _as_column(values: Any) -> npt.NDArray[Any]:
    """One column as a 1-D array; strings, lists and mixtures as objects."""
    if isinstance(values, np.ndarray) and values.ndim == 1:
        array = values
    else:
        values = list(values)
        if any(hasattr(kind, "as_py") for kind in set(map(type, values))):  # cells of PyArrow
            values = [value.as_py() if hasattr(value, "as_py") else value for value in values]
        # a list that mixes text and numbers must not become all text, and NumPy's own text loses zero bytes at its end
        if any(hasattr(kind, "__len__") for kind in set(map(type, values))):
            array = np.empty(len(values), dtype=object)
            array[:] = values
        else:
            array = np.asarray(values)
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
        columns[column] = joined_arrays(arrays) if arrays else first.columns.get(column, second.columns.get(column))
    return Table(columns, second.name, len(first) + len(second))  # type: ignore[arg-type]


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
    keys: list[Any] = [tuple(v) if isinstance(v, list | np.ndarray) else None if is_null(v) else v for v in values]
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
