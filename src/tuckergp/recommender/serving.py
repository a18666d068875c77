"""Recommendations: the best items for many users, by posterior mean, upper confidence bound or Thompson sampling.

Memory is bounded: users are taken in blocks, and the matrix of all predictions is never made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuckergp.compute.topk import top_k
from tuckergp.data.history import History
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.posterior.draws import PREDICTION_SEED
from tuckergp.posterior.fitted import Fit
from tuckergp.random import stream
from tuckergp.recommender.diversity import diversified
from tuckergp.recommender.entities import Side
from tuckergp.recommender.factors import Factors
from tuckergp.recommender.layout import Layout
from tuckergp.stopping import stop_if_unwanted

__all__ = [
    "Recommended",
    "Request",
    "Strategy",
    "best_allowed",
    "blocks",
    "check_strategy",
    "ranked",
    "recommend",
    "seen_items",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.integer]
Singles = npt.NDArray[np.float32]
Strategy: TypeAlias = Literal["mean", "ucb", "thompson"]

# The number of predictions held at once, for a block of users and all items.
BLOCK = 16_000_000

# How many more items than asked for are scored exactly, and how many times as many where a matrix product gives only an
# approximate order.
MORE, SHORTLIST = 20, 4

# How many times as many items as asked for diverse lists are chosen from.
DIVERSE = 10


class Recommended(NamedTuple):
    """Lists of items, one row per recommendation: its request, item, score, standard deviation and rank."""

    request: Ints
    item: Ints
    score: Floats
    std: Floats
    rank: Ints


@dataclass(frozen=True)
class Request:
    """A request for recommendations: users, circumstances, how many items, and which are allowed.

    Attributes
    ----------
    users : ndarray of int, shape (n_requests,)
    occasion : Table
        Circumstances, one row per request.
    n : int
    allowed : ndarray of bool, shape (n_items,)
        By the items' rows; False for the unknown item and rows that were replaced.
    seen : csr_array of bool, shape (n_requests, n_items), or None
        Items that are not to be recommended again.
    strategy : {"mean", "ucb", "thompson"}
    kappa : float
        How many standard deviations ``"ucb"`` adds.
    seed : int
        Seed of ``"thompson"``.
    diversity : float
        The weight of similarity to the items chosen before, from 0 to 1.
    boosts : ndarray, shape (n_items,), or None
        What is added to the score of each item.
    """

    users: Ints
    occasion: Table
    n: int
    allowed: npt.NDArray[np.bool_]
    seen: sparse.csr_array | None
    strategy: Strategy = "mean"
    kappa: float = 1.0
    seed: int = 0
    diversity: float = 0.0
    boosts: Floats | None = None

    @property
    def promoted(self) -> Ints:
        """The items with a boost that may be recommended."""
        return np.flatnonzero(False if self.boosts is None else (self.boosts > 0) & self.allowed)

    @property
    def demoted(self) -> int:
        """How many items have a malus."""
        return 0 if self.boosts is None else int((self.boosts < 0).sum())

    @property
    def widened(self) -> Request:
        """The request for the shortlists that diverse lists are chosen from; without diversity the same."""
        return replace(self, n=min(DIVERSE * self.n, int(self.allowed.sum()))) if self.diversity else self


def seen_items(layout: Layout, history: History, users: Ints) -> sparse.csr_array:
    """The items that the user of each request has rated, by their rows, shape (n_requests, n_item_rows)."""
    side, items = layout.sides
    base, place = history.base, side.rows_at_fit(users)
    rated = np.where(place < side.n_rated, place, -1)
    if len(base.ids[0]) > side.n_rated:  # ratings of users who came later are among them
        later = np.flatnonzero((rated < 0) & (users != side.unknown))
        rated[later] = [base.users.get(value, -1) for value in side.ids_at(users[later])]
    what: Ints
    what, ends = base.items_of(rated)
    who: Ints = np.repeat(np.arange(len(users)), np.diff(ends))
    if items.more:  # some have other rows than at the fit
        what = items.numbers(base.ids[1])[what]
    if history.parts:
        asked: dict[Any, list[int]] = {}
        known = np.flatnonzero(users != side.unknown)
        for request, value in zip(known.tolist(), side.ids_at(users[known]), strict=True):
            asked.setdefault(value, []).append(request)
        pairs = [
            (request, item)
            for piece in history.parts
            for value in asked.keys() & piece.users.keys()
            for item in _rated_items(piece, piece.users[value], items)
            for request in asked[value]
        ]
        who = np.concatenate([who, np.array([request for request, _ in pairs], dtype=np.intp)])
        what = np.concatenate([what, np.array([item for _, item in pairs], dtype=np.intp)])
    shape = (len(users), items.table.n_rows)
    flags = sparse.csr_array((np.ones(len(who), dtype=bool), (who, what)), shape=shape)
    flags.sum_duplicates()
    return flags


def _rated_items(piece: History, user: int, items: Side) -> list[int]:
    """The rows of the items that a user rated in a part of the ratings."""
    rated, _ = piece.items_of(np.array([user]))
    numbers: list[int] = items.numbers([piece.ids[1][k] for k in rated.tolist()]).tolist()
    return numbers


def check_strategy(request: Request, fit: Fit) -> None:
    """Refuse a strategy that is none, or that this fit cannot follow."""
    if request.strategy not in get_args(Strategy):
        raise InputError(f"strategy must be 'mean', 'ucb' or 'thompson', not {request.strategy!r}.")
    if request.strategy != "mean" and not fit.draws.sampled:
        raise InputError(f"strategy={request.strategy!r} needs standard deviations: use inference='gibbs'.")
    if request.strategy != "ucb" and request.kappa != Request.kappa:
        raise InputError(f"kappa is for strategy='ucb'; with strategy={request.strategy!r} leave it out.")
    fit.draws.require_kept()


def recommend(layout: Layout, fit: Fit, request: Request) -> Recommended:
    """The best items of each request, best first; fewer than asked for where fewer are allowed.

    The lists are sorted by their scores: the posterior mean, that plus ``kappa`` standard deviations, or the rating in
    one posterior draw, a different one for each request. With diversity they are chosen from shortlists so sorted.
    """
    check_strategy(request, fit)
    if not len(request.users) or not request.allowed.any():
        none = np.zeros(0, dtype=np.intp)
        return Recommended(none, none, np.zeros(0), np.zeros(0), none)
    shortlists = {"mean": _by_mean, "ucb": _by_bound, "thompson": _by_chance}[request.strategy]
    lists, wide = [], request.widened
    for rows, items, scores in shortlists(layout, fit, wide):
        stop_if_unwanted()
        row, place = np.nonzero(items >= 0)
        block = _ranked(layout, fit, wide, rows[row], items[row, place], scores[row, place])
        lists.append(diversified(layout, fit, request, block) if request.diversity else block)
    order = np.lexsort([np.concatenate([block[column] for block in lists]) for column in (4, 0)])
    return Recommended(*(np.concatenate(parts)[order] for parts in zip(*lists, strict=True)))


def _ranked(layout: Layout, fit: Fit, request: Request, who: Ints, what: Ints, score: Floats) -> Recommended:
    """Exact scores and standard deviations of shortlists, sorted and cut."""
    design = layout.design(request.users[who], what, request.occasion.take(who))
    exact, std = fit.mean_and_std(design, include_noise=False)
    if request.strategy == "mean":
        score = exact
    elif request.strategy == "ucb":
        score = exact + request.kappa * std
    return ranked(request, who, what, score, std)


def ranked(request: Request, who: Ints, what: Ints, score: Floats, std: Floats) -> Recommended:
    """Lists of the items ``what`` for the requests ``who``, sorted by their scores with boosts, and cut."""
    if request.boosts is not None:
        score = score + request.boosts[what]
    order = np.lexsort((what, -score, who))
    who, what, score, std = who[order], what[order], score[order], std[order]
    starts = np.flatnonzero(np.diff(who, prepend=-1))
    rank = np.arange(len(who)) - np.repeat(starts, np.diff(np.append(starts, len(who)))) + 1
    kept = rank <= request.n
    return Recommended(who[kept], what[kept], score[kept], std[kept], rank[kept])


Shortlists: TypeAlias = Iterator[tuple[Ints, npt.NDArray[np.int64], Floats]]


def _length(request: Request, linear: bool) -> int:
    """How many items to score exactly: more than asked for, because matrix products are rounded or approximate."""
    more = request.n + MORE if linear else SHORTLIST * request.n + MORE
    return min(more, int(request.allowed.sum()))


def _by_mean(layout: Layout, fit: Fit, request: Request) -> Shortlists:
    """f, averaged over the draws: one product of width draws x rank."""
    factors = Factors(layout, fit)
    k = _length(request, fit.likelihood.linear)
    for rows in blocks(len(request.users), len(request.allowed)):
        queries = factors.users(request.users[rows], request.occasion.take(rows))
        flat = queries.vectors.reshape(len(rows), -1)
        scores = np.empty((len(rows), len(request.allowed)), dtype=np.float32)
        for numbers, table in factors.items:
            _multiply(flat, table.reshape(len(table), -1), numbers, scores)
        yield rows, *best_allowed(scores, k, request, rows)


def _multiply(Q: Singles, V: Singles, numbers: Ints, scores: Singles) -> None:
    """Write Q V' to the columns ``numbers`` of the scores, in place where these lie side by side."""
    first, last = int(numbers[0]), int(numbers[-1]) + 1
    if last - first == len(numbers):
        np.matmul(Q, V.T, out=scores[:, first:last])
    else:
        scores[:, numbers] = Q @ V.T


