"""Lists of recommendations on MovieLens 100K, and a causal split in time, with the same candidates for all models.

`RANKING_CHOICE` compares settings on validation parts, a fifth of the training parts of the first seed. Its choice is
recorded in `CHOSEN`; `RANKING` learns from the whole training parts with it and scores the test parts.
`benchmarks/peers.py` adds models of other packages, in the same files.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp import TuckerRecommender
from tuckergp.data.datasets import MovieLens
from tuckergp.data.history import KEYS
from tuckergp.data.splits import TimeSplit, UserHoldout
from tuckergp.data.tables import Table as Data
from tuckergp.data.tables import as_table
from tuckergp.evaluation.baselines import EASE, Biases, GlobalMean, NearestItems
from tuckergp.evaluation.metrics import ranking, rmse
from tuckergp.evaluation.scoring import Candidates, item_scores
from tuckergp.likelihoods import Clicks
from tuckergp.paper.experiment import Experiment, Figures, Table, Text, Work
from tuckergp.paper.movielens_data import attribute_tables
from tuckergp.paper.ranking_tables import (
    CONTESTANTS,
    LIKED_ALONE,
    PEERS,
    SPLITS,
    by_split_table,
    choice_table,
    decision_table,
    parts_table,
    tries_table,
    with_new_users,
)
from tuckergp.paper.run import Run, quietly
from tuckergp.recommender.drift_trial import drift_helps

__all__ = [
    "CONTESTANTS",
    "RANKING",
    "RANKING_CHOICE",
    "SPLITS",
    "Contest",
    "contest_of",
    "lists",
    "measure",
    "parts",
    "validation",
]

Floats = npt.NDArray[np.float64]

OWN: dict[str, dict[str, Any]] = {
    "clicks": {"likelihood": "bernoulli", "draws": 60, "warmup": 40, "time": None},
    "pairs": {"rank": 32},
    "pairs_activity": {"rank": 32, "likelihood": Clicks(activity=0.25)},
    "pairs_alone": {"rank": 32, "side_information": False},
    "pairs_liked": {"rank": 32},
    "pairs_alone_liked": {"rank": 32, "side_information": False},
    "pairs_als": {"rank": 32, "inference": "als"},
    "pairs_als_alone": {"rank": 32, "inference": "als", "side_information": False},
    "plain": {"time": None, "implicit": False, "objective": "rating"},
    "none": {"time": None, "objective": "rating"},
    "week": {"time": "week", "objective": "rating"},
    "value": {"time": None, "objective": "value"},
}
"""The fixed settings of our own models."""
CHOSEN = {"user": {"rank": 16, "negatives": 16}, "time": {"rank": 8, "negatives": 1000}}
"""The settings of the model of clicks, by split: the best of the grid on the validation part."""
SHORT = {"rank": 2, "draws": 6, "warmup": 4}
QUICK = {name: {"rank": 2} if "inference" in fixed else SHORT for name, fixed in OWN.items()}
"""What a quick run changes, by model."""
ITEM_BASELINES: dict[str, type[Any]] = {"ease": EASE, "nearest_items": NearestItems}
ITEM_GRIDS: dict[str, list[dict[str, Any]]] = {
    "ease": [{"l2": l2} for l2 in (30.0, 100.0, 300.0, 1_000.0, 3_000.0)],
    "nearest_items": [
        {"neighbours": neighbours, "shrinkage": shrinkage}
        for neighbours in (10, 30, 100, 300, 600, 1_200)
        for shrinkage in (0.0, 3.0, 10.0, 30.0, 100.0)
    ],
}
"""What is compared on validation parts for the baselines that score items by other items."""
ITEM_CHOSEN: dict[str, dict[str, dict[str, Any]]] = {
    "user": {
        "ease": {"l2": 1_000.0},
        "nearest_items": {"neighbours": 300, "shrinkage": 10.0},
        "ease_liked": {"l2": 300.0},
        "nearest_items_liked": {"neighbours": 300, "shrinkage": 3.0},
    },
    "time": {"ease": {"l2": 100.0}, "nearest_items": {"neighbours": 300, "shrinkage": 10.0}},
}
"""By split and baseline: the best of the grid on the validation part."""
CLICKS = (
    *("clicks", "pairs", "pairs_activity", "pairs_alone", "pairs_liked", "pairs_alone_liked"),
    *("pairs_als", "pairs_als_alone"),
)
"""Our models that see which items were rated, and not how high."""
K, LIKED = 10, 4.0
# Lengths of longer lists, and of those whose recall is measured.
LONGER, RECALLS = 100, (20, 50)
# The lists that are looked at to the end.
LONGEST_LIST = 100
# Seed of validation parts, which no test part has.
VALIDATION = 1_000


@dataclass(frozen=True)
class Contest:
    """A training and a test part, and the candidates with two definitions of relevance.

    Attributes
    ----------
    movielens : MovieLens
        For the attributes of users and items.
    train, test : Table
    liked, rated : Candidates
        Relevant are test items rated 4 or 5 in ``liked``, and all test items in ``rated``. Candidates are all items
        that the user did not rate in the training part.
    """

    movielens: MovieLens
    train: Data
    test: Data
    liked: Candidates
    rated: Candidates

    @classmethod
    def of(cls, movielens: MovieLens, train: Data, test: Data) -> Contest:
        """Build a contest from its two parts."""
        liked = Candidates.of(train, test, movielens.items, lambda y, _: y >= LIKED, seed=0)
        rated = Candidates.of(train, test, movielens.items, lambda y, _: np.ones(len(y), dtype=bool), seed=0)
        return cls(movielens, train, test, liked, rated)

    def learned(self, name: str) -> Data:
        """The rows of the training part from which a contestant learns."""
        if not name.endswith(LIKED_ALONE):
            return self.train
        return self.train.take(np.flatnonzero(self.train.numeric("rating") >= LIKED))

    def known(self, users: Iterable[Hashable], name: str = "") -> npt.NDArray[np.bool_]:
        """Which users are in what a contestant learns from, usually the training part."""
        learned = set(self.learned(name)["user_id"].tolist())
        return np.array([user in learned for user in users])

    @property
    def popularity(self) -> Floats:
        """The number of ratings of each item in the training part."""
        return np.diff(self.rated.rated.indptr).astype(np.float64)


def parts(ratings: Data, split: str, seed: int) -> tuple[Data, Data]:
    """Training and test part; a split in time has no seed."""
    splitter = UserHoldout(share=0.2, seed=seed) if split == "user" else TimeSplit(0.2)
    return next(splitter.split(ratings))


def contest_of(run: Run, split: str, seed: int) -> Contest:
    """A contest on a test part."""
    movielens = run.load("ml-100k")
    some = np.flatnonzero(movielens.ratings["user_id"] % run.settings["every"] == 0)
    return Contest.of(movielens, *parts(movielens.ratings.take(some), split, seed))


def validation(movielens: MovieLens, split: str, seed: int = 0) -> Contest:
    """A contest within the training part."""
    base, _ = parts(movielens.ratings, split, seed)
    return Contest.of(movielens, *parts(base, split, VALIDATION))


def counts(contest: Contest) -> Figures:
    """The sizes of the parts, and the numbers of test users and items that are not in the training part."""
    sizes = {"train": len(contest.train), "test": len(contest.test), "ranked_users": len(contest.liked.users)}
    for key, name in zip(KEYS, ("users", "items"), strict=True):
        tested, learned = (set(part[key].tolist()) for part in (contest.test, contest.train))
        sizes |= {f"test_{name}": len(tested), f"new_{name}": len(tested - learned)}
    return sizes | {"ranked_known": int(contest.known(contest.liked.users).sum())}


def measure(contest: Contest, name: str, options: dict[str, Any], seed: int) -> Figures:
    """Fit a model and measure its lists, its errors in ratings, or both, and the seconds of learning."""
    began = time.perf_counter()
    if name == "popularity":
        return lists(contest, np.tile(contest.popularity, (len(contest.rated.users), 1)))
    if name in ("mean", "biases"):
        return errors(contest, (GlobalMean if name == "mean" else Biases)(**options).fit(contest.train))
    if (kind := name.removesuffix(LIKED_ALONE)) in ITEM_BASELINES:
        baseline = ITEM_BASELINES[kind](**options).fit(contest.learned(name).select(KEYS))
        users, items = contest.rated.users, contest.rated.items
        known = contest.known(users, name)[:, None]
        return lists(contest, np.where(known, baseline.scores(users, items), contest.popularity))
    train = contest.learned(name).select(KEYS) if name in CLICKS else contest.train
    model = TuckerRecommender(**{**OWN[name], **options}, random_state=seed)
    quietly(model.fit, train, *attribute_tables(contest.movielens))
    seconds = round(time.perf_counter() - began, 1)
    figures = {} if name in CLICKS else errors(contest, model)
    scores = (listed if name == "value" else item_scores)(model, contest.rated.users, contest.rated.items)
    return {**figures, **lists(contest, scores), "seconds": seconds}


def listed(model: TuckerRecommender, users: Sequence[Any], items: Sequence[Any]) -> Floats:
    """Scores that sort items as lists of `LONGEST_LIST` do; minus infinity for those that are not on them."""
    rows, columns = ({value: place for place, value in enumerate(values)} for values in (users, items))
    answer = as_table(quietly(model.recommend, list(users), LONGEST_LIST), "lists")
    scores = np.full((len(rows), len(columns)), -np.inf)
    for user, item, rank in zip(answer["user_id"].tolist(), answer["item_id"].tolist(), answer["rank"], strict=True):
        if item in columns:
            scores[rows[user], columns[item]] = -rank
    return scores


def lists(contest: Contest, scores: Floats) -> Figures:
    """NDCG and recall of the first ten, with both definitions of relevance; also of known users alone.

    With relevance of 4 or 5 also those of longer lists, and the coverage and the novelty of the first ten.

    ``scores`` has one row per user and one column per item of ``contest.rated``.
    """
    place = {user: row for row, user in enumerate(contest.rated.users)}
    figures: Figures = {}
    for candidates, ending in ((contest.liked, ""), (contest.rated, "_all")):
        rows, known = np.array([place[user] for user in candidates.users]), contest.known(candidates.users)
        best = ranking.top_k(np.where(candidates.seen.toarray(), -np.inf, scores[rows]), LONGER)
        relevant = candidates.relevant.toarray()
        hits = (best >= 0) & np.take_along_axis(relevant, np.maximum(best, 0), axis=1)
        if not ending:
            figures |= longer(candidates, best, hits, relevant.sum(axis=1))
        for metric, of in {"ndcg": ranking.ndcg, "recall": ranking.recall}.items():
            values = of(hits[:, :K], relevant.sum(axis=1))
            figures[f"{metric}{ending}"] = round(float(values.mean()), 5)
            figures[f"{metric}{ending}_known"] = round(float(values[known].mean()), 5)
    return figures


def longer(candidates: Candidates, best: Any, hits: Any, relevant: Any) -> Figures:
    """Figures of lists of ``LONGER`` places, and what the first ten of them show."""
    n_items, n_users = candidates.rated.shape
    raters = np.diff(candidates.rated.indptr)
    found = {f"recall_{k}": ranking.recall(hits[:, :k], relevant).mean() for k in RECALLS}
    found[f"ndcg_{LONGER}"] = ranking.ndcg(hits, relevant).mean()
    found["coverage"] = ranking.catalogue_coverage(best[:, :K], n_items)
    found["novelty"] = ranking.novelty(best[:, :K], raters, n_users).mean()
    return {name: round(float(value), 5) for name, value in found.items()}


def errors(contest: Contest, model: Any) -> Figures:
    """RMSE of all test ratings, and of those by known users."""
    truth, predicted = contest.test.numeric("rating"), model.predict(contest.test)
    known = contest.known(contest.test["user_id"].tolist())
    both = {"rmse": rmse(truth, predicted), "rmse_known": rmse(truth[known], predicted[known])}
    return {name: round(value, 5) for name, value in both.items()}


def decision(contest: Contest, seed: int) -> Figures:
    """What ``time="auto"`` decides with default settings."""
    helps = drift_helps(TuckerRecommender(), contest.train, *attribute_tables(contest.movielens), seed)
    return {"time": "week" if helps else "none"}


def cells(run: Run) -> Work:
    """Test figures, cells ``user/clicks/seed 0``; sizes of the parts, and the decision of ``time="auto"``."""
    at, work = run.settings, dict[str, Callable[[], Figures]]()
    for seed, split in product(at["seeds"], at["splits"]):
        contest = contest_of(run, split, seed)
        chosen: dict[str, dict[str, Any]] = {"clicks": CHOSEN[split], **ITEM_CHOSEN[split]}
        work[f"{split}/counts/seed {seed}"] = partial(counts, contest)
        for name in ("popularity", *ITEM_CHOSEN[split], *CLICKS, "mean", "biases", "plain", "none", "week", "value"):
            options = chosen.get(name, {}) | at["options"].get(name, {})
            work[f"{split}/{name}/seed {seed}"] = partial(measure, contest, name, options, seed)
        work[f"{split}/auto/seed {seed}"] = partial(decision, contest, seed)
    return work


def choice_cells(run: Run) -> Work:
    """Validation figures of each setting, cells ``user/clicks/{"rank": 8, ...}``."""
    at, movielens = run.settings, run.load("ml-100k")
    work: dict[str, Callable[[], Figures]] = {}
    for split in at["splits"]:
        contest = validation(movielens, split)
        work[f"{split}/popularity/{{}}"] = partial(measure, contest, "popularity", {}, 0)
        for baseline in ITEM_CHOSEN[split]:
            for options in at["items"][baseline.removesuffix(LIKED_ALONE)]:
                work[f"{split}/{baseline}/{json.dumps(options)}"] = partial(measure, contest, baseline, options, 0)
        for options in at["clicks"]:
            name = f"{split}/clicks/{json.dumps(options)}"
            work[name] = partial(measure, contest, "clicks", options | at["options"], 0)
    return work


PROTOCOL = (
    "every rating is an interaction; relevant are test items rated 4 or 5, and in other columns all test items; "
    "candidates are all items that the user has not rated in the training part; settings chosen by NDCG@10 on a fifth "
    "of the first seed's training part, split alike; users without a training part get popularity from contestants "
    "that know nothing of them; predicted ratings are clipped to 1..5"
)
LISTED = ("popularity", *PEERS, *CLICKS, "value")
LIST_COLUMNS = [
    ("user", "ndcg", "by user: NDCG@10"),
    ("user", "recall", "recall@10"),
    ("user", "ndcg_all", "NDCG@10, all relevant"),
    ("time", "ndcg", "by time: NDCG@10"),
    ("time", "recall", "recall@10"),
    ("time", "ndcg_known", "NDCG@10, known users"),
    ("user", "seconds", "seconds for a fit"),
]
_LONGER = {
    "ndcg": "NDCG@10",
    "recall": "recall@10",
    "recall_20": "recall@20",
    "recall_50": "recall@50",
    "ndcg_100": "NDCG@100",
    "coverage": "coverage",
    "novelty": "novelty",
}
_APART = {"ndcg_known": "NDCG@10, known users", "ndcg_new": "NDCG@10, new users"}
LONGER_COLUMNS = {
    "user": [("user", *column) for column in _LONGER.items()],
    "time": [("time", *column) for column in (_LONGER | _APART).items()],
}
ERROR_COLUMNS = [
    ("user", "rmse", "by user: RMSE"),
    ("time", "rmse", "by time: RMSE"),
    ("time", "rmse_known", "RMSE, known users"),
]

RANKING = Experiment(
    name="ranking",
    title="Lists of recommendations, and errors on the past and on the future",
    group="ranking",
    protocol=PROTOCOL,
    data=("ml-100k",),
    settings={
        "seeds": (0, 1, 2), "splits": tuple(SPLITS), "every": 1, "options": {}, "chosen": CHOSEN,
        "item_chosen": ITEM_CHOSEN,
    },
    quick={"seeds": (0,), "splits": ("user",), "every": 30, "options": QUICK},
    cells=cells,
    blocks=(
        Text(
            "MovieLens 100K in two ways: a fifth of every user's ratings held out at random, and the last fifth of all "
            "ratings. Means and sd over seeds; known users have ratings in the training part."
        ),
        Table("ranking_parts", "The parts", parts_table),
        Table(
            "ranking_lists",
            "The first ten of each list",
            partial(by_split_table, LIST_COLUMNS, (*LISTED, "plain", "none", "week")),
        ),
        Table(
            "ranking_longer",
            "Longer lists, by user; share of all items that are in somebody's first ten, and novelty in bits",
            partial(by_split_table, LONGER_COLUMNS["user"], LISTED),
        ),
        Table(
            "ranking_longer_time",
            "Longer lists, by time, and the first ten for known and new users apart",
            lambda cells: by_split_table(LONGER_COLUMNS["time"], LISTED, with_new_users(cells)),
        ),
        Table(
            "ranking_errors",
            "Errors of the same fits",
            partial(by_split_table, ERROR_COLUMNS, ("mean", "biases", "plain", "none", "week", "auto")),
        ),
        Table("ranking_decisions", 'What `time="auto"` decides', decision_table),
    ),
)  # fmt: skip

RANKING_CHOICE = Experiment(
    name="ranking_choice",
    title="Lists: settings on validation parts",
    group="choices",
    protocol=PROTOCOL,
    data=("ml-100k",),
    settings={
        "seed": 0, "splits": tuple(SPLITS), "options": {}, "items": ITEM_GRIDS,
        "clicks": (
            {"rank": 16, "negatives": 16}, {"rank": 16, "negatives": 1000}, {"rank": 16, "negatives": 4},
            {"rank": 16, "negatives": 1000, "side_information": False}, {"rank": 8, "negatives": 1000},
        ),  # 1,000 negatives are all there are
    },
    quick={
        "splits": ("time",), "clicks": ({"rank": 2, "negatives": 1},), "options": {"draws": 2, "warmup": 2},
        "items": {name: grid[:1] for name, grid in ITEM_GRIDS.items()},
    },
    cells=choice_cells,
    blocks=(
        Table("ranking_choice", "Settings compared by NDCG@10 on validation parts", choice_table),
        Table("ranking_tries", "What was tried for clicks", tries_table),
    ),
)  # fmt: skip
