"""Scores of predicted distributions, one number per rating; smaller is better.

Under normal noise a sampler predicts a mixture of normals, one per draw. It is scored as the normal distribution with
the same mean and variance: log densities and CRPS then have closed forms. Where noise is most of the variance, as with
ratings, the two are close (the tests bound the difference for such a mixture). Ordered levels are scored exactly, by
the probabilities averaged over the draws. Mixtures of other distributions are scored by their likelihoods.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from tuckergp.errors import InputError
from tuckergp.evaluation.metrics.errors import column_of
from tuckergp.likelihoods.ranked import levels_score

__all__ = ["interval_coverage", "levels_crps", "levels_nll", "normal_crps", "normal_nll"]

Floats = npt.NDArray[np.float64]


def normal_nll(y: npt.ArrayLike, mean: npt.ArrayLike, std: npt.ArrayLike) -> Floats:
    """Negative log density of each observation under N(mean, std^2), in nats, shape (n,).

    A density depends on the unit of the ratings: compare models on the same scale only, and not with `levels_nll`
    unless neighbouring levels are 1 apart.

    Parameters
    ----------
    y, mean, std : array-like, shape (n,)

    Examples
    --------
    >>> normal_nll([0.0], [0.0], [1.0]).round(4)
    array([0.9189])
    """
    z, sd = _standardised(y, mean, std)
    return np.asarray(0.5 * z**2 + np.log(sd) + 0.5 * np.log(2 * np.pi))


def normal_crps(y: npt.ArrayLike, mean: npt.ArrayLike, std: npt.ArrayLike) -> Floats:
    """Continuous ranked probability score of N(mean, std^2), in the unit of the ratings, shape (n,).

    The integral of (F(x) - 1[y <= x])^2 over x; the absolute error where the distribution is one point.

    Parameters
    ----------
    y, mean, std : array-like, shape (n,)

    Examples
    --------
    >>> normal_crps([0.0], [0.0], [1.0]).round(4)
    array([0.2337])
    """
    z, sd = _standardised(y, mean, std)
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    return np.asarray(sd * (z * (2 * ndtr(z) - 1) + 2 * density - 1 / np.sqrt(np.pi)))


def levels_nll(y: npt.ArrayLike, levels: npt.ArrayLike, probabilities: npt.ArrayLike) -> Floats:
    """Negative log probability of each observation among ordered levels, in nats, shape (n,).

    Infinite for an observation that is not one of the levels.

    Parameters
    ----------
    y : array-like, shape (n,)
    levels : array-like, shape (K,)
        Increasing.
    probabilities : array-like, shape (n, K)

    Examples
    --------
    >>> levels_nll([2.0], [1.0, 2.0], [[0.5, 0.5]]).round(4)
    array([0.6931])
    """
    observed, values, p = _levels(y, levels, probabilities)
    place = np.minimum(np.searchsorted(values, observed), len(values) - 1)
    probability = np.where(values[place] == observed, p[np.arange(len(observed)), place], 0.0)
    out = np.full(len(observed), np.inf)
    np.log(probability, out=out, where=probability > 0)
    return np.where(probability > 0, -out, np.inf)


def levels_crps(y: npt.ArrayLike, levels: npt.ArrayLike, probabilities: npt.ArrayLike) -> Floats:
    """Continuous ranked probability score of a distribution over levels, in the unit of the levels, shape (n,).

    The same integral as in `normal_crps`, so that the two can be compared: E|X - y| - E|X - X'| / 2.

    Parameters
    ----------
    y : array-like, shape (n,)
    levels : array-like, shape (K,)
        Increasing.
    probabilities : array-like, shape (n, K)

    Examples
    --------
    >>> levels_crps([2.0], [1.0, 2.0], [[0.5, 0.5]])
    array([0.25])
    """
    observed, values, p = _levels(y, levels, probabilities)
    return levels_score(p, values, observed)


def interval_coverage(y: npt.ArrayLike, low: npt.ArrayLike, high: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Which observations are within their predicted intervals, ends included, shape (n,).

    Parameters
    ----------
    y, low, high : array-like, shape (n,)

    Examples
    --------
    >>> interval_coverage([1.0, 5.0], [0.0, 0.0], [2.0, 2.0])
    array([ True, False])
    """
    observed, lowest, highest = _alike(y=y, low=low, high=high)
    if (lowest > highest).any():
        raise InputError(f"low is above high at row {int(np.argmax(lowest > highest))}.")
    return (lowest <= observed) & (observed <= highest)


def _alike(**columns: npt.ArrayLike) -> list[Floats]:
    """Check that columns have finite numbers and the same length."""
    read = {name: column_of(values, name) for name, values in columns.items()}
    if len({len(values) for values in read.values()}) > 1:
        shown = ", ".join(f"{name} {len(values)}" for name, values in read.items())
        raise InputError(f"All must have the same length: {shown}.")
    return list(read.values())


def _standardised(y: npt.ArrayLike, mean: npt.ArrayLike, std: npt.ArrayLike) -> tuple[Floats, Floats]:
    observed, centre, sd = _alike(y=y, mean=mean, std=std)
    if (sd <= 0).any():
        raise InputError(f"std must be above 0, but it is {sd.min():g} at row {int(np.argmin(sd))}.")
    return (observed - centre) / sd, sd


def _levels(y: npt.ArrayLike, levels: npt.ArrayLike, probabilities: npt.ArrayLike) -> tuple[Floats, Floats, Floats]:
    observed, values = column_of(y, "y"), column_of(levels, "levels")
    p = np.asarray(probabilities, dtype=np.float64)
    if (np.diff(values) <= 0).any():
        raise InputError("levels must be increasing.")
    if p.shape != (len(observed), len(values)):
        raise InputError(
            f"probabilities must have a row for each of {len(observed)} observations and a column for each of "
            f"{len(values)} levels, but their shape is {p.shape}."
        )
    if not np.allclose(p.sum(axis=1), 1.0) or (p < 0).any():
        raise InputError("Each row of probabilities must sum to 1, with no negative number.")
    return observed, values, p
