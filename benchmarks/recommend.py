"""What the best 10 items of every user cost, against implicit; and memory from a Parquet file to a fitted model.

Ours fits 30 sweeps from Parquet, keeps 20 draws at rank 16, and then recommends by their mean, items rated left out,
with standard deviations of the items returned. implicit is given the same factors, 20 x 16 a row, and the same ratings
to leave out, and recommends the same. Each is a process of its own on two threads; they take turns::

    python benchmarks/recommend.py --peer-python /path/to/other/bin/python -o benchmarks/results/recommend.json
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
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from contestants import SEED, THREADS, Data, Timing, clock, memory, start_peak, timing, write_synthetic
from gibbs import Process, facts
from reports import put

FULL = {"users": 138_000, "items": 27_000, "ratings": 20_000_000, "rank": 16, "draws": 20, "warmup": 10}
QUICK = {"users": 1_000, "items": 500, "ratings": 20_000, "rank": 4, "draws": 5, "warmup": 2}
K = 10
GIB = 2.0**30
PRODUCT_ROWS = 4096


def write_data(folder: Path, size: dict[str, int]) -> None:
    """The ratings as arrays, as a Parquet file, and as the items of every user."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from scipy import sparse

    write_synthetic(folder, size["users"], size["items"], size["ratings"])
    data = Data(folder)
    table = pa.table({"user_id": data.user, "item_id": data.item, "rating": data.y})
    pq.write_table(table, folder / "ratings.parquet")
    ones = np.ones(len(data.user), dtype=np.float32)
    seen = sparse.csr_matrix((ones, (data.user, data.item)), shape=tuple(data.sizes))
    seen.sort_indices()
    np.save(folder / "indptr.npy", seen.indptr)
    np.save(folder / "indices.npy", seen.indices)
    (folder / "size.json").write_text(json.dumps(size))


# Contestants: made in a process of their own; each call times one round


class Ours:
    """Fits from Parquet; a round is `recommend` for all users, from the draws to a data frame."""

    package = "tuckergp"

    def __init__(self, folder: Path) -> None:
        from tuckergp import TuckerRecommender

        self.folder, self.size = folder, json.loads((folder / "size.json").read_text())
        self.indptr, self.indices = np.load(folder / "indptr.npy"), np.load(folder / "indices.npy")
        peaks: list[float | None] = []

        def after_sweep(_: Any) -> None:
            if not peaks:
                peaks.append(memory("VmHWM"))
                start_peak()

        settings = {name: self.size[name] for name in ("rank", "draws", "warmup")}
        self.rec = TuckerRecommender(**settings, implicit=False, time=None, objective="rating", random_state=SEED)
        before = start_peak()
        start = time.perf_counter()
        self.rec.fit(folder / "ratings.parquet", callback=after_sweep, progress=False)
        self.fitting = {
            "seconds": time.perf_counter() - start,
            "sweeps": self.size["draws"] + self.size["warmup"],
            "bytes_before": before,
            "peak_bytes_to_first_sweep": peaks[0],
            "peak_bytes_of_later_sweeps": memory("VmHWM"),
        }
        self.model_bytes = start_peak()
        Q, V = self.factors()
        np.save(folder / "Q.npy", Q)
        np.save(folder / "V.npy", V)
        self.growth: list[float] = []

    def factors(self) -> tuple[np.ndarray, np.ndarray]:
        """Of all users and items in all draws, by their ids, shapes (rows, draws x rank)."""
        vectors = self.rec.embeddings()
        out = []
        for ids, found in ((vectors.user_ids, vectors.users), (vectors.item_ids, vectors.items)):
            out.append(np.zeros((self.size["users" if not out else "items"], found.shape[1]), dtype=np.float32))
            out[-1][ids] = found
        return out[0], out[1]

    def __call__(self) -> Timing:
        """One round."""
        before = start_peak()
        start = clock()
        found = self.rec.recommend(n=K)
        spent = timing(clock() - start)
        peak = memory("VmHWM")
        if peak is not None and before is not None:
            self.growth.append(peak - before)
        assert np.isfinite(found["std"]).all()
        items = np.full((self.size["users"], K), -1)
        items[found["user_id"], found["rank"] - 1] = found["item_id"]
        np.save(self.folder / "items.npy", items)
        return spent

    def facts(self) -> dict[str, Any]:
        """Memory, and how wide the product is."""
        return {
            "growth_bytes": max(self.growth, default=None),
            "model_bytes": self.model_bytes,
            "width": self.size["draws"] * self.size["rank"],
            "fitting": self.fitting,
        }


