"""Many dimensions: Tucker models with sparse cores beside gradient boosting and a GP with a lengthscale a column.

    python -m tuckergp.paper.columns -o columns.json

A mode a column, so that a full core would have r^D entries. Made data: Friedman's function of five columns among
twelve, 1,500 rows to learn from and 5,000 to score. Real data: diabetes, 442 patients, ten columns, in five parts each
of which is scored once. What a model leaves to choose is chosen on a fifth of the rows that it learns from.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from threadpoolctl import threadpool_limits

from tuckergp import Mode, TuckerGPRegressor
from tuckergp.errors import InputError, NotConvergedWarning
from tuckergp.evaluation.metrics import rmse
from tuckergp.features import Nystrom
from tuckergp.gp import ExactGP
from tuckergp.inference import Gibbs
from tuckergp.kernels import SE
from tuckergp.model.cores import Learned
from tuckergp.paper.cells import Cells, Figures, fill
from tuckergp.paper.cells import store_of as cells_store
from tuckergp.random import stream

__all__ = ["MODELS", "app", "cells", "store_of"]

Floats = npt.NDArray[np.float64]
Model = Any
"""Has fit(X, y) and predict(X)."""

PROTOCOL = (
    "settings chosen on a fifth of the rows to learn from, then learned from all of them; test rows scored once; one "
    "seed; columns and targets in their own units, RMSE also as a share of the sd of the targets"
)
SEED, FOLDS, HELD_OUT = 0, 5, 5
TRAIN, TEST, COLUMNS, NOISE = 1_500, 5_000, 12, 1.0
FEATURES = 16
"""Of a column: enough for smooth kernels of one number."""
LENGTHS = {"draws": 200, "warmup": 100}
QUICK_LENGTHS = {"draws": 5, "warmup": 5}
# Names the streams that part rows.
FOLD_KEY, HELD_KEY = 4_000_001, 4_000_002

Part = tuple[Floats, Floats]


def tucker(core: Any, lengths: dict[str, int], n_columns: int, rank: int, lengthscale: float) -> Model:
    """A squared exponential mode a column; the core decides which of them meet."""
    modes = [Mode(f"x{d}", SE(lengthscale), Nystrom(FEATURES), whiten=True) for d in range(n_columns)]
    inference = Gibbs(**lengths)  # type: ignore[arg-type]
    return TuckerGPRegressor(modes, rank=rank, core=core, inference=inference, random_state=SEED)


def gp(n_columns: int, max_iter: int) -> Model:
    """A product of squared exponentials, a lengthscale a column by type-II maximum likelihood."""
    return ExactGP(
        [Mode(f"x{d}", SE(3.0), whiten=True) for d in range(n_columns)], max_iter=max_iter, random_state=SEED
    )


def boosting(rate: float, leaves: int) -> Model:
    """Gradient boosting of trees, stopped on rows of its own."""
    return HistGradientBoostingRegressor(
        learning_rate=rate, max_leaf_nodes=leaves, max_iter=1_000, early_stopping=True, random_state=SEED
    )


def candidates(name: str, n_columns: int, quick: bool) -> dict[str, Callable[[], Model]]:
    """The settings of a model among which to choose, by their names."""
    if name == "ridge":
        return {"": lambda: RidgeCV(np.logspace(-3, 3, 13))}
    if name == "ARD GP":
        return {"": partial(gp, n_columns, 3 if quick else 60)}
    if name == "gradient boosting":
        grid = {"0.03": 0.03, "0.1": 0.1}
        return {f"rate {k}, {n} leaves": partial(boosting, rate, n) for k, rate in grid.items() for n in (4, 16)}
    core = {"pairwise core": "pairwise", "learned pairs": Learned("pairwise"), "CP core": "superdiagonal"}[name]
    lengths = QUICK_LENGTHS if quick else LENGTHS
    ranks, scales = ((3,), (2.0,)) if quick else ((2, 4), (1.0, 2.0, 4.0))
    return {
        f"rank {rank}, lengthscale {scale:g}": partial(tucker, core, lengths, n_columns, rank, scale)
        for rank in ranks
        for scale in scales
    }


MODELS = ("pairwise core", "learned pairs", "CP core", "ARD GP", "gradient boosting", "ridge")


def table(model: Model, X: Floats) -> Any:
    """Inputs as the model wants them: columns by name for ours, an array for scikit-learn's."""
    return {f"x{d}": X[:, d] for d in range(X.shape[1])} if hasattr(model, "modes") else X


def learn(make: Callable[[], Model], train: Part) -> Model:
    """Fit it."""
    model = make()
    # threads of boosting that wait for each other on a busy machine take a hundred times as long
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", NotConvergedWarning)
        model.fit(table(model, train[0]), train[1])
    return model


def error(model: Model, part: Part) -> float:
    """RMSE."""
    return rmse(part[1], np.asarray(model.predict(table(model, part[0]))))


def choose(settings: Mapping[str, Callable[[], Model]], train: Part) -> str:
    """The settings with the least error on a fifth of the rows."""
    if len(settings) == 1:
        return next(iter(settings))
    order = stream(SEED, HELD_KEY).permutation(len(train[1]))
    cut = len(order) // HELD_OUT
    learned, held = (tuple(array[rows] for array in train) for rows in (order[cut:], order[:cut]))
    errors = {name: error(learn(make, learned), held) for name, make in settings.items()}  # type: ignore[arg-type]
    return min(errors, key=errors.__getitem__)


def parts(data: str, quick: bool) -> Iterator[tuple[Part, Part]]:
    """Rows to learn from, rows to score; one pair, or one a part."""
    if data == "made":
        n = 200 if quick else TRAIN
        X, y = make_friedman1(n + TEST, n_features=COLUMNS, noise=NOISE, random_state=SEED)
        yield (X[:n], y[:n]), (X[n:], y[n:])
        return
    X, y = load_diabetes(return_X_y=True, scaled=False)
    which = stream(SEED, FOLD_KEY).permutation(len(y)) % FOLDS
    for fold in range(1 if quick else FOLDS):
        yield (X[which != fold], y[which != fold]), (X[which == fold], y[which == fold])


def compare(data: str, name: str, quick: bool) -> Figures:
    """Mean squares over all rows that were scored."""
    chosen, squares, truths = [], [], []
    for train, test in parts(data, quick):
        settings = candidates(name, train[0].shape[1], quick)
        chosen.append(choose(settings, train))
        squares.append(error(learn(settings[chosen[-1]], train), test) ** 2 * len(test[1]))
        truths.append(test[1])
    truth = np.concatenate(truths)
    found = float(np.sqrt(np.sum(squares) / len(truth)))
    return {"seed": SEED, "settings": chosen, "rmse": round(found, 4), "share": round(found / float(truth.std()), 4)}


def cells(quick: bool = False) -> Cells:
    """One for every model on either data."""
    return {f"{data}/{name}": partial(compare, data, name, quick) for data in ("made", "diabetes") for name in MODELS}


store_of = partial(cells_store, "columns", "", PROTOCOL)
"""Where the cells are kept: takes a path, or None, and whether the run is quick."""

app = typer.Typer(add_completion=False)


@app.command()
def main(
    quick: Annotated[bool, typer.Option("--quick", help="Few rows and draws: see that it runs.")] = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Results; a finished cell is kept.")] = None,
) -> None:
    """Sparse cores beside gradient boosting and a GP on many columns."""
    try:
        fill(store_of(output, quick), cells(quick), lambda line: typer.echo(line, err=True))
    except InputError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None


if __name__ == "__main__":
    sys.exit(app())
