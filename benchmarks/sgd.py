"""What an epoch of stochastic gradients costs: against Surprise's SVD, and against itself with ten times the rows.

The model is plain matrix factorisation (two modes, identity features, identity core). Both programs use one core.
Repetitions take turns, so that a noisy neighbour hits all of them alike. Surprise may live in another environment::

    python benchmarks/sgd.py --peer-python /path/to/other/bin/python -o benchmarks/results/sgd.json
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from reports import put

SEED = 20260101
EPOCHS = 3  # in a repetition: Surprise's set-up is taken off the time of its fit, which adds noise
STEP = {"sgd": 1e-6, "adam": 5e-3}

Timing = dict[str, float]  # {"cpu": ..., "wall": ...}, seconds an epoch


def clock() -> np.ndarray:
    return np.array([time.process_time(), time.perf_counter()])


def timing(spent: np.ndarray) -> Timing:
    return {"cpu": float(spent[0]), "wall": float(spent[1])}


# Data


def uniform_ratings(n_users: int, n_items: int, n: int) -> dict[str, Any]:
    """Pairs drawn uniformly: the worst case for caches, as no row is met more often than others."""
    rng = np.random.default_rng(SEED)
    user, item = rng.integers(n_users, size=n), rng.integers(n_items, size=n)
    return {"user": user, "item": item, "y": rng.standard_normal(n), "sizes": np.array([n_users, n_items])}


def movielens() -> dict[str, Any]:
    from tuckergp.data.datasets import load_movielens_100k

    ratings = load_movielens_100k(download=False).ratings
    user = np.unique(ratings["user_id"], return_inverse=True)[1]
    item = np.unique(ratings["item_id"], return_inverse=True)[1]
    y = np.asarray(ratings["rating"], dtype=float)
    sizes = np.array([user.max() + 1, item.max() + 1])
    return {"user": user, "item": item, "y": (y - y.mean()) / y.std(), "sizes": sizes}


# Contestants: each is called once a repetition and returns seconds an epoch


class Ours:
    """Our SGD, its epochs alone; ``side`` more features a row, drawn from 50, besides the row's own."""

    def __init__(self, data: dict[str, Any], factors: int, method: str, side: int = 0) -> None:
        from scipy import sparse

        from tuckergp.inference.base import Problem
        from tuckergp.inference.sgd import SGD
        from tuckergp.likelihoods import Gaussian
        from tuckergp.model.design import Design
        from tuckergp.model.mode_table import ModeTable
        from tuckergp.model.tucker import TuckerModel, make_core
        from tuckergp.random import stream
        from tuckergp.residuals import Rows

        rng = np.random.default_rng(SEED)
        modes = []
        for rows in map(int, data["sizes"]):
            columns = np.sort(rng.random((rows, 50)).argsort(axis=1)[:, :side], axis=1).ravel()
            pointers = np.arange(rows + 1) * side
            table = sparse.csr_array((np.ones(rows * side), columns, pointers), shape=(rows, 50 if side else 0))
            modes.append(ModeTable(table, Rows.of(rows)))
        core = make_core("identity", (factors, factors))
        model = TuckerModel(core, Gaussian(0.5), core.default_sigma_u(), core.default_sigma_w())
        index = np.stack([data["user"], data["item"]], axis=1).astype(np.int32)
        self.problem = Problem(model, Design(tuple(modes), index), data["y"])
        self.algorithm = SGD(method=method, step_u=STEP[method], batch_size=100, validation=0.0)  # type: ignore[arg-type]
        self.state = self.algorithm.init(self.problem, stream(SEED, 0))
        self.stream = stream

    def __call__(self) -> Timing:
        """Some epochs."""
        start = clock()
        for _ in range(EPOCHS):
            rng = self.stream(SEED, self.state.epoch + 1)
            self.state, _ = self.algorithm.step(self.problem, self.state, rng)
        return timing((clock() - start) / EPOCHS)

    def close(self) -> None:
        """Nothing to do."""


