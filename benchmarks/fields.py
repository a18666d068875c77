"""Fields on real places and on many: California house prices, temperatures under clouds, up to 1,000,000 places.

Cells "held out" compare candidates on training data: on a fifth of the training rows of California, and on cells of
the satellite's grid under its own clouds turned around, which are as large as those that hide the test cells::

    python benchmarks/fields.py -o benchmarks/results/fields.json

Every cell is written as soon as it is done; those that the file has are not run again.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
import warnings
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from gibbs import facts
from reports import Resumed

SMOOTHNESS = {"1/2": "Matern12", "3/2": "Matern32", "5/2": "Matern52"}
NEIGHBOURS = (5, 10, 15, 30, 60)


class Candidate(NamedTuple):
    """A field, and how its coordinates are read."""

    smoothness: str = "1/2"
    neighbours: int = 15
    predicting: int = 100
    by_column: bool = False
    likelihood: str = "gaussian"
    order: str = "coarse to fine"
    coordinates: str = "of the map"
    smooth_part: bool = False

    @property
    def name(self) -> str:
        """What its cells are called: smoothness, neighbours and whatever is not the default."""
        parts = [self.smoothness, f"{self.neighbours} neighbours"]
        parts += [f"predicting={self.predicting}"] if self.predicting != 100 else []
        parts += ["a lengthscale for each column"] if self.by_column else []
        parts += [self.likelihood] if self.likelihood != "gaussian" else []
        parts += [f"{self.order} order"] if self.order != "coarse to fine" else []
        parts += [f"coordinates {self.coordinates}"] if self.coordinates != "of the map" else []
        parts += ["beside a squared exponential"] if self.smooth_part else []
        return ", ".join(parts)

    def mode(self, names: list[str]) -> Any:
        """The mode of a regressor, of coordinates by name."""
        from tuckergp import Mode, kernels
        from tuckergp.features import Cholesky, Field

        rough = getattr(kernels, SMOOTHNESS[self.smoothness])([1.0] * len(names) if self.by_column else 1.0)
        field = Field(self.neighbours, self.predicting)
        if self.smooth_part:
            return Mode(names, kernels.SE(0.5) + rough, features=[Cholesky(max_features=300), field])
        return Mode(names, rough, features=field)


def with_density(train: np.ndarray, places: np.ndarray) -> np.ndarray:
    """A third coordinate: the logarithm of the distance to the 20th training place."""
    from scipy.spatial import KDTree

    return np.column_stack([places, np.log(0.01 + KDTree(train).query(places, 20)[0][:, -1])])


def by_ranks(train: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Standardised, plus the share of training places before each along either axis: cities are stretched."""
    ranks = [np.searchsorted(np.sort(old), new) / len(old) for old, new in zip(train.T, places.T, strict=True)]
    return places / train.std(axis=0) + np.stack(ranks, axis=1)


COORDINATES = {
    "of the map": lambda train, places: places,
    "and density": with_density,
    "stretched in cities": by_ranks,
}


CANDIDATES = {
    "california": (
        *(
            Candidate(smooth, m, by_column=each)
            for each in (False, True)
            for smooth in ("1/2", "3/2")
            for m in (15, 30)
        ),
        Candidate(order="maximin"),
        Candidate(by_column=True, coordinates="and density"),
        Candidate(by_column=True, coordinates="stretched in cities"),
        Candidate(smooth_part=True),
        Candidate(likelihood="student"),
    ),
    "satellite": (
        Candidate(),
        Candidate(predicting=200),
        Candidate("3/2"),
        Candidate(neighbours=30),
    ),
}
CHOSEN = {"california": Candidate(neighbours=30, by_column=True), "satellite": Candidate()}
"""What is scored on test parts: the least error on held-out training cells, of those that answer within 20 minutes."""
LENGTHS = {
    "california, held out": {"draws": 20, "warmup": 15},
    "california": {"draws": 40, "warmup": 25},
    "satellite, held out": {"draws": 10, "warmup": 8},
    "satellite": {"draws": 20, "warmup": 8},
}
SIZES = (10_000, 100_000, 1_000_000)


class Split(NamedTuple):
    """Places (n, 2) and targets to learn from, and to be scored on."""

    places: np.ndarray
    y: np.ndarray
    asked: np.ndarray
    truth: np.ndarray


