"""Fetching a data set into the cache: checked before it is kept, and never half-written.

Archives are not extracted: the members wanted are read by name, so a hostile path inside one leads nowhere.
"""

from __future__ import annotations

import hashlib
import os
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tuckergp.data.datasets.files import Collection, Source
from tuckergp.errors import InputError

__all__ = ["fetch", "tar_member", "zip_members"]

TIMEOUT = 30.0  # seconds without a byte
_CHUNK = 1 << 16
_LARGEST_MEMBER = 64 << 20  # no file of any of the data sets has 5 MB


class _Unusable(Exception):
    """Why a source did not give its data; the text completes 'URL (...)'."""


def fetch(collection: Collection, folder: Path) -> None:
    """Download a data set into `folder`, from the first of its sources that gives it whole.

    Every file appears under its name only when all of them have been checked.
    """
    failures = []
    for source in collection.sources:
        try:
            _fetch_from(source, collection, folder)
        except _Unusable as reason:
            failures.append(f"{source.url} ({reason})")
        else:
            return
    raise InputError(
        f"{collection.title} could not be downloaded from {' nor from '.join(failures)}. "
        f"Download it by hand, unpack it so that {folder / collection.sources[0].by_hand} exists, "
        f"or set TUCKERGP_DATA to the folder that holds {collection.folder}."
    )


def _fetch_from(source: Source, collection: Collection, folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # beside the files to come, so that moving them there is one step of the file system
        scratch = tempfile.TemporaryDirectory(prefix=".download-", dir=folder)
    except OSError as error:
        raise _unwritable(folder, error) from None
    with scratch as name:
        archive = Path(name) / "archive"
        _download(source.url, archive, collection.title)
        files = _checked(source, collection, archive)
        try:
            for file, content in files.items():
                (Path(name) / file).write_bytes(content)
            for file in files:
                os.replace(Path(name) / file, folder / file)
        except OSError as error:
            raise _unwritable(folder, error) from None


def _checked(source: Source, collection: Collection, archive: Path) -> dict[str, bytes]:
    """The files that the cache is to hold, if the download is what it should be."""
    if source.sha256 is not None and hashlib.sha256(archive.read_bytes()).hexdigest() != source.sha256:
        raise _Unusable("its checksum is not the expected one: damaged on the way, or changed there")
    try:
        unpacked = source.unpack(archive)
    except InputError:
        raise _Unusable("its content is not the expected one") from None
    except (zipfile.BadZipFile, tarfile.TarError, RuntimeError, OSError, EOFError, zlib.error):
        raise _Unusable("it is not a whole archive") from None
    for file in collection.cached:
        if file not in unpacked:
            raise _Unusable(f"it holds no {file}")
        if not collection.is_expected(file, unpacked[file]):
            raise _Unusable(f"its {file} is not the expected one: damaged on the way, or changed there")
    return {file: unpacked[file] for file in collection.cached}


def _unwritable(folder: Path, error: OSError) -> InputError:
    return InputError(
        f"The cache {folder} cannot be written: {error.strerror}. Set TUCKERGP_CACHE to a folder that can."
    )


def _download(url: str, target: Path, label: str) -> None:
    import pooch
    import requests

    try:
        with _progress_bar(label) as bar:
            pooch.HTTPDownloader(progressbar=bar, chunk_size=_CHUNK, timeout=TIMEOUT)(url, str(target), None)
    except requests.HTTPError as error:
        status = "an error" if error.response is None else error.response.status_code
        raise _Unusable(f"it answered HTTP {status}") from None
    except requests.Timeout:
        raise _Unusable(f"no answer within {TIMEOUT:g} seconds") from None
    except requests.exceptions.ChunkedEncodingError:
        raise _Unusable("the connection broke off") from None
    except requests.ConnectionError as error:
        # a read that times out half-way is wrapped so
        late = "timed out" in str(error)
        raise _Unusable(f"no answer within {TIMEOUT:g} seconds" if late else "no connection") from None
    except (requests.RequestException, OSError) as error:
        raise _Unusable(f"{type(error).__name__}: {error}".splitlines()[0]) from None


def zip_members(archive: Path, members: dict[str, str]) -> dict[str, bytes]:
    """Some members of a zip file: {file: member} -> {file: content}; those that are not there are left out."""
    files = {}
    with zipfile.ZipFile(archive) as opened:
        sizes = {info.filename: info.file_size for info in opened.infolist()}
        for file, member in members.items():
            if member in sizes and sizes[member] <= _LARGEST_MEMBER:
                files[file] = opened.read(member)
    return files


def tar_member(archive: Path, member: str) -> bytes | None:
    """The content of a regular file in a tar archive, None where there is no such file."""
    with tarfile.open(archive) as opened:
        for info in opened:
            if info.name == member and info.isfile() and info.size <= _LARGEST_MEMBER:
                content = opened.extractfile(info)
                return None if content is None else content.read()
    return None


@contextmanager
def _progress_bar(label: str) -> Iterator[Any]:
    """What pooch takes as a progress bar: one by rich on a terminal, else False."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield False
        return
    bar = RichBar(label, console)
    try:
        yield bar
    finally:
        bar.close()


class RichBar:
    """A progress bar by rich with the four names that pooch calls: `total`, `update`, `reset`, `close`."""

    def __init__(self, label: str, console: Any) -> None:
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

        self._progress = Progress(
            TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), console=console
        )
        self._task = self._progress.add_task(label, total=None)
        self._total = 0
        self._progress.start()

    @property
    def total(self) -> int:
        """Bytes to come; 0 where the server does not say."""
        return self._total

    @total.setter
    def total(self, total: int) -> None:
        self._total = total
        self._progress.update(self._task, total=total or None)

    def update(self, n: int) -> None:
        """Advance the bar by this many bytes."""
        self._progress.advance(self._task, n)

    def reset(self) -> None:
        """Set the bar back to 0 bytes, as pooch does before it fills it."""
        self._progress.update(self._task, completed=0)

    def close(self) -> None:
        """Leave the bar as it is on the screen."""
        self._progress.stop()