class Surprise:
    """Surprise's SVD without biases, in this interpreter: a fit of some epochs less a fit of none."""

    def __init__(self, data: dict[str, Any], factors: int) -> None:
        from surprise import SVD, Trainset  # type: ignore[import-not-found]

        by_user: dict[int, list[tuple[int, float]]] = defaultdict(list)
        by_item: dict[int, list[tuple[int, float]]] = defaultdict(list)
        for u, i, r in zip(data["user"].tolist(), data["item"].tolist(), data["y"].tolist(), strict=True):
            by_user[u].append((i, r))
            by_item[i].append((u, r))
        n_users, n_items = map(int, data["sizes"])
        self.ratings: Any = Trainset(by_user, by_item, n_users, n_items, len(data["y"]), (-5, 5), None, None)
        self.make: Any = lambda epochs: SVD(n_factors=factors, n_epochs=epochs, biased=False, random_state=0)

    def __call__(self) -> Timing:
        """One fit of none, one of some epochs."""
        start = clock()
        self.make(0).fit(self.ratings)
        middle = clock()
        self.make(EPOCHS).fit(self.ratings)
        return timing((clock() - middle - (middle - start)) / EPOCHS)

    def close(self) -> None:
        """Nothing to do."""


class Elsewhere:
    """`Surprise` in another interpreter, which waits for a line and answers with its timing."""

    def __init__(self, python: str, data: dict[str, Any], factors: int) -> None:
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "ratings.npz"
        np.savez(path, **data)
        command = [python, __file__, "--worker", str(path), "--factors", str(factors)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.version = self._answer()

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("The peer's interpreter stopped: is scikit-surprise installed there?")
        return json.loads(line)

    def __call__(self) -> Timing:
        """Ask for one repetition."""
        assert self.process.stdin is not None
        self.process.stdin.write("run\n")
        self.process.stdin.flush()
        answer: Timing = self._answer()
        return answer

    def close(self) -> None:
        """Let the other interpreter end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        self.folder.cleanup()


def work(path: str, factors: int) -> None:
    """What the other interpreter runs."""
    with np.load(path) as stored:
        peer = Surprise(dict(stored), factors)
    versions = {name: version(name) for name in ("scikit-surprise", "numpy")}
    print(json.dumps({**versions, "python": platform.python_version()}), flush=True)
    for _ in sys.stdin:
        print(json.dumps(peer()), flush=True)


# Limits of the machine and of the compiler


def roofs(rows: int, factors: int) -> dict[str, float]:
    """Measured limits of one core for rows of ``factors`` numbers: seconds for a million random rows, and arithmetic.

    A row is read, multiplied and written back, which no stochastic gradient in random order can avoid.
    """
    from tuckergp.compute.contract import jit

    @jit
    def touch(table: Any, rows: Any) -> None:
        for i in range(rows.size):
            row = table[rows[i]]
            for k in range(row.size):
                row[k] *= 1.000001

    @jit
    def add(x: Any, y: Any, times: int) -> None:
        for t in range(times):
            for k in range(x.size):
                y[k] += t * x[k]

    rng = np.random.default_rng(SEED)
    table, order = np.ones((rows, factors)), rng.integers(rows, size=1_000_000)
    x, y = np.ones(1000), np.ones(1000)
    large = np.ones(20_000_000)
    target = np.ones_like(large)
    touch(table, order[:1])
    add(x, y, 1)

    def best(run: Any) -> float:
        spent = []
        for _ in range(5):
            start = clock()
            run()
            spent.append((clock() - start)[0])
        return float(min(spent))

    touched = best(lambda: touch(table, order))
    return {
        "seconds_per_million_random_rows": touched,
        "random_rows_gigabytes_per_second": 16e6 * factors / touched / 1e9,
        "copy_gigabytes_per_second": 16 * large.size / best(lambda: np.copyto(target, large)) / 1e9,
        "multiply_add_gigaflops": 2 * x.size * 200_000 / best(lambda: add(x, y, 200_000)) / 1e9,
    }


def budget(method: str, factors: int, cpu_per_million: float, limit: dict[str, float]) -> dict[str, float]:
    """Operations and bytes that one rating needs, and the share of the measured limits that we reach.

    Operations a number. Plain: reading 1, inner product 1, update 3. Adam: reading 1, inner product 1, sum over the
    batch 2, and 13 in its rule, a square root and a division among them. Bytes: every
    row of the two modes comes and goes once; with Adam so do its two moments.
    """
    per_number = {"sgd": 1 + 1 + 3, "adam": 1 + 1 + 2 + 13}[method]
    flops = 2 * per_number * factors
    rows_moved = {"sgd": 2, "adam": 6}[method]
    return {
        "flops_per_rating": flops,
        "bytes_per_rating": rows_moved * 16 * factors,
        "gigaflops": flops / cpu_per_million / 1e3,
        "share_of_multiply_add": flops / cpu_per_million / 1e3 / limit["multiply_add_gigaflops"],
        "share_of_random_rows": rows_moved * limit["seconds_per_million_random_rows"] / cpu_per_million,
    }


START = """
import json, sys, time
start = time.perf_counter()
sys.path.insert(0, sys.argv[1])
import sgd
data = sgd.uniform_ratings(60, 40, 1000)
spent = {}
for method in ("sgd", "adam"):
    ours = sgd.Ours(data, 100, method)
    ready = time.perf_counter()
    ours()
    spent["first epochs, " + method] = time.perf_counter() - ready
spent["process, imports included"] = time.perf_counter() - start
print(json.dumps(spent))
"""


def compile_times() -> dict[str, Timing]:
    """A process that finds no compiled code, then one that finds it in the cache."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        command = [sys.executable, "-c", START, str(Path(__file__).parent)]
        return {
            name: json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)
            for name in ("cold", "warm")
        }


