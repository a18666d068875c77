"""Effective draws a second of three samplers of one posterior: our Gibbs sampling, our NUTS, and NUTS by Stan.

California house prices by longitude and latitude, random Fourier features of a squared exponential kernel, a full core,
the paper's prior; noise is learned under one and the same prior, everything else is fixed. Every contestant is a
process of its own, has two chains on two cores, and about the same minutes; they run one after the other. Chains of
both NUTS begin at the same points, some Gibbs sweeps from the prior, because from the prior itself they settle in
different modes. Counted are effective draws (bulk) of f at held-out points, over all of a contestant's time, warm-up
included; of all chains together, and as a sum over chains by themselves, which forgives modes that were missed::

    python -m venv stan && stan/bin/pip install "setuptools<80" pystan
    TUCKERGP_DATA=... python benchmarks/nuts.py --stan-python stan/bin/python -o benchmarks/results/nuts.json

Ours stop by the clock. Stan cannot, so it makes longer and longer runs, half of each warm-up, until one takes a third
of the minutes or more; its rate is that of the last run by the time that this run took. Its program (`tucker.stan`)
works on rows, as ours does. Compiling is not counted for any.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

for _threads in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

import numpy as np  # noqa: E402
from gibbs import facts  # noqa: E402
from reports import put  # noqa: E402

from tuckergp.data.datasets import load_california  # noqa: E402
from tuckergp.features import Fourier  # noqa: E402
from tuckergp.inference import NUTS, Gibbs  # noqa: E402
from tuckergp.inference.base import Problem  # noqa: E402
from tuckergp.kernels import SE  # noqa: E402
from tuckergp.likelihoods import Gaussian  # noqa: E402
from tuckergp.model.design import Design  # noqa: E402
from tuckergp.model.mode import Mode  # noqa: E402
from tuckergp.model.tucker import Parameters, TuckerModel, make_core  # noqa: E402
from tuckergp.posterior.diagnostics import summarise  # noqa: E402
from tuckergp.random import stream  # noqa: E402
from tuckergp.running.control import Control  # noqa: E402
from tuckergp.running.loop import sample  # noqa: E402

FEATURES = (25, 100)
RANK, CHAINS, POINTS, SEED = 5, 2, 50, 1
# The authors' GP, for whitened coordinates.
LENGTHSCALES = {"longitude": 0.0216, "latitude": 0.0136}
GIBBS_WARMUP = 100
# Gibbs sweeps before the first trajectory of NUTS.
BEGIN = 50
# Fewer draws of a chain say nothing about their effective number.
LEAST_DRAWS = 20
ALPHA_SHAPE, ALPHA_RATE = 1.0, 0.5
# Hyperparameters of Gibbs sampling so sure that they are fixed at the values of the others.
SURE = 1e9
PRIOR = {"alpha_shape": ALPHA_SHAPE, "alpha_rate": ALPHA_RATE}


def problem_of(n: int) -> tuple[Problem, Design]:
    """The paper's model of the training half, standardised, and the held-out points."""
    california = load_california()
    train, test = california.table.take(california.train), california.table.take(california.test[:POINTS])
    y = np.log(np.asarray(train["house_value"], dtype=np.float64))
    modes = [
        Mode(name, SE(at), Fourier(n, pairs=False), constant=False, whiten=True) for name, at in LENGTHSCALES.items()
    ]
    design, fitted = Design.fit(modes, train, random_state=SEED)
    core = make_core("full", [RANK, RANK])
    model = TuckerModel(core, Gaussian(), core.default_sigma_u(), 1.0)
    return Problem(model, design, (y - y.mean()) / y.std()), Design.transform(fitted, test)


