"""`TuckerGPRegressor()` as it is, beside scikit-learn's regressors as people use them, on sets of 300 to 20,000 rows.

Peers: a Gaussian process with a Matern-5/2 with a lengthscale for each standardised column, a variance and noise, whose
numbers are learned on at most 1,000 rows, and which is given at most 3,000; gradient boosting, a random forest and
ridge regression (by cross-validation), with their defaults::

    python benchmarks/defaults.py -o benchmarks/results/defaults.json

Every cell is written as soon as it is done; those that the file has are not run again.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from default_sets import SETS, Rows, Set
from gibbs import facts
from reports import Resumed

SEED = 0
LEARNED, GIVEN = 1_000, 3_000
"""Rows on which the numbers of the Gaussian process are learned, and rows that it is given."""
COVERED = (0.5, 0.9, 0.95)


class Answer(NamedTuple):
    """Predicted means, and where there are such, log densities of the targets and intervals, (n, 3, 2)."""

    mean: np.ndarray
    density: np.ndarray | None = None
    intervals: np.ndarray | None = None


def ours(data: Set, seed: int) -> tuple[Callable[[Rows], Answer], dict[str, Any]]:
    from tuckergp import TuckerGPRegressor

    model = TuckerGPRegressor(random_state=seed).fit(*data.train)
    chosen = {} if model.choice_ is None else {"chosen": model.choice_.modes, "scores": model.choice_.scores}

    def answer(rows: Rows) -> Answer:
        levels = sorted({0.5 + side * level / 2 for level in COVERED for side in (-1, 1)})
        mean, quantiles = model.predict(rows.X, quantiles=levels)
        ends = [quantiles[:, [levels.index(0.5 - level / 2), levels.index(0.5 + level / 2)]] for level in COVERED]
        return Answer(mean, model.log_predictive_density(rows.X, rows.y), np.stack(ends, axis=1))

    return answer, chosen


def gaussian_process(data: Set, seed: int) -> tuple[Callable[[Rows], Answer], dict[str, Any]]:
    from scipy.stats import norm
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
    from sklearn.preprocessing import StandardScaler

    X, y = data.train
    some = np.random.default_rng(seed).permutation(len(y))[:GIVEN]
    scaler = StandardScaler().fit(X)
    X, y = scaler.transform(X[some]), y[some]
    kernel = ConstantKernel() * Matern(np.ones(X.shape[1]), (1e-2, 1e3), nu=2.5) + WhiteKernel(0.1, (1e-6, 1e1))
    learned = GaussianProcessRegressor(kernel, normalize_y=True).fit(X[:LEARNED], y[:LEARNED]).kernel_
    model = GaussianProcessRegressor(learned, optimizer=None, normalize_y=True).fit(X, y)

    def answer(rows: Rows) -> Answer:
        mean, std = model.predict(scaler.transform(rows.X), return_std=True)
        ends = [np.stack(norm.interval(level, mean, std), axis=1) for level in COVERED]
        return Answer(mean, norm.logpdf(rows.y, mean, std), np.stack(ends, axis=1))

    return answer, {}


def plain(make: Callable[[int], Any]) -> Callable[[Set, int], tuple[Callable[[Rows], Answer], dict[str, Any]]]:
    """A regressor of scikit-learn that predicts means alone."""

    def fit(data: Set, seed: int) -> tuple[Callable[[Rows], Answer], dict[str, Any]]:
        model = make(seed).fit(*data.train)
        return lambda rows: Answer(model.predict(rows.X)), {}

    return fit


def boosting(seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(random_state=seed)


def forest(seed: int) -> Any:
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(random_state=seed)


def ridge(seed: int) -> Any:
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 13)))


MODELS = {
    "gp": gaussian_process,
    "boosting": plain(boosting),
    "forest": plain(forest),
    "ridge": plain(ridge),
    "ours": ours,
}


def score(data: Set, name: str, seed: int) -> dict[str, Any]:
    """Fit a model and score it on all parts."""
    began = time.process_time()
    answer, found = MODELS[name](data, seed)
    fitted = time.process_time()
    parts = {part: figures(answer(rows), rows.y) for part, rows in data.parts.items()}
    seconds = {"fit": round(fitted - began, 2), "predict": round(time.process_time() - fitted, 2)}
    return {**found, "cpu_seconds": seconds, "parts": parts}


def figures(answer: Answer, y: np.ndarray) -> dict[str, Any]:
    """RMSE, mean log density, coverage of intervals."""
    found: dict[str, Any] = {"rows": len(y), "rmse": float(np.sqrt(np.mean((answer.mean - y) ** 2)))}
    if answer.density is not None and answer.intervals is not None:
        found["density"] = float(answer.density.mean())
        inside = (answer.intervals[..., 0] <= y[:, None]) & (y[:, None] <= answer.intervals[..., 1])
        found["coverage"] = [float(share) for share in inside.mean(axis=0)]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    head = {
        "command": "python benchmarks/defaults.py",
        "seed": options.seed,
        "machine": facts(),
        "scikit-learn": version("scikit-learn"),
    }
    report = Resumed(head, "cells", options.output)
    for name in options.sets:
        number = list(SETS).index(name)
        try:
            data = SETS[name](np.random.default_rng([options.seed, number]))
        except (KeyError, OSError, ImportError) as error:  # data that are not here
            print(name, "is left out:", error, flush=True)
            continue
        report.cells.setdefault(name, {"size": list(data.train.X.shape)})
        for model in options.models:
            found = report.cell((name, model), lambda data=data, model=model: score(data, model, options.seed))
            if found is not None:
                print(name, model, found, sep=" | ", flush=True)


if __name__ == "__main__":
    main()
