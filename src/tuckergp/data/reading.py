"""Files as NumPy columns, and where in a file a row or a fault is.

Files are read by PyArrow; only a broken file is read again line by line, to name the line. What a file is, and how its
text is written, is found out in `tuckergp.data.sources`.
"""

from __future__ import annotations

import csv
import io
import re
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tuckergp.data.id_types import holds_uuids, integers_of, uuid_texts
from tuckergp.data.json_rows import json_columns
from tuckergp.data.sources import GUESS, UNNAMED, Source, separated
from tuckergp.errors import DataWarning, InputError

__all__ = ["columns_of", "lines_of_rows", "no_column", "read_columns", "wanted_columns"]

# How a number with leading zeros begins, and the bytes that are searched for one at a time.
PADDED, PIECE = r"^\s*[+-]?0[0-9]", 1 << 24

T = TypeVar("T")
Columns = dict[str, npt.NDArray[Any]]


def read_columns(
    source: Source, columns: Sequence[str] | None = None, optional: Sequence[str] = (), ids: Sequence[str] = ()
) -> Columns:
    """Columns of a file, all of them or those wanted.

    Parameters
    ----------
    source : Source
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

    def read() -> Columns:
        if source.format == "text":
            return _read_text(source, columns, optional, ids)
        if source.format in ("json", "jsonl"):
            return _read_json(source, columns, optional, ids)
        return _READERS[source.format](source, columns, optional)

    return _named_errors(source, read)


def columns_of(source: Source) -> list[str]:
    """The names of all columns of a file."""

    def read() -> list[str]:
        import pyarrow as pa
        from pyarrow import parquet

        if source.format == "text":
            return list(_header(source))
        if source.format == "parquet":
            return list(parquet.read_schema(source.arrow()).names)
        if source.format == "feather":
            return list(pa.ipc.open_file(source.arrow()).schema.names)
        return list(_json_columns(source, ()))

    return _named_errors(source, read)


def _named_errors(source: Source, read: Callable[[], T]) -> T:
    """Read a file, with errors that name it."""
    import pyarrow as pa

    try:
        return read()
    except (pa.ArrowException, OSError, EOFError, zlib.error, csv.Error, UnicodeError) as error:
        raise InputError(f"{source.name} cannot be read: {str(error).splitlines()[0].rstrip('.')}.") from None


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


def lines_of_rows(source: Source, rows: Sequence[int]) -> list[int]:
    """The lines (from 1) on which some rows (from 0, below the header) begin, in one pass over the file."""
    wanted, last = set(rows), max(rows, default=-1)
    lines: dict[int, int] = {}
    header = source.format == "text" and source.dialect.header
    for row, (line, _) in enumerate(_records(source), start=-1 if header else 0):
        if row in wanted:
            lines[row] = line
        if row >= last:
            break
    return [lines.get(row, row + 2) for row in rows]


def _read_parquet(source: Source, columns: Sequence[str] | None, optional: Sequence[str]) -> Columns:
    from pyarrow import parquet

    with parquet.ParquetFile(source.arrow()) as file:
        names = wanted_columns(file.schema_arrow.names, source.name, columns, optional)
        # one at a time, so that no more than one column is held twice
        return {name: _as_array(file.read(columns=[name]).column(name)) for name in names}


def _read_feather(source: Source, columns: Sequence[str] | None, optional: Sequence[str]) -> Columns:
    from pyarrow import feather

    table = feather.read_table(source.arrow())
    names = wanted_columns(table.column_names, source.name, columns, optional)
    return {name: _as_array(table.column(name)) for name in names}


def _read_json(source: Source, columns: Sequence[str] | None, optional: Sequence[str], ids: Sequence[str]) -> Columns:
    arrays = _json_columns(source, ids)
    return {name: arrays[name] for name in wanted_columns(list(arrays), source.name, columns, optional)}


def _json_columns(source: Source, ids: Sequence[str]) -> Columns:
    """All columns of JSON objects; those with ids as they are written."""
    import pyarrow as pa
    from pyarrow import json

    if source.format == "json":
        return json_columns(source)
    try:
        table = json.read_json(source.arrow())
    except pa.ArrowInvalid as error:
        if "Empty" in str(error):
            raise
        return json_columns(source)
    changed = [
        name
        for name in table.column_names
        if name in ids and not (pa.types.is_integer(kind := table[name].type) or pa.types.is_string(kind))
    ]
    arrays = {name: _as_array(table.column(name), None) for name in table.column_names if name not in changed}
    arrays |= json_columns(source, changed) if changed else {}
    return {name: arrays[name] for name in table.column_names}


_READERS = {"parquet": _read_parquet, "feather": _read_feather}


def _read_text(source: Source, columns: Sequence[str] | None, optional: Sequence[str], ids: Sequence[str]) -> Columns:
    import pyarrow as pa

    header = _header(source)
    names = wanted_columns(list(header), source.name, columns, optional)
    if not source.dialect.header and source.ending not in UNNAMED:
        warnings.warn(
            f"{source.name} begins with numbers, not with names of columns: they are called {', '.join(header)}.",
            DataWarning,
            stacklevel=2,
        )
    if source.dialect.encoding == GUESS and source.encoding is None:
        _warn_of_guess(source)
    try:
        table = _arrow_table(source, header, names, ids).rename_columns(names)
    except UnicodeError:
        if source.dialect.encoding != GUESS:
            raise
        return _read_text(replace(source, encoding="latin-1"), columns, optional, ids)
    except pa.ArrowInvalid as error:
        if "UTF8" in str(error):
            return _read_guessed(source, columns, optional, ids)
        _refuse_open_quote(source)
        _refuse_broken_line(source)
        raise
    table = _without_blank_end(source, table)
    arrays = {name: table.column(name) for name in names}
    if any(pa.types.is_binary(column.type) for column in arrays.values()):
        return _read_guessed(source, columns, optional, ids)
    last = table.slice(max(0, table.num_rows - 1)).to_pylist()
    if any(isinstance(cell, str) and "\n" in cell for row in last for cell in row.values()):
        _refuse_open_quote(source)
    whole = [name for name in names if pa.types.is_integer(arrays[name].type)]
    arrays |= _zero_padded(source, header, whole, table.num_rows)
    del table
    return {name: _as_ids(arrays.pop(name)) if name in ids else _as_array(arrays.pop(name), None) for name in names}


def _without_blank_end(source: Source, table: Any) -> Any:
    """The table without rows of empty cells at its end, where spreadsheets leave them."""
    last = table.slice(max(0, table.num_rows - 1)).to_pylist()
    if not last or any(cell not in (None, "") for cell in last[0].values()):
        return table
    filled = [any(cells) for _, cells in _records(source)]
    return table.slice(0, len(filled) - filled[::-1].index(True) - source.dialect.header)


def _arrow_table(source: Source, header: Mapping[str, str], names: Sequence[str], ids: Sequence[str]) -> Any:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    dialect = source.dialect
    several = len(dialect.delimiter) > 1
    content = source.arrow()
    if several:
        with source.open() as file:
            text = file.read()
        content = pa.BufferReader(text.replace(dialect.delimiter.encode(), dialect.sign.encode()))
    return arrow_csv.read_csv(
        content,
        read_options=arrow_csv.ReadOptions(
            encoding=dialect.encoding,
            column_names=None if dialect.header else list(header),
            skip_rows=dialect.skipped,
        ),
        # cells may hold line breaks: without this a large file with such cells cannot be read
        parse_options=arrow_csv.ParseOptions(
            delimiter=dialect.sign, newlines_in_values=not several, quote_char=False if several else '"'
        ),
        convert_options=arrow_csv.ConvertOptions(
            include_columns=[header[name] for name in names],
            column_types={header[name]: pa.string() for name in names if name in ids},
            decimal_point=dialect.decimal,
        ),
    )


def _zero_padded(source: Source, header: Mapping[str, str], names: Sequence[str], rows: int) -> dict[str, Any]:
    """Those of some columns of integers that have leading zeros, such as postal codes, as text; their first rows."""
    from pyarrow import compute

    if not names or not _may_be_padded(source):
        return {}
    table = _arrow_table(source, header, names, names).rename_columns(names)
    padded = (name for name in names if compute.any(compute.match_substring_regex(table[name], PADDED)).as_py())
    return {name: table.column(name).slice(0, rows) for name in padded}


def _may_be_padded(source: Source) -> bool:
    """Whether a zero before another digit begins a cell, or comes after a space, anywhere in a file."""
    if "0".encode(source.dialect.encoding) != b"0":  # UTF-16
        return True
    begins = re.compile(rb"[\s\"%s][+-]?0[0-9]" % re.escape(source.dialect.delimiter[-1].encode()))
    before = b"\n"
    with source.open() as file:
        while chunk := file.read(PIECE):
            text = before + chunk
            if begins.search(text):
                return True
            before = text[-3:]
    return False


def _read_guessed(
    source: Source, columns: Sequence[str] | None, optional: Sequence[str], ids: Sequence[str]
) -> Columns:
    """Read a file that turned out not to be UTF-8."""
    if source.encoding is not None:
        raise _not_unicode(source, "give the encoding that it has")
    _warn_of_guess(source)
    return _read_text(replace(source, encoding=GUESS), columns, optional, ids)


def _warn_of_guess(source: Source) -> None:
    warnings.warn(
        str(_not_unicode(source, "it was read as Windows-1252; if that is wrong, give its encoding to read_table")),
        DataWarning,
        stacklevel=2,
    )


def _as_ids(column: Any) -> npt.NDArray[Any]:
    """Ids as integers, or as text where these would lose their spelling."""
    integers = integers_of(column)
    return _as_array(column, None) if integers is None else integers


def _as_array(column: Any, empty: str | None = "") -> npt.NDArray[Any]:
    """An arrow column as an array; equal texts are one object, and ``empty`` stands for empty ones."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if holds_uuids(column.type):
        return uuid_texts(column)
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


