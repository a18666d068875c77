"""Model files: `save` writes all that a fitted model needs to answer, `load` reads it back.

A file is a ZIP archive of ``model.json`` (settings, structure, a list of the other members), ``arrays.safetensors``
(draws, features) and ``tables/*.parquet`` (ids, ratings, attributes). No pickle: only listed classes are built, and
nothing in a file is ever run, or written anywhere. The format is described in docs/format.md.
"""

from __future__ import annotations

import json
import os
import re
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from sklearn.utils.validation import check_is_fitted

import tuckergp
from tuckergp.data.frames import usable_backend
from tuckergp.errors import InputError
from tuckergp.files import check_writable, writing

__all__ = ["Storable", "load"]

FORMAT = "tuckergp model"
MAJOR, MINOR = 1, 0
"""A minor version adds what older readers can do without; anything else is a new major version."""

MANIFEST = "model.json"
ARRAYS = "arrays.safetensors"
EPOCH = (1980, 1, 1, 0, 0, 0)
PIECE = 1 << 20


class Storable:
    """An estimator that can be saved."""

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a file, which `tuckergp.load` reads.

        The file has all that predictions, recommendations and further learning need; the training data are not needed
        again. It takes the place of an old one in one move. A ``random_state`` that is a generator becomes None.

        Parameters
        ----------
        path : path
            The file, such as ``model.tgp``.

        Examples
        --------
        >>> import tempfile, tuckergp
        >>> from tuckergp.datasets import make_ratings
        >>> data = make_ratings(n_users=30, n_items=20, n_ratings=300, random_state=0)
        >>> rec = tuckergp.TuckerRecommender(rank=2, draws=5, random_state=0).fit(data.train)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     rec.save(f"{folder}/model.tgp")
        ...     again = tuckergp.load(f"{folder}/model.tgp")
        >>> bool((again.predict(data.test) == rec.predict(data.test)).all())
        True
        """
        check_is_fitted(self, msg="This %(name)s is not fitted yet; call fit before save.")
        path = Path(path)
        try:
            check_writable(path)
            _save(self, path)
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror or error}.") from error


def load(path: str | Path) -> Any:
    """Read a model that `save` wrote.

    Parameters
    ----------
    path : path

    Returns
    -------
    TuckerRecommender or TuckerGPRegressor
        Whichever was saved, with the same parameters to the last bit.

    Raises
    ------
    InputError
        Where there is no such file, where it is damaged, or where it needs a newer tuckergp.
    """
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder; name the model file in it.")
    try:
        with open(path, "rb") as file:
            return _load(file, path.name)
    except FileNotFoundError:
        raise InputError(f"There is no model file {path}.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error


# Writing


def _save(model: Storable, path: Path) -> None:
    from tuckergp.store import schema
    from tuckergp.store.packing import Packer
    from tuckergp.store.tensors import write_tensors

    packer = Packer()
    try:
        kind = packer.name(type(model))
        if kind not in schema.ESTIMATORS:
            raise TypeError(f"a {kind} cannot be stored")
        settings, notes = _settings(model)
        structure = {
            "parameters": {name: packer.at(name, value) for name, value in settings.items()},
            "state": {name: packer.at(name, value) for name, value in schema.fitted(model).items()},
        }
    except TypeError as error:
        where = f" in {'.'.join(packer.path)}" if packer.path else ""
        raise InputError(
            f"{path.name} is not written: {error}{where}; a file holds numbers, text, bytes, dates, UUIDs, tuples of "
            f"these, and the kernels and features of tuckergp itself."
        ) from error
    known = {
        "format": FORMAT,
        "version": f"{MAJOR}.{MINOR}",
        "tuckergp": tuckergp.__version__,
        "kind": kind,
        "notes": notes,
    }
    with writing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        members = {ARRAYS: _add(archive, ARRAYS, write_tensors(packer.arrays))}
        for name, content in packer.tables.items():
            members[_table(name)] = _add(archive, _table(name), [content])
        text = json.dumps({**known, "members": members, **structure}, allow_nan=False)
        _add(archive, MANIFEST, [text.encode()])


def _settings(model: Any) -> tuple[dict[str, Any], list[str]]:
    settings, notes = dict(model.get_params(deep=False)), []
    if isinstance(settings.get("random_state"), np.random.Generator | np.random.RandomState):
        settings["random_state"] = None
        notes.append("random_state was a generator, which a file cannot hold; it is None.")
    return settings, notes


def _table(name: str) -> str:
    return f"tables/{name}.parquet"


def _add(archive: zipfile.ZipFile, name: str, pieces: Iterable[bytes | memoryview]) -> dict[str, int]:
    """Write a member piece by piece; its size and checksum."""
    size = checksum = 0
    # the date is fixed, so that the same model is the same file
    with archive.open(zipfile.ZipInfo(name, EPOCH), "w", force_zip64=True) as member:
        for piece in pieces:
            member.write(piece)
            size += len(piece)
            checksum = zlib.crc32(piece, checksum)
    return {"size": size, "crc32": checksum}


# Reading


class _Damage(Exception):
    """What is wrong with a file."""


class _OtherVersion(Exception):
    """A file that is in order, but not for this version."""


def _load(file: BinaryIO, name: str) -> Any:
    from tuckergp.store.schema import UnknownClass

    newer = False
    try:
        archive = _open(file)
        manifest = _read_manifest(archive)
        newer = _check_version(manifest, name)
        return _restore(manifest, archive)
    except MemoryError:  # of a file that is too large for this machine
        raise
    except _OtherVersion as error:
        raise InputError(str(error)) from None
    except UnknownClass as error:
        if newer:
            raise InputError(
                f"{name} was written by tuckergp {manifest.get('tuckergp')} and holds a {error}, which this tuckergp "
                f"does not know: update tuckergp."
            ) from error
        raise _damaged(name, f"it holds a {error}, which no model has") from error
    except zipfile.BadZipFile as error:
        raise _damaged(name, "it is not whole") from error
    except _Damage as error:
        raise _damaged(name, str(error)) from error
    except Exception as error:  # whatever a file may hold, its reader gets one sentence
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise _damaged(name, f"its content makes no sense ({what[:200]})") from error


def _damaged(name: str, what: str) -> InputError:
    return InputError(f"{name} is damaged or no tuckergp model: {what}. Fit and save it again.")


class _Archive:
    """The members of a file, each read once and checked."""

    def __init__(self, archive: zipfile.ZipFile, end: int) -> None:
        self.members: dict[str, zipfile.ZipInfo] = {}
        self._archive = archive
        for member in archive.infolist():
            if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
                raise _Damage(f"{member.filename} is compressed")
            if member.filename in self.members or member.header_offset + member.file_size > end:
                raise _Damage("its members overlap")
            self.members[member.filename] = member

    def read(self, name: str) -> bytearray:
        """The content of a member; reading it to its end compares it with its checksum."""
        if name not in self.members:
            raise _Damage(f"it lacks {name}")
        content = bytearray(self.members[name].file_size)
        view, done = memoryview(content), 0
        with self._archive.open(self.members[name]) as member:
            while piece := member.read(PIECE):
                view[done : done + len(piece)] = piece
                done += len(piece)
        if done != len(content):
            raise _Damage(f"{name} is not whole")
        return content


def _open(file: BinaryIO) -> _Archive:
    end = file.seek(0, os.SEEK_END)
    if end == 0:
        raise _Damage("it is empty")
    return _Archive(zipfile.ZipFile(file), end)


def _read_manifest(archive: _Archive) -> dict[str, Any]:
    try:
        manifest = json.loads(archive.read(MANIFEST))
    except (ValueError, RecursionError) as error:
        raise _Damage(f"{MANIFEST} cannot be read") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise _Damage(f"{MANIFEST} is of something else")
    return manifest


def _check_version(manifest: Mapping[str, Any], name: str) -> bool:
    """Refuse another major version; whether the minor one is newer than ours."""
    version = manifest.get("version")
    found = re.fullmatch(r"(\d{1,6})\.(\d{1,6})", version) if isinstance(version, str) else None
    if found is None:
        raise _Damage(f"{MANIFEST} has no version")
    major, minor = map(int, found.groups())
    if major != MAJOR:
        remedy = "update tuckergp" if major > MAJOR else "fit and save it again"
        raise _OtherVersion(f"{name} was written in format {version}; this tuckergp reads format {MAJOR}.x: {remedy}.")
    return minor > MINOR


def _restore(manifest: Mapping[str, Any], archive: _Archive) -> Any:
    from tuckergp.store import schema
    from tuckergp.store.packing import Unpacker
    from tuckergp.store.tensors import read_tensors

    for name, expected in manifest["members"].items():
        member = archive.members.get(name)
        if member is None:
            raise _Damage(f"it lacks {name}")
        if {"size": member.file_size, "crc32": member.CRC} != expected:
            raise _Damage(f"{name} is of another model")
    if manifest["kind"] not in schema.ESTIMATORS:
        raise schema.UnknownClass(manifest["kind"])
    arrays = read_tensors(archive.read(ARRAYS))
    unpacker = Unpacker(arrays, lambda name: archive.read(_table(name)))
    kind: Any = schema.class_of(manifest["kind"])
    parameters = {name: unpacker.decode(value) for name, value in manifest["parameters"].items()}
    model = kind(**{name: value for name, value in parameters.items() if name in kind().get_params(deep=False)})
    state = {name: unpacker.decode(value) for name, value in manifest["state"].items()}
    if "backend_" in state:
        state["backend_"] = usable_backend(state["backend_"])
    schema.learn(model, state)
    _check(model)
    return model


def _check(model: Any) -> None:
    from tuckergp.store.checks import check_recommender, check_regressor

    try:
        if hasattr(model, "layout_"):
            check_recommender(model.layout_, model.history_, model.fit_)
        else:
            check_regressor(model.modes_, model.fit_)
    except ValueError as error:
        raise _Damage(str(error)) from error