# The run


def take_turns(contestants: dict[str, Any], repetitions: int) -> dict[str, list[Timing]]:
    """Everyone once to warm up, then ``repetitions`` rounds in which everyone runs once, in a turning order."""
    for contestant in contestants.values():
        contestant()
    rounds: dict[str, list[Timing]] = {name: [] for name in contestants}
    names = list(contestants)
    for k in range(repetitions):
        for name in names[k % len(names) :] + names[: k % len(names)]:
            rounds[name].append(contestants[name]())
    return rounds


def median(rounds: list[Timing], kind: str) -> float:
    return statistics.median(entry[kind] for entry in rounds)


def ratio(one: list[Timing], other: list[Timing], kind: str = "cpu") -> dict[str, float]:
    """The ratio of two contestants round by round: median and extremes."""
    ratios = sorted(a[kind] / b[kind] for a, b in zip(one, other, strict=True))
    return {"median": statistics.median(ratios), "least": ratios[0], "most": ratios[-1]}


def facts() -> dict[str, Any]:
    model = platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        lines = cpuinfo.read_text().splitlines()
        model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), model)
    cache = Path("/sys/devices/system/cpu/cpu0/cache/index3/size")
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "last_level_cache": cache.read_text().strip() if cache.is_file() else None,
        "system": platform.system(),
        "load_average_at_start": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
    }


