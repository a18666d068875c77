"""Where the bytes of a table are: a file, one in an archive, several that a pattern names, or standard input.

Also the format that the ending says, and for text what is found out from its beginning: encoding, delimiter, whether
the first line names the columns, and the decimal sign.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import glob
import gzip
import io
import lzma
import re
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import IO, Any, NamedTuple
from weakref import WeakKeyDictionary

from tuckergp.errors import InputError

__all__ = ["GUESS", "UNNAMED", "Dialect", "Source", "insisting", "separated", "sources_of"]

TEXT = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t", ".psv": "|", ".dat": "::", ".data": "\t"}
FORMATS = {
    **dict.fromkeys(TEXT, "text"),
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
}
PACKED: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
MAGIC = {b"PAR1": ".parquet", b"ARRO": ".feather", b"{": ".jsonl", b"[": ".json"}
GZIP, ZIP = b"\x1f\x8b", b"PK\x03\x04"
SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods")
STANDARD_INPUT = "-"
# Delimiters of several characters become this one, which no table holds.
UNIT = "\x1f"
SAMPLE, LINES = 1 << 16, 100
# The first line of what Excel exports may say the delimiter.
SAID = re.compile(r'"?sep=([^\w\s"]|\t)"?[ \t]*\r?\n', re.IGNORECASE)
# Files of at most this many columns may have no line with names.
MOST_UNNAMED = 4
UNNAMED = (".dat", ".data")
"""Endings of files that usually have no line of names."""

GUESS = "cp1252"
"""The encoding that text which is not UTF-8 most likely has."""

_came: WeakKeyDictionary[Any, bytes] = WeakKeyDictionary()
_insisted: ContextVar[tuple[str | None, str | None]] = ContextVar("insisted", default=(None, None))


class Dialect(NamedTuple):
    """How a text file is written; ``skipped`` lines at its beginning are none of the table."""

    delimiter: str
    encoding: str
    header: bool
    decimal: str
    skipped: int

    @property
    def sign(self) -> str:
        """The delimiter as one character, after `separated`."""
        return UNIT if len(self.delimiter) > 1 else self.delimiter


@contextmanager
def insisting(sep: str | None, encoding: str | None) -> Iterator[None]:
    """Read all text files in the block with this delimiter and encoding, where they are given."""
    token = _insisted.set((sep, encoding))
    try:
        yield
    finally:
        _insisted.reset(token)


@dataclass(frozen=True)
class Source:
    """One table as bytes.

    Attributes
    ----------
    name : str
        What messages call it.
    path : Path or None
        None for standard input.
    ending : str
        Says the format, such as ``.csv``.
    packing : str
        The ending of a compressed file, or empty.
    content : bytes or None
        What came from standard input.
    sep, encoding : str or None
        What the user insists on.
    """

    name: str
    path: Path | None
    ending: str
    packing: str = ""
    content: bytes | None = None
    sep: str | None = None
    encoding: str | None = None

    @property
    def format(self) -> str:
        """One of text, jsonl, json, parquet and feather."""
        return FORMATS[self.ending]

    @property
    def is_text(self) -> bool:
        """Whether rows are lines."""
        return self.format in ("text", "jsonl")

    @property
    def is_there(self) -> bool:
        """Whether it can be read again."""
        return self.path is None or self.path.is_file()

    def open(self) -> IO[bytes]:
        """The bytes, unpacked."""
        if self.path is None:
            return io.BytesIO(self.content or b"")
        if self.packing == ".zip":
            return io.BytesIO(_member(self.path)[1])
        opened: IO[bytes] = PACKED[self.packing](self.path) if self.packing else self.path.open("rb")
        return opened

    def arrow(self) -> Any:
        """What PyArrow reads: a path where that is enough, else all bytes."""
        import pyarrow as pa

        if self.path is not None and not self.packing:
            return str(self.path)
        with self.open() as file:
            return pa.BufferReader(file.read())

    @cached_property
    def dialect(self) -> Dialect:
        """How the text is written, going by its beginning."""
        with self.open() as file:
            sample = file.read(SAMPLE)
        encoding = self.encoding or _encoding(sample, len(sample) == SAMPLE)
        text = sample.decode(encoding, errors="replace").removeprefix("\ufeff")
        if "\0" in text:
            raise InputError(f"{self.name} is no text, for it holds zero bytes; save it as CSV, or name its encoding.")
        whole = text if len(sample) < SAMPLE else text[: text.rfind("\n") + 1] or text
        said = SAID.match(whole)
        whole = whole[said.end() :] if said else whole
        delimiter = self.sep or (said and said[1]) or _delimiter(whole, TEXT.get(self.ending, ","))
        first = next(_records(whole, delimiter), [])
        decimal = "," if delimiter == ";" and _has_decimal_commas(whole) else "."
        header = not _is_row(first, delimiter, self.ending)
        return Dialect(delimiter, encoding, header, decimal, 1 if said else 0)


def sources_of(path: str | Path, sep: str | None = None, encoding: str | None = None) -> list[Source]:
    """The files that a path means: one, those of a pattern such as ``ratings-*.csv``, or ``-``, standard input."""
    text = str(path)
    insisted = _insisted.get()
    if not (sep is None or isinstance(sep, str)):
        raise InputError(f"sep must be text, such as ';', or None, not {sep!r}.")
    how: dict[str, Any] = {"sep": sep or insisted[0], "encoding": _known(encoding or insisted[1])}
    if text == STANDARD_INPUT:
        return [replace(_standard_input(), **how)]
    _check_path(text)
    try:
        found = Path(text).expanduser()
        if not found.is_file() and glob.has_magic(text):
            return [replace(_source(Path(one)), **how) for one in _matches(str(found))]
        return [replace(_source(found), **how)]
    except (OSError, RuntimeError) as error:
        raise InputError(
            f"{_short(text)} cannot be read: {str(getattr(error, 'strerror', None) or error).rstrip('.')}."
        ) from None


def separated(text: str, dialect: Dialect) -> str:
    """A line with a delimiter of one character."""
    return text.replace(dialect.delimiter, UNIT) if len(dialect.delimiter) > 1 else text


def _source(path: Path) -> Source:
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file in it, or a pattern such as {path.name}/*.csv.")
    if not path.is_file():
        raise InputError(f"There is no file {path}.")
    packing = path.suffix.lower() if path.suffix.lower() in (*PACKED, ".zip") else ""
    inner = Path(_member(path)[0]) if packing == ".zip" else Path(path.stem) if packing else path
    ending = inner.suffix.lower()
    if ending in SPREADSHEETS:
        raise InputError(f"{path.name} is a spreadsheet; save it as CSV, or read it with pandas.read_excel.")
    if ending not in FORMATS:
        raise InputError(
            f"{path.name} must end in .csv, .tsv, .dat, .json, .jsonl, .feather or .parquet, so that its format is "
            f"known (.csv.gz, .csv.bz2 and .zip are fine)."
        )
    return _by_content(Source(path.name, path.absolute(), ending, packing))


def _by_content(source: Source) -> Source:
    """The same source by what it begins with, where its name says otherwise."""
    if not source.packing and source.is_text:
        with source.open() as file:
            begin = file.read(4)
        if begin == ZIP:
            raise InputError(f"{source.name} is a zip archive or a spreadsheet; unpack it, or save it as CSV.")
        source = replace(source, packing=".gz") if begin.startswith(GZIP) else source
    if source.format == "json":  # many such files have lines of JSON
        with source.open() as file:
            begin = file.read(SAMPLE).removeprefix(codecs.BOM_UTF8).lstrip()
        return replace(source, ending=".jsonl") if begin.startswith(b"{") else source
    return source


def _matches(pattern: str) -> list[str]:
    found = sorted(one for one in glob.glob(pattern, recursive=True) if Path(one).is_file())
    if not found:
        raise InputError(f"There is no file that matches {pattern}.")
    return found


def _standard_input() -> Source:
    """What came from standard input, which can be read only once."""
    if sys.stdin not in _came:
        came = getattr(sys.stdin, "buffer", sys.stdin).read()
        _came[sys.stdin] = came.encode() if isinstance(came, str) else came
    content = _came[sys.stdin]
    if content.startswith(GZIP):
        content = gzip.decompress(content)
    ending = next((ending for magic, ending in MAGIC.items() if content.startswith(magic)), ".csv")
    return Source("standard input", None, ending, content=content)


def _member(path: Path) -> tuple[str, bytes]:
    """The name and content of the one table in an archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if Path(name).suffix.lower() in FORMATS]
            names = [name for name in names if not name.startswith("__MACOSX")]
            if len(names) != 1:
                listed = ", ".join(names) or "none"
                raise InputError(f"{path.name} must hold one table; it holds {listed}. Unpack it and name the file.")
            return names[0], archive.read(names[0])
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise InputError(f"{path.name} cannot be read: {error}.") from None


