"""Tables of the command line: read with errors that name the option to use, written as CSV, TSV, Parquet or JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from csv import writer
from dataclasses import replace
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import numpy as np

from tuckergp.data.names import KEYS, USUAL, missing_column, named_table, taken_names
from tuckergp.data.tables import Table, column_names
from tuckergp.errors import InputError
from tuckergp.files import check_writable, write_bytes, write_text
from tuckergp.showing import plain

__all__ = [
    "check_output",
    "put_table",
    "ratings_names",
    "read_ratings",
    "read_side",
    "read_table",
    "records",
    "to_json",
    "write_result",
]

TABLES = {".csv": ",", ".tsv": "\t", ".parquet": ""}
ENDINGS = (*TABLES, ".json")
MOST_SHOWN = 200


def read_table(
    source: Path | Table,
    name: str,
    columns: Mapping[str, str],
    needed: Sequence[str] = (),
    roles: Sequence[str] = USUAL,
) -> Table:
    """Read a table with the usual names; the error for a missing column tells the option that names it."""
    table = named_table(source, name, columns, roles)
    for column in needed:
        if column not in table:
            raise missing_column(table.name, column, list(table.columns), columns)
    return table


def ratings_names(path: Path, columns: Mapping[str, str], name: str = "ratings") -> dict[str, str]:
    """The columns of a table of ratings that have other names than usual; all that options name must be there."""
    existing, file = column_names(path, name)
    for usual, theirs in columns.items():
        if theirs not in existing:
            raise missing_column(file, usual, existing, columns)
    return taken_names(existing, file, columns)


def read_ratings(path: Path, columns: Mapping[str, str], needed: Sequence[str] = KEYS, name: str = "ratings") -> Table:
    """Read a table of ratings with the usual names; it must have all columns that options name."""
    return read_table(path, name, ratings_names(path, columns, name), needed)


def read_side(path: Path | None, side: str, columns: Mapping[str, str], exclude: Sequence[str] = ()) -> Table | None:
    """Read a table of users or items without excluded columns, which are given as ``users.zip_code``."""
    dropped = [name.partition(".")[2] for name in exclude if name.partition(".")[0] == side]
    for name in exclude:
        if not name.startswith(("users.", "items.")):
            raise InputError(f"--exclude takes a table and a column, such as users.zip_code, not {name!r}.")
    if path is None:
        if dropped:
            raise InputError(f"--exclude {side}.{dropped[0]} leaves out a column of a table; give it with --{side}.")
        return None
    key = f"{side.removesuffix('s')}_id"
    table = read_table(path, side, columns, [key], [key])
    for name in dropped:
        table[name]  # says so if there is none
        if name == key:
            raise InputError(f"--exclude {side}.{name} would leave out the ids, which are needed.")
    return replace(table, columns={name: values for name, values in table.columns.items() if name not in dropped})


def check_output(output: Path | None, endings: Sequence[str] = ENDINGS) -> None:
    """Raise an error, before any work is done, for a file that cannot be written or has an unknown format."""
    if output is not None:
        if output.suffix not in endings:
            *most, last = endings
            raise InputError(f"{output.name} must end in {', '.join(most)}{' or ' if most else ''}{last}.")
        check_writable(output)


def put_table(columns: Mapping[str, Any], output: Path | None, as_json: bool, title: str | None = None) -> None:
    """Write a table to a file, or print it: as JSON records, as CSV in a pipe, as a formatted table on a terminal."""
    if output is not None:
        _write(columns, output)
    if as_json:
        print(to_json(records(columns)))
    elif output is None:
        if title is not None and sys.stdout.isatty():
            _draw(columns, title)
        else:
            sys.stdout.flush()
            sys.stdout.buffer.write(_as_csv(columns, ","))
            sys.stdout.buffer.flush()


def write_result(output: Path, result: Mapping[str, Any], rows: Sequence[Mapping[str, Any]] | None = None) -> None:
    """Write a result: all of it as a JSON object, or its rows as a table."""
    if output.suffix == ".json":
        write_text(output, to_json(result) + "\n")
    elif rows is not None:
        names = dict.fromkeys(name for row in rows for name in row)
        _write({name: [row.get(name) for row in rows] for name in names}, output)


def records(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One dict per row."""
    names = list(columns)
    return [dict(zip(names, row, strict=True)) for row in zip(*map(list, columns.values()), strict=True)]