def columns(places: np.ndarray) -> dict[str, np.ndarray]:
    """Places as a table."""
    return dict(zip("xyz"[: places.shape[1]], places.T, strict=True))


def scored(split: Split, candidate: Candidate, lengths: dict[str, int], seed: int) -> dict[str, Any]:
    """Errors, coverage and CRPS (of a normal distribution) at the places asked about, and CPU seconds."""
    from scipy.stats import norm

    from tuckergp import TuckerGPRegressor
    from tuckergp.posterior.diagnostics import ess_bulk

    began = time.process_time()
    seen, asked = (columns(COORDINATES[candidate.coordinates](split.places, X)) for X in (split.places, split.asked))
    mode = candidate.mode(list(seen))
    model = TuckerGPRegressor([mode], rank=1, likelihood=candidate.likelihood, **lengths, random_state=seed)
    with patch("tuckergp.features.field.coarse_to_fine", ORDERS[candidate.order]):
        model.fit(seen, split.y)
    fitted = time.process_time()
    mean, std = model.predict(asked, return_std=True)
    error = split.truth - mean
    u = error / std
    crps = std * (u * (2 * norm.cdf(u) - 1) + 2 * norm.pdf(u) - np.pi**-0.5)
    lengthscales = model.fit_.draws.modes[0].values["lengthscale"]
    return {
        "rmse": float(np.sqrt(np.mean(error**2))),
        "mae": float(np.abs(error).mean()),
        "crps": float(crps.mean()),
        "coverage": {str(level): float(np.mean(np.abs(u) < norm.ppf((1 + level) / 2))) for level in (0.5, 0.9, 0.95)},
        "fit_cpu_seconds": fitted - began,
        "predict_cpu_seconds": time.process_time() - fitted,
        "lengthscales": [float(scale) for scale in lengthscales.mean(axis=0)],
        "lengthscale_ess": min(float(ess_bulk(draws[None])) for draws in lengthscales.T),
        "places": len(split.places),
        "asked": len(split.asked),
    }


# Orders


def coarse_to_fine(X: np.ndarray) -> np.ndarray:
    """The order of the library."""
    from tuckergp.compute import places

    return places.coarse_to_fine(X)


def maximin(X: np.ndarray) -> np.ndarray:
    """The place nearest to the middle, then always the place that is farthest from all before it: O(M^2)."""
    order = np.zeros(len(X), dtype=np.intp)
    order[0] = np.argmin(((X - X.mean(axis=0)) ** 2).sum(axis=1))
    distance = ((X - X[order[0]]) ** 2).sum(axis=1)
    for i in range(1, len(X)):
        order[i] = np.argmax(distance)
        distance = np.minimum(distance, ((X - X[order[i]]) ** 2).sum(axis=1))
        distance[order[i]] = -1  # of equal places, too, each comes once
    return order


def at_random(X: np.ndarray) -> np.ndarray:
    """Any order."""
    return np.random.default_rng(1).permutation(len(X))


ORDERS = {"coarse to fine": coarse_to_fine, "maximin": maximin, "random": at_random}


def divergence(where: str, order: str, smoothness: str, count: int = 15, n: int = 1_500) -> dict[str, float]:
    """Kullback-Leibler divergence of the approximation from the process, lengthscale 0.25, with noise and without.

    Each value has its right distribution given its neighbours, so that half the difference of log determinants is all.
    """
    from tuckergp import kernels
    from tuckergp.compute.places import nearest_earlier
    from tuckergp.residuals.vecchia import VecchiaProcess

    rng = np.random.default_rng(0)
    X = rng.random((n, 2)) if where == "square" else np.unique(california()[1].places, axis=0)
    X = rng.permutation(X)[:n] / 0.25
    X = X[ORDERS[order](X)]
    K, near = getattr(kernels, SMOOTHNESS[smoothness])(1.0)(X), nearest_earlier(X, count)
    found = {}
    for name, noise in (("without noise", 1e-9), ("noise of a tenth", 0.1)):
        process = VecchiaProcess(X, near, list(SMOOTHNESS).index(smoothness) + 1, np.full(n, noise))
        found[name] = float(process.log_determinant - np.linalg.slogdet(K + noise * np.eye(n))[1]) / 2
    return found


# California


