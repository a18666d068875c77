"""CSV and Parquet files as NumPy columns, and where in a file a row or a fault is.

Files are read by PyArrow; only a broken file is read again line by line, to name the line.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
import numpy.typing as npt

from tuckergp.data.id_types import integers_of
from tuckergp.errors import InputError

__all__ = ["columns_of", "is_text_file", "line_of_row", "lines_of_rows", "no_column", "read_columns", "wanted_columns"]

T = TypeVar("T")
Columns = dict[str, npt.NDArray[Any]]
_DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}


def read_columns(
    path: Path, columns: Sequence[str] | None = None, optional: Sequence[str] = (), ids: Sequence[str] = ()
) -> Columns:
    """Columns of a file, all of them or those wanted.

    Parameters
    ----------
    path : Path
        Ends in .csv, .tsv, .txt (tabs), .parquet, or one of the text endings and .gz.
    columns : sequence of str or None
        What to read; None for everything.
    optional : sequence of str
        What to read besides ``columns`` if the file has it.
    ids : sequence of str
        Columns with ids, which keep their spelling; see `tuckergp.data.id_types`.

    Returns
    -------
    dict of str to ndarray, shape (n_rows,)
        Text as objects, an empty cell of a text file as None.
    """
    return _read(
        path,
        lambda: _read_parquet(path, columns, optional),
        lambda: _read_text(path, columns, optional, ids),
    )


def columns_of(path: Path) -> list[str]:
    """The names of all columns of a file."""
    from pyarrow import parquet

    return _read(path, lambda: list(parquet.read_schema(path).names), lambda: _header(path))


def _read(path: Path, parquet: Callable[[], T], text: Callable[[], T]) -> T:
    """Read a file in one of two ways, with errors that name it."""
    import pyarrow as pa

    if not path.is_file():
        raise InputError(f"There is no file {path}.")
    try:
        if path.suffix == ".parquet":
            return parquet()
        if is_text_file(path):
            return text()
    except (pa.ArrowException, OSError, EOFError, zlib.error, csv.Error) as error:
        raise InputError(f"{path.name} cannot be read: {str(error).splitlines()[0].rstrip('.')}.") from None
    raise InputError(f"{path.name} must end in .csv, .tsv or .parquet, so that its format is known (.csv.gz is fine).")


def is_text_file(path: Path) -> bool:
    """Whether rows are lines, going by the file's name."""
    return _ending(path) in _DELIMITERS


def wanted_columns(
    existing: Sequence[str], name: str, columns: Sequence[str] | None, optional: Sequence[str]
) -> list[str]:
    """Which of the existing columns to take: all, or those asked for, which must exist, and optional ones that do."""
    if columns is None:
        return list(existing)
    for column in columns:
        if column not in existing:
            raise no_column(name, column, existing)
    return list(dict.fromkeys([*columns, *(column for column in optional if column in existing)]))


def no_column(name: str, column: str, existing: Sequence[str]) -> InputError:
    """The error for a table that lacks a column."""
    listed = ", ".join(map(str, existing)) or "none"
    return InputError(f"{name} has no column {column!r}; its columns are {listed}.")


def line_of_row(path: Path, row: int) -> int:
    """The line (from 1) on which a row (from 0, below the header) of a text file begins."""
    return lines_of_rows(path, [row])[0]


def lines_of_rows(path: Path, rows: Sequence[int]) -> list[int]:
    """The lines on which some rows begin, in one pass over the file."""
    wanted, last = set(rows), max(rows, default=-1)
    lines: dict[int, int] = {}
    for row, (line, _) in enumerate(_records(path), start=-1):
        if row in wanted:
            lines[row] = line
        if row >= last:
            break
    return [lines.get(row, row + 2) for row in rows]


def _read_parquet(path: Path, columns: Sequence[str] | None, optional: Sequence[str]) -> Columns:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        names = wanted_columns(file.schema_arrow.names, path.name, columns, optional)
        # one at a time, so that no more than one column is held twice
        return {name: _as_array(file.read(columns=[name]).column(name)) for name in names}


