"""How a sampler finds its step sizes during warm-up: dual averaging, running variances, and when to use them.

Pure functions of explicit states. Nothing is adapted after the warm-up, so the draws are of one fixed Markov chain.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["DualAverage", "Variances", "averaged", "window_ends", "with_acceptance", "with_point"]

Floats = npt.NDArray[np.float64]

# Hoffman and Gelman (2014), section 3.2: how fast early steps are forgotten, and how firmly the start is held.
SHRINKAGE, OFFSET, FORGETTING = 0.05, 10.0, 0.75
# Shares of the warm-up before the first window and after the last; the first window's steps. Windows double.
BEFORE, AFTER, FIRST_WINDOW = 0.15, 0.1, 25
# Variances are shrunk towards the mean variance of their block, which counts for this many points.
PRIOR_POINTS = 5.0


class DualAverage(NamedTuple):
    """Dual averaging of a log step size: its value, average, mean error, centre of shrinkage, and the trials so far."""

    log_step: float
    log_average: float
    error: float
    centre: float
    trials: int


def averaged(step: float) -> DualAverage:
    """Start dual averaging at a step size; larger ones are tried first."""
    return DualAverage(math.log(step), math.log(step), 0.0, math.log(10 * step), 0)


def with_acceptance(state: DualAverage, probability: float, target: float) -> DualAverage:
    """Update the step size with the acceptance probability of one trajectory.

    Examples
    --------
    >>> rejected = with_acceptance(averaged(0.1), 0.0, target=0.8)
    >>> accepted = with_acceptance(averaged(0.1), 1.0, target=0.8)
    >>> rejected.log_step < accepted.log_step
    True
    """
    count = state.trials + 1
    # Hoffman and Gelman (2014), equation 6: H_t = (1 - 1 / (t + t0)) H_{t-1} + (target - probability) / (t + t0),
    # x_t = mu - sqrt(t) / gamma H_t, xbar_t = t^-kappa x_t + (1 - t^-kappa) xbar_{t-1}
    share = 1 / (count + OFFSET)
    error = (1 - share) * state.error + share * (target - probability)
    log_step = state.centre - math.sqrt(count) / SHRINKAGE * error
    share = count**-FORGETTING
    return DualAverage(log_step, share * log_step + (1 - share) * state.log_average, error, state.centre, count)


class Variances(NamedTuple):
    """Running mean and sum of squared deviations (Welford) of theta."""

    points: int
    mean: Floats
    squares: Floats

    @classmethod
    def empty(cls, size: int) -> Variances:
        """The state before the first point."""
        return cls(0, np.zeros(size), np.zeros(size))

    def scales(self, blocks: list[slice], each: bool) -> Floats:
        """Standard deviations: of each entry, shrunk to its block's; or the block's for all its entries."""
        scales = np.empty_like(self.squares)
        for block in blocks:
            mean = float(self.squares[block].mean()) / self.points
            shrunk = (self.squares[block] + PRIOR_POINTS * mean) / (self.points + PRIOR_POINTS)
            scales[block] = np.sqrt(shrunk if each else mean)
        return scales


def with_point(state: Variances, theta: Floats) -> Variances:
    """Update the mean and the sum of squares with one more point."""
    count = state.points + 1
    off = theta - state.mean
    mean = state.mean + off / count
    return Variances(count, mean, state.squares + off * (theta - mean))


def window_ends(warmup: int) -> tuple[int, list[int]]:
    """After which step variances are first gathered, and after which steps they are put to use and begun again.

    Examples
    --------
    >>> window_ends(300)
    (45, [70, 120, 270])
    """
    first, last = round(BEFORE * warmup), warmup - round(AFTER * warmup)
    ends, end, size = [], first, FIRST_WINDOW
    while end < last:
        end += size
        size *= 2
        if end + size > last:  # the next would not fit: this one takes the rest
            end = last
        ends.append(end)
    return first, ends if last - first >= 10 else []
