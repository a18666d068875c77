"""Edits of model files whose checksums are then repaired, and the use of what is left.

``python -m tests.store.edits 10000`` makes that many edits and reports all that end otherwise than with an answer or an
`InputError` in little time and memory; ``--only recommender --first 2500`` resumes such a run. The normal suite makes a
small sample of them.
"""

from __future__ import annotations

import argparse
import gc
import io
import json
import math
import resource
import signal
import tempfile
import time
import traceback
import tracemalloc
import warnings
import zipfile
import zlib
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from tests.store.files import set_shape
from tests.store.make_model_files import recommender, regressor
from tuckergp import load
from tuckergp.errors import InputError
from tuckergp.store.stored_rows import pieces_of
from tuckergp.store.tensors import as_bytes, header_of

SECONDS = 20
"""How many CPU seconds the use of a file may take."""

SPACE = 4 << 30
"""Bytes that a process may have, so that a file that needs more ends with an error, not the machine."""

VALUES: list[Any] = [
    *(None, True, False, 0, 1, 2, 3, -1, 7, 10**9, 10**30, 0.5, -2.5, 1e300, 1e-300, math.nan, math.inf, -math.inf),
    *("", "x", "nan", "auto", "week", [], {}, [0], [None], {"tuple": []}, {"float": "nan"}, {"float": "inf"}),
    *({"count": 10**9}, {"stack": [10**9, {"same": None}]}, {"range": [0, 10**9, 1]}, {"slice": [0, 10**9, None]}),
    *({"dict": {}}, {"dict": {"x": 1}}, {"objects": []}, {"bytes": "eA=="}, {"type": "SE", "fields": {}}),
]
NUMBERS = [0, 1, -1, 2, 5, 10**9, 2**62, 0.5, -0.5, 1e300, -1e300, 1e-300, math.nan, math.inf, -math.inf]


class EditedFile:
    """The members of a model file, of which one thing is changed at a time."""

    def __init__(self, path: Path) -> None:
        with zipfile.ZipFile(path) as archive:
            self.members = {name: archive.read(name) for name in archive.namelist()}
        self.manifest = self.members.pop("model.json")
        known = json.loads(self.manifest)
        tree = {name: known[name] for name in ("parameters", "state")}
        self.places = list(_places(tree))
        self.leaves = [place for place in self.places if not isinstance(_at(tree, place), dict | list)]
        self.tensors = load_tensors(self.members["arrays.safetensors"])
        self.size = path.stat().st_size

    def write(self, path: Path, rng: np.random.Generator) -> str:
        """Write the file with one edit and return what it is."""
        known, members = json.loads(self.manifest), dict(self.members)
        edit = rng.choice([self._value, self._removed, self._moved, self._array, self._rows, self._cell],
            p=[0.35, 0.1, 0.1, 0.2, 0.15, 0.1])  # fmt: skip
        what = edit(known, members, rng)
        for name, content in members.items():
            known["members"][name] |= {"size": len(content), "crc32": zlib.crc32(content)}
        members["model.json"] = json.dumps(known).encode()
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        return what

    def _value(self, known: Any, members: Any, rng: np.random.Generator) -> str:
        chosen = self.leaves if rng.random() < 0.8 else self.places
        place = chosen[rng.integers(len(chosen))]
        value = VALUES[rng.integers(len(VALUES))]
        _at(known, place[:-1])[place[-1]] = value
        return f"{_name(place)} = {value!r}"

    def _removed(self, known: Any, members: Any, rng: np.random.Generator) -> str:
        place = self.places[rng.integers(len(self.places))]
        del _at(known, place[:-1])[place[-1]]
        return f"without {_name(place)}"

    def _moved(self, known: Any, members: Any, rng: np.random.Generator) -> str:
        place, other = (self.places[k] for k in rng.integers(len(self.places), size=2))
        value = json.loads(json.dumps(_at(known, other)))
        _at(known, place[:-1])[place[-1]] = value
        return f"{_name(place)} = {_name(other)}"

    def _array(self, known: Any, members: Any, rng: np.random.Generator) -> str:
        tensors = dict(self.tensors)
        key = sorted(tensors)[rng.integers(len(tensors))]  # safetensors gives them in any order
        tensors[key], what = _changed(tensors[key], rng)
        members["arrays.safetensors"] = save_tensors(tensors)
        return f"{key} {what}"

    def _rows(self, known: Any, members: Any, rng: np.random.Generator) -> str:
        names = [name for name in members if name.startswith("rows/")]
        name = names[rng.integers(len(names))]
        ((key, tensor),) = load_tensors(members[name]).items()
        tensor, what = _changed(tensor, rng)
        members[name] = header_of({key: tensor}) + bytes(as_bytes(tensor))
        pieces = pieces_of(tensor, known["members"][name]["piece"]) if tensor.ndim else []
        known["members"][name]["pieces"] = [zlib.crc32(as_bytes(piece)) for piece in pieces]
        set_shape(known, key, list(tensor.shape))
        return f"{key} {what}"

    def _cell(self, known: Any, members: Any, rng: np.random.Generator) -> str:
        names = [name for name in members if name.startswith("tables/")]
        if not names:
            return "nothing"
        name = names[rng.integers(len(names))]
        table = parquet.read_table(io.BytesIO(members[name]))
        j = int(rng.integers(table.num_columns))
        column = table.column(j).to_pylist()
        place = int(rng.integers(max(len(column), 1)))
        value: Any = None
        if column:
            mine = column[place]
            others: list[Any] = [None, column[int(rng.integers(len(column)))]]
            if isinstance(mine, str):
                others += ["", "x", "[]", '{"float": "nan"}', "{", '{"tuple": []}']
            if isinstance(mine, int | float) and not isinstance(mine, bool):
                others += [0, -1, 10**9, -(2**62)] if isinstance(mine, int) else [math.nan, math.inf, 1e300, -1.0]
            value = column[place] = others[rng.integers(len(others))]
        try:
            made = pa.array(column, table.column(j).type)
        except (pa.ArrowInvalid, OverflowError):
            made = pa.array(column)
        table = table.set_column(j, table.field(j).name, made)
        file = io.BytesIO()
        parquet.write_table(table, file, compression="zstd", store_schema=False, version="2.6")
        members[name] = file.getvalue()
        return f"{name} column {j} row {place} = {value!r}"


