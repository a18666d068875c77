"""Cells of an experiment: named pieces of work, done one after the other unless they are done, with a progress bar."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tuckergp import TuckerGPRegressor
from tuckergp.errors import InputError
from tuckergp.experiments.store import Store
from tuckergp.inference.diagnostics import Diagnostics, summarise
from tuckergp.inference.draws import Draws
from tuckergp.metrics import rmse

__all__ = ["Cells", "convergence", "fill", "named", "score", "timed"]

Floats = npt.NDArray[np.float64]
Figures: TypeAlias = dict[str, Any]
Cells: TypeAlias = Mapping[str, Callable[[], Figures]]

WATCHED = 200
"""So many parameters, drawn at random, are diagnosed; f is diagnosed where the samplers watch it."""


def named(cells: Cells, only: str) -> dict[str, Callable[[], Figures]]:
    """Those whose names begin with one of the words in ``only``, separated by commas; all for an empty one."""
    wanted = tuple(word.strip() for word in only.split(",") if word.strip())
    found = {name: compute for name, compute in cells.items() if not wanted or name.startswith(wanted)}
    if not found:
        raise InputError(f"No cell begins with {only!r}; there are {', '.join(cells)}.")
    return found


def fill(store: Store, cells: Cells, say: Callable[[str], None]) -> None:
    """Compute what is missing; a finished cell is kept, so a run that was killed goes on where it stopped."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=len(cells))
        for name, compute in cells.items():
            progress.update(task, description=name)
            there = name in store.results["cells"]
            found = store.cell(name, lambda compute=compute: timed(compute))  # type: ignore[misc]
            if not there:
                say(f"{name}: {found}")
            progress.advance(task)


def timed(compute: Callable[[], Figures]) -> Figures:
    """Its figures with the seconds that they took."""
    began, used = time.perf_counter(), time.process_time()
    found = compute()
    return found | {
        "seconds": round(time.perf_counter() - began, 1),
        "cpu_seconds": round(time.process_time() - used, 1),
    }


def score(model: Any, train: tuple[Any, Floats], test: tuple[Any, Floats]) -> Figures:
    """RMSE of a fitted model on either part, in the units of the targets."""
    return {
        "train_rmse": round(rmse(train[1], model.predict(train[0])), 5),
        "test_rmse": round(rmse(test[1], model.predict(test[0])), 5),
    }


def convergence(model: TuckerGPRegressor) -> Figures:
    """R-hat and bulk ESS, mean and sd: of f at training inputs, and of the entries of U and W.

    Those of parameters are for comparison alone: rotating U_d and turning W back leaves f as it is, so chains that
    agree on f need not agree on them, and a chain may wander among equivalent values for ever.
    """
    draws = model.fit_.draws
    return {"f": _figures(draws.diagnostics()), "parameters": _figures(summarise(_parameters(draws)))}


def _parameters(draws: Draws) -> Floats:
    """Some entries of U and W, shape (chains, draws, entries)."""
    first = draws.chains[0][0].parameters
    size = sum(U.size for U in first.U) + first.W.size
    chosen = np.sort(np.random.default_rng(0).permutation(size)[:WATCHED])
    return np.array(
        [
            [np.concatenate([*map(np.ravel, draw.parameters.U), draw.parameters.W])[chosen] for draw in chain]
            for chain in draws.chains
        ]
    )


def _figures(found: Diagnostics) -> Figures:
    return {
        "rhat": [round(float(np.nanmean(found.rhat)), 3), round(float(np.nanstd(found.rhat)), 3)],
        "ess": [round(float(np.nanmean(found.ess_bulk)), 1), round(float(np.nanstd(found.ess_bulk)), 1)],
        "draws": found.chains * found.draws,
    }
