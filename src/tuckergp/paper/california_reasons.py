"""Why the paper's claims about its figure of California do not all hold here: features, prior scales, or sweeps.

Full rank and r = 5 on many draws of the features; and on the same features Gibbs sampling with the paper's prior scales
and noise in the place of drawn ones, and with more sweeps.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tuckergp.inference import Gibbs
from tuckergp.paper.california_models import GIVEN, full_rank, split_of, tucker_of
from tuckergp.paper.experiment import Cells, Experiment, Figures, Rows, Table, Text, Work
from tuckergp.paper.run import Run
from tuckergp.paper.tables import starting, with_sd

__all__ = ["CALIFORNIA_REASONS"]

RANK = 5
SURE = 1e8
"""What makes a prior a point: its shape, or the rows that it counts for."""
ARMS = {
    "full": "full rank",
    "drawn": "r = 5, prior scales and noise drawn",
    "given": "r = 5, prior scales and noise as the GP has them",
    "longer": "r = 5, drawn, with four times the sweeps",
}
"""The models on the same features."""


def settings_of(arm: str, lengths: dict[str, Any], longer: int) -> Gibbs:
    """Gibbs sampling as in the figure, with one thing changed."""
    if arm == "longer":
        return Gibbs(**{name: longer * value if name != "chains" else value for name, value in lengths.items()})
    if arm == "given":  # f has the GP's variance, tau and Lambda are 1 relative to that of the prior
        noise: dict[str, Any] = {"alpha_shape": SURE, "alpha_rate": SURE * GIVEN.noise}
        return Gibbs(scale=GIVEN.scale**0.5, dof=SURE, tau_shape=SURE, tau_rate=SURE, **noise, **lengths)
    return Gibbs(**lengths)


def cells(run: Run) -> Work:
    """One cell for each number of features, model and draw of the features: ``n=25/full/seed 0``."""
    at, work = run.settings, dict[str, Callable[[], Figures]]()
    split = split_of(run.load("california"), at["rows"])
    for n, arms in at["seeds"].items():
        for arm, seeds in arms.items():
            for seed in range(seeds):
                fit = partial(full_rank, split, int(n), seed)
                if arm != "full":
                    fit = partial(tucker_of, split, int(n), RANK, settings_of(arm, at["lengths"], at["longer"]), seed)
                work[f"n={n}/{arm}/seed {seed}"] = fit
    return work


def reasons_table(cells: Cells) -> Rows:
    """Errors by model, and how far each is from full rank on the same features."""
    rows = [["n", "model", "draws of the features", "train RMSE", "test RMSE", "test RMSE less that of full rank"]]
    for n in dict.fromkeys(name.partition("/")[0] for name in cells):
        full = starting(cells, f"{n}/full/")
        for arm, title in ARMS.items():
            if runs := starting(cells, f"{n}/{arm}/"):
                errors = [with_sd([cell[what] for cell in runs]) for what in ("train_rmse", "test_rmse")]
                paired = zip(runs, full, strict=False)
                less = with_sd([float(np.subtract(a["test_rmse"], b["test_rmse"])) for a, b in paired])
                rows.append([n.removeprefix("n="), title, str(len(runs)), *errors, "" if arm == "full" else less])
    return rows


CALIFORNIA_REASONS = Experiment(
    name="california_reasons",
    title="California: features, prior scales and sweeps",
    group="california",
    protocol="as the figure of California, one chain in each cell; models of one n and seed have the same features",
    data=("california",),
    settings={
        "rows": None, "lengths": {"draws": 150, "warmup": 100, "chains": 1}, "longer": 4,
        "seeds": {
            "25": {"full": 20, "drawn": 20, "given": 5, "longer": 5},
            "50": {"full": 20, "drawn": 10},
            "100": {"full": 5, "drawn": 5, "given": 3, "longer": 3},
        },
    },
    quick={
        "rows": 500, "lengths": {"draws": 5, "warmup": 5, "chains": 1}, "longer": 2,
        "seeds": {"25": dict.fromkeys(ARMS, 1)},
    },
    cells=cells,
    blocks=(
        Text("Test errors of r = 5 and of full rank on the same draws of the features, mean ± sd over draws."),
        Table("california_reasons", "What moves the errors", reasons_table),
    ),
)  # fmt: skip
