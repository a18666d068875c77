r"""Lists of artists from plays: Last.fm 2K, a fifth of each user's artists held out, cold artists apart.

Settings of peers are chosen by NDCG@100 on a fifth of the first seed's training part; ours are the defaults. Each cell
is added to the file when it is done, and a run goes on where the file ends::

    TUCKERGP_DATA=... python benchmarks/lastfm.py -o benchmarks/results/lastfm.json --python peer/bin/python

``--python`` names a Python that has `implicit` and LightFM; without it, these contestants are left out.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import hybrids
import item_models
import numpy as np
from gibbs import facts
from peers import grid, scaled_scores, scores_of, version_of
from reports import Resumed
from scipy import sparse

SEEDS, VALIDATION = (0, 1, 2), 1_000
# Users for whom lists are made, the same for all contestants; draws that score them.
USERS, KEPT = 500, 50
OURS: dict[str, dict[str, Any]] = {
    "als, no attributes": {"inference": "als", "side_information": False},
    "als": {"inference": "als"},
    "gibbs, no attributes": {"side_information": False},
    "gibbs": {},
}
COUNTING = ("none", "log")
GRIDS = {
    "implicit": grid(
        counting=COUNTING, regularization=(1.0, 10.0, 100.0, 300.0, 1_000.0), alpha=(1.0, 4.0, 16.0, 64.0)
    ),
    "ials": grid(counting=COUNTING, unobserved=(0.01, 0.03, 0.1), regularization=(0.003, 0.01, 0.03)),
    "ease": grid(counting=COUNTING, l2=(10.0, 30.0, 100.0, 300.0, 1_000.0)),
    "nearest items": grid(counting=COUNTING, neighbours=(10, 30, 100, 300, 1_000), shrinkage=(0.0, 1.0, 3.0, 10.0)),
    "lightfm": grid(
        no_components=(32, 64), learning_rate=(0.02, 0.05), epochs=(30, 90), alpha=(0.0, 1e-5), shares=(True, False)
    ),
}
"""What is compared on the validation part. Counting "log" weighs a play by 1 + log(1 + n / median)."""
PACKAGES = {"implicit": "implicit", "lightfm": "lightfm-next"}
"""By peer: what the other Python must have."""
JUDGES = {name: {name: "warm_ndcg_100"} for name in GRIDS} | {
    "lightfm": {"lightfm": "warm_ndcg_100", "lightfm, cold": "cold_ndcg_100"}
}
"""By grid: the contestants that come from it, and what is best for each on the validation part."""


class Contest(NamedTuple):
    """A training part, and for some users (rows) and all artists (columns) what was chosen when.

    ``warm`` marks artists with training plays; ``order`` is random, so that ties favour no artist.
    """

    train: Any
    users: Any
    items: Any
    seen: Any
    relevant: Any
    warm: Any
    order: Any

    @property
    def listeners(self) -> Any:
        """How many users played each artist in the training part."""
        return np.bincount(np.searchsorted(self.items, self.train["item_id"]), minlength=len(self.items))


def parts(plays: Any, seed: int) -> Any:
    from tuckergp.data.splits import UserHoldout

    return next(UserHoldout(share=0.2, seed=seed).split(plays))


def contest_of(plays: Any, seed: int, train: Any, test: Any) -> Contest:
    rng = np.random.default_rng(seed)
    users = np.sort(rng.permutation(np.unique(test["user_id"]))[:USERS])
    items = np.unique(plays["item_id"])

    def flags(table: Any) -> Any:
        mine = np.isin(table["user_id"], users)
        out = np.zeros((len(users), len(items)), dtype=bool)
        out[np.searchsorted(users, table["user_id"][mine]), np.searchsorted(items, table["item_id"][mine])] = True
        return out

    warm = np.isin(items, train["item_id"])
    return Contest(train, users, items, flags(train), flags(test), warm, rng.permutation(len(items)))


def figures(contest: Contest, scores: Any) -> dict[str, float]:
    """Figures of lists of artists that somebody played, and of lists of those that nobody did, means over users.

    Coverage is the share of these artists that are in somebody's first ten.
    """
    from tuckergp.evaluation.metrics import ranking

    listeners, users = contest.listeners, len(np.unique(contest.train["user_id"]))

    found = {}
    for name, among in (("warm", contest.warm), ("cold", ~contest.warm)):
        places = contest.order[among[contest.order]]
        relevant = contest.relevant[:, places]
        some = relevant.any(axis=1)
        candidates = np.where(contest.seen[:, places], -np.inf, scores[:, places])[some]
        best = ranking.top_k(candidates, 100)
        hits = (best >= 0) & np.take_along_axis(relevant[some], np.maximum(best, 0), axis=1)
        count = relevant[some].sum(axis=1)
        for k in (10, 20, 50):
            found[f"{name}_recall_{k}"] = float(ranking.recall(hits[:, :k], count).mean())
        for k in (10, 100):
            found[f"{name}_ndcg_{k}"] = float(ranking.ndcg(hits[:, :k], count).mean())
        found[f"{name}_coverage"] = ranking.catalogue_coverage(best[:, :10], len(places))
        found[f"{name}_novelty"] = float(ranking.novelty(best[:, :10], listeners[places], users).mean())
        found[f"{name}_users"], found[f"{name}_artists"] = int(some.sum()), len(places)
    return {key: round(value, 5) for key, value in found.items()}


def ours(contest: Contest, lastfm: Any, options: dict[str, Any], size: dict[str, int], seed: int) -> dict[str, Any]:
    from tuckergp import TuckerRecommender

    point = "inference" in options
    size = {"rank": size["rank"]} if point else size
    began, used = time.perf_counter(), time.process_time()
    model = TuckerRecommender(**size, **options, random_state=seed)
    artists = lastfm.artists.select(["item_id", "tags"])
    model.fit(contest.train, lastfm.users, artists, progress=False, keep=None if point else KEPT)
    spent = {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - used}
    likelihood = model.fit_.likelihood
    chosen = {name: getattr(likelihood, name) for name in ("zeros", "popularity", "counting", "temper", "activity")}
    return {**spent, "chosen": chosen, **figures(contest, model.scores(contest.users, contest.items))}


class Played(NamedTuple):
    """The training part as numbers of users and of its artists, with weights, and where the users of lists are."""

    user: Any
    item: Any
    weight: Any
    items: Any
    rows: Any

    @classmethod
    def of(cls, contest: Contest, counting: str) -> Played:
        """The training part with weights by this way of counting."""
        count = contest.train["count"].astype(np.float64)
        weight = np.log1p(count / np.median(count)) + 1 if counting == "log" else np.ones(len(count))
        (users, user), (items, item) = (
            np.unique(contest.train[key], return_inverse=True) for key in ("user_id", "item_id")
        )
        return cls(user, item, weight, items, np.searchsorted(users, contest.users))

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of users and of artists."""
        return int(self.user.max()) + 1, len(self.items)

    @property
    def clicks(self) -> sparse.csr_array:
        """The weights of all plays, users by artists."""
        return sparse.csr_array((self.weight, (self.user, self.item)), shape=self.shape)