def _records(source: Source) -> Iterator[tuple[int, list[str]]]:
    """The line on which each record begins, and its cells; blank lines are skipped."""
    if source.format == "jsonl":
        with source.open() as file:
            yield from ((line, []) for line, text in enumerate(file, 1) if text.strip())
        return
    dialect = source.dialect
    encoding = "utf-8-sig" if dialect.encoding == "utf-8" else dialect.encoding
    quoting: Any = csv.QUOTE_NONE if len(dialect.delimiter) > 1 else csv.QUOTE_MINIMAL
    longest = csv.field_size_limit(sys.maxsize)  # a quote that is not closed makes one cell of the rest of a file
    try:
        with source.open() as file, io.TextIOWrapper(file, encoding, errors="surrogateescape", newline="") as text:
            lines = (separated(line, dialect) for line in islice(text, dialect.skipped, None))
            reader = csv.reader(lines, delimiter=dialect.sign, quoting=quoting)
            while True:
                line = dialect.skipped + reader.line_num + 1
                try:
                    cells = next(reader)
                except StopIteration:
                    return
                if cells:
                    yield line, cells
    finally:
        csv.field_size_limit(longest)


def _header(source: Source) -> dict[str, str]:
    """The names of the columns, and how the file writes them; columns without a name are left out."""
    header = _first_cells(source)
    if not source.dialect.header:
        names = [f"column_{number}" for number in range(1, len(header) + 1)]
        return dict(zip(names, names, strict=True))
    names = [name.strip() for name in header]
    for number, name in enumerate(names):
        if name and name in names[:number]:
            raise InputError(f"{source.name} has two columns called {name!r}; rename one.")
    return {name: written for name, written in zip(names, header, strict=True) if name}


