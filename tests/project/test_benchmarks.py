"""The benchmarks run on small data, with whatever peers there are."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.helpers import quick_and_long

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@quick_and_long(("options", "first_fits"), (["--no-first-fit"], set()), ([], {"cold", "warm"}))
def test_the_benchmark_of_gibbs_sweeps_runs(tmp_path, options, first_fits):
    output = tmp_path / "gibbs.json"
    environment = {name: value for name, value in os.environ.items() if name != "TUCKERGP_DATA"}
    command = [
        sys.executable,
        str(BENCHMARKS / "gibbs.py"),
        "--quick",
        "--rounds",
        "1",
        "--ranks",
        "4",
        "-o",
        str(output),
        *options,
    ]
    subprocess.run(command, check=True, env=environment, capture_output=True)
    report = json.loads(output.read_text())
    (rows,) = report["results"].values()
    assert rows["ours"]["wall_seconds"] > 0
    assert rows["statistics"]["sgemm_gigaflops"] > 0
    assert set(rows) | set(report["missing"]) == {"ours", "statistics", "myfm", "implicit", "cmfrec"}
    assert set(report["first_fit_seconds"]) == first_fits


def test_the_benchmark_of_recommendations_runs(tmp_path):
    output = tmp_path / "recommend.json"
    command = [sys.executable, str(BENCHMARKS / "recommend.py"), "--quick", "--rounds", "1", "-o", str(output)]
    subprocess.run(command, check=True, capture_output=True)
    report = json.loads(output.read_text())
    assert report["results"]["ours"]["wall_seconds"] > 0
    assert set(report["results"]) | set(report["missing"]) == {"ours", "implicit", "product"}


def test_the_benchmark_of_sparse_cores_runs(tmp_path):
    output = tmp_path / "sparse_core.json"
    command = [sys.executable, str(BENCHMARKS / "sparse_core.py"), "--quick", "-o", str(output)]
    subprocess.run(command, check=True, capture_output=True)
    report = json.loads(output.read_text())
    assert set(report["by_entries"]["slopes"]) == {"gradient", "rows of one mode", "core", "learned core", "sweep"}
    assert report["large"]["cpu_seconds_a_sweep"] > 0
