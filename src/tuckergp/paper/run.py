"""Running an experiment: settings, data, and a results file to which each finished cell is written at once.

A finished cell is computed again only if that is asked for, so a stopped run continues where it was.
"""

from __future__ import annotations

import json
import os
import platform
import select
import signal
import subprocess
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numba
import numpy as np

import tuckergp
from tuckergp.errors import InputError, NotConvergedWarning, UnknownIdWarning
from tuckergp.files import write_text
from tuckergp.paper import pictures, sources
from tuckergp.paper.experiment import Experiment, Figures, Work

__all__ = ["Run", "commit", "fill", "quietly", "read", "to_json"]

WRITTEN = ("benchmarks/results", "docs", "*.md")
"""What runs write to, and the tables of pages that are made of it."""


class Run:
    """One run of an experiment.

    Parameters
    ----------
    experiment : Experiment
    folder : Path or None
        The folder of the results file, whose cells are kept if it is of the same experiment; None: in memory only.
    data : Path or None
        The folder with the data; None uses the default of the loaders.
    quick : bool

    Attributes
    ----------
    settings : dict
        The experiment's settings, with the changes of a quick run if it is one.
    done : dict
        The figures of finished cells by name.
    ours : dict
        Those of them that this run has computed; in the results file another run may have renewed the others.
    stale : set of str
        Names of finished cells that are to be computed again; until then the results file has the old ones.
    work : mapping
        All cells of the experiment by name; reads the data.
    """

    def __init__(
        self, experiment: Experiment, folder: Path | None = None, data: Path | None = None, quick: bool = False
    ) -> None:
        self.experiment, self.folder, self.data = experiment, folder, data
        self.settings: dict[str, Any] = {**experiment.settings, **(experiment.quick if quick else {})}
        self.identity: dict[str, Any] = {"experiment": experiment.name, "protocol": experiment.protocol, "quick": quick}
        self.versions = {
            "tuckergp": tuckergp.__version__,
            "numpy": np.__version__,
            "numba": numba.__version__,
            "python": platform.python_version(),
        }
        self.done = self._stored()
        self.ours: dict[str, Figures] = {}
        self.stale: set[str] = set()

    @cached_property
    def work(self) -> Work:
        """All cells of the experiment by name."""
        return self.experiment.cells(self)

    def load(self, name: str) -> Any:
        """One of the experiment's data sets."""
        return sources.load(name, self.data)

    def __getitem__(self, name: str) -> Figures:
        """The figures of a cell, which is computed if it is missing or stale: cells may use others."""
        if not self.has(name):
            began, used = time.perf_counter(), time.process_time()
            with stopped_by_ctrl_c():
                figures = self.work[name]()
            spent = {
                "commit": commit(),
                "seconds": round(time.perf_counter() - began, 1),
                "cpu_seconds": round(time.process_time() - used, 1),
            }
            self.ours[name] = self.done[name] = spent | figures
            self.stale.discard(name)
            self.save()
        return self.done[name]

    def has(self, name: str) -> bool:
        """Whether a cell is finished and not to be computed again."""
        return name in self.done and name not in self.stale

    def keep(self, name: str, draw: Callable[[], Any]) -> None:
        """Draw a figure that needs a cell's fitted model, and save it beside the results."""
        if self.folder is not None:
            pictures.save(draw, name, self.folder, png=not self.identity["quick"])

    @property
    def head(self) -> dict[str, Any]:
        """What the figures depend on."""
        command = f"tuckergp reproduce {self.experiment.name}{' --quick' * self.identity['quick']}"
        return {
            **self.identity,
            "settings": self.settings,
            "command": command,
            "versions": self.versions,
            "machine": {"processors": os.cpu_count(), "system": f"{platform.system()} {platform.machine()}"},
            "data": {name: sources.checksum(name, self.data) for name in self.experiment.data},
        }

    def save(self) -> None:
        """Write the results file atomically; cells that another run has added or renewed meanwhile are kept."""
        if self.folder is None:
            return
        self.done = self._stored() | self.ours
        self.folder.mkdir(parents=True, exist_ok=True)
        write_text(self.folder / f"{self.experiment.name}.json", to_json({**self.head, "cells": self.done}))

    def _stored(self) -> dict[str, Figures]:
        """The finished cells in the results file; an error if it is of another run."""
        path = None if self.folder is None else self.folder / f"{self.experiment.name}.json"
        if path is None or not path.exists():
            return {}
        stored = read(path)
        for key, value in self.identity.items():
            if stored.get(key) != value:
                raise InputError(
                    f"{path} holds results with {key}={stored.get(key)!r}, not {value!r}; name another folder."
                )
        self.versions = {**stored["versions"], **self.versions}  # of peers, which only their command knows
        cells: dict[str, Figures] = stored["cells"]
        return cells


