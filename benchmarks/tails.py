"""Noise of other kinds than Gaussian on held-out training rows: Student's t, and noise by rows.

The sets are those of `defaults.py`, each with the model that a trial chose there; 20,000 wind speeds whose stations are
rows; and log prices by a field. No test row is used: a quarter of 1,600 training rows, or a fifth of all, is held out::

    TUCKERGP_DATA=... python benchmarks/tails.py -o benchmarks/results/tails.json

Every cell is written as soon as it is done; those that the file has are not run again.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from default_sets import SETS
from gibbs import facts
from reports import Resumed

MODELS = {
    "heavy tails": "surface",
    "mixed": "lines",
    "steps": "surface",
    "cells": "rough lines",
    "diabetes": "surface",
    "trend and season": "lines",
    "friedman 2": "surface",
    "wind": "rough lines",
    "houses": "rough lines",
}
"""Sets of `defaults.py`, and what the trial chose there."""
ROWS, HELD_OUT = 1_600, 4
SWEEPS = {"draws": 30, "warmup": 30, "random_state": 0}


def figures(model: Any, train: tuple[Any, np.ndarray], held: tuple[Any, np.ndarray]) -> dict[str, float]:
    """RMSE, mean log density and coverage at held-out rows, and the excess kurtosis of standardised residuals."""
    began = time.process_time()
    model.fit(*train)
    mean, std = model.predict(held[0], return_std=True)
    _, ends = model.predict(held[0], interval=0.5)
    u = (held[1] - mean) / std
    return {
        "rmse": float(np.sqrt(np.mean((held[1] - mean) ** 2))),
        "density": float(model.log_predictive_density(*held).mean()),
        "covered_50": float(np.mean((ends[:, 0] <= held[1]) & (held[1] <= ends[:, 1]))),
        "kurtosis": float(np.mean(u**4) / np.mean(u**2) ** 2 - 3),
        "cpu_seconds": time.process_time() - began,
    }


def of_a_set(name: str, likelihood: str) -> dict[str, float]:
    """A set of `defaults.py` with the modes of its model."""
    from tuckergp import TuckerGPRegressor
    from tuckergp.data.tables import as_table
    from tuckergp.regressor.contenders import contenders

    X, y = SETS[name](np.random.default_rng([0, list(SETS).index(name)])).train
    table = as_table({f"x{j}": column for j, column in enumerate(X.T)}, "X")
    order = np.random.default_rng(1).permutation(len(y))[:ROWS]
    held, train = np.split(order, [len(order) // HELD_OUT])
    model = contenders(table.take(train))[MODELS[name]]
    rank = 5 if model.rank is None else model.rank
    regressor = TuckerGPRegressor(
        model.modes, rank, likelihood=likelihood, hyperparameters=model.hyperparameters, learn_rows=700, **SWEEPS
    )
    return figures(regressor, (table.take(train), y[train]), (table.take(held), y[held]))


def of_stations(likelihood: str, noise: str) -> dict[str, float]:
    """Wind speeds by station, as rows, and day, on a line with a season; a fifth of the training values is held out."""
    from tuckergp import Mode, TuckerGPRegressor
    from tuckergp.data.datasets import load_wind
    from tuckergp.kernels import Identity, Matern12, Periodic
    from tuckergp.paper.wind import held_out, split_of

    split = held_out(split_of(load_wind(os.environ["TUCKERGP_DATA"], download=False)))
    train, held = split.train, split.test
    modes = [Mode("station", Identity()), Mode("day", Periodic(365.25) + Matern12(3.0))]
    model = TuckerGPRegressor(modes, 5, likelihood=likelihood, noise=noise, **SWEEPS)
    return figures(model, (train.X, train.y), (held.X, held.y))


def work() -> dict[tuple[str, ...], Any]:
    """All cells."""
    cells: dict[tuple[str, ...], Any] = {}
    for name in MODELS:
        for likelihood in ("gaussian", "student"):
            cells[name, likelihood] = partial(of_a_set, name, likelihood)
    for likelihood in ("gaussian", "student"):
        for noise, title in (("shared", likelihood), ("rows", f"{likelihood}, by rows")):
            cells["wind, stations as rows", title] = partial(of_stations, likelihood, noise)
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="run cells whose name has this in it alone")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # short chains are what is compared
    head = {"command": "python benchmarks/tails.py", "machine": facts(), "sweeps": SWEEPS}
    report = Resumed(head, "cells", options.output)
    for names, run in ((names, run) for names, run in work().items() if options.only in " | ".join(names)):
        found = report.cell(names, run)
        if found is not None:
            print(*names, found, sep=" | ", flush=True)


if __name__ == "__main__":
    main()
