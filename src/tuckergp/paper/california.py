"""California house prices by longitude and latitude: the paper's figure and tables, and what is better.

    python -m tuckergp.paper.california choose -o california_choice.json
    python -m tuckergp.paper.california test -o california.json

The first half of the authors' row order trains, the rest tests; RMSE is of the log price. ``choose`` compares models
that the paper does not have on a fifth of the training rows. What it chose stands in `BEYOND`; ``test`` learns from all
training rows and scores the test rows once.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from sklearn.ensemble import RandomForestRegressor

from tuckergp import Mode, TuckerGPRegressor
from tuckergp.data.datasets import California, load_california
from tuckergp.errors import NotConvergedWarning
from tuckergp.features import Cholesky, FeatureMap, Fourier
from tuckergp.gp import ExactGP, FullRank
from tuckergp.inference import NUTS, Gibbs
from tuckergp.kernels import SE, Matern12
from tuckergp.paper.cells import (
    Cells,
    Figures,
    Part,
    Split,
    convergence,
    experiment,
    hold_out,
    sampled,
    score,
    tucker,
)
from tuckergp.paper.store import Store
from tuckergp.random import stream

__all__ = ["BEYOND", "GIVEN", "app", "cells", "choices", "split_of"]

Floats = npt.NDArray[np.float64]

PROTOCOL = (
    "log price; the first half of the authors' row order trains, the rest tests; numbers of the kernels are the "
    "authors'; models with chains chosen on a fifth of the training rows; test rows scored once a cell"
)
SIZES = (25, 50, 100, 200)
RANKS = (2, 5, 10)
SEEDS = (0, 1, 2)
NUTS_SIZES = {(25, 2), (25, 5), (25, 10), (200, 5)}
"""Of the paper's settings, those that are sampled with NUTS: (n, r), first seed."""


@dataclass(frozen=True)
class Hyperparameters:
    """Of the squared exponential GP, for whitened inputs and targets: variances and lengthscales."""

    scale: float
    noise: float
    longitude: float
    latitude: float


GIVEN = Hyperparameters(scale=0.9497**2, noise=0.3696**2, longitude=0.0216, latitude=0.0136)
"""Those of the paper's authors."""

LENGTHS = {"draws": 300, "warmup": 300, "chains": 4}
"""Of NUTS, as in the paper."""
SWEEPS = {"draws": 150, "warmup": 100, "chains": 4}
"""Of Gibbs sampling."""
EXACT_SWEEPS = {"draws": 40, "warmup": 30, "chains": 1}
"""Of Gibbs sampling with a feature for every distinct value, where a sweep takes seconds."""
QUICK_LENGTHS = {"draws": 20, "warmup": 20, "chains": 2}
QUICK_SIZES, QUICK_RANKS, QUICK_ROWS = (25,), (2, 5), 1_000

# Names the stream that holds rows out, and draws the rows of a quick run.
HELD_KEY, QUICK_KEY = 2_000_001, 2_000_002

held_out = partial(hold_out, key=HELD_KEY)


def split_of(california: California, quick: bool = False) -> Split:
    """The authors' halves; a quick run takes some rows of the first half to learn from."""
    table = california.table
    y = np.log(table.numeric("house_value"))
    part = Part({name: table.numeric(name) for name in ("longitude", "latitude")}, y)
    train, test = part.take(california.train), part.take(california.test)
    if quick:
        train = train.take(stream(0, QUICK_KEY).permutation(len(train.y))[:QUICK_ROWS])
    return Split(train, test)


def modes_of(numbers: Hyperparameters, features: FeatureMap | None) -> list[Mode]:
    """Longitude and latitude as in the paper: squared exponential on whitened degrees, no constants."""
    scales = {"longitude": numbers.longitude, "latitude": numbers.latitude}
    return [Mode(name, SE(at), features=features, constant=False, whiten=True) for name, at in scales.items()]


