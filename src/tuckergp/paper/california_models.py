"""The models of the California experiment: the authors' GP, full rank, Tucker models, and chains on turned axes.

How they are compared is in `tuckergp.paper.california`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from tuckergp import Mode, TuckerGPRegressor
from tuckergp.data.datasets import California
from tuckergp.features import Cholesky, FeatureMap, Fourier
from tuckergp.gp import ExactGP, FullRank
from tuckergp.inference import Gibbs
from tuckergp.kernels import SE, Matern12
from tuckergp.paper.experiment import Figures
from tuckergp.paper.regression import Part, Split, convergence, sampled, tucker
from tuckergp.paper.run import quietly
from tuckergp.random import stream

__all__ = ["GIVEN", "Chains", "cholesky", "exact", "full_rank", "modes_of", "split_of", "tucker_of"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Hyperparameters:
    """Variances and lengthscales of the squared exponential GP, for whitened inputs and targets."""

    scale: float
    noise: float
    longitude: float
    latitude: float


GIVEN = Hyperparameters(scale=0.9497**2, noise=0.3696**2, longitude=0.0216, latitude=0.0136)
"""The hyperparameters of the paper's authors."""
MIDDLE = 36.0
"""The latitude at which the length of a degree of longitude is taken."""
LENGTHSCALE = 0.3
"""The start and the prior centre of lengthscales of chains, in degrees of latitude."""
# Key of the random stream that draws the rows of a quick run.
QUICK_KEY = 2_000_002


def split_of(california: California, rows: int | None = None) -> Split:
    """The authors' halves, with log prices as targets; with ``rows``, that many of the first half for training."""
    table = california.table
    y = np.log(table.numeric("house_value"))
    blocks = Part({name: table.numeric(name) for name in ("longitude", "latitude")}, y)
    train, test = blocks.take(california.train), blocks.take(california.test)
    if rows is not None:
        train = train.take(stream(0, QUICK_KEY).permutation(len(train.y))[:rows])
    return Split(train, test)


def modes_of(numbers: Hyperparameters, features: FeatureMap | None) -> list[Mode]:
    """Longitude and latitude as in the paper: squared exponential on whitened degrees, no constants."""
    scales = {"longitude": numbers.longitude, "latitude": numbers.latitude}
    return [Mode(name, SE(at), features=features, constant=False, whiten=True) for name, at in scales.items()]


def exact(split: Split, learn: bool, max_iter: int = 100) -> Figures:
    """The GP with the authors' hyperparameters, or with those learned from there by maximum likelihood."""
    gp = ExactGP(modes_of(GIVEN, None), GIVEN.scale, GIVEN.noise, learn=learn, max_iter=max_iter)
    quietly(gp.fit, split.train.X, split.train.y)
    numbers = {name: round(float(value[0]), 5) for name, value in gp.hyperparameters_.items()}
    likelihood = round(gp.log_marginal_likelihood_, 2)
    return split.score(gp) | {"log_marginal_likelihood": likelihood, "hyperparameters": numbers}


def full_rank(split: Split, n: int, seed: int) -> Figures:
    """The weight-space model with n Fourier features in each mode, in closed form."""
    modes = modes_of(GIVEN, Fourier(n, pairs=False))
    model = FullRank(modes, GIVEN.scale, GIVEN.noise, random_state=seed).fit(split.train.X, split.train.y)
    return split.score(model)


def tucker_of(split: Split, n: int, rank: int, inference: Any, seed: int) -> Figures:
    """A Tucker model with the same features, by a sampler."""
    return sampled(modes_of(GIVEN, Fourier(n, pairs=False)), rank, inference, seed, split)


def cholesky(split: Split, rank: int, seed: int, lengths: dict[str, Any]) -> Figures:
    """The paper's kernels with features that are exact on the distinct longitudes and latitudes."""
    model = tucker(modes_of(GIVEN, Cholesky()), rank, Gibbs(**lengths), seed, split)
    counts = [int(mode.blocks[0].map.n_features_) for mode in model.modes_]
    return split.score(model) | convergence(model) | {"features": counts}


class Turned:
    """The mean of Tucker models with Matern-1/2 chains, each on axes turned by an angle.

    A product of rough kernels predicts better along its axes than between them; a mean over angles balances that.

    Parameters
    ----------
    models : dict of float to TuckerGPRegressor
        The models by angle in degrees.
    """

    def __init__(self, models: dict[float, TuckerGPRegressor]) -> None:
        self.models = models

    def predict(self, X: dict[str, Floats], interval: float | None = None) -> Any:
        """The mean prediction; with ``interval``, also normal intervals with the mean of the variances."""
        if interval is None:
            return np.mean([model.predict(turn(X, angle)) for angle, model in self.models.items()], axis=0)
        predictions = [model.predict(turn(X, angle), return_std=True) for angle, model in self.models.items()]
        mean = np.mean([one for one, _ in predictions], axis=0)
        spread = ndtri(0.5 + interval / 2) * np.sqrt(np.mean([std**2 for _, std in predictions], axis=0))
        return mean, np.stack([mean - spread, mean + spread], axis=1)


def turn(X: dict[str, Floats], angle: float) -> dict[str, Floats]:
    """Coordinates along axes turned by an angle, in degrees of latitude; equal places stay equal."""
    east, north, at = X["longitude"] * np.cos(np.deg2rad(MIDDLE)), X["latitude"], np.deg2rad(angle)
    u, v = np.cos(at) * east + np.sin(at) * north, np.cos(at) * north - np.sin(at) * east
    return {"u": u.round(4), "v": v.round(4)}


@dataclass(frozen=True)
class Chains:
    """Settings of `Turned`, a model that is not in the paper.

    Attributes
    ----------
    turns : int
        The number of angles, evenly between 0 and 90 degrees; 1 means longitude and latitude themselves.
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
        models = {}
        for angle in np.arange(self.turns) * (90.0 / self.turns):
            turned = Split(Part(turn(split.train.X, angle), split.train.y), split.test)
            models[float(angle)] = tucker(modes, self.rank, inference, seed, turned)
        return Turned(models)
