"""Writing files so that a reader never sees an incomplete one.

What is written goes to a temporary file in the same folder, ``.NAME.XXXXXXXX.tmp``, which is locked while its writer
lives and then takes the place of the file. The next writer removes those of writers that were killed.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from tuckergp.errors import InputError

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows, where nothing is locked and nothing of others is removed
    fcntl = None

__all__ = ["as_path", "check_writable", "in_use", "remove_abandoned", "write_bytes", "write_text", "writing"]


LONGEST = 100


def as_path(path: object, what: str) -> Path:
    """A path that a file system can have, or a refusal; ``what`` it is the path of begins the sentence.

    Examples
    --------
    >>> as_path("", "checkpoint")
    Traceback (most recent call last):
    ...
    tuckergp.errors.InputError: checkpoint must be a path, not ''.
    """
    if not isinstance(path, str | os.PathLike) or not str(path) or "\0" in str(path):
        raise InputError(f"{what} must be a path, not {path!r}.")
    try:
        os.stat(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        shown = str(path) if len(str(path)) <= LONGEST else f"{str(path)[:LONGEST]}..."
        raise InputError(f"{shown} cannot be used: {error.strerror or error}.") from None
    return Path(path)


def check_writable(path: Path) -> None:
    """Refuse a path that cannot be written to, before any work is done; links are followed."""
    path = _target(path)
    if path.is_symlink():
        raise InputError(f"{path} is a link that leads to itself; name a regular file.")
    if not path.parent.is_dir():
        raise InputError(f"There is no folder {path.parent} to write {path.name} to.")
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file in it.")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is a device, a pipe or a socket; name a regular file.")


def write_text(path: Path, text: str) -> None:
    """Write a text file so that it appears complete or not at all."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file so that it appears complete or not at all."""
    with writing(path) as file:
        file.write(content)


@contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """Open a file to write to in pieces; it replaces what is there if nothing goes wrong.

    A link stays, and what it leads to is replaced. An existing file keeps its mode, and its owner where that is
    allowed; a new one has the mode that the umask leaves.
    """
    check_writable(path)
    path = _target(path)
    remove_abandoned(path.parent, path.name)
    before = path.stat() if path.exists() else None
    handle, name = _temporary(path, 0o666 if before is None else 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if before is not None:
                _take_over(name, before)
            os.replace(name, path)
    except BaseException:
        name.unlink(missing_ok=True)
        raise


def remove_abandoned(folder: Path, name: str = "*") -> None:
    """Remove the temporary files of a file, or of all in a folder, whose writers were killed."""
    if fcntl is None:
        return
    for found in folder.glob(f".{name if name == '*' else _literal(name)}.{'[0-9a-f]' * 8}.tmp"):
        with suppress(OSError), open(found, "rb") as file:  # somebody else's, gone already, or in use
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            found.unlink(missing_ok=True)


@contextmanager
def in_use(folder: Path, what: str) -> Iterator[None]:
    """Hold a folder for this process; an InputError that begins with ``what`` where another one holds it."""
    handle = None if fcntl is None else os.open(folder, os.O_RDONLY)
    try:
        if handle is not None:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(
                    f"{what} is in use by another run; wait until that one ends, or name another folder."
                ) from None
            except OSError:  # a file system without locks
                pass
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _target(path: Path) -> Path:
    """The path that links lead to."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _literal(name: str) -> str:
    """A name as a pattern that matches it alone."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def _temporary(path: Path, mode: int) -> tuple[int, Path]:
    """Create and lock a temporary file beside a file."""
    while True:
        name = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
        with suppress(FileExistsError):
            handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
            if fcntl is None:
                return handle, name
            with suppress(OSError):  # a file system without locks
                fcntl.flock(handle, fcntl.LOCK_EX)
            if name.exists():  # it was not taken for abandoned before it was locked
                return handle, name
            os.close(handle)


def _take_over(name: Path, before: os.stat_result) -> None:
    """Give a file the owner, where that is allowed, and the mode of another."""
    if hasattr(os, "chown") and (before.st_uid, before.st_gid) != (os.getuid(), os.getgid()):
        with suppress(OSError):
            os.chown(name, before.st_uid, before.st_gid)
    os.chmod(name, stat.S_IMODE(before.st_mode))
