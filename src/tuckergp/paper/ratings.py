"""Two questions that the paper leaves open, on MovieLens 100K with ratings alone, rank 15, first official split.

Hyperparameters by sampling instead of cross-validation: ``grid/...`` are Gibbs chains with fixed prior scale and noise,
scored on a tenth of the training part; ``cross-validated`` refits the best of them, ``sampled`` draws both with the
other parameters. Sub-linear sampling: ``sgld`` and ``gibbs`` draw from the same posterior, and their errors and
intervals on the test part are recorded over time; the step size of SGLD is chosen on the same tenth. Predictions are
clipped to 1..5.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.errors import DivergenceError, InputError
from tuckergp.evaluation.metrics import rmse
from tuckergp.inference import SGLD, Gibbs
from tuckergp.inference.base import Info, Problem
from tuckergp.kernels import Identity
from tuckergp.likelihoods import Gaussian
from tuckergp.model.design import Design, Mode
from tuckergp.model.tucker import TuckerModel, make_core
from tuckergp.paper.experiment import Cells, Experiment, Figures, Picture, Rows, Table, Text, Work
from tuckergp.paper.movielens_data import Ratings, Split, design_of, split_of
from tuckergp.paper.movielens_search import HIGHEST, LOWEST, RANK
from tuckergp.paper.pictures import COLOURS, INK, figure
from tuckergp.paper.run import Run, quietly
from tuckergp.paper.tables import starting
from tuckergp.running.control import Control
from tuckergp.running.loop import sample

__all__ = ["RATINGS"]

Floats = npt.NDArray[np.float64]

COUNTS = (1, 2, 5, 10, 20, 50, 100, 200, 400, 600)
"""The numbers of draws after which errors are recorded."""
# A gamma prior of this shape stays at its mean.
SURE = 1e9
NORMAL_90 = 1.6448536269514722
SEED, SPLIT = 0, 1
# The estimator's own prior: the standard deviation of f is a quarter of that of the ratings.
OWN_SCALE = 0.25**0.5 * RANK**-0.25


class Task(NamedTuple):
    """Training ratings, centred and in units of their sd, and test ratings."""

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


def gibbs(noise: float | None, **lengths: Any) -> Gibbs:
    """Gibbs sampling with a fixed prior scale, and fixed or learned noise."""
    shape, rate = (1.0, 0.5) if noise is None else (SURE, SURE * noise)
    return Gibbs(alpha_shape=shape, alpha_rate=rate, dof=SURE, tau_shape=SURE, tau_rate=SURE, **lengths)


def draws_of(sampler: Any, task: Task) -> tuple[Floats, Floats, list[float]]:
    """Predictions (S, N) and noise sd (S,) of each draw, and the CPU seconds up to it."""
    began, gone = time.process_time(), list[float]()

    def note(info: Info) -> None:
        if info.step > sampler.warmup:
            gone.append(time.process_time() - began)

    draws, _ = quietly(sample, sampler, task.problem, SEED, Control(callback=note, progress=False))
    f = task.mean + task.sd * draws.predicted(task.held).f
    return f, task.sd * draws.unknowns["alpha"] ** -0.5, gone


def score(f: Floats, noise: Floats, truth: Floats) -> Figures:
    """RMSE of the mean of some draws, and coverage of 90 % intervals (normal, with the same moments)."""
    mean, spread = f.mean(axis=0), np.sqrt(f.var(axis=0) + np.mean(noise**2))
    held = np.abs(truth - mean) <= NORMAL_90 * spread
    return {
        "rmse": round(rmse(truth, np.clip(mean, LOWEST, HIGHEST)), 5),
        "coverage": round(float(held.mean()), 4),
    }


def scored(sampler: Any, task: Task) -> Figures:
    """Errors of the mean of all draws; ``diverged`` where the step size of SGLD is too large."""
    try:
        f, noise, _ = draws_of(sampler, task)
    except DivergenceError:
        return {"diverged": True}
    return score(f, noise, task.truth) | {"noise": round(float(noise.mean()), 4)}


def over_time(sampler: Any, task: Task) -> Figures:
    """Errors after increasing numbers of draws, with the CPU seconds that they took."""
    f, noise, gone = draws_of(sampler, task)
    counts = [count for count in COUNTS if count <= len(f)]
    scores = [score(f[:count], noise[:count], task.truth) for count in counts]
    return {
        "draws": counts,
        "cpu": [round(gone[count - 1], 2) for count in counts],
        "rmse": [one["rmse"] for one in scores],
        "coverage": [one["coverage"] for one in scores],
    }


class Plan:
    """The cells of a run: choices on the validation part, and figures on the test part, which depend on them."""

    def __init__(self, run: Run) -> None:
        self.run, self.at = run, run.settings
        split = split_of(run.load("ml-100k"), SPLIT, SEED)
        self.inner = partial(task, split, split.learn, split.choose)
        self.outer = partial(task, split, split.train, split.test)
        grid = product(self.at["scales"], self.at["noises"])
        self.grid = {f"grid/scale={scale}/noise={noise}": (scale, noise) for scale, noise in grid}
        steps = [(how, step) for how, sizes in self.at["steps"].items() for step in sizes]
        self.steps = {f"step/{how}/{step:g}": (how, step) for how, step in steps}

    def best(self, names: Iterable[str]) -> str:
        """The cell with the smallest error on the validation part."""
        errors = {name: self.run[name]["rmse"] for name in names if "rmse" in self.run[name]}
        if not errors:
            raise InputError("All steps of SGLD diverged; add shorter ones to the settings of the experiment.")
        return min(errors, key=errors.__getitem__)

    def fixed(self, name: str) -> Figures:
        """Gibbs sampling with fixed prior scale and noise, on the validation part."""
        scale, noise = self.grid[name]
        return scored(gibbs(noise, **self.at["grid_lengths"]), self.inner(scale))

    def cross_validated(self) -> Figures:
        """Gibbs sampling with the best fixed prior scale and noise, on the test part."""
        chosen = self.best(self.grid)
        scale, noise = self.grid[chosen]
        return scored(gibbs(noise, **self.at["lengths"]), self.outer(scale)) | {"chosen": chosen}

    def sampled(self) -> Figures:
        """Gibbs sampling that draws prior scale and noise too, under the estimator's priors, on the test part."""
        return scored(Gibbs(**self.at["lengths"]), self.outer(OWN_SCALE))

    def langevin(self, name: str, **lengths: int) -> SGLD:
        """SGLD with one of the step sizes."""
        how, step = self.steps[name]
        return SGLD(step_size=step, precondition=how == "preconditioned", **{**self.at["langevin"], **lengths})

    def step(self, name: str) -> Figures:
        """SGLD with one of the step sizes and a quarter of the draws, on the validation part."""
        short = self.langevin(name, draws=max(self.at["langevin"]["draws"] // 4, 1))
        return scored(short, self.inner(self.grid[self.best(self.grid)][0]))

    def race(self, name: str) -> Figures:
        """SGLD with the best step size, or Gibbs sampling of the same posterior, on the test part."""
        target = self.outer(self.grid[self.best(self.grid)][0])
        if name == "gibbs":
            return over_time(gibbs(None, **self.at["lengths"]), target)
        chosen = self.best(self.steps)
        return over_time(self.langevin(chosen), target) | {"chosen": chosen}


def cells(run: Run) -> Work:
    """All cells, choices first."""
    plan = Plan(run)
    work: dict[str, Callable[[], Figures]] = {name: partial(plan.fixed, name) for name in plan.grid}
    work |= {"cross-validated": plan.cross_validated, "sampled": plan.sampled}
    work |= {name: partial(plan.step, name) for name in plan.steps}
    return work | {name: partial(plan.race, name) for name in ("sgld", "gibbs")}


def hyper_table(cells: Cells) -> Rows:
    """Cost and error of hyperparameters by cross-validation and by sampling."""
    searched = starting(cells, "grid/")
    rows = [["prior scales and noise", "test RMSE", "90 % intervals cover", "CPU seconds"]]
    for name, before in {"cross-validated": sum(one["cpu_seconds"] for one in searched), "sampled": 0.0}.items():
        if cell := cells.get(name):
            title = "drawn with the rest"
            if chosen := cell.get("chosen"):
                title = f"best of {len(searched)} on held-out ratings ({chosen.removeprefix('grid/')})"
            seconds = f"{before + cell['cpu_seconds']:.1f}"
            rows.append([title, f"{cell['rmse']:.4f}", f"{cell['coverage']:.1%}", seconds])
    return rows


SAMPLERS = {"gibbs": "Gibbs", "sgld": "SGLD"}


def time_table(cells: Cells) -> Rows:
    """Errors and coverage of SGLD and of Gibbs sampling over time."""
    rows = [["sampler", "draws", "CPU seconds", "test RMSE", "90 % intervals cover"]]
    for key, title in SAMPLERS.items():
        if cell := cells.get(key):
            for count, cpu, error, held in zip(*(cell[n] for n in ("draws", "cpu", "rmse", "coverage")), strict=True):
                rows.append([title, str(count), f"{cpu:.1f}", f"{error:.4f}", f"{held:.1%}"])
    return rows


def draw_time(cells: Cells) -> Any:
    """Errors and coverage of two samplers against CPU seconds."""
    drawn = {key: title for key, title in SAMPLERS.items() if key in cells}
    if not drawn:
        return None
    made, axes = figure(1, 2, 9.0, 4.0)
    for (key, title), colour in zip(drawn.items(), COLOURS, strict=False):
        for ax, metric in zip(axes[0], ("rmse", "coverage"), strict=True):
            ax.semilogx(cells[key]["cpu"], cells[key][metric], "o-", markersize=4, color=colour, label=title)
    axes[0, 0].set(xlabel="CPU seconds", ylabel="test RMSE")
    axes[0, 1].set(xlabel="CPU seconds", ylabel="90 % intervals cover")
    axes[0, 1].axhline(0.9, linestyle=":", color=INK, linewidth=1)
    axes[0, 0].legend(fontsize="small")
    for ax in axes[0]:
        ax.grid(alpha=0.2)
    return made


RATINGS = Experiment(
    name="ratings",
    title="Samplers and hyperparameters: ratings",
    group="future",
    protocol="ratings alone, rank 15, split u1, one seed; choices on a tenth of the training part; clipped to 1..5",
    data=("ml-100k",),
    settings={
        "seed": SEED,
        # prior sd of an entry of a factor, and the noise variance, in units of the ratings' sd and variance
        "scales": (0.2, 0.3, 0.45), "noises": (0.5, 0.65, 0.8), "grid_lengths": {"draws": 60, "warmup": 20},
        "lengths": {"draws": 250, "warmup": 50},
        # first steps relative to 1 / (1 + N alpha): a weight has a thousandth of the ratings, so they are large
        "steps": {"plain": (10.0, 30.0, 100.0), "preconditioned": (300.0, 1_000.0, 3_000.0)},
        "langevin": {"draws": 600, "warmup": 100, "batch_size": 1_000, "delay": 4_000.0},
    },
    quick={
        "scales": (0.2,), "noises": (0.5,), "grid_lengths": {"draws": 4, "warmup": 2},
        "lengths": {"draws": 4, "warmup": 2}, "steps": {"plain": (10.0,), "preconditioned": (300.0,)},
        "langevin": {"draws": 4, "warmup": 2, "batch_size": 1_000, "delay": 4_000.0},
    },
    cells=cells,
    blocks=(
        Text(
            "A sampler that scales sub-linearly: SGLD on mini-batches of 1,000 ratings beside Gibbs sampling of the "
            "same posterior, MovieLens 100K, ratings alone, rank 15. A sweep of Gibbs sampling costs less than a pass "
            "of SGLD over the data."
        ),
        Picture(
            "ratings_time",
            "Test RMSE and how often 90 % intervals hold the rating, against CPU seconds.",
            "Gibbs sampling reaches its error within seconds; SGLD takes far longer.",
            draw_time,
        ),
        Table("ratings_time", "SGLD and Gibbs sampling as time goes on", time_table),
        Table(
            "ratings_hyper",
            "Hyperparameters by cross-validation and by sampling: error and cost, same data",
            hyper_table,
        ),
    ),
)  # fmt: skip
