"""What ``recommend(diversity=...)`` costs and gives on MovieLens 100K: NDCG against the similarity of genres in a list.

Which similarity of items to use was chosen on the first of the official splits ("choice"); what is shown is measured on
the others ("lists"). For models of ratings, films that the user rated 4 or 5 in the test part are relevant, for clicks
all that the user rated there. Two films are as similar as the cosine of their sets of genres::

    TUCKERGP_DATA=... python benchmarks/diversity.py -o benchmarks/results/diversity.json
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from gibbs import facts
from reports import put

N = 10
WEIGHTS = (0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 1.0)
CHOICE, SPLITS = 1, (2, 3, 4, 5)
SIMILARITIES = ("correlation over draws", "cosine of factors", "correlation over users")
Floats = npt.NDArray[np.float64]


MODELS: dict[str, dict[str, Any]] = {
    "ratings, gibbs": {"rank": 8, "draws": 100, "warmup": 50},
    "ratings, als": {"rank": 8, "inference": "als"},
    "clicks, gibbs": {"rank": 16, "draws": 100, "warmup": 50, "likelihood": "clicks"},
    "clicks, als": {"rank": 16, "inference": "als", "likelihood": "clicks"},
}
QUICK: dict[str, dict[str, Any]] = {
    "ratings, gibbs": {"rank": 3, "draws": 6, "warmup": 3, "implicit": False},
    "ratings, als": {"rank": 3, "inference": "als"},
}


def unit(vectors: Floats) -> Floats:
    """The vectors with length 1, or 0."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(length > 0, length, 1.0)


class Judge:
    """Figures of lists for the users of a test part."""

    def __init__(self, items: Any, test: Any, least: float) -> None:
        sets = [set(genres) for genres in items["genres"].tolist()]
        names = sorted(set().union(*sets))
        flags = unit(np.array([[float(name in genres) for name in names] for genres in sets]))
        self.genres = dict(zip(items["item_id"].tolist(), flags, strict=True))
        self.relevant: dict[Any, set[Any]] = {}
        for user, item, y in zip(*(test[key].tolist() for key in ("user_id", "item_id", "rating")), strict=True):
            if y >= least:
                self.relevant.setdefault(user, set()).add(item)

    def figures(self, lists: dict[Any, list[Any]]) -> dict[str, float]:
        """Mean NDCG, and the mean cosine of the genres of two films of one list."""
        from tuckergp.evaluation.metrics.ranking import ndcg

        hits = [[item in self.relevant[user] for item in own] for user, own in lists.items()]
        alike = []
        for own in lists.values():
            flags = np.array([self.genres[item] for item in own])
            cosines = flags @ flags.T
            alike.append((cosines.sum() - np.trace(cosines)) / (len(own) * (len(own) - 1)))
        sizes = [len(self.relevant[user]) for user in lists]
        return {"ndcg": float(ndcg(hits, sizes).mean()), "similarity": float(np.mean(alike))}


def vectors_of(rec: Any, kind: str) -> Any:
    """A function from a user and items to vectors whose inner products are similarities."""
    from tuckergp.data.tables import Table
    from tuckergp.recommender.factors import Factors

    layout, draws = rec.layout_, rec.fit_.draws
    factors = Factors(layout, rec.fit_)
    everyone = np.flatnonzero(layout.sides[0].current & layout.sides[0].table.seen)
    U = factors.users(everyone, Table({}, "users", len(everyone))).vectors.astype(np.float64)
    V = draws.factors(1, layout.sides[1].table).astype(np.float64)
    row = {number: place for place, number in enumerate(everyone.tolist())}
    if kind == "correlation over draws":

        def over_draws(user: Any, rows: Any) -> Floats:
            f = np.einsum("sr,isr->is", U[row[int(layout.sides[0].numbers([user])[0])]], V[rows])
            return unit(f - f.mean(axis=1, keepdims=True))

        return over_draws
    if kind == "cosine of factors":
        table = unit(V.mean(axis=1))
    else:
        rated = np.flatnonzero(layout.sides[1].current & layout.sides[1].table.seen)
        mapped = np.empty_like(V)
        for s in range(V.shape[1]):
            values, axes = np.linalg.eigh(np.cov(U[:, s], rowvar=False))
            mapped[:, s] = (V[:, s] - V[rated, s].mean(axis=0)) @ (axes * np.sqrt(np.maximum(values, 0.0)))
        table = unit(mapped.reshape(len(mapped), -1))
    return lambda user, rows: table[rows]


def by_similarity(rec: Any, judge: Judge, users: list[Any]) -> dict[str, Any]:
    """Figures with each similarity and each weight."""
    from tuckergp.recommender.diversity import marginal_relevance
    from tuckergp.recommender.serving import DIVERSE

    shortlists = dict(list(rec.recommend(users, n=DIVERSE * N).groupby("user_id", sort=False)))
    found: dict[str, Any] = {}
    for kind in SIMILARITIES[0 if rec.fit_.draws.sampled else 1 :]:
        vectors = vectors_of(rec, kind)
        for weight in WEIGHTS:
            lists = {}
            for user, own in shortlists.items():
                items = own["item_id"].tolist()
                alike = vectors(user, rec.layout_.sides[1].numbers(items))
                lists[user] = [items[k] for k in marginal_relevance(own["score"].to_numpy(), alike, N, weight)]
            found.setdefault(kind, {})[str(weight)] = judge.figures(lists)
    return found


def as_shipped(rec: Any, judge: Judge, users: list[Any]) -> dict[str, Any]:
    """Figures of the lists that `recommend` gives with each weight."""
    found = {}
    for weight in WEIGHTS:
        frame = rec.recommend(users, n=N, diversity=weight)
        lists = {user: own["item_id"].tolist() for user, own in frame.groupby("user_id", sort=False)}
        found[str(weight)] = judge.figures(lists)
    return found


def main() -> None:
    import pandas as pd

    from tuckergp import TuckerRecommender
    from tuckergp.data.datasets import load_movielens_100k

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small models, few users, one split for lists")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    movielens = load_movielens_100k()
    models = QUICK if options.quick else MODELS
    report: dict[str, Any] = {
        "command": "python benchmarks/diversity.py",
        "machine": facts(),
        "models": models,
        "choice_split": CHOICE,
        "choice": {},
        "lists": {},
    }
    for split in (CHOICE, *SPLITS[: 1 if options.quick else None]):
        train, test = movielens.split(split)
        frame = pd.DataFrame(train.columns)
        for name, model in models.items():
            rec = TuckerRecommender(**model, time=None, objective="rating", random_state=0)
            rec.fit(frame, movielens.users, movielens.items, progress=False)
            judge = Judge(movielens.items, test, 4.0 if name.startswith("ratings") else 0.0)
            known = set(train["user_id"].tolist())
            users = [user for user in judge.relevant if user in known][: 20 if options.quick else None]
            if split == CHOICE:
                report["choice"][name] = by_similarity(rec, judge, users)
            else:
                report["lists"].setdefault(name, {})[str(split)] = as_shipped(rec, judge, users)
            put(report, options.output)


if __name__ == "__main__":
    main()
