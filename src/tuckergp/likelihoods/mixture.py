"""Quantiles of a mixture of normals or of Poissons, one a draw: what a new observation is predicted to be."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri, pdtr, pdtrik

__all__ = ["mixture_quantiles", "poisson_quantiles"]

Floats = npt.NDArray[np.float64]

ROOT_2PI = np.sqrt(2 * np.pi)
TOLERANCE = 1e-9
MOST_STEPS = 100
# Means of counts whose distribution is computed, and rounding of its sums.
TINY_RATE, LARGEST_RATE = 1e-300, 1e15
TOLERANCE_OF_LEVEL = 1e-12


def mixture_quantiles(mean: Floats, sd: Floats, level: float) -> Floats:
    """The quantile of equal mixtures of N(mean_s, sd_s^2), shape (N,).

    Newton's method on the distribution function, kept between ends that are known to be below and above.

    Parameters
    ----------
    mean, sd : ndarray, shape (S, N)
    level : float
        Between 0 and 1.

    Examples
    --------
    >>> mixture_quantiles(np.array([[-1.0], [1.0]]), np.ones((2, 1)), 0.5)
    array([0.])
    """
    each = mean + sd * ndtri(level)
    low, high = each.min(axis=0), each.max(axis=0)
    spread = np.sqrt(np.mean(sd**2, axis=0) + mean.var(axis=0))
    x = np.clip(mean.mean(axis=0) + spread * ndtri(level), low, high)
    open_ = np.flatnonzero(high - low > TOLERANCE * spread)
    for _ in range(MOST_STEPS):
        if not len(open_):
            break
        z = (x[open_] - mean[:, open_]) / sd[:, open_]
        excess = ndtr(z).mean(axis=0) - level
        density = (np.exp(-0.5 * z * z) / (ROOT_2PI * sd[:, open_])).mean(axis=0)
        above = excess > 0
        high[open_[above]] = x[open_[above]]
        low[open_[~above]] = x[open_[~above]]
        step = np.divide(excess, density, out=np.full_like(excess, np.inf), where=density > 0)
        proposal = x[open_] - step
        outside = ~((low[open_] <= proposal) & (proposal <= high[open_]))
        proposal[outside] = 0.5 * (low[open_] + high[open_])[outside]
        moved = np.abs(proposal - x[open_])
        x[open_] = proposal
        open_ = open_[moved > TOLERANCE * spread[open_]]
    return np.asarray(x)


def poisson_quantiles(rate: Floats, level: float) -> Floats:
    """The least counts k with P(count <= k) >= level under equal mixtures of Poissons, shape (N,).

    Bisection between the least and the largest quantile of the single ones.

    Parameters
    ----------
    rate : ndarray, shape (S, N)
        Means; beyond 1e15 a count is its mean, as far as floats can tell.
    level : float
        Between 0 and 1.

    Examples
    --------
    >>> poisson_quantiles(np.array([[1.0], [9.0]]), 0.5)
    array([3.])
    """
    small = np.clip(rate, TINY_RATE, LARGEST_RATE)
    each = np.ceil(np.nan_to_num(pdtrik(level, small)))
    # what the inverse rounds is off by one at the most
    low, high = np.maximum(each.min(axis=0) - 2.0, -1.0), each.max(axis=0) + 1.0
    for _ in range(MOST_STEPS):
        open_ = np.flatnonzero(high - low > 1.0)
        if not len(open_):
            break
        middle = np.floor(0.5 * (low[open_] + high[open_]))
        reached = pdtr(middle, small[:, open_]).mean(axis=0) >= level - TOLERANCE_OF_LEVEL
        high[open_[reached]] = middle[reached]
        low[open_[~reached]] = middle[~reached]
    largest = rate.min(axis=0) > LARGEST_RATE
    high[largest] = np.quantile(rate[:, largest], level, axis=0)
    return np.asarray(high)
