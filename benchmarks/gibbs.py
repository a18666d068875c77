"""What a Gibbs sweep costs in time and memory: against myFM, and against the ALS of implicit and cmfrec.

Every contestant is a process of its own on two threads; they take turns, so that a noisy neighbour hits all alike.
The peers may live in another environment, and each may be missing::

    python benchmarks/gibbs.py --peer-python /path/to/other/bin/python -o benchmarks/results/gibbs.json
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
from collections.abc import Callable
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

SEED = 20260101
THREADS = 2
RANKS = (16, 64)
PEERS = ("myfm", "implicit", "cmfrec")
SMALL_SWEEPS = 20  # of MovieLens in one round

Timing = dict[str, float]  # {"cpu": ..., "wall": ...}, seconds a sweep


def clock() -> np.ndarray:
    return np.array([time.process_time(), time.perf_counter()])


def timing(spent: np.ndarray) -> Timing:
    return {"cpu": float(spent[0]), "wall": float(spent[1])}


# Data: a folder of arrays, so that every process reads the same


def write_synthetic(folder: Path, n_users: int, n_items: int, n: int) -> None:
    """Distinct pairs in no order: activities of users lognormal, popularities of items a power law."""
    rng = np.random.default_rng(SEED)
    users = np.cumsum(rng.lognormal(0.0, 1.0, n_users) + 0.15)
    items = np.cumsum((np.arange(n_items) + 20.0) ** -1.1)
    pairs = np.zeros(0, dtype=np.int64)
    while len(pairs) < n:
        more = int(1.2 * (n - len(pairs))) + 1000
        user = np.searchsorted(users, rng.random(more) * users[-1])
        item = np.searchsorted(items, rng.random(more) * items[-1])
        pairs = np.unique(np.concatenate([pairs, user * n_items + item]))
    pairs = rng.permutation(pairs)[:n]
    y = rng.standard_normal(n) * 0.8 + 3.5
    U, V = rng.standard_normal((n_users, 8)), rng.standard_normal((n_items, 8))
    for first in range(0, n, 1 << 20):
        part = pairs[first : first + (1 << 20)]
        y[first : first + len(part)] += 0.25 * np.einsum("ij,ij->i", U[part // n_items], V[part % n_items])
    store(folder, pairs // n_items, pairs % n_items, y, (n_users, n_items))


def write_movielens(folder: Path, n: int) -> None:
    """MovieLens 100K; attributes of users (age, sex, occupation) and of items (genres) as 0 and 1."""
    from tuckergp.datasets import load_movielens_100k
    from tuckergp.experiments.movielens_data import entities_of, ratings_of

    data = load_movielens_100k(download=False)
    entities = entities_of(data)
    ratings = ratings_of(entities, data.ratings)
    store(folder, *ratings.index[:n].T, ratings.rating[:n], (len(entities.users), len(entities.items)))
    columns = [entities.users[name] for name in ("age", "sex", "occupation")]
    attributes = [(column[:, None] == np.unique(column)).astype(float) for column in columns]
    genres = sorted({genre for film in entities.items["genres"] for genre in film})
    films = np.array([[genre in film for genre in genres] for film in entities.items["genres"]], dtype=float)
    np.save(folder / "user_attributes.npy", np.hstack(attributes))
    np.save(folder / "item_attributes.npy", films)
    np.save(folder / "user_groups.npy", np.array([block.shape[1] for block in attributes]))


def store(folder: Path, user: Any, item: Any, y: Any, sizes: tuple[int, int]) -> None:
    folder.mkdir()
    for name, values in {"user": np.int32(user), "item": np.int32(item), "y": y, "sizes": np.array(sizes)}.items():
        np.save(folder / f"{name}.npy", values)


class Data:
    """What `store` wrote."""

    def __init__(self, folder: Path) -> None:
        self.user, self.item, self.y, self.sizes = (
            np.load(folder / f"{name}.npy") for name in ("user", "item", "y", "sizes")
        )
        self.folder = folder

    @property
    def attributes(self) -> list[np.ndarray] | None:
        """Of users and of items."""
        files = [self.folder / f"{name}_attributes.npy" for name in ("user", "item")]
        return [np.load(file) for file in files] if files[0].is_file() else None


# Contestants: made in a process of their own; each call times one round


class Ours:
    """Gibbs sampling with shared noise and the identity core, a row effect in both modes."""

    package = "tuckergp"

    def __init__(self, data: Data, rank: int) -> None:
        from scipy import sparse

        from tuckergp.design import Design, ModeTable
        from tuckergp.inference.base import Problem
        from tuckergp.inference.gibbs import Gibbs
        from tuckergp.inference.loop import few_threads
        from tuckergp.likelihoods import Gaussian
        from tuckergp.model import TuckerModel, make_core
        from tuckergp.random import stream

        index = np.stack([data.user, data.item], axis=1)
        y = (data.y - data.y.mean()) / data.y.std()
        attributes = data.attributes
        modes = []
        for d, rows in enumerate(map(int, data.sizes)):
            parts = [np.ones((rows, 1)), *([attributes[d]] if attributes else [])]
            ends = np.cumsum([0, *(part.shape[1] for part in parts)])
            blocks = tuple(slice(int(a), int(b)) for a, b in pairwise(ends))
            own = sparse.csr_array(sparse.eye_array(rows))
            modes.append(ModeTable(np.hstack(parts), own, rows, blocks))
        core = make_core("identity", (rank, rank))
        model = TuckerModel(core, Gaussian(0.5), core.default_sigma_u(), core.default_sigma_w())
        self.few_threads, self.stream, self.sampler = few_threads, stream, Gibbs()
        self.sweeps = SMALL_SWEEPS if len(y) < 1_000_000 else 1
        small = Problem(model, Design(tuple(modes), index[:100].copy()), y[:100].copy())
        self.sampler.step(small, self.sampler.init(small, stream(SEED, 0)), stream(SEED, 1))  # compiles
        del data.user, data.item, data.y
        self.problem = Problem(model, Design(tuple(modes), index), y)
        self.bound = 2 * (16 * len(y) + sum(8 * rank * mode.n_rows for mode in modes))
        self.before = start_peak()
        self.state = self.sampler.init(self.problem, stream(SEED, 0))

    def __call__(self) -> Timing:
        """Some sweeps."""
        start = clock()
        with self.few_threads(self.problem):
            for _ in range(self.sweeps):
                rng = self.stream(SEED, self.state.sweep + 1)
                self.state, _ = self.sampler.step(self.problem, self.state, rng)
        return timing((clock() - start) / self.sweeps)

    def facts(self) -> dict[str, float | None]:
        """Growth of memory since the data were there, sorting them included, and twice data and factors."""
        peak = memory("VmHWM")
        return {"growth_bytes": None if peak is None else peak - (self.before or 0), "bound_bytes": self.bound}


class OursStatistics:
    """The statistics of items' rows alone, and the machine's matrix products, on the same threads."""

    package = "tuckergp"

    def __init__(self, data: Data, rank: int) -> None:
        from tuckergp.design import Design, ModeTable
        from tuckergp.model import make_core
        from tuckergp.priors.evidence import Evidence, Precision, sort_by_row

        rng = np.random.default_rng(SEED)
        index = np.stack([data.user, data.item], axis=1)
        design = Design(tuple(ModeTable(np.ones((rows, 1))) for rows in map(int, data.sizes)), index)
        psi = [rng.standard_normal((rows, rank)) for rows in map(int, data.sizes)]
        core = make_core("identity", (rank, rank))
        self.evidence = Evidence(sort_by_row(design, 1), data.y, Precision(), core, 1, psi, np.ones(1))
        self.flops = len(data.y) * rank * (rank + 1)  # of the lower triangle
        self.rates: dict[str, list[float]] = {"statistics": [], "float32": [], "float64": []}

    def __call__(self) -> Timing:
        """Each once."""
        start = clock()
        self.evidence.statistics()
        spent = clock() - start
        self.rates["statistics"].append(self.flops / spent[1] / 1e9)
        for kind in ("float32", "float64"):
            X = np.ones((2000, 2000), dtype=kind)
            X @ X
            began = time.perf_counter()
            X @ X
            self.rates[kind].append(2 * 2000**3 / (time.perf_counter() - began) / 1e9)
        return timing(spent)

    def facts(self) -> dict[str, float]:
        """Gigaflops by wall time: the median of the statistics, the best of the matrix products."""
        return {
            "statistics_gigaflops": statistics.median(self.rates["statistics"]),
            "sgemm_gigaflops": max(self.rates["float32"]),
            "dgemm_gigaflops": max(self.rates["float64"]),
        }


class MyFM:
    """Gibbs sampling of a factorisation machine on one-hot users and items, in relation blocks with attributes."""

    package = "myfm"

    def __init__(self, data: Data, rank: int) -> None:
        from myfm import MyFMRegressor, RelationBlock  # type: ignore[import-not-found]
        from scipy import sparse

        n, attributes = len(data.y), data.attributes
        groups = list(map(int, data.sizes))
        if attributes:
            tables = [
                sparse.hstack([sparse.identity(rows), sparse.csr_matrix(side)], format="csr")
                for rows, side in zip(groups, attributes, strict=True)
            ]
            user_groups = map(int, np.load(data.folder / "user_groups.npy"))
            groups = [groups[0], *user_groups, groups[1], attributes[1].shape[1]]
            X: Any = sparse.csr_matrix((n, 0))
            rows = [np.int64(data.user), np.int64(data.item)]
            blocks = [RelationBlock(where, table) for where, table in zip(rows, tables, strict=True)]
        else:
            columns = np.stack([data.user, data.item + data.sizes[0]], axis=1).ravel()
            X = sparse.csr_matrix((np.ones(2 * n), columns, np.arange(0, 2 * n + 1, 2)), shape=(n, sum(groups)))
            blocks = []
        self.sweeps = SMALL_SWEEPS if n < 1_000_000 else 1
        self.fit: Callable[[int, Any], Any] = lambda sweeps, call: MyFMRegressor(rank, random_seed=1).fit(
            X, data.y, X_rel=blocks, n_iter=sweeps, n_kept_samples=1, group_shapes=groups, callback=call
        )

    def __call__(self) -> Timing:
        """A fit of some sweeps; the clock starts after the first, so that setting up does not count."""
        times: list[np.ndarray] = []

        def call(*_: Any) -> tuple[bool, None]:
            times.append(clock())
            return False, None

        self.fit(self.sweeps + 1, call)
        return timing((times[-1] - times[0]) / (len(times) - 1))


class Implicit:
    """ALS for implicit feedback with exact solves; the ratings are its confidences."""

    package = "implicit"

    def __init__(self, data: Data, rank: int) -> None:
        from implicit.cpu.als import AlternatingLeastSquares  # type: ignore[import-not-found]
        from scipy import sparse

        y = np.maximum(data.y, 0.5).astype(np.float32)
        self.ratings = sparse.csr_matrix((y, (data.user, data.item)), shape=tuple(data.sizes))
        self.model = AlternatingLeastSquares(rank, use_cg=False, iterations=1, num_threads=THREADS, random_state=1)

    def __call__(self) -> Timing:
        """One iteration, without the conversions before it (by its own clock, so CPU time has a share of them)."""
        inner: list[float] = []
        start = clock()
        self.model.fit(self.ratings, show_progress=False, callback=lambda _, seconds, *more: inner.append(seconds))
        spent = clock() - start
        return {"cpu": float(spent[0] * inner[0] / spent[1]), "wall": inner[0]}


class Cmfrec:
    """ALS for ratings with exact solves: a fit of three iterations less a fit of one, by two."""

    package = "cmfrec"

    def __init__(self, data: Data, rank: int) -> None:
        from cmfrec import CMF  # type: ignore[import-not-found]
        from scipy import sparse

        self.ratings = sparse.coo_matrix((data.y, (data.user, data.item)), shape=tuple(data.sizes))
        settings = {"use_cg": False, "user_bias": False, "item_bias": False, "precompute_for_predictions": False}
        self.make = lambda n: CMF(k=rank, niter=n, nthreads=THREADS, verbose=False, random_state=1, **settings)

    def __call__(self) -> Timing:
        """Two fits."""
        start = clock()
        self.make(1).fit(self.ratings)
        middle = clock()
        self.make(3).fit(self.ratings)
        return timing((clock() - middle - (middle - start)) / 2)


CONTESTANTS: dict[str, Any] = {
    "ours": Ours, "statistics": OursStatistics, "myfm": MyFM, "implicit": Implicit, "cmfrec": Cmfrec,
}  # fmt: skip


def memory(field: str) -> float | None:
    """A figure of this process in bytes, where the system tells."""
    status = Path("/proc/self/status")
    if not status.is_file():
        return None
    line = next(line for line in status.read_text().splitlines() if line.startswith(field))
    return 1024.0 * int(line.split()[1])


def start_peak() -> float | None:
    """Forget the peak of memory so far; memory now."""
    forget = Path("/proc/self/clear_refs")
    if forget.is_file():
        forget.write_text("5")
    return memory("VmRSS")


def work(name: str, folder: Path, rank: int) -> None:
    """What a contestant's process runs: a round for every line it reads; at the end, its facts."""
    contestant = CONTESTANTS[name]
    try:
        ready = contestant(Data(folder), rank)
    except ImportError as error:
        print(json.dumps({"missing": f"{contestant.package}: {error}"}), flush=True)
        return
    print(json.dumps({"version": version(contestant.package), "python": platform.python_version()}), flush=True)
    for _ in sys.stdin:
        print(json.dumps(ready()), flush=True)
    print(json.dumps(ready.facts() if hasattr(ready, "facts") else {}), flush=True)


