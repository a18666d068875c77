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
from importlib.metadata import version
from pathlib import Path
from typing import Any

from contestants import (
    CONTESTANTS,
    THREADS,
    Timing,
    work,
    write_attributed,
    write_movielens,
    write_stars,
    write_synthetic,
    write_words,
)
from variants import VARIANTS

RANKS = (16, 64)
PEERS = ("myfm", "implicit", "cmfrec")
SETS = ("movielens", "synthetic", "stars", "clicks")
# Sets of our own sweeps alone, in runs of their own.
OWN = ("paths", "co-rating")


class Process:
    """A contestant elsewhere: says whether it is there, runs rounds, ends with its facts."""

    def __init__(self, python: str, name: str, folder: Path, rank: int, source: Path | None = None) -> None:
        threads = dict.fromkeys(("NUMBA_NUM_THREADS", "OMP_NUM_THREADS"), str(THREADS))
        blas = str(THREADS if name == "statistics" else 1)  # implicit and cmfrec share rows, not matrix products
        environment = {**os.environ, **threads, "OPENBLAS_NUM_THREADS": blas, "TQDM_DISABLE": "1"}
        if source is not None:
            environment |= {"PYTHONPATH": str(source / "src"), "NUMBA_CACHE_DIR": str(folder / "numba")}
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
        process = Process(python, name, folder, rank, options.earlier if name.endswith(", earlier") else None)
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
    for row in (results[name] for name in results if name in PEERS):
        for name in (name for name in results if name not in (*PEERS, "statistics")):
            for clock in ("wall", "cpu"):
                ratio = results[name][f"{clock}_seconds"] / row[f"{clock}_seconds"]
                row[f"{name.replace(', ', '_').lower()}_by_this_{clock}"] = ratio
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


def sets(
    options: argparse.Namespace, place: Path, shape: tuple[int, int, int]
) -> dict[str, tuple[Path, tuple[str, ...]]]:
    """Data sets that are asked for: their titles, folders and contestants."""
    ours, clicks = ("ours", "ours, float32"), ("clicks, Gibbs", "clicks, ALS")
    title = f"synthetic, {shape[0]:,} x {shape[1]:,}, {shape[2]:,} ratings"
    found: dict[str, tuple[Path, tuple[str, ...]]] = {}
    if "movielens" in options.sets and os.environ.get("TUCKERGP_DATA"):
        found["movielens-100k, attributes"] = place / "movielens", (*ours, "myfm")
        write_movielens(place / "movielens", 5_000 if options.quick else 100_000)
    if set(options.sets) & {"synthetic", "stars", "clicks"}:
        write_synthetic(place / "synthetic", *shape)
    if "synthetic" in options.sets:
        found[title] = place / "synthetic", (*ours, *PEERS, "statistics")
    if "stars" in options.sets:
        found[f"{title} of half stars"] = write_stars(place / "synthetic", place / "stars"), (*ours, "implicit")
    if "clicks" in options.sets:
        folder = write_attributed(place / "synthetic", place / "clicks")
        found[f"{title.replace('ratings', 'clicks')}, attributes of ours"] = folder, (*clicks, "implicit")
    if "paths" in options.sets:
        users, items, n = (300, 80, 6_000) if options.quick else (30_000, 8_000, 1_500_000)
        write_synthetic(place / "paths", users, items, n)
        paths = tuple(name for name in VARIANTS if not name.startswith("co-rating"))
        found[f"{users:,} x {items:,}, {n:,} ratings"] = place / "paths", ("ours", *paths)
    if "co-rating" in options.sets:
        users, items, n = (400, 350, 6_000) if options.quick else (6_000, 4_000, 1_000_000)
        write_synthetic(place / "co-rating", users, items, n)
        names = ("co-rating", *(["co-rating, earlier"] if options.earlier else []))
        found[f"{users:,} x {items:,}, {n:,} ratings"] = place / "co-rating", names
        if os.environ.get("TUCKERGP_DATA"):
            found["movielens-100k, attributes, words of titles"] = place / "words", names
            write_words(place / "words", 5_000 if options.quick else 100_000)
    return found


def commit_of(folder: Path) -> str | None:
    """The commit that is checked out in a folder, or None outside of a repository."""
    done = subprocess.run(["git", "-C", str(folder), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() or None


def run(options: argparse.Namespace) -> dict[str, Any]:
    shape = (1_000, 500, 20_000) if options.quick else (138_000, 27_000, 20_000_000)
    report: dict[str, Any] = {"command": options.command, "threads": THREADS, "machine": facts(), "results": {}}
    report["commit"] = commit_of(Path(__file__).parent)
    if options.earlier:
        report["earlier_commit"] = commit_of(options.earlier)
    missing: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as place:
        for title, (folder, names) in sets(options, Path(place), shape).items():
            large = title.startswith("synthetic") and not options.quick
            for rank in options.ranks:
                rounds = {name: 1 if large and name in ("myfm", "cmfrec") else options.rounds for name in names}
                if large and rank > options.myfm_rank and rounds.pop("myfm", None):
                    missing[f"myfm, {title}, rank {rank}"] = "not run: too slow"
                if rank != max(options.ranks):
                    rounds.pop("statistics", None)
                report["results"][f"{title} | rank {rank}"], more = compete(title, folder, rank, rounds, options)
                missing |= more
    report["missing"] = missing
    report["first_fit_seconds"] = {} if options.no_first_fit else compile_times()
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
        for name, row in rows.items():
            if row.get("growth_bytes") is not None:
                growth, bound = row["growth_bytes"] / 1e6, row["bound_bytes"] / 1e6
                console.print(f"{title}, {name}: memory grew by {growth:,.0f} MB; twice data and factors: {bound:,.0f}")
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
    parser.add_argument("--no-first-fit", action="store_true", help="do not time a first fit, which compiles")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ranks", type=int, nargs="+", default=list(RANKS))
    parser.add_argument("--sets", nargs="+", choices=SETS + OWN, default=list(SETS), help="which data sets")
    parser.add_argument("--earlier", type=Path, metavar="PATH", help="a checkout of an earlier commit, for co-rating")
    parser.add_argument("--myfm-rank", type=int, default=16, help="largest rank of myFM on 20 million ratings")
    parser.add_argument("-o", "--output", type=Path, help="write JSON here")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(CONTESTANTS | VARIANTS, options.worker, options.folder, options.ranks[0])
        return
    from reports import put  # needs tuckergp, which a peer's environment lacks

    shown = ["python benchmarks/gibbs.py", *(["--peer-python PATH"] if options.peer_python else [])]
    shown += ["--quick"] if options.quick else []
    shown += ["--earlier PATH"] if options.earlier else []
    shown += [] if options.sets == list(SETS) else ["--sets", *options.sets]
    options.command = " ".join([*shown, f"--rounds {options.rounds}", f"--ranks {' '.join(map(str, options.ranks))}"])
    report = run(options)
    show(report)
    if options.output:
        put(report, options.output)


if __name__ == "__main__":
    main()
