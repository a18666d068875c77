"""Scoring of one fitted model on one test part: each metric, summed by user.

It calls `predict` and `predict_proba` of models and passes the results to the metrics; fitting, folds and intervals are
elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuckergp.data.history import RATING, read_ratings
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.evaluation.metrics import distributions, ranking
from tuckergp.evaluation.metrics.intervals import Kind, Part, numbered
from tuckergp.likelihoods import LIKELIHOODS, Likelihood
from tuckergp.random import stream

__all__ = [
    "DISTRIBUTIONS",
    "ERRORS",
    "KINDS",
    "METRICS",
    "RANKING",
    "Candidates",
    "Metric",
    "item_scores",
    "rank",
    "rate",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
Numbers: TypeAlias = dict[Hashable, int]

ERRORS = ("rmse", "mae")
DISTRIBUTIONS = ("nll", "crps", "interval_coverage")
RANKING = (
    "precision",
    "recall",
    "hit_rate",
    "map",
    "mrr",
    "ndcg",
    "auc",
    "catalogue_coverage",
    "novelty",
    "diversity",
)
METRICS = ERRORS + DISTRIBUTIONS + RANKING
KINDS: Mapping[str, Kind] = {"rmse": "root", "catalogue_coverage": "distinct"}
"""How figures are averaged, where it is not a plain mean."""

WITHOUT_K = ("auc",)
"""Metrics of lists that look at all candidates."""

# How many pairs of users and items are predicted at once.
BLOCK = 2_000_000


class Metric(NamedTuple):
    """A metric as it is asked for: ``"recall@20"`` is of lists of 20, ``"recall"`` of lists of the usual length."""

    name: str
    k: int | None = None

    @classmethod
    def read(cls, text: str) -> Metric:
        """A metric by its name; an error where there is none."""
        name, at, length = str(text).partition("@")
        if name not in METRICS:
            raise InputError(f"There is no metric {text!r}; there are {', '.join(METRICS)}.")
        if not at:
            return cls(name)
        if name not in RANKING or name in WITHOUT_K:
            raise InputError(f"{text!r} has a length of lists, which {name!r} does not know; ask for {name!r}.")
        if not length.isdecimal() or int(length) < 1:
            raise InputError(f"{text!r} must have a whole number of at least 1 after '@', as 'recall@20' has.")
        return cls(name, int(length))

    @property
    def ranks(self) -> bool:
        """Whether it is a metric of lists."""
        return self.name in RANKING

    def label(self, k: int) -> str:
        """The metric with the length of its lists, where it has one."""
        return f"{self.name}@{self.k or k}" if self.ranks and self.name not in WITHOUT_K else self.name


def rate(model: Any, test: Table, names: Sequence[str], number: Numbers, interval: float) -> dict[str, Part]:
    """The named metrics of errors and predicted distributions at the test ratings."""
    y = test.numeric("rating")
    user = numbered(test["user_id"].tolist(), number)
    rows: dict[str, npt.ArrayLike] = {}
    if set(ERRORS) & set(names):
        error = _finite(model.predict(test)) - y
        rows |= {"rmse": error**2, "mae": np.abs(error)}
    if wanted := [name for name in ("nll", "crps") if name in names]:
        rows |= _distribution_scores(model, test, y, wanted)
    if "interval_coverage" in names:
        ends = _ends(model, test, interval)
        rows["interval_coverage"] = distributions.interval_coverage(y, ends[:, 0], ends[:, 1])
    return {name: Part.of(rows[name], user, KINDS.get(name, "mean")) for name in names if name in rows}


def _ends(model: Any, test: Table, interval: float) -> Floats:
    """The ends of a predicted interval for each test rating, (n, 2): quantiles, or of levels a run of them."""
    likelihood = _likelihood_of(model)
    if likelihood is not None and likelihood.has_levels:
        return np.asarray(model.predict(test, interval=interval, clip=False)[1])
    tail = (1 - interval) / 2
    return np.asarray(model.predict(test, quantiles=[tail, 1 - tail], clip=False)[1])


def _likelihood_of(model: Any) -> type[Likelihood] | None:
    return LIKELIHOODS.get(str(getattr(model, "likelihood", None)))


def _distribution_scores(model: Any, test: Table, y: Floats, names: Sequence[str]) -> dict[str, npt.ArrayLike]:
    """Log scores and CRPS: of the model's own distributions, for normal noise of the normal with mean and variance."""
    likelihood = _likelihood_of(model)
    if likelihood is not None and not likelihood.conjugate:
        return {name: model.crps(test) if name == "crps" else -np.asarray(model.log_density(test)) for name in names}
    mean, std = model.predict(test, return_std=True, clip=False)
    normal = {"nll": distributions.normal_nll, "crps": distributions.normal_crps}
    return {name: normal[name](y, mean, std) for name in names}


