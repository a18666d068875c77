"""Few ratings: a thinned MovieLens 100K, and whether longer chains predict worse because factors fit noise."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from tuckergp.data.tables import Table as Data
from tuckergp.evaluation.baselines import Biases
from tuckergp.evaluation.metrics import rmse
from tuckergp.paper.experiment import Cells, Experiment, Figures, Rows, Table, Work
from tuckergp.paper.movielens_gibbs import PROTOCOL, score
from tuckergp.paper.run import Run
from tuckergp.random import stream

__all__ = ["MOVIELENS_SCARCE"]

# Key of the random stream that thins the ratings.
THINNED_KEY = 1_000_002


def cells(run: Run) -> Work:
    """Test RMSE, cells ``5%/u1/200 sweeps`` and ``5%/u1/biases``."""
    at, movielens = run.settings, run.load("ml-100k")
    work: dict[str, Callable[[], Figures]] = {}
    for number in at["splits"]:
        base, held = movielens.split(number)
        for share in at["shares"]:
            kept = np.sort(stream(0, THINNED_KEY, number).permutation(len(base))[: round(share * len(base))])
            train, name = base.take(kept), f"{share:.0%}/u{number}"
            for sweeps in at["sweeps"]:
                length = {"draws": sweeps - sweeps // 10, "warmup": sweeps // 10}
                work[f"{name}/{sweeps} sweeps"] = partial(score, movielens, "ratings", train, held, at["seed"], length)
            work[f"{name}/biases"] = partial(score_biases, train, held)
    return work


def score_biases(train: Data, held: Data) -> Figures:
    """Score the baseline of biases of users and items, with variances learned from the data."""
    return {"rmse": round(rmse(held.numeric("rating"), Biases(damping="auto").fit(train).predict(held)), 5)}


def scarce_table(cells: Cells) -> Rows:
    """Test RMSE of short and long chains and of biases alone on thinned training parts, mean over the splits."""
    names = [name.split("/") for name in cells]
    models, shares = (list(dict.fromkeys(name[k] for name in names)) for k in (2, 0))
    rows = [["training ratings kept", *models]]
    for share in shares:
        errors = {
            m: [c["rmse"] for (s, _, k), c in zip(names, cells.values(), strict=True) if (s, k) == (share, m)]
            for m in models
        }
        rows.append([share, *(f"{np.mean(values):.4f}" if values else "" for values in errors.values())])
    return rows


MOVIELENS_SCARCE = Experiment(
    name="movielens_scarce",
    title="Few ratings",
    group="movielens",
    protocol=PROTOCOL,
    data=("ml-100k",),
    settings={"seed": 0, "splits": (1, 2, 3, 4, 5), "shares": (0.05, 0.2), "sweeps": (200, 2_000)},
    quick={"splits": (1,), "shares": (0.05,), "sweeps": (20,)},
    cells=cells,
    blocks=(Table("movielens_scarce", "Training parts thinned at random: test RMSE, mean over splits", scarce_table),),
)
