"""Quantiles of a mixture of normals, one normal a draw: what a new observation is predicted to be."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

__all__ = ["mixture_quantiles"]

Floats = npt.NDArray[np.float64]

ROOT_2PI = np.sqrt(2 * np.pi)
TOLERANCE = 1e-9
MOST_STEPS = 100


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
