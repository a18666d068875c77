"""Whether predicted ratings mean what they say: predicted against true means, and how often intervals hold.

    python -m tuckergp.paper.movielens_calibration -o movielens_calibration.json

The settings of `tuckergp.paper.movielens_gibbs` on the first official split, one seed. Test ratings are put into
ten bins of equal size by their prediction.
"""

from __future__ import annotations

import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from tuckergp import TuckerRecommender
from tuckergp.data.datasets import MovieLens, load_movielens_100k
from tuckergp.errors import InputError, NotConvergedWarning
from tuckergp.evaluation.metrics import rmse
from tuckergp.paper.cells import Cells, Figures, fill
from tuckergp.paper.cells import store_of as cells_store
from tuckergp.paper.movielens_gibbs import SETTINGS, Setting, attributes_of

__all__ = ["KEYS", "LEVELS", "app", "cells", "store_of"]

KEYS = ("ratings", "side", "ordinal")
LEVELS = (0.5, 0.8, 0.9, 0.95)
BINS, SPLIT, SEED = 10, 1, 0
PROTOCOL = "settings of movielens_gibbs, split u1, one seed; test ratings in ten bins of equal size by prediction"


def calibration(movielens: MovieLens, setting: Setting, options: dict[str, Any]) -> Figures:
    """Means of predictions and of ratings in every bin, standard errors of the latter, and coverage of intervals."""
    train, test = movielens.split(SPLIT)
    options = {**setting.options, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        model = TuckerRecommender(**options, random_state=SEED).fit(train, *attributes_of(movielens, setting.tables))
    truth, mean = test.numeric("rating"), np.asarray(model.predict(test))
    bins = np.array_split(np.argsort(mean), BINS)
    coverage = {}
    for level in LEVELS:
        _, band = model.predict(test, interval=level)
        coverage[str(level)] = round(float(((band[:, 0] <= truth) & (truth <= band[:, 1])).mean()), 4)
    return {
        "seed": SEED,
        "options": options,
        "predicted": [round(float(mean[rows].mean()), 4) for rows in bins],
        "true": [round(float(truth[rows].mean()), 4) for rows in bins],
        "error": [round(float(truth[rows].std(ddof=1) / len(rows) ** 0.5), 4) for rows in bins],
        "coverage": coverage,
        "rmse": round(rmse(truth, mean), 5),
    }


def cells(movielens: MovieLens, **options: Any) -> Cells:
    """One a setting; other ``options`` of the model are for quick runs."""
    return {key: partial(calibration, movielens, SETTINGS[key], options) for key in KEYS}


store_of = partial(cells_store, "movielens_calibration", "", PROTOCOL)
"""Where the cells are kept: takes a path, or None, and whether the run is quick."""

app = typer.Typer(add_completion=False)


@app.command()
def main(
    data: Annotated[Path | None, typer.Option(help="The folder that holds ml-100k.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Results; a finished cell is kept.")] = None,
) -> None:
    """Predicted against true ratings on MovieLens 100K."""
    try:
        fill(store_of(output), cells(load_movielens_100k(data)), lambda line: typer.echo(line, err=True))
    except InputError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None


if __name__ == "__main__":
    sys.exit(app())