def item_scores(model: Any, users: Sequence[Hashable], items: Sequence[Hashable]) -> Floats:
    """Scores of all items for some users, shape (n_users, n_items)."""
    if hasattr(model, "scores"):
        return _finite(model.scores(users, items))
    ids = [np.empty(len(side), dtype=object) for side in (users, items)]
    ids[0][:], ids[1][:] = users, items
    pairs = {"user_id": np.repeat(ids[0], len(items)), "item_id": np.tile(ids[1], len(users))}
    return _finite(model.predict(pairs, clip=False)).reshape(len(users), len(items))


def _finite(predicted: Any) -> Floats:
    values = np.asarray(predicted, dtype=np.float64)
    if not np.isfinite(values).all():
        raise InputError("The model predicts NaN or infinity; there is nothing to score.")
    return values


@dataclass(frozen=True)
class Candidates:
    """The users to recommend to, their candidate items, and which of these are relevant: the same for all models.

    Attributes
    ----------
    items : list
        The catalogue: items of the training and the test part and of the item table. Their order is random, so that
        ties favour no item.
    users : list
        Test users with at least one relevant item among their candidates.
    seen, relevant : sparse matrix of bool, shape (n_users, n_items)
        Items that the user rated in the training part, which are no candidates; test items that are relevant.
    rated : sparse matrix, shape (n_items, n_train_users)
        The users who rated each item in the training part.
    """

    items: list[Hashable]
    users: list[Hashable]
    seen: sparse.csr_array
    relevant: sparse.csr_array
    rated: sparse.csr_array

    @classmethod
    def of(
        cls,
        train: Table,
        test: Table,
        items: Table | None,
        is_relevant: Callable[[Floats, Floats], npt.NDArray[np.bool_]],
        seed: int,
    ) -> Candidates:
        """Read both parts; ``is_relevant`` takes the ratings of the test and of the training part.

        For clicks, which have no ratings, all test items are relevant.
        """
        known = dict.fromkeys(train["item_id"].tolist() + test["item_id"].tolist())
        if items is not None:
            known.update(dict.fromkeys(items["item_id"].tolist()))
        catalogue = list(known)
        catalogue = [catalogue[place] for place in stream(seed, 1).permutation(len(catalogue))]
        item_number = {item: place for place, item in enumerate(catalogue)}

        user_number: Numbers = {}
        user = numbered(test["user_id"].tolist(), user_number)
        item = numbered(test["item_id"].tolist(), item_number)
        train_item = numbered(train["item_id"].tolist(), item_number)
        of_tested = np.fromiter(
            (user_number.get(value, -1) for value in train["user_id"].tolist()), np.intp, len(train)
        )
        again = np.isin(user * len(catalogue) + item, of_tested * len(catalogue) + train_item)
        wanted = ~again
        if RATING in train.columns:
            wanted &= is_relevant(test.numeric(RATING), read_ratings(train)[0])

        shape = (len(user_number), len(catalogue))
        relevant = _flags(user[wanted], item[wanted], shape)
        seen = _flags(of_tested[of_tested >= 0], train_item[of_tested >= 0], shape)
        kept = np.flatnonzero(np.diff(relevant.indptr))
        train_number: Numbers = {}
        rater = numbered(train["user_id"].tolist(), train_number)
        rated = _flags(train_item, rater, (len(catalogue), len(train_number)))
        ids = list(user_number)
        return cls(catalogue, [ids[number] for number in kept], seen[kept], relevant[kept], rated)

    def blocks(self) -> Iterator[slice]:
        """Users in blocks of bounded size."""
        step = max(1, BLOCK // len(self.items))
        for first in range(0, len(self.users), step):
            yield slice(first, min(first + step, len(self.users)))


@dataclass(frozen=True)
class _Ranked:
    """A block of users with their lists."""

    candidates: Candidates
    scores: Floats
    relevant: npt.NDArray[np.bool_]
    lists: Ints
    hits: npt.NDArray[np.bool_]
    n_relevant: Ints

    @classmethod
    def of(cls, model: Any, candidates: Candidates, block: slice, k: int) -> _Ranked:
        scores = item_scores(model, candidates.users[block], candidates.items)
        scores[candidates.seen[block].toarray()] = -np.inf
        relevant = candidates.relevant[block].toarray()
        lists = ranking.top_k(scores, k)
        hits = (lists >= 0) & np.take_along_axis(relevant, np.maximum(lists, 0), axis=1)
        return cls(candidates, scores, relevant, lists, hits, relevant.sum(axis=1))

    def first(self, k: int) -> _Ranked:
        """The same users with the first k of their lists."""
        return replace(self, lists=self.lists[:, :k], hits=self.hits[:, :k])


BY_USER: Mapping[str, Callable[[_Ranked], Floats]] = {
    "precision": lambda ranked: ranking.precision(ranked.hits),
    "recall": lambda ranked: ranking.recall(ranked.hits, ranked.n_relevant),
    "hit_rate": lambda ranked: ranking.hit_rate(ranked.hits),
    "map": lambda ranked: ranking.average_precision(ranked.hits, ranked.n_relevant),
    "mrr": lambda ranked: ranking.reciprocal_rank(ranked.hits),
    "ndcg": lambda ranked: ranking.ndcg(ranked.hits, ranked.n_relevant),
    "auc": lambda ranked: ranking.auc(ranked.scores, ranked.relevant),
    "novelty": lambda ranked: ranking.novelty(
        ranked.lists, np.diff(ranked.candidates.rated.indptr), ranked.candidates.rated.shape[1]
    ),
    "diversity": lambda ranked: ranking.diversity(ranked.lists, ranked.candidates.rated),
}
"""The metrics with one number per user."""


def rank(
    model: Any,
    candidates: Candidates,
    names: Sequence[str],
    number: Numbers,
    k: int,
    advance: Callable[[int], None] = lambda users: None,
) -> dict[str, Part]:
    """The named metrics of lists of each user: of the best k candidates, or as many as a name says."""
    user = numbered(candidates.users, number)
    asked = {text: Metric.read(text) for text in names}
    lengths = {text: metric.k or k for text, metric in asked.items() if metric.ranks}
    rows: dict[str, list[Floats]] = {text: [] for text in lengths if asked[text].name in BY_USER}
    lists = []
    for block in candidates.blocks():
        ranked = _Ranked.of(model, candidates, block, max(lengths.values()))
        for text, made in rows.items():
            made.append(BY_USER[asked[text].name](ranked.first(lengths[text])))
        lists.append(ranked.lists)
        advance(len(ranked.lists))
    parts = {text: Part.of(np.concatenate(made), user) for text, made in rows.items()}
    for text in lengths.keys() - rows.keys():
        parts[text] = _coverage(np.concatenate(lists)[:, : lengths[text]], user, len(candidates.items))
    return parts


def _coverage(lists: Ints, user: Ints, n_items: int) -> Part:
    """Share of the catalogue that is in at least one list, and for each user the share only in that user's list."""
    row, place = np.nonzero(lists >= 0)
    item = lists[row, place]
    alone = np.bincount(item, minlength=n_items) == 1
    loss = np.bincount(row, weights=alone[item], minlength=len(lists)) / n_items
    return Part(ranking.catalogue_coverage(lists, n_items), user, loss, np.ones(len(user)))


def _flags(row: Ints, column: Ints, shape: tuple[int, int]) -> sparse.csr_array:
    """A sparse matrix that is True at the given places, which may be repeated."""
    flags = sparse.csr_array((np.ones(len(row), dtype=bool), (row, column)), shape=shape)
    flags.sum_duplicates()
    return flags
