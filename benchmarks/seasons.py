"""Forecasts by `TuckerGPRegressor()` as it is, of made series with seasons that nobody tells it of, and without any.

Beside it the same lines without seasons, and Holt and Winters' exponential smoothing of statsmodels, which is told the
period and has no missing rows (others are left out for it)::

    python benchmarks/seasons.py -o benchmarks/results/seasons.json
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from gibbs import facts
from reports import Resumed

SEEDS = 5
LEVELS = (0.05, 0.25, 0.75, 0.95)


class Series(NamedTuple):
    """Times, values, which of them are known, and the period of the season; None where there is none."""

    t: np.ndarray
    y: np.ndarray
    known: np.ndarray
    period: int | None


def ups(n: int, kept: float, rng: np.random.Generator) -> np.ndarray:
    """Ups and downs of standard deviation 1 that last some rows."""
    out = rng.standard_normal(n)
    for k in range(1, n):
        out[k] = kept * out[k - 1] + np.sqrt(1 - kept**2) * out[k]
    return out


def shape(t: np.ndarray, period: int, rng: np.random.Generator) -> np.ndarray:
    """A season of standard deviation 1: random steps, smoothed a little."""
    steps = rng.standard_normal(period)
    steps = steps + 0.5 * (np.roll(steps, 1) + np.roll(steps, -1))
    return ((steps - steps.mean()) / steps.std())[t.astype(int) % period]


def months(rng: np.random.Generator) -> Series:
    t = np.arange(132.0)
    y = 0.03 * t + shape(t, 12, rng) + 0.1 * rng.standard_normal(132)
    return Series(t, y, t < 120, 12)


def weeks(rng: np.random.Generator) -> Series:
    t = np.arange(414.0)
    y = 0.005 * t + (t % 7 >= 5) * 2.0 + 0.4 * ups(414, 0.9, rng) + 0.2 * rng.standard_normal(414)
    return Series(t, y, t < 400, 7)


def hours(rng: np.random.Generator) -> Series:
    t = np.arange(624.0)
    y = shape(t, 24, rng) + 0.7 * ups(624, 0.95, rng) + 0.1 * rng.standard_normal(624)
    return Series(t, y, t < 600, 24)


def years(rng: np.random.Generator) -> Series:
    t = np.arange(5.0 * 365 + 60)
    y = np.sin(2 * np.pi * t / 365 + rng.uniform(0, 6)) + 0.5 * (t % 7 >= 5) + 0.3 * ups(len(t), 0.9, rng)
    some = np.sort(rng.permutation(5 * 365)[:1_200])
    return Series(t, y + 0.2 * rng.standard_normal(len(t)), np.isin(t, some), 365)


def noisy(rng: np.random.Generator) -> Series:
    t = np.arange(650.0)
    y = 0.003 * t + np.sin(2 * np.pi * t / 50) + 0.6 * rng.standard_normal(650)
    return Series(t, y, t < 600, 50)


def none(rng: np.random.Generator) -> Series:
    t = np.arange(550.0)
    y = 0.003 * t + ups(550, 0.95, rng) + 0.3 * rng.standard_normal(550)
    return Series(t, y, t < 500, None)


KINDS: dict[str, Callable[[np.random.Generator], Series]] = {
    "months": months, "weeks": weeks, "hours": hours, "years and weeks, days missing": years, "noisy": noisy,
    "no season": none,
}  # fmt: skip


def judged(mean: np.ndarray, y: np.ndarray, ends: np.ndarray | None = None) -> dict[str, float]:
    """RMSE, and how often intervals of 50 and 90 % hold."""
    found = {"rmse": float(np.sqrt(np.mean((mean - y) ** 2)))}
    if ends is not None:
        for name, low, high in (("50", 1, 2), ("90", 0, 3)):
            found[f"coverage_{name}"] = float(np.mean((ends[:, low] < y) & (y < ends[:, high])))
    return found


def ours(data: Series, seed: int, seasons: bool = True) -> dict[str, Any]:
    """The defaults, or a trend and a smooth curve alone."""
    from tuckergp import Mode, TuckerGPRegressor
    from tuckergp.kernels import Linear, Matern32

    given: dict[str, Any] = {} if seasons else {"modes": [Mode("t", Linear() + Matern32(1.0), whiten=True)]}
    model = TuckerGPRegressor(**given, random_state=seed).fit({"t": data.t[data.known]}, data.y[data.known])
    later = data.t > data.t[data.known].max()
    mean, ends = model.predict({"t": data.t[later]}, quantiles=list(LEVELS))
    chosen = {"chosen": model.choice_.modes, "seasons": model.choice_.seasons} if model.choice_ else {}
    return {**chosen, **judged(mean, data.y[later], ends)}


def smoothing(data: Series, seed: int) -> dict[str, Any] | None:
    """Additive trend and season by statsmodels; None for series with missing rows."""
    later = data.t > data.t[data.known].max()
    if not (data.known | later).all():
        return None
    how: dict[str, Any] = {} if data.period is None else {"seasonal": "add", "seasonal_periods": data.period}
    make = import_module("statsmodels.tsa.holtwinters").ExponentialSmoothing
    fitted = make(data.y[data.known], trend="add", damped_trend=True, **how).fit()
    return judged(fitted.forecast(int(later.sum())), data.y[later])


MODELS: dict[str, Callable[[Series, int], dict[str, Any] | None]] = {
    "defaults": ours,
    "lines without seasons": partial(ours, seasons=False),
    "exponential smoothing": smoothing,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one series of months")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    head = {"command": "python benchmarks/seasons.py", "machine": facts(), "seeds": 1 if options.quick else SEEDS}
    report = Resumed(head, "cells", options.output)
    for kind in list(KINDS)[: 1 if options.quick else None]:
        for seed in range(head["seeds"]):
            data = KINDS[kind](np.random.default_rng([seed, list(KINDS).index(kind)]))
            for model, run in MODELS.items():
                try:
                    found = report.cell((kind, model, str(seed)), partial(run, data, seed))
                except ImportError as error:  # statsmodels is no dependency
                    print(model, "is left out:", error, flush=True)
                    continue
                print(kind, model, seed, found, flush=True)


if __name__ == "__main__":
    main()
