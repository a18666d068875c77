"""Spark's own ALS and ours on the same data, session and cores: seconds per iteration, test RMSE, memory.

The full size is 20 million ratings by ``local[2]``, rank 16. Afterwards, the same fit with 1, 2, 4 and 8 partitions,
and where one user has a fifth of all ratings and everybody has rated one item::

    python benchmarks/spark.py -o benchmarks/results/spark.json
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from contestants import write_synthetic
from gibbs import facts
from peaks import Peaks
from reports import Resumed, commit, put

FULL = {"users": 138_000, "items": 27_000, "ratings": 20_000_000, "rank": 16, "sweeps": 12, "warmup": 4, "memory": "6g"}
MIDDLE = {**FULL, "users": 6_000, "items": 1_500, "ratings": 200_000, "memory": "2g"}
QUICK = {"users": 600, "items": 200, "ratings": 20_000, "rank": 4, "sweeps": 4, "warmup": 2, "memory": "1g"}
SHORT, PARTITIONS, TEST = 2, (1, 2, 4, 8), 0.1
# The share of the ratings that one user has in the skewed set.
SKEWED = 0.2
# Penalties of Spark's ALS that are compared on a part of the training ratings, from the first on in both directions.
PENALTIES = (0.05, 0.1, 0.2, 0.4, 0.025, 0.0125)


def memory() -> dict[str, float]:
    """The memory, in GiB, of this process, of Java, and of the Python workers together."""
    now = {"driver": 0.0, "java": 0.0, "workers": 0.0}
    for pid, kind in _family().items():
        now[kind] += _resident(pid)
    return now


def _family() -> dict[int, str]:
    """What each process is: the driver, and all that it started."""
    parents, names = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        parents[int(folder.name)], names[int(folder.name)] = int(rest.split()[1]), name
    found = {os.getpid(): "driver"}
    for _ in range(4):  # Java, the daemon, its workers
        for pid, parent in parents.items():
            if parent in found and pid not in found:
                found[pid] = "java" if names[pid] == "java" else "workers"
    return found


def _resident(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**30
    except OSError:
        return 0.0


def clock() -> np.ndarray:
    """Wall time, and CPU time of all processes: on a machine with other work the second says more."""
    spent = 0.0
    for pid in _family():
        try:
            numbers = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        spent += (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK")
    return np.array([time.perf_counter(), spent])


def write(folder: Path, size: dict[str, Any]) -> None:
    """The synthetic set as Parquet, nine tenths to learn from and the rest to judge."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    write_synthetic(folder, size["users"], size["items"], size["ratings"])
    user, item, y = (np.load(folder / f"{name}.npy") for name in ("user", "item", "y"))
    test = np.random.default_rng(1).random(len(y)) < TEST
    for name, rows in (("train", ~test), ("test", test)):
        table = pa.table({"user": user[rows].astype(np.int32), "item": item[rows].astype(np.int32), "rating": y[rows]})
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=1_000_000)


def write_skewed(folder: Path) -> None:
    """The ratings to learn from, a fifth of them given to one user, and one of every other user to one item."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(folder / "train.parquet")
    user, item = (table[name].to_numpy().copy() for name in ("user", "item"))
    user[np.random.default_rng(2).random(len(user)) < SKEWED] = user.max() + 1
    item[np.unique(user, return_index=True)[1]] = 0
    columns = {"user": user, "item": item, "rating": table["rating"]}
    pq.write_table(pa.table(columns), folder / "skewed.parquet", row_group_size=1_000_000)


def als_error(train: Any, test: Any, rank: int, rounds: int, penalty: float) -> float:
    """The RMSE of Spark's ALS on other ratings."""
    from pyspark.ml.recommendation import ALS

    model = ALS(rank=rank, maxIter=rounds, regParam=penalty, seed=0, coldStartStrategy="drop").fit(train)
    return float(model.transform(test).selectExpr("avg(pow(rating - prediction, 2)) as mse").first()["mse"] ** 0.5)


def penalties(spark: Any, folder: Path, size: dict[str, Any]) -> dict[str, float]:
    """The error of Spark's ALS on a tenth of the training ratings, by its penalty, until both sides are worse."""
    learn, held = spark.read.parquet(str(folder / "train.parquet")).randomSplit([1 - TEST, TEST], seed=1)
    learn, held, found = learn.cache(), held.cache(), dict[float, float]()
    for penalty in PENALTIES:
        beside = [other for other in found if max(other / penalty, penalty / other) < 2.5]
        if not found or min(found, key=found.__getitem__) in beside:
            found[penalty] = als_error(learn, held, size["rank"], size["sweeps"], penalty)
    learn.unpersist()
    held.unpersist()
    return {str(penalty): error for penalty, error in found.items()}


