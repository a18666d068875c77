"""Cells of an experiment: named pieces of work, done one after the other unless they are done, with a progress bar."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tuckergp import Mode, TuckerGPRegressor
from tuckergp.errors import InputError, NotConvergedWarning
from tuckergp.evaluation.metrics import rmse
from tuckergp.paper.store import Store, versions
from tuckergp.posterior.diagnostics import Diagnostics, summarise
from tuckergp.posterior.draws import Draws
from tuckergp.random import stream

__all__ = [
    "Cells",
    "Figures",
    "Part",
    "Split",
    "convergence",
    "experiment",
    "fill",
    "fill_all",
    "hold_out",
    "named",
    "sampled",
    "score",
    "store_of",
    "timed",
    "tucker",
]

Floats = npt.NDArray[np.float64]
Figures: TypeAlias = dict[str, Any]
Cells: TypeAlias = Mapping[str, Callable[[], Figures]]

Data = Annotated[Path | None, typer.Option("--data", help="The folder that holds the data.")]
Output = Annotated[Path | None, typer.Option("-o", "--output", help="Results; a finished cell is kept.")]
Only = Annotated[str, typer.Option("--only", help="Beginnings of the names of cells, separated by commas.")]
Quick = Annotated[bool, typer.Option("--quick", help="Less data, fewer models and draws: see that all of it runs.")]

HELD_OUT = 5
"""One row in so many is held out of the training rows to choose by."""

WATCHED = 200
"""So many parameters, drawn at random, are diagnosed; f is diagnosed where the samplers watch it."""


@dataclass(frozen=True)
class Part:
    """Inputs as columns, and targets."""

    X: dict[str, npt.NDArray[Any]]
    y: Floats

    def take(self, rows: npt.NDArray[np.intp]) -> Part:
        """Some rows."""
        return Part({name: values[rows] for name, values in self.X.items()}, self.y[rows])


@dataclass(frozen=True)
class Split:
    """Rows to learn from, and rows to score."""

    train: Part
    test: Part

    def score(self, model: Any) -> Figures:
        """RMSE of a fitted model on either part."""
        return score(model, (self.train.X, self.train.y), (self.test.X, self.test.y))

    def covered(self, model: Any) -> Figures:
        """How often 90 % intervals hold a test target."""
        _, interval = model.predict(self.test.X, interval=0.9)
        held = (interval[:, 0] <= self.test.y) & (self.test.y <= interval[:, 1])
        return {"coverage": round(float(held.mean()), 4)}


def tucker(modes: list[Mode], rank: int, inference: Any, seed: int, split: Split, **options: Any) -> TuckerGPRegressor:
    """Learn a Tucker model from the training rows; what it says of convergence stands in the tables instead."""
    model = TuckerGPRegressor(modes, rank=rank, inference=inference, random_state=seed, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        return model.fit(split.train.X, split.train.y)


def sampled(modes: list[Mode], rank: int, inference: Any, seed: int, split: Split) -> Figures:
    """Learn a Tucker model with a full core by a sampler: errors, convergence, and how trajectories went."""
    model = tucker(modes, rank, inference, seed, split, core="full")
    last = model.fit_.history[-1].figures
    extra = {name: last[name] for name in ("divergences", "at_max_depth") if name in last}
    return split.score(model) | convergence(model) | extra


def hold_out(split: Split, key: int) -> Split:
    """Training rows alone: four fifths to learn from, a fifth to choose by; ``key`` names the stream of the draw."""
    order = stream(0, key).permutation(len(split.train.y))
    cut = len(order) // HELD_OUT
    return Split(split.train.take(order[cut:]), split.train.take(order[:cut]))


def named(cells: Cells, only: str) -> dict[str, Callable[[], Figures]]:
    """Those whose names begin with one of the words in ``only``, separated by commas; all for an empty one."""
    wanted = tuple(word.strip() for word in only.split(",") if word.strip())
    found = {name: compute for name, compute in cells.items() if not wanted or name.startswith(wanted)}
    if not found:
        raise InputError(f"No cell begins with {only!r}; there are {', '.join(cells)}.")
    return found


def fill(store: Store, cells: Cells, say: Callable[[str], None]) -> None:
    """Compute what is missing; a finished cell is kept, so a run that was killed goes on where it stopped."""
    fill_all([(store, cells)], say)


def fill_all(pieces: Sequence[tuple[Store, Cells]], say: Callable[[str], None]) -> None:
    """The same for the cells of several stores, with one progress bar."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=sum(len(cells) for _, cells in pieces))
        for store, cells in pieces:
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


def store_of(name: str, command: str, protocol: str, path: Path | None, quick: bool = False) -> Store:
    """Where the cells of a command of an experiment are kept; an experiment of one command has an empty one."""
    called = f"{name} {command}".strip()
    identity = {"experiment": called, "protocol": protocol, "quick": quick}
    called = f"python -m tuckergp.paper.{called}{' --quick' * quick}"
    return Store(path, identity, {"command": called, "versions": versions()})


def experiment(
    name: str,
    protocol: str,
    load: Callable[[Path | None, bool], Split],
    cells: Callable[[Split, Store, bool], Cells],
    choices: Callable[[Split], Cells],
    about: str | None,
) -> typer.Typer:
    """The commands of an experiment: ``choose`` on training rows alone, and ``test``."""
    app = typer.Typer(add_completion=False, help=about)

    def run(command: str, data: Path | None, output: Path | None, only: str, quick: bool) -> None:
        try:
            split = load(data, quick)
            store = store_of(name, command, protocol, output, quick)
            todo = choices(split) if command == "choose" else cells(split, store, quick)
            fill(store, named(todo, only), lambda line: typer.echo(line, err=True))
        except InputError as error:
            typer.echo(str(error), err=True)
            raise typer.Exit(2) from None

    @app.command("choose")
    def choose(data: Data = None, output: Output = None, only: Only = "") -> None:
        """Compare models that the paper does not have on a part of the training rows."""
        run("choose", data, output, only, quick=False)

    @app.command("test")
    def evaluate(data: Data = None, output: Output = None, only: Only = "", quick: Quick = False) -> None:
        """Learn from the training rows and score the test rows."""
        run("test", data, output, only, quick)

    return app
