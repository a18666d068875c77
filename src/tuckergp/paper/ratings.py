"""Two questions that the paper leaves open, on MovieLens 100K with ratings alone, rank 15, first official split.

    python -m tuckergp.paper.ratings -o ratings.json

Hyperparameters by sampling instead of cross-validation: ``grid/...`` are Gibbs chains with fixed prior scale and noise,
scored on a tenth of the training part; ``cross-validated`` refits the best of them, ``sampled`` draws both along with
the rest. Sub-linear sampling: ``sgld`` and ``gibbs`` draw from one posterior, and their errors and intervals on the
test part are noted as time goes on; the step of SGLD is chosen on the same tenth. Predictions are clipped to 1..5.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import typer

from tuckergp.data.datasets import load_movielens_100k
from tuckergp.errors import DivergenceError, InputError, NotConvergedWarning
from tuckergp.evaluation.metrics import rmse
from tuckergp.inference import SGLD, Gibbs
from tuckergp.inference.base import Info, Problem
from tuckergp.kernels import Identity
from tuckergp.likelihoods import Gaussian
from tuckergp.model.design import Design, Mode
from tuckergp.model.tucker import TuckerModel, make_core
from tuckergp.paper.cells import Cells, Figures, fill
from tuckergp.paper.cells import store_of as cells_store
from tuckergp.paper.movielens import Split
from tuckergp.paper.movielens_data import Ratings, design_of, entities_of, ratings_of
from tuckergp.paper.movielens_search import HIGHEST, LOWEST, RANK
from tuckergp.paper.store import Store
from tuckergp.running.control import Control
from tuckergp.running.loop import sample

__all__ = ["app", "cells", "load", "store_of"]

Floats = npt.NDArray[np.float64]

PROTOCOL = "ratings alone, rank 15, split u1, one seed; choices on a tenth of the training part; clipped to 1..5"
SCALES, NOISES = (0.2, 0.3, 0.45), (0.5, 0.65, 0.8)
"""Prior sd of an entry of a factor, and the noise variance, in units of the ratings' sd and variance."""
STEPS = {"plain": (10.0, 30.0, 100.0), "preconditioned": (300.0, 1_000.0, 3_000.0)}
"""First steps of SGLD, relative to 1 / (1 + N alpha): a weight has a thousandth of the ratings, so they are large."""
LENGTHS = {"draws": 250, "warmup": 50}
GRID_LENGTHS = {"draws": 60, "warmup": 20}
LANGEVIN = {"draws": 600, "warmup": 100, "batch_size": 1_000, "delay": 4_000.0}
QUICK = {"draws": 4, "warmup": 2}
COUNTS = (1, 2, 5, 10, 20, 50, 100, 200, 400, 600)
"""After so many draws errors are noted."""
# A gamma prior of this shape stays at its mean.
SURE = 1e9
NORMAL_90 = 1.6448536269514722
SEED, SPLIT = 0, 1


class Task(NamedTuple):
    """Ratings to learn from, in units of their sd about their mean, and ratings to score."""

    problem: Problem
    held: Design
    truth: Floats
    mean: float
    sd: float


def task(split: Split, train: Ratings, test: Ratings, scale: float) -> Task:
    """PMF with an average user and an average item: identity features and a constant, W = I."""
    modes = [Mode(name, Identity()) for name in ("user_id", "item_id")]
    design, held = (design_of(split.entities, modes, part, SEED) for part in (train, test))
    mean, sd = float(train.rating.mean()), float(train.rating.std())
    model = TuckerModel(make_core("identity", [RANK, RANK]), Gaussian(), np.full(2, scale), 1.0)
    return Task(Problem(model, design, (train.rating - mean) / sd), held, test.rating, mean, sd)


def gibbs(noise: float | None, **lengths: int) -> Gibbs:
    """Gibbs sampling at a fixed prior scale, with fixed noise or with noise learned."""
    shape, rate = (1.0, 0.5) if noise is None else (SURE, SURE * noise)
    fixed = {"dof": SURE, "tau_shape": SURE, "tau_rate": SURE}
    return Gibbs(alpha_shape=shape, alpha_rate=rate, **fixed, **lengths)  # type: ignore[arg-type]


def run(sampler: Any, task: Task) -> tuple[Floats, Floats, list[float]]:
    """Predictions and noise sd of every draw, and the CPU seconds gone when it was made."""
    began, gone = time.process_time(), []

    def note(info: Info) -> None:
        if info.step > sampler.warmup:
            gone.append(time.process_time() - began)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        draws, _ = sample(sampler, task.problem, SEED, Control(callback=note, progress=False))
    f = task.mean + task.sd * np.array([f for f, _ in draws.functions(task.held)])
    noise = task.sd * np.array([draw.alpha**-0.5 for chain in draws.chains for draw in chain])
    return f, noise, gone