def exact(split: Split, learn: bool, max_iter: int = 100) -> Figures:
    """The GP with the authors' numbers, or with those that make the data most likely, found from there."""
    gp = ExactGP(modes_of(GIVEN, None), GIVEN.scale, GIVEN.noise, learn=learn, max_iter=max_iter)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)  # a quick run stops early
        gp.fit(split.train.X, split.train.y)
    numbers = {name: round(float(value[0]), 5) for name, value in gp.hyperparameters_.items()}
    likelihood = round(gp.log_marginal_likelihood_, 2)
    return split.score(gp) | {"log_marginal_likelihood": likelihood, "hyperparameters": numbers}


def full_rank(split: Split, n: int, seed: int) -> Figures:
    """The weight-space model with n Fourier features a mode, in closed form."""
    modes = modes_of(GIVEN, Fourier(n, pairs=False))
    model = FullRank(modes, GIVEN.scale, GIVEN.noise, random_state=seed).fit(split.train.X, split.train.y)
    return split.score(model)


def nuts(split: Split, n: int, rank: int, seed: int, lengths: dict[str, int]) -> Figures:
    """The paper's model and sampler: prior scales and noise as the GP has them."""
    inference = NUTS(noise=GIVEN.noise, sigma_w=GIVEN.scale**0.5, **lengths)
    return sampled(modes_of(GIVEN, Fourier(n, pairs=False)), rank, inference, seed, split)


def gibbs(split: Split, n: int, rank: int, seed: int, lengths: dict[str, int]) -> Figures:
    """The same features; noise and prior scales are drawn along with the rest."""
    return sampled(modes_of(GIVEN, Fourier(n, pairs=False)), rank, Gibbs(**lengths), seed, split)  # type: ignore[arg-type]


class Turned:
    """The mean of Tucker models with Matern-1/2 chains, each on axes turned by an angle.

    A product of rough kernels sees along its axes better than between them; turning them evens that out.

    Parameters
    ----------
    models : dict of float to TuckerGPRegressor
        By angle in degrees.
    """

    def __init__(self, models: dict[float, TuckerGPRegressor]) -> None:
        self.models = models

    def predict(self, X: dict[str, Floats], interval: float | None = None) -> Any:
        """The mean prediction; with an interval, normal ones of the mean variance."""
        if interval is None:
            return np.mean([model.predict(turn(X, angle)) for angle, model in self.models.items()], axis=0)
        found = [model.predict(turn(X, angle), return_std=True) for angle, model in self.models.items()]
        mean = np.mean([one for one, _ in found], axis=0)
        spread = ndtri(0.5 + interval / 2) * np.sqrt(np.mean([std**2 for _, std in found], axis=0))
        return mean, np.stack([mean - spread, mean + spread], axis=1)


def turn(X: dict[str, Floats], angle: float) -> dict[str, Floats]:
    """Coordinates along axes turned by an angle, in degrees of latitude; equal places stay equal."""
    east, north, at = X["longitude"] * np.cos(np.deg2rad(MIDDLE)), X["latitude"], np.deg2rad(angle)
    u, v = np.cos(at) * east + np.sin(at) * north, np.cos(at) * north - np.sin(at) * east
    return {"u": u.round(4), "v": v.round(4)}


@dataclass(frozen=True)
class Chains:
    """Settings of `Turned`, which the paper does not have.

    Attributes
    ----------
    turns : int
        How many angles, evenly between 0 and 90 degrees; one is longitude and latitude as they are.
    rank : int
    draws, warmup : int
    """

    turns: int
    rank: int
    draws: int = 150
    warmup: int = 100

    def fit(self, split: Split, seed: int) -> Turned:
        """Learn the models; lengthscales, noise and scales are drawn along with the rest."""
        modes = [Mode(column, Matern12(LENGTHSCALE)) for column in ("u", "v")]
        inference = Gibbs(draws=self.draws, warmup=self.warmup)
        found = {}
        for angle in np.arange(self.turns) * (90.0 / self.turns):
            part = Split(Part(turn(split.train.X, angle), split.train.y), split.test)
            found[float(angle)] = tucker(modes, self.rank, inference, seed, part, core="full")
        return Turned(found)


