"""The recommender's named MAP methods with nothing tuned: `"als"` and `"sgd"`, W = I and W learned, on MovieLens 100K.

Beside them are the same algorithms with a fixed prior scale, half of the one that matches moments, and for SGD with
early stopping on a tenth of the ratings that it then does not learn from.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from tuckergp.data.datasets import MovieLens
from tuckergp.evaluation.metrics import rmse
from tuckergp.inference import ALS, SGD
from tuckergp.model.cores import CoreSpec
from tuckergp.model.tucker import make_core
from tuckergp.paper.experiment import Cells, Experiment, Figures, Rows, Table, Text, Work
from tuckergp.paper.run import Run
from tuckergp.paper.tables import mean_and_sd, median, starting, words
from tuckergp.recommender import TuckerRecommender

__all__ = ["MOVIELENS_DEFAULTS"]

CORES: dict[CoreSpec, str] = {"identity": "W = I", "full": "learn W"}
NAMED, FIXED = "by trials", "fixed scale"
METHODS = {"als": ALS, "sgd": SGD}


def score(movielens: MovieLens, split: int, inference: Any, core: CoreSpec, rank: int, seed: int) -> Figures:
    """Fit to a training part with all attributes, and score the test part once."""
    train, test = movielens.split(split)
    model = TuckerRecommender(rank, inference=inference, core=core, objective="rating", random_state=seed)
    used = time.process_time()
    model.fit(train, movielens.users, movielens.items)
    return {
        "fit_cpu_seconds": round(time.process_time() - used, 1),
        "sigma_u": round(float(model.fit_.draws.model.sigma_u[0]), 4),
        "rmse": round(rmse(test["rating"], model.predict(test)), 5),
    }


def cells(run: Run) -> Work:
    """Cells ``als/full/by trials/u1/seed 0``."""
    at, movielens = run.settings, run.load("ml-100k")
    work: dict[str, Callable[[], Figures]] = {}
    for seed in at["seeds"]:
        for split in at["splits"]:
            for core in at["cores"]:
                sigma_u = 0.5 * float(make_core(core, [at["rank"]] * 2).default_sigma_u()[0])
                for name in at["methods"]:
                    for how, inference in ((NAMED, name), (FIXED, METHODS[name](noise=1.0, sigma_u=sigma_u))):
                        work[f"{name}/{core}/{how}/u{split}/seed {seed}"] = partial(
                            score, movielens, split, inference, core, at["rank"], seed
                        )
    return work


def defaults_table(cells: Cells) -> Rows:
    """Means over seeds by split, and over all."""
    splits = sorted({name.split("/")[3] for name in cells})
    rows = [["`inference=`", "core", "prior scale", *splits, "mean", "CPU seconds of a fit"]]
    for name in METHODS:
        for core, title in CORES.items():
            for how in (FIXED, NAMED):
                start = f"{name}/{core}/{how}/"
                found = [starting(cells, f"{start}{split}/") for split in splits]
                if all(found) and found:
                    means = [mean_and_sd([cell["rmse"] for cell in each])[0] for each in found]
                    seconds = median(starting(cells, start), "fit_cpu_seconds")
                    shown = [words(value, None) for value in (*means, mean_and_sd(means)[0])]
                    rows.append([f'`"{name}"`', title, how, *shown, seconds])
    return rows


MOVIELENS_DEFAULTS = Experiment(
    name="movielens_defaults",
    title="MAP estimates with nothing tuned",
    group="movielens",
    protocol="fit to the training part with the tables of users and films, score the test part once",
    data=("ml-100k",),
    settings={"seeds": (0, 1), "splits": (1, 2, 3), "rank": 16, "cores": tuple(CORES), "methods": tuple(METHODS)},
    quick={"seeds": (0,), "splits": (1,), "rank": 2, "cores": ("identity",), "methods": ("als",)},
    cells=cells,
    blocks=(
        Text(
            "The recommender's named MAP methods find the scale of their prior by trials on held-out training ratings, "
            "then learn from all of them. Test RMSE, with all attributes of users and films; means over seeds."
        ),
        Table("movielens_defaults", "MAP by name, beside a fixed prior scale", defaults_table),
    ),
)
