"""Mean-field variational inference beside Gibbs sampling: the same models, ratings, house prices and wind.

The paper reports, without figures, that mean-field was poor compared to HMC. Here both use the same model, with the
same priors of all hyperparameters, on MovieLens 100K (split u1), California and Irish wind. Nothing is tuned: ranks are
those of the other experiments, settings the defaults. Test parts are scored once in each cell.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp import Mode, TuckerRecommender
from tuckergp.evaluation.metrics import rmse
from tuckergp.evaluation.metrics.distributions import interval_coverage, normal_nll
from tuckergp.features import Fourier
from tuckergp.inference import VI, Gibbs
from tuckergp.kernels import Identity, Periodic
from tuckergp.paper import california_models, wind
from tuckergp.paper.experiment import Cells, Experiment, Figures, Rows, Table, Text, Work
from tuckergp.paper.movielens_data import entities_of
from tuckergp.paper.regression import tucker
from tuckergp.paper.run import Run, quietly
from tuckergp.paper.tables import median, shown, starting

__all__ = ["VARIATIONAL"]

Floats = npt.NDArray[np.float64]

DATA = {"movielens": "MovieLens 100K, u1", "california": "California", "wind": "Irish wind"}
METHODS = {
    "vi": "VI",
    "vi factorised": "VI, all entries independent",
    "gibbs": "Gibbs sampling",
    "als": "MAP estimate (ALS)",
}
"""The titles of the methods in the table."""


def inference(name: str, lengths: dict[str, dict[str, Any]]) -> Any:
    """An inference by its name."""
    if name == "als":
        return "als"
    return Gibbs(**lengths["gibbs"]) if name == "gibbs" else VI(factorised=name == "vi factorised", **lengths["vi"])


def cells(run: Run) -> Work:
    """All cells of the table."""
    at = run.settings
    models = {"movielens": ratings, "california": prices, "wind": winds}
    return {
        f"{where}/{name}/seed {seed}": partial(models[where], run, inference(name, at["lengths"]), seed)
        for seed in at["seeds"]
        for where in DATA
        for name in at["methods"]
        if where == "movielens" or name != "als"  # its noise and prior scales would have to be tuned
    }


def ratings(run: Run, inference: Any, seed: int) -> Figures:
    """MovieLens 100K with age, gender, occupation and genres, and one noise variance."""
    movielens = run.load("ml-100k")
    train, held = movielens.split(1)
    train = train.take(np.arange(0, len(train), run.settings["every"]))
    entities = entities_of(movielens)
    model = TuckerRecommender(
        run.settings["ranks"]["movielens"], inference, implicit=False, time=None, objective="rating", random_state=seed
    )
    fit = partial(quietly, model.fit, train, entities.users, entities.items)
    return figures(fit, held, held.numeric("rating"))


def prices(run: Run, inference: Any, seed: int) -> Figures:
    """California with Fourier features of the authors' kernels."""
    at = run.settings
    split = california_models.split_of(run.load("california"), at["rows"])
    modes = california_models.modes_of(california_models.GIVEN, Fourier(at["features"], pairs=False))
    fit = partial(tucker, modes, at["ranks"]["california"], inference, seed, split)
    return figures(fit, split.test.X, split.test.y)


def winds(run: Run, inference: Any, seed: int) -> Figures:
    """Irish wind: each station and each day has a row of its own, and days have a season too."""
    at = run.settings
    split = wind.split_of(run.load("wind"), at["days"])
    modes = [Mode("station", Identity()), Mode("day", Periodic(wind.YEAR) + Identity())]
    fit = partial(tucker, modes, at["ranks"]["wind"], inference, seed, split)
    return figures(fit, split.test.X, split.test.y)