class Process:
    """A contestant elsewhere: says whether it is there, runs rounds, ends with its facts."""

    def __init__(self, python: str, name: str, folder: Path, rank: int) -> None:
        threads = dict.fromkeys(("NUMBA_NUM_THREADS", "OMP_NUM_THREADS"), str(THREADS))
        blas = str(THREADS if name == "statistics" else 1)  # implicit and cmfrec share rows, not matrix products
        environment = {**os.environ, **threads, "OPENBLAS_NUM_THREADS": blas, "TQDM_DISABLE": "1"}
        command = [python, __file__, "--worker", name, "--folder", str(folder), "--ranks", str(rank)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.hello = self._answer()
        self.missing = self.hello.get("missing")

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("A contestant's process stopped; its message is above.")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __call__(self) -> Timing:
        """One round."""
        assert self.process.stdin is not None
        self.process.stdin.write("run\n")
        self.process.stdin.flush()
        return self._answer()

    def close(self) -> dict[str, Any]:
        """Let it end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        facts = {} if self.missing else self._answer()
        self.process.wait()
        return facts


# Start


START = """
import json, sys, time
start = time.perf_counter(), time.process_time()
import numpy as np
from tuckergp import TuckerRecommender
rng = np.random.default_rng(0)
pairs = rng.permutation(50 * 40)[:1000]
table = {"user_id": pairs // 40, "item_id": pairs % 40, "rating": rng.integers(1, 6, 1000).astype(float)}
ready = time.perf_counter(), time.process_time()
TuckerRecommender(rank=4, draws=5, warmup=2, random_state=0).fit(table)
end = time.perf_counter(), time.process_time()
names = ("wall", "cpu")
print(json.dumps({
    **{f"fit, {name}": e - r for name, e, r in zip(names, end, ready)},
    **{f"imports, {name}": r - s for name, r, s in zip(names, ready, start)},
}))
"""


def compile_times() -> dict[str, Timing]:
    """The first fit of a small problem: by a process that finds no compiled code, then one that finds it."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "NUMBA_NUM_THREADS": str(THREADS)}
        command = [sys.executable, "-W", "ignore", "-c", START]
        return {
            name: json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)
            for name in ("cold", "warm")
        }


# The run


def compete(
    title: str, folder: Path, rank: int, rounds: dict[str, int], options: argparse.Namespace
) -> tuple[dict[str, Any], dict[str, str]]:
    """All contestants on one data set; ``rounds`` each. Results by name, and what was missing."""
    processes: dict[str, Process] = {}
    missing: dict[str, str] = {}
    timings: dict[str, list[Timing]] = {}
    for name in rounds:
        python = options.peer_python if name in PEERS and options.peer_python else sys.executable
        process = Process(python, name, folder, rank)
        if process.missing:
            missing[name] = process.missing
            print(f"{title}, rank {rank}: {name} is left out; {process.missing}", file=sys.stderr)
            process.close()
        else:
            processes[name] = process
    for name, process in processes.items():
        if rounds[name] > 1:
            process()  # warms up
        timings[name] = []
    for k in range(max(rounds.values())):
        for name, process in processes.items():
            if k < rounds[name]:
                timings[name].append(process())
                print(f"{title}, rank {rank}, round {k + 1}: {name} {timings[name][-1]}", file=sys.stderr, flush=True)
    results = {
        name: {
            "wall_seconds": statistics.median(entry["wall"] for entry in entries),
            "cpu_seconds": statistics.median(entry["cpu"] for entry in entries),
            "rounds": entries,
            **processes[name].hello,
            **processes[name].close(),
        }
        for name, entries in timings.items()
    }
    for name, row in results.items():
        if name not in ("ours", "statistics"):
            row["ours_by_this_wall"] = results["ours"]["wall_seconds"] / row["wall_seconds"]
            row["ours_by_this_cpu"] = results["ours"]["cpu_seconds"] / row["cpu_seconds"]
    return results, missing


def facts() -> dict[str, Any]:
    model = platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        lines = cpuinfo.read_text().splitlines()
        model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), model)
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "system": platform.system(),
        "load_average_at_start": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "versions": {name: version(name) for name in ("tuckergp", "numpy", "scipy", "numba")},
    }


