"""Two questions that the paper leaves open, on MovieLens 100K with ratings alone, rank 15, first official split.

Hyperparameters by sampling instead of cross-validation: one model, whose prior scale, variances of the average user and
item and noise are fixed at the best values on a tenth of the training part (``search``), or drawn with the other
parameters. Sub-linear sampling: ``sgld`` and ``gibbs`` draw from the same posterior, and their errors and
intervals on the test part are recorded over time; the step size of SGLD is chosen on the same tenth. Predictions are
clipped to 1..5.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.errors import DivergenceError, InputError
from tuckergp.evaluation.metrics import rmse
from tuckergp.inference import SGLD, Gibbs
from tuckergp.inference.base import Info, Problem
from tuckergp.kernels import Constant, Identity
from tuckergp.likelihoods import Gaussian
from tuckergp.model.design import Design
from tuckergp.model.mode import Mode
from tuckergp.model.tucker import TuckerModel, make_core
from tuckergp.paper.experiment import Cells, Experiment, Figures, Picture, Rows, Table, Text, Work
from tuckergp.paper.movielens_data import Ratings, Split, design_of, split_of
from tuckergp.paper.movielens_search import HIGHEST, LOWEST, RANK
from tuckergp.paper.pictures import COLOURS, INK, figure
from tuckergp.paper.run import Run, quietly
from tuckergp.paper.tables import shown, starting
from tuckergp.priors.hyper import PrecisionPrior
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


class OneScale(Gibbs):
    """Gibbs sampling that draws one prior scale for each mode instead of a matrix: the numbers that a search fixes."""

    def precision_prior(self, model: TuckerModel, d: int) -> PrecisionPrior:
        """The prior of Lambda, which is a number times the identity."""
        return PrecisionPrior.centred(self.dof, float(model.sigma_u[d]) ** 2, int(model.core.ranks[d]), scalar=True)


class Point(NamedTuple):
    """Hyperparameters in units of the ratings' sd and variance.

    ``scale`` is the prior sd of an entry of a factor; ``users`` and ``items`` are the prior variances of the average
    user and item relative to those of single ones, 1 / tau; ``noise`` is the noise variance, None where it is drawn.
    """

    scale: float
    users: float = 1.0
    items: float = 1.0
    noise: float | None = None

    def __str__(self) -> str:
        return ", ".join(f"{name} {value:.3g}" for name, value in self._asdict().items() if value is not None)


def search(
    error: Callable[[Point], float], start: Point, factors: Mapping[str, float]
) -> tuple[Point, dict[str, float]]:
    """The best point of an endless grid, found along one direction after the other, and the error of all points tried.

    It ends where a step in any direction, up or down, is no better: the optimum lies inside of what was tried.
    """
    steps, tried = [(name, way) for name in factors for way in (1, -1)], dict[str, float]()

    def at(place: Mapping[str, int]) -> Point:
        given = start._asdict()
        return start._replace(**{name: given[name] * factors[name] ** count for name, count in place.items()})

    def errs(place: Mapping[str, int]) -> float:
        point = at(place)
        if str(point) not in tried:
            tried[str(point)] = error(point)
        return tried[str(point)]

    here, before = dict.fromkeys(factors, 0), None
    while here != before:
        before = dict(here)
        for name, way in steps:
            while errs(there := here | {name: here[name] + way}) < errs(here):
                here = there
    return at(here), tried


def task(split: Split, train: Ratings, test: Ratings, at: Point) -> Task:
    """PMF with an average user and an average item: identity features and a constant, W = I."""
    averages = {"user_id": at.users, "item_id": at.items}
    modes = [Mode(name, Identity() + variance * Constant()) for name, variance in averages.items()]
    design, held = (design_of(split.entities, modes, part, SEED) for part in (train, test))
    mean, sd = float(train.rating.mean()), float(train.rating.std())
    model = TuckerModel(make_core("identity", [RANK, RANK]), Gaussian(), np.full(2, at.scale), 1.0)
    return Task(Problem(model, design, (train.rating - mean) / sd), held, test.rating, mean, sd)


def gibbs(at: Point, **lengths: Any) -> Gibbs:
    """Gibbs sampling with fixed prior scales, which the model has, and with fixed or learned noise."""
    shape, rate = (1.0, 0.5) if at.noise is None else (SURE, SURE * at.noise)
    return Gibbs(alpha_shape=shape, alpha_rate=rate, dof=SURE, tau_shape=SURE, tau_rate=SURE, **lengths)


def draws_of(sampler: Any, task: Task, seed: int) -> tuple[Floats, Floats, list[float]]:
    """Predictions (S, N) and noise sd (S,) of each draw, and the CPU seconds up to it."""
    began, gone = time.process_time(), list[float]()

    def note(info: Info) -> None:
        if info.step > sampler.warmup:
            gone.append(time.process_time() - began)

    draws, _ = quietly(sample, sampler, task.problem, seed, Control(callback=note, progress=False))
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


def scored(sampler: Any, task: Task, seed: int = SEED) -> Figures:
    """Errors of the mean of all draws; ``diverged`` where the step size of SGLD is too large."""
    try:
        f, noise, _ = draws_of(sampler, task, seed)
    except DivergenceError:
        return {"diverged": True}
    return score(f, noise, task.truth) | {"noise": round(float(noise.mean()), 4)}


def over_time(sampler: Any, task: Task) -> Figures:
    """Errors after increasing numbers of draws, with the CPU seconds that they took."""
    f, noise, gone = draws_of(sampler, task, SEED)
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
        steps = [(how, step) for how, sizes in self.at["steps"].items() for step in sizes]
        self.steps = {f"step/{how}/{step:g}": (how, step) for how, step in steps}

    def search(self) -> Figures:
        """The best fixed hyperparameters on the validation part, and all that were tried."""

        def error(at: Point) -> float:
            return float(scored(gibbs(at, **self.at["search_lengths"]), self.inner(at))["rmse"])

        found, tried = search(error, Point(**self.at["start"]), self.at["factors"])
        return {"found": found._asdict(), "rmse": tried[str(found)], "tried": tried}

    @property
    def found(self) -> Point:
        """The result of the search."""
        return Point(**self.run["search"]["found"])

    def cross_validated(self, seed: int) -> Figures:
        """Gibbs sampling with the best fixed hyperparameters, on the test part."""
        return scored(gibbs(self.found, **self.at["lengths"]), self.outer(self.found), seed)

    def sampled(self, sampler: type[Gibbs], seed: int) -> Figures:
        """Gibbs sampling that draws hyperparameters too, under the estimator's priors, on the test part."""
        return scored(sampler(**self.at["lengths"]), self.outer(Point(OWN_SCALE)), seed)

    def langevin(self, name: str, **lengths: int) -> SGLD:
        """SGLD with one of the step sizes."""
        how, step = self.steps[name]
        return SGLD(step_size=step, precondition=how == "preconditioned", **{**self.at["langevin"], **lengths})

    def step(self, name: str) -> Figures:
        """SGLD with one of the step sizes and a quarter of the draws, on the validation part."""
        short = self.langevin(name, draws=max(self.at["langevin"]["draws"] // 4, 1))
        return scored(short, self.inner(self.found))

    def best_step(self) -> str:
        """The step size with the smallest error on the validation part."""
        errors = {name: self.run[name]["rmse"] for name in self.steps if "rmse" in self.run[name]}
        if not errors:
            raise InputError("All steps of SGLD diverged; add shorter ones to the settings of the experiment.")
        return min(errors, key=errors.__getitem__)

    def race(self, name: str) -> Figures:
        """SGLD with the best step size, or Gibbs sampling of the same posterior, on the test part."""
        at = self.found._replace(noise=None)
        if name == "gibbs":
            return over_time(gibbs(at, **self.at["lengths"]), self.outer(at))
        chosen = self.best_step()
        return over_time(self.langevin(chosen), self.outer(at)) | {"chosen": chosen}


def cells(run: Run) -> Work:
    """All cells, choices first."""
    plan = Plan(run)
    work: dict[str, Callable[[], Figures]] = {"search": plan.search}
    for seed in run.settings["seeds"]:
        work[f"cross-validated/seed {seed}"] = partial(plan.cross_validated, seed)
        work[f"one scale/seed {seed}"] = partial(plan.sampled, OneScale, seed)
        work[f"sampled/seed {seed}"] = partial(plan.sampled, Gibbs, seed)
    work |= {name: partial(plan.step, name) for name in plan.steps}
    return work | {name: partial(plan.race, name) for name in ("sgld", "gibbs")}


def hyper_table(cells: Cells) -> Rows:
    """Cost and error of hyperparameters by cross-validation and by sampling; searching is a part of the cost."""
    searched = cells.get("search", {"found": {}, "tried": (), "cpu_seconds": 0.0})
    best = f"best on held-out ratings of {len(searched['tried'])}, a step to either side of it being worse"
    titles = {
        "cross-validated": (f"{best}: {Point(**searched['found'])}" if searched["found"] else best),
        "one scale": "the same numbers drawn with the rest",
        "sampled": "drawn with the rest, a matrix of prior scales for each mode (the default)",
    }
    rows = [["prior scales and noise", "test RMSE", "90 % intervals cover", "CPU seconds"]]
    for name, title in titles.items():
        if runs := starting(cells, f"{name}/"):
            before = searched["cpu_seconds"] if name == "cross-validated" else 0.0
            seconds = before + float(np.mean([one["cpu_seconds"] for one in runs]))
            rows.append([title, shown(runs, "rmse"), shown(runs, "coverage", 3), f"{seconds:.1f}"])
    return rows


def steps_table(cells: Cells) -> Rows:
    """Errors of SGLD on held-out ratings by the size of its first step."""
    rows = [["step size of SGLD", "RMSE on held-out ratings"]]
    chosen = cells.get("sgld", {}).get("chosen")
    steps = [name for name in cells if name.startswith("step/")]
    for name in sorted(steps, key=lambda name: float(name.split("/")[-1])):
        error = f"{cells[name]['rmse']:.4f}" if "rmse" in cells[name] else "diverged"
        title = name.removeprefix("step/").replace("/", ", ")
        rows.append([title, f"**{error}**" if name == chosen else error])
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
    protocol="ratings alone, rank 15, split u1; choices on a tenth of the training part; clipped to 1..5",
    data=("ml-100k",),
    settings={
        "seeds": (0, 1, 2),
        # where the search starts, and the factor of a step in each direction
        "start": {"scale": 0.3, "users": 1.0, "items": 1.0, "noise": 0.5},
        "factors": {"scale": 1.25, "users": 3.0, "items": 3.0, "noise": 1.2},
        "search_lengths": {"draws": 60, "warmup": 20}, "lengths": {"draws": 250, "warmup": 50},
        # first steps relative to 1 / (1 + N alpha): a weight has a thousandth of the ratings, so they are large
        "steps": {"preconditioned": (1_500.0, 3_000.0, 6_000.0, 10_000.0, 30_000.0)},
        "langevin": {"draws": 600, "warmup": 100, "batch_size": 1_000, "delay": 4_000.0},
    },
    quick={
        "seeds": (0,), "factors": {"scale": 1.25}, "search_lengths": {"draws": 4, "warmup": 2},
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
        Table("ratings_steps", "Step sizes of SGLD on held-out ratings, a quarter of the draws", steps_table),
        Table("ratings_time", "SGLD and Gibbs sampling as time goes on", time_table),
        Table(
            "ratings_hyper",
            "Hyperparameters by cross-validation and by sampling: error and cost, same model, mean and sd over seeds",
            hyper_table,
        ),
    ),
)  # fmt: skip
