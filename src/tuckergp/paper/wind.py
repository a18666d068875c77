"""Daily wind at twelve Irish stations: the paper's table on a grid with missing cells, and what is better.

    python -m tuckergp.paper.wind choose -o wind_choice.json
    python -m tuckergp.paper.wind test -o wind.json

20,000 of the 78,888 values, drawn at random once, train; the others test; RMSE in knots. ``choose`` compares models
that the paper does not have on a fifth of the training values. What it chose stands in `BEYOND`; ``test`` learns from
all training values and scores the others once.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from tuckergp import Mode, TuckerGPRegressor
from tuckergp.data.datasets import Wind, load_wind
from tuckergp.errors import NotConvergedWarning
from tuckergp.features import Cholesky
from tuckergp.gp import FullRank, GridGP
from tuckergp.inference import NUTS, Gibbs
from tuckergp.kernels import SE, Identity, Matern12, Periodic
from tuckergp.paper.cells import (
    Cells,
    Figures,
    Part,
    Split,
    experiment,
    hold_out,
    sampled,
    timed,
    tucker,
)
from tuckergp.paper.store import Store
from tuckergp.random import stream

__all__ = ["BEYOND", "Stations", "app", "cells", "choices", "split_of"]

PROTOCOL = (
    "knots; 20,000 values drawn at random with one seed train, the others test; numbers of the kernels by type-II "
    "maximum likelihood of GridGP; models with chains chosen on a fifth of the training values; test values scored "
    "once a cell"
)
N_TRAIN, QUICK_DAYS = 20_000, 365
RANKS = (2, 5, 10)
SEEDS = (0, 1, 2)
YEAR = 365.25
LENGTHS = {"draws": 100, "warmup": 100, "chains": 4}
"""Of NUTS, as in the paper; and of Gibbs sampling."""
QUICK_LENGTHS = {"draws": 20, "warmup": 20, "chains": 2}

PLACE = ("longitude", "latitude")
START = {
    "longitude, latitude__lengthscale": 2.0,
    "day__k1__scale": 1.0,
    "day__k1__kernel__lengthscale": 2_000.0,
    "day__k2__scale": 0.5,
    "day__k2__kernel__lengthscale": 1.0,
}
"""Where the search for the numbers of the kernels starts: degrees and days."""

FIXED = ("period", "day__k1__kernel__lengthscale")
"""The period is a year, and the trend stays one: left free it becomes weather, with thousands of features."""

Numbers: TypeAlias = Callable[[], dict[str, float]]

# Names the streams that draw training values and hold some of them out.
TRAIN_KEY, HELD_KEY = 3_000_001, 3_000_002

held_out = partial(hold_out, key=HELD_KEY)


def split_of(wind: Wind, quick: bool = False) -> Split:
    """Training values at random, the others to test; a quick run has the first year alone."""
    values, stations = wind.values, wind.stations
    place = {code: number for number, code in enumerate(stations["station"])}
    at = np.array([place[code] for code in values["station"]])
    X = {
        "station": values["station"],
        "longitude": stations.numeric("longitude")[at],
        "latitude": stations.numeric("latitude")[at],
        "day": values.numeric("day"),
    }
    part = Part(X, values.numeric("speed"))
    if quick:
        part = part.take(np.flatnonzero(X["day"] < QUICK_DAYS))
    order = stream(0, TRAIN_KEY).permutation(len(part.y))
    cut = len(part.y) // 4 if quick else N_TRAIN
    return Split(part.take(order[:cut]), part.take(order[cut:]))


def modes_of(numbers: dict[str, float] | None) -> list[Mode]:
    """The paper's kernels: places by an isotropic squared exponential; days by a trend and a yearly period.

    With the numbers that `GridGP` learned, or with those that it starts from.
    """
    at = numbers or START
    trend = at["day__k1__scale"] * SE(at["day__k1__kernel__lengthscale"])
    season = at["day__k2__scale"] * Periodic(YEAR, at["day__k2__kernel__lengthscale"])
    return [
        Mode(PLACE, SE(at[f"{', '.join(PLACE)}__lengthscale"]), features=Cholesky(), constant=False),
        Mode("day", trend + season, features=Cholesky(), constant=False),
    ]


def grid_gp(split: Split, max_iter: int = 100) -> Figures:
    """The GP on the grid, its numbers learned by type-II maximum likelihood but for the two in `FIXED`."""
    gp = GridGP(modes_of(None), noise=0.8, fixed=FIXED, max_iter=max_iter)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)  # a quick run stops early
        gp.fit(split.train.X, split.train.y)
    numbers = {name: float(value[0]) for name, value in gp.hyperparameters_.items()}
    return split.score(gp) | {"log_marginal_likelihood": gp.log_marginal_likelihood_, "hyperparameters": numbers}


def full_rank(split: Split, numbers: Numbers) -> Figures:
    """The weight-space model with pivoted Cholesky features, in closed form."""
    found = numbers()
    model = FullRank(modes_of(found), found["scale"], found["noise"]).fit(split.train.X, split.train.y)
    return split.score(model) | {"weights": model.n_weights_}


def nuts(split: Split, numbers: Numbers, rank: int, seed: int, lengths: dict[str, int]) -> Figures:
    """The paper's model and sampler: noise and prior scales as the GP has them."""
    found = numbers()
    inference = NUTS(noise=found["noise"], sigma_w=found["scale"] ** 0.5, **lengths)
    return sampled(modes_of(found), rank, inference, seed, split)