def california() -> tuple[Split, Split]:
    """The paper's halves, and a fifth of its training rows to choose by."""
    from tuckergp.data.datasets import load_california
    from tuckergp.paper.california import held_out
    from tuckergp.paper.california_models import split_of

    def parts(split: Any) -> Split:
        train, test = split.train, split.test
        return Split(np.column_stack(list(train.X.values())), train.y, np.column_stack(list(test.X.values())), test.y)

    whole = split_of(load_california(os.environ.get("TUCKERGP_DATA"), download=False))
    return parts(whole), parts(held_out(whole))


# Satellite


def satellite() -> tuple[Split, dict[str, Split]]:
    """The competition's split, and splits of its training cells to choose by: under the clouds, turned around."""
    with np.load(Path(os.environ["TUCKERGP_DATA"]) / "satellite" / "satellite.npz") as stored:
        places = np.column_stack([stored["lon"], stored["lat"]])
        masked, true = stored["masked"].astype(np.float64), stored["true"].astype(np.float64)
    at = tuple(np.unique(column, return_inverse=True)[1] for column in places.T)
    cloudy = np.zeros((at[0].max() + 1, at[1].max() + 1), dtype=bool)
    cloudy[at] = np.isnan(masked)
    seen = ~np.isnan(masked)

    def split(hidden: np.ndarray, truth: np.ndarray) -> Split:
        asked = hidden & ~np.isnan(truth)
        return Split(places[seen & ~hidden], masked[seen & ~hidden], places[asked], truth[asked])

    turned = {"west to east": cloudy[::-1], "south to north": cloudy[:, ::-1], "both": cloudy[::-1, ::-1]}
    return split(~seen, true), {name: split(clouds[at], masked) for name, clouds in turned.items()}


def kriged(split: Split, near: str, count: int, asked: int) -> dict[str, float]:
    """Errors of a Matern-1/2 with given numbers, by nearest places or by those around; in degrees Celsius."""
    from tuckergp.compute.places import Search, coarse_to_fine
    from tuckergp.residuals.vecchia import VecchiaProcess

    lengthscale, noise = 0.72, 1 / 1900  # of an early fit, relative to the variance; a field of all cells learns 0.39
    chosen = np.random.default_rng(0).permutation(len(split.asked))[:asked]
    order = coarse_to_fine(split.places)
    places, points = split.places[order] / lengthscale, split.asked[chosen] / lengthscale
    y = split.y[order] - split.y.mean()
    began = time.process_time()
    neighbours = getattr(Search(places), near)(points, count)
    both = np.concatenate([places, points])
    process = VecchiaProcess(both, neighbours, 1, np.full(len(both), noise))
    mean = process.colour(np.zeros((len(points), 1)), y[:, None])[:, 0] + split.y.mean()
    error = float(np.sqrt(np.mean((mean - split.truth[chosen]) ** 2)))
    return {"rmse": error, "cpu_seconds": time.process_time() - began}


# Approximation and size


def approximation(smoothness: str, count: int, n: int = 1_000) -> dict[str, float]:
    """How far the posterior mean of f is from the dense one, in standard deviations of f (RMS), and seconds."""
    from tuckergp import kernels
    from tuckergp.compute.places import coarse_to_fine, nearest_earlier
    from tuckergp.residuals.vecchia import VecchiaProcess

    rng = np.random.default_rng(0)
    X = 2 * rng.random((n, 2))
    X, noise = X[coarse_to_fine(X)] / 0.5, 0.1
    K = getattr(kernels, SMOOTHNESS[smoothness])(1.0)(X)
    y = np.linalg.cholesky(K + noise * np.eye(n)) @ rng.standard_normal(n)
    gain = K @ np.linalg.inv(K + noise * np.eye(n))
    exact, sd = gain @ y, np.sqrt(np.diag(K - gain @ K))
    process = VecchiaProcess(X, nearest_earlier(X, count), list(SMOOTHNESS).index(smoothness) + 1)
    given = np.full((n, 1, 1), 1 / noise), y[:, None] / noise, np.zeros((n, 1)), np.eye(1)
    process.values_given_data(*given)  # compiles, or reads what was compiled
    began = time.process_time()
    f = replace(process).values_given_data(*given)[:, 0]
    error = float(np.sqrt(np.mean(((f - exact) / sd) ** 2)))
    return {"error": error, "cpu_seconds": time.process_time() - began}


