"""Model files: `save` writes all that a fitted model needs for its predictions, `load` reads it back.

A file is a ZIP archive of ``model.json`` (settings, structure, a list of the other members), ``rows/*.safetensors``
(draws and ratings, one tensor each, memory-mapped), ``arrays.safetensors`` (all other arrays) and ``tables/*.parquet``
(ids, attributes). No pickle: only listed classes are built, and nothing in a file is executed or unpacked to disk. The
format is described in docs/format.md.
"""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
import numpy.typing as npt

import tuckergp
from tuckergp.data.frames import usable_backend
from tuckergp.errors import InputError
from tuckergp.files import as_path, check_writable, writing
from tuckergp.params import check_fitted
from tuckergp.store.archive import Archive, Damage, OtherVersion, add_member
from tuckergp.store.stored_rows import DamagedFile, StoredRows, damaged, pieces_of, rows_in_piece
from tuckergp.store.tensors import as_bytes, header_of, read_header, read_tensors, write_tensors

__all__ = ["Storable", "check_savable", "load"]

FORMAT = "tuckergp model"
MAJOR, MINOR = 2, 0
"""A minor version adds only what older readers can ignore; any other change is a new major version."""

MANIFEST = "model.json"
ARRAYS = "arrays.safetensors"
# A tensor by itself has a short header.
LONGEST_HEADER = 1 << 16


class Storable:
    """An estimator that can be saved."""

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a file, which `tuckergp.load` reads.

        The file holds all that predictions, recommendations and further learning need; the training data are not
        needed again. It replaces an old file atomically, even the one that the model was loaded from. A
        ``random_state`` that is a generator becomes None.

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
        check_savable(self, path)
        try:
            _save(self, Path(path))
        except OSError as error:
            raise _unwritable(path, error) from error

    @classmethod
    def load(cls, path: str | Path, verify: bool = False) -> Self:
        """Read a model of this class that `save` wrote; see `tuckergp.load`."""
        model = load(path, verify)
        if not isinstance(model, cls):
            raise InputError(f"{path} holds a {type(model).__name__}, not a {cls.__name__}; use tuckergp.load.")
        return model

    def _check_parts(self) -> None:
        """Raise a ValueError for a model from a file whose parts do not fit together."""
        raise NotImplementedError


def load(path: str | Path, verify: bool = False) -> Any:
    """Read a model that `save` wrote.

    Draws and ratings, most of a file, are not read but mapped into memory: loading takes little time and memory
    whatever their size, and processes that load the same file share one copy. Each piece of them is compared with its
    checksum when a prediction first needs it; everything else is compared here. Do not write into a file that is in
    use; `save` replaces it.

    Parameters
    ----------
    path : path
    verify : bool
        Compare everything with its checksums now.

    Returns
    -------
    TuckerRecommender or TuckerGPRegressor
        The model that was saved, with exactly the same parameters.

    Raises
    ------
    InputError
        If there is no such file, it is damaged, or it needs a newer tuckergp. A damaged piece of draws or ratings
        raises it here with ``verify``, otherwise in each prediction that needs the piece.
    """
    path = as_path(path, "A model file")
    if path.is_dir():
        raise InputError(f"{path} is a folder; name the model file in it.")
    try:
        with open(path, "rb") as file:
            return _load(file, path.name, verify)
    except FileNotFoundError:
        raise InputError(f"There is no model file {path}.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error


# Writing


def check_savable(model: Storable, path: str | Path) -> None:
    """Refuse a model that is not fitted, or a file that cannot be written."""
    check_fitted(model, "save")
    try:
        check_writable(as_path(path, "A model file"))
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: str | Path, error: OSError) -> InputError:
    return InputError(f"{path} cannot be written: {error.strerror or error}.")


def _save(model: Storable, path: Path) -> None:
    from tuckergp.store import schema
    from tuckergp.store.packing import Packer

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
        members = {_rows(name): _add_rows(archive, name, rows) for name, rows in packer.rows.items()}
        members[ARRAYS] = add_member(archive, ARRAYS, write_tensors(packer.arrays))
        for name, content in packer.tables.items():
            members[_table(name)] = add_member(archive, _table(name), [content])
        text = json.dumps({**known, "members": members, **structure}, allow_nan=False)
        add_member(archive, MANIFEST, [text.encode()])


def _add_rows(archive: zipfile.ZipFile, name: str, rows: Any) -> dict[str, Any]:
    """Write a tensor as a member of its own; return size, checksum, rows per piece and the checksums of pieces."""
    step, checksums = rows_in_piece(rows.shape, rows.dtype), []

    def pieces() -> Iterator[bytes | memoryview]:
        yield header_of({name: rows})
        for piece in map(as_bytes, pieces_of(rows, step)):
            checksums.append(zlib.crc32(piece))
            yield piece

    return {**add_member(archive, _rows(name), pieces()), "piece": step, "pieces": checksums}


def _settings(model: Any) -> tuple[dict[str, Any], list[str]]:
    settings, notes = dict(model.get_params(deep=False)), []
    if isinstance(settings.get("random_state"), np.random.Generator | np.random.RandomState):
        settings["random_state"] = None
        notes.append("random_state was a generator, which a file cannot hold; it is None.")
    return settings, notes


def _table(name: str) -> str:
    return f"tables/{name}.parquet"


def _rows(name: str) -> str:
    return f"rows/{name}.safetensors"


# Reading


