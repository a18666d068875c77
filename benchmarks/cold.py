"""Users and items without ratings: error and coverage of MovieLens 100K with and without who-rated-what.

In each split 100 users and 150 items are held out at once; ratings of both a held-out user and a held-out item are left
out. A split is added to the file when it is done, and a run goes on where the file ends::

    TUCKERGP_DATA=... python benchmarks/cold.py -o benchmarks/results/cold.json

``--first 100`` makes other splits, on which choices were made.
"""

from __future__ import annotations

import argparse
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from gibbs import facts
from reports import Resumed

SHARE = 0.9
SPLITS = 10
HELD_OUT = {"user_id": 100, "item_id": 150}


def split(ratings: Any, seed: int) -> list[Any]:
    """Ratings to learn from, those of held-out users, those of held-out items."""
    rng = np.random.default_rng(seed)
    users, items = (
        np.isin(ratings[key], rng.choice(np.unique(ratings[key]), count, replace=False))
        for key, count in HELD_OUT.items()
    )
    return [ratings.take(np.flatnonzero(part)) for part in (~users & ~items, users & ~items, ~users & items)]


def scores(rec: Any, test: Any, key: str) -> dict[str, float]:
    """Error, coverage over ratings and over held-out ids, width of intervals, mean error."""
    mean, interval = rec.predict(test, interval=SHARE)
    y = test.numeric("rating")
    inside = (interval[:, 0] <= y) & (y <= interval[:, 1])
    _, code = np.unique(test[key], return_inverse=True)
    return {
        "rmse": float(np.sqrt(np.mean((mean - y) ** 2))),
        "coverage": float(inside.mean()),
        "coverage_of_ids": float((np.bincount(code, inside) / np.bincount(code)).mean()),
        "width": float((interval[:, 1] - interval[:, 0]).mean()),
        "mean_error": float((y - mean).mean()),
    }


def run(movielens: Any, seed: int, size: dict[str, int]) -> dict[str, dict[str, dict[str, float]]]:
    """The scores of one split, by model, then by what was held out."""
    from tuckergp import TuckerRecommender

    train, *tests = split(movielens.ratings, seed)
    out: dict[str, dict[str, dict[str, float]]] = {}
    for attributes in (True, False):
        for implicit in (True, False):
            rec = TuckerRecommender(**size, time=None, implicit=implicit, objective="rating", random_state=seed)
            tables = (movielens.users, movielens.items) if attributes else (None, None)
            rec.fit(train, *tables, progress=False)
            name = f"{'attributes' if attributes else 'no attributes'}, who-rated-what {'on' if implicit else 'off'}"
            out[name] = {key: scores(rec, test, key) for key, test in zip(HELD_OUT, tests, strict=True)}
    return out


def main() -> None:
    from tuckergp.data.datasets import load_movielens_100k

    warnings.simplefilter("ignore")  # short chains
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one split, few draws of a small model")
    parser.add_argument("--first", type=int, default=0, help="the number of the first split")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    movielens = load_movielens_100k()
    size = {"rank": 2, "draws": 5, "warmup": 2} if options.quick else {"rank": 16, "draws": 100, "warmup": 50}
    head = {"command": "python benchmarks/cold.py", "machine": facts(), "size": size, "held_out": HELD_OUT}
    report = Resumed(head, "splits", options.output)
    for seed in range(options.first, options.first + (1 if options.quick else SPLITS)):
        report.cell((str(seed),), partial(run, movielens, seed, size))


if __name__ == "__main__":
    main()