def gibbs(split: Split, numbers: Numbers, rank: int, seed: int, lengths: dict[str, int]) -> Figures:
    """The same features; noise and prior scales are drawn along with the rest."""
    return sampled(modes_of(numbers()), rank, Gibbs(**lengths), seed, split)  # type: ignore[arg-type]


class Rooted:
    """A model of the square root of the speed, which is closer to normal; means and intervals are of the speed.

    Parameters
    ----------
    model : TuckerGPRegressor
        Of roots.
    """

    def __init__(self, model: TuckerGPRegressor) -> None:
        self.model = model

    def predict(
        self, X: dict[str, Any], quantiles: Sequence[float] | None = None, interval: float | None = None
    ) -> Any:
        """The mean, E[root]^2 + Var[root]; with quantiles or an interval, squares of those of the root."""
        root, std = self.model.predict(X, return_std=True)
        if interval is not None:
            quantiles = (0.5 - interval / 2, 0.5 + interval / 2)
        if quantiles is None:
            return root**2 + std**2
        _, limits = self.model.predict(X, quantiles=quantiles)
        return root**2 + std**2, np.maximum(limits, 0.0) ** 2


@dataclass(frozen=True)
class Stations:
    """A model of stations and days, which the paper does not have: days have a season and a Matern-1/2 chain.

    Attributes
    ----------
    rank : int
    near : bool
        Stations resemble their neighbours, by a Matern-1/2 of their places, beside what is their own.
    root : bool
        Of the root of the speed.
    draws, warmup : int
    """

    rank: int
    near: bool = True
    root: bool = False
    draws: int = 300
    warmup: int = 100

    @property
    def modes(self) -> list[Mode]:
        """Stations and days."""
        station = Mode("station", Identity())
        if self.near:
            station = Mode(("station", *PLACE), Identity("station") + Matern12(5.0, PLACE))
        return [station, Mode("day", Periodic(YEAR) + Matern12(2.0))]

    def fit(self, split: Split, seed: int) -> Any:
        """Learn it; the lengthscale of the chain, noise and scales are drawn along with the rest."""
        inference = Gibbs(draws=self.draws, warmup=self.warmup)
        if not self.root:
            return tucker(self.modes, self.rank, inference, seed, split, core="full")
        roots = Split(Part(split.train.X, np.sqrt(split.train.y)), split.test)
        return Rooted(tucker(self.modes, self.rank, inference, seed, roots, core="full"))


CANDIDATES = {
    "chain/r=5": Stations(5, near=False),
    "chain/r=12": Stations(12, near=False),
    "chain, places/r=5": Stations(5),
    "chain, places/r=12": Stations(12),
    "chain, places, root/r=12": Stations(12, root=True),
}
BEYOND = {
    "chain, places/r=12": replace(CANDIDATES["chain, places/r=12"], draws=1_000),
    "chain, places, root/r=12": replace(CANDIDATES["chain, places, root/r=12"], draws=1_000),
}
"""The two with the least error on held-out training values, which differ by 0.001 there; run for longer."""


def beyond(split: Split, setting: Stations, seed: int) -> Figures:
    """A model with a chain: errors, and how often 90 % intervals hold the speed."""
    model = setting.fit(split, seed)
    return split.score(model) | split.covered(model)


def cells(split: Split, store: Store, quick: bool = False) -> Cells:
    """All that the table is made of; those of the paper's kernels take their numbers from the first."""
    gp = partial(grid_gp, split, 3 if quick else 100)

    def numbers() -> dict[str, float]:
        found: dict[str, float] = store.cell("gp", lambda: timed(gp))["hyperparameters"]
        return found

    lengths = QUICK_LENGTHS if quick else LENGTHS
    ranks, seeds = (RANKS[:1], SEEDS[:1]) if quick else (RANKS, SEEDS)
    found: dict[str, Callable[[], Figures]] = {"gp": gp, "full": partial(full_rank, split, numbers)}
    for name, setting in BEYOND.items():
        chosen = replace(setting, rank=3, draws=20, warmup=20) if quick else setting
        found[f"beyond/{name}/seed 0"] = partial(beyond, split, chosen, 0)
    for seed in seeds:
        found |= {f"gibbs/r={r}/seed {seed}": partial(gibbs, split, numbers, r, seed, lengths) for r in ranks}
    return found | {f"nuts/r={r}/seed 0": partial(nuts, split, numbers, r, 0, lengths) for r in ranks}


def choices(split: Split) -> Cells:
    """Models with chains on held-out training values."""
    inner = held_out(split)
    return {name: partial(beyond, inner, setting, 0) for name, setting in CANDIDATES.items()}


app = experiment(
    "wind",
    PROTOCOL,
    load=lambda data, quick: split_of(load_wind(data), quick),
    cells=cells,
    choices=choices,
    about=__doc__,
)

if __name__ == "__main__":
    sys.exit(app())
