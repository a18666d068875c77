r"""Lists of artists from plays: Last.fm 2K, a fifth of each user's artists held out, cold artists apart.

Settings of `implicit` are chosen by NDCG@100 on a fifth of the first seed's training part; ours are the defaults. Each
cell is added to the file when it is done, and a run goes on where the file ends::

    TUCKERGP_DATA=... python benchmarks/lastfm.py -o benchmarks/results/lastfm.json --python peer/bin/python

``--python`` names a Python that has `implicit`; without it, that contestant is left out.
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

import numpy as np
from gibbs import facts
from peers import grid, scores_of, version_of
from reports import Resumed

SEEDS, VALIDATION = (0, 1, 2), 1_000
# Users for whom lists are made, the same for all contestants; draws that score them.
USERS, KEPT = 500, 50
OURS: dict[str, dict[str, Any]] = {
    "als, no attributes": {"inference": "als", "side_information": False},
    "als": {"inference": "als"},
    "gibbs, no attributes": {"side_information": False},
    "gibbs": {},
}
GRID = grid(counting=("none", "log"), regularization=(1.0, 10.0, 100.0, 300.0, 1_000.0), alpha=(1.0, 4.0, 16.0, 64.0))


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
    """Figures of lists of artists that somebody played, and of lists of those that nobody did, means over users."""
    from tuckergp.evaluation.metrics import ranking

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
    chosen = {name: getattr(likelihood, name) for name in ("zeros", "popularity", "counting", "temper")}
    return {**spent, "chosen": chosen, **figures(contest, model.scores(contest.users, contest.items))}


def peer(contest: Contest, options: dict[str, Any], python: str, seed: int) -> dict[str, Any]:
    """ALS of `implicit` with 32 factors; what it does not know has the lowest score."""
    began = time.perf_counter()
    settings = {"factors": 32, **options}
    count = contest.train["count"].astype(np.float64)
    weight = np.log1p(count / np.median(count)) + 1 if settings.pop("counting") == "log" else np.ones(len(count))
    (users, user), (items, item) = (
        np.unique(contest.train[key], return_inverse=True) for key in ("user_id", "item_id")
    )
    found = scores_of(python, "als", settings, user, item, (len(users), len(items)), seed, weight)
    scores = np.full((len(contest.users), len(contest.items)), -1e9)
    scores[:, np.searchsorted(contest.items, items)] = found[np.searchsorted(users, contest.users)]
    return {"seconds": time.perf_counter() - began, **figures(contest, scores)}


def popularity(contest: Contest) -> dict[str, Any]:
    chosen = np.searchsorted(contest.items, contest.train["item_id"])
    count = np.bincount(chosen, minlength=len(contest.items)).astype(np.float64)
    return figures(contest, np.tile(count, (len(contest.users), 1)))


def chosen_of(plays: Any, python: str, report: Resumed, tried: list[dict[str, Any]]) -> dict[str, Any]:
    """The settings of `implicit` with the best lists on the validation part."""
    base, _ = parts(plays, SEEDS[0])
    contest = contest_of(plays, VALIDATION, *parts(base, VALIDATION))
    for options in tried:
        report.cell(("validation", json.dumps(options)), partial(peer, contest, options, python, 0))
    scores = report.cells["validation"]
    return json.loads(max(scores, key=lambda name: scores[name]["warm_ndcg_100"]))


def cells(
    plays: Any, lastfm: Any, seed: int, size: dict[str, int], python: str | None, chosen: dict[str, Any] | None
) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    contest = contest_of(plays, seed, *parts(plays, seed))
    yield "popularity", partial(popularity, contest)
    if python is not None and chosen is not None:
        yield "implicit", partial(peer, contest, chosen, python, seed)
    for name, options in OURS.items():
        yield name, partial(ours, contest, lastfm, options, size, seed)


def main() -> None:
    from tuckergp.data.datasets import load_lastfm_2k

    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="every tenth user, one seed, few draws of a small model")
    parser.add_argument("--python", help="a Python that has implicit")
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    lastfm = load_lastfm_2k()
    some = np.flatnonzero(lastfm.plays["user_id"] % (10 if given.quick else 1) == 0)
    plays, size = lastfm.plays.take(some), {"rank": 2, "draws": 5, "warmup": 2} if given.quick else {"rank": 32}
    version = version_of("implicit", given.python) if given.python else None
    head = {"command": "python benchmarks/lastfm.py", "machine": facts(), "size": size, "implicit": version}
    report = Resumed(head, "cells", given.output)
    tried = GRID[:1] if given.quick else GRID
    chosen = chosen_of(plays, given.python, report, tried) if version else None
    for seed in SEEDS[: 1 if given.quick else None]:
        for name, run in cells(plays, lastfm, seed, size, given.python, chosen):
            report.cell((f"seed {seed}", name), run)


if __name__ == "__main__":
    main()
