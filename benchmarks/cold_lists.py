r"""Lists for new items, new users and known ones, by attributes: MovieLens 100K, and choices whose chances are known.

A fifth of the items, of the users, or (known ones, synthetic choices alone) of each user's choices is held out.
Settings of peers are compared by NDCG@10 on a part held out in the same way from the first seed's training part, and
the best of them on two more such parts, by the mean of the three; ours are the defaults. Each cell is added to the file
when it is done, and a run goes on where the file ends::

    TUCKERGP_DATA=... python benchmarks/cold_lists.py -o benchmarks/results/cold_lists.json --python peer/bin/python

``--python`` names a Python that has `implicit` and LightFM; without it, these contestants are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from statistics import mean
from typing import Any

import content
import hybrids
import item_models
import numpy as np
from gibbs import facts
from made_clicks import made
from peers import grid, scaled_scores, scores_of, version_of
from reports import Resumed
from scipy import sparse

SEEDS, VALIDATION = (0, 1, 2), (1_000, 1_001, 1_002)
FINALISTS = 8
SHARE, LIKED = 0.2, 4.0
TASKS = (
    *("movielens, new items", "movielens, new users"),
    *("synthetic, new items", "synthetic, new users", "synthetic, known"),
)
SIZES = {"synthetic": (600, 400)}
ALONE, PLAIN = ", 4 and 5 alone", ", no attributes"
VALUE = {"time": None, "objective": "value"}
OURS: dict[str, dict[str, Any]] = {"gibbs": {"rank": 32}, "als": {"rank": 32, "inference": "als"}}
GRIDS = {
    "lightfm": grid(
        no_components=(16, 32), learning_rate=(0.02, 0.05), epochs=(10, 20, 60), alpha=(0.0, 1e-4), shares=(False, True)
    ),
    "nearest rows": grid(neighbours=(3, 10, 30, 100, 300)),
    "ridge": grid(
        factors=(32,), unobserved=(0.1, 0.3, 1.0, 3.0), regularization=(0.003, 0.01), penalty=(3.0, 30.0, 300.0)
    ),
    "implicit": grid(factors=(8, 32), regularization=(1.0, 10.0, 100.0), alpha=(0.25, 1.0, 4.0, 16.0)),
    "ials": grid(factors=(8, 32), unobserved=(0.1, 0.3, 1.0), regularization=(0.003, 0.01, 0.03, 0.1)),
    "ease": grid(l2=(10.0, 30.0, 100.0, 300.0, 1_000.0)),
}
"""What is compared on the validation parts; with ratings, once with all of them and once with 4 and 5 alone."""
NEW, KNOWN = ("lightfm", "nearest rows", "ridge"), ("lightfm", "implicit", "ials", "ease")
PACKAGES = {"implicit": "implicit", "lightfm": "lightfm-next"}
"""By peer: what the other Python must have."""


@dataclass(frozen=True)
class Contest:
    """A training part, and for the test users (rows) and all items (columns) what is a candidate and relevant.

    ``truth`` has, by oracle, the scores of all users and items in the order of their tables.
    """

    new: str
    train: Any
    users: Any
    items: Any
    candidates: Any
    truth: dict[str, Any]

    @classmethod
    def of(cls, data: Any, new: str, train: Any, test: Any) -> Contest:
        """Build a contest from its two parts; in ``new`` what is held out."""
        from tuckergp.evaluation.scoring import Candidates

        candidates = Candidates.of(train, test, data["items"], lambda y, _: y >= LIKED, seed=0)
        return cls(new, train, data["users"], data["items"], candidates, data["truth"].get(new, {}))

    @property
    def rated(self) -> bool:
        """Whether there are ratings."""
        return "rating" in self.train.columns

    def learned(self, alone: bool) -> Any:
        """The training part, or the rows of it that are rated 4 or 5."""
        return self.train.take(np.flatnonzero(self.train.numeric("rating") >= LIKED)) if alone else self.train

    @cached_property
    def rows(self) -> Any:
        """Where the test users are in the table of users."""
        return np.array(places(self.users["user_id"], self.candidates.users))

    def clicks(self, alone: bool) -> Any:
        """What was chosen, (n_users, n_items), in the order of the users' table and of the candidates."""
        learned = self.learned(alone)
        user = places(self.users["user_id"], learned["user_id"])
        item = places(self.candidates.items, learned["item_id"])
        shape = len(self.users), len(self.candidates.items)
        return sparse.csr_array((np.ones(len(user)), (user, item)), shape=shape)

    @cached_property
    def words(self) -> list[Any]:
        """Attributes as 0 and 1, of users and of items."""
        both = hybrids.words_of(self.users, self.items, years=True)
        ids = self.users["user_id"], self.candidates.items
        return [hybrids.flags([of[key] for key in some]) for of, some in zip(both, ids, strict=True)]

    def figures(self, scores: Any) -> dict[str, Any]:
        """Means over users of figures of lists, among new items alone where these were held out."""
        from tuckergp.evaluation.metrics import ranking

        closed, relevant = self.candidates.seen.toarray(), self.candidates.relevant.toarray()
        if self.new == "new items":
            closed |= np.isin(self.candidates.items, self.train["item_id"])
        best = ranking.top_k(np.where(closed, -np.inf, scores), 100)
        hits = (best >= 0) & np.take_along_axis(relevant, np.maximum(best, 0), axis=1)
        count = relevant.sum(axis=1)
        found = {f"ndcg_{k}": ranking.ndcg(hits[:, :k], count) for k in (10, 100)}
        found["recall_50"] = ranking.recall(hits[:, :50], count)
        sizes = {"users": len(count), "candidates": round(float((~closed).sum(axis=1).mean()), 1)}
        return {name: round(float(values.mean()), 5) for name, values in found.items()} | sizes