def _check_path(text: str) -> None:
    if not text or "\0" in text:
        raise InputError(f"{_short(text)!r} is no path; name a file.")
    if re.match(r"\w+://", text):
        raise InputError(f"{_short(text)} is an address; download the file, and name it.")


def _short(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:100]}..."


def _known(encoding: str | None) -> str | None:
    try:
        return None if encoding is None else codecs.lookup(encoding).name
    except (LookupError, TypeError):
        raise InputError(f"encoding {encoding!r} is not known; write utf-8, latin-1 or utf-16, say.") from None


def _encoding(sample: bytes, cut: bool) -> str:
    if sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample, final=not cut)
    except UnicodeDecodeError:
        return GUESS
    return "utf-8"


def _delimiter(sample: str, usual: str) -> str:
    """The delimiter under which most lines have as many cells as the first; the usual one, if several will do."""
    best, most = usual, (0.0, False, 1)
    spaced = {len(cells) for cells in _records(sample, " ")}
    if len(spaced) == 1 and max(spaced) > 2 and not any(sign in sample for sign in ",;\t|"):
        return " "
    for delimiter in dict.fromkeys((usual, ",", ";", "\t", "|", "::")):
        counts = [len(cells) for cells in _records(sample, delimiter)]
        if counts and counts[0] > 1:
            share = sum(count == counts[0] for count in counts) / len(counts)
            best, most = max((best, most), (delimiter, (round(share, 1), delimiter == usual, counts[0])), key=_second)
    return best