def peer(contest: Contest, kind: str, options: dict[str, Any], python: str, seed: int) -> dict[str, Any]:
    """A peer that knows no attributes; models with factors have 32. What it does not know has the lowest score."""
    began = time.perf_counter()
    settings = dict(options)
    played = Played.of(contest, settings.pop("counting"))
    given = (played.user, played.item, played.shape, seed, played.weight)
    if kind == "implicit":
        found = scores_of(python, "als", {"factors": 32, **settings}, *given)[played.rows]
    elif kind == "ials":
        found = scaled_scores({"factors": 32, **settings}, *given)[played.rows]
    elif kind == "ease":
        found = item_models.ease(played.clicks, played.rows, **settings)
    else:
        found = item_models.nearest_items(played.clicks, played.rows, **settings)
    scores = np.full((len(contest.users), len(contest.items)), -1e9)
    scores[:, np.searchsorted(contest.items, played.items)] = found
    return {"seconds": time.perf_counter() - began, **figures(contest, scores)}


def hybrid(contest: Contest, lastfm: Any, options: dict[str, Any], python: str, seed: int) -> dict[str, Any]:
    """LightFM with tags of artists and friends of users."""
    began = time.perf_counter()
    users, user = np.unique(contest.train["user_id"], return_inverse=True)
    item = np.searchsorted(contest.items, contest.train["item_id"])
    clicks = sparse.csr_array((np.ones(len(user)), (user, item)), shape=(len(users), len(contest.items)))
    words = (
        dict(zip(table[key], table[name], strict=True))
        for table, key, name in ((lastfm.users, "user_id", "friends"), (lastfm.artists, "item_id", "tags"))
    )
    attributes = [
        hybrids.flags([known.get(value, []) for value in ids])
        for known, ids in zip(words, (users, contest.items), strict=True)
    ]
    rows = np.searchsorted(users, contest.users)
    scores = hybrids.scores_of(python, options, clicks, attributes, seed, rows)
    return {"seconds": time.perf_counter() - began, **figures(contest, scores)}


