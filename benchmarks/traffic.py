"""Places, days and times of day with missing cells: parking in Birmingham, metro in Hangzhou, taxis in New York.

One recipe for all: places are rows, days and times of day lie on lines, an identity core whose rank is chosen on
held-out training cells, and several short chains, because each stays near a local optimum of its own. Cells of 0 are
missing, as in the published comparisons; masks are drawn as in their code: one array of uniform numbers, seed 1000::

    TUCKERGP_DATA=... python benchmarks/traffic.py -o benchmarks/results/traffic.json

Every cell is written as soon as it is done; those that the file has are not run again.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from gibbs import facts
from reports import Resumed

SETS = {"birmingham": "Birmingham, parking", "hangzhou": "Hangzhou, metro", "nyc": "New York, taxis"}
GAPS = {"random 40 %": ("random", 0.4), "random 60 %": ("random", 0.6), "days 40 %": ("days", 0.4)}
HOURS = {"nyc": 24}
"""How many times of day the last axis of a tensor has per day, where it has days as well."""

RANKS = {"birmingham": (30, 50, 75, 100), "hangzhou": (5, 10, 30, 50), "nyc": (48, 64, 96, 128)}
LENGTHS = {"birmingham": (6, 40, 15), "hangzhou": (3, 30, 15), "nyc": (4, 40, 15)}
"""Chains, sweeps before the draws, and draws per chain."""

PUBLISHED = {
    "birmingham": {"random 40 %": (18.19, "BTMF"), "random 60 %": (25.90, "BTMF"), "days 40 %": (69.5, "BTMF")},
    "hangzhou": {"random 40 %": (30.03, "BTMF"), "random 60 %": (35.25, "BTMF"), "days 40 %": (37.86, "TRMF")},
    "nyc": {"random 40 %": (4.590, "BTMF"), "random 60 %": (4.812, "BTMF"), "days 40 %": (4.772, "BTMF")},
}
"""Quoted: the lowest RMSE in the comparisons of Chen and Sun, and the method that has it."""

PLAIN = {
    ("birmingham", "random 40 %"): (30, 25.57),
    ("birmingham", "random 60 %"): (30, 27.89),
    ("birmingham", "days 40 %"): (10, 74.3),
    ("hangzhou", "random 40 %"): (20, 33.68),
    ("hangzhou", "days 40 %"): (10, 76.11),
}
"""The rank of a plain decomposition, and the published RMSE of BGCP, which is one: to check how masks are read."""
SEED = 1000
OTHER_SEEDS = (1, 2)


class Split(NamedTuple):
    """A tensor with places first, then days and times of day, and its cells to learn from and to be scored on."""

    values: np.ndarray
    train: np.ndarray
    test: np.ndarray


def tensor(name: str) -> np.ndarray:
    """The values of a set: places (one axis or two), days, times of day."""
    with np.load(Path(os.environ["TUCKERGP_DATA"]) / "traffic" / f"{name}.npz") as stored:
        values = stored["tensor"].astype(np.float64)
    hours = HOURS.get(name)
    return values if hours is None else values.reshape(*values.shape[:2], -1, hours)


def observed(shape: tuple[int, ...], kind: str, rate: float, uniform: Any) -> np.ndarray:
    """Which cells are seen: all but a share of them at random, or but for whole days of a place."""
    if kind == "random":
        return np.round(uniform(shape) + 0.5 - rate) > 0
    return np.broadcast_to((np.round(uniform(shape[:-1]) + 0.5 - rate) > 0)[..., None], shape)


def published_split(values: np.ndarray, kind: str, rate: float, seed: int = SEED) -> Split:
    """The cells that the published comparisons hide and show; with another seed, others of the same kind."""
    seen = observed(values.shape, kind, rate, np.random.RandomState(seed).random_sample)
    return Split(values, np.argwhere((values != 0) & seen), np.argwhere((values != 0) & ~seen))


def held_out(split: Split, kind: str, rate: float) -> Split:
    """A split of the training cells alone, with half as many gaps of the same kind."""
    shown = np.zeros(split.values.shape, dtype=bool)
    shown[tuple(split.train.T)] = True
    seen = observed(split.values.shape, kind, rate / 2, np.random.default_rng(7).random)
    return Split(split.values, np.argwhere(shown & seen), np.argwhere(shown & ~seen))


def modes(axes: int) -> list[Any]:
    """Rows of places, a line of days and a line of times of day."""
    from tuckergp import Mode
    from tuckergp.kernels import Identity, Matern12, Matern32

    places = [Mode(f"place {axis}", Identity()) for axis in range(axes - 2)]
    return [*places, Mode("day", Matern12(3.0)), Mode("time", Matern32(3.0))]


def columns(cells: np.ndarray) -> dict[str, np.ndarray]:
    """Numbers of cells as a table."""
    names = [*(f"place {axis}" for axis in range(cells.shape[1] - 2)), "day", "time"]
    return dict(zip(names, cells.T, strict=True))


def scored(split: Split, rank: int, lengths: tuple[int, int, int], shrinkage: bool = False) -> dict[str, float]:
    """Errors and coverage at the cells to be scored on, and CPU seconds."""
    from tuckergp import TuckerGPRegressor
    from tuckergp.inference import Gibbs

    began = time.process_time()
    chains, warmup, draws = lengths
    inference = Gibbs(draws=draws, warmup=warmup, chains=chains, shrinkage=shrinkage, precision="float32")
    model = TuckerGPRegressor(modes(split.values.ndim), rank, inference, core="identity", random_state=0)
    model.fit(columns(split.train), split.values[tuple(split.train.T)])
    truth = split.values[tuple(split.test.T)]
    mean, interval = model.predict(columns(split.test), interval=0.9)
    return {
        "rmse": float(np.sqrt(np.mean((mean - truth) ** 2))),
        "coverage": float(np.mean((interval[:, 0] < truth) & (truth < interval[:, 1]))),
        "cpu_seconds": time.process_time() - began,
    }


def chosen_and_scored(name: str, gap: str, lengths: tuple[int, int, int], ranks: tuple[int, ...]) -> dict[str, Any]:
    """The rank with the smallest error on held-out training cells, and its score on the cells that are hidden."""
    split = published_split(tensor(name), *GAPS[gap])
    hidden = held_out(split, *GAPS[gap])
    short = (max(lengths[0] // 2, 1), *lengths[1:])
    choice = {str(rank): scored(hidden, rank, short) for rank in ranks}
    best = min(choice, key=lambda rank: choice[rank]["rmse"])
    return {"choice": choice, "rank": int(best), **scored(split, int(best), lengths)}


def plain(name: str, gap: str, rank: int, lengths: tuple[int, int]) -> dict[str, Any]:
    """A decomposition whose places, days and times are all rows, as BGCP is, by the seed of the mask."""
    from tuckergp import Mode, TuckerGPRegressor
    from tuckergp.inference import Gibbs
    from tuckergp.kernels import Identity

    warmup, draws = lengths
    errors = {}
    for seed in (SEED, *OTHER_SEEDS):
        split = published_split(tensor(name), *GAPS[gap], seed)
        rows = [Mode(column, Identity()) for column in columns(split.train)]
        inference = Gibbs(draws=draws, warmup=warmup, precision="float32")
        model = TuckerGPRegressor(rows, rank, inference, core="identity", random_state=0)
        model.fit(columns(split.train), split.values[tuple(split.train.T)])
        error = model.predict(columns(split.test)) - split.values[tuple(split.test.T)]
        errors[str(seed)] = float(np.sqrt(np.mean(error**2)))
    return {"rank": rank, "rmse": errors, "published": PLAIN[name, gap][1]}


def compared(rank: int, lengths: tuple[int, int, int]) -> dict[str, Any]:
    """Held-out training cells of Birmingham in gaps of days: one chain or several, with shrinkage and without."""
    kind, rate = GAPS["days 40 %"]
    split = held_out(published_split(tensor("birmingham"), kind, rate), kind, rate)
    total, warmup, draws = lengths
    runs = {"1 chain": (1, warmup, total * draws), f"{total} chains": lengths}
    return {
        f"{title}{', shrinkage' if shrinkage else ''}": scored(split, rank, each, shrinkage)
        for title, each in runs.items()
        for shrinkage in (False, True)
    }


def work(quick: bool) -> dict[tuple[str, ...], Any]:
    """All cells, quick ones first."""
    cells: dict[tuple[str, ...], Any] = {}
    for rank in (2,) if quick else (30,):
        cells["chains", f"rank {rank}"] = partial(compared, rank, (2, 2, 2) if quick else LENGTHS["birmingham"])
    for (name, gap), (rank, _) in PLAIN.items():
        cells["plain", name, gap] = partial(plain, name, gap, 2 if quick else rank, (2, 2) if quick else (60, 60))
    for name in ("birmingham",) if quick else SETS:
        for gap in GAPS:
            lengths, ranks = ((1, 2, 2), (1, 2)) if quick else (LENGTHS[name], RANKS[name])
            cells["sets", name, gap] = partial(chosen_and_scored, name, gap, lengths, ranks)
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few draws, one set")
    parser.add_argument("--only", default="", help="run cells whose name has this in it alone")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # short chains are what is measured
    head = {"command": "python benchmarks/traffic.py", "machine": facts(), "lengths": LENGTHS, "published": PUBLISHED}
    report = Resumed(head, "cells", options.output)
    for names, run in ((names, run) for names, run in work(options.quick).items() if options.only in " | ".join(names)):
        found = report.cell(names, run)
        if found is not None:
            print(*names, found, sep=" | ", flush=True)


if __name__ == "__main__":
    main()
