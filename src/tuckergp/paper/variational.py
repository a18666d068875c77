"""Mean-field variational inference beside Gibbs sampling: the same models, ratings, house prices and wind.

    python -m tuckergp.paper.variational -o variational.json

The paper tried mean-field and found it poor compared to HMC, without figures. Here both see the same model, with the
same priors of all hyperparameters, on MovieLens 100K (split u1), California and Irish wind. Nothing is tuned: ranks are
those of the other experiments, settings the defaults. Test parts are scored once a cell.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import typer

from tuckergp import Mode, TuckerRecommender
from tuckergp.data.datasets import load_california, load_movielens_100k, load_wind
from tuckergp.data.tables import Table
from tuckergp.errors import InputError, NotConvergedWarning
from tuckergp.evaluation.metrics import rmse
from tuckergp.evaluation.metrics.distributions import interval_coverage, normal_nll
from tuckergp.features import Fourier
from tuckergp.inference import VI, Gibbs
from tuckergp.kernels import Identity, Periodic
from tuckergp.paper import california, wind
from tuckergp.paper.cells import Data, Figures, Only, Output, Quick, Split, fill, named, tucker
from tuckergp.paper.cells import store_of as cells_store
from tuckergp.paper.movielens_data import Entities, entities_of

__all__ = ["DATA", "METHODS", "app", "cells", "store_of"]

Floats = npt.NDArray[np.float64]

PROTOCOL = (
    "MovieLens 100K u1, rank 15, identity core, the paper's side information; California, 100 Fourier features a mode, "
    "rank 5, full core; wind, stations by days with a yearly season, rank 5, full core; nothing tuned, test parts "
    "scored once a cell"
)
SEEDS = (0, 1)
RANKS = {"movielens": 15, "california": 5, "wind": 5}
DATA = {"movielens": "MovieLens 100K, u1", "california": "California", "wind": "Irish wind"}
"""What stands in the table."""

METHODS: dict[str, tuple[str, Any]] = {
    "vi": ("VI", VI()),
    "vi factorised": ("VI, all entries independent", VI(factorised=True)),
    "gibbs": ("Gibbs sampling", Gibbs(draws=300, warmup=100)),
    "als": ("the most probable point (ALS)", "als"),
}
"""By name: what stands in the table, and the inference."""

QUICK_METHODS: dict[str, Any] = {"vi": VI(iterations=5, draws=8), "gibbs": Gibbs(draws=8, warmup=4), "als": "als"}
QUICK_EVERY, QUICK_RANK, QUICK_FEATURES = 20, 2, 10


def cells(data: Path | None, quick: bool) -> dict[str, Callable[[], Figures]]:
    """All that the table is made of; data are read when a cell needs them."""
    methods = QUICK_METHODS if quick else {name: inference for name, (_, inference) in METHODS.items()}
    compute: dict[str, Callable[..., Figures]] = {"movielens": ratings, "california": prices, "wind": winds}
    return {
        f"{where}/{name}/seed {seed}": partial(run, inference, seed, data, quick)
        for seed in (SEEDS[:1] if quick else SEEDS)
        for where, run in compute.items()
        for name, inference in methods.items()
        if where == "movielens" or name != "als"  # its noise and prior scales would have to be tuned
    }


def ratings(inference: Any, seed: int, data: Path | None, quick: bool) -> Figures:
    """MovieLens 100K with age, gender, occupation and genres, a shared noise."""
    movielens = load_movielens_100k(data)
    train, held = movielens.split(1)
    entities: Entities = entities_of(movielens)
    if quick:
        train = train.take(np.arange(0, len(train), QUICK_EVERY))
    rank = QUICK_RANK if quick else RANKS["movielens"]
    model = TuckerRecommender(rank, inference, implicit=False, time=None, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        fit = partial(model.fit, train, entities.users, entities.items)
        return figures(fit, held, held.numeric("rating"))


def prices(inference: Any, seed: int, data: Path | None, quick: bool) -> Figures:
    """California with Fourier features of the authors' kernels."""
    split = california.split_of(load_california(data), quick)
    features = Fourier(QUICK_FEATURES if quick else 100, pairs=False)
    return _regression(california.modes_of(california.GIVEN, features), "california", inference, seed, split, quick)


def winds(inference: Any, seed: int, data: Path | None, quick: bool) -> Figures:
    """Stations and days, each with a row of its own; days have a season too."""
    modes = [Mode("station", Identity()), Mode("day", Periodic(wind.YEAR) + Identity())]
    return _regression(modes, "wind", inference, seed, wind.split_of(load_wind(data), quick), quick)


def _regression(modes: list[Mode], where: str, inference: Any, seed: int, split: Split, quick: bool) -> Figures:
    rank = QUICK_RANK if quick else RANKS[where]
    return figures(partial(tucker, modes, rank, inference, seed, split, core="full"), split.test.X, split.test.y)


def figures(fit: Callable[[], Any], X: Table | dict[str, Any], y: Floats) -> Figures:
    """Learn a model and score it.

    Test RMSE, coverage of 90 % intervals, mean log predictive density of a normal, root mean square of the posterior sd
    of f, sweeps, and CPU seconds of learning.
    """
    began = time.process_time()
    model = fit()
    found: Figures = {"sweeps": len(model.fit_.history), "fit_cpu_seconds": round(time.process_time() - began, 1)}
    fitted = model.fit_
    if not fitted.draws.sampled:
        return {"test_rmse": round(rmse(y, model.predict(X)), 5), **found}
    mean, std = model.predict(X, return_std=True)
    _, band = model.predict(X, interval=0.9)
    noise = fitted.scale**2 * np.mean([1 / draw.alpha for draw in fitted.draws])
    last = fitted.history[-1].figures
    return {
        "test_rmse": round(rmse(y, mean), 5),
        "coverage": round(float(interval_coverage(y, band[:, 0], band[:, 1]).mean()), 4),
        "log_density": round(-float(normal_nll(y, mean, std).mean()), 5),
        "std_f": round(float(np.sqrt(np.mean(std**2) - noise)), 5),
        **found,
        **({"elbo": round(last["elbo"], 1)} if "elbo" in last else {}),
    }


store_of = partial(cells_store, "variational", "", PROTOCOL)
"""Where the cells are kept: takes a path, or None, and whether the run is quick."""

app = typer.Typer(add_completion=False, help=__doc__)


@app.command()
def evaluate(data: Data = None, output: Output = None, only: Only = "", quick: Quick = False) -> None:
    """Learn from the training parts and score the test parts."""
    try:
        store = store_of(output, quick)
        fill(store, named(cells(data, quick), only), lambda line: typer.echo(line, err=True))
    except InputError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None


if __name__ == "__main__":
    sys.exit(app())
