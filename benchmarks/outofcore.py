"""A fit to more ratings than memory is to hold: seconds per sweep, and the peak of anonymous memory.

Synthetic ratings are written to Parquet in no order, and learned from with scratch files. The target is 200 million of
them in 2 GB of anonymous memory::

    python benchmarks/outofcore.py --ratings 200_000_000 --folder /big/disk -o benchmarks/results/outofcore.json
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from gibbs import facts
from peaks import Peaks
from reports import put

PIECE, RANK, DRAWS, WARMUP, KEEP = 2_000_000, 16, 3, 2, 1


def anonymous() -> float:
    """Anonymous memory of this process, in GB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) * 1024 / 1e9
    raise OSError("this system does not tell")


def write(path: Path, ratings: int, users: int, items: int) -> None:
    """Ratings of a model of rank 4, users at random within each piece, few items with most of the ratings."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    psi, phi = rng.standard_normal((users, 4)), rng.standard_normal((items, 4)) / 2
    schema = pa.schema([("user_id", pa.int32()), ("item_id", pa.int32()), ("rating", pa.float32())])
    with parquet.ParquetWriter(path, schema) as writer:
        for first in range(0, ratings, PIECE):
            n = min(PIECE, ratings - first)
            user, item = rng.integers(users, size=n), (items * rng.random(n) ** 2).astype(np.int64)
            y = 3.5 + (psi[user] * phi[item]).sum(axis=1) + 0.8 * rng.standard_normal(n)
            y = np.clip(np.round(2 * y) / 2, 0.5, 5.0)
            columns = [user.astype(np.int32), item.astype(np.int32), y.astype(np.float32)]
            writer.write_table(pa.table(dict(zip(schema.names, columns, strict=True)), schema=schema))


def run(folder: Path, ratings: int, users: int, items: int, memory: bool) -> dict[str, Any]:
    from tuckergp import TuckerRecommender
    from tuckergp.inference import Gibbs

    path = folder / "ratings.parquet"
    write(path, ratings, users, items)
    how = Gibbs(draws=DRAWS, warmup=WARMUP, precision="float32")
    model = TuckerRecommender(rank=RANK, inference=how, implicit=False, time=None, objective="rating", random_state=0)
    times: list[float] = []
    began = time.perf_counter()
    before = anonymous()
    with Peaks(lambda: {"gb": anonymous()}, 0.02) as peaks:
        where = {} if memory else {"scratch": folder}
        model.fit(path, keep=KEEP, callback=lambda info: times.append(time.perf_counter()), **where)
    return {
        "seconds": time.perf_counter() - began,
        "sweep_seconds": float(np.median(np.diff(times))),
        "anonymous_gb": peaks.values["gb"],
        "anonymous_gb_before": before,
        "file_gb": path.stat().st_size / 1e9,
        "train_rmse": model.fit_.steps[-1].figures["train_rmse"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ratings", type=int, default=200_000_000)
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--items", type=int, default=50_000)
    parser.add_argument("--memory", action="store_true", help="in memory, to compare with")
    parser.add_argument("--quick", action="store_true", help="100,000 ratings, to see that everything runs")
    parser.add_argument("--folder", type=Path, help="where the ratings and scratch files are, on a disk")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    size = (100_000, 1_000, 500) if options.quick else (options.ratings, options.users, options.items)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        result = run(Path(folder), *size, options.memory)
    from tuckergp.paper.run import commit

    names = ("ratings", "users", "items")
    run_of = {**dict(zip(names, size, strict=True)), "rank": RANK, "in_memory": options.memory, "machine": facts()}
    before = json.loads(options.output.read_text())["runs"] if options.output and options.output.exists() else []
    put(
        {
            "command": "python benchmarks/outofcore.py",
            "runs": [*before, {**run_of, "commit": commit(), "result": result}],
        },
        options.output,
    )


if __name__ == "__main__":
    main()
