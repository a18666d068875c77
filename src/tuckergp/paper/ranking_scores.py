"""Contestants of the ranking experiment: each learns from one training part and is measured on the same test part.

`measure` is the one way in: lists by `figures_of`, on the same users, candidates and relevant items for all, and errors
of those that predict ratings.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from tuckergp import TuckerRecommender
from tuckergp.data.datasets import MovieLens
from tuckergp.data.history import KEYS
from tuckergp.data.tables import Table
from tuckergp.errors import InputError, NotConvergedWarning
from tuckergp.evaluation.baselines import Biases, GlobalMean
from tuckergp.evaluation.metrics import ranking, rmse
from tuckergp.evaluation.metrics.intervals import numbered
from tuckergp.evaluation.scoring import Candidates
from tuckergp.paper import ranking_peers
from tuckergp.paper.movielens_data import attribute_tables
from tuckergp.recommender.drift_trial import drift_helps

__all__ = ["CONTESTANTS", "Contest", "counts", "decision", "figures_of", "measure", "product_scores"]

Floats = npt.NDArray[np.float64]

CONTESTANTS = {
    "popularity": "popularity",
    "als": "ALS of `implicit`",
    "bpr": "BPR of `implicit`",
    "clicks": "`TuckerRecommender` on clicks",
    "mean": "mean of all ratings",
    "biases": "biases of users and items",
    "plain": "`TuckerRecommender(time=None, implicit=False)` on ratings",
    "none": "`TuckerRecommender(time=None)` on ratings",
    "week": '`TuckerRecommender(time="week")` on ratings',
}
K = 10
LIKED = 4.0
# Draws that lists are made from.
MOST_DRAWS = 100
ALWAYS: dict[str, dict[str, Any]] = {
    "clicks": {"likelihood": "bernoulli", "draws": 60, "warmup": 40, "time": None},
    "plain": {"time": None, "implicit": False},
    "none": {"time": None},
    "week": {"time": "week"},
}
"""Settings of our own contestants, whatever else is chosen."""


@dataclass(frozen=True)
class Contest:
    """A training and a test part, and the candidates by two notions of what is relevant.

    Attributes
    ----------
    movielens : MovieLens
        For the attributes of users and items.
    train, test : Table
    liked, rated : Candidates
        Relevant are test items rated 4 or 5, and all test items.
    """

    movielens: MovieLens
    train: Table
    test: Table
    liked: Candidates
    rated: Candidates

    @classmethod
    def of(cls, movielens: MovieLens, train: Table, test: Table) -> Contest:
        """Candidates are all items of the data that the user did not rate in the training part."""
        liked = Candidates.of(train, test, movielens.items, lambda y, _: y >= LIKED, seed=0)
        rated = Candidates.of(train, test, movielens.items, lambda y, _: np.ones(len(y), dtype=bool), seed=0)
        return cls(movielens, train, test, liked, rated)

    @property
    def learned(self) -> set[Hashable]:
        """Users of the training part."""
        return set(self.train["user_id"].tolist())


def counts(contest: Contest) -> dict[str, int]:
    """How large the parts are, and how many test users and items the training part does not have."""
    found = {"train": len(contest.train), "test": len(contest.test), "ranked_users": len(contest.liked.users)}
    for key, name in zip(KEYS, ("users", "items"), strict=True):
        tested, learned = (set(part[key].tolist()) for part in (contest.test, contest.train))
        found |= {f"test_{name}": len(tested), f"new_{name}": len(tested - learned)}
    found["ranked_known"] = len(contest.learned & set(contest.liked.users))
    return found


def measure(contest: Contest, name: str, options: dict[str, Any], seed: int, python: str) -> dict[str, Any]:
    """Learn and measure: lists, errors in ratings, or both; and the seconds of learning."""
    began = time.perf_counter()
    if name in ("mean", "biases"):
        model = (GlobalMean if name == "mean" else Biases)(**options).fit(contest.train)
        return {**_errors(contest, model), "seconds": _since(began)}
    if name in ALWAYS:
        model = _recommender(contest, name, options, seed)
        seconds = _since(began)
        found = {} if name == "clicks" else _errors(contest, model)
        scores = product_scores(model, contest.rated.users, contest.rated.items)
        return {**found, **figures_of(contest, scores), "seconds": seconds}
    popularity = np.diff(contest.rated.rated.indptr).astype(np.float64)
    if name == "popularity":
        scores = np.tile(popularity, (len(contest.rated.users), 1))
    elif name in ranking_peers.PEERS:
        scores = _peer(contest, name, options, seed, python, popularity)
    else:
        raise InputError(f"There is no contestant {name!r}; choose among {', '.join(CONTESTANTS)}.")
    return {**figures_of(contest, scores), "seconds": _since(began)}


def decision(contest: Contest, seed: int) -> dict[str, Any]:
    """What ``time="auto"`` decides with default settings, and the seconds that it takes."""
    began = time.perf_counter()
    movielens = contest.movielens
    helps = drift_helps(TuckerRecommender(), contest.train, *attribute_tables(movielens), seed)
    return {"time": "week" if helps else "none", "seconds": _since(began)}


def _recommender(contest: Contest, name: str, options: dict[str, Any], seed: int) -> TuckerRecommender:
    train = contest.train.select(KEYS) if name == "clicks" else contest.train
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        model = TuckerRecommender(**{**ALWAYS[name], **options}, random_state=seed)
        return model.fit(train, *attribute_tables(contest.movielens), progress=False)


def _peer(contest: Contest, name: str, options: dict[str, Any], seed: int, python: str, popularity: Floats) -> Floats:
    users, items = contest.rated.users, contest.rated.items
    number: dict[Hashable, int] = {}
    user = numbered(contest.train["user_id"].tolist(), number)
    item = numbered(contest.train["item_id"].tolist(), {item: place for place, item in enumerate(items)})
    found = ranking_peers.scores_of(python, name, options, user, item, (len(number), len(items)), seed)
    row = np.array([number.get(value, -1) for value in users])
    # it has nothing to say of users without a training part: popularity for them
    return np.where(row[:, None] >= 0, found[row], popularity)


def product_scores(model: TuckerRecommender, users: Sequence[Hashable], items: Sequence[Hashable]) -> Floats:
    """What to rank by, shape (n_users, n_items): f, or the probability of a Bernoulli model, averaged over draws.

    By products of factors, for identity cores, without a time or context. The order is that of ``predict``, but for
    what a newcomer's attributes do not say: it is left out instead of drawn.
    """
    ids = [np.empty(len(side), dtype=object) for side in (users, items)]
    ids[0][:], ids[1][:] = users, items
    user, item = (side.numbers(values) for side, values in zip(model.layout_.sides, ids, strict=True))
    design = model.layout_.design(user, np.zeros(len(user), dtype=np.intp), Table({}, "pairs", len(user)))
    draws = list(model.fit_.draws)
    draws = draws[:: -(-len(draws) // MOST_DRAWS)]
    total = np.zeros((len(user), len(item)))
    for draw in draws:
        psi = model.fit_.draws.model.factors(draw.parameters, design)
        left = psi[0][user]
        for d in range(2, len(psi)):
            left = left * psi[d][design.index[:, d]]
        f = left @ psi[1][item].T
        total += ndtr(f) if model.likelihood == "bernoulli" else f
    return total / len(draws)


def figures_of(contest: Contest, scores: Floats) -> dict[str, float]:
    """NDCG and recall of the first ten, with either notion of relevance; also of users with a training part alone."""
    place, learned = {user: row for row, user in enumerate(contest.rated.users)}, contest.learned
    found: dict[str, float] = {}
    for candidates, ending in ((contest.liked, ""), (contest.rated, "_all")):
        rows = np.array([place[user] for user in candidates.users])
        known = np.array([user in learned for user in candidates.users])
        table = np.where(candidates.seen.toarray(), -np.inf, scores[rows])
        relevant = candidates.relevant.toarray()
        lists = ranking.top_k(table, K)
        hits = (lists >= 0) & np.take_along_axis(relevant, np.maximum(lists, 0), axis=1)
        count = relevant.sum(axis=1)
        for metric, values in {"ndcg": ranking.ndcg(hits, count), "recall": ranking.recall(hits, count)}.items():
            found[f"{metric}{ending}"] = round(float(values.mean()), 5)
            found[f"{metric}{ending}_known"] = round(float(values[known].mean()), 5)
    return found


def _errors(contest: Contest, model: Any) -> dict[str, float]:
    """RMSE of all test ratings, and of those by users with a training part."""
    truth, predicted = contest.test.numeric("rating"), model.predict(contest.test)
    learned = contest.learned
    known = np.array([user in learned for user in contest.test["user_id"].tolist()])
    both = {"rmse": rmse(truth, predicted), "rmse_known": rmse(truth[known], predicted[known])}
    return {name: round(value, 5) for name, value in both.items()}


def _since(began: float) -> float:
    return round(time.perf_counter() - began, 1)
