"""Equal mixtures with one component for each draw, the predictive distributions of new observations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, gammaln, nbdtrik, ndtr, ndtri, pdtr, pdtrik, stdtr, stdtrit

__all__ = [
    "NORMAL",
    "Standard",
    "mixture_quantiles",
    "negative_binomial_distribution",
    "negative_binomial_quantiles",
    "poisson_distribution",
    "poisson_quantiles",
    "student_t",
]

Floats = npt.NDArray[np.float64]

ROOT_2PI = np.sqrt(2 * np.pi)
TOLERANCE = 1e-9
MOST_STEPS = 100
# The range of means for which the distribution of counts is computed, and the rounding of its sums and of its inverse.
TINY_RATE, LARGEST_RATE = 1e-300, 1e15
TOLERANCE_OF_LEVEL, ROUNDING = 1e-12, 1e-6


class Standard(NamedTuple):
    """A continuous distribution around 0 at scale 1: one for all draws, or one for each of S.

    ``distribution`` and ``density`` take values (S, n); ``quantile`` takes a level, and gives a number or (S, 1).
    """

    distribution: Callable[[Floats], Floats]
    density: Callable[[Floats], Floats]
    quantile: Callable[[float], Any]


NORMAL = Standard(ndtr, lambda z: np.exp(-0.5 * z * z) / ROOT_2PI, ndtri)


def student_t(nu: Floats) -> Standard:
    """Student's t with ``nu`` (S,) degrees of freedom."""
    df = nu[:, None]
    log_constant = gammaln((df + 1) / 2) - gammaln(df / 2) - 0.5 * np.log(np.pi * df)

    def density(z: Floats) -> Floats:
        return np.asarray(np.exp(log_constant - 0.5 * (df + 1) * np.log1p(z * z / df)))

    return Standard(lambda z: stdtr(df, z), density, lambda level: stdtrit(df, level))


def mixture_quantiles(mean: Floats, sd: Floats, level: float, standard: Standard = NORMAL) -> Floats:
    """The quantile of equal mixtures of mean_s + sd_s z_s, z_s of a standard distribution, shape (N,).

    Newton's method on the distribution function, safeguarded by a bracket that holds the quantile.

    Parameters
    ----------
    mean, sd : ndarray, shape (S, N)
    level : float
        Between 0 and 1.
    standard : Standard

    Examples
    --------
    >>> mixture_quantiles(np.array([[-1.0], [1.0]]), np.ones((2, 1)), 0.5)
    array([0.])
    """
    # the quantile of the mixture lies between those of its components
    each = mean + sd * standard.quantile(level)
    low, high = each.min(axis=0), each.max(axis=0)
    spread = np.sqrt(np.mean(sd**2, axis=0) + mean.var(axis=0))
    x = np.clip(mean.mean(axis=0) + spread * ndtri(level), low, high)
    open_ = np.flatnonzero(high - low > TOLERANCE * spread)
    for _ in range(MOST_STEPS):
        if not len(open_):
            break
        z = (x[open_] - mean[:, open_]) / sd[:, open_]
        excess = standard.distribution(z).mean(axis=0) - level
        density = (standard.density(z) / sd[:, open_]).mean(axis=0)
        above = excess > 0
        high[open_[above]] = x[open_[above]]
        low[open_[~above]] = x[open_[~above]]
        # x - (F(x) - level) / F'(x); the middle of the bracket where that leaves it, or leaves the numbers
        step = np.divide(excess, density, out=np.full_like(excess, np.inf), where=density > np.finfo(float).tiny)
        proposal = x[open_] - step
        outside = ~((low[open_] <= proposal) & (proposal <= high[open_]))
        proposal[outside] = 0.5 * (low[open_] + high[open_])[outside]
        moved = np.abs(proposal - x[open_])
        x[open_] = proposal
        open_ = open_[moved > TOLERANCE * spread[open_]]
    return np.asarray(x)


def poisson_quantiles(rate: Floats, level: float) -> Floats:
    """The least counts k with P(count <= k) >= level under equal mixtures of Poissons, shape (N,).

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
    return _count_quantiles(rate, level, poisson_distribution, pdtrik)


def poisson_distribution(rate: Floats, k: Floats) -> Floats:
    """P(count <= k) of each component, for means (S, N) and k (N,), shape (S, N)."""
    return np.where(k < 0, 0.0, pdtr(np.maximum(k, 0.0), np.clip(rate, TINY_RATE, LARGEST_RATE)))


def negative_binomial_quantiles(rate: Floats, dispersion: Floats, level: float) -> Floats:
    """The least counts k with P(count <= k) >= level under equal mixtures of negative binomials, shape (N,).

    Their variance is mean + mean^2 / dispersion.

    Parameters
    ----------
    rate : ndarray, shape (S, N)
        Means; where all are beyond 1e15 a count is taken to be its mean.
    dispersion : ndarray, shape (S,)
    level : float
        Between 0 and 1.

    Examples
    --------
    >>> negative_binomial_quantiles(np.array([[1.0], [9.0]]), np.array([1.0, 1.0]), 0.5)
    array([2.])
    """
    h = dispersion[:, None]
    return _count_quantiles(
        rate,
        level,
        lambda mean, k: negative_binomial_distribution(mean, dispersion, k),
        lambda level, mean: nbdtrik(level, h, h / (h + mean)),
    )


def negative_binomial_distribution(rate: Floats, dispersion: Floats, k: Floats) -> Floats:
    """P(count <= k) of each component, for means (S, N), dispersions (S,) and k (N,), shape (S, N)."""
    h, mean = dispersion[:, None], np.clip(rate, TINY_RATE, LARGEST_RATE)
    return np.where(k < 0, 0.0, betainc(h, np.floor(np.maximum(k, 0.0)) + 1.0, h / (h + mean)))


def _count_quantiles(
    rate: Floats,
    level: float,
    distribution: Callable[[Floats, Floats], Floats],
    inverse: Callable[[float, Floats], Any],
) -> Floats:
    """Quantiles of equal mixtures of counts by bisection between the smallest and the largest of the components.

    ``distribution`` takes means (S, n) and counts (n,), ``inverse`` a level and means.
    """
    small = np.clip(rate, TINY_RATE, LARGEST_RATE)
    each = np.nan_to_num(inverse(level, small))
    # wider by the rounding of the inverse
    low = np.maximum(np.ceil((1 - ROUNDING) * each.min(axis=0)) - 2.0, -1.0)
    high = np.ceil((1 + ROUNDING) * each.max(axis=0)) + 1.0
    for _ in range(MOST_STEPS):
        open_ = np.flatnonzero(high - low > 1.0)
        if not len(open_):
            break
        middle = np.floor(0.5 * (low[open_] + high[open_]))
        reached = distribution(small[:, open_], middle).mean(axis=0) >= level - TOLERANCE_OF_LEVEL
        high[open_[reached]] = middle[reached]
        low[open_[~reached]] = middle[~reached]
    largest = rate.min(axis=0) > LARGEST_RATE
    high[largest] = np.quantile(rate[:, largest], level, axis=0)
    return np.asarray(high)
