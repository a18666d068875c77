"""Lists of recommendations on MovieLens 100K, and a causal split in time, with the same candidates for all models.

`RANKING_CHOICE` compares settings on validation parts, a fifth of the training parts of the first seed. Its choice is
recorded in `CHOSEN`; `RANKING` learns from the whole training parts with it and scores the test parts.
`benchmarks/peers.py` adds models of other packages, in the same files.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Hashable, Iterable
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
from tuckergp.evaluation.baselines import Biases, GlobalMean
from tuckergp.evaluation.metrics import ranking, rmse
from tuckergp.evaluation.scoring import Candidates, item_scores
from tuckergp.paper.experiment import Cells, Experiment, Figures, Rows, Table, Text, Work
from tuckergp.paper.movielens_data import attribute_tables
from tuckergp.paper.run import Run, quietly
from tuckergp.paper.tables import median, starting, with_sd
from tuckergp.recommender.drift_trial import drift_helps

__all__ = ["RANKING", "RANKING_CHOICE", "SPLITS", "Contest", "contest_of", "lists", "measure", "parts", "validation"]

Floats = npt.NDArray[np.float64]

SPLITS = {"user": "a fifth of every user's ratings, at random", "time": "the last fifth of all ratings"}
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
    "auto": '`TuckerRecommender()` on ratings, which takes `time="auto"`',
}
OWN: dict[str, dict[str, Any]] = {
    "clicks": {"likelihood": "bernoulli", "draws": 60, "warmup": 40, "time": None},
    "plain": {"time": None, "implicit": False},
    "none": {"time": None},
    "week": {"time": "week"},
}
"""The fixed settings of our own models."""
CHOSEN = {"user": {"rank": 16, "negatives": 1000}, "time": {"rank": 8, "negatives": 1000}}
"""The settings of the model of clicks, by split: the best of the grid on the validation part."""
K, LIKED = 10, 4.0
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

    def known(self, users: Iterable[Hashable]) -> npt.NDArray[np.bool_]:
        """Which users are in the training part."""
        learned = set(self.train["user_id"].tolist())
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
    train = contest.train.select(KEYS) if name == "clicks" else contest.train
    model = TuckerRecommender(**{**OWN[name], **options}, random_state=seed)
    quietly(model.fit, train, *attribute_tables(contest.movielens))
    seconds = round(time.perf_counter() - began, 1)
    figures = {} if name == "clicks" else errors(contest, model)
    scores = item_scores(model, contest.rated.users, contest.rated.items)
    return {**figures, **lists(contest, scores), "seconds": seconds}


def lists(contest: Contest, scores: Floats) -> Figures:
    """NDCG and recall of the first ten, with both definitions of relevance; also of known users alone.

    ``scores`` has one row per user and one column per item of ``contest.rated``.
    """
    place = {user: row for row, user in enumerate(contest.rated.users)}
    figures: Figures = {}
    for candidates, ending in ((contest.liked, ""), (contest.rated, "_all")):
        rows, known = np.array([place[user] for user in candidates.users]), contest.known(candidates.users)
        best = ranking.top_k(np.where(candidates.seen.toarray(), -np.inf, scores[rows]), K)
        relevant = candidates.relevant.toarray()
        hits = (best >= 0) & np.take_along_axis(relevant, np.maximum(best, 0), axis=1)
        for metric, of in {"ndcg": ranking.ndcg, "recall": ranking.recall}.items():
            values = of(hits, relevant.sum(axis=1))
            figures[f"{metric}{ending}"] = round(float(values.mean()), 5)
            figures[f"{metric}{ending}_known"] = round(float(values[known].mean()), 5)
    return figures


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
    for seed, split in product(at["seeds"], SPLITS):
        contest = contest_of(run, split, seed)
        work[f"{split}/counts/seed {seed}"] = partial(counts, contest)
        for name in ("popularity", "clicks", "mean", "biases", "plain", "none", "week"):
            options = (CHOSEN[split] if name == "clicks" else {}) | (at["options"] if name in OWN else {})
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
        for options in at["clicks"]:
            name = f"{split}/clicks/{json.dumps(options)}"
            work[name] = partial(measure, contest, "clicks", options | at["options"], 0)
    return work


def figures(cells: Cells, split: str, name: str, what: str) -> list[float]:
    """A figure for each seed; ``auto`` has the figures of the model it decided for, whose draws are the same."""
    names = [key for key in cells if key.startswith(f"{split}/{name}/")]
    if name == "auto":
        names = [key.replace("/auto/", f"/{cells[key]['time']}/") for key in names]
    return [cells[key][what] for key in names if what in cells.get(key, {})]


def by_split_table(columns: list[tuple[str, str, str]], names: tuple[str, ...], cells: Cells) -> Rows:
    """A table with one row per model; a column is given by split, figure and title."""
    rows = [["", *(title for _, _, title in columns)]]
    for name in names:
        values = [(what, figures(cells, split, name, what)) for split, what, _ in columns]
        if any(scores for _, scores in values):
            words = [f"{np.median(v):.0f}" if what == "seconds" and v else with_sd(v) for what, v in values]
            rows.append([CONTESTANTS[name], *words])
    return rows


def parts_table(cells: Cells) -> Rows:
    """Sizes of the parts of the first seed, and how many test users and items are new."""
    rows = [["split", "training ratings", "test ratings", "test users (new)", "test items (new)"]]
    rows[0].append("users with lists (known)")
    for split, title in SPLITS.items():
        for n in starting(cells, f"{split}/counts/")[:1]:
            pairs = [("test_users", "new_users"), ("test_items", "new_items"), ("ranked_users", "ranked_known")]
            sizes = [f"{n['train']:,}", f"{n['test']:,}", *(f"{n[a]:,} ({n[b]:,})" for a, b in pairs)]
            rows.append([title, *sizes])
    return rows


def decision_table(cells: Cells) -> Rows:
    """The decisions of ``time="auto"`` by seed, the gains of weeks, and the seconds of deciding and of a fit."""
    rows = [["split", "decides", "RMSE with weeks - without, seed by seed", "seconds to decide"]]
    rows[0].append("seconds for a fit with weeks")
    for split, title in SPLITS.items():
        auto, week, none = (starting(cells, f"{split}/{name}/") for name in ("auto", "week", "none"))
        if auto and week and none:
            gains = ", ".join(f"{a['rmse'] - b['rmse']:+.4f}" for a, b in zip(week, none, strict=False))
            decided = ", ".join("weeks" if cell["time"] == "week" else "no weeks" for cell in auto)
            rows.append([title, decided, gains, median(auto, "seconds"), median(week, "seconds")])
    return rows


def choice_table(cells: Cells) -> Rows:
    """Validation NDCG@10: the number of settings compared, the best one, which was chosen, the worst and the median."""
    rows = [["split", "contestant", "compared", "chosen", "its NDCG@10", "the least, the median"]]
    for split, name in product(SPLITS, ("als", "bpr", "clicks")):
        start = f"{split}/{name}/"
        scores = {key.removeprefix(start): cell["ndcg"] for key, cell in cells.items() if key.startswith(start)}
        if scores:
            best = max(scores, key=scores.__getitem__)
            rest = f"{min(scores.values()):.4f}, {np.median(list(scores.values())):.4f}"
            words = [SPLITS[split], CONTESTANTS[name], str(len(scores)), f"`{best}`", f"{scores[best]:.4f}", rest]
            rows.append(words)
    return rows


def tries_table(cells: Cells) -> Rows:
    """Validation NDCG@10 of each setting for clicks, on both splits, best first."""
    tried = dict.fromkeys(key.split("/", 2)[2] for key in cells if key.split("/")[1] == "clicks")
    by_options = {name: [cells.get(f"{split}/clicks/{name}") for split in SPLITS] for name in tried}
    rows = [["settings", *SPLITS.values(), "seconds for a fit"]]
    for name, both in sorted(by_options.items(), key=lambda pair: -(pair[1][0] or {"ndcg": 0.0})["ndcg"]):
        seconds = next(cell["seconds"] for cell in both if cell is not None)
        rows.append([f"`{name}`", *("" if cell is None else f"{cell['ndcg']:.4f}" for cell in both), f"{seconds:.0f}"])
    return rows


PROTOCOL = (
    "every rating is an interaction; relevant are test items rated 4 or 5, and in other columns all test items; "
    "candidates are all items that the user has not rated in the training part; settings chosen by NDCG@10 on a fifth "
    "of the first seed's training part, split alike; users without a training part get popularity from contestants "
    "that know nothing of them; predicted ratings are clipped to 1..5"
)
LIST_COLUMNS = [
    ("user", "ndcg", "by user: NDCG@10"),
    ("user", "recall", "recall@10"),
    ("user", "ndcg_all", "NDCG@10, all relevant"),
    ("time", "ndcg", "by time: NDCG@10"),
    ("time", "recall", "recall@10"),
    ("time", "ndcg_known", "NDCG@10, known users"),
    ("user", "seconds", "seconds for a fit"),
]
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
    settings={"seeds": (0, 1, 2), "every": 1, "options": {}, "chosen": CHOSEN},
    quick={"seeds": (0,), "every": 10, "options": {"rank": 2, "draws": 6, "warmup": 4}},
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
            partial(by_split_table, LIST_COLUMNS, ("popularity", "als", "bpr", "clicks", "plain", "none", "week")),
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
        "seed": 0, "splits": tuple(SPLITS), "options": {},
        "clicks": (
            {"rank": 16, "negatives": 16}, {"rank": 16, "negatives": 1000}, {"rank": 16, "negatives": 4},
            {"rank": 16, "negatives": 1000, "side_information": False}, {"rank": 8, "negatives": 1000},
        ),  # 1,000 negatives are all there are
    },
    quick={"splits": ("time",), "clicks": ({"rank": 2, "negatives": 1},), "options": {"draws": 2, "warmup": 2}},
    cells=choice_cells,
    blocks=(
        Table("ranking_choice", "Settings compared by NDCG@10 on validation parts", choice_table),
        Table("ranking_tries", "What was tried for clicks", tries_table),
    ),
)  # fmt: skip
