"""Metrics of lists of recommendations, one number per user; larger is better unless said otherwise.

A list has k places. ``hits``, shape (n_users, k), says which places hold a relevant item, best place first; places that
could not be filled are no hits. ``n_relevant``, shape (n_users,), is the number of relevant items of each user, in the
list or not. Relevance is binary. Items are numbered; -1 stands for an empty place.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuckergp.errors import InputError

__all__ = [
    "auc",
    "average_precision",
    "catalogue_coverage",
    "diversity",
    "hit_rate",
    "ndcg",
    "novelty",
    "precision",
    "recall",
    "reciprocal_rank",
    "top_k",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
Bools = npt.NDArray[np.bool_]


def top_k(scores: npt.ArrayLike, k: int) -> Ints:
    """The items with the k largest scores of each user, best first, shape (n_users, k).

    Ties are in the order of the items. Items with a score of minus infinity are never taken; places that remain empty
    hold -1.

    Parameters
    ----------
    scores : array-like, shape (n_users, n_items)
    k : int

    Examples
    --------
    >>> top_k([[0.1, 0.9, 0.5], [0.3, -np.inf, -np.inf]], 2)
    array([[ 1,  2],
           [ 0, -1]])
    """
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2 or np.isnan(table).any():
        raise InputError("scores must be a matrix with one row per user, one column per item, and no NaN.")
    if k < 1:
        raise InputError(f"k must be at least 1, not {k!r}.")
    best = np.argsort(-table, axis=1, kind="stable")[:, :k]
    best[np.take_along_axis(table, best, axis=1) == -np.inf] = -1
    out = np.full((len(table), k), -1, dtype=np.intp)
    out[:, : best.shape[1]] = best
    return out


def precision(hits: npt.ArrayLike) -> Floats:
    """Share of the k places that hold a relevant item.

    Examples
    --------
    >>> precision([[True, False]])
    array([0.5])
    """
    return np.asarray(_hits(hits).mean(axis=1))


def recall(hits: npt.ArrayLike, n_relevant: npt.ArrayLike) -> Floats:
    """Share of the relevant items that are in the list.

    Examples
    --------
    >>> recall([[True, False]], [4])
    array([0.25])
    """
    is_hit, relevant = _with_relevant(hits, n_relevant)
    return np.asarray(is_hit.sum(axis=1) / relevant)


def hit_rate(hits: npt.ArrayLike) -> Floats:
    """1 where the list holds a relevant item, else 0.

    Examples
    --------
    >>> hit_rate([[False, True], [False, False]])
    array([1., 0.])
    """
    return np.asarray(_hits(hits).any(axis=1), dtype=np.float64)


def average_precision(hits: npt.ArrayLike, n_relevant: npt.ArrayLike) -> Floats:
    """Average precision: the mean, over the relevant items, of the precision at their places; its mean is MAP.

    The sum over places j with a hit of (hits up to j) / j, over min(n_relevant, k): 1 for the best possible list.

    Examples
    --------
    >>> average_precision([[True, False, True]], [2]).round(4)
    array([0.8333])
    """
    is_hit, relevant = _with_relevant(hits, n_relevant)
    k = is_hit.shape[1]
    down_to = np.cumsum(is_hit, axis=1) / np.arange(1, k + 1)
    return np.asarray((down_to * is_hit).sum(axis=1) / np.minimum(relevant, k))


def reciprocal_rank(hits: npt.ArrayLike) -> Floats:
    """Reciprocal rank: 1 over the place of the first hit, 0 without one; its mean over users is MRR.

    Examples
    --------
    >>> reciprocal_rank([[False, True], [False, False]])
    array([0.5, 0. ])
    """
    is_hit = _hits(hits)
    return np.where(is_hit.any(axis=1), 1.0 / (1 + np.argmax(is_hit, axis=1)), 0.0)


def ndcg(hits: npt.ArrayLike, n_relevant: npt.ArrayLike) -> Floats:
    """Normalised discounted cumulative gain: the sum of 1 / log2(1 + place) over hits, relative to the best list.

    Examples
    --------
    >>> ndcg([[False, True]], [1]).round(4)
    array([0.6309])
    """
    is_hit, relevant = _with_relevant(hits, n_relevant)
    k = is_hit.shape[1]
    discount = 1 / np.log2(np.arange(2, k + 2))
    best = np.cumsum(discount)[np.minimum(relevant, k) - 1]
    return np.asarray(is_hit @ discount / best)


def auc(scores: npt.ArrayLike, relevant: npt.ArrayLike) -> Floats:
    """Probability that a relevant item has a larger score than another candidate, ties counting half.

    It uses all candidates, not the first k. NaN for users whose candidates are all relevant, or none.

    Parameters
    ----------
    scores : array-like, shape (n_users, n_items)
        Minus infinity for items that are no candidates.
    relevant : array-like of bool, shape (n_users, n_items)

    Examples
    --------
    >>> auc([[0.9, 0.1, 0.5]], [[True, False, False]])
    array([1.])
    """
    table, wanted = np.asarray(scores, dtype=np.float64), np.asarray(relevant, dtype=bool)
    if table.shape != wanted.shape or table.ndim != 2:
        raise InputError(f"scores and relevant must be matrices of one shape, not {table.shape} and {wanted.shape}.")
    if np.isnan(table).any():
        raise InputError("scores must be without NaN.")
    candidate = table > -np.inf
    wanted = wanted & candidate
    n_wanted, n_other = wanted.sum(axis=1), (candidate & ~wanted).sum(axis=1)
    from scipy.stats import rankdata  # half a second to load

    # ranks among candidates only: all other items come first
    ranks = rankdata(table, axis=1) - (~candidate).sum(axis=1)[:, None]
    above = np.where(wanted, ranks, 0.0).sum(axis=1) - n_wanted * (n_wanted + 1) / 2
    pairs = n_wanted * n_other
    return np.where(pairs > 0, above / np.maximum(pairs, 1), np.nan)


def catalogue_coverage(lists: npt.ArrayLike, n_items: int) -> float:
    """Share of the items that are in at least one list; one number for all users together.

    Examples
    --------
    >>> catalogue_coverage([[0, 1], [1, -1]], n_items=4)
    0.5
    """
    places = _lists(lists, n_items)
    return len(np.unique(places[places >= 0])) / n_items


def novelty(lists: npt.ArrayLike, raters: npt.ArrayLike, n_users: int) -> Floats:
    """Novelty of the items of a list: the mean of -log2 of the share of users who rated them.

    The share is (raters + 1) / (n_users + 1), so that it is positive for items without ratings. NaN for empty lists.

    Parameters
    ----------
    lists : array-like of int, shape (n_lists, k)
    raters : array-like, shape (n_items,)
        How many users rated each item in the training part.
    n_users : int
        How many users the training part has.

    Examples
    --------
    >>> novelty([[0, 1]], raters=[7, 1], n_users=7)
    array([1.])
    """
    rated = np.asarray(raters, dtype=np.float64)
    places = _lists(lists, len(rated))
    bits = np.append(-np.log2((rated + 1) / (n_users + 1)), 0.0)  # the last is for empty places
    return _divided(bits[places].sum(axis=1), (places >= 0).sum(axis=1))


def diversity(lists: npt.ArrayLike, rated: sparse.csr_array) -> Floats:
    """Diversity of the items of a list: 1 minus the mean cosine, over all pairs, of the sets of users who rated them.

    The cosine of two sets is the number of common users over the root of the product of their sizes; 0 for an item
    without raters. NaN for lists of fewer than two items.

    Parameters
    ----------
    lists : array-like of int, shape (n_lists, k)
    rated : sparse matrix, shape (n_items, n_users)
        Not zero where a user rated an item.

    Examples
    --------
    >>> diversity([[0, 1], [0, 2]], sparse.csr_array([[1, 1], [1, 1], [0, 0]])).round(12)
    array([0., 1.])
    """
    sets = rated.astype(bool).astype(np.float64)
    sets.eliminate_zeros()
    sizes = np.diff(sets.indptr)
    sets.data = 1 / np.sqrt(np.repeat(sizes, sizes).astype(np.float64))
    places = _lists(lists, len(sizes))
    filled = places >= 0
    count = filled.sum(axis=1)
    row = np.nonzero(filled)[0]
    holds = sparse.csr_array((np.ones(len(row)), (row, places[filled])), shape=(len(places), len(sizes)))
    # |sum of unit vectors|^2 is the sum of all cosines, those of items with themselves included
    together = (holds @ sets).power(2).sum(axis=1)
    themselves = holds @ (sizes > 0).astype(np.float64)
    return 1 - _divided(together - themselves, count * (count - 1))


def _divided(total: npt.NDArray[np.number], count: npt.NDArray[np.integer]) -> Floats:
    """Total over count, NaN where the count is 0."""
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _hits(hits: npt.ArrayLike) -> Bools:
    matrix = np.asarray(hits, dtype=bool)
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise InputError(f"hits must be a matrix with one row per user, one column per place, not {matrix.shape}.")
    return matrix


def _with_relevant(hits: npt.ArrayLike, n_relevant: npt.ArrayLike) -> tuple[Bools, Ints]:
    matrix, relevant = _hits(hits), np.asarray(n_relevant, dtype=np.intp)
    if relevant.shape != (len(matrix),):
        raise InputError(f"n_relevant must have one number for each of {len(matrix)} users, not {relevant.shape}.")
    if (relevant < np.maximum(matrix.sum(axis=1), 1)).any():
        raise InputError("n_relevant must be at least 1, and at least the number of hits; leave other users out.")
    return matrix, relevant


def _lists(lists: npt.ArrayLike, n_items: int) -> Ints:
    places = np.asarray(lists, dtype=np.intp)
    if places.ndim != 2:
        raise InputError(f"lists must be a matrix with one row per user, one column per place, not {places.shape}.")
    if places.size and not -1 <= places.min() <= places.max() < n_items:
        raise InputError(f"lists must hold numbers of items from 0 to {n_items - 1}, or -1 for an empty place.")
    return places