def _first_cells(source: Source) -> list[str]:
    _, cells = next(_records(source), (1, []))
    if not any(cells):
        raise InputError(f"{source.name} is empty; its first line must name the columns.")
    return cells


def _refuse_broken_line(source: Source) -> None:
    header = _first_cells(source)
    for line, cells in _records(source):
        if len(cells) != len(header):
            values = "1 value" if len(cells) == 1 else f"{len(cells)} values"
            raise InputError(
                f"{source.name} line {line} has {values}, but the header names {len(header)} columns "
                f"({', '.join(name.strip() for name in header)}); correct or remove that line."
            )


def _refuse_open_quote(source: Source) -> None:
    """Refuse a quote that is never closed, which would silently make one cell of the rest of the file."""
    line = 1
    for line, _ in _records(source):  # noqa: B007
        pass
    with source.open() as file:
        quotes = sum(text.count(b'"') for number, text in enumerate(file, 1) if number >= line)
    if quotes % 2:
        raise InputError(f'{source.name} line {line} opens a quote (") that is never closed; close or remove it.')


def _not_unicode(source: Source, remedy: str) -> InputError:
    with source.open() as file:
        for line, text in enumerate(file, 1):
            try:
                text.decode()
            except UnicodeDecodeError as error:
                byte = text[error.start]
                return InputError(f"{source.name} line {line} is not UTF-8 text (byte 0x{byte:02x}); {remedy}.")
    return InputError(f"{source.name} is not UTF-8 text; {remedy}.")
