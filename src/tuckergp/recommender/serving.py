"""Recommendations: the best items of many users, by what is expected, by what may be, or by chance.

Bounded in memory: users are taken in blocks, and the matrix of all predictions is never made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuckergp.compute.topk import top_products
from tuckergp.data.history import History
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.random import stream
from tuckergp.recommender.factors import Factors
from tuckergp.recommender.layout import Layout
from tuckergp.running.fit import Fit, OrdinalFit

__all__ = ["Recommended", "Request", "Strategy", "recommend", "seen_items"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.integer]
Strategy: TypeAlias = Literal["mean", "ucb", "thompson"]

# Numbers held at once: of the vectors of a block of users, and of predictions of a block for all items.
BLOCK = 30_000_000

# Where the last word on the order is not a product, so many times the items asked for, and some, are looked at closely.
SHORTLIST, MORE = 4, 50


class Recommended(NamedTuple):
    """Lists of items, a row a recommendation: which request, which item, its score, standard deviation and rank."""

    request: Ints
    item: Ints
    score: Floats
    std: Floats
    rank: Ints


@dataclass(frozen=True)
class Request:
    """Who asks, in which circumstances, for how many of which items.

    Attributes
    ----------
    users : ndarray of int, shape (n_requests,)
    moment : Table
        Circumstances, a row a request.
    n : int
    allowed : ndarray of bool, shape (n_items + 1,)
        By the items' numbers; the unknown item, last, never is.
    seen : csr_array, shape (n_users + 1, n_items + 1), or None
        What is not to be recommended again.
    strategy : {"mean", "ucb", "thompson"}
    kappa : float
        How many standard deviations ``"ucb"`` adds.
    seed : int
        Of ``"thompson"``.
    """

    users: Ints
    moment: Table
    n: int
    allowed: npt.NDArray[np.bool_]
    seen: sparse.csr_array | None
    strategy: Strategy = "mean"
    kappa: float = 1.0
    seed: int = 0


def seen_items(layout: Layout, history: History, users: Ints) -> sparse.csr_array:
    """Which items some users have rated, by their numbers, shape (n_users + 1, n_items + 1)."""
    theirs = [side.numbers(ids) for side, ids in zip(layout.sides, history.ids, strict=True)]
    asked = np.zeros(len(layout.sides[0].number) + 1, dtype=bool)
    asked[users] = True
    rows = np.flatnonzero(asked[theirs[0]][history.codes[0]])
    number = [places[code[rows]] for places, code in zip(theirs, history.codes, strict=True)]
    shape = (len(layout.sides[0].number) + 1, len(layout.sides[1].number) + 1)
    flags = sparse.csr_array((np.ones(len(rows), dtype=bool), tuple(number)), shape=shape)
    flags.sum_duplicates()
    return flags


def recommend(layout: Layout, fit: Fit, request: Request) -> Recommended:
    """The best items of every request, best first; fewer than asked for where there are no more.

    Scores are what the lists are sorted by: the predicted rating, that plus ``kappa`` standard deviations, or the
    rating in one draw of the posterior, a different one for every request.
    """
    if request.strategy not in get_args(Strategy):
        raise InputError(f"strategy must be 'mean', 'ucb' or 'thompson', not {request.strategy!r}.")
    if request.strategy != "mean" and not fit.draws.sampled:
        raise InputError(f"strategy={request.strategy!r} needs to know how sure the model is: use inference='gibbs'.")
    fit.draws.require_kept()
    if not len(request.users):
        none = np.zeros(0, dtype=np.intp)
        return Recommended(none, none, np.zeros(0), np.zeros(0), none)
    shortlist = {"mean": _by_mean, "ucb": _by_bound, "thompson": _by_chance}[request.strategy]
    found = []
    for rows, items, scores in shortlist(layout, fit, request):
        row, place = np.nonzero(items >= 0)
        found.append((rows[row], items[row, place], scores[row, place]))
    who, what, score = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return _sorted(layout, fit, request, who, what, score)


def _sorted(layout: Layout, fit: Fit, request: Request, who: Ints, what: Ints, score: Floats) -> Recommended:
    """Exact scores and standard deviations of the shortlists, sorted and cut."""
    std = np.full(len(who), np.nan)
    if fit.draws.sampled or request.strategy == "mean":
        exact, std = _moments(layout, fit, request, who, what)
        if request.strategy == "mean":
            score = exact
        elif request.strategy == "ucb":
            score = exact + request.kappa * std
    order = np.lexsort((what, -score, who))
    who, what, score, std = who[order], what[order], score[order], std[order]
    starts = np.flatnonzero(np.diff(who, prepend=-1))
    rank = np.arange(len(who)) - np.repeat(starts, np.diff(np.append(starts, len(who)))) + 1
    kept = rank <= request.n
    return Recommended(who[kept], what[kept], score[kept], std[kept], rank[kept])


def _moments(layout: Layout, fit: Fit, request: Request, who: Ints, what: Ints) -> tuple[Floats, Floats]:
    """Predicted ratings and their standard deviations without noise, pair by pair."""
    mean, std = np.empty(len(who)), np.full(len(who), np.nan)
    for first in range(0, len(who), BLOCK // 8):
        part = slice(first, first + BLOCK // 8)
        design = layout.design(request.users[who[part]], what[part], request.moment.take(who[part]))
        mean[part] = fit.predict(design)
        if fit.draws.sampled:
            std[part] = fit.spread(design, include_noise=False)
    return mean, std


Shortlists: TypeAlias = Iterator[tuple[Ints, npt.NDArray[np.int64], Floats]]


def _length(request: Request, exact: bool) -> int:
    """How many items to look at closely."""
    most = int(request.allowed.sum())
    return min(request.n if exact else SHORTLIST * request.n + MORE, most)


def _by_mean(layout: Layout, fit: Fit, request: Request) -> Shortlists:
    factors = Factors(layout, fit)
    V = factors.items().reshape(len(request.allowed), -1)
    k = _length(request, exact=not isinstance(fit, OrdinalFit))
    for rows in _blocks(len(request.users), V.shape[1]):
        Q = factors.users(request.users[rows], request.moment.take(rows)).reshape(len(rows), -1)
        items, scores = top_products(Q, V, k, *_seen(request, rows), request.allowed)
        yield rows, items, scores


def _by_bound(layout: Layout, fit: Fit, request: Request) -> Shortlists:
    """Mean plus kappa standard deviations of f: a product for every draw."""
    factors = Factors(layout, fit, unseen=1)
    V = factors.items()
    k = _length(request, exact=False)
    S = V.shape[1]
    for rows in _blocks(len(request.users), max(len(V), V.shape[1] * V.shape[2])):
        Q = factors.users(request.users[rows], request.moment.take(rows))
        total = np.zeros((len(rows), len(V)), dtype=np.float32)
        squares = np.zeros_like(total)
        for s in range(S):
            f = Q[:, s] @ V[:, s].T
            total += f
            squares += f * f
        total /= S
        variance = np.maximum(squares / S - total * total, 0.0)
        yield rows, *_best(total + np.float32(request.kappa) * np.sqrt(variance), k, request, rows)


def _by_chance(layout: Layout, fit: Fit, request: Request) -> Shortlists:
    """F in one draw, at random for every request."""
    rng = stream(request.seed, 5)
    chosen = rng.integers(len(fit.draws), size=len(request.users))
    seed = int(rng.integers(2**31))
    k = _length(request, exact=not isinstance(fit, OrdinalFit))
    for s, draw in enumerate(fit.draws):
        rows_of_draw = np.flatnonzero(chosen == s)
        if not len(rows_of_draw):
            continue
        factors = Factors(layout, fit.only(draw), unseen=seed + s)
        V = factors.items()[:, 0]
        for block in _blocks(len(rows_of_draw), len(V)):
            rows = rows_of_draw[block]
            f = factors.users(request.users[rows], request.moment.take(rows))[:, 0] @ V.T
            items, best = _best(f, k, request, rows)
            if isinstance(fit, OrdinalFit):  # the mean level there, with the noise of the user and the item
                who, what = np.repeat(rows, k), np.maximum(items, 0).ravel()
                design = layout.design(request.users[who], what, request.moment.take(who))
                best = fit.only(draw).predict(design).reshape(best.shape)
            yield rows, items, fit.mean + fit.scale * best


def _best(
    scores: npt.NDArray[np.float32], k: int, request: Request, rows: Ints
) -> tuple[npt.NDArray[np.int64], Floats]:
    """The k best of every row among what is allowed and not seen; -1 where there are fewer."""
    scores[:, ~request.allowed] = -np.inf
    indptr, indices = _seen(request, rows)
    scores[np.repeat(np.arange(len(rows)), np.diff(indptr)), indices] = -np.inf
    items = np.argpartition(-scores, k - 1, axis=1)[:, :k]
    values = np.take_along_axis(scores, items, axis=1).astype(np.float64)
    return np.where(np.isfinite(values), items, -1), values


def _seen(request: Request, rows: Ints) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    if request.seen is None:
        return np.zeros(len(rows) + 1, dtype=np.int64), np.zeros(0, dtype=np.int64)
    seen = request.seen[request.users[rows]]
    return seen.indptr.astype(np.int64), seen.indices.astype(np.int64)


def _blocks(count: int, width: int) -> Iterator[Ints]:
    step = max(1, BLOCK // max(width, 1))
    for first in range(0, count, step):
        yield np.arange(first, min(first + step, count))