def _load(file: BinaryIO, name: str, verify: bool) -> Any:
    from tuckergp.store.schema import UnknownClass

    newer = False
    if file.read(1) != b"P":
        raise damaged(name, "it is no file that save or tuckergp fit has written")
    file.seek(0)
    try:
        archive = Archive(file)
        manifest = _read_manifest(archive)
        newer = _check_version(manifest)
        content = _Content(archive, manifest["members"], name)
        model = _restore(manifest, content)
    except (MemoryError, DamagedFile):  # of a file that is too large for this machine, or said already
        raise
    except OtherVersion as error:
        raise InputError(f"{name} {error}") from None
    except UnknownClass as error:
        if newer:
            raise InputError(
                f"{name} was written by tuckergp {manifest.get('tuckergp')} and holds a {error}, which this tuckergp "
                f"does not know: update tuckergp."
            ) from error
        raise damaged(name, f"it holds a {error}, which no model has") from error
    except zipfile.BadZipFile as error:
        raise damaged(name, "it is not whole") from error
    except Damage as error:
        raise damaged(name, str(error)) from error
    except Exception as error:  # whatever a file may hold, its reader gets one sentence
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise damaged(name, f"its content makes no sense ({what[:200]})") from error
    if verify:
        content.verify()
    return model


def _read_manifest(archive: Archive) -> dict[str, Any]:
    try:
        manifest = json.loads(archive.read(MANIFEST), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise Damage(f"{MANIFEST} cannot be read") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise Damage(f"{MANIFEST} is of something else")
    return manifest


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number of JSON")


def _check_version(manifest: Mapping[str, Any]) -> bool:
    """Refuse an unknown major version; return whether the version is newer than ours."""
    version = manifest.get("version")
    numbers = re.fullmatch(r"(\d{1,6})\.(\d{1,6})", version) if isinstance(version, str) else None
    if numbers is None:
        raise Damage(f"{MANIFEST} has no version")
    major, minor = map(int, numbers.groups())
    if not 1 <= major <= MAJOR:
        remedy = "update tuckergp" if major > MAJOR else "fit and save it again"
        raise OtherVersion(f"was written in format {version}; this tuckergp reads formats 1.x to {MAJOR}.x: {remedy}.")
    return (major, minor) > (MAJOR, MINOR)


class _Content:
    """The members of a file that the structure in its manifest refers to."""

    def __init__(self, archive: Archive, members: Mapping[str, Any], name: str) -> None:
        self.archive, self.members, self.name = archive, members, name
        self._mapped: list[StoredRows] = []
        for member, expected in members.items():
            info = archive.member(member)
            if (info.file_size, info.CRC) != (expected["size"], expected["crc32"]):
                raise Damage(f"{member} is of another model")

    @property
    def size(self) -> int:
        """Bytes of the whole file."""
        return self.archive.size

    @cached_property
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The tensors that are read into memory."""
        return read_tensors(self.archive.read(ARRAYS))

    def rows(self, key: str, shape: list[int], below: int | None, times: str | None = None) -> StoredRows:
        """A mapped tensor, whose rows are compared with its checksums when they are first read."""
        if not (below is None or (type(below) is int and times is None)):
            raise ValueError(f"the numbers of {key} have no bound")
        member = _rows(key)
        size, expected = self.archive.member(member).file_size, self.members[member]
        ((name, place),) = read_header(self.archive.head(member, 8 + LONGEST_HEADER), size, LONGEST_HEADER).items()
        checksums, step = np.array(expected["pieces"], dtype=np.uint32), expected["piece"]
        count = -(-shape[0] // step) if type(step) is int and step > 0 else -1
        if name != key or place.shape != tuple(shape) or checksums.shape != (count,):
            raise ValueError(f"{member} does not hold what it should")
        array = self.archive.array(member, place)
        rows = StoredRows(array if times is None else _times(array, times), checksums, step, self.name, key, below)
        self._mapped.append(rows)
        return rows

    def table(self, key: str) -> bytearray:
        """The content of a Parquet file."""
        return self.archive.read(_table(key))

    def verify(self) -> None:
        """Compare all tensors that were mapped with their checksums."""
        for rows in self._mapped:
            rows.verify()


def _times(array: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    dtype = np.dtype(name)
    if dtype.kind not in "mM" or array.dtype != np.int64:
        raise ValueError(f"{name} is no time")
    return array.view(dtype)


def _restore(manifest: Mapping[str, Any], content: _Content) -> Any:
    from tuckergp.store import format_1, schema
    from tuckergp.store.packing import Unpacker

    if manifest["kind"] not in schema.ESTIMATORS:
        raise schema.UnknownClass(manifest["kind"])
    first = manifest["version"].startswith("1.")
    unpacker = format_1.Unpacker(content) if first else Unpacker(content)
    kind: Any = schema.class_of(manifest["kind"])
    known = kind().get_params(deep=False)
    parameters = {name: unpacker.decode(value) for name, value in manifest["parameters"].items()}
    model = kind(**{name: value for name, value in parameters.items() if name in known})
    state = {name: unpacker.decode(value) for name, value in manifest["state"].items()}
    if first:
        state = format_1.converted(state, model.likelihood)
    if "backend_" in state:
        state["backend_"] = usable_backend(state["backend_"])
    schema.learn(model, state)
    try:
        model._check_parts()
    except ValueError as error:
        raise Damage(str(error)) from error
    return model
