"""Checkpoints: a folder to which every chain is saved, so that a stopped run can go on where it was.

``chain-0.safetensors`` holds the state, steps, traces and moments of chain 0. Its draws are in files of their own, so
that each is written once: ``chain-0-draws-0.safetensors`` and so on, by the number of the first. Files are replaced
atomically, those of draws before the one that counts them: a run that dies leaves a valid folder. Every file has the
fingerprint of its run and its own name, so that none takes the place of another. ``choice.json`` holds what was chosen
before sampling, by trial. No pickle.
"""

from __future__ import annotations

import json
import os
import warnings
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from tuckergp.errors import CheckpointWarning, InputError
from tuckergp.files import in_use, remove_abandoned, write_bytes, write_text
from tuckergp.inference.base import Info
from tuckergp.posterior.draws import Stack
from tuckergp.posterior.moments import Running
from tuckergp.store.trees import decode, encode

__all__ = ["ChainRecord", "Checkpoint", "delete_checkpoint", "store_choice", "stored_choice", "stored_seed"]

FORMAT = "tuckergp checkpoint"
VERSION = "2"
CHOICE = "choice.json"


@dataclass
class ChainRecord:
    """One chain so far: its state, draws, figures and moments.

    Attributes
    ----------
    chain : int
    state : NamedTuple or None
        None before the first sweep.
    steps : list of Info
        The figures of every sweep.
    draws : Stack
        The draws that are kept.
    watched : list of dict of str to ndarray
        For every draw, kept or not: f at some observations, noise, log likelihoods.
    moments : dict of str to Running
    stored : list of int
        After each save that had new draws, how many draws the checkpoint held.
    """

    chain: int
    state: Any = None
    steps: list[Info] = field(default_factory=list)
    draws: Stack = field(default_factory=lambda: Stack(0))
    watched: list[dict[str, npt.NDArray[np.float64]]] = field(default_factory=list)
    moments: dict[str, Running] = field(default_factory=dict)
    stored: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Checkpoint:
    """The checkpoint of one run: its folder, and the fingerprint of the data and settings it belongs to."""

    folder: Path
    fingerprint: str
    seed: int
    steps: int

    @contextmanager
    def held(self) -> Iterator[None]:
        """Create the folder where needed, and keep other runs out of it."""
        self.make_folder()
        with in_use(self.folder, f"The checkpoint {self.folder}"):
            remove_abandoned(self.folder)
            yield

    def sweeps(self, chains: int) -> list[int]:
        """How many sweeps of each chain it holds; an error where it is of another run."""
        return [self._sweeps(chain) for chain in range(chains)]

    def make_folder(self) -> None:
        """Create the folder where it is not there yet; refuse a place where it cannot be."""
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"The checkpoint {self.folder} is a file; name a folder, new or of an earlier run.")
        if not self.folder.parent.is_dir():
            raise InputError(f"There is no folder {self.folder.parent} to make the checkpoint {self.folder.name} in.")
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(f"The checkpoint folder {self.folder} cannot be made: {error.strerror}.") from error
        if not os.access(self.folder, os.W_OK):
            raise InputError(f"The checkpoint folder {self.folder} cannot be written to; name another.")

    def _sweeps(self, chain: int) -> int:
        path = self._path(chain)
        if not path.exists():
            return 0
        known = _metadata(path)
        if known.get("fingerprint") != self.fingerprint:
            raise InputError(
                f"The checkpoint {path} is of other data or settings; give those that it was made with, or name a new "
                f"folder."
            )
        sweeps = _whole(known, "sweeps", path)
        if sweeps > self.steps:
            raise InputError(
                f"The checkpoint {path} holds {sweeps} sweeps, more than the {self.steps} asked for; raise draws, or "
                f"name a new folder."
            )
        return sweeps

    def load(self, empty: ChainRecord) -> ChainRecord:
        """The chain as it was last saved; the empty record if it never was."""
        path = self._path(empty.chain)
        if not path.exists():
            return empty
        record: ChainRecord = replace(self._read(path), draws=empty.draws)
        for first, end in pairwise([0, *record.stored]):
            record.draws.extend(self._read_draws(record.chain, first, end))
        return record

    def _read_draws(self, chain: int, first: int, end: int) -> Stack:
        path = self._path(chain, first)
        if not path.exists():
            raise InputError(f"The checkpoint lacks its file {path}; delete the folder to start again.")
        draws = self._read(path)
        if not isinstance(draws, Stack) or len(draws) != end - first:
            raise _damaged(path)
        return draws

    def _read(self, path: Path) -> Any:
        """The content of a file of this run, that of no other chain and no other piece of one."""
        known = _metadata(path)
        # files of earlier versions do not say which they are
        if known["fingerprint"] != self.fingerprint or known.get("file", path.name) != path.name:
            raise InputError(
                f"The checkpoint file {path} belongs to another run or another chain; put its own file back, or delete "
                f"the folder to start again."
            )
        return _read(path)

    def save(self, record: ChainRecord) -> None:
        """Write the draws that are new, then everything else."""
        first = record.stored[-1] if record.stored else 0
        if len(record.draws) > first:
            self._write(self._path(record.chain, first), record.draws.part(first, len(record.draws)), {})
            record.stored.append(len(record.draws))
        self._write(self._path(record.chain), replace(record, draws=Stack(0)), {"sweeps": str(len(record.steps))})

    def _path(self, chain: int, first: int | None = None) -> Path:
        return self.folder / (f"chain-{chain}" + ("" if first is None else f"-draws-{first}") + ".safetensors")

    def _write(self, path: Path, tree: Any, more: Mapping[str, str]) -> None:
        structure, arrays = encode(tree)
        # the JSON is an array as well: the header of a file has a largest size
        arrays["tree"] = np.frombuffer(json.dumps(structure).encode(), dtype=np.uint8)
        metadata = {
            "format": FORMAT,
            "version": VERSION,
            "fingerprint": self.fingerprint,
            "file": path.name,
            "seed": str(self.seed),
            "checksum": _checksum(arrays),
            **more,
        }
        write_bytes(path, save(arrays, metadata))


