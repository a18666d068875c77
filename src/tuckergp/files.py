"""Writing files so that a reader never sees an incomplete one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from tuckergp.errors import InputError

__all__ = ["as_path", "check_writable", "write_bytes", "write_text", "writing"]


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
    """Refuse a path that cannot be written to, before any work is done."""
    if not path.parent.is_dir():
        raise InputError(f"There is no folder {path.parent} to write {path.name} to.")
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file in it.")


def write_text(path: Path, text: str) -> None:
    """Write a text file so that it appears complete or not at all."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file so that it appears complete or not at all."""
    with writing(path) as file:
        file.write(content)


@contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """Open a file to write to in pieces: a temporary file beside it, renamed if nothing goes wrong."""
    check_writable(path)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
