"""Data sets for `defaults.py`: scikit-learn's, places, wind and statsmodels' where they are there, and synthetic ones.

A set is rows to learn from, and parts to be scored on: ``range``, among the training rows; ``gap``, in a hole that was
cut into them; ``beyond``, outside of all of them. Synthetic functions differ by seed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

TEST = 1_000
"""Rows of the part ``range``, at most."""


class Rows(NamedTuple):
    """Inputs (n, p) and targets (n,)."""

    X: np.ndarray
    y: np.ndarray


class Set(NamedTuple):
    """Rows to learn from, and parts to be scored on."""

    train: Rows
    parts: dict[str, Rows]


def split(X: np.ndarray, y: np.ndarray, n: int, rng: np.random.Generator) -> Set:
    """The first n rows of a random order to learn from, and `TEST` of the others."""
    order = rng.permutation(len(y))
    train, test = order[:n], order[n : n + TEST]
    return Set(Rows(X[train], y[train]), {"range": Rows(X[test], y[test])})


def with_parts(
    f: Callable[[np.ndarray], np.ndarray],
    inputs: Callable[[int], np.ndarray],
    kind: Callable[[np.ndarray], np.ndarray],
    n: int,
    noise: float,
    rng: np.random.Generator,
) -> Set:
    """Rows of a function with noise, divided by ``kind``: 0 in range, 1 in a gap, 2 beyond."""
    X = inputs(4 * n + 4 * TEST)
    y, kinds = f(X) + noise * rng.standard_normal(len(X)), kind(X)
    inside = np.flatnonzero(kinds == 0)
    train, test = inside[:n], inside[n : n + TEST]
    parts = {"range": Rows(X[test], y[test])}
    for name, number in (("gap", 1), ("beyond", 2)):
        rows = np.flatnonzero(kinds == number)[: TEST // 2]
        if len(rows):
            parts[name] = Rows(X[rows], y[rows])
    return Set(Rows(X[train], y[train]), parts)


def curve(rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
    """A random function of one column: a wave, a trend and a kink."""
    wave, trend, kink = rng.standard_normal(3)
    speed, shift = rng.uniform(1, 4), rng.uniform(0, 6)
    return lambda x: wave * np.sin(speed * x + shift) + 0.5 * trend * x + 0.5 * kink * np.abs(x)


def ridges(p: int, count: int, rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
    """A random smooth function of p columns that all act together: waves along random directions."""
    directions = 1.5 * rng.standard_normal((p, count)) / np.sqrt(p)
    shifts, sizes = rng.uniform(0, 2 * np.pi, count), rng.standard_normal(count) / np.sqrt(count / 2)
    return lambda X: np.sin(X @ directions + shifts) @ sizes


def wave(rng: np.random.Generator) -> Set:
    f, g = curve(rng), curve(rng)

    def kind(X: np.ndarray) -> np.ndarray:
        x = X[:, 0]
        return np.where(np.abs(x) > 3, 2, np.where((x > 0.5) & (x < 1.1), 1, 0))

    return with_parts(
        lambda X: f(X[:, 0]) + 0.5 * g(X[:, 0]), lambda n: rng.uniform(-3.4, 3.4, (n, 1)), kind, 500, 0.3, rng
    )


def trend_and_season(rng: np.random.Generator) -> Set:
    slope, size = rng.uniform(0.3, 0.8), rng.uniform(0.7, 1.3)

    def f(X: np.ndarray) -> np.ndarray:
        t = X[:, 0]
        return slope * t + size * np.sin(2 * np.pi * t) + 0.3 * np.sin(4 * np.pi * t)

    def kind(X: np.ndarray) -> np.ndarray:
        t = X[:, 0]
        return np.where(t > 10, 2, np.where((t > 6) & (t < 6.5), 1, 0))

    return with_parts(f, lambda n: rng.uniform(0, 11, (n, 1)), kind, 1_000, 0.3, rng)


def plane(rng: np.random.Generator) -> Set:
    waves, shifts = 6 * rng.standard_t(3, (2, 200)), rng.uniform(0, 2 * np.pi, 200)
    sizes = rng.standard_normal(200) / 10

    def kind(X: np.ndarray) -> np.ndarray:
        hole = (np.abs(X - 0.5) < 0.1).all(axis=1)
        return np.where(X[:, 0] > 1, 2, np.where(hole, 1, 0))

    def inputs(n: int) -> np.ndarray:
        return rng.uniform(0, 1, (n, 2)) * [1.1, 1.0]

    return with_parts(lambda X: np.cos(X @ waves + shifts) @ sizes, inputs, kind, 4_000, 0.2, rng)


def linear(rng: np.random.Generator) -> Set:
    slopes = rng.standard_normal(20)

    def kind(X: np.ndarray) -> np.ndarray:
        return np.where(np.abs(X).max(axis=1) > 3, 2, 0)

    return with_parts(
        lambda X: X @ slopes, lambda n: rng.standard_normal((n, 20)), kind, 500, 0.5 * np.sqrt(slopes @ slopes), rng
    )


def additive(rng: np.random.Generator) -> Set:
    curves = [curve(rng) for _ in range(5)]

    def kind(X: np.ndarray) -> np.ndarray:
        return np.where(np.abs(X[:, 0]) > 2, 2, 0)

    def f(X: np.ndarray) -> np.ndarray:
        return np.asarray(sum(g(x) for g, x in zip(curves, X.T, strict=True)))

    return with_parts(f, lambda n: rng.uniform(-2.2, 2.2, (n, 5)).clip([-9, *[-2] * 4], [9, *[2] * 4]), kind, 1_500,
                      0.7, rng)  # fmt: skip


def pairs(rng: np.random.Generator) -> Set:
    curves = [curve(rng) for _ in range(10)]
    X = rng.uniform(-2, 2, (20_000 + TEST, 8))
    f = sum(g(x) for g, x in zip(curves, X.T, strict=False)) + curves[8](X[:, 0]) * X[:, 1]
    f = f + curves[9](X[:, 2]) * X[:, 3]
    return split(X, f + 0.3 * f.std() * rng.standard_normal(len(X)), 20_000, rng)


def together(p: int, n: int) -> Callable[[np.random.Generator], Set]:
    def make(rng: np.random.Generator) -> Set:
        f, X = ridges(p, 6, rng), rng.uniform(-2, 2, (n + TEST, p))
        return split(X, f(X) + 0.1 * rng.standard_normal(len(X)), n, rng)

    return make


def steps(rng: np.random.Generator) -> Set:
    X = rng.uniform(0, 1, (2_000 + TEST, 4))
    f = np.zeros(len(X))
    for _ in range(8):
        j, k = rng.integers(4, size=2)
        f += rng.standard_normal() * ((X[:, j] > rng.uniform(0.2, 0.8)) & (X[:, k] > rng.uniform(0, 0.5)))
    return split(X, f + 0.2 * f.std() * rng.standard_normal(len(X)), 2_000, rng)


def heavy_tails(rng: np.random.Generator) -> Set:
    curves, X = [curve(rng) for _ in range(3)], rng.uniform(-2, 2, (2_000 + TEST, 4))
    f = curves[0](X[:, 0]) + curves[1](X[:, 1]) + X[:, 2] * curves[2](X[:, 3])
    return split(X, f + 0.3 * f.std() * rng.standard_t(2.5, len(X)), 2_000, rng)


def mixed(rng: np.random.Generator) -> Set:
    """Skewed and correlated numbers, counts, a switch and grades, thresholds, noise that depends on the switch."""
    n = 3_000 + TEST
    Z = rng.standard_normal((n, 8))
    Z[:, 1] += Z[:, 0]
    Z[:, 3] += Z[:, 2]
    X = np.exp(0.7 * Z)
    X[:, 4], X[:, 5], X[:, 6] = np.round(X[:, 4]), Z[:, 5] > 0, rng.integers(1, 6, n)
    f = np.log1p(X[:, 0] * X[:, 2]) + 0.5 * X[:, 5] * np.sqrt(X[:, 3]) + 0.3 * (X[:, 6] > 3) * Z[:, 7]
    f += rng.uniform(0.2, 0.6) * (X[:, 1] > 1.5)
    return split(X, f + 0.3 * np.sqrt(0.3 + X[:, 5]) * rng.standard_normal(n), 3_000, rng)


def friedman(number: int, n: int) -> Callable[[np.random.Generator], Set]:
    def make(rng: np.random.Generator) -> Set:
        from sklearn import datasets

        noise = {1: {"n_features": 10, "noise": 1.0}, 2: {"noise": 50.0}, 3: {"noise": 0.1}}[number]
        X, y = getattr(datasets, f"make_friedman{number}")(n + TEST, random_state=int(rng.integers(2**31)), **noise)
        return split(X, y, n, rng)

    return make


def diabetes(rng: np.random.Generator) -> Set:
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True)
    return split(X, y, 300, rng)


def cells(rng: np.random.Generator) -> Set:
    """Smoothness of cell nuclei by nine other measurements: scikit-learn's breast cancer data."""
    from sklearn.datasets import load_breast_cancer

    X = load_breast_cancer().data[:, :10]
    return split(np.delete(X, 4, axis=1), X[:, 4], 400, rng)


