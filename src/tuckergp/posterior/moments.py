"""Running means and variances of predictions at chosen inputs, so that draws need not be kept.

Welford's update and Chan's merge of chains: numerically stable, one pass. For N inputs a chain holds 4 arrays of N
numbers of 8 bytes, K + 4 of them for K ordered levels, however many draws there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuckergp.model.design import Design
from tuckergp.posterior.draws import PREDICTION_SEED, Draws
from tuckergp.random import stream

__all__ = ["Moments", "MomentsOf", "Running", "add_draw", "merged", "of_draws", "start", "summarised"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Moments:
    """Predictions at the inputs asked for, in the units of the targets.

    Attributes
    ----------
    mean : ndarray, shape (N,)
        Posterior mean, as `predict` returns it.
    std : ndarray, shape (N,)
        Standard deviation of a new observation.
    std_f : ndarray, shape (N,)
        Standard deviation of f (of the mean level for ordered levels, of the mean count for counts), without noise.
    probabilities : ndarray, shape (N, K), or None
        Probability of each level, for targets with levels.
    draws : int
        How many draws the moments are of.
    """

    mean: Floats
    std: Floats
    std_f: Floats
    probabilities: Floats | None
    draws: int


@dataclass(frozen=True)
class MomentsOf:
    """The inputs at which moments are wanted."""

    design: Design

    @property
    def has_newcomers(self) -> bool:
        """Whether some of the inputs are newcomers whose set is not known."""
        return any(len(table.newcomers) for table in self.design.modes)


@dataclass
class Running:
    """Mean and sum of squared deviations of the values added so far; without ``squares`` the mean alone.

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
        """The moments of both together, as if all values had been added to one."""
        count = self.count + other.count
        step = other.mean - self.mean
        mean = self.mean + step * (other.count / max(count, 1))
        if self.squares is None or other.squares is None:
            return Running(mean, None, count)
        between = step**2 * (self.count * other.count / max(count, 1))
        return Running(mean, self.squares + other.squares + between, count)

    def variance(self) -> Floats:
        """Variance of the values added, with divisor n - 1; 0 for a single one."""
        if self.squares is None:
            raise ValueError("no squares were kept")
        return self.squares / max(self.count - 1, 1)


def start(of: MomentsOf) -> dict[str, Running]:
    """The moments before any draw is added."""
    n = of.design.n_observations
    return {"mean": Running(np.zeros(n)), "given": Running(np.zeros(n), np.zeros(n)), "noise": Running(np.zeros(n))}


def add_draw(running: dict[str, Running], of: MomentsOf, draw: Draws) -> None:
    """Add the predictions of a single draw, made with the random numbers that `predict` would use for it."""
    likelihood = draw.model.likelihood
    at = draw.predicted(of.design, stream(PREDICTION_SEED))
    given = likelihood.means(at)[0]
    centre = likelihood.means(draw.predicted(of.design))[0] if likelihood.linear else given
    for name, values in {"mean": centre, "given": given, "noise": likelihood.variances(at)[0]}.items():
        running[name].add(values)
    if likelihood.has_levels:
        probabilities = likelihood.probabilities(at)[0]
        running.setdefault("probabilities", Running(np.zeros_like(probabilities))).add(probabilities)


def of_draws(draws: Draws, of: MomentsOf) -> dict[str, Running]:
    """The moments of draws that were kept."""
    running = start(of)
    for s in range(len(draws)):
        add_draw(running, of, draws.only(s))
    return running


def merged(chains: Sequence[Mapping[str, Running]]) -> Mapping[str, Running]:
    """The moments of all chains together."""
    total, *others = chains
    for chain in others:
        total = {name: running.merge(chain[name]) for name, running in total.items()}
    return total


def summarised(running: Mapping[str, Running]) -> Moments:
    """Means and standard deviations of predictions from their running moments."""
    between = running["given"].variance()
    probabilities = running["probabilities"].mean if "probabilities" in running else None
    return Moments(
        running["mean"].mean,
        np.sqrt(between + running["noise"].mean),
        np.sqrt(between),
        probabilities,
        running["given"].count,
    )