def _by_bound(layout: Layout, fit: Fit, request: Request) -> Shortlists:
    """Mean plus kappa standard deviations of f: a product for each draw."""
    factors = Factors(layout, fit, unseen=PREDICTION_SEED)
    k, draws = _length(request, linear=False), len(fit.draws)
    for rows in blocks(len(request.users), 3 * len(request.allowed)):
        queries = factors.users(request.users[rows], request.occasion.take(rows))
        total = np.zeros((len(rows), len(request.allowed)), dtype=np.float32)
        squares = np.zeros_like(total)
        for numbers, table in factors.items:
            for s in range(draws):
                f = queries.vectors[:, s] @ table[:, s].T
                total[:, numbers] += f
                squares[:, numbers] += f * f
        total /= draws
        variance = np.maximum(squares / draws - total * total, 0.0)
        total += np.float32(request.kappa) * np.sqrt(variance)
        yield rows, *best_allowed(total, k, request, rows)


def _by_chance(layout: Layout, fit: Fit, request: Request) -> Shortlists:
    """f in one draw, chosen at random for each request."""
    rng = stream(request.seed, 5)
    chosen = rng.integers(len(fit.draws), size=len(request.users))
    seed = int(rng.integers(2**31))
    k = _length(request, fit.likelihood.linear)
    for s in np.unique(chosen).tolist():
        of_draw = np.flatnonzero(chosen == s)
        factors = Factors(layout, fit.only(s), unseen=seed + s)
        for block in blocks(len(of_draw), len(request.allowed)):
            rows = of_draw[block]
            queries = factors.users(request.users[rows], request.occasion.take(rows))
            scores = np.empty((len(rows), len(request.allowed)), dtype=np.float32)
            for numbers, table in factors.items:
                _multiply(queries.vectors[:, 0], table[:, 0], numbers, scores)
            items, best = best_allowed(scores, k, request, rows)
            if fit.likelihood.linear:
                best = fit.mean + fit.scale * (best + queries.alone)
            else:  # the mean there, with the noise of the user and the item
                who, what = np.repeat(rows, items.shape[1]), np.maximum(items, 0).ravel()
                design = layout.design(request.users[who], what, request.occasion.take(who))
                at = factors.draws.predicted(design, stream(seed + s))  # rows never seen as in the shortlist
                best = fit.likelihood.means(at)[0].reshape(best.shape)
            yield rows, items, best