def figures(fit: Callable[[], Any], X: Any, y: Floats) -> Figures:
    """Fit a model and score it.

    Test RMSE, coverage of 90 % intervals, mean log predictive density of a normal, root mean square of the posterior sd
    of f, sweeps, and CPU seconds of learning.
    """
    began = time.process_time()
    model = fit()
    history = model.fit_.steps
    cost: Figures = {"sweeps": len(history), "fit_cpu_seconds": round(time.process_time() - began, 1)}
    if not model.fit_.draws.sampled:
        return {"test_rmse": round(rmse(y, model.predict(X)), 5), **cost}
    mean, std = model.predict(X, return_std=True)
    _, band = model.predict(X, interval=0.9)
    _, std_f = model.predict(X, return_std=True, include_noise=False)
    last = history[-1].figures
    return {
        "test_rmse": round(rmse(y, mean), 5),
        "coverage": round(float(interval_coverage(y, band[:, 0], band[:, 1]).mean()), 4),
        "log_density": round(-float(normal_nll(y, mean, std).mean()), 5),
        "std_f": round(float(np.sqrt(np.mean(std_f**2))), 5),
        **cost,
        **({"elbo": round(last["elbo"], 1)} if "elbo" in last else {}),
    }


def variational_table(cells: Cells) -> Rows:
    """Test RMSE, coverage, log density, sd of f, sweeps and CPU seconds of each method on each data set."""
    rows = [["data", "inference", "test RMSE", "90 % intervals cover", "log density", "sd of f", "sweeps"]]
    rows[0].append("CPU seconds of learning")
    for where, title in DATA.items():
        for name, method in METHODS.items():
            if runs := starting(cells, f"{where}/{name}/"):
                errors = [shown(runs, what) for what in ("test_rmse", "coverage", "log_density", "std_f")]
                rows.append([title, method, *errors, median(runs, "sweeps"), median(runs, "fit_cpu_seconds")])
    return rows


COMPARED = (("vi", "gibbs"), ("vi factorised", "vi"))
"""The methods that are compared seed by seed: with the same data, features and priors."""


def differences_table(cells: Cells) -> Rows:
    """A method beside another, seed by seed: differences of errors, densities, bounds, ratios of sd of f and time."""
    rows = [
        [
            "data",
            "method",
            "beside",
            "seed",
            "test RMSE",
            "log density",
            "bound",
            "sd of f, ratio",
            "CPU seconds, ratio",
        ]
    ]
    for where, title in DATA.items():
        for one, other in COMPARED:
            for name, mine in cells.items():
                theirs = cells.get(name.replace(f"/{one}/", f"/{other}/"))
                if not name.startswith(f"{where}/{one}/") or theirs is None:
                    continue
                less = [f"{mine[what] - theirs[what]:+.4f}" for what in ("test_rmse", "log_density")]
                bound = f"{mine['elbo'] - theirs['elbo']:+,.0f}" if "elbo" in theirs else ""
                ratios = [_ratio(mine[what], theirs[what]) for what in ("std_f", "fit_cpu_seconds")]
                rows.append([title, METHODS[one], METHODS[other], name.rsplit(" ", 1)[1], *less, bound, *ratios])
    return rows


def _ratio(ours: float, theirs: float) -> str:
    """A ratio as text; empty where a time is too short to be told from 0."""
    return f"{ours / theirs:.2f}" if theirs else ""


VARIATIONAL = Experiment(
    name="variational",
    title="Variational inference",
    group="future",
    protocol=(
        "MovieLens 100K u1, rank 15, identity core, the paper's side information; California, 100 Fourier features in "
        "each mode, rank 5, full core; wind, stations by days with a yearly season, rank 5, full core; nothing tuned, "
        "test parts scored once in each cell"
    ),
    data=("ml-100k", "california", "wind"),
    settings={
        "seeds": (0, 1), "methods": tuple(METHODS), "lengths": {"vi": {}, "gibbs": {"draws": 300, "warmup": 100}},
        "ranks": {"movielens": 15, "california": 5, "wind": 5}, "every": 1, "rows": None, "days": None, "features": 100,
    },
    quick={
        "seeds": (0,), "methods": ("vi", "gibbs", "als"),
        "lengths": {"vi": {"iterations": 5, "draws": 8}, "gibbs": {"draws": 8, "warmup": 4}},
        "ranks": {"movielens": 2, "california": 2, "wind": 2}, "every": 20, "rows": 1_000, "days": 365, "features": 10,
    },
    cells=cells,
    blocks=(
        Text(
            "Mean-field variational inference, which the paper found poor compared to HMC, beside Gibbs sampling of "
            "the same models."
        ),
        Table("variational", "Variational inference and Gibbs sampling", variational_table),
        Table("variational_differences", "The same, seed by seed", differences_table),
    ),
)  # fmt: skip
