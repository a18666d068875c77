"""Search for settings by successive halving on held-out ratings, over fits that can be continued.

A search sees only the ratings it is given: `tuckergp.paper.movielens_map` gives it nine tenths of a split's training
part to learn from and one tenth to choose by, `tuckergp.paper.movielens_cv` five folds of the training part.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from itertools import product
from typing import Any, Literal

import numpy as np

from tuckergp.errors import DivergenceError
from tuckergp.evaluation.metrics import rmse
from tuckergp.inference.base import Problem
from tuckergp.inference.sgd import SGD
from tuckergp.likelihoods import Gaussian
from tuckergp.model.tucker import TuckerModel, make_core
from tuckergp.paper.movielens_data import Entities, Ratings, Split, design_of, modes_of
from tuckergp.random import stream

__all__ = ["VARIANTS", "Fit", "Rung", "Settings", "Variant", "Watched", "chosen", "halve", "refit", "search"]

RANK = 15
BATCH = 100
LOWEST, HIGHEST = 1.0, 5.0
CORE_JITTER = 0.1

CoreStart = Literal["prior", "identity"]
Start = tuple[float, CoreStart]


@dataclass(frozen=True)
class Settings:
    """One combination of settings of a fit, including its start.

    ``step_w=None`` fixes W = I, ``side=None`` leaves the side information out. U starts at a draw from its prior times
    ``init_scale``; a learned W at a draw from its prior, or at the identity plus a tenth of such a draw.
    """

    sigma_u: float
    noise: float
    step_u: float
    step_w: float | None = None
    init_scale: float = 0.1
    core_start: CoreStart = "prior"
    side: tuple[float, float, float] | None = None

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Settings:
        """The inverse of `dataclasses.asdict`, after a trip through JSON."""
        side = values.get("side")
        return cls(**{**values, "side": None if side is None else tuple(side)})


@dataclass(frozen=True)
class Rung:
    """One stage of a successive halving: run up to ``epochs``, then keep the best ``keep``."""

    epochs: int
    keep: int


@dataclass(frozen=True)
class Variant:
    """One row of the paper's table: its title, the paper's mean and sd, and its grids."""

    title: str
    paper: tuple[float, float]
    grid: tuple[Settings, ...]
    starts: tuple[Start, ...]
    rungs: tuple[Rung, ...]
    patience: int
    sides: tuple[tuple[float, float, float], ...] = ()


@dataclass(frozen=True)
class Choice:
    """The result of a search: the best settings, the number of epochs, and the cost of the search."""

    settings: Settings
    epochs: int
    score: float
    trained_epochs: int


MIDDLE = (0.5, 0.3, 0.3)
# The paper's grids (appendix, "Hyperparameter tuning for MovieLens 100K")
_FIXED = [Settings(*cell) for cell in product((0.3, 0.1, 0.03), (1.0, 0.1, 0.01, 0.001), (1e-5, 1e-6, 1e-7))]
_LEARNED = [Settings(*cell) for cell in product((0.3, 0.1), (1.0, 0.75), (1e-5, 1e-6), (1e-5, 1e-6))]
_SIDES = tuple(product((0.25, 0.5, 0.75), (0.15, 0.3, 0.45), (0.15, 0.3, 0.45)))


def _with_side(grid: list[Settings]) -> tuple[Settings, ...]:
    return tuple(replace(cell, side=MIDDLE) for cell in grid)


# W = I soon overfits; a learned W improves slowly, so it is given more epochs.
_FAST = ((Rung(8, 8), Rung(16, 3), Rung(100, 2)), 6)
_SLOW = ((Rung(10, 6), Rung(30, 2), Rung(200, 2)), 12)
# How U and W start is not in the paper, so starts are part of the search, the first with all of the grid. Their order
# comes from validation parts within the training parts: small starts overfit later, and without side information a
# learned W does best from near the identity.
_PRIOR: tuple[Start, ...] = ((0.01, "prior"), (0.001, "prior"), (0.1, "prior"), (1.0, "prior"))
_IDENTITY: tuple[Start, ...] = ((0.1, "identity"), (0.01, "identity"))
VARIANTS = {
    "pmf": Variant("W = I (PMF)", (0.9395, 0.0115), tuple(_FIXED), _PRIOR, *_FAST),
    "learn_w": Variant("learn W", (0.9270, 0.0097), tuple(_LEARNED), _IDENTITY + _PRIOR, *_SLOW),
    "side": Variant("W = I, side information", (0.9014, 0.0061), _with_side(_FIXED), _PRIOR, *_FAST, _SIDES),
    "learn_w_side": Variant(
        "learn W, side information", (0.8995, 0.0062), _with_side(_LEARNED), _PRIOR, *_SLOW, _SIDES
    ),
}


class Watched:
    """Something that learns epoch by epoch, and is scored on held-out ratings after each.

    A subclass has ``settings``, ``diverged``, `step`, `score` and `score_of_mean`.

    Attributes
    ----------
    held_rmse : list of float
        Score after each epoch that was watched.
    """

    settings: Settings
    diverged: bool

    def __init__(self) -> None:
        self.held_rmse: list[float] = []
        self._constant = math.inf

    @property
    def epochs(self) -> int:
        """The number of epochs run so far."""
        raise NotImplementedError

    def step(self) -> None:
        """Run one epoch."""
        raise NotImplementedError

    def score(self, held: Any) -> float:
        """RMSE on held-out ratings; infinite after a divergence."""
        raise NotImplementedError

    def score_of_mean(self, held: Any) -> float:
        """RMSE on held-out ratings of predicting the mean."""
        raise NotImplementedError

    def watch(self, held: Any, epochs: int, patience: int) -> float:
        """Run up to ``epochs`` epochs in total, or until ``patience`` of them did not improve; the best score."""
        self._constant = self.score_of_mean(held)
        while self.epochs < epochs and not self.stopped(patience):
            self.step()
            self.held_rmse.append(self.score(held))
        return min(self.held_rmse, default=math.inf)

    def stopped(self, patience: int) -> bool:
        """Whether it diverged or stopped improving; small starts stay near f = 0 at first, which does not count."""
        if self.diverged or not self.held_rmse:
            return self.diverged
        moved = min(self.held_rmse) < 0.99 * self._constant
        return moved and self.epochs - self.best_epoch >= patience

    @property
    def best_epoch(self) -> int:
        """The epoch, counted from 1, with the best score."""
        return int(np.argmin(self.held_rmse)) + 1


class Fit(Watched):
    """A fit by the paper's SGD, epoch by epoch, scored on held-out ratings with predictions clipped to 1..5.

    Parameters
    ----------
    entities : Entities
    train : Ratings
        Centred by their own mean.
    settings : Settings
    seed : int
        Seed of the start and of the order of ratings in each epoch.
    batch_size : int
    buckets : int or None
        Hash the ids into this many features.
    rank : int

    Attributes
    ----------
    train_rmse : list of float
        RMSE during each epoch, of predictions that are not clipped.
    """

    def __init__(
        self,
        entities: Entities,
        train: Ratings,
        settings: Settings,
        seed: int,
        batch_size: int = BATCH,
        buckets: int | None = None,
        rank: int = RANK,
    ) -> None:
        super().__init__()
        self.settings = settings
        self.seed = seed
        self.mean = float(train.rating.mean())
        core = make_core("identity" if settings.step_w is None else "full", [rank, rank])
        model = TuckerModel(core, Gaussian(settings.noise), np.full(2, settings.sigma_u), core.default_sigma_w())
        design = design_of(entities, modes_of(settings.side, buckets), train, seed)
        self.problem = Problem(model, design, train.rating - self.mean)
        self.algorithm = SGD(
            batch_size=batch_size, method="sgd", step_u=settings.step_u, step_w=settings.step_w,
            noise=settings.noise, sigma_u=settings.sigma_u, init_scale=settings.init_scale, validation=0.0,
        )  # fmt: skip
        self.state = self.algorithm.init(self.problem, stream(seed, 0))
        if core.learned and settings.core_start == "identity":
            self.state = self.state._replace(w=np.eye(rank).ravel() + CORE_JITTER * self.state.w)
        self.train_rmse: list[float] = []
        self.diverged = False

    @property
    def epochs(self) -> int:
        """The number of epochs run so far."""
        return len(self.train_rmse)

    def step(self) -> None:
        """Run one epoch; `diverged` is set if parameters are no longer finite."""
        try:
            self.state, info = self.algorithm.step(self.problem, self.state, stream(self.seed, self.epochs + 1))
        except DivergenceError:
            self.diverged = True
            self.train_rmse.append(math.inf)
        else:
            self.train_rmse.append(info.figures["train_rmse"])

    def score(self, held: Ratings) -> float:
        """RMSE on held-out ratings."""
        if self.diverged:
            return math.inf
        parameters = self.algorithm.parameters(self.problem, self.state)
        f = self.problem.model.predict(parameters, replace(self.problem.design, index=held.index))
        if not np.isfinite(f).all():
            return math.inf
        return rmse(held.rating, np.clip(self.mean + f, LOWEST, HIGHEST))

    def run(self, epochs: int) -> Fit:
        """Run up to ``epochs`` epochs in total, without early stopping."""
        while self.epochs < epochs and not self.diverged:
            self.step()
        return self

    def score_of_mean(self, held: Ratings) -> float:
        """RMSE of predicting the mean of the training ratings."""
        return rmse(held.rating, np.full(len(held), self.mean))


def refit(split: Split, settings: Settings, epochs: int, seed: int, **options: Any) -> Fit:
    """Fit the whole training part for a given number of epochs, without test ratings."""
    return Fit(split.entities, split.train, settings, seed, **options).run(epochs)


def chosen(variant: str, split: int) -> tuple[Settings, int]:
    """The settings and the number of epochs that the full run chose for a split."""
    text = resources.files("tuckergp.paper").joinpath("movielens_chosen.json").read_text()
    choice: dict[str, Any] = json.loads(text)[f"{variant}/u{split}"]
    return Settings.from_json(choice["settings"]), int(choice["epochs"])


def halve(fits: Sequence[Watched], held: Any, rungs: Sequence[Rung], patience: int) -> list[Watched]:
    """Successive halving: each rung continues the remaining fits and keeps the best; returns these, best first."""
    alive = list(fits)
    for rung in rungs:
        alive.sort(key=lambda fit: fit.watch(held, rung.epochs, patience))
        alive = alive[: rung.keep]
    return alive


def _started(settings: Settings, start: Start) -> Settings:
    return replace(settings, init_scale=start[0], core_start=start[1])


def search(begin: Callable[[Settings], Watched], held: Any, variant: Variant) -> Choice:
    """Choose settings and epochs of a variant by the score on ``held``, in stages.

    1. The paper's grid of sigma_u, sigma^2 and step sizes, from the first of the starts and, with side
       information, its middle (a, b, c).
    2. With side information: the best cell at all (a, b, c).
    3. The best cell so far from the other starts.

    Each stage is a successive halving, whose last rung runs to early stopping. ``begin`` begins a fit.
    """
    trained = 0
    finalists: list[Watched] = []

    def stage(cells: Sequence[Settings]) -> Watched:
        nonlocal trained
        fits = [begin(cell) for cell in cells]
        finalists.extend(halve(fits, held, variant.rungs, variant.patience))
        trained += sum(fit.epochs for fit in fits)
        return min(finalists, key=lambda fit: min(fit.held_rmse))

    best = stage([_started(cell, variant.starts[0]) for cell in variant.grid])
    if variant.sides:
        best = stage([replace(best.settings, side=side) for side in variant.sides if side != best.settings.side])
    if len(variant.starts) > 1:
        best = stage([_started(best.settings, start) for start in variant.starts[1:]])
    return Choice(best.settings, best.best_epoch, min(best.held_rmse), trained)