def best_allowed(
    scores: npt.NDArray[np.float32], k: int, request: Request, rows: Ints
) -> tuple[npt.NDArray[np.int64], Floats]:
    """The k best items of each row that are allowed and not seen, and those with a boost; -1 where there are fewer."""
    scores[:, np.flatnonzero(~request.allowed)] = -np.inf
    items = top_k(scores, min(k + request.demoted, int(request.allowed.sum())), *_seen(request, rows))
    promoted = request.promoted
    if len(promoted):  # whatever their scores are; those that were seen have none
        more = np.where(scores[:, promoted] > -np.inf, promoted, -1)
        more[(items[:, :, None] == promoted).any(axis=1)] = -1
        items = np.concatenate([items, more], axis=1)
    return items, np.take_along_axis(scores, np.maximum(items, 0), axis=1).astype(np.float64)


def _seen(request: Request, rows: Ints) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    if request.seen is None:
        return np.zeros(len(rows) + 1, dtype=np.int64), np.zeros(0, dtype=np.int64)
    seen = request.seen[rows]
    return seen.indptr.astype(np.int64), seen.indices.astype(np.int64)


def blocks(count: int, width: int) -> Iterator[Ints]:
    """The numbers 0 to ``count`` - 1 in blocks, so that `BLOCK` holds ``width`` numbers for each."""
    step = max(1, BLOCK // max(width, 1))
    for first in range(0, count, step):
        yield np.arange(first, min(first + step, count))