def _second(pair: tuple[str, tuple[float, bool, int]]) -> tuple[float, bool, int]:
    return pair[1]


def _records(sample: str, delimiter: str) -> Iterator[list[str]]:
    """The cells of the first lines of a text."""
    several = len(delimiter) > 1
    lines = io.StringIO(sample.replace(delimiter, UNIT) if several else sample, newline="")
    reader = csv.reader(lines, delimiter=UNIT if several else delimiter, quoting=_quoting(delimiter))
    found = 0
    try:
        for cells in reader:
            if cells:
                found += 1
                yield cells
            if found == LINES:
                return
    except csv.Error:
        return


def _quoting(delimiter: str) -> Any:
    return csv.QUOTE_NONE if len(delimiter) > 1 else csv.QUOTE_MINIMAL


def _has_decimal_commas(sample: str) -> bool:
    return bool(re.search(r"(^|;)-?\d+,\d+(;|\r?$)", sample, re.M)) and not re.search(
        r"(^|;)-?\d+\.\d+(;|\r?$)", sample, re.M
    )


def _is_row(first: list[str], delimiter: str, ending: str) -> bool:
    """Whether the first line holds values, so that the columns have no names."""
    numeric = [bool(re.fullmatch(r"\s*[+-]?\d+(\.\d*)?\s*", cell)) for cell in first]
    if delimiter == "::" or ending in UNNAMED:
        return any(numeric)
    counted = [cell.strip() for cell in first] == [str(k) for k in range(len(first))]  # names that pandas gives
    return bool(first) and all(numeric) and len(first) <= MOST_UNNAMED and not counted
