"""What the sampler's prior says of f before there are data, by simulation, for a prior scale of 1.

Everything is proportional to the scale::

    python benchmarks/prior_f.py -o benchmarks/results/prior_f.json
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from gibbs import facts
from reports import put

Floats = npt.NDArray[np.float64]

# Core, number of modes, rank
CASES = [("identity", modes, rank) for modes in (2, 3) for rank in (1, 5, 15, 32, 64)]
CASES += [("full", 2, 5), ("full", 3, 5), ("pairwise", 3, 8)]
# Feature blocks of each mode beside the residual, each with k(x, x) = 1
BLOCKS = {"residuals alone": 0, "a constant": 1, "a constant and a feature block": 2}
CELLS = 10


def draw(model: Any, gibbs: Any, rng: np.random.Generator) -> dict[str, Floats]:
    """f at cells that share no row, with the same Lambda and W for every number of blocks."""
    W, scaled = model.sigma_w * rng.standard_normal(model.core.n_weights), []
    for d, rank in enumerate(map(int, model.core.ranks)):
        precision = gibbs.precision_prior(model, d).draw(np.zeros((rank, rank)), 0, rng)
        # rows ~ N(0, (1 + sum_g 1 / tau_g) Lambda^-1)
        rows = rng.standard_normal((CELLS, rank)) @ np.linalg.inv(np.linalg.cholesky(precision))
        tau = rng.gamma(gibbs.tau_shape, 1 / gibbs.tau_rate, size=max(BLOCKS.values()))
        scaled.append({name: rows * np.sqrt(1 + np.sum(1 / tau[:count])) for name, count in BLOCKS.items()})
    index = np.tile(np.arange(CELLS, dtype=np.int32)[:, None], (1, len(scaled)))
    return {name: model.contract([rows[name] for rows in scaled], W, index) for name in BLOCKS}


def simulate(core: str, modes: int, rank: int, draws: int) -> dict[str, float]:
    """The standard deviation of f from the residuals alone; medians of |f|, as variances with blocks are infinite."""
    from tuckergp.inference import Gibbs
    from tuckergp.likelihoods import Gaussian
    from tuckergp.model.tucker import TuckerModel, make_core

    shape, rng = make_core(core, [rank] * modes), np.random.default_rng(0)
    model = TuckerModel(shape, Gaussian(1.0), shape.default_sigma_u(), shape.default_sigma_w())
    found = [draw(model, Gibbs(), rng) for _ in range(draws)]
    f = {name: np.concatenate([each[name] for each in found]) for name in BLOCKS}
    sd = float(np.sqrt(np.mean(f["residuals alone"] ** 2)))
    return {"sd": sd, **{name: float(np.median(np.abs(values))) for name, values in f.items()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few draws")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    draws = 50 if options.quick else 4_000
    report = {
        "command": "python benchmarks/prior_f.py",
        "seed": 0,
        "draws": draws,
        "cells": CELLS,
        "machine": facts(),
        "cases": [
            {"core": core, "modes": modes, "rank": rank, **simulate(core, modes, rank, draws)}
            for core, modes, rank in CASES
        ],
    }
    put(report, options.output)


if __name__ == "__main__":
    main()