def run(options: argparse.Namespace) -> dict[str, Any]:
    n, factors = options.ratings, options.factors
    data = {"synthetic": uniform_ratings(6_000, 4_000, n), "synthetic, 10x rows": uniform_ratings(60_000, 40_000, n)}
    if os.environ.get("TUCKERGP_DATA"):
        data["movielens-100k"] = movielens()
    machine = facts()
    contestants: dict[str, Any] = {}
    peer_version = None
    for name, ratings in data.items():
        for method in ("sgd", "adam"):
            contestants[f"{name} | ours, {method}"] = Ours(ratings, factors, method)
        if options.peer_python:
            peer: Any = Elsewhere(options.peer_python, ratings, factors)
            peer_version = peer.version
        else:
            peer = Surprise(ratings, factors)
            peer_version = {"scikit-surprise": version("scikit-surprise")}
        contestants[f"{name} | surprise"] = peer
    for method in ("sgd", "adam"):
        contestants[f"synthetic | ours, {method}, 4 features a row"] = Ours(data["synthetic"], factors, method, side=3)
    try:
        rounds = take_turns(contestants, options.repetitions)
    finally:
        for contestant in contestants.values():
            contestant.close()
    counts = {name: len(ratings["y"]) for name, ratings in data.items()}
    results: dict[str, dict[str, Any]] = {}
    for name, entries in rounds.items():
        per_million = 1e6 / counts[name.split(" | ")[0]]
        results[name] = {
            "ratings": counts[name.split(" | ")[0]],
            "cpu_seconds_per_epoch": median(entries, "cpu"),
            "wall_seconds_per_epoch": median(entries, "wall"),
            "cpu_seconds_per_million_ratings": median(entries, "cpu") * per_million,
            "wall_seconds_per_million_ratings": median(entries, "wall") * per_million,
            "repetitions": entries,
        }
    ratios = {}
    for method in ("sgd", "adam"):
        for name in data:
            pair = rounds[f"{name} | ours, {method}"], rounds[f"{name} | surprise"]
            ratios[f"ours, {method} / surprise, {name}"] = ratio(*pair)
            ratios[f"ours, {method} / surprise, {name}, wall"] = ratio(*pair, "wall")
        base = rounds[f"synthetic | ours, {method}"]
        ratios[f"10x rows / 1x, ours, {method}"] = ratio(rounds[f"synthetic, 10x rows | ours, {method}"], base)
        four = rounds[f"synthetic | ours, {method}, 4 features a row"]
        ratios[f"4 features a row / 1, ours, {method}"] = ratio(four, base)
    both = rounds["synthetic, 10x rows | surprise"], rounds["synthetic | surprise"]
    ratios["10x rows / 1x, surprise"] = ratio(*both)
    limits = {name: roofs(int(data[name]["sizes"].sum()), factors) for name in data}
    budgets = {
        f"{name} | ours, {method}": budget(
            method, factors, results[f"{name} | ours, {method}"]["cpu_seconds_per_million_ratings"], limits[name]
        )
        for name in data
        for method in ("sgd", "adam")
    }
    machine["load_average_at_end"] = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "what": "seconds an epoch of stochastic gradients, one core; medians of interleaved repetitions",
        "command": options.command,
        "factors": factors,
        "batch_size": 100,
        "repetitions": options.repetitions,
        "epochs_per_repetition": EPOCHS,
        "seed": SEED,
        "machine": machine,
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("tuckergp", "numpy", "numba", "scipy")},
            "peer": peer_version,
        },
        "results": results,
        "ratios": ratios,
        "limits_of_one_core": limits,
        "budgets": budgets,
        "compile_seconds": compile_times(),
    }


def show(report: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(title=f"Seconds of one core, {report['factors']} factors")
    for column in ("data", "program", "CPU s an epoch", "CPU s a million ratings", "wall s a million ratings"):
        table.add_column(column, justify="left" if column in ("data", "program") else "right")
    for name, row in report["results"].items():
        kinds = ("cpu_seconds_per_epoch", "cpu_seconds_per_million_ratings", "wall_seconds_per_million_ratings")
        table.add_row(*name.split(" | "), *(f"{row[kind]:.3f}" for kind in kinds))
    console.print(table)
    table = Table("ratio, of CPU seconds unless it says wall", "median", "least", "most")
    for name, row in report["ratios"].items():
        table.add_row(name, *(f"{row[kind]:.2f}" for kind in ("median", "least", "most")))
    console.print(table)
    table = Table("budget", "flops a rating", "bytes a rating", "share of multiply-add", "share of random rows")
    for name, row in report["budgets"].items():
        shares = (f"{row[kind]:.2f}" for kind in ("share_of_multiply_add", "share_of_random_rows"))
        table.add_row(name, f"{row['flops_per_rating']:,}", f"{row['bytes_per_rating']:,}", *shares)
    console.print(table)
    for name, row in report["compile_seconds"].items():
        console.print(f"{name} cache:", ", ".join(f"{key} {value:.2f} s" for key, value in row.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer-python", metavar="PATH", help="an interpreter that has scikit-surprise (default: this)")
    parser.add_argument("--ratings", type=int, default=1_000_000, help="of the synthetic data (default: %(default)s)")
    parser.add_argument("--factors", type=int, default=100)
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("-o", "--output", type=Path, help="write JSON here")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.worker, options.factors)
        return
    shown = ["python benchmarks/sgd.py", *(["--peer-python PATH"] if options.peer_python else [])]
    shown += [f"--{name} {getattr(options, name)}" for name in ("ratings", "factors", "repetitions")]
    options.command = " ".join(shown)
    report = run(options)
    show(report)
    if options.output:
        put(report, options.output)


if __name__ == "__main__":
    main()