def to_json(value: Any) -> str:
    """JSON with NaN and infinity as null, and dates as text."""
    return json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False)


def _write(columns: Mapping[str, Any], output: Path) -> None:
    if output.suffix == ".json":
        write_text(output, to_json(records(columns)) + "\n")
    elif output.suffix == ".parquet":
        from pyarrow import parquet

        content = BytesIO()
        parquet.write_table(_arrow(columns), content)
        write_bytes(output, content.getvalue())
    else:
        write_bytes(output, _as_csv(columns, TABLES[output.suffix]))


def _as_csv(columns: Mapping[str, Any], delimiter: str) -> bytes:
    import pyarrow as pa
    from pyarrow import csv

    table = _arrow({name: _flat(values) for name, values in columns.items()})
    header = StringIO()
    writer(header, delimiter=delimiter, lineterminator="\n").writerow(columns)
    # quotes where something needs them, and then around all texts
    for quoting in ("none", "needed"):
        content = BytesIO()
        try:
            options = csv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style=quoting)
            csv.write_csv(table, content, options)
            break
        except pa.ArrowInvalid:
            if quoting == "needed":
                raise
    return header.getvalue().encode() + content.getvalue()


def _arrow(columns: Mapping[str, Any]) -> Any:
    import pyarrow as pa

    arrays = {}
    for name, values in columns.items():
        try:
            arrays[name] = _plain_arrow(values) or pa.array(values, from_pandas=True)
        except (pa.ArrowException, TypeError, OverflowError):  # what no column of a file can hold
            arrays[name] = pa.array([None if value is None else str(plain(value)) for value in values])
    return pa.table(arrays)


def _plain_arrow(values: Any) -> Any:
    """Numbers or texts without missing ones as an Arrow array, else None.

    Made of buffers: `pyarrow.array` looks whether it was given something of pandas and so loads it, which takes longer
    than most answers.
    """
    import pyarrow as pa

    if isinstance(values, np.ndarray) and values.dtype.kind in "fiu" and values.dtype.itemsize >= 4:
        if np.isnan(values).any():
            return None
        numbers = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("="))
        return pa.Array.from_buffers(pa.from_numpy_dtype(numbers.dtype), len(numbers), [None, pa.py_buffer(numbers)])
    kinds = set(map(type, values))
    if kinds == {int} and all(-(2**63) <= value < 2**63 for value in values):
        return _plain_arrow(np.array(list(values), np.int64))
    if kinds == {str}:
        texts = [value.encode() for value in values]
        ends = np.cumsum([0, *map(len, texts)])
        if ends[-1] < 2**31:
            buffers = (pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(b"".join(texts)))
            return pa.StringArray.from_buffers(len(texts), *buffers)
    return None


def _flat(values: Any) -> Any:
    """Lists as text with bars between the values, as tables are read."""
    if isinstance(values, np.ndarray) and values.dtype.kind != "O":
        return values
    kinds = (list, tuple, set, frozenset, np.ndarray)
    return [None if v is None else "|".join(map(str, v)) if isinstance(v, kinds) else v for v in values]


def _draw(columns: Mapping[str, Any], title: str) -> None:
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    table = RichTable(title=Text(title), title_justify="left")
    rows = records(columns)
    for name in columns:
        numeric = bool(rows) and isinstance(rows[0][name], int | float | np.number)
        table.add_column(name, justify="right" if numeric else "left")
    for row in rows[:MOST_SHOWN]:
        table.add_row(*(Text(_cell(value)) for value in row.values()))
    if len(rows) > MOST_SHOWN:
        table.caption = f"{len(rows) - MOST_SHOWN:,} more rows; write them to a file with -o"
    Console().print(table)


def _cell(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return "" if np.isnan(value) else f"{value:.4f}"
    return "" if value is None else str(value)
