"""How sure the prior of the noise should be: fits of made functions whose noise is large, small or tiny.

The precision of the noise has a Gamma prior of mean 2 in units of the targets' variance; a rate r says that it counts
for 4 r observations of variance 1 / 2. Functions are those of `defaults.py` with other seeds::

    python benchmarks/noise_prior.py -o benchmarks/results/noise_prior.json

Every cell is written as soon as it is done; those that the file has are not run again.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from default_sets import curve, ridges
from gibbs import facts
from reports import Resumed

RATES = (0.5, 0.05, 0.005, 0.0005)
NOISE = (1.0, 0.3, 0.03, 0.003)
"""Standard deviations of the noise relative to that of the function."""
HELD_OUT = 600
SWEEPS = {"draws": 100, "warmup": 100, "random_state": 0}

Made = Callable[[np.random.Generator], tuple[int, Callable[[np.ndarray], np.ndarray]]]


def of_curves(p: int) -> Made:
    """A sum of curves, one for each of p columns, and a product of the first two of them."""

    def make(rng: np.random.Generator) -> tuple[int, Callable[[np.ndarray], np.ndarray]]:
        f = [curve(rng) for _ in range(p + 2)]
        if p == 1:
            return p, lambda X: f[0](X[:, 0])
        return p, lambda X: sum(g(x) for g, x in zip(f, X.T, strict=False)) + f[p](X[:, 0]) * f[p + 1](X[:, 1])

    return make


def of_waves(rng: np.random.Generator) -> tuple[int, Callable[[np.ndarray], np.ndarray]]:
    """A smooth function of three columns that act together."""
    return 3, ridges(3, 6, rng)


class Family(NamedTuple):
    """Functions, the model of those that a trial chooses from, rows to learn from, functions drawn."""

    model: str
    made: Made
    rows: int = 600
    seeds: tuple[int, ...] = (11, 12)


FAMILIES: dict[str, Family] = {
    "a curve": Family("lines", of_curves(1)),
    "a curve, rough lines": Family("rough lines", of_curves(1)),
    "three curves and a product": Family("lines", of_curves(3)),
    "three columns together": Family("surface", of_waves),
    "a curve, 25 rows": Family("lines", of_curves(1), 25, tuple(range(11, 21))),
    "three columns together, 50 rows": Family("surface", of_waves, 50, tuple(range(11, 21))),
}


def figures(name: str, noise: float, rate: float, seed: int) -> dict[str, float]:
    """Errors and coverage of intervals of targets at further rows, both of a fit with this prior."""
    from tuckergp import TuckerGPRegressor
    from tuckergp.data.tables import as_table
    from tuckergp.inference import Gibbs
    from tuckergp.regressor.contenders import contenders

    rng, family = np.random.default_rng(seed), FAMILIES[name]
    p, function = family.made(rng)
    X = rng.uniform(-2, 2, (family.rows + HELD_OUT, p))
    f = function(X)
    sd = noise * f.std()
    y = f + sd * rng.standard_normal(len(f))
    table = as_table({f"x{j}": column for j, column in enumerate(X.T)}, "X")
    train, held = np.arange(family.rows), np.arange(family.rows, len(y))
    model = contenders(table.take(train))[family.model]
    rank = 5 if model.rank is None else model.rank
    inference = Gibbs(draws=SWEEPS["draws"], warmup=SWEEPS["warmup"], alpha_shape=2 * rate, alpha_rate=rate)
    regressor = TuckerGPRegressor(
        model.modes, rank, inference, hyperparameters=model.hyperparameters, learn_rows=600, random_state=0
    )
    began = time.process_time()
    regressor.fit(table.take(train), y[train])
    mean, ends = regressor.predict(table.take(held), quantiles=[0.05, 0.25, 0.75, 0.95])
    inside = [(ends[:, k] <= y[held]) & (y[held] <= ends[:, 3 - k]) for k in (1, 0)]
    return {
        "rmse_by_noise": float(np.sqrt(np.mean((mean - y[held]) ** 2)) / sd),
        "density": float(regressor.log_predictive_density(table.take(held), y[held]).mean()),
        "covered_50": float(inside[0].mean()),
        "covered_90": float(inside[1].mean()),
        "cpu_seconds": time.process_time() - began,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one small fit for each rate")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # short chains are what is compared
    head = {"command": "python benchmarks/noise_prior.py", "machine": facts(), "sweeps": SWEEPS}
    report = Resumed(head, "cells", options.output)
    for name, family in list(FAMILIES.items())[: 1 if options.quick else None]:
        for noise in NOISE[: 1 if options.quick else None]:
            for rate in RATES:
                for seed in family.seeds[: 1 if options.quick else None]:
                    run = partial(figures, name, noise, rate, seed)
                    found = report.cell((name, f"{noise:g}", f"{rate:g}", str(seed)), run)
                    if found is not None:
                        print(name, noise, rate, seed, found, sep=" | ", flush=True)


if __name__ == "__main__":
    main()
