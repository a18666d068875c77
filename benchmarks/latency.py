"""What one answer costs: one pair, one list of 10, one fold-in of 5 ratings, lists for everyone.

Each beside its bare cost in NumPy over arrays of the same size: for a list one matrix-vector product and a partial
sort, for a fold-in one r x r solve for each draw, for everyone a blocked product with a partial sort. The model is
fitted on synthetic ratings with few sweeps; what it answers does not matter here, its size does::

    python benchmarks/latency.py -o benchmarks/results/latency.json
    python benchmarks/latency.py --quick
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from contestants import Data, write_synthetic
from gibbs import facts
from reports import put

FULL = {"users": [1_000, 10_000, 138_000], "items": 27_000, "ratings_per_user": 145, "rank": 16, "draws": 100}
QUICK = {"users": [300, 1_000], "items": 500, "ratings_per_user": 20, "rank": 4, "draws": 10}
REPEATS, N, RATED = 200, 10, 5
# Users whose lists are made at once where everyone's are timed.
MANY = 2_000


def quantiles(call: Callable[[int], Any], repeats: int) -> dict[str, float]:
    """Milliseconds at the median and the 99th percentile, after three calls that are not counted."""
    for k in range(3):
        call(repeats + k)
    spent = []
    for k in range(repeats):
        start = time.perf_counter()
        call(k)
        spent.append(1000 * (time.perf_counter() - start))
    return {"p50": float(np.quantile(spent, 0.5)), "p99": float(np.quantile(spent, 0.99))}


def fitted(size: dict[str, Any], users: int, folder: Path) -> tuple[Any, Data]:
    """A recommender of this size."""
    from tuckergp import TuckerRecommender

    ratings = min(size["ratings_per_user"] * users, size["items"] * users // 4)
    write_synthetic(folder, users, size["items"], ratings)
    data = Data(folder)
    rec = TuckerRecommender(
        rank=size["rank"], draws=size["draws"], warmup=2, implicit=False, time=None, objective="rating", random_state=0
    )
    return rec.fit({"user_id": data.user, "item_id": data.item, "rating": data.y}, progress=False), data


def answers(rec: Any, data: Data, size: dict[str, Any], repeats: int) -> dict[str, Any]:
    """All timings of one model."""
    rng = np.random.default_rng(0)
    known = np.unique(data.user)
    users = rng.choice(known, size=repeats + 3).tolist()
    items = rng.choice(np.unique(data.item), size=(repeats + 3, RATED)).tolist()
    draws, rank = size["draws"], size["rank"]
    n_items = len(np.unique(data.item))
    V = rng.standard_normal((n_items, draws * rank)).astype(np.float32)
    Q = rng.standard_normal((MANY, draws * rank)).astype(np.float32)
    A = np.eye(rank) + np.einsum("sik,sil->skl", *[rng.standard_normal((draws, RATED, rank))] * 2)
    b = rng.standard_normal((draws, rank, 1))

    def bare_list(k: int) -> Any:
        scores = V @ Q[k % MANY]
        best = np.argpartition(-scores, N)[:N]
        return best[np.argsort(-scores[best])]

    def bare_solves(_: int) -> Any:
        return [np.linalg.solve(A[s], b[s]) for s in range(draws)]

    def bare_everyone(_: int) -> Any:
        for first in range(0, MANY, 500):
            scores = Q[first : first + 500] @ V.T
            np.argpartition(-scores, N, axis=1)

    def new_ratings(k: int) -> dict[str, Any]:
        return {"user_id": [f"new {k}" if isinstance(users[0], str) else -1 - k] * RATED, "item_id": items[k],
                "rating": [5.0, 4.0, 3.0, 2.0, 1.0]}  # fmt: skip

    found = {
        "pair": quantiles(lambda k: rec.predict({"user_id": [users[k]], "item_id": [items[k][0]]}), repeats),
        "pair_with_std": quantiles(
            lambda k: rec.predict({"user_id": [users[k]], "item_id": [items[k][0]]}, return_std=True), repeats
        ),
        "list": quantiles(lambda k: rec.recommend(users[k], n=N), repeats // 4),
        "bare_list": quantiles(bare_list, repeats // 4),
        "explain": quantiles(lambda k: rec.explain(users[k], items[k][0]), repeats // 4),
        "fold_in": quantiles(lambda k: rec.fold_in(new_ratings(k)), repeats // 4),
        "bare_solves": quantiles(bare_solves, repeats // 4),
    }
    many = known[:MANY].tolist()
    start = time.perf_counter()
    rec.recommend(many, n=N)
    found["everyone"] = {"users": len(many), "seconds": time.perf_counter() - start}
    start = time.perf_counter()
    bare_everyone(0)
    found["bare_everyone"] = {"users": MANY, "seconds": time.perf_counter() - start}
    found["ratios"] = {
        "list": found["list"]["p50"] / found["bare_list"]["p50"],
        "fold_in": found["fold_in"]["p50"] / found["bare_solves"]["p50"],
        "everyone": found["everyone"]["seconds"] / len(many) / (found["bare_everyone"]["seconds"] / MANY),
    }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small models, in seconds")
    parser.add_argument("--users", type=int, nargs="*", help="numbers of users instead of the usual ones")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    size = QUICK if options.quick else FULL
    report: dict[str, Any] = {"command": "python benchmarks/latency.py", "machine": facts(), "size": size, "users": {}}
    for users in options.users or size["users"]:
        with tempfile.TemporaryDirectory() as place:
            rec, data = fitted(size, users, Path(place) / "data")
        report["users"][str(users)] = answers(rec, data, size, 40 if options.quick else REPEATS)
        print(users, json.dumps(report["users"][str(users)], indent=1), file=sys.stderr)
    put(report, options.output)


if __name__ == "__main__":
    main()
