"""Calibration of predicted ratings: predicted against true means, and coverage of intervals.

The settings of `tuckergp.paper.movielens_gibbs` on the first official split, one seed. Test ratings are put into
ten bins of equal size by their prediction.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tuckergp.data.datasets import MovieLens
from tuckergp.evaluation.metrics import rmse
from tuckergp.paper.experiment import Cells, Experiment, Figures, Picture, Work
from tuckergp.paper.movielens_gibbs import SETTINGS, learned
from tuckergp.paper.pictures import COLOURS, INK, figure
from tuckergp.paper.run import Run

__all__ = ["MOVIELENS_CALIBRATION"]

LEVELS = (0.5, 0.8, 0.9, 0.95)
BINS, SPLIT = 10, 1


def calibration(movielens: MovieLens, key: str, seed: int, options: dict[str, Any]) -> Figures:
    """Means of predictions and of ratings in each bin, standard errors of the latter, and coverage of intervals."""
    train, test = movielens.split(SPLIT)
    model = learned(movielens, SETTINGS[key], train, seed, options)
    truth, mean = test.numeric("rating"), np.asarray(model.predict(test))
    bins = np.array_split(np.argsort(mean), BINS)
    coverage = {}
    for level in LEVELS:
        _, band = model.predict(test, interval=level)
        coverage[str(level)] = round(float(((band[:, 0] <= truth) & (truth <= band[:, 1])).mean()), 4)
    return {
        "seed": seed,
        "options": SETTINGS[key].options | options,
        "predicted": [round(float(mean[rows].mean()), 4) for rows in bins],
        "true": [round(float(truth[rows].mean()), 4) for rows in bins],
        "error": [round(float(truth[rows].std(ddof=1) / len(rows) ** 0.5), 4) for rows in bins],
        "coverage": coverage,
        "rmse": round(rmse(truth, mean), 5),
    }


def cells(run: Run) -> Work:
    """One cell per setting."""
    at, movielens = run.settings, run.load("ml-100k")
    return {key: partial(calibration, movielens, key, at["seed"], at["options"]) for key in at["keys"]}


def draw_calibration(cells: Cells) -> Any:
    """Mean true rating against the mean prediction in bins, and how often intervals hold the rating."""
    made, axes = figure(1, 2, 9.0, 4.2)
    for (key, cell), colour in zip(cells.items(), COLOURS, strict=False):
        bars = [2 * error for error in cell["error"]]
        style = {"color": colour, "label": SETTINGS[key].title, "markersize": 4}
        axes[0, 0].errorbar(cell["predicted"], cell["true"], bars, fmt="o", capsize=2, **style)
        axes[0, 1].plot(LEVELS, [cell["coverage"][str(level)] for level in LEVELS], "o-", **style)
    for ax, ends in zip(axes[0], ((2.0, 4.8), (0.45, 1.0)), strict=True):
        ax.plot(ends, ends, ":", color=INK, linewidth=1)
        ax.grid(alpha=0.2)
    axes[0, 0].set(xlabel="mean prediction", ylabel="mean rating, ± 2 standard errors", title="predicted against true")
    axes[0, 1].set(xlabel="probability of the interval", ylabel="ratings inside", title="intervals")
    axes[0, 0].legend(fontsize="small")
    return made


MOVIELENS_CALIBRATION = Experiment(
    name="movielens_calibration",
    title="Calibration of sampled models",
    group="movielens",
    protocol="settings of movielens_gibbs, split u1, one seed; test ratings in ten bins of equal size by prediction",
    data=("ml-100k",),
    settings={"seed": 0, "keys": ("ratings", "side", "ordinal"), "options": {}},
    quick={"keys": ("ratings", "side"), "options": {"rank": 4, "draws": 15, "warmup": 5}},
    cells=cells,
    blocks=(
        Picture(
            "movielens_calibration",
            "Predictions of the first split in ten bins against mean ratings; and how often intervals of a given "
            "probability hold the rating. Dotted: as it should be.",
            "Mean ratings lie near the diagonal for all models, and intervals hold about as often as they say.",
            draw_calibration,
        ),
    ),
)
