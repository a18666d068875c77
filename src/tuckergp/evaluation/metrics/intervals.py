"""Confidence intervals of means over ratings or users, by a bootstrap over users.

Ratings of one user are similar, so users are resampled with all their ratings (a cluster bootstrap), both for errors
and for lists. Over several folds the figure is the mean of the folds' figures, and a user who is in several folds is
resampled in all of them at once. Intervals are percentiles. The fitted models are taken as given: intervals do not
include the variation due to other training data.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from tuckergp.errors import InputError
from tuckergp.evaluation.metrics.errors import column_of
from tuckergp.random import stream

__all__ = ["Estimate", "Kind", "Part", "confidence_interval", "estimate", "numbered"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

Kind: TypeAlias = Literal["mean", "root", "distinct"]
"""A mean over rows, its root, or a count of distinct things."""

RESAMPLES = 1000
# How many weights of users are held at once.
BLOCK = 4_000_000


@dataclass(frozen=True)
class Part:
    """One fold of one metric, summed by user.

    Attributes
    ----------
    value : float
    user : ndarray, shape (n,)
        Numbers of the users, each once; the same numbers in all folds.
    total, count : ndarray, shape (n,)
        The sum of the user's rows, and their number. For a count of distinct things: how much smaller the value would
        be without the user, and 1.
    """

    value: float
    user: Ints
    total: Floats
    count: Floats

    @classmethod
    def of(cls, values: npt.ArrayLike, user: Ints, kind: Kind = "mean") -> Part:
        """Sum values of rows by the numbers of their users; rows that are NaN do not count."""
        column = np.asarray(values, dtype=np.float64)
        kept = ~np.isnan(column)
        distinct, code = np.unique(user[kept], return_inverse=True)
        total = np.bincount(code, weights=column[kept], minlength=len(distinct)).astype(np.float64)
        count = np.bincount(code, minlength=len(distinct)).astype(np.float64)
        mean = float(total.sum() / count.sum()) if len(distinct) else np.nan
        return cls(float(np.sqrt(mean)) if kind == "root" else mean, distinct, total, count)


@dataclass(frozen=True)
class Estimate:
    """A figure and the bounds of its confidence interval, which are NaN where there is none."""

    value: float
    low: float
    high: float


def estimate(
    folds: Sequence[Part],
    n_users: int,
    *,
    kind: Kind = "mean",
    minus: Sequence[Part] | None = None,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """The mean of the folds' figures with a confidence interval.

    Parameters
    ----------
    folds : sequence of Part
    n_users : int
        How many users are numbered.
    kind : {"mean", "root", "distinct"}
        Distinct counts shrink when users are drawn twice, so that the bootstrap is wrong for them; they get a normal
        interval from the jackknife, which leaves out one user at a time.
    minus : sequence of Part or None
        The same folds of another model, to estimate the difference to it with the same users resampled in both.
    level : float
    resamples, seed : int
    """
    if not 0 < level < 1:
        raise InputError(f"The level of a confidence interval must be between 0 and 1, not {level!r}.")
    value = _value(folds) - (0.0 if minus is None else _value(minus))
    if not np.isfinite(value) or n_users < 2:
        return Estimate(value, np.nan, np.nan)
    if kind == "distinct":
        loss = _loss(folds, n_users) - (0.0 if minus is None else _loss(minus, n_users))
        sd = np.sqrt((n_users - 1) / n_users * np.sum((loss - loss.mean()) ** 2))
        half = float(ndtri(0.5 + level / 2) * sd)
        low, high = (value - half, value + half) if minus is not None else (max(0, value - half), min(1, value + half))
        return Estimate(value, low, high)
    drawn = _resampled(folds, n_users, kind, resamples, seed)
    if minus is not None:
        drawn = drawn - _resampled(minus, n_users, kind, resamples, seed)
    drawn = drawn[np.isfinite(drawn)]
    if not len(drawn):
        return Estimate(value, np.nan, np.nan)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(value, float(low), float(high))


def confidence_interval(
    values: npt.ArrayLike,
    users: Iterable[Hashable] | None = None,
    *,
    level: float = 0.95,
    root: bool = False,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[float, float]:
    """Confidence interval of the mean of values, resampling users with all their rows.

    Parameters
    ----------
    values : array-like, shape (n,)
        One number per row, such as squared errors, log densities or recalls.
    users : sequence of ids, length n, or None
        The user of each row; None if each row has another user.
    level : float
    root : bool
        Interval of the square root of the mean: with squared errors, of the RMSE.
    resamples, seed : int

    Examples
    --------
    >>> low, high = confidence_interval([0.0, 1.0, 1.0, 1.0], users=["ann", "bob", "bob", "eve"])
    >>> 0 <= low < 0.75 < high <= 1
    True
    """
    column = column_of(values, "values")
    ids = range(len(column)) if users is None else list(users)
    if len(ids) != len(column) or not len(column):
        raise InputError(f"There are {len(column)} values and {len(ids)} users; give one user per value, at least one.")
    number: dict[Hashable, int] = {}
    kind: Kind = "root" if root else "mean"
    part = Part.of(column, numbered(ids, number), kind)
    result = estimate([part], len(number), kind=kind, level=level, resamples=resamples, seed=seed)
    return result.low, result.high


def numbered(ids: Iterable[Hashable], number: dict[Hashable, int]) -> Ints:
    """The numbers of ids; new ids get the next free number and are added to the dictionary."""
    return np.array([number.setdefault(value, len(number)) for value in ids], dtype=np.intp)


def _value(folds: Sequence[Part]) -> float:
    return float(np.mean([fold.value for fold in folds]))


def _loss(folds: Sequence[Part], n_users: int) -> Floats:
    loss = np.zeros(n_users)
    for fold in folds:
        loss[fold.user] += fold.total / len(folds)
    return loss


def _resampled(folds: Sequence[Part], n_users: int, kind: Kind, resamples: int, seed: int) -> Floats:
    """The figure with users drawn with replacement, shape (resamples,)."""
    sums = np.zeros((n_users, 2, len(folds)))
    for number, fold in enumerate(folds):
        sums[fold.user, 0, number] = fold.total
        sums[fold.user, 1, number] = fold.count
    flat = sums.reshape(n_users, -1)
    rng = stream(seed)
    out = np.empty(resamples)
    block = max(1, BLOCK // n_users)
    for first in range(0, resamples, block):
        rows = min(block, resamples - first)
        times = np.stack([np.bincount(rng.integers(n_users, size=n_users), minlength=n_users) for _ in range(rows)])
        total, count = np.moveaxis((times.astype(np.float64) @ flat).reshape(rows, 2, -1), 1, 0)
        mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
        out[first : first + rows] = (np.sqrt(np.maximum(mean, 0.0)) if kind == "root" else mean).mean(axis=1)
    return out