def run(options: argparse.Namespace) -> dict[str, Any]:
    shape = (1_000, 500, 20_000) if options.quick else (138_000, 27_000, 20_000_000)
    report: dict[str, Any] = {"command": options.command, "threads": THREADS, "machine": facts(), "results": {}}
    missing: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as place:
        folders: dict[str, Path] = {}
        if os.environ.get("TUCKERGP_DATA"):
            folders["movielens-100k, attributes"] = Path(place) / "movielens"
            write_movielens(folders["movielens-100k, attributes"], 5_000 if options.quick else 100_000)
        title = f"synthetic, {shape[0]:,} x {shape[1]:,}, {shape[2]:,} ratings"
        folders[title] = Path(place) / "synthetic"
        write_synthetic(folders[title], *shape)
        for name, folder in folders.items():
            large = name == title and not options.quick
            for rank in options.ranks:
                rounds = {"ours": options.rounds, "myfm": 1 if large else options.rounds}
                if large and rank > options.myfm_rank:
                    del rounds["myfm"]
                    missing[f"myfm, {name}, rank {rank}"] = "not run: too slow"
                if name == title:
                    rounds |= {"implicit": options.rounds, "cmfrec": 1 if large else options.rounds}
                    rounds |= {"statistics": options.rounds} if rank == max(options.ranks) else {}
                report["results"][f"{name} | rank {rank}"], more = compete(name, folder, rank, rounds, options)
                missing |= more
    report["missing"] = missing
    report["first_fit_seconds"] = compile_times()
    if hasattr(os, "getloadavg"):
        report["machine"]["load_average_at_end"] = os.getloadavg()[0]
    return report