def cpu() -> float:
    """CPU seconds of this process and of its children that ended."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def rates(f: np.ndarray, answer: dict[str, Any]) -> dict[str, Any]:
    """Effective draws of f (chains, draws, points), and their number a second."""
    if f.shape[1] < LEAST_DRAWS:
        return answer | {"missing": f"{f.shape[1]} draws a chain after the warm-up; raise --minutes"}
    found = summarise(f)
    row = answer | {"kept_draws": int(f.shape[0] * f.shape[1]), "rhat": float(np.max(found.rhat))}
    within = np.sum([summarise(chain[None]).ess_bulk for chain in f], axis=0)
    counts = {"median": np.median(found.ess_bulk), "min": np.min(found.ess_bulk), "within": np.median(within)}
    for name, value in counts.items():
        row[f"ess_{name}"] = float(value)
        row |= {f"ess_{name}_a_{clock}_second": float(value) / answer[clock] for clock in ("wall", "cpu")}
    return row


def ours(name: str, n: int, seconds: float, warmup: int) -> dict[str, Any]:
    """Run one of our samplers for so long."""
    problem, test = problem_of(n)
    lengths = {"draws": 10**6, "warmup": warmup, "chains": CHAINS}
    fixed = {"dof": SURE, "tau_shape": SURE, "tau_rate": SURE}
    sampler: Any = NUTS(**lengths, **PRIOR, begin=BEGIN) if name == "nuts" else Gibbs(**lengths, **PRIOR, **fixed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        few = {"draws": 2, "warmup": 2, "chains": 1}
        sample(NUTS(**few) if name == "nuts" else Gibbs(**few), problem, 0)  # compiles
        clock, used = time.perf_counter(), cpu()
        draws, history = sample(sampler, problem, SEED, Control(max_time=seconds, n_jobs=CHAINS))
    answer: dict[str, Any] = {"wall": time.perf_counter() - clock, "cpu": cpu() - used, "warmup": warmup}
    told = [info for info in history if info.step > warmup and "leapfrogs" in info.figures]
    if told:
        last = list({info.chain: info.figures for info in told}.values())
        answer["leapfrogs"] = float(np.mean([info.figures["leapfrogs"] for info in told]))
        answer["at_max_depth"] = float(np.mean([figures["at_max_depth"] for figures in last]))
        answer["divergences"] = int(np.sum([figures["divergences"] for figures in last]))
    values = draws.predicted(test).f
    ends = np.cumsum(draws.lengths)[:-1]
    shortest = min(draws.lengths)
    return rates(np.stack([part[:shortest] for part in np.split(values, ends)]), answer)


def by_stan(python: str, n: int, seconds: float) -> dict[str, Any]:
    """Run Stan for about so long, from where our chains begin."""
    problem, test = problem_of(n)
    (one, two), index = problem.design.modes, problem.design.index
    data = {
        "N": len(problem.y),
        "M1": one.n_rows,
        "M2": two.n_rows,
        "n": n,
        "r": RANK,
        "Phi1": one.table,
        "Phi2": two.table,
        "row1": index[:, 0] + 1,
        "row2": index[:, 1] + 1,
        "y": problem.y,
        "sigma_u": problem.model.sigma_u[0],
        "alpha_shape": ALPHA_SHAPE,
        "alpha_rate": ALPHA_RATE,
    }
    begun = NUTS(**PRIOR, begin=BEGIN)
    starts = [begun.start(problem, stream(SEED, chain, 0)) for chain in range(CHAINS)]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        np.savez(folder / "data.npz", **data)
        theta = np.stack([theta for theta, _ in starts])
        U1, U2, W = np.split(theta, np.cumsum([one.n_features * RANK, two.n_features * RANK]), axis=1)
        shapes = {"U1": (U1, -1), "U2": (U2, -1), "W": (W, RANK)}
        tables = {name: values.reshape(CHAINS, rows, RANK) for name, (values, rows) in shapes.items()}
        np.savez(folder / "starts.npz", **tables, alpha=np.array([alpha for _, alpha in starts]))
        (folder / "asked.json").write_text(json.dumps({"seed": SEED, "seconds": seconds}))
        command = [python, str(Path(__file__).with_name("nuts_stan.py")), place]
        ended = subprocess.run(command, capture_output=True, text=True)
        if ended.returncode:
            return {"missing": ended.stderr.strip().splitlines()[-1]}
        answer, found = json.loads((folder / "answer.json").read_text()), np.load(folder / "draws.npz")
        # pystan puts the draws of chains in turn along the last axis
        tables = {name: np.moveaxis(found[name], -1, 0) for name in ("U1", "U2", "W")}
    f = []
    for U1, U2, W in zip(*tables.values(), strict=True):
        parameters = Parameters((np.ascontiguousarray(U1), np.ascontiguousarray(U2)), np.ravel(W))
        f.append(problem.model.predict(parameters, test))
    return rates(np.moveaxis(np.array(f).reshape(-1, CHAINS, POINTS), 1, 0), answer)


def run(options: argparse.Namespace) -> dict[str, Any]:
    report: dict[str, Any] = {
        "command": options.command,
        "machine": facts(),
        "settings": {"rank": RANK, "chains": CHAINS, "points": POINTS, "seed": SEED, "begin": BEGIN},
        "minutes": options.minutes,
        "results": {},
    }
    for n in options.features:
        rows: dict[str, Any] = {}
        for name in options.contestants:
            command = [sys.executable, __file__, "--worker", name, "--features", str(n)]
            command += ["--minutes", str(options.minutes), "--warmup", str(options.warmup)]
            command += ["--stan-python", options.stan_python] if options.stan_python else []
            ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            rows[name] = json.loads(ended.stdout.splitlines()[-1])
            print(f"{n} features, {name}: {rows[name]}", file=sys.stderr, flush=True)
        stan = rows.get("stan", {"missing": "not run"})
        for name, row in rows.items():
            if name != "stan" and "missing" not in stan and "missing" not in row:
                keys = [
                    f"ess_{what}_a_{clock}_second" for what in ("median", "min", "within") for clock in ("wall", "cpu")
                ]
                row["by_stan"] = {key: row[key] / stan[key] for key in keys}
        report["results"][f"{n} features"] = rows
    report["machine"]["load_average_at_end"] = os.getloadavg()[0]
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--stan-python", metavar="PATH", help="an interpreter that has pystan; without, Stan is left out"
    )
    parser.add_argument("--minutes", type=float, default=5.0, help="of each contestant in each setting")
    parser.add_argument("--warmup", type=int, default=300, help="of our NUTS")
    parser.add_argument("--features", type=int, nargs="+", default=list(FEATURES))
    parser.add_argument("--contestants", nargs="+", default=["gibbs", "nuts", "stan"])
    parser.add_argument("-o", "--output", type=Path, help="write JSON here")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        n, seconds = options.features[0], 60 * options.minutes
        if options.worker == "stan":
            row = by_stan(options.stan_python, n, seconds)
        else:
            row = ours(options.worker, n, seconds, GIBBS_WARMUP if options.worker == "gibbs" else options.warmup)
        print(json.dumps(row))
        return
    if not options.stan_python:
        options.contestants = [name for name in options.contestants if name != "stan"]
    shown = ["python benchmarks/nuts.py", *(["--stan-python PATH"] if options.stan_python else [])]
    shown += [
        f"--minutes {options.minutes:g} --warmup {options.warmup}",
        f"--features {' '.join(map(str, options.features))}",
    ]
    options.command = " ".join(shown)
    report = run(options)
    print(json.dumps(report, indent=1))
    if options.output:
        put(report, options.output)


if __name__ == "__main__":
    main()