def _places(node: Any, where: tuple[Any, ...] = ()) -> Any:
    steps = node.items() if isinstance(node, dict) else enumerate(node)
    for step, value in steps:
        if where:
            yield (*where, step)
        if isinstance(value, dict | list):
            yield from _places(value, (*where, step))


def _at(node: Any, place: tuple[Any, ...]) -> Any:
    for step in place:
        node = node[step]
    return node


def _name(place: tuple[Any, ...]) -> str:
    return ".".join(map(str, place))


def _changed(tensor: Any, rng: np.random.Generator) -> tuple[Any, str]:
    """A tensor with one number, all numbers, the shape or the type changed, and what that is."""
    kind = rng.integers(10)
    if kind < 6 or not tensor.ndim:
        value = NUMBERS[rng.integers(len(NUMBERS))]
        changed = np.array(tensor)
        place = rng.integers(max(tensor.size, 1)) if kind < 5 else slice(None)
        if tensor.size:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                changed.reshape(-1)[place] = np.array(value).astype(tensor.dtype)
        return changed, f"[{place}] = {value}"
    if kind == 6:
        return np.ascontiguousarray(tensor[1:]), "without its first row"
    if kind == 7:
        return np.concatenate([tensor, tensor[-1:]]), "with its last row twice"
    if kind == 8:
        return np.ascontiguousarray(tensor[..., None]), "with one more axis"
    other = np.float32 if tensor.dtype != np.float32 else np.int64
    with np.errstate(all="ignore"):
        return tensor.astype(other), f"as {np.dtype(other)}"


def loaded(path: Path) -> Any:
    """The model of a file; the largest amount of memory that reading took is in ``MEMORY``."""
    gc.collect()
    tracemalloc.start()
    try:
        return load(path)
    finally:
        MEMORY[0] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()


MEMORY = [0]
# Bytes that Python allocates for other objects than the intact file has, whatever the size of the file.
OVERHEAD = 5_000_000


