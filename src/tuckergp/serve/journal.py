"""The journal: what was folded in and who was forgotten, one line of JSON each, shared by all workers.

Every worker reads it up to its end before it answers. It only grows, but for lines of somebody who is forgotten, which
are overwritten with spaces, so that places in it stay. Readers and writers lock the file; a line that a crash left
incomplete is passed over. Needs no FastAPI: `ratings_in` and `forgotten_in` are for nightly
fits.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from tuckergp.errors import InputError
from tuckergp.serve.refusals import Unavailable

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows, where one worker is all there is
    fcntl = None

__all__ = ["Journal", "Place", "forgotten_in", "ratings_in"]

log = logging.getLogger("tuckergp.serve")

RATINGS, USERS, FORGET = "ratings", "users", "forget"
Entry = dict[str, Any]


class Place(NamedTuple):
    """How far a journal was read: which file, and how many bytes of it."""

    file: int
    end: int


class Journal:
    """A journal file, which is made if there is none, and readable by its owner alone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._make()

    def place(self) -> Place:
        """Where it ends now."""
        try:
            facts = os.stat(self.path)
        except FileNotFoundError:  # moved away by somebody who keeps the old ones
            self._make()
            facts = os.stat(self.path)
        return Place(facts.st_ino, facts.st_size)

    def read(self, since: Place | None = None) -> tuple[list[Entry], Place, bool]:
        """The entries since a place, where they end, and whether the file is another one, of which all are given."""
        self.place()
        with self._locked(exclusive=False) as file:
            return _read(file, since)

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """Keep all others from reading and writing."""
        self.place()
        with self._locked(exclusive=True) as file:
            yield Writer(file)

    @contextmanager
    def _locked(self, exclusive: bool) -> Iterator[BinaryIO]:
        with open(self.path, "r+b") as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
            yield file

    def _make(self) -> None:
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            raise InputError(f"The journal {self.path} cannot be written: {error.strerror or error}.") from None


class Writer:
    """A journal that one worker has for itself."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read(self, since: Place | None) -> tuple[list[Entry], Place, bool]:
        """As `Journal.read`."""
        return _read(self._file, since)

    def append(self, entry: Entry) -> Place:
        """Add an entry, safely on disk, and return where the journal ends then; after an error it is as it was."""
        file = self._file.fileno()
        facts = os.fstat(file)
        end = facts.st_size
        line = json.dumps({"at": round(time.time(), 3), **entry}).encode() + b"\n"
        if end and os.pread(file, 1, end - 1) != b"\n":  # after a line that was not finished
            line = b"\n" + line
        try:
            if os.pwrite(file, line, end) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(file, end)
            raise Unavailable(f"The journal cannot be written, and nothing was kept: {error.strerror}.") from None
        return Place(facts.st_ino, end + len(line))

    def erase(self, same: Any) -> None:
        """Overwrite all of the ids for which ``same`` is true: their ratings and their attributes."""
        file, start = self._file.fileno(), 0
        for line in os.pread(file, os.fstat(file).st_size, 0).splitlines(keepends=True):
            entry = _entry(line)
            kept = None if entry is None else _without(entry, same)
            if entry is not None and kept != entry:
                text = b"" if kept is None else json.dumps(kept).encode()
                os.pwrite(file, text.ljust(len(line) - 1) + b"\n", start)
            start += len(line)
        os.fsync(file)


def _read(file: BinaryIO, since: Place | None) -> tuple[list[Entry], Place, bool]:
    facts = os.fstat(file.fileno())
    now = Place(facts.st_ino, facts.st_size)
    other = since is not None and (since.file != now.file or since.end > now.end)
    start = 0 if since is None or other else since.end
    file.seek(start)
    lines = file.read(now.end - start).splitlines()
    entries = [entry for entry in map(_entry, lines) if entry is not None]
    return entries, now, other


def _entry(line: bytes) -> Entry | None:
    """What a line says; None for an empty one, and for what is none."""
    if not line.strip():
        return None
    try:
        entry = json.loads(line)
    except ValueError:
        entry = None
    if isinstance(entry, dict) and (FORGET in entry or _is_table(entry.get(RATINGS))):
        return entry
    log.warning("A line of the journal is damaged and passed over.")
    return None


def _is_table(rows: Any) -> bool:
    return isinstance(rows, list) and all(isinstance(row, dict) for row in rows)


def _without(entry: Entry, same: Any) -> Entry | None:
    """An entry without the rows of somebody; None where nothing is left."""
    if FORGET in entry:
        return entry
    kept = {
        **entry,
        **{part: [row for row in entry.get(part) or [] if not same(row.get("user_id"))] for part in (RATINGS, USERS)},
    }
    if len(kept[RATINGS]) == len(entry[RATINGS]) and len(kept[USERS]) == len(entry.get(USERS) or []):
        return entry
    return kept if kept[RATINGS] else None


def ratings_in(path: str | Path) -> dict[str, list[Any]]:
    """The ratings of a journal as a table, for `TuckerRecommender.partial_fit`: the last of each pair, or all clicks.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     journal = Journal(Path(folder) / "journal")
    ...     with journal.writing() as writer:
    ...         _ = writer.append({"ratings": [{"user_id": "ann", "item_id": 7, "rating": 4.0}]})
    ...     ratings_in(Path(folder) / "journal")
    {'user_id': ['ann'], 'item_id': [7], 'rating': [4.0]}
    """
    last: dict[Any, Mapping[str, Any]] = {}
    for entry in _entries(path):
        if FORGET in entry:
            last = {key: row for key, row in last.items() if row["user_id"] != entry[FORGET]}
        for row in entry.get(RATINGS) or []:
            key = (row["user_id"], row["item_id"]) if "rating" in row else object()
            last.pop(key, None)
            last[key] = row
    return as_columns(list(last.values()))


def forgotten_in(path: str | Path) -> list[Any]:
    """The ids of all who were forgotten, each once: what a fit must forget before it goes on."""
    return list(dict.fromkeys(entry[FORGET] for entry in _entries(path) if FORGET in entry))


def _entries(path: str | Path) -> list[Entry]:
    path = Path(path)
    if not path.is_file():
        raise InputError(f"There is no journal {path}.")
    return Journal(path).read()[0]


def as_columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Rows as columns, None where a row lacks one."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}