MIDDLE = 36.0
"""Latitude where a degree of longitude is measured."""
LENGTHSCALE = 0.3
"""Where lengthscales start, in degrees of latitude, and the centre of their prior."""
CANDIDATES = {
    f"turns={turns}/r={rank}": Chains(turns, rank)
    for turns, ranks in {1: (5, 10, 20), 2: (5, 10, 20), 4: (5, 10)}.items()
    for rank in ranks
}
BEYOND = {name: CANDIDATES[name] for name in ("turns=1/r=10", "turns=1/r=20", "turns=4/r=10")}
"""The last is the one with the least error on held-out training rows."""


def beyond(split: Split, setting: Chains, seed: int) -> Figures:
    """Models with chains: errors, and how often 90 % intervals hold the price."""
    model = setting.fit(split, seed)
    return split.score(model) | split.covered(model)


def cholesky(split: Split, rank: int, seed: int, lengths: dict[str, int]) -> Figures:
    """The paper's kernels with features that are exact on the distinct longitudes and latitudes."""
    model = tucker(modes_of(GIVEN, Cholesky()), rank, Gibbs(**lengths), seed, split, core="full")  # type: ignore[arg-type]
    counts = [int(mode.blocks[0].map.n_features_) for mode in model.modes_]
    return split.score(model) | convergence(model) | {"features": counts}


def forest(split: Split) -> Figures:
    """A random forest on the two columns, for comparison."""

    def inputs(part: Part) -> Floats:
        return np.stack([part.X["longitude"], part.X["latitude"]], axis=1)

    model = RandomForestRegressor(n_estimators=300, min_samples_leaf=2, random_state=0)
    model.fit(inputs(split.train), split.train.y)
    return score(model, (inputs(split.train), split.train.y), (inputs(split.test), split.test.y))


def cells(split: Split, store: Store, quick: bool = False) -> Cells:
    """All that the tables are made of, quick things first."""
    found: dict[str, Callable[[], Figures]] = {}
    sizes, ranks, seeds = (QUICK_SIZES, QUICK_RANKS, SEEDS[:1]) if quick else (SIZES, RANKS, SEEDS)
    sweeps = QUICK_LENGTHS if quick else SWEEPS
    found["gp/given"] = partial(exact, split, False)
    found["forest"] = partial(forest, split)
    for seed in seeds:
        found |= {f"full/n={n}/seed {seed}": partial(full_rank, split, n, seed) for n in sizes}
        for name, setting in ({"turns=2/r=5": Chains(2, 5, 20, 20)} if quick else BEYOND).items():
            found[f"beyond/{name}/seed {seed}"] = partial(beyond, split, setting, seed)
        for n in sizes:
            for r in ranks:
                found[f"gibbs/n={n}/r={r}/seed {seed}"] = partial(gibbs, split, n, r, seed, sweeps)
    if not quick:
        found["cholesky/r=5/seed 0"] = partial(cholesky, split, 5, 0, EXACT_SWEEPS)
    length = QUICK_LENGTHS if quick else LENGTHS
    for n, r in sorted(NUTS_SIZES if not quick else {(25, 2)}):
        found[f"nuts/n={n}/r={r}/seed 0"] = partial(nuts, split, n, r, 0, length)
    found["gp/learned"] = partial(exact, split, True, 3 if quick else 100)
    return found


def choices(split: Split) -> Cells:
    """Models with chains on held-out training rows."""
    inner = held_out(split)
    return {name: partial(beyond, inner, setting, 0) for name, setting in CANDIDATES.items()}


app = experiment(
    "california",
    PROTOCOL,
    load=lambda data, quick: split_of(load_california(data), quick),
    cells=cells,
    choices=choices,
    about=__doc__,
)

if __name__ == "__main__":
    sys.exit(app())