def show(report: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table("data", "program", "wall s", "CPU s", "ours / it, wall", "ours / it, CPU", title="Seconds a sweep")
    for title, rows in report["results"].items():
        for name, row in rows.items():
            if name != "statistics":
                ratios = [f"{row[key]:.3f}" if key in row else "" for key in ("ours_by_this_wall", "ours_by_this_cpu")]
                table.add_row(title, name, f"{row['wall_seconds']:.4f}", f"{row['cpu_seconds']:.4f}", *ratios)
    console.print(table)
    for title, rows in report["results"].items():
        if rows["ours"]["growth_bytes"] is not None:
            growth, bound = rows["ours"]["growth_bytes"] / 1e6, rows["ours"]["bound_bytes"] / 1e6
            console.print(f"{title}: memory grew by {growth:,.0f} MB; twice data and factors: {bound:,.0f} MB")
        if "statistics" in rows:
            rate, peak = rows["statistics"]["statistics_gigaflops"], rows["statistics"]["sgemm_gigaflops"]
            double = rows["statistics"]["dgemm_gigaflops"]
            console.print(
                f"statistics of rows: {rate:.1f} Gflop/s; sgemm {peak:.1f} ({rate / peak:.0%}), "
                f"dgemm {double:.1f} ({rate / double:.0%})"
            )
    for name, why in report["missing"].items():
        console.print(f"left out: {name} ({why})")
    for name, row in report["first_fit_seconds"].items():
        console.print(f"first fit, {name} cache:", ", ".join(f"{key} {value:.1f} s" for key, value in row.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer-python", metavar="PATH", help="an interpreter that has the peers (default: this)")
    parser.add_argument("--quick", action="store_true", help="small data, to see that everything runs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ranks", type=int, nargs="+", default=list(RANKS))
    parser.add_argument("--myfm-rank", type=int, default=16, help="largest rank of myFM on 20 million ratings")
    parser.add_argument("-o", "--output", type=Path, help="write JSON here")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.worker, options.folder, options.ranks[0])
        return
    shown = ["python benchmarks/gibbs.py", *(["--peer-python PATH"] if options.peer_python else [])]
    shown += ["--quick"] if options.quick else []
    options.command = " ".join([*shown, f"--rounds {options.rounds}", f"--ranks {' '.join(map(str, options.ranks))}"])
    report = run(options)
    show(report)
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
