"""Processes that are killed in mid-fit: the result is that of a run that was left alone."""

import json
import signal
import subprocess
import sys

import numpy as np
import pytest

import tuckergp
from tests.spark.conftest import why_not

pytestmark = [pytest.mark.slow, pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]

KILLED = """
import json, os, signal, sys
from tests.spark.conftest import build, environment, frame
environment()
folder, table, stop = sys.argv[1], json.load(open(sys.argv[2])), int(sys.argv[3])
from tuckergp.spark import fit

def end(info):
    if info.step == stop:
        os.kill(os.getpid(), signal.SIGKILL)

model = fit(
    frame(build("local[2]"), table), rank=3, draws=3, warmup=2, random_state=5, checkpoint=folder,
    checkpoint_minutes=0, callback=end,
)
model.save(sys.argv[4])
"""


def test_a_driver_that_was_killed_goes_on(table, tmp_path):
    """Killed in the fourth sweep, started again: the draws of a run that was left alone."""
    (tmp_path / "table.json").write_text(json.dumps(table))
    for folder, stops in (("killed", (4, 0)), ("alone", (0,))):
        for stop in stops:
            given = [str(tmp_path / folder), str(tmp_path / "table.json"), str(stop), str(tmp_path / f"{folder}.tgp")]
            done = subprocess.run([sys.executable, "-c", KILLED, *given], capture_output=True, timeout=300)
            assert done.returncode == (-signal.SIGKILL if stop else 0), done.stderr.decode()[-2000:]
    killed, alone = (tuckergp.load(tmp_path / f"{name}.tgp") for name in ("killed", "alone"))
    for mine, theirs in zip(killed.fit_.draws.modes, alone.fit_.draws.modes, strict=True):
        np.testing.assert_array_equal(np.asarray(mine.rows["psi"]), np.asarray(theirs.rows["psi"]))


EXECUTOR = """
import json, os, signal, sys, time
from tests.spark.conftest import build, environment, frame
environment()
table = json.load(open(sys.argv[1]))
from tuckergp.spark import fit
spark = build("local-cluster[2,1,1024]")

def executor(_):
    pid = os.getpid()
    for _ in range(2):  # the worker's parent is a daemon, and the daemon's is the executor
        pid = int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])
    return pid, open(f"/proc/{pid}/cmdline").read().split(chr(0))

def kill(info):
    if info.step == 2:
        pid, command = spark.sparkContext.parallelize([0], 1).map(executor).first()
        assert any("CoarseGrainedExecutorBackend" in part for part in command), command
        os.kill(pid, signal.SIGKILL)

for name, callback in (("alone", None), ("killed", kill)):
    model = fit(frame(spark, table), rank=3, draws=3, warmup=2, random_state=5, partitions=4, callback=callback)
    model.save(f"{sys.argv[2]}/{name}.tgp")
spark.stop()
"""


def test_an_executor_that_was_killed_changes_nothing(table, tmp_path):
    """Two executors; one is killed after the second sweep, and its shards are made again elsewhere."""
    (tmp_path / "table.json").write_text(json.dumps(table))
    given = [str(tmp_path / "table.json"), str(tmp_path)]
    done = subprocess.run([sys.executable, "-c", EXECUTOR, *given], capture_output=True, timeout=900)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    killed, alone = (tuckergp.load(tmp_path / f"{name}.tgp") for name in ("killed", "alone"))
    for mine, theirs in zip(killed.fit_.draws.modes, alone.fit_.draws.modes, strict=True):
        np.testing.assert_array_equal(np.asarray(mine.rows["psi"]), np.asarray(theirs.rows["psi"]))
