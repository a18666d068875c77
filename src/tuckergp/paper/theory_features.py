"""Errors of phi(x)'phi(x') as an estimate of k(x, x') on real inputs, by feature map and number of features.

Random features and hashing are unbiased, with variances in closed form; Nystrom and Cholesky features are not random in
that sense and biased: they never exceed the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuckergp.data.datasets import California, MovieLens
from tuckergp.data.tables import Table
from tuckergp.features import Cholesky, Exact, FeatureMap, Fourier, Hashing, Nystrom
from tuckergp.kernels import SE, Cosine, Identity, Kernel, Linear, Matern32
from tuckergp.paper.california_models import GIVEN
from tuckergp.paper.experiment import Figures
from tuckergp.paper.movielens_data import entities_of
from tuckergp.random import stream

__all__ = ["FIXED", "MAPS", "Case", "bias", "errors", "hashed_cases", "smooth_cases", "spread"]

Floats = npt.NDArray[np.float64]

FITTED, PAIRED = 2_000, 500
"""The numbers of inputs that features are fitted to, and of those whose pairs are compared."""
LENGTHSCALE = 0.5
"""The lengthscale of places, in standard deviations of longitude and latitude; longitude alone has the authors'."""
NOTHING_LEFT = 1e-6
"""Errors below this are rounding and jitter; slopes are fitted to those above."""
INPUTS_KEY = 2_000_003  # names the stream that draws the inputs

MAPS: dict[str, Callable[[int], FeatureMap]] = {
    "Fourier, phases": lambda n: Fourier(n, pairs=False),
    "Fourier, pairs": lambda n: Fourier(n),
    "Nystrom, random": lambda n: Nystrom(n, "random"),
    "Nystrom, k-means": lambda n: Nystrom(n),
    "Cholesky": lambda n: Cholesky(max_features=n),
    "hashing": Hashing,
    "hashing, of exact features": lambda n: Hashing(n, base=Exact()),
}
FIXED = ("Cholesky",)
"""The feature maps without randomness."""


@dataclass(frozen=True)
class Case:
    """Inputs, a kernel on them, and the maps that are compared."""

    inputs: Table
    kernel: Kernel
    maps: tuple[str, ...]


def smooth_cases(california: California) -> dict[str, Case]:
    """California: the longitude with the authors' lengthscale, and places; both whitened."""
    table = california.table
    rows = stream(0, INPUTS_KEY).permutation(len(table))[:FITTED]
    columns = {}
    for name in ("longitude", "latitude"):
        x = table.numeric(name)
        columns[name] = ((x - x.mean()) / x.std())[rows]
    places = Table(columns, "places", len(rows))
    maps = ("Fourier, phases", "Fourier, pairs", "Nystrom, random", "Nystrom, k-means", "Cholesky")
    cases = {}
    for kernel, title in ((SE, "SE"), (Matern32, "Matern32")):
        cases[f"longitude, {title}"] = Case(places.select(["longitude"]), kernel(GIVEN.longitude), maps)
        cases[f"places, {title}"] = Case(places, kernel(LENGTHSCALE), maps)
    return cases


def hashed_cases(movielens: MovieLens) -> dict[str, Case]:
    """MovieLens: ids of users, their binary attributes as in the paper, and the sets of films that they rated."""
    users = entities_of(movielens).users
    rated = {user: [str(item) for item in items] for user, items in _sets(movielens.ratings).items()}
    films = np.empty(len(users), dtype=object)
    films[:] = [rated[user] for user in users["user_id"].tolist()]
    table = Table({**users.columns, "rated": films}, "users", len(users))
    table = table.take(stream(0, INPUTS_KEY).permutation(len(users))[:PAIRED])
    return {
        "user ids, identity": Case(table, Identity("user_id"), ("hashing",)),
        "user attributes, linear": Case(table, Linear("age", "sex", "occupation"), ("hashing",)),
        "rated films, cosine": Case(table, Cosine("rated"), ("hashing, of exact features",)),
    }


def _sets(ratings: Table) -> dict[int, list[int]]:
    rated: dict[int, list[int]] = {}
    for user, item in zip(ratings["user_id"].tolist(), ratings["item_id"].tolist(), strict=True):
        rated.setdefault(user, []).append(item)
    return rated


