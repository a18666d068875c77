"""The journal of a server: what was folded in and who was forgotten, one line of JSON each, shared by all workers.

It only grows, but for lines of somebody who is forgotten: their rows are overwritten, with spaces where they end, so
that what others have read of the file stays where it was. A line that does not fit makes a new file. Readers and
writers lock the file; a line that a crash left incomplete is passed over, and reported once. A file whose first line is
none of a journal is refused, so that no other file is written into.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from tuckergp.errors import InputError
from tuckergp.files import write_bytes

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows, where nothing is served
    fcntl = None

__all__ = [
    "FORGET",
    "RATINGS",
    "USERS",
    "Entry",
    "Journal",
    "JournalEnd",
    "JournalFault",
    "Reading",
    "forget_in",
    "standing",
]

log = logging.getLogger("tuckergp.serve")

RATINGS, USERS, FORGET = "ratings", "users", "forget"
Entry = dict[str, Any]

# How each line that is appended begins, also one that a crash left incomplete.
BEGINNING = b'{"at":'
# How many damaged lines are named in a message.
NAMED = 5


class JournalFault(InputError):
    """A journal that cannot be read or written now."""


class JournalEnd(NamedTuple):
    """How far a journal was read: which file, and how many bytes of it."""

    file: int
    bytes: int


class Reading(NamedTuple):
    """Entries of a journal, where they end, and whether they are all, for the file is another one than before."""

    entries: list[Entry]
    end: JournalEnd
    anew: bool


class Journal:
    """A journal file, which is made if there is none, and readable by its owner alone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # The file that was read last stays open, so that no other file can have its number.
        self._last: BinaryIO | None = None
        self._said: set[tuple[int, int]] = set()  # damaged lines that were reported, by file and place
        self._make()
        with self._opened() as file:
            _refuse_other_files(path, file)

    def end(self) -> JournalEnd:
        """Where it ends now."""
        with _saying(self.path):
            try:
                facts = os.stat(self.path)
            except FileNotFoundError:  # moved away
                self._make()
                facts = os.stat(self.path)
        return JournalEnd(facts.st_ino, facts.st_size)

    def read(self, since: JournalEnd | None = None) -> Reading:
        """The entries since an earlier end; all of them if the file is another one, or if none is given."""
        with self._locked(exclusive=False) as file:
            return _read(file, since, self._said)

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """Keep all others from reading and writing."""
        with self._locked(exclusive=True) as file:
            yield Writer(self.path, file, self._said)

    @contextmanager
    def _locked(self, exclusive: bool) -> Iterator[BinaryIO]:
        """The file, locked; another one that has taken its place while we waited for the lock is waited for."""
        while True:
            with self._opened() as file:
                if fcntl is not None:
                    fcntl.flock(file, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
                number = os.fstat(file.fileno()).st_ino
                if number != self.end().file:
                    continue
                if self._last is None or os.fstat(self._last.fileno()).st_ino != number:
                    self._last = self._opened()
                yield file
                return

    def _opened(self) -> BinaryIO:
        self.end()
        with _saying(self.path):
            return open(self.path, "r+b")

    def _make(self) -> None:
        with _saying(self.path):
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))


