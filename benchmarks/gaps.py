"""Do 90 % intervals of f cover it in the range of the data, in a gap between them, and outside, with each feature map.

Functions are drawn from SE(0.3), observed with noise on two pieces of the line. An exact GP with the true
hyperparameters is what can be reached::

    python benchmarks/gaps.py -o benchmarks/results/gaps.json
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from gibbs import facts
from reports import put

LENGTHSCALE, NOISE, N = 0.3, 0.2, 200
PLACES = {"in range": (0.0, 4.0, 40), "in a gap": (4.2, 4.8, 20), "outside": (9.3, 11.0, 20)}
LEVELS = (0.05, 0.95)


def data(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Inputs and targets, and where and what f is to be predicted."""
    from tuckergp.kernels import SE

    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.uniform(0, 4, N // 2), rng.uniform(5, 9, N // 2)])
    asked = np.concatenate([np.linspace(*place) for place in PLACES.values()])
    values, vectors = np.linalg.eigh(SE(LENGTHSCALE)(np.concatenate([x, asked])))
    f = vectors @ (np.sqrt(np.maximum(values, 0)) * rng.standard_normal(len(values)))
    return x, f[:N] + NOISE * rng.standard_normal(N), asked, f[N:]


def exact(x: np.ndarray, y: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Quantiles of f by the Gaussian process that the data are drawn from."""
    from scipy.stats import norm

    from tuckergp.kernels import SE

    kernel = SE(LENGTHSCALE)
    gain = np.linalg.solve(kernel(x) + NOISE**2 * np.eye(len(x)), kernel(x, asked)).T
    mean, variance = gain @ y, 1 - (gain * kernel(asked, x)).sum(axis=1)
    return mean[:, None] + np.sqrt(variance)[:, None] * norm.ppf(LEVELS)


def learned(features: Any, seed: int, draws: int) -> Any:
    """The same by a regressor with these features."""

    def quantiles(x: np.ndarray, y: np.ndarray, asked: np.ndarray) -> np.ndarray:
        from tuckergp import Mode, TuckerGPRegressor
        from tuckergp.kernels import SE

        modes = [Mode("x", SE(LENGTHSCALE), features)]
        model = TuckerGPRegressor(modes, rank=1, draws=draws, warmup=draws // 2, random_state=seed)
        return model.fit({"x": x}, y).predict({"x": asked}, quantiles=list(LEVELS), include_noise=False)[1]

    return quantiles


def main() -> None:
    from tuckergp.features import Cholesky, Fourier, Nystrom

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few functions, few draws")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # features that are too few are among what is measured
    seeds, draws = (2, 20) if options.quick else (20, 150)
    maps = [Cholesky(), Cholesky(max_features=20), Nystrom(20), Nystrom(60), *(Fourier(50 * 2**k) for k in range(4))]
    where = np.repeat(list(PLACES), [place[2] for place in PLACES.values()])
    command = "python benchmarks/gaps.py"
    report: dict[str, Any] = {"command": command, "machine": facts(), "seeds": seeds, "draws": draws, "coverage": {}}
    for name, features in {"exact GP": None, **{repr(features): features for features in maps}}.items():
        inside: dict[str, list[float]] = {place: [] for place in PLACES}
        for seed in range(seeds):
            x, y, asked, f = data(seed)
            low, high = (exact if features is None else learned(features, seed, draws))(x, y, asked).T
            for place in PLACES:
                inside[place].append(float(((low < f) & (f < high))[where == place].mean()))
        report["coverage"][name] = {place: float(np.mean(shares)) for place, shares in inside.items()}
    put(report, options.output)


if __name__ == "__main__":
    main()