class Implicit:
    """`recommend` of implicit with our factors."""

    package = "implicit"

    def __init__(self, folder: Path) -> None:
        from implicit.cpu.als import AlternatingLeastSquares  # type: ignore[import-not-found]
        from scipy import sparse

        self.folder = folder
        Q, V = np.load(folder / "Q.npy"), np.load(folder / "V.npy")
        indptr, indices = np.load(folder / "indptr.npy"), np.load(folder / "indices.npy")
        ones = np.ones(len(indices), dtype=np.float32)
        self.seen = sparse.csr_matrix((ones, indices, indptr), shape=(len(Q), len(V)))
        self.model = AlternatingLeastSquares(Q.shape[1], num_threads=THREADS)
        self.model.user_factors, self.model.item_factors = Q, V
        self.users = np.arange(len(Q))
        self.growth: list[float] = []
        self.found: Any = None

    def __call__(self) -> Timing:
        """One round."""
        before = start_peak()
        start = clock()
        self.found, _ = self.model.recommend(self.users, self.seen, N=K, filter_already_liked_items=True)
        spent = timing(clock() - start)
        peak = memory("VmHWM")
        if peak is not None and before is not None:
            self.growth.append(peak - before)
        return spent

    def facts(self) -> dict[str, Any]:
        """Memory, and how many lists are as ours, but for their order."""
        ours = np.load(self.folder / "items.npy")
        same = (np.sort(ours, axis=1) == np.sort(self.found, axis=1)).all(axis=1).mean()
        return {"growth_bytes": max(self.growth, default=None), "same_lists": float(same)}


class Product:
    """The matrix product at full width of some rows, alone: a bound for all who compute it, by BLAS on all threads."""

    package = "numpy"

    def __init__(self, folder: Path) -> None:
        Q = np.load(folder / "Q.npy", mmap_mode="r")
        self.V, self.all = np.load(folder / "V.npy"), len(Q)
        self.Q = np.array(Q[:PRODUCT_ROWS])
        self.out = np.empty((512, len(self.V)), dtype=np.float32)
        self.rates: list[float] = []

    def __call__(self) -> Timing:
        """One round, scaled to all rows."""
        start = clock()
        for first in range(0, len(self.Q), len(self.out)):
            rows = self.Q[first : first + len(self.out)]
            np.matmul(rows, self.V.T, out=self.out[: len(rows)])
        spent = clock() - start
        self.rates.append(2 * self.Q.size * len(self.V) / spent[1] / 1e9)
        return timing(spent * self.all / len(self.Q))

    def facts(self) -> dict[str, Any]:
        """Gigaflops by wall time, the best round."""
        return {"gigaflops": max(self.rates)}


CONTESTANTS: dict[str, Any] = {"ours": Ours, "implicit": Implicit, "product": Product}


def work(name: str, folder: Path) -> None:
    """What a contestant's process runs: a round for every line it reads; at the end, its facts."""
    contestant = CONTESTANTS[name]
    try:
        ready = contestant(folder)
    except ImportError as error:
        print(json.dumps({"missing": f"{contestant.package}: {error}"}), flush=True)
        return
    print(json.dumps({"version": version(contestant.package), "python": platform.python_version()}), flush=True)
    for _ in sys.stdin:
        print(json.dumps(ready()), flush=True)
    print(json.dumps(ready.facts()), flush=True)


