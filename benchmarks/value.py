"""How much longer a fit takes that also learns what people choose: lists by value against ratings alone.

Fits of the training part of a validation split of MovieLens 100K with attributes, the two kinds in turns::

    TUCKERGP_DATA=... python benchmarks/value.py -o benchmarks/results/value.json
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path
from statistics import median
from typing import Any

from gibbs import commit_of, facts
from reports import Resumed

SEEDS = (0, 1, 2)
OBJECTIVES = ("rating", "value")


def seconds() -> float:
    """CPU seconds of this process and of those that it waited for."""
    return sum(os.times()[:4])


def main() -> None:
    from tuckergp import TuckerRecommender
    from tuckergp.data.datasets import load_movielens_100k
    from tuckergp.paper.movielens_data import attribute_tables
    from tuckergp.paper.ranking import validation

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few draws of a small model")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    movielens = load_movielens_100k(download=False)
    train = validation(movielens, "user").train
    small: dict[str, Any] = {"rank": 2, "draws": 2, "warmup": 1}
    size = small if options.quick else {}

    def fit(objective: str, seed: int, size: dict[str, Any] = size) -> float:
        start = seconds()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = TuckerRecommender(objective=objective, time=None, random_state=seed, **size)
            model.fit(train, *attribute_tables(movielens))
        return seconds() - start

    for objective in OBJECTIVES:
        fit(objective, SEEDS[0], small)  # compiles
    head = {
        "command": "python benchmarks/value.py",
        "commit": commit_of(Path(__file__).parent),
        "machine": facts(),
        "ratings": len(train),
    }
    resumed = Resumed(head, "cpu_seconds", options.output)
    for seed in SEEDS:
        for objective in OBJECTIVES:
            resumed.cell((str(seed), objective), lambda objective=objective, seed=seed: fit(objective, seed))
    ratios = [found["value"] / found["rating"] for found in resumed.cells.values()]
    print("value / rating:", " ".join(f"{ratio:.2f}" for ratio in ratios), f"median {median(ratios):.2f}")


if __name__ == "__main__":
    main()
