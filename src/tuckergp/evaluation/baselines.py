"""Baselines that any model should beat: the mean of all ratings, biases of users and items, and popularity.

Those that score items by other items are in `tuckergp.evaluation.item_baselines`. All have the `fit` and `predict` of
`TuckerRecommender`. Attributes of users and items are not used.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tuckergp.data.history import KEYS, RATING, History, read_ratings
from tuckergp.data.ids import with_aligned_ids
from tuckergp.data.names import named_table
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.evaluation.item_baselines import EASE, NearestItems

__all__ = ["BASELINES", "EASE", "Biases", "GlobalMean", "NearestItems", "Popularity"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
ROUNDS = 20

# Expectation-maximisation of the variances: rounds, start, and the smallest variance of biases, which would otherwise
# approach zero without end; in units of the ratings' variance.
EM_ROUNDS = 100
START_BIASES, START_NOISE, LEAST_VARIANCE = 0.16, 0.64, 1e-9


class _RatingBaseline(BaseEstimator):  # type: ignore[misc]
    """A baseline that predicts a mean for each pair, with the same normal error for all of them."""

    ranks_by_ = "rating"

    def fit(self, ratings: Any, users: Any = None, items: Any = None) -> Self:
        """Learn from a table with columns user_id, item_id and rating."""
        table = named_table(ratings, "ratings", None)
        y, ids, codes = read_ratings(table)
        self.rating_range_ = (float(y.min()), float(y.max()))
        self._learn(y, ids, codes)
        self.std_ = max(float(np.sqrt(np.mean((y - self._mean(table)) ** 2))), 1e-9)
        return self

    def predict(
        self,
        pairs: Any,
        return_std: bool = False,
        quantiles: Sequence[float] | None = None,
        clip: bool = True,
    ) -> Floats | tuple[Floats, Floats]:
        """Predict the rating of each row of ``pairs``; the standard deviation is that of the training errors."""
        check_is_fitted(self)
        if return_std and quantiles is not None:
            raise InputError("Ask for standard deviations or for quantiles, not both.")
        low, high = self.rating_range_ if clip else (-np.inf, np.inf)
        mean = self._mean(named_table(pairs, "pairs", None))
        if return_std:
            return np.clip(mean, low, high), np.full(len(mean), self.std_)
        if quantiles is not None:
            ends = mean[:, None] + self.std_ * ndtri(np.asarray(quantiles, dtype=np.float64))
            return np.clip(mean, low, high), np.clip(ends, low, high)
        return np.clip(mean, low, high)

    def _learn(self, y: Floats, ids: list[list[Any]], codes: list[Ints]) -> None:
        raise NotImplementedError

    def _mean(self, pairs: Table) -> Floats:
        raise NotImplementedError


class GlobalMean(_RatingBaseline):
    """The mean of the training ratings, for every pair.

    Attributes
    ----------
    mean_ : float
    std_ : float

    Examples
    --------
    >>> ratings = {"user_id": [1, 2], "item_id": [1, 1], "rating": [3.0, 4.0]}
    >>> GlobalMean().fit(ratings).predict({"user_id": [9], "item_id": [1]})
    array([3.5])
    """

    def _learn(self, y: Floats, ids: list[list[Any]], codes: list[Ints]) -> None:
        self.mean_ = float(y.mean())

    def _mean(self, pairs: Table) -> Floats:
        return np.full(len(pairs), self.mean_)


class Biases(_RatingBaseline):
    """The mean, plus a bias of the user and one of the item; 0 for those without ratings.

    Parameters
    ----------
    damping : float or "auto"
        How strongly biases are shrunk to 0, as if each user and item had this many more ratings at the mean: the biases
        minimise the squared errors plus ``damping`` times the sum of their squares. ``"auto"``: learned from the
        ratings, one for users and one for items, as the variance of the noise over that of the biases (empirical
        Bayes).

    Attributes
    ----------
    mean_ : float
    biases_ : dict of str to dict
        By ``user_id`` and ``item_id``, the bias of each id.
    damping_ : dict of str to float
        By ``user_id`` and ``item_id``, the damping used; infinite if all ratings are equal.
    std_ : float

    Examples
    --------
    >>> ratings = {"user_id": [1, 1, 2, 2], "item_id": [1, 2, 1, 2], "rating": [3.0, 4.0, 4.0, 5.0]}
    >>> Biases(damping=0).fit(ratings).predict({"user_id": [1, 9], "item_id": [1, 1]}).round(6)
    array([3. , 3.5])
    """

    def __init__(self, damping: float | Literal["auto"] = 5.0) -> None:
        self.damping = damping

    def _learn(self, y: Floats, ids: list[list[Any]], codes: list[Ints]) -> None:
        counts = [np.bincount(code, minlength=len(known)) for code, known in zip(codes, ids, strict=True)]
        if self.damping == "auto":
            self.mean_, biases, damping = _empirical_biases(y, codes, counts)
        else:
            number = isinstance(self.damping, int | float | np.number) and not isinstance(self.damping, bool)
            if not (number and 0 <= self.damping < np.inf):
                raise InputError(f"damping must be a number from 0 on or 'auto', not {self.damping!r}.")
            self.mean_, damping = float(y.mean()), [float(self.damping)] * 2
            biases = _damped_biases(y - self.mean_, codes, counts, float(self.damping))
        self.biases_: dict[str, dict[Hashable, float]] = {
            key: dict(zip(known, bias.tolist(), strict=True))
            for key, known, bias in zip(KEYS, ids, biases, strict=True)
        }
        self.damping_ = dict(zip(KEYS, damping, strict=True))

    def _mean(self, pairs: Table) -> Floats:
        total = np.full(len(pairs), self.mean_)
        for key in KEYS:
            bias = self.biases_[key]
            ids = with_aligned_ids(pairs, key, next(iter(bias)))[key].tolist()
            total += np.fromiter((bias.get(value, 0.0) for value in ids), np.float64, len(pairs))
        return total


class Popularity(BaseEstimator):  # type: ignore[misc]
    """Ranks items by how often they were rated; it does not predict ratings.

    Examples
    --------
    >>> ratings = {"user_id": [1, 2, 2], "item_id": [1, 1, 5], "rating": [3.0, 4.0, 5.0]}
    >>> Popularity().fit(ratings).predict({"user_id": [1, 1, 1], "item_id": [1, 5, 7]})
    array([2., 1., 0.])
    """

    predicts_ratings = False
    ranks_by_ = "popularity"

    def fit(self, ratings: Any, users: Any = None, items: Any = None) -> Self:
        """Count the ratings of a table with columns user_id, item_id and rating, or clicks without ratings."""
        table = named_table(ratings, "ratings", None)
        history = History.read(table, clicks=RATING not in table.columns)
        counts = np.bincount(history.codes[1]).tolist()
        self.counts_: dict[Hashable, int] = dict(zip(history.ids[1], counts, strict=True))
        return self

    def predict(self, pairs: Any, clip: bool = True) -> Floats:
        """Score each row of ``pairs`` by the number of ratings of its item."""
        check_is_fitted(self)
        table = with_aligned_ids(named_table(pairs, "pairs", None), "item_id", next(iter(self.counts_)))
        items = table["item_id"].tolist()
        return np.fromiter((self.counts_.get(item, 0) for item in items), np.float64, len(items))


def _damped_biases(y: Floats, codes: list[Ints], counts: list[Ints], damping: float) -> list[Floats]:
    """Biases of users and items given one damping, by alternating updates."""
    biases = [np.zeros(len(count)) for count in counts]
    for _ in range(ROUNDS):
        for d in (1, 0):
            rest = y - biases[1 - d][codes[1 - d]]
            biases[d] = np.bincount(codes[d], rest, minlength=len(counts[d])) / (counts[d] + damping)
    return biases


def _empirical_biases(y: Floats, codes: list[Ints], counts: list[Ints]) -> tuple[float, list[Floats], list[float]]:
    """Mean, biases of users and items, and the damping of each, with all variances learned.

    Expectation-maximisation, with biases of users and of items assumed independent given the ratings.
    """
    mean, spread = float(y.mean()), float(y.var())
    biases = [np.zeros(len(count)) for count in counts]
    if spread <= 1e-24 * max(1.0, mean**2):
        return mean, biases, [np.inf, np.inf]
    variance, noise = [START_BIASES * spread] * 2, START_NOISE * spread
    for _ in range(EM_ROUNDS):
        for d, count in enumerate(counts):
            precision = count / noise + 1 / variance[d]
            rest = y - mean - biases[1 - d][codes[1 - d]]
            biases[d] = np.bincount(codes[d], rest, minlength=len(count)) / noise / precision
            variance[d] = max(float(np.mean(biases[d] ** 2 + 1 / precision)), LEAST_VARIANCE * spread)
        fitted = biases[0][codes[0]] + biases[1][codes[1]]
        mean = float(np.mean(y - fitted))
        # the effective number of biases
        paid = sum(float(np.sum(n / (n + noise / v))) for n, v in zip(counts, variance, strict=True))
        squares = float(np.sum((y - mean - fitted) ** 2))
        noise = max(squares / max(len(y) - paid, 1.0), LEAST_VARIANCE * spread)
    return mean, biases, [noise / v for v in variance]


BASELINES: dict[str, type[Any]] = {
    "mean": GlobalMean,
    "biases": Biases,
    "popularity": Popularity,
    "ease": EASE,
    "nearest_items": NearestItems,
}
"""The baselines by their names in `tuckergp.evaluation.evaluate`."""