@contextmanager
def _saying(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise JournalFault(f"The journal {path.name} cannot be written: {error.strerror or error}.") from None


class Writer:
    """A journal that one worker has for itself."""

    def __init__(self, path: Path, file: BinaryIO, said: set[tuple[int, int]]) -> None:
        self._path, self._file, self._said = path, file, said

    def read(self, since: JournalEnd | None = None) -> Reading:
        """As `Journal.read`."""
        return _read(self._file, since, self._said)

    def append(self, entry: Entry) -> JournalEnd:
        """Add an entry, safely on disk, and return where the journal ends then; after an error it is as it was."""
        file = self._file.fileno()
        facts = os.fstat(file)
        end = facts.st_size
        line = _line({"at": round(time.time(), 3), **entry})
        if end and os.pread(file, 1, end - 1) != b"\n":  # after a line that was not finished
            line = b"\n" + line
        try:
            if os.pwrite(file, line, end) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(file, end)
            raise JournalFault(f"The journal cannot be written, and nothing was kept: {error.strerror}.") from None
        return JournalEnd(facts.st_ino, end + len(line))

    def erase(self, same: Callable[[Any], bool]) -> None:
        """Overwrite the ratings and attributes of all ids for which ``same`` is true."""
        self._change(lambda entries: [entry and _without(entry, same) for entry in entries])

    def erase_forgotten(self) -> None:
        """Overwrite what stands before the line that forgets its user, which a crash may have left there."""
        self._change(_standing)

    def drop(self, end: JournalEnd, kept: Callable[[Entry], bool] = lambda _: False) -> None:
        """Begin a new file without the lines up to an earlier end, but for those to be kept."""
        now = os.fstat(self._file.fileno())
        if now.st_ino != end.file or now.st_size < end.bytes:
            raise InputError(f"The journal {self._path.name} is another one than before; nothing was dropped from it.")
        content = self._content()
        earlier = [_entry(line) for line in content[: end.bytes].splitlines()]
        lines = [_line(entry) for entry in earlier if entry is not None and kept(entry)]
        write_bytes(self._path, b"".join([*lines, content[end.bytes :]]))

    def copy(self, path: Path) -> None:
        """Write all lines to another file, readable by its owner alone."""
        with open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(self._content())

    def _content(self) -> bytes:
        file = self._file.fileno()
        return os.pread(file, os.fstat(file).st_size, 0)

    def _change(self, change: Callable[[list[Entry | None]], list[Entry | None]]) -> None:
        """Write other entries in place of those that are there, each into its line, or all into a new file."""
        lines = self._content().splitlines(keepends=True)
        before = [_entry(line) for line in lines]
        after = [
            line if new == old else (b"" if new is None else _line(new)).rstrip(b"\n").ljust(len(line) - 1) + b"\n"
            for line, old, new in zip(lines, before, change(before), strict=True)
        ]
        if any(len(new) > len(old) for new, old in zip(after, lines, strict=True)):
            write_bytes(self._path, b"".join(after))
            return
        file, start = self._file.fileno(), 0
        for old, new in zip(lines, after, strict=True):
            if new != old:
                os.pwrite(file, new, start)
            start += len(old)
        os.fsync(file)


def _line(entry: Entry) -> bytes:
    return json.dumps(entry, separators=(",", ":")).encode() + b"\n"


def _refuse_other_files(path: Path, file: BinaryIO) -> None:
    """Refuse a file whose first line that is not empty is none of a journal."""
    first = next((line for line in map(bytes.strip, file) if line), b"")
    if first and not first.startswith(BEGINNING) and _entry(first) is None:
        raise InputError(
            f"{path} is no journal, for its first line is none that tuckergp serve writes; name another file, or one "
            f"that does not exist."
        )


def _read(file: BinaryIO, since: JournalEnd | None, said: set[tuple[int, int]]) -> Reading:
    facts = os.fstat(file.fileno())
    now = JournalEnd(facts.st_ino, facts.st_size)
    anew = since is None or since.file != now.file or since.bytes > now.bytes
    start = 0 if since is None or anew else since.bytes
    lines = os.pread(file.fileno(), now.bytes - start, start).splitlines(keepends=True)
    entries, damaged, place = [], [], start
    for number, line in enumerate(lines):
        entry = _entry(line)
        if entry is not None:
            entries.append(entry)
        elif line.strip() and (now.file, place) not in said:
            said.add((now.file, place))
            damaged.append(number)
        place += len(line)
    if damaged:
        before = len(os.pread(file.fileno(), start, 0).splitlines())
        _say_damaged([before + number + 1 for number in damaged])
    return Reading(entries, now, anew)


def _say_damaged(numbers: Sequence[int]) -> None:
    named = ", ".join(f"{number:,}" for number in numbers[:NAMED])
    more = f" and {len(numbers) - NAMED:,} more" if len(numbers) > NAMED else ""
    what = f"Line {named} of the journal is" if len(numbers) == 1 else f"Lines {named}{more} of the journal are"
    log.warning("%s damaged and passed over.", what)


def _entry(line: bytes) -> Entry | None:
    """What a line says; None for an empty one, and for what is none."""
    if not line.strip():
        return None
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if isinstance(entry, dict) and (FORGET in entry or (_is_table(entry.get(RATINGS)) and _is_table(_users(entry)))):
        return entry
    return None


def _is_table(rows: Any) -> bool:
    return isinstance(rows, list) and all(isinstance(row, dict) for row in rows)


def _users(entry: Entry) -> Any:
    return entry.get(USERS) or []


def _without(entry: Entry, same: Callable[[Any], bool]) -> Entry | None:
    """An entry without the rows of some ids; None where nothing is left."""
    if FORGET in entry:
        return entry
    rows = {RATINGS: entry[RATINGS], USERS: _users(entry)}
    kept = {part: [row for row in rows[part] if not same(row.get("user_id"))] for part in rows}
    if kept == rows:
        return entry
    return {**entry, **kept} if kept[RATINGS] or kept[USERS] else None


def _standing(entries: Sequence[Entry | None]) -> list[Entry | None]:
    """Entries without the rows of whoever was forgotten after them."""
    forgotten: set[str] = set()
    kept: list[Entry | None] = []
    for entry in reversed(entries):
        if entry is not None and FORGET in entry:
            forgotten.add(str(entry[FORGET]))
        kept.append(entry and _without(entry, lambda value: str(value) in forgotten))
    return kept[::-1]


def standing(entries: Sequence[Entry]) -> list[Entry]:
    """Entries without the rows of whoever was forgotten after them, which the file has no more either."""
    return [entry for entry in _standing(entries) if entry is not None]


def forget_in(path: str | Path, user: Any, always: bool = True) -> bool:
    """Forget a user in a journal; whether it knew the user. A line says so, ``always`` or if it did."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"There is no journal {path}; name the file that tuckergp serve was given.")

    def same(value: Any) -> bool:
        return str(value) == str(user)

    with Journal(path).writing() as writer:
        known = any(_without(entry, same) is not entry for entry in writer.read().entries)
        if known or always:
            writer.append({FORGET: user if isinstance(user, str | int | float) else str(user)})
            writer.erase(same)
        return known