def _read_text(path: Path, columns: Sequence[str] | None, optional: Sequence[str], ids: Sequence[str]) -> Columns:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    header = _header(path)
    names = wanted_columns(header, path.name, columns, optional)
    try:
        table = arrow_csv.read_csv(
            path,
            # cells may hold line breaks: without this a large file with such cells cannot be read
            parse_options=arrow_csv.ParseOptions(delimiter=_DELIMITERS[_ending(path)], newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=names, column_types={name: pa.string() for name in names if name in ids}
            ),
        )
    except pa.ArrowInvalid as error:
        _refuse_broken_line(path, header)
        if "UTF8" in str(error):
            raise _not_unicode(path) from None
        raise
    arrays = {name: table.column(name) for name in names}
    if any(pa.types.is_binary(column.type) for column in arrays.values()):
        raise _not_unicode(path)
    _refuse_open_quote(path, table)
    del table
    return {name: _as_ids(arrays.pop(name)) if name in ids else _as_array(arrays.pop(name), None) for name in names}


def _as_ids(column: Any) -> npt.NDArray[Any]:
    """Ids as integers, or as text where these would lose their spelling."""
    integers = integers_of(column)
    return _as_array(column, None) if integers is None else integers


def _as_array(column: Any, empty: str | None = "") -> npt.NDArray[Any]:
    """An arrow column as an array; equal texts are one object, and ``empty`` stands for empty ones."""
    import pyarrow as pa

    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return np.asarray(column.to_numpy())
    encoded = column.dictionary_encode().unify_dictionaries()
    array = np.empty(len(column), dtype=object)
    if not len(column):
        return array
    texts = np.append(encoded.chunk(0).dictionary.to_numpy(zero_copy_only=False), [None])  # that of all chunks
    texts[texts == ""] = empty
    start = 0
    for chunk in encoded.chunks:
        places = chunk.indices.fill_null(len(texts) - 1).to_numpy(zero_copy_only=False)
        array[start : start + len(chunk)] = texts[places]
        start += len(chunk)
    return array


def _ending(path: Path) -> str:
    return Path(path.stem).suffix if path.suffix == ".gz" else path.suffix


def _open(path: Path) -> IO[bytes]:
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]


def _records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The line on which each record begins, and its cells; blank lines are skipped."""
    import io

    with _open(path) as file, io.TextIOWrapper(file, "utf-8-sig", errors="surrogateescape", newline="") as text:
        reader = csv.reader(text, delimiter=_DELIMITERS[_ending(path)])
        while True:
            line = reader.line_num + 1
            try:
                cells = next(reader)
            except StopIteration:
                return
            if cells:
                yield line, cells


def _header(path: Path) -> list[str]:
    _, header = next(_records(path), (1, []))
    if not header:
        raise InputError(f"{path.name} is empty; its first line must name the columns.")
    try:
        "".join(header).encode()
    except UnicodeEncodeError:
        raise _not_unicode(path) from None
    for number, name in enumerate(header):
        if name in header[:number]:
            raise InputError(f"{path.name} has two columns called {name!r}; rename one.")
    return header


def _refuse_broken_line(path: Path, header: list[str]) -> None:
    for line, cells in _records(path):
        if len(cells) != len(header):
            values = "1 value" if len(cells) == 1 else f"{len(cells)} values"
            raise InputError(
                f"{path.name} line {line} has {values}, but the header names {len(header)} columns "
                f"({', '.join(header)}); correct or remove that line."
            )


def _refuse_open_quote(path: Path, table: Any) -> None:
    """Refuse a quote that is never closed, which would silently make one cell of the rest of the file."""
    last = table.slice(max(0, table.num_rows - 1)).to_pylist()
    if not any(isinstance(cell, str) and "\n" in cell for row in last for cell in row.values()):
        return
    *_, (line, _) = _records(path)
    with _open(path) as file:
        quotes = sum(text.count(b'"') for number, text in enumerate(file, 1) if number >= line)
    if quotes % 2:
        raise InputError(f'{path.name} line {line} opens a quote (") that is never closed; close or remove it.')


def _not_unicode(path: Path) -> InputError:
    with _open(path) as file:
        for line, text in enumerate(file, 1):
            try:
                text.decode()
            except UnicodeDecodeError as error:
                byte = text[error.start]
                return InputError(
                    f"{path.name} line {line} is not UTF-8 text (byte 0x{byte:02x}); save the file as UTF-8."
                )
    return InputError(f"{path.name} is not UTF-8 text; save the file as UTF-8.")