def houses(rng: np.random.Generator) -> Set:
    """Log price by longitude and latitude, the paper's halves."""
    from tuckergp.data.datasets import load_california
    from tuckergp.paper.california_models import split_of

    halves = split_of(load_california(os.environ.get("TUCKERGP_DATA"), download=False))
    train, test = (Rows(np.column_stack(list(half.X.values())), half.y) for half in (halves.train, halves.test))
    some = rng.permutation(len(test.y))[:TEST]
    return Set(train, {"range": Rows(test.X[some], test.y[some])})


def wind(rng: np.random.Generator) -> Set:
    """Wind speed by latitude, longitude and day in one year, 12 stations: half of the values."""
    folder = Path(os.environ["TUCKERGP_DATA"]) / "wind"
    stations = [line.split(",") for line in (folder / "stations.csv").read_text().split("\n")[1:] if line]
    names = (folder / "wind.csv").read_text().split("\n", 1)[0].strip().split(",")[3:]
    speed = np.genfromtxt(folder / "wind.csv", delimiter=",", skip_header=1)[:365, 3:]
    places = {row[0]: [float(row[-2]), float(row[-1])] for row in stations}
    X = np.array([[*places[name], day] for day in range(365) for name in names])
    return split(X, speed.ravel(), 2_000, rng)


