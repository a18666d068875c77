"""What any model should beat: the mean of all ratings, biases of users and items, and how often items were rated.

They are fitted and asked like `TuckerRecommender`. Attributes of users and items are not used.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tuckergp.errors import InputError
from tuckergp.history import KEYS, RATING, History, read_ratings
from tuckergp.tables import Table, as_table

__all__ = ["BASELINES", "Biases", "GlobalMean", "Popularity"]

Floats = npt.NDArray[np.float64]
ROUNDS = 20


class _RatingBaseline(BaseEstimator):  # type: ignore[misc]
    """A mean for every pair, and one normal error for all of them."""

    def fit(self, ratings: Any, users: Any = None, items: Any = None) -> Self:
        """Learn from a table with columns user_id, item_id and rating."""
        table = as_table(ratings, "ratings")
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
        """Predict the rating of every row of ``pairs``; the standard deviation is that of the training errors."""
        check_is_fitted(self)
        if return_std and quantiles is not None:
            raise InputError("Ask for standard deviations or for quantiles, not both.")
        low, high = self.rating_range_ if clip else (-np.inf, np.inf)
        mean = self._mean(as_table(pairs, "pairs"))
        if return_std:
            return np.clip(mean, low, high), np.full(len(mean), self.std_)
        if quantiles is not None:
            ends = mean[:, None] + self.std_ * ndtri(np.asarray(quantiles, dtype=np.float64))
            return np.clip(mean, low, high), np.clip(ends, low, high)
        return np.clip(mean, low, high)

    def _learn(self, y: Floats, ids: list[list[Any]], codes: list[npt.NDArray[np.intp]]) -> None:
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

    def _learn(self, y: Floats, ids: list[list[Any]], codes: list[npt.NDArray[np.intp]]) -> None:
        self.mean_ = float(y.mean())

    def _mean(self, pairs: Table) -> Floats:
        return np.full(len(pairs), self.mean_)


class Biases(_RatingBaseline):
    """The mean, plus a bias of the user and one of the item; 0 for those without ratings.

    The biases minimise the squared errors plus ``damping`` times the sum of their squares.

    Parameters
    ----------
    damping : float
        As many ratings at the mean are added to every user and item.

    Attributes
    ----------
    mean_ : float
    biases_ : dict of str to dict
        By ``user_id`` and ``item_id``, the bias of every id.
    std_ : float

    Examples
    --------
    >>> ratings = {"user_id": [1, 1, 2, 2], "item_id": [1, 2, 1, 2], "rating": [3.0, 4.0, 4.0, 5.0]}
    >>> Biases(damping=0).fit(ratings).predict({"user_id": [1, 9], "item_id": [1, 1]}).round(6)
    array([3. , 3.5])
    """

    def __init__(self, damping: float = 5.0) -> None:
        self.damping = damping

    def _learn(self, y: Floats, ids: list[list[Any]], codes: list[npt.NDArray[np.intp]]) -> None:
        if not self.damping >= 0:
            raise InputError(f"damping must be at least 0, not {self.damping!r}.")
        self.mean_ = float(y.mean())
        biases = [np.zeros(len(known)) for known in ids]
        counts = [np.bincount(code, minlength=len(known)) for code, known in zip(codes, ids, strict=True)]
        for _ in range(ROUNDS):
            for d in (1, 0):
                rest = y - self.mean_ - biases[1 - d][codes[1 - d]]
                biases[d] = np.bincount(codes[d], rest, minlength=len(ids[d])) / (counts[d] + self.damping)
        self.biases_: dict[str, dict[Hashable, float]] = {
            key: dict(zip(known, bias.tolist(), strict=True))
            for key, known, bias in zip(KEYS, ids, biases, strict=True)
        }

    def _mean(self, pairs: Table) -> Floats:
        total = np.full(len(pairs), self.mean_)
        for key in KEYS:
            bias = self.biases_[key]
            total += np.fromiter((bias.get(value, 0.0) for value in pairs[key].tolist()), np.float64, len(pairs))
        return total


class Popularity(BaseEstimator):  # type: ignore[misc]
    """How often an item was rated, whatever the ratings: to rank by, no prediction of ratings.

    Examples
    --------
    >>> ratings = {"user_id": [1, 2, 2], "item_id": [1, 1, 5], "rating": [3.0, 4.0, 5.0]}
    >>> Popularity().fit(ratings).predict({"user_id": [1, 1, 1], "item_id": [1, 5, 7]})
    array([2., 1., 0.])
    """

    predicts_ratings = False

    def fit(self, ratings: Any, users: Any = None, items: Any = None) -> Self:
        """Count the ratings of a table with columns user_id, item_id and rating, or clicks without the last."""
        table = as_table(ratings, "ratings")
        history = History.read(table, clicks=RATING not in table.columns)
        counts = np.bincount(history.codes[1]).tolist()
        self.counts_: dict[Hashable, int] = dict(zip(history.ids[1], counts, strict=True))
        return self

    def predict(self, pairs: Any, clip: bool = True) -> Floats:
        """Score every row of ``pairs``: the number of its item's ratings."""
        check_is_fitted(self)
        items = as_table(pairs, "pairs")["item_id"].tolist()
        return np.fromiter((self.counts_.get(item, 0) for item in items), np.float64, len(items))


BASELINES: dict[str, type[Any]] = {"mean": GlobalMean, "biases": Biases, "popularity": Popularity}
"""The baselines by the names that `tuckergp.evaluate` knows them by."""