def popularity(contest: Contest) -> dict[str, Any]:
    chosen = np.searchsorted(contest.items, contest.train["item_id"])
    count = np.bincount(chosen, minlength=len(contest.items)).astype(np.float64)
    return figures(contest, np.tile(count, (len(contest.users), 1)))


Try = Callable[[Contest, str, dict[str, Any], int], dict[str, Any]]


def chosen_of(plays: Any, report: Resumed, names: list[str], attempt: Try, quick: bool) -> dict[str, Any]:
    """By contestant: its grid and the settings of it with the best lists on the validation part."""
    base, _ = parts(plays, SEEDS[0])
    contest = contest_of(plays, VALIDATION, *parts(base, VALIDATION))
    chosen = {}
    for name in names:
        group = "validation" if name == "implicit" else f"validation, {name}"
        for options in GRIDS[name][: 1 if quick else None]:
            report.cell((group, json.dumps(options)), partial(attempt, contest, name, options, 0))
        scores = report.cells[group]
        for contestant, judge in JUDGES[name].items():
            chosen[contestant] = name, json.loads(max(scores, key=lambda one: scores[one][judge]))
    return chosen


def cells(
    plays: Any, lastfm: Any, seed: int, size: dict[str, int], attempt: Try, chosen: dict[str, Any]
) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    contest = contest_of(plays, seed, *parts(plays, seed))
    yield "popularity", partial(popularity, contest)
    for name, (kind, options) in chosen.items():
        yield name, partial(attempt, contest, kind, options, seed)
    for name, options in OURS.items():
        yield name, partial(ours, contest, lastfm, options, size, seed)


def main() -> None:
    from tuckergp.data.datasets import load_lastfm_2k

    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="every tenth user, one seed, few draws of a small model")
    parser.add_argument("--python", help="a Python that has implicit and LightFM")
    parser.add_argument("--only", help="names of contestants, separated by semicolons")
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    lastfm = load_lastfm_2k()
    some = np.flatnonzero(lastfm.plays["user_id"] % (10 if given.quick else 1) == 0)
    plays, size = lastfm.plays.take(some), {"rank": 2, "draws": 5, "warmup": 2} if given.quick else {"rank": 32}
    versions = {name: version_of(package, given.python) for name, package in PACKAGES.items()} if given.python else {}
    head = {"command": "python benchmarks/lastfm.py", "machine": facts(), "size": size, **versions}
    report = Resumed(head, "cells", given.output)
    wanted = given.only.split(";") if given.only else None

    def attempt(contest: Contest, kind: str, options: dict[str, Any], seed: int) -> dict[str, Any]:
        if kind == "lightfm":
            return hybrid(contest, lastfm, options, given.python, seed)
        return peer(contest, kind, options, given.python, seed)

    names = [name for name in GRIDS if name not in PACKAGES or versions.get(name)]
    names = [name for name in names if wanted is None or {name, *JUDGES[name]} & set(wanted)]
    chosen = chosen_of(plays, report, names, attempt, given.quick)
    for seed in SEEDS[: 1 if given.quick else None]:
        for name, run in cells(plays, lastfm, seed, size, attempt, chosen):
            if wanted is None or name in wanted:
                report.cell((f"seed {seed}", name), run)


if __name__ == "__main__":
    main()
