"""Many dimensions: Tucker models with sparse cores and a GP with one lengthscale per column.

There is one mode per column, so that a full core would have r^D entries. Synthetic data: Friedman's function of five
columns among twelve, 1,500 training and 5,000 test rows. Real data: diabetes, 442 patients, ten columns, by five-fold
cross-validation. Settings are chosen on a fifth of the training rows. `benchmarks/peers.py` adds gradient boosting and
ridge regression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_diabetes, make_friedman1

from tuckergp import Mode, TuckerGPRegressor
from tuckergp.evaluation.metrics import rmse
from tuckergp.features import Nystrom
from tuckergp.gp import ExactGP
from tuckergp.inference import Gibbs
from tuckergp.kernels import SE
from tuckergp.model.cores import Learned
from tuckergp.paper.experiment import Cells, Experiment, Figures, Rows, Table, Text, Work
from tuckergp.paper.run import Run, quietly
from tuckergp.random import stream

__all__ = ["COLUMNS", "DATA", "compare"]

Floats = npt.NDArray[np.float64]
Part = tuple[Floats, Floats]
Candidates: TypeAlias = Callable[[int], Mapping[str, Callable[[], Any]]]
"""From a number of columns to models to choose among, by the names of their settings; they have fit and predict."""

DATA = {"made": "synthetic, 12 columns", "diabetes": "diabetes, 10 columns"}
CORES: dict[str, Any] = {"pairwise core": "pairwise", "learned pairs": Learned("pairwise"), "CP core": "superdiagonal"}
PEERS = ("gradient boosting", "ridge")
SEED, FOLDS, HELD_OUT = 0, 5, 5
TEST, N_COLUMNS, NOISE = 5_000, 12, 1.0
FEATURES = 16
"""The number of features per column: enough for smooth kernels of one number."""
# Key of the random streams that split rows.
FOLD_KEY, HELD_KEY = 4_000_001, 4_000_002


def tucker(core: Any, lengths: dict[str, Any], n_columns: int, rank: int, lengthscale: float) -> Any:
    """A model with one squared exponential mode per column; the core decides which of them interact."""
    modes = [Mode(f"x{d}", SE(lengthscale), Nystrom(FEATURES), whiten=True) for d in range(n_columns)]
    return TuckerGPRegressor(modes, rank=rank, core=core, inference=Gibbs(**lengths), random_state=SEED)


def tucker_models(core: Any, at: dict[str, Any], n_columns: int) -> dict[str, Callable[[], Any]]:
    """The Tucker models to choose among, with several ranks and lengthscales."""
    return {
        f"rank {rank}, lengthscale {scale:g}": partial(tucker, core, at["lengths"], n_columns, rank, scale)
        for rank in at["ranks"]
        for scale in at["lengthscales"]
    }


def gp_model(max_iter: int, n_columns: int) -> dict[str, Callable[[], Any]]:
    """A GP with a product of squared exponentials, one lengthscale per column by type-II maximum likelihood."""
    modes = [Mode(f"x{d}", SE(3.0), whiten=True) for d in range(n_columns)]
    return {"": lambda: ExactGP(modes, max_iter=max_iter, random_state=SEED)}


def inputs(model: Any, X: Floats) -> Any:
    """The inputs in the form that the model takes: columns by name for ours, an array for scikit-learn's."""
    return {f"x{d}": X[:, d] for d in range(X.shape[1])} if hasattr(model, "modes") else X


def error(make: Callable[[], Any], train: Part, held: Part) -> float:
    """RMSE of a model on held-out rows."""
    model = make()
    quietly(model.fit, inputs(model, train[0]), train[1])
    return rmse(held[1], np.asarray(model.predict(inputs(model, held[0]))))


def choose(settings: Mapping[str, Callable[[], Any]], train: Part) -> str:
    """The settings with the smallest error on a held-out fifth of the rows."""
    if len(settings) == 1:
        return next(iter(settings))
    order = stream(SEED, HELD_KEY).permutation(len(train[1]))
    cut = len(order) // HELD_OUT
    learned, held = ((train[0][rows], train[1][rows]) for rows in (order[cut:], order[:cut]))
    errors = {name: error(make, learned, held) for name, make in settings.items()}
    return min(errors, key=errors.__getitem__)


def parts(data: str, at: dict[str, Any]) -> Iterator[tuple[Part, Part]]:
    """Pairs of training and test rows: one for synthetic data, one per fold for real data."""
    if data == "made":
        n = at["rows"]
        X, y = make_friedman1(n + TEST, n_features=N_COLUMNS, noise=NOISE, random_state=SEED)
        yield (X[:n], y[:n]), (X[n:], y[n:])
        return
    X, y = load_diabetes(return_X_y=True, scaled=False)
    which = stream(SEED, FOLD_KEY).permutation(len(y)) % FOLDS
    for fold in range(at["folds"]):
        yield (X[which != fold], y[which != fold]), (X[which == fold], y[which == fold])


def compare(data: str, candidates: Candidates, at: dict[str, Any]) -> Figures:
    """Choose settings and learn on each part; RMSE over all test rows."""
    chosen, squares, truths = [], [], []
    for train, test in parts(data, at):
        settings = candidates(train[0].shape[1])
        chosen.append(choose(settings, train))
        squares.append(error(settings[chosen[-1]], train, test) ** 2 * len(test[1]))
        truths.append(test[1])
    truth = np.concatenate(truths)
    rmse = float(np.sqrt(np.sum(squares) / len(truth)))
    return {"seed": SEED, "settings": chosen, "rmse": round(rmse, 4), "share": round(rmse / float(truth.std()), 4)}


def cells(run: Run) -> Work:
    """One cell per model and data set."""
    at = run.settings
    models: dict[str, Candidates] = {name: partial(tucker_models, core, at) for name, core in CORES.items()}
    models["ARD GP"] = partial(gp_model, at["max_iter"])
    return {f"{data}/{name}": partial(compare, data, make, at) for data in DATA for name, make in models.items()}


def columns_table(cells: Cells) -> Rows:
    """RMSE relative to the sd of the targets, and CPU seconds including the choice, on both data sets."""
    rows = [["model", *DATA.values()]]
    for name in (*CORES, "ARD GP", *PEERS):
        figures = [cells.get(f"{data}/{name}") for data in DATA]
        if any(figures):
            rows.append([name, *(f"{c['share']:.3f} ({c['cpu_seconds']:.0f} s)" if c else "" for c in figures)])
    return rows


COLUMNS = Experiment(
    name="columns",
    title="Many dimensions",
    group="future",
    protocol=(
        "settings chosen on a fifth of the rows to learn from, then learned from all of them; test rows scored once; "
        "one seed; columns and targets in their own units, RMSE also as a share of the sd of the targets"
    ),
    settings={
        "seed": SEED, "rows": 1_500, "folds": FOLDS, "ranks": (2, 4), "lengthscales": (1.0, 2.0, 4.0),
        "lengths": {"draws": 200, "warmup": 100}, "max_iter": 60,
    },
    quick={
        "rows": 120, "folds": 1, "ranks": (3,), "lengthscales": (2.0,), "lengths": {"draws": 5, "warmup": 5},
        "max_iter": 2,
    },
    cells=cells,
    blocks=(
        Text(
            "Many dimensions: a mode for each column, so that a full core would have r^D entries, and sparse cores "
            "instead. RMSE as a share of the sd of the targets; CPU seconds include choosing settings."
        ),
        Table("columns", "Sparse cores beside a GP and gradient boosting", columns_table),
    ),
)  # fmt: skip