def statsmodels_table(name: str) -> Any:
    """A data frame of statsmodels, which is no dependency: pip install statsmodels."""
    return import_module(f"statsmodels.datasets.{name}").load_pandas().data


def carbon_dioxide(rng: np.random.Generator) -> Set:
    """Carbon dioxide over Mauna Loa by day; two years are a gap, and the last three lie beyond."""
    values = statsmodels_table("co2")["co2"].dropna()
    day, y = values.index.to_numpy().astype("datetime64[D]").astype(float), values.to_numpy()
    year = 1970 + day / 365.25
    gap, beyond = (year > 1980) & (year < 1982), year > year.max() - 3
    found = split(day[~gap & ~beyond, None], y[~gap & ~beyond], 1_200, rng)
    return found._replace(parts={**found.parts, "gap": Rows(day[gap, None], y[gap]),
                                 "beyond": Rows(day[beyond, None], y[beyond])})  # fmt: skip


def sea(rng: np.random.Generator) -> Set:
    """Temperature of the sea off Peru by year and month."""
    table = statsmodels_table("elnino")
    years, y = table["YEAR"].to_numpy(), table.iloc[:, 1:].to_numpy()
    X = np.array([[year, month] for year in years for month in range(1, 13)], dtype=float)
    return split(X, y.ravel(), 500, rng)


def affairs(rng: np.random.Generator) -> Set:
    """A survey: most answers are 0, some are large; grades and ages."""
    table = statsmodels_table("fair").to_numpy(dtype=float)
    return split(table[:, :-1], table[:, -1], 3_000, rng)


def visits(rng: np.random.Generator) -> Set:
    """Visits to a doctor, by insurance and health."""
    table = statsmodels_table("randhie").to_numpy(dtype=float)
    return split(table[:, 1:], table[:, 0], 5_000, rng)


SETS: dict[str, Callable[[np.random.Generator], Set]] = {
    "wave": wave,
    "trend and season": trend_and_season,
    "plane": plane,
    "linear": linear,
    "additive": additive,
    "friedman 1": friedman(1, 1_000),
    "friedman 2": friedman(2, 1_000),
    "friedman 3": friedman(3, 1_000),
    "together, 3 columns": together(3, 1_000),
    "together, 8 columns": together(8, 1_500),
    "steps": steps,
    "heavy tails": heavy_tails,
    "mixed": mixed,
    "diabetes": diabetes,
    "cells": cells,
    "wind": wind,
    "houses": houses,
    "together, 6 columns": together(6, 10_000),
    "pairs": pairs,
    "carbon dioxide": carbon_dioxide,
    "sea": sea,
    "affairs": affairs,
    "visits": visits,
}
