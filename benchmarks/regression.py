"""Regression with chain modes: time and memory against the number of observations, beside an exact GP.

Observations lie at random cells of a 5,000 x 5,000 grid. Ours is `TuckerGPRegressor` with a Matern-1/2 chain on either
axis, rank 5, a full core, through its public API; the peer is scikit-learn's GaussianProcessRegressor with a
Matern-1/2 kernel (isotropic; the same work), its numbers given, where it still runs. Then `TuckerGPRegressor()` as
it is on two columns whose values all differ, so that a line has as many knots as there are rows. Each is a process of
its own::

    python benchmarks/regression.py -o benchmarks/results/regression.json

Every cell is written as soon as it is done; those that the file has are not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
import warnings
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from reports import Resumed, put

GRID, RANK, NOISE, LENGTHSCALE = 5_000, 5, 0.3, 300.0
OURS = (10_000, 100_000, 1_000_000, 10_000_000)
PEER = (1_000, 2_000, 4_000, 8_000)
DEFAULT = (10_000, 100_000, 1_000_000)
WARMUP, DRAWS, HELD = 5, 10, 10_000
LONGEST = 1_200.0  # seconds of learning with the defaults


def problem(n: int, cells: bool = True) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A sum of three products of smooth waves with noise, at random cells or anywhere; and inputs held out, without."""
    rng = np.random.default_rng(0)
    X = (rng.integers(GRID, size=(n + HELD, 2)) if cells else GRID * rng.random((n + HELD, 2))).astype(float)
    at = np.pi * X / GRID
    f = sum(np.sin(k * at[:, 0]) * np.sin(k * at[:, 1] + 1) for k in (2, 3, 4))
    y = f[:n] + NOISE * rng.standard_normal(n)
    return X[:n], y, X[n:], f[n:]


def peak() -> int:
    """Bytes of memory at the most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def ours(n: int) -> dict[str, Any]:
    """Seconds of a sweep (median) and of all the rest; bytes that grew from before the fit to its peak."""
    from tuckergp import Mode, TuckerGPRegressor
    from tuckergp.inference import Gibbs
    from tuckergp.kernels import Matern12

    def model() -> TuckerGPRegressor:
        modes = [Mode(column, Matern12(LENGTHSCALE)) for column in ("x0", "x1")]
        return TuckerGPRegressor(modes, RANK, Gibbs(draws=DRAWS, warmup=WARMUP), core="full", random_state=0)

    small = problem(1_000)
    model().fit(*small[:2])  # compiles, or reads what was compiled
    X, y, new, truth = problem(n)
    before, began, times = peak(), time.perf_counter(), []
    fitted = model().fit(X, y, callback=lambda info: times.append(time.perf_counter()))
    total, grown = time.perf_counter() - began, peak() - before
    sweeps = np.diff(times)
    return {
        "sweep_seconds": float(np.median(sweeps)),
        "set_up_seconds": total - float(sweeps.mean()) * (WARMUP + DRAWS),
        "total_seconds": total,
        "grown_bytes": grown,
        "data_bytes": X.nbytes + y.nbytes,
        "rmse": float(np.sqrt(np.mean((fitted.predict(new) - truth) ** 2))),
    }


def default(n: int) -> dict[str, Any]:
    """A fit that is given nothing: what it chose, its sweeps in the time allowed, CPU seconds and bytes."""
    from tuckergp import TuckerGPRegressor

    TuckerGPRegressor(random_state=0).fit(*problem(1_000, cells=False)[:2])  # compiles
    X, y, new, truth = problem(n, cells=False)
    before, began, times = peak(), time.process_time(), []
    fitted = TuckerGPRegressor(random_state=0).fit(
        X, y, max_time=LONGEST, callback=lambda info: times.append(time.process_time())
    )
    total, grown = time.process_time() - began, peak() - before
    return {
        "chosen": fitted.choice_.modes,
        "sweeps": len(times),
        "sweep_cpu_seconds": float(np.median(np.diff(times))),
        "total_cpu_seconds": total,
        "grown_bytes": grown,
        "data_bytes": X.nbytes + y.nbytes,
        "rmse": float(np.sqrt(np.mean((fitted.predict(new) - truth) ** 2))),
    }


def peer(n: int) -> dict[str, Any]:
    """One fit of the exact GP with numbers given: seconds and bytes."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import Matern

    X, y, new, truth = problem(n)
    kernel = Matern(LENGTHSCALE, (1e-9, 1e9), nu=0.5)
    before, began = peak(), time.perf_counter()
    fitted = GaussianProcessRegressor(kernel, alpha=NOISE**2, optimizer=None).fit(X, y)
    total, grown = time.perf_counter() - began, peak() - before
    return {
        "total_seconds": total,
        "grown_bytes": grown,
        "data_bytes": X.nbytes + y.nbytes,
        "rmse": float(np.sqrt(np.mean((fitted.predict(new[:1000]) - truth[:1000]) ** 2))),
    }


WORKERS = {"ours": ours, "peer": peer, "default": default}


def elsewhere(name: str, n: int) -> dict[str, Any]:
    """Run a contestant in a process of its own."""
    command = [sys.executable, "-W", "ignore", __file__, "--worker", name, "--sizes", str(n)]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    found: dict[str, Any] = json.loads(answer)
    print(f"{name}, {n:,}: {found}", file=sys.stderr, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--sizes", default=",".join(map(str, OURS)))
    parser.add_argument("--peer-sizes", default=",".join(map(str, PEER)))
    parser.add_argument("--default-sizes", default=",".join(map(str, DEFAULT)))
    parser.add_argument("--worker", choices=tuple(WORKERS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            print(json.dumps(WORKERS[options.worker](int(options.sizes))))
        return
    asked = (options.sizes, options.peer_sizes, options.default_sizes)
    sizes, peers, defaults = ([int(n) for n in text.split(",") if n] for text in asked)
    head = {
        "command": "python benchmarks/regression.py",
        "grid": GRID,
        "rank": RANK,
        "machine": {"cores": os.cpu_count(), "system": platform.system(), "load_average": os.getloadavg()[0]},
        "versions": {name: version(name) for name in ("tuckergp", "numpy", "scipy", "numba", "scikit-learn")},
    }
    report = Resumed(head, "cells", options.output)
    for name, counts in (("peer", peers), ("ours", sizes), ("default", defaults)):
        for n in counts:
            report.cell((name, str(n)), partial(elsewhere, name, n))
    if options.output is None:
        put(report.report, None)


if __name__ == "__main__":
    main()
