"""How many draws are enough: error and coverage of MovieLens 100K with 25 to 250 of the draws of one fit.

The draws kept are evenly spread, as ``fit(keep=...)`` keeps them::

    TUCKERGP_DATA=... python benchmarks/keep.py -o benchmarks/results/keep.json
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from gibbs import facts
from reports import put

KEPT = (25, 50, 100, 250)
SEEDS = (0, 1, 2)
SHARE = 0.9


def scores(rec: Any, test: Any) -> dict[str, float]:
    """Root mean square error, coverage of 90 % intervals, and the time that they take."""
    start = time.process_time()
    mean, interval = rec.predict(test, interval=SHARE)
    spent = time.process_time() - start
    y = test.numeric("rating")
    inside = (interval[:, 0] <= y) & (y <= interval[:, 1])
    _, std = rec.predict(test, return_std=True)
    return {
        "rmse": float(np.sqrt(np.mean((mean - y) ** 2))),
        "coverage": float(inside.mean()),
        "mean_std": float(std.mean()),
        "cpu_seconds": spent,
        "megabytes": rec.fit_.draws.size / 1e6,
    }


def main() -> None:
    from tuckergp import TuckerRecommender
    from tuckergp.data.datasets import load_movielens_100k

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few draws of a small model")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    movielens = load_movielens_100k()
    train, test = movielens.split(1)
    size = {"rank": 4, "draws": 25, "warmup": 5} if options.quick else {"rank": 16, "draws": max(KEPT), "warmup": 50}
    report: dict[str, Any] = {
        "command": "python benchmarks/keep.py",
        "machine": facts(),
        "size": size,
        "seeds": list(SEEDS),
        "split": "u1",
        "kept": {},
    }
    for seed in SEEDS[:1] if options.quick else SEEDS:
        rec = TuckerRecommender(**size, time=None, objective="rating", random_state=seed)
        rec.fit(train, movielens.users, movielens.items, progress=False)
        all_draws = rec.fit_.draws
        for count in KEPT:
            rec.fit_ = replace(rec.fit_, draws=all_draws.thinned(count))
            report["kept"].setdefault(str(count), {})[str(seed)] = scores(rec, test)
    put(report, options.output)


if __name__ == "__main__":
    main()
