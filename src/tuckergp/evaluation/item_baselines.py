"""Baselines for lists that score an item by the items that a user already chose: EASE and nearest items.

Both learn from who chose what alone: ratings, counts and attributes are not read. They hold a matrix of items by items.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tuckergp.checks import check, number, whole
from tuckergp.data.history import KEYS, RATING, History
from tuckergp.data.ids import with_aligned_ids
from tuckergp.data.names import named_table

__all__ = ["EASE", "NearestItems"]

Floats = npt.NDArray[np.float64]


class _ItemByItem(BaseEstimator):  # type: ignore[misc]
    """A score is the sum of the weights between an item and the items that the user chose; 0 for unknown ids."""

    predicts_ratings = False
    ranks_by_ = "choice"

    def fit(self, ratings: Any, users: Any = None, items: Any = None) -> Self:
        """Learn from a table with columns user_id and item_id."""
        table = named_table(ratings, "ratings", None)
        history = History.read(table, clicks=RATING not in table.columns)
        self.numbers_: dict[str, dict[Hashable, int]] = {
            key: {value: place for place, value in enumerate(ids)} for key, ids in zip(KEYS, history.ids, strict=True)
        }
        shape = (len(history.ids[0]), len(history.ids[1]))
        chosen: Any = sparse.csr_array((np.ones(len(history.codes[0])), tuple(history.codes)), shape=shape)
        chosen.data[:] = 1.0  # the duplicates are summed in the line above
        self.chosen_ = chosen
        self.weights_ = self._weights((chosen.T @ chosen).toarray())
        return self

    def scores(self, users: Sequence[Hashable], items: Sequence[Hashable]) -> Floats:
        """Scores of all items for some users, shape (n_users, n_items)."""
        check_is_fitted(self)
        rows, columns = (
            np.array([self.numbers_[key].get(value, -1) for value in ids], dtype=np.intp)
            for key, ids in zip(KEYS, (users, items), strict=True)
        )
        found = np.zeros((len(rows), len(columns)))
        known = np.ix_(rows >= 0, columns >= 0)
        found[known] = (self.chosen_[rows[rows >= 0]] @ self.weights_)[:, columns[columns >= 0]]
        return found

    def predict(self, pairs: Any, clip: bool = True) -> Floats:
        """Score each row of ``pairs``."""
        check_is_fitted(self)
        table, places = named_table(pairs, "pairs", None), []
        for key in KEYS:
            ids = with_aligned_ids(table, key, next(iter(self.numbers_[key])))[key].tolist()
            places.append(np.array([self.numbers_[key].get(value, -1) for value in ids], dtype=np.intp))
        known = (places[0] >= 0) & (places[1] >= 0)
        found = np.zeros(len(table))
        rows, inverse = np.unique(places[0][known], return_inverse=True)
        found[known] = (self.chosen_[rows] @ self.weights_)[inverse, places[1][known]]
        return found

    def _weights(self, together: Floats) -> Floats:
        """Weights between items, from how many users chose both of each two, both (items, items)."""
        raise NotImplementedError


class EASE(_ItemByItem):
    """Linear regression of each item on all others, with a ridge penalty (Steck 2019).

    B minimises ``|X - X B|^2 + l2 |B|^2`` with a diagonal of 0; X is 1 where a user chose an item, and 0 elsewhere.

    Parameters
    ----------
    l2 : float

    Examples
    --------
    >>> clicks = {"user_id": [1, 1, 2, 2, 3], "item_id": ["a", "b", "a", "b", "a"]}
    >>> EASE(l2=1.0).fit(clicks).predict({"user_id": [3, 3], "item_id": ["b", "c"]}).round(4)
    array([0.5, 0. ])
    """

    def __init__(self, l2: float = 300.0) -> None:
        self.l2 = l2

    def _weights(self, together: Floats) -> Floats:
        check("l2", self.l2, number("a positive number", lambda value: value > 0))
        inverse = np.linalg.inv(together + self.l2 * np.eye(len(together)))
        B = -inverse / np.diag(inverse)  # column j over P_jj
        np.fill_diagonal(B, 0.0)
        return np.asarray(B)


class NearestItems(_ItemByItem):
    """Each item has its most similar items; similar are those that the same users chose.

    Their similarity is the cosine ``n_ij / (sqrt(n_i n_j) + shrinkage)``, where n counts the users who chose an item or
    both items.

    Parameters
    ----------
    neighbours : int
        How many of the most similar items of each item count.
    shrinkage : float

    Examples
    --------
    >>> clicks = {"user_id": [1, 1, 2, 2, 3], "item_id": ["a", "b", "a", "b", "a"]}
    >>> NearestItems().fit(clicks).predict({"user_id": [3, 3], "item_id": ["b", "c"]}).round(4)
    array([0.8165, 0.    ])
    """

    def __init__(self, neighbours: int = 100, shrinkage: float = 0.0) -> None:
        self.neighbours = neighbours
        self.shrinkage = shrinkage

    def _weights(self, together: Floats) -> Floats:
        check("neighbours", self.neighbours, whole(1))
        check("shrinkage", self.shrinkage, number("a number from 0 on", lambda value: value >= 0))
        root = np.sqrt(np.diag(together))
        similarity = together / (np.outer(root, root) + self.shrinkage)
        np.fill_diagonal(similarity, 0.0)
        if self.neighbours < len(similarity):
            least = np.partition(similarity, -self.neighbours, axis=0)[-self.neighbours]
            similarity[similarity < least] = 0.0
        return np.asarray(similarity)
