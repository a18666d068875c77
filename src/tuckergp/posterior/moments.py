"""Running means and variances of predictions at chosen inputs, so that draws need not be kept.

Welford's update and Chan's merge of chains: numerically stable, one pass. For N inputs a chain holds 4 arrays of N
numbers of 8 bytes, K + 2 of them for K ordered levels, however many draws there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuckergp.likelihoods import Poisson
from tuckergp.likelihoods.levels import mean_level
from tuckergp.model.design import Design
from tuckergp.model.tucker import TuckerModel
from tuckergp.posterior.draws import PREDICTION_SEED, Draw, Draws
from tuckergp.random import stream

__all__ = ["Moments", "MomentsOf", "Running", "add_draw", "merged", "start", "summarised"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Moments:
    """Predictions at the inputs asked for, in the units of the targets.

    Attributes
    ----------
    mean : ndarray, shape (N,)
        As `predict` gives it.
    std : ndarray, shape (N,)
        Standard deviation of a new observation.
    std_f : ndarray, shape (N,)
        Standard deviation of f (of the mean level for ordered levels, of the mean count for counts), without noise.
    probabilities : ndarray, shape (N, K), or None
        Of the levels of an ordinal or Bernoulli model.
    draws : int
        How many draws they are the moments of.
    """

    mean: Floats
    std: Floats
    std_f: Floats
    probabilities: Floats | None
    draws: int


@dataclass(frozen=True)
class MomentsOf:
    """The inputs at which moments are wanted; the values of levels, or the logarithm of the mean rate of counts."""

    design: Design
    levels: Floats | None = None
    log_rate: float | None = None


@dataclass
class Running:
    """Mean and sum of squared deviations of what has been added; without ``squares`` the mean alone.

    Examples
    --------
    >>> values = Running(np.zeros(1), np.zeros(1))
    >>> for x in (1.0, 2.0, 6.0):
    ...     values.add(np.array([x]))
    >>> float(values.mean[0]), float(values.variance()[0])
    (3.0, 7.0)
    """

    mean: Floats
    squares: Floats | None = None
    count: int = 0

    def add(self, values: Floats) -> None:
        """Add one draw."""
        self.count += 1
        step = values - self.mean
        self.mean += step / self.count
        if self.squares is not None:
            self.squares += step * (values - self.mean)

    def merge(self, other: Running) -> Running:
        """Both together, as if added one after the other."""
        count = self.count + other.count
        step = other.mean - self.mean
        mean = self.mean + step * (other.count / max(count, 1))
        if self.squares is None or other.squares is None:
            return Running(mean, None, count)
        between = step**2 * (self.count * other.count / max(count, 1))
        return Running(mean, self.squares + other.squares + between, count)

    def variance(self) -> Floats:
        """Of the draws, with n - 1; 0 for a single one."""
        if self.squares is None:
            raise ValueError("no squares were kept")
        return self.squares / max(self.count - 1, 1)


def start(of: MomentsOf) -> dict[str, Running]:
    """Nothing added yet."""
    n = of.design.n_observations
    if of.levels is not None:
        return {"probabilities": Running(np.zeros((n, len(of.levels)))), "level": Running(np.zeros(n), np.zeros(n))}
    return {"mean": Running(np.zeros(n)), "f": Running(np.zeros(n), np.zeros(n)), "noise": Running(np.zeros(n))}


def add_draw(
    running: dict[str, Running], of: MomentsOf, model: TuckerModel, draw: Draw, chain: int, number: int
) -> None:
    """Add the predictions of one draw, drawn with the random numbers that `predict` would use for it."""
    alone = Draws(model, [[draw]], sampled=True, first=(chain, number))
    rng = stream(PREDICTION_SEED)
    if of.levels is not None:
        (probabilities,) = alone.probabilities(of.design, rng)
        running["probabilities"].add(probabilities)
        running["level"].add(mean_level(probabilities, of.levels))
        return
    ((f, noise),) = alone.functions(of.design, rng)
    if of.log_rate is not None:
        rate = Poisson.mean(of.log_rate + f)
        for values in running.values():  # the mean, its spread, and the variance of a count
            values.add(rate)
        return
    ((centre, _),) = alone.functions(of.design)
    running["mean"].add(centre)
    running["f"].add(f)
    running["noise"].add(noise)


def merged(chains: Sequence[Mapping[str, Running]]) -> Mapping[str, Running]:
    """The chains together."""
    total, *others = chains
    for chain in others:
        total = {name: running.merge(chain[name]) for name, running in total.items()}
    return total


def summarised(running: Mapping[str, Running], levels: Floats | None, mean: float, scale: float) -> Moments:
    """In the units of the targets, ``mean + scale`` times those of the sampler; levels have units of their own."""
    if levels is not None:
        probabilities, level = running["probabilities"].mean, running["level"]
        centre = mean_level(probabilities, levels)
        spread = np.sqrt(np.maximum(probabilities @ levels**2 - centre**2, 0.0))
        return Moments(centre, spread, np.sqrt(level.variance()), probabilities, level.count)
    between = running["f"].variance()
    return Moments(
        mean + scale * running["mean"].mean,
        scale * np.sqrt(between + running["noise"].mean),
        scale * np.sqrt(between),
        None,
        running["f"].count,
    )