def places(ids: Any, wanted: Any) -> list[int]:
    number = {key: place for place, key in enumerate(ids)}
    return [number[key] for key in wanted]


def data_of(name: str, seed: int, every: int) -> dict[str, Any]:
    """Choices, attributes and what oracles know; ``every`` leaves out most of the users."""
    if name == "synthetic":
        one = made(*(size // every for size in SIZES[name]), seed)
        own = {"new users": one.new_users, "new items": one.new_items}
        truth = {new: {"oracle of attributes": own[new]} if new in own else {} for new in (*own, "known")}
        truth = {new: {"oracle": one.weight, **more} for new, more in truth.items()}
        return {"choices": one.clicks, "users": one.users, "items": one.items, "truth": truth}
    from tuckergp.data.datasets import load_movielens_100k
    from tuckergp.paper.movielens_data import attribute_tables

    movielens = load_movielens_100k()
    users, items = attribute_tables(movielens)
    some = np.flatnonzero(movielens.ratings["user_id"] % every == 0)
    return {"choices": movielens.ratings.take(some), "users": users, "items": items, "truth": {}}


def parts(choices: Any, new: str, seed: int) -> Any:
    from tuckergp.data.splits import ColdItems, ColdUsers, UserHoldout

    splitter = {"new items": ColdItems, "new users": ColdUsers, "known": UserHoldout}[new]
    return next(splitter(share=SHARE, seed=seed).split(choices))


def contest_of(task: str, seed: int, every: int, validation: int | None = None) -> Contest:
    """The contest of a seed, or one inside its training part, with a seed of its own, on which settings are chosen."""
    name, new = task.split(", ")
    data = data_of(name, seed, every)
    train, test = parts(data["choices"], new, seed)
    if validation is not None:  # without what is in the test part alone, which would be a candidate
        some = np.flatnonzero(np.isin(data["items"]["item_id"], train["item_id"]))
        data |= {"items": data["items"].take(some), "truth": {}}
        train, test = parts(train, new, validation)
    return Contest.of(data, new, train, test)


def timed(contest: Contest, scores: Callable[[], Any]) -> dict[str, Any]:
    """Figures of lists with the CPU seconds to make them, those of other processes included."""
    began = sum(os.times()[:4])
    found = scores()
    spent = sum(os.times()[:4]) - began
    return {**contest.figures(found), "cpu_seconds": round(spent, 2)}


def ours(contest: Contest, name: str, quick: bool, seed: int) -> Any:
    from tuckergp import TuckerRecommender

    kind, attributes = name.removesuffix(PLAIN).removesuffix(ALONE), not name.endswith(PLAIN)
    train = contest.train if kind == "value" else contest.learned(ALONE in name).select(["user_id", "item_id"])
    options = VALUE if kind == "value" else OURS[kind]
    if quick:
        options = {**options, "rank": 2, **({} if kind == "als" else {"draws": 5, "warmup": 2})}
    model = TuckerRecommender(**options, side_information=attributes, random_state=seed)
    model.fit(train, contest.users, contest.items, progress=False)
    return model.scores(contest.candidates.users, contest.candidates.items)


def peer(contest: Contest, kind: str, options: dict[str, Any], python: str, seed: int) -> Any:
    settings = dict(options)
    clicks = contest.clicks(settings.pop("alone", False))
    if kind == "lightfm":
        return hybrids.scores_of(python, settings, clicks, contest.words, seed, contest.rows)
    if kind == "ease":
        return item_models.ease(clicks, contest.rows, **settings)
    if kind in ("implicit", "ials"):
        given = (settings, *clicks.nonzero(), clicks.shape, seed)
        return (scores_of(python, "als", *given) if kind == "implicit" else scaled_scores(*given))[contest.rows]
    items = contest.new == "new items"
    turned, words = clicks.T.tocsr() if items else clicks, contest.words[int(items)]
    if kind == "ridge":
        found = content.regressed(turned, words, seed=seed, **settings)
    else:
        found = content.nearest(turned, words, **settings)
    return (found.T if items else found)[contest.rows]


def simple(contest: Contest, name: str, seed: int) -> Any:
    """Scores of who knows least, a random order or popularity, and of oracles."""
    shape = len(contest.rows), len(contest.candidates.items)
    if name in contest.truth:
        columns = places(contest.items["item_id"], contest.candidates.items)
        return contest.truth[name][np.ix_(contest.rows, columns)]
    if name == "random":
        return np.random.default_rng(seed).random(shape)
    return np.broadcast_to(contest.clicks(ALONE in name).sum(axis=0), shape)


def contestants(contest: Contest) -> Iterator[tuple[str, Callable[[Contest, str, int], Any] | None]]:
    """Names of what is compared besides peers; None for what is ours."""
    endings = ("", ALONE) if contest.rated else ("",)
    least = ["random"] if contest.new == "new items" else [f"popularity{ending}" for ending in endings]
    for name in chain(contest.truth, least):
        yield name, simple
    plain = () if contest.new == "new items" else (PLAIN,)
    for kind in OURS:
        for ending in (*endings, *plain):
            yield kind + ending, None
    if contest.rated:
        for ending in ("", *plain):
            yield "value" + ending, None


def chosen_of(task: str, report: Resumed, names: list[str], python: str, every: int) -> dict[str, Any]:
    """By peer: the settings with the best lists on the validation parts."""
    contests, chosen = [contest_of(task, SEEDS[0], every, part) for part in VALIDATION], {}
    learned: list[dict[str, Any]] = [{"alone": False}, {"alone": True}] if contests[0].rated else [{}]
    for name in names:
        tries = [json.dumps({**one, **more}) for one in GRIDS[name] for more in learned]
        tries, scores = tries[: 1 if every > 1 else None], defaultdict[str, list[float]](list)
        for number, contest in enumerate(contests):
            group = f"validation {number}, {name}"
            for text in tries:
                scored = partial(peer, contest, name, json.loads(text), python, number)
                report.cell((task, group, text), partial(timed, contest, scored))
                scores[text].append(report.cells[task][group][text]["ndcg_10"])
            tries = sorted(tries, key=lambda text: -mean(scores[text]))[:FINALISTS]
        chosen[name] = json.loads(tries[0])
    return chosen


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="every tenth user, one seed, few draws of a small model")
    parser.add_argument("--python", help="a Python that has implicit and LightFM")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    every = 10 if given.quick else 1
    versions = {name: version_of(package, given.python) for name, package in PACKAGES.items()} if given.python else {}
    head = {"command": "python benchmarks/cold_lists.py", "machine": facts(), **versions}
    report = Resumed(head, "cells", given.output)
    for task in given.tasks:
        names = [n for n in (KNOWN if task.endswith("known") else NEW) if n not in PACKAGES or versions.get(n)]
        chosen = chosen_of(task, report, names, given.python, every)
        for seed in SEEDS[: 1 if given.quick else None]:
            contest = contest_of(task, seed, every)
            work: dict[str, Callable[[], Any]] = {
                name: partial(peer, contest, name, options, given.python, seed) for name, options in chosen.items()
            }
            for name, least in contestants(contest):
                work[name] = partial(least or partial(ours, quick=given.quick), contest, name, seed=seed)
            for name, scores in work.items():
                report.cell((task, f"seed {seed}", name), partial(timed, contest, scores))


if __name__ == "__main__":
    main()