def sized(n: int) -> dict[str, float]:
    """A fit to so many places on the unit square: seconds to set up and of a sweep, and memory."""
    from tuckergp import Mode, TuckerGPRegressor
    from tuckergp.kernels import Matern32

    def data(n: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
        rng = np.random.default_rng(0)
        places = rng.random((n, 2))
        f = np.sin(20 * places[:, 0]) * np.cos(15 * places[:, 1])
        return columns(places), f + 0.3 * rng.standard_normal(n)

    def model() -> TuckerGPRegressor:
        return TuckerGPRegressor([Mode(["x", "y"], Matern32(0.1))], rank=1, draws=2, warmup=1, random_state=0)

    warnings.simplefilter("ignore")
    model().fit(*data(500))  # compiles, or reads what was compiled
    X, y = data(n)
    before, began, times = _peak(), time.process_time(), []
    fitted = model().fit(X, y, callback=lambda info: times.append(time.process_time()))
    asked = np.random.default_rng(1).random((1_000, 2))
    truth = np.sin(20 * asked[:, 0]) * np.cos(15 * asked[:, 1])
    return {
        "first_sweep_and_set_up_cpu_seconds": times[0] - began,
        "sweep_cpu_seconds": float(np.median(np.diff(times))),
        "grown_bytes": _peak() - before,
        "rmse": float(np.sqrt(np.mean((fitted.predict(columns(asked)) - truth) ** 2))),
    }


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def in_a_process(n: int) -> dict[str, float]:
    """`sized` in a process of its own, whose peak of memory is its own too."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(sized, (n,))


def work(quick: bool, parts: list[str]) -> dict[tuple[str, ...], Any]:
    """All cells, quick ones first."""
    cells: dict[tuple[str, ...], Any] = {}
    lengths = {name: {"draws": 3, "warmup": 3} if quick else value for name, value in LENGTHS.items()}
    if "neighbours" in parts:
        for smoothness in SMOOTHNESS:
            for count in NEIGHBOURS[:2] if quick else NEIGHBOURS:
                cell = ("neighbours", smoothness, str(count))
                cells[cell] = partial(approximation, smoothness, count, 100 if quick else 1_000)
    if "order" in parts:
        for where in ("square", "california"):
            for smoothness in SMOOTHNESS:
                for order in ORDERS:
                    n = 100 if quick else 1_500
                    cells["order", where, smoothness, order] = partial(divergence, where, order, smoothness, n=n)
    if "california" in parts:
        test, choice = california()
        for each in CANDIDATES["california"]:
            cells["california", "held out", each.name] = partial(
                scored, choice, each, lengths["california, held out"], 0
            )
        chosen = CHOSEN["california"]
        cells["california", "test", chosen.name] = partial(scored, test, chosen, lengths["california"], 0)
    if "size" in parts:
        for n in (500, 1_000) if quick else SIZES:
            cells["size", str(n)] = partial(in_a_process, n)
    if "around" in parts:
        for clouds, hidden in satellite()[1].items():
            for near, count in (("nearest", 100), ("nearest", 400), ("around", 100)):
                cells["around", clouds, f"{near} {count}"] = partial(
                    kriged, hidden, near, count, 20 if quick else 1_000
                )
    if "satellite" in parts:
        competition, holes = satellite()
        choice = holes["west to east"]
        some = choice._replace(asked=choice.asked[::10], truth=choice.truth[::10])
        for each in CANDIDATES["satellite"]:
            lengths_held_out = lengths["satellite, held out"]
            cells["satellite", "held out", each.name] = partial(scored, some, each, lengths_held_out, 0)
        fourth = competition._replace(asked=competition.asked[::4], truth=competition.truth[::4])
        for part, asked in (("every fourth test cell", fourth), ("test", competition)):
            cells["satellite", part, CHOSEN["satellite"].name] = partial(
                scored, asked, CHOSEN["satellite"], lengths["satellite"], 0
            )
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few draws, few places")
    parser.add_argument(
        "--parts", nargs="+", default=["neighbours", "order", "around", "california", "size", "satellite"]
    )
    parser.add_argument("--only", default="", help="run cells whose name has this in it alone")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # short chains are among what is measured
    head = {"command": "python benchmarks/fields.py", "machine": facts(), "lengths": LENGTHS}
    report = Resumed(head, "cells", options.output)
    cells = work(options.quick, options.parts)
    for names, run in ((names, run) for names, run in cells.items() if options.only in " | ".join(names)):
        found = report.cell(names, run)
        if found is not None:
            print(*names, found, sep=" | ", flush=True)


if __name__ == "__main__":
    main()