def use_recommender(path: Path, questions: dict[str, list[Any]]) -> None:
    """All that people do with a recommender."""
    model = loaded(path)
    model.predict(questions, return_std=True)
    model.recommend(questions["user_id"][:2], n=3)
    model.set_params(draws=2, warmup=1, chains=1, n_jobs=None)
    new = {**questions, "rating": [1.0, 5.0, 2.0, 3.0, 4.0]}
    model.fold_in(new)
    model.predict(questions)
    model.partial_fit({name: values[:2] for name, values in new.items()}, warmup=1)


def use_regressor(path: Path, questions: dict[str, list[Any]]) -> None:
    """All that people do with a regressor."""
    model = loaded(path)
    model.predict(questions, return_std=True)
    model.predict(questions, quantiles=[0.1, 0.9])
    model.sample_y(questions, 2, random_state=0)
    model.components(questions)


class Hang(BaseException):
    """The use of a file took too long."""


@contextmanager
def in_time(seconds: float) -> Any:
    """Raise `Hang` after some CPU seconds, so that a busy machine is no hang."""

    def ring(*_: Any) -> None:
        raise Hang

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def tried(use: Any, path: Path, questions: dict[str, list[Any]]) -> tuple[str, str, int]:
    """How the use of a file ends: a word, where it went wrong, and the largest amount of memory taken."""
    try:
        with in_time(SECONDS), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            use(path, questions)
        how, where = "answered", ""
    except InputError:
        how, where = "refused", ""
    except (Exception, Hang) as error:
        frame = traceback.extract_tb(error.__traceback__)
        last = [each for each in frame if "tuckergp" in each.filename] or frame
        how = type(error).__name__
        where = f"{error} at {Path(last[-1].filename).name}:{last[-1].lineno} of {last[0].name} {last[-1].line}"
    return how, where, MEMORY[0]


MODELS = {"recommender": (recommender, use_recommender), "regressor": (regressor, use_regressor)}


def trials(kind: str, count: int, seed: int, folder: Path, first: int = 0) -> Any:
    """Yield for each of some edits what it was, how the use ended, where, and the memory beyond that of the intact.

    An edit depends on the seed and its number alone, so that ``first`` resumes a run.
    """
    make, use = MODELS[kind]
    model, questions = make()
    path = folder / "model.tgp"
    model.save(path)
    file = EditedFile(path)
    intact = [tried(use, path, questions) for _ in range(3)]
    assert all(how == "answered" for how, _, _ in intact), intact
    usual = max(memory for _, _, memory in intact[1:])
    gc.freeze()  # modules and compiled functions stay: each collection is of one trial's objects alone
    try:
        for number in range(first, count):
            what = file.write(path, np.random.default_rng((seed, number)))
            how, where, memory = tried(use, path, questions)
            yield number, what, how, where, max(memory - usual - OVERHEAD, 0) / file.size
    finally:
        gc.unfreeze()


def main(count: int, seed: int, only: str | None, first: int) -> None:
    """Make the edits, 7 of 10 of them to a recommender, and print how their use ended."""
    resource.setrlimit(resource.RLIMIT_AS, (SPACE, SPACE))
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for kind, share in (("recommender", 0.7), ("regressor", 0.3)):
            if only in (None, kind):
                _report(kind, seed, trials(kind, math.ceil(count * share), seed, Path(folder), first))
    print(f"{time.monotonic() - began:.0f} seconds")


def _report(kind: str, seed: int, ran: Any) -> None:
    ends: Counter[str] = Counter()
    most = 0.0
    for number, what, how, where, memory in ran:
        ends[how] += 1
        most = max(most, memory)
        if number % 100 == 99:
            print(f"{kind}: {number + 1} edits, {dict(ends)}", flush=True)
        if how not in ("answered", "refused") or memory > 2:
            print(f"{kind} {seed} {number}: {what} -> {how} {where} ({memory:.1f} files)", flush=True)
    print(f"{kind}: {dict(ends)}, at most {most:.2f} times the file beyond the intact one", flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, help="how many edits")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=MODELS, help="one kind of model")
    parser.add_argument("--first", type=int, default=0, help="the number of the edit to begin with")
    return parser.parse_args()


if __name__ == "__main__":
    main(**vars(_arguments()))
