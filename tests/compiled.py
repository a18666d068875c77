"""What most tests compile, compiled once before they run: half of it by each of two processes.

Workers that start with nothing compiled would compile the same functions side by side.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np


def ratings_and_places() -> None:
    """The statistics of rows, ordinal ratings, stochastic gradients, gradients of all weights, and fields."""
    from tuckergp import Mode, TuckerGPRegressor, TuckerRecommender
    from tuckergp.inference import HMC
    from tuckergp.kernels import SE, Matern32

    rng = np.random.default_rng(0)
    table = {"user_id": np.repeat(np.arange(10), 4), "item_id": np.tile(np.arange(8), 5)}
    table["rating"] = rng.integers(1, 6, 40).astype(float)
    TuckerRecommender(rank=2, draws=1, warmup=1).fit(table, progress=False)
    TuckerRecommender(rank=2, draws=1, warmup=1, likelihood="ordinal").fit(table, progress=False)
    TuckerRecommender(rank=2, inference="sgd").fit(table, progress=False)
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    smooth = [Mode("x0", SE(1.0)), Mode("x1", SE(1.0))]
    TuckerGPRegressor(smooth, rank=2, inference=HMC(draws=1, warmup=1)).fit(X, y, progress=False)
    TuckerGPRegressor([Mode(["x0", "x1"], Matern32(1.0))], rank=1, draws=1, warmup=1).fit(X, y, progress=False)


def lines_and_single_precision() -> None:
    """Lines, and the statistics of rows in single precision."""
    from tuckergp import Mode, TuckerGPRegressor
    from tuckergp.inference import Gibbs
    from tuckergp.kernels import Identity

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    TuckerGPRegressor(rank=2, draws=1, warmup=1).fit(X, y, progress=False)
    rows = [Mode("x0", Identity()), Mode("x1", Identity())]
    single = Gibbs(draws=1, warmup=1, precision="float32")
    TuckerGPRegressor(rows, rank=2, core="identity", inference=single).fit(X, y, progress=False)


HALVES = {function.__name__: function for function in (ratings_and_places, lines_and_single_precision)}


def compile_all() -> None:
    """Compile both halves, each in a process of its own; tests tell better what is wrong if one fails."""
    command = [sys.executable, "-m", "tests.compiled"]
    running = [
        subprocess.Popen([*command, half], cwd=Path(__file__).parents[1], stderr=subprocess.DEVNULL) for half in HALVES
    ]
    for process in running:
        process.wait()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    HALVES[sys.argv[1]]()
