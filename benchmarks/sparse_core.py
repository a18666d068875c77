"""What sparse cores cost: a gradient and a Gibbs sweep against the number of entries Q and the number of modes D.

CPU times with one thread, the least of several rounds; slopes are of least squares in the logarithms::

    python benchmarks/sparse_core.py -o benchmarks/results/sparse_core.json
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numba
import numpy as np
from gibbs import facts
from reports import put
from threadpoolctl import threadpool_limits

from tuckergp.inference import Gibbs
from tuckergp.inference.base import Problem
from tuckergp.likelihoods import Gaussian
from tuckergp.model.cores import Random
from tuckergp.model.design import Design
from tuckergp.model.mode_table import ModeTable
from tuckergp.model.tucker import Parameters, TuckerModel, make_core
from tuckergp.residuals import Rows
from tuckergp.statistics.core import core_given_factors
from tuckergp.statistics.evidence import Evidence, Precision
from tuckergp.statistics.selection import entries_given_factors

RANK, ROWS = 10, 50
ENTRIES = (64, 128, 256, 512, 1024, 2048)
MODES = (2, 3, 4, 5, 6, 7, 8)
LARGE = {"modes": 6, "rank": 10, "entries": 60}


def problem_of(entries: int, modes: int, n: int) -> tuple[Problem, Parameters]:
    """Data from the model, with a mode of rows and a constant each; and the parameters they were drawn with."""
    rng = np.random.default_rng(0)
    table = ModeTable(np.ones((ROWS, 1)), Rows.of(ROWS), ROWS, (slice(0, 1),))
    index = rng.integers(ROWS, size=(n, modes)).astype(np.int32)
    design = Design((table,) * modes, index)
    shape = make_core(Random(entries), [RANK] * modes, rng)
    model = TuckerModel(shape, Gaussian(0.1), shape.default_sigma_u(), shape.default_sigma_w())
    truth = model.start(design, rng)
    f = model.predict(truth, design)
    y = f / f.std() + np.sqrt(0.1) * rng.standard_normal(n)
    return Problem(model, design, y), truth


def least(job: Callable[[], object], rounds: int) -> float:
    """CPU seconds of the fastest round, after one to warm up."""
    job()
    times = []
    for _ in range(rounds):
        start = time.process_time()
        job()
        times.append(time.process_time() - start)
    return min(times)


def passes(entries: int, modes: int, n: int, rounds: int) -> dict[str, float]:
    """Microseconds an observation of every pass."""
    problem, at = problem_of(entries, modes, n)
    model, design, y = problem.model, problem.design, problem.y
    psi, precision, prior = model.factors(at, design), Precision(10.0), model.sigma_w**-2
    rng = np.random.default_rng(1)
    gibbs = Gibbs()
    state = gibbs.init(problem, rng)
    data = problem.sorted[0]
    learned = replace(model.core, share=0.5)
    jobs: dict[str, Callable[[], object]] = {
        "gradient": lambda: model.log_joint_and_gradient(at, design, y),
        "rows of one mode": lambda: Evidence(data, y, precision, model.core, 0, psi, at.W).statistics(),
        "core": lambda: core_given_factors(model.core, psi, design.index, data, y, precision, prior, at.W, rng),
        "learned core": lambda: entries_given_factors(learned, psi, design.index, y, precision, prior, at.W, rng),
        "sweep": lambda: gibbs.step(problem, state, rng),
    }
    found = {name: 1e6 * least(job, rounds) / n for name, job in jobs.items()}
    shown = ", ".join(f"{name} {value:.3g}" for name, value in found.items())
    print(f"Q = {entries}, D = {modes}: {shown}", file=sys.stderr, flush=True)
    return found


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Of log y on log x."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def slopes(cells: dict[int, dict[str, float]], sizes: Sequence[int]) -> dict[str, float]:
    """The exponent of every pass."""
    return {name: slope(sizes, [cells[size][name] for size in sizes]) for name in cells[sizes[0]]}


def large(n: int, sweeps: int) -> dict[str, Any]:
    """Six modes of rank 10: sixty entries where a full core would have a million."""
    modes, rank, entries = LARGE["modes"], LARGE["rank"], LARGE["entries"]
    problem, _ = problem_of(entries, modes, n)
    gibbs, rng = Gibbs(), np.random.default_rng(2)
    state = gibbs.init(problem, rng)
    start = time.process_time()
    for _ in range(sweeps):
        state, info = gibbs.step(problem, state, rng)
    full = rank**modes
    return {
        **LARGE,
        "observations": n,
        "sweeps": sweeps,
        "cpu_seconds_a_sweep": (time.process_time() - start) / sweeps,
        "train_rmse": info.figures["train_rmse"],
        "noise": 0.1**0.5,
        "full_entries": full,
        "full_bytes_of_a_draw": 8 * full,
        "full_bytes_of_the_normal_matrix": 8 * full**2,
        "sparse_bytes_of_a_draw": 8 * entries,
    }


def run(options: argparse.Namespace) -> dict[str, Any]:
    sizes, modes, entries = ((16, 32), (2, 3), 20) if options.quick else (ENTRIES, MODES, 90)
    n, rounds = (500, 1) if options.quick else (options.observations, options.rounds)
    machine = facts()
    by_entries = {q: passes(q, 4, n, rounds) for q in sizes}
    by_modes = {d: passes(entries, d, n, rounds) for d in modes}
    # small cores are solved in one block, and two modes have routes of their own: slopes begin beyond
    larger, more = sizes[-4:], modes[-6:]
    return {
        "command": options.command,
        "machine": machine,
        "rank": RANK,
        "rows": ROWS,
        "observations": n,
        "rounds": rounds,
        "by_entries": {
            "modes": 4,
            "microseconds": by_entries,
            "slopes": slopes(by_entries, larger),
            "slopes_from": larger[0],
        },
        "by_modes": {
            "entries": entries,
            "microseconds": by_modes,
            "slopes": slopes(by_modes, more),
            "slopes_from": more[0],
        },
        "large": large(n, 3 if options.quick else 100),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few entries and observations, to see that all runs")
    parser.add_argument("--observations", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("-o", "--output", type=Path, help="write JSON here")
    options = parser.parse_args()
    shown = ["python benchmarks/sparse_core.py", *(["--quick"] if options.quick else [])]
    options.command = " ".join([*shown, f"--observations {options.observations} --rounds {options.rounds}"])
    numba.set_num_threads(1)
    with threadpool_limits(1):
        report = run(options)
    for name in ("by_entries", "by_modes"):
        print(name, {k: round(v, 2) for k, v in report[name]["slopes"].items()}, file=sys.stderr)
    if options.output:
        put(report, options.output)


if __name__ == "__main__":
    main()