def score(f: Floats, noise: Floats, truth: Floats) -> Figures:
    """RMSE of the mean of some draws, and how often 90 % intervals (normal, of the same moments) hold the rating."""
    mean, spread = f.mean(axis=0), np.sqrt(f.var(axis=0) + np.mean(noise**2))
    held = np.abs(truth - mean) <= NORMAL_90 * spread
    return {
        "rmse": round(rmse(truth, np.clip(mean, LOWEST, HIGHEST)), 5),
        "coverage": round(float(held.mean()), 4),
    }


def scored(sampler: Any, task: Task) -> Figures:
    """Errors of all draws together."""
    f, noise, _ = run(sampler, task)
    return score(f, noise, task.truth) | {"noise": round(float(noise.mean()), 4)}


def tried(sampler: SGLD, task: Task) -> Figures:
    """The same, for steps that may be too long."""
    try:
        return scored(sampler, task)
    except DivergenceError:
        return {"diverged": True}


def over_time(sampler: Callable[[], Any], task: Task) -> Figures:
    """Errors after some draws, then some more, with the CPU seconds that they took."""
    f, noise, gone = run(sampler(), task)
    counts = [count for count in COUNTS if count <= len(f)]
    found = [score(f[:count], noise[:count], task.truth) for count in counts]
    return {
        "draws": counts,
        "cpu": [round(gone[count - 1], 2) for count in counts],
        "rmse": [one["rmse"] for one in found],
        "coverage": [one["coverage"] for one in found],
    }


def cells(split: Split, store: Store, quick: bool = False) -> Cells:
    """All of them; those on the test part read the choices made before."""
    grid, whole = (QUICK, QUICK) if quick else (GRID_LENGTHS, LENGTHS)
    scales, noises = (SCALES[:1], NOISES[:1]) if quick else (SCALES, NOISES)
    steps = {f"step/{how}/{step:g}": (how, step) for how, sizes in STEPS.items() for step in sizes[: 1 if quick else 3]}
    langevin: dict[str, Any] = LANGEVIN | (QUICK if quick else {})
    names = {f"grid/scale={s}/noise={n}": (s, n) for s, n in product(scales, noises)}

    def inner(scale: float) -> Task:
        return task(split, split.learn, split.choose, scale)

    def outer(scale: float) -> Task:
        return task(split, split.train, split.test, scale)

    def best(start: str) -> str:
        stored: dict[str, Figures] = store.results["cells"]
        found = {n: float(stored[n]["rmse"]) for n in (names if start == "grid/" else steps) if "rmse" in stored[n]}
        if not found:
            raise InputError("All steps of SGLD diverged; add shorter ones to STEPS.")
        return min(found, key=found.__getitem__)

    def cross_validated() -> Figures:
        chosen = best("grid/")
        scale, noise = names[chosen]
        return scored(gibbs(noise, **whole), outer(scale)) | {"chosen": chosen}

    def scale_of_best() -> float:
        return names[best("grid/")][0]

    def with_step(name: str, **lengths: int) -> SGLD:
        how, step = steps[name]
        return SGLD(step_size=step, precondition=how == "preconditioned", **{**langevin, **lengths})

    def langevin_here() -> Figures:
        chosen = best("step/")
        return over_time(partial(with_step, chosen), outer(scale_of_best())) | {"chosen": chosen}

    found: dict[str, Callable[[], Figures]] = {}
    for name, (scale, noise) in names.items():
        found[name] = lambda scale=scale, noise=noise: scored(gibbs(noise, **grid), inner(scale))  # type: ignore[misc]
    found["cross-validated"] = cross_validated
    # the estimator's own priors: the scale of f relative to that of ratings is 0.54^2 in the mean
    found["sampled"] = lambda: scored(Gibbs(draws=whole["draws"], warmup=whole["warmup"]), outer(0.54 * RANK**-0.25))
    for name in steps:
        short = with_step(name, draws=max(langevin["draws"] // 4, 1))
        found[name] = lambda short=short: tried(short, inner(scale_of_best()))  # type: ignore[misc]
    found["sgld"] = langevin_here
    found["gibbs"] = lambda: over_time(partial(gibbs, None, **whole), outer(scale_of_best()))
    return found


def load(data: Path | None) -> Split:
    """The first official split."""
    movielens = load_movielens_100k(data)
    entities = entities_of(movielens)
    train, test = (ratings_of(entities, part) for part in movielens.split(SPLIT))
    return Split(entities, train, test, SEED, SPLIT)


store_of = partial(cells_store, "ratings", "", PROTOCOL)
"""Where the cells are kept: takes a path, or None, and whether the run is quick."""

app = typer.Typer(add_completion=False)


@app.command()
def main(
    quick: Annotated[bool, typer.Option("--quick", help="Few draws: see that it runs.")] = False,
    data: Annotated[Path | None, typer.Option(help="The folder that holds ml-100k.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Results; a finished cell is kept.")] = None,
) -> None:
    """Hyperparameters by sampling or by cross-validation; stochastic gradients or Gibbs sampling."""
    try:
        store = store_of(output, quick)
        fill(store, cells(load(data), store, quick), lambda line: typer.echo(line, err=True))
    except InputError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None


if __name__ == "__main__":
    sys.exit(app())
