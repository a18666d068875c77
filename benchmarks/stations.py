"""Wind at a station without measurements: each of twelve Irish stations is left out and predicted from the others.

Stations are places of a field, days lie on a line, with a season; daily means over the last years of the data. Beside
it, what needs no model: the nearest station, and the others weighted by inverse squared distance::

    TUCKERGP_DATA=... python benchmarks/stations.py -o benchmarks/results/stations.json
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from gibbs import facts
from reports import Resumed

KERNELS = ("Matern12", "Matern32")
DAYS, RANK, LENGTHS = 730, 6, {"draws": 60, "warmup": 60}


def speeds(days: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Names of the stations, their longitudes and latitudes (12, 2), and their speeds on the last days, (12, days)."""
    from tuckergp.data.datasets import load_wind

    wind = load_wind(os.environ.get("TUCKERGP_DATA"), download=False)
    codes, names = wind.stations["station"].tolist(), wind.stations["name"]
    places = np.column_stack([wind.stations["longitude"], wind.stations["latitude"]])
    day = np.unique(wind.values["date"], return_inverse=True)[1]
    grid = np.full((len(codes), int(day.max()) + 1), np.nan)
    grid[[codes.index(code) for code in wind.values["station"].tolist()], day] = wind.values["speed"]
    return names, places, grid[:, -days:]


def by_field(places: np.ndarray, grid: np.ndarray, left: int, kernel: str, lengths: dict[str, int]) -> dict[str, float]:
    """Error and coverage at the station that was left out, by a field of stations times a line of days."""
    from tuckergp import Mode, TuckerGPRegressor, kernels

    began = time.process_time()
    field = Mode(["longitude", "latitude"], getattr(kernels, kernel)(2.0))
    modes = [field, Mode("day", kernels.Periodic(365.25) + kernels.Matern12(2.0))]
    station, day = np.nonzero(~np.isnan(grid) & (np.arange(len(grid)) != left)[:, None])
    model = TuckerGPRegressor(modes, RANK, **lengths, random_state=0)
    model.fit({"longitude": places[station, 0], "latitude": places[station, 1], "day": day}, grid[station, day])
    asked = np.flatnonzero(~np.isnan(grid[left]))
    here = {
        name: np.full(len(asked), value) for name, value in zip(("longitude", "latitude"), places[left], strict=True)
    }
    mean, interval = model.predict({**here, "day": asked}, interval=0.9)
    truth = grid[left, asked]
    return {
        "field": float(np.sqrt(np.mean((mean - truth) ** 2))),
        "coverage": float(np.mean((interval[:, 0] < truth) & (truth < interval[:, 1]))),
        "bias": float(np.mean(mean - truth)),
        "cpu_seconds": time.process_time() - began,
    }


def without_model(places: np.ndarray, grid: np.ndarray, left: int) -> dict[str, float]:
    """Errors of the nearest station, and of the others by inverse squared distance."""
    others = np.flatnonzero(np.arange(len(grid)) != left)
    east_and_north = (places[others] - places[left]) * [np.cos(np.radians(places[left, 1])), 1.0]
    distance = (east_and_north**2).sum(axis=1)
    weights = np.where(np.isnan(grid[others]), 0.0, 1 / distance[:, None])
    weighted = (weights * np.nan_to_num(grid[others])).sum(axis=0) / weights.sum(axis=0)
    guesses = {"nearest": grid[others[np.argmin(distance)]], "weighted": weighted}
    return {name: float(np.sqrt(np.nanmean((guess - grid[left]) ** 2))) for name, guess in guesses.items()}


def cell(places: np.ndarray, grid: np.ndarray, left: int, kernel: str, lengths: dict[str, int]) -> dict[str, Any]:
    """All scores at one station."""
    sd = float(np.nanstd(grid[left]))
    return {"sd": sd, **without_model(places, grid, left), **by_field(places, grid, left, kernel, lengths)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one station, few days and draws")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # short chains are among what is measured
    names, places, grid = speeds(60 if options.quick else DAYS)
    lengths = {"draws": 3, "warmup": 3} if options.quick else LENGTHS
    head = {"command": "python benchmarks/stations.py", "machine": facts(), "days": grid.shape[1], "lengths": lengths}
    report = Resumed(head, "cells", options.output)
    for kernel in KERNELS:
        for left, name in enumerate(names[:1] if options.quick else names):
            found = report.cell((kernel, str(name)), partial(cell, places, grid, left, kernel, lengths))
            if found is not None:
                print(kernel, name, found, sep=" | ", flush=True)


if __name__ == "__main__":
    main()