@cache
def commit() -> str | None:
    """The commit of the package where it runs from a checkout, with "-dirty" where files differ from it.

    Results and pages that differ do not count: a run writes them.
    """
    asked = {
        "tracked": ["ls-files", "--error-unmatch", "__init__.py"],
        "name": ["rev-parse", "--short", "HEAD"],
        "changed": [
            "status",
            "--porcelain",
            "--untracked-files=no",
            "--",
            ":/",
            *(f":(top,exclude){p}" for p in WRITTEN),
        ],
    }
    here: dict[str, Any] = {"cwd": Path(tuckergp.__file__).parent, "capture_output": True, "text": True}
    try:
        told = {key: subprocess.run(["git", *words], **here) for key, words in asked.items()}
    except OSError:
        return None
    if any(one.returncode for one in told.values()):
        return None
    return str(told["name"].stdout.strip()) + "-dirty" * bool(told["changed"].stdout)


def read(path: Path) -> dict[str, Any]:
    """Read a results file."""
    try:
        stored: dict[str, Any] = json.loads(path.read_text())
        if not isinstance(stored["cells"], dict):
            raise TypeError
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError):
        raise InputError(f"{path} does not hold results of an experiment; name another folder.") from None
    return stored


def to_json(results: dict[str, Any]) -> str:
    """JSON with one line per cell, so that two runs can be compared line by line."""
    head = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in results.items() if key != "cells"]
    cells = [f"{json.dumps(name)}: {json.dumps(cell)}" for name, cell in results["cells"].items()]
    return "{\n " + ",\n ".join([*head, '"cells": {\n  ' + ",\n  ".join(cells) + "\n }"]) + "\n}\n"


def fill(
    runs: Sequence[Run], only: str = "", say: Callable[[str], None] = lambda line: None, again: bool = False
) -> None:
    """Compute the missing cells, reporting each and how many are left.

    ``only`` lists beginnings of names of cells, separated by commas; an empty one stands for all. With ``again`` cells
    of another commit count as missing; two changes of one commit are not told apart. What the results file has beside,
    such as cells of peers, stays in either case.
    """
    wanted = tuple(word.strip() for word in only.split(",") if word.strip()) or ("",)
    cells = [(run, name) for run in runs for name in run.work if name.startswith(wanted)]
    if only and not cells:
        listed = ", ".join(name for run in runs for name in run.work)
        raise InputError(f"No cell begins with {only!r}; there are {listed}.")
    for run, name in cells if again else ():
        if commit() is None or run.done.get(name, {}).get("commit") != commit():
            run.stale.add(name)
    missing = [(run, name) for run, name in cells if not run.has(name)]
    for count, (run, name) in enumerate(missing, start=1):
        say(f"[{count}/{len(missing)}] {run.experiment.name}: {name}")
        say("    " + _in_short(run[name]))


def _in_short(figures: Figures) -> str:
    numbers = {key: value for key, value in figures.items() if isinstance(value, int | float)}
    return ", ".join(f"{key} {value:.5g}" for key, value in numbers.items())


def quietly(fit: Callable[..., Any], *given: Any) -> Any:
    """Fit a model without convergence warnings, since the figures include diagnostics."""
    with warnings.catch_warnings():
        for category in (NotConvergedWarning, UnknownIdWarning):
            warnings.simplefilter("ignore", category)
        return fit(*given)


@contextmanager
def stopped_by_ctrl_c() -> Iterator[None]:
    """Raise KeyboardInterrupt after the block if there was a Ctrl-C that a sampler has handled.

    Samplers stop early at the first one and return the draws so far. A cell with a shorter chain than the protocol says
    must not be kept.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield
        signals = os.read(reading, 4096) if select.select([reading], [], [], 0)[0] else b""
        if signal.SIGINT in signals:
            raise KeyboardInterrupt
    finally:
        signal.set_wakeup_fd(before)
        os.close(reading)
        os.close(writing)