def als(spark: Any, folder: Path, size: dict[str, Any], penalty: float) -> dict[str, Any]:
    """Spark's ALS: time by the difference of a long and a short run, so that reading the data cancels."""
    from pyspark.ml.recommendation import ALS

    train = spark.read.parquet(str(folder / "train.parquet")).cache()
    train.count()
    test = spark.read.parquet(str(folder / "test.parquet"))
    seconds, model = [], None
    with Peaks(memory, 0.5) as peaks:
        for rounds in (SHORT, SHORT, size["sweeps"]):  # the first one warms Java up
            start = clock()
            estimator = ALS(rank=size["rank"], maxIter=rounds, regParam=penalty, seed=0, coldStartStrategy="drop")
            model = estimator.fit(train)
            seconds.append(clock() - start)
    assert model is not None
    errors = model.transform(test).selectExpr("avg(pow(rating - prediction, 2)) as mse").first()
    train.unpersist()
    each = (seconds[2] - seconds[1]) / (size["sweeps"] - SHORT)
    return {
        **spent(each, seconds[2]),
        "rmse": errors["mse"] ** 0.5,
        "penalty": penalty,
        "gib": peaks.values,
        "commit": commit(),
    }


def spent(iteration: np.ndarray, total: np.ndarray) -> dict[str, float]:
    """The times of a report."""
    names = ("iteration_seconds", "iteration_cpu_seconds", "total_seconds", "total_cpu_seconds")
    return dict(zip(names, [*iteration.tolist(), *total.tolist()], strict=True))


def ours(
    spark: Any,
    folder: Path,
    size: dict[str, Any],
    partitions: int | None = None,
    short: bool = False,
    name: str = "train",
) -> Any:
    """Gibbs sampling by Spark; the time of a sweep is the median after the first two."""
    import pandas as pd

    from tuckergp.inference import Gibbs
    from tuckergp.spark import fit
    from tuckergp.spark.problem import Workers
    from tuckergp.spark.reading import Sharded

    moved: list[list[int]] = []
    times, start = [], clock()
    draw_users, run = Workers.draw_users, Sharded._run

    def counted(self: Any, request: Any) -> Any:
        moved.append([request.items.nbytes, 0])
        return draw_users(self, request)

    def returned(self: Any, *job: Any) -> Any:
        found = run(self, *job)
        if moved:  # branches, which have their place in the tree, or pieces of their sum
            values = [each[1] if isinstance(each, tuple) else each for each in found]
            moved[-1][1] += sum(each.nbytes for each in values if isinstance(each, np.ndarray))
        return found

    Workers.draw_users, Sharded._run = counted, returned  # type: ignore[method-assign]
    sweeps = SHORT + 3 if short else size["sweeps"]
    warmup = 1 if short else size["warmup"]
    train = spark.read.parquet(str(folder / f"{name}.parquet"))
    how = Gibbs(draws=sweeps - warmup, warmup=warmup, precision="float32")
    try:
        with Peaks(memory, 0.5) as peaks:
            model = fit(
                train,
                rank=size["rank"],
                inference=how,
                random_state=0,
                partitions=partitions,
                callback=lambda info: times.append(clock()),
                keep=None if not short else 1,
            )
    finally:
        Workers.draw_users, Sharded._run = draw_users, run  # type: ignore[method-assign]
    total = clock() - start
    test = pd.read_parquet(folder / "test.parquet")
    rmse = float(np.sqrt(np.mean((model.predict(test) - test["rating"].to_numpy()) ** 2)))
    out, back = moved[-1]
    return {
        **spent(np.median(np.diff(times, axis=0)[1:], axis=0), total),
        "rmse": rmse,
        "gib": peaks.values,
        "commit": commit(),
        "sent_mb": out / 1e6,
        "returned_mb": back / 1e6,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small data, to see that everything runs")
    parser.add_argument("--middle", action="store_true", help="200,000 ratings")
    parser.add_argument("--no-partitions", action="store_true", help="leave out the runs with 1, 2, 4 and 8 partitions")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    size = QUICK if options.quick else MIDDLE if options.middle else FULL
    builder = SparkSession.builder.master(f"local[{options.cores}]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", size["memory"]).config("spark.driver.maxResultSize", "0")
    builder = builder.config("spark.sql.shuffle.partitions", str(2 * options.cores))
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    head = {
        "command": " ".join(["python benchmarks/spark.py", *(["--middle"] * options.middle)]),
        "machine": facts(),
        "size": size,
        "cores": options.cores,
    }
    report = Resumed(head, "results", options.output)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "synthetic"
        write(folder, size)
        print("ours", report.cell(("ours",), lambda: ours(spark, folder, size)), flush=True)
        print("penalties of ALS", report.cell(("penalties",), lambda: penalties(spark, folder, size)), flush=True)
        errors = report.cells["penalties"]
        best = float(min(errors, key=errors.get))
        print("als", report.cell(("als",), lambda: als(spark, folder, size, best)), flush=True)
        for partitions in () if options.no_partitions else PARTITIONS:
            cell = report.cell(
                ("partitions", str(partitions)), lambda p=partitions: ours(spark, folder, size, p, short=True)
            )
            print(partitions, cell, flush=True)
        write_skewed(folder)
        skewed = report.cell(("skewed",), lambda: ours(spark, folder, size, short=True, name="skewed"))
        print("skewed", skewed, flush=True)
    put(report.report, options.output)
    spark.stop()


if __name__ == "__main__":
    main()