def spread(name: str, kernel: Kernel, inputs: Table) -> Floats | None:
    """n times the variance of phi(x)'phi(y) of each pair, in closed form; None for maps without one.

    Fourier with k of unit variance: 1 + k(2 d) / 2 - k(d)^2 for phases and 1 + k(2 d) - 2 k(d)^2 for pairs, d the
    difference of the inputs. Hashing: |x|^2 |y|^2 + (x'y)^2 - 2 sum_i x_i^2 y_i^2 of the features hashed.
    """
    K = kernel(inputs)
    if name.startswith("Fourier"):
        doubled = Table({column: 2 * inputs.numeric(column) for column in inputs.columns}, "doubled", len(inputs))
        twice = kernel(doubled)
        return 1 + twice - 2 * K**2 if "pairs" in name else 1 + twice / 2 - K**2
    if name.startswith("hashing"):
        squares = sparse.csr_array(Exact().fit_transform(inputs, kernel)).power(2)
        length = np.asarray(squares.sum(axis=1)).ravel()
        shared: Floats = np.asarray((squares @ squares.T).todense())
        # rounding may leave a little below 0 where nothing varies
        return np.maximum(np.outer(length, length) + K**2 - 2 * shared, 0.0)
    return None


def _pairs(matrix: Floats) -> Floats:
    """The entries of a symmetric matrix for each pair once, including each input with itself."""
    return matrix[np.triu_indices(len(matrix))]


def errors(case: Case, name: str, sizes: Sequence[int], seeds: int) -> Figures:
    """Errors over the pairs of inputs for each number of features: mean and sd over seeds, and slopes."""
    inputs = case.inputs.take(np.arange(min(PAIRED, len(case.inputs))))
    K, variance = _pairs(case.kernel(inputs)), spread(name, case.kernel, inputs)
    runs = 1 if name in FIXED else seeds
    rms, worst, signed = (np.empty((runs, len(sizes))) for _ in range(3))
    for seed in range(runs):
        for i, n in enumerate(sizes):
            gap = _pairs(MAPS[name](n).fit(case.inputs, case.kernel, random_state=seed).gram(inputs)) - K
            rms[seed, i], worst[seed, i], signed[seed, i] = np.sqrt(np.mean(gap**2)), np.abs(gap).max(), gap.mean()
    figures: Figures = {"n": list(sizes), "seeds": runs, "zero": _digits(np.sqrt(np.mean(K**2)))}
    for figure, values in (("rms", rms), ("max", worst), ("signed", signed)):
        figures[figure] = [_digits(value) for value in values.mean(axis=0)]
        figures[f"{figure} sd"] = [_digits(value) for value in values.std(axis=0, ddof=1)] if runs > 1 else None
    if variance is not None:
        level = np.sqrt(_pairs(variance).mean())
        figures["theory"] = [_digits(level / np.sqrt(n)) for n in sizes]
    slopes = [slope for slope in (_slope(sizes, line) for line in rms) if slope is not None]
    figures["slope"] = round(float(np.mean(slopes)), 3) if slopes else None
    figures["slope sd"] = round(float(np.std(slopes, ddof=1)), 3) if len(slopes) > 1 else None
    return figures


def _slope(sizes: Sequence[int], line: Floats) -> float | None:
    """The slope of log error against log n by least squares, where there is an error; None for fewer than two."""
    left = line > NOTHING_LEFT
    if left.sum() < 2:
        return None
    return float(np.polyfit(np.log(np.asarray(sizes)[left]), np.log(line[left]), 1)[0])


def bias(case: Case, name: str, n: int, maps: int, count: int) -> Figures:
    """For many independent maps: the mean error over its standard error by `spread`, and the ratio of variances."""
    inputs = case.inputs.take(np.arange(min(count, len(case.inputs))))
    K, variance = _pairs(case.kernel(inputs)), spread(name, case.kernel, inputs)
    if variance is None:
        raise ValueError(f"{name} features are not unbiased.")
    total, squares = np.zeros_like(K), np.zeros_like(K)
    for seed in range(maps):
        gap = _pairs(MAPS[name](n).fit(inputs, case.kernel, random_state=seed).gram(inputs)) - K
        total, squares = total + gap, squares + gap**2
    error = np.sqrt(_pairs(variance) / n / maps)
    varies = error > np.sqrt(np.finfo(np.float64).eps)
    z = total[varies] / maps / error[varies]
    return {
        "n": n,
        "maps": maps,
        "pairs": int(varies.sum()),
        "rms z": round(float(np.sqrt(np.mean(z**2))), 3),
        "max z": round(float(np.abs(z).max()), 2),
        "variance": round(float(squares.sum() / maps / (_pairs(variance).sum() / n)), 3),
    }


def _digits(value: float) -> float:
    return float(f"{value:.3g}")