class Contestant(Process):
    """One of these contestants elsewhere."""

    def __init__(self, python: str, name: str, folder: Path) -> None:
        threads = dict.fromkeys(("NUMBA_NUM_THREADS", "OMP_NUM_THREADS"), str(THREADS))
        blas = str(1 if name == "implicit" else THREADS)  # implicit shares rows among its threads, and asks for this
        environment = {**os.environ, **threads, "OPENBLAS_NUM_THREADS": blas, "TQDM_DISABLE": "1"}
        self.process = subprocess.Popen(
            [python, "-W", "ignore", __file__, "--worker", name, "--folder", str(folder)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        self.hello = self._answer()
        self.missing = self.hello.get("missing")


# The run


def compete(folder: Path, options: argparse.Namespace) -> tuple[dict[str, Any], dict[str, str]]:
    """Rounds of all contestants in turn, after one to warm up. Results by name, and what was missing."""
    processes: dict[str, Contestant] = {}
    missing: dict[str, str] = {}
    for name in CONTESTANTS:
        python = options.peer_python if name == "implicit" and options.peer_python else sys.executable
        process = Contestant(python, name, folder)
        if process.missing:
            missing[name] = process.missing
            print(f"{name} is left out; {process.missing}", file=sys.stderr)
            process.close()
        else:
            processes[name] = process
    timings: dict[str, list[Timing]] = {name: [] for name in processes}
    for k in range(options.rounds + 1):
        for name, process in processes.items():
            timings[name].append(process())
            print(f"round {k}: {name} {timings[name][-1]}", file=sys.stderr, flush=True)
    results = {
        name: {
            "wall_seconds": statistics.median(entry["wall"] for entry in entries[1:]),
            "cpu_seconds": statistics.median(entry["cpu"] for entry in entries[1:]),
            "rounds": entries[1:],
            **processes[name].hello,
            **processes[name].close(),
        }
        for name, entries in timings.items()
    }
    for name, row in results.items():
        if name != "ours":
            row["ours_by_this_wall"] = results["ours"]["wall_seconds"] / row["wall_seconds"]
            row["ours_by_this_cpu"] = results["ours"]["cpu_seconds"] / row["cpu_seconds"]
    return results, missing


def run(options: argparse.Namespace) -> dict[str, Any]:
    size = QUICK if options.quick else FULL
    report: dict[str, Any] = {
        "command": options.command, "threads": THREADS, "seed": SEED, "size": size, "k": K, "machine": facts(),
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as place:
        write_data(Path(place) / "synthetic", size)
        report["results"], report["missing"] = compete(Path(place) / "synthetic", options)
    report["fitting"] = report["results"]["ours"].pop("fitting")
    if hasattr(os, "getloadavg"):
        report["machine"]["load_average_at_end"] = os.getloadavg()[0]
    return report


def show(report: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table("program", "wall s", "CPU s", "ours / it, wall", "ours / it, CPU", "memory grown, GiB")
    for name, row in report["results"].items():
        ratios = [f"{row[key]:.3f}" if key in row else "" for key in ("ours_by_this_wall", "ours_by_this_cpu")]
        grown = row.get("growth_bytes")
        shown = "" if grown is None else f"{grown / GIB:.2f}"
        table.add_row(name, f"{row['wall_seconds']:.2f}", f"{row['cpu_seconds']:.2f}", *ratios, shown)
    console.print(table)
    fitting = report["fitting"]
    peaks = [value for name, value in fitting.items() if name.startswith("peak") and value is not None]
    if peaks:
        console.print(f"from Parquet to a model: {fitting['seconds']:.0f} s, at most {max(peaks) / GIB:.2f} GiB")
    for name, why in report["missing"].items():
        console.print(f"left out: {name} ({why})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer-python", metavar="PATH", help="an interpreter that has implicit (default: this)")
    parser.add_argument("--quick", action="store_true", help="small data, to see that everything runs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("-o", "--output", type=Path, help="write JSON here")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.worker, options.folder)
        return
    shown = ["python benchmarks/recommend.py", *(["--peer-python PATH"] if options.peer_python else [])]
    options.command = " ".join([*shown, *(["--quick"] if options.quick else []), f"--rounds {options.rounds}"])
    report = run(options)
    show(report)
    if options.output:
        put(report, options.output)


if __name__ == "__main__":
    main()