def stored_choice(folder: str | Path | None, fingerprint: str) -> Any:
    """What a run with this fingerprint chose before it sampled, as {"choice": ...}; None where it has not yet."""
    path = None if folder is None else Path(folder) / CHOICE
    if path is None or not path.is_file():
        return None
    try:
        known = json.loads(path.read_bytes())
        return {"choice": known["choice"]} if known["fingerprint"] == fingerprint else None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _damaged(path) from error


def store_choice(folder: str | Path | None, fingerprint: str, choice: Any) -> None:
    """Keep what a run chose, so that it is not chosen anew when the run goes on; warn where that fails."""
    if folder is None:
        return
    Checkpoint(Path(folder), fingerprint, 0, 0).make_folder()
    try:
        write_text(Path(folder) / CHOICE, json.dumps({"fingerprint": fingerprint, "choice": choice}))
    except OSError as error:  # as on a full disk
        warnings.warn(
            f"What was chosen by trial cannot be saved in the checkpoint {folder}: {error.strerror or error}. The fit "
            f"goes on without.",
            CheckpointWarning,
            stacklevel=2,
        )


def stored_seed(folder: str | Path | None) -> int | None:
    """The seed of the run in a checkpoint, from the first chain that was saved; None where there is none yet."""
    files = [] if folder is None else sorted(Path(folder).glob("chain-*.safetensors"))
    saved = [path for path in files if "draws" not in path.name]
    return _whole(_metadata(saved[0]), "seed", saved[0]) if saved else None


def delete_checkpoint(folder: str | Path) -> None:
    """Delete the files of a checkpoint, and its folder if nothing else is in it; other files are left alone."""
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"There is no checkpoint {folder}; name the folder that fit was given.")
    with in_use(folder, f"The checkpoint {folder}"):
        for path in (*folder.glob("chain-*.safetensors"), folder / CHOICE):
            path.unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()


def _checksum(arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    checksum = 0
    for name in sorted(arrays):
        checksum = zlib.crc32(arrays[name].tobytes(), checksum)
    return str(checksum)


def _metadata(path: Path) -> dict[str, str]:
    try:
        with safe_open(path, framework="numpy") as file:
            known: dict[str, str] = file.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise _damaged(path) from error
    if known.get("format") != FORMAT or not {"seed", "fingerprint", "checksum"} <= known.keys():
        raise _damaged(path)
    if known.get("version") != VERSION:
        raise InputError(
            f"The checkpoint {path} has format {known.get('version')}, this version of tuckergp reads {VERSION}; "
            f"delete the folder to start again."
        )
    return known


def _whole(known: Mapping[str, str], name: str, path: Path) -> int:
    """A number that a file says about itself."""
    try:
        return int(known[name])
    except (KeyError, ValueError) as error:
        raise _damaged(path) from error


def _read(path: Path) -> Any:
    known = _metadata(path)
    try:
        with safe_open(path, framework="numpy") as file:
            # copies, because numba compiles a second version of each function for read-only arrays
            arrays = {name: np.array(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
        if _checksum(arrays) != known["checksum"]:
            raise _damaged(path)
        return decode(json.loads(arrays.pop("tree").tobytes()), arrays)
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise _damaged(path) from error


def _damaged(path: Path) -> InputError:
    return InputError(f"The checkpoint file {path} is damaged or no checkpoint; delete its folder to start again.")
