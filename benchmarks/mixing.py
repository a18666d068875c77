"""Does f mix: R-hat and effective draws of f for each CPU second, by Gibbs sampling with and without overrelaxation.

California house prices (100 random Fourier features a mode, full core, four chains of 100 + 150 sweeps) and wind (the
paper's kernels, four chains of 100 + 150) at several ranks; and four small data sets with the default settings of the
regressor, where one chain has 300 + 300 sweeps. Of f at 100 training observations, as `fit_.draws.diagnostics()` has
it::

    TUCKERGP_DATA=... python benchmarks/mixing.py -o benchmarks/results/mixing.json

Each cell is written when it is done, and cells that are in the file are not run again.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

for _threads in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

import numpy as np  # noqa: E402
from gibbs import facts  # noqa: E402
from reports import Resumed, put  # noqa: E402

from tuckergp import TuckerGPRegressor  # noqa: E402
from tuckergp.inference import Gibbs  # noqa: E402
from tuckergp.posterior.diagnostics import summarise  # noqa: E402

OVERRELAXATION = (0.0, Gibbs().overrelaxation)
LONG = {"chains": 4, "warmup": 100, "draws": 150}
SHORT = {"chains": 1, "warmup": 300, "draws": 300}
SEEDS = {"large": (0,), "small": (0, 1)}
FEATURES = 100

Data = Callable[[], tuple[Any, Any]]


def surface() -> tuple[Any, Any]:
    """500 observations of a function of four columns."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (500, 4))
    f = np.sin(X[:, 0]) * X[:, 1] + np.cos(1.5 * X[:, 2]) * X[:, 3] + 0.3 * X[:, 0] * X[:, 3]
    return X, f + 0.2 * rng.standard_normal(len(X))


def small() -> dict[str, Data]:
    """Data sets for the default settings."""
    from sklearn.datasets import load_diabetes, make_friedman1, make_friedman2

    return {
        "diabetes": partial(load_diabetes, return_X_y=True),
        "Friedman 1": partial(make_friedman1, 400, noise=1.0, random_state=0),
        "Friedman 2": partial(make_friedman2, 400, noise=50, random_state=0),
        "surface": surface,
    }


def california(rank: int, seed: int, settings: dict[str, Any]) -> Any:
    """The paper's model of house prices."""
    from tuckergp.data.datasets import load_california
    from tuckergp.features import Fourier
    from tuckergp.paper.california_models import GIVEN, modes_of, split_of
    from tuckergp.paper.regression import tucker

    modes = modes_of(GIVEN, Fourier(FEATURES, pairs=False))
    return tucker(modes, rank, Gibbs(**settings), seed, split_of(load_california()))


def wind(rank: int, seed: int, settings: dict[str, Any]) -> Any:
    """The paper's model of wind, its kernels as they are before learning."""
    from tuckergp.data.datasets import load_wind
    from tuckergp.paper.regression import tucker
    from tuckergp.paper.wind import modes_of, split_of

    return tucker(modes_of(None), rank, Gibbs(**settings), seed, split_of(load_wind()))


def by_default(data: Data, seed: int, settings: dict[str, Any]) -> Any:
    """The regressor's own modes."""
    return TuckerGPRegressor(inference=Gibbs(**settings), random_state=seed).fit(*data(), progress=False)


def cells(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """All fits by name, the quick ones first."""
    few = {"warmup": 10, "draws": 10} if quick else {}
    fits: dict[str, tuple[Callable[[int, dict[str, Any]], Any], dict[str, Any], tuple[int, ...]]] = {
        f"{name}, default": (partial(by_default, data), SHORT, SEEDS["small"]) for name, data in small().items()
    }
    if quick:
        fits = dict(list(fits.items())[-1:])
    else:
        fits |= {f"California, r = {rank}": (partial(california, rank), LONG, SEEDS["large"]) for rank in (5, 2, 10)}
        fits["wind, r = 5"] = (partial(wind, 5), LONG, SEEDS["large"])
    return {
        f"{name} | {share:g} | {seed}": partial(figures, fit, seed, {**lengths, **few, "overrelaxation": share})
        for name, (fit, lengths, seeds) in fits.items()
        for seed in seeds[: 1 if quick else None]
        for share in OVERRELAXATION
    }


def figures(fit: Callable[[int, dict[str, Any]], Any], seed: int, settings: dict[str, Any]) -> dict[str, Any]:
    """R-hat and effective draws of f, and of them for each CPU second of the fit; R-hat of precisions of blocks."""
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fit(seed, settings)
    cpu = time.process_time() - started
    found = model.fit_.draws.diagnostics()
    tau = summarise(np.log([watched["tau"] for watched in model.fit_.draws.watched]))
    median, least = float(np.median(found.ess_bulk)), float(np.min(found.ess_bulk))
    return {
        "kept_draws": found.chains * found.draws,
        "cpu_seconds": cpu,
        "rhat": found.worst_rhat,
        "rhat_median": float(np.median(found.rhat)),
        "rhat_tau": tau.worst_rhat,
        "ess_median": median,
        "ess_least": least,
        "ess_tail_median": float(np.median(found.ess_tail)),
        "ess_tail_least": float(np.min(found.ess_tail)),
        "ess_median_a_cpu_second": median / cpu,
        "ess_least_a_cpu_second": least / cpu,
        "log_likelihood": [float(watched["log_likelihood"].sum(axis=1).mean()) for watched in model.fit_.draws.watched],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one small data set, few sweeps")
    parser.add_argument("--only", default="", help="cells whose name begins so")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    head = {
        "command": "python benchmarks/mixing.py",
        "machine": facts(),
        "settings": {"long": LONG, "short": SHORT, "seeds": SEEDS, "features": FEATURES},
    }
    report = Resumed(head, "results", options.output)
    asked = {name: run for name, run in cells(options.quick).items() if name.startswith(options.only)}
    todo = {name: run for name, run in asked.items() if name not in report.cells}
    if todo:
        by_default(surface, 0, {"warmup": 2, "draws": 2})  # compiles
    for name, run in todo.items():
        report.cell((name,), run)
    if options.output is None:
        put(report.report, None)


if __name__ == "__main__":
    main()
