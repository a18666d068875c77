"""Where the files of a public data set are, and how their lines are read.

Knows nothing of what the lines mean: that is in the module of each data set. Fetching from the web is in `download`.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.errors import InputError

__all__ = [
    "Collection",
    "Source",
    "bad_line",
    "cache_directory",
    "find_folder",
    "objects",
    "read_lines",
    "split_lines",
    "to_float",
    "to_int",
]

REMEDY = "Mend the line, or put the publisher's file in its place."


@dataclass(frozen=True)
class Source:
    """One place on the web that offers a data set.

    Attributes
    ----------
    url : str
    sha256 : str or None
        Of the file at that address. None where only the unpacked content can be checked.
    unpack : callable
        From the path of the downloaded file to the files of the data set: name -> content.
    by_hand : str
        The file that someone who downloads and unpacks it by hand has to put into the folder.
    """

    url: str
    sha256: str | None
    unpack: Callable[[Path], dict[str, bytes]]
    by_hand: str


@dataclass(frozen=True)
class Collection:
    """What a data set consists of on disk.

    Attributes
    ----------
    title : str
        What messages call it.
    folder : str
        The folder that holds it, in the cache and in a data directory.
    forms : tuple of tuples of str
        Sets of files, each of which is enough; the first is the one that the cache holds.
    cached : mapping of str to str
        The files that a download leaves in the cache, with the sha256 of what ``plain`` makes of them.
    sources : tuple of Source
        Tried in order.
    aliases : tuple of str
        Other names of the folder, as the publishers' archives unpack.
    convert : callable or None
        From the path of a file of another form to the files that the cache would hold instead: name -> content.
    plain : callable
        From the content of a file to that of which checksums are taken, where copies differ in ways that do not matter.
    """

    title: str
    folder: str
    forms: tuple[tuple[str, ...], ...]
    cached: Mapping[str, str]
    sources: tuple[Source, ...]
    aliases: tuple[str, ...] = ()
    convert: Callable[[Path], dict[str, bytes]] | None = None
    plain: Callable[[bytes], bytes] = bytes

    def is_expected(self, name: str, content: bytes) -> bool:
        """Whether a file of the cache has its published content."""
        return hashlib.sha256(self.plain(content)).hexdigest() == self.cached[name]


def cache_directory() -> Path:
    """The folder of downloaded data sets: ``TUCKERGP_CACHE``, or the user's cache of this platform."""
    chosen = os.environ.get("TUCKERGP_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    import pooch

    return Path(pooch.os_cache("tuckergp"))


def find_folder(collection: Collection, directory: str | os.PathLike[str] | None, download: bool) -> Path:
    """The folder that holds the files of a data set, after a download if need be.

    Parameters
    ----------
    collection : Collection
    directory : path or None
        The folder of the files or its parent. Where it is given, nothing else is tried.
    download : bool
        Whether to fetch what is neither in ``TUCKERGP_DATA`` nor in the cache.
    """
    if directory is not None:
        folder = _look_in(collection, Path(directory).expanduser(), "The data directory")
        if folder is None:
            raise InputError(
                f"{directory} holds no {collection.title}: there is no {_wanted(collection)} in it or in its folder "
                f"{collection.folder}. Correct `directory`, or leave it out to have the data downloaded."
            )
        return folder
    named = os.environ.get("TUCKERGP_DATA")
    if named:
        folder = _look_in(collection, Path(named).expanduser(), "TUCKERGP_DATA")
        if folder is not None:
            return folder
    cached = cache_directory() / collection.folder
    if _is_sound(collection, cached) or _has_other_form(collection, cached):
        return cached
    if not download:
        raise InputError(
            f"{collection.title} is neither in TUCKERGP_DATA ({named or 'not set'}) nor whole in the cache "
            f"({cached}). Pass download=True, or a `directory` that holds {_wanted(collection)}."
        )
    from tuckergp.data.datasets.download import fetch

    fetch(collection, cached)
    return cached


def _look_in(collection: Collection, directory: Path, what: str) -> Path | None:
    if not directory.is_dir():
        raise InputError(f"{what} {directory} is not a folder. Name the one that holds {collection.folder}.")
    for folder in (directory, *(directory / name for name in (collection.folder, *collection.aliases))):
        for form in collection.forms:
            missing = [name for name in form if not (folder / name).is_file()]
            if not missing:
                return folder
            if len(missing) < len(form):
                raise InputError(
                    f"{folder} holds a part of {collection.title}, but not {', '.join(missing)}. "
                    f"Unpack the whole of {collection.sources[0].url} there."
                )
    return None


def _is_sound(collection: Collection, folder: Path) -> bool:
    """Whether the cache holds all files, undamaged."""
    for name in collection.cached:
        try:
            content = (folder / name).read_bytes()
        except OSError:
            return False
        if not collection.is_expected(name, content):
            return False
    return True


def _has_other_form(collection: Collection, folder: Path) -> bool:
    """Whether someone put the publisher's own file, undamaged, into the cache, and no copy of ours is before it."""
    ours, convert = collection.forms[0], collection.convert
    if convert is None or any((folder / name).is_file() for name in ours):
        return False
    for (name,) in collection.forms[1:]:
        if (folder / name).is_file():  # the first is the one that is read
            try:
                files = convert(folder / name)
            except InputError:
                return False
            return {file: hashlib.sha256(content).hexdigest() for file, content in files.items()} == collection.cached
    return False


def _wanted(collection: Collection) -> str:
    return " or ".join(", ".join(form) for form in collection.forms)


def read_lines(path: Path, encoding: str = "utf-8") -> list[str]:
    """The lines of a text file without their ends; empty lines at the end are dropped."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    return split_lines(content, path, encoding)


def split_lines(content: bytes, path: Path, encoding: str = "utf-8") -> list[str]:
    """The lines of a text; `path` is what messages call it."""
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        raise bad_line(path, content[: error.start].count(b"\n") + 1, f"is not {encoding} text") from None
    # str.splitlines would also split at characters that titles in latin-1 may hold
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise InputError(f"{path} is empty. Put the publisher's file in its place.")
    return lines


def bad_line(path: Path, line: int, what: str) -> InputError:
    """The error of a line, counted from 1, that is not as it should be."""
    return InputError(f"{path} line {line} {what}. {REMEDY}")


def to_int(text: str, path: Path, line: int, what: str) -> int:
    """Read a whole number from a line."""
    try:
        return int(text)
    except ValueError:
        raise bad_line(path, line, f"holds {text[:40]!r} where {what} should be a whole number") from None


def to_float(text: str, path: Path, line: int, what: str) -> float:
    """Read a finite number from a line."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise bad_line(path, line, f"holds {text[:40]!r} where {what} should be a number")
    return number


def objects(values: Sequence[Any]) -> npt.NDArray[np.object_]:
    """A column of strings or lists."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
