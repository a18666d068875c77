"""Ctrl-C, SIGTERM, kills and time limits, wherever they come."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.helpers import fingerprint
from tuckergp import TuckerRecommender, load
from tuckergp.data.datasets import make_ratings
from tuckergp.data.splits import KFold
from tuckergp.errors import DataWarning
from tuckergp.evaluation.evaluate import evaluate
from tuckergp.evaluation.tuning import tune
from tuckergp.inference import als, gibbs
from tuckergp.recommender import drift_trial, learning
from tuckergp.running import loop


@pytest.fixture(autouse=True)
def ctrl_c_is_heard():
    """Python's own handler, also where the tests run in the background, which ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def with_times():
    data = make_ratings(n_users=50, n_items=50, n_ratings=900, random_state=0)
    when = 880_000_000 + np.random.default_rng(0).integers(0, 60, len(data.train)) * 86_400
    return {**{name: data.train[name] for name in ("user_id", "item_id", "rating")}, "timestamp": when}


def recommender(**settings):
    return TuckerRecommender(**{"rank": 2, "draws": 6, "warmup": 3, "random_state": 3, **settings})


def press_ctrl_c(monkeypatch, kind, at):
    """Press Ctrl-C in step ``at`` of all steps of an algorithm; the list that is returned has one entry for each."""
    taken, step = [], kind.step

    def counted(self, *arguments):
        taken.append(1)
        if len(taken) == at:
            os.kill(os.getpid(), signal.SIGINT)
        return step(self, *arguments)

    monkeypatch.setattr(kind, "step", counted)
    return taken


def test_ctrl_c_after_the_last_sweep_loses_nothing(monkeypatch):
    assemble = loop._assemble

    def pressed(*arguments):
        os.kill(os.getpid(), signal.SIGINT)
        return assemble(*arguments)

    monkeypatch.setattr(loop, "_assemble", pressed)
    assert len(recommender(time=None).fit(with_times()).fit_.draws) == 6


def test_ctrl_c_interrupts_the_trial_of_drift(monkeypatch):
    taken = press_ctrl_c(monkeypatch, gibbs.Gibbs, 5)
    with pytest.raises(KeyboardInterrupt):
        recommender().fit(with_times())
    assert len(taken) <= 6


def test_the_trial_of_drift_counts_towards_the_time(monkeypatch):
    left = []

    def slow(settings, table, users, items, seed, max_time):
        left.append(max_time)
        time.sleep(1.0)
        return False

    learn_from = learning.learn_from

    def noted(settings, inference, material, run, last=None):
        left.append(run.control.max_time)
        return learn_from(settings, inference, material, run, last)

    monkeypatch.setattr("tuckergp.recommender.estimator.drift_helps", slow)
    monkeypatch.setattr(learning, "learn_from", noted)
    recommender().fit(with_times(), max_time=6.0)
    assert left[0] == 3.0
    assert left[1] < 5.0


def test_a_trial_that_runs_out_of_time_says_so_and_stops(monkeypatch):
    with pytest.warns(DataWarning, match="too short to try out whether users drift"):
        model = recommender().fit(with_times(), max_time=0.0)
    assert model.time_ is None
    assert len(model.fit_.steps) == 1


@pytest.mark.parametrize("helps", [True, False])
def test_a_run_that_goes_on_does_not_decide_anew(helps, monkeypatch, tmp_path):
    ratings = with_times()
    monkeypatch.setattr("tuckergp.recommender.estimator.drift_helps", lambda *_: helps)
    recommender().fit(ratings, checkpoint=tmp_path / "run", max_time=0.0)
    assert json.loads((tmp_path / "run" / "choice.json").read_text())["choice"] is helps

    def never(*_):
        raise AssertionError

    whole = recommender().fit(ratings)
    monkeypatch.setattr("tuckergp.recommender.estimator.drift_helps", never)
    resumed = recommender().fit(ratings, checkpoint=tmp_path / "run")
    assert resumed.time_ == ("week" if helps else None)
    assert fingerprint(resumed.fit_.draws) == fingerprint(whole.fit_.draws)


def test_ctrl_c_ends_als_with_what_there_is(monkeypatch):
    taken = press_ctrl_c(monkeypatch, als.ALS, 3)
    model = TuckerRecommender(rank=2, inference=als.ALS(iterations=500, tolerance=1e-300)).fit(with_times())
    assert len(taken) == len(model.fit_.steps) == 3


def test_ctrl_c_interrupts_evaluate(monkeypatch):
    taken = press_ctrl_c(monkeypatch, gibbs.Gibbs, 5)
    with pytest.raises(KeyboardInterrupt):
        evaluate(recommender(time=None), with_times(), metrics=["rmse"])
    assert len(taken) == 5


@pytest.mark.parametrize(("at", "finished"), [(2 * 9 + 4, 1), (4 * 9 + 4, 2)], ids=["search", "last fit"])
def test_ctrl_c_in_tune_keeps_what_is_finished(at, finished, monkeypatch):
    taken = press_ctrl_c(monkeypatch, gibbs.Gibbs, at)
    model = recommender(time=None)
    data = with_times()
    if finished == 1:
        found = tune(model, data, grid={"rank": [1, 2]}, split=KFold(2), random_state=0)
    else:
        with pytest.warns(UserWarning, match="was interrupted, and is not fitted"):
            found = tune(model, data, grid={"rank": [1, 2]}, split=KFold(2), random_state=0)
    assert len(found.trials) == finished
    assert not hasattr(found.best_model, "fit_")
    assert len(taken) == at


SETS = """
import sys
from tests.running.test_stopping import recommender, with_times
users = {"user_id": list(range(50)), "likes": [{"a", "b", str(k % 3), f"x{k % 5}"} for k in range(50)]}
data = with_times()
names = sorted(set(data["user_id"].tolist()))
users = {"user_id": names, "likes": users["likes"][: len(names)]}
model = recommender(time=None).fit(data, users, checkpoint=sys.argv[1], max_time=float(sys.argv[2]))
print(len(model.fit_.draws))
"""


def test_tables_with_sets_go_on_in_another_process(tmp_path):
    for seed, max_time, draws in (("1", "0", "1"), ("2", "1000", "6")):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        arguments = [sys.executable, "-W", "ignore", "-c", SETS, str(tmp_path / "run"), max_time]
        done = subprocess.run(arguments, capture_output=True, text=True, env=environment)
        assert done.stdout.split() == [draws], done.stderr


KILLED = """
import os, signal, sys
from tests.running.test_stopping import recommender, with_times
def kill(info):
    if info.step == 5:
        if sys.argv[2] == "parent":
            os.kill(os.getpid(), signal.SIGKILL)
        me = os.getpid()
        for child in open(f"/proc/{me}/task/{me}/children").read().split():
            if b"popen_loky" in open(f"/proc/{child}/cmdline", "rb").read():
                os.kill(int(child), signal.SIGKILL)
recommender(time=None, chains=2, n_jobs=2, draws=2000).fit(
    with_times(), checkpoint=sys.argv[1], checkpoint_minutes=0, callback=kill)
"""


@pytest.mark.parametrize("who", ["parent", "worker"])
def test_a_run_in_several_processes_that_is_killed_can_go_on(who, tmp_path):
    if who == "worker" and not Path("/proc/self/task").is_dir():
        pytest.skip("needs /proc")
    arguments = [sys.executable, "-W", "ignore", "-c", KILLED, str(tmp_path / "run"), who]
    done = subprocess.run(arguments, capture_output=True, text=True, env=dict(os.environ), timeout=300)
    assert done.returncode == (-signal.SIGKILL if who == "parent" else 1)
    assert who == "parent" or "A process that ran chains ended without a word" in done.stderr
    wait_until_free(tmp_path / "run")
    ratings = with_times()
    settings = {"time": None, "chains": 2, "draws": 2000}
    resumed = recommender(**settings).fit(ratings, checkpoint=tmp_path / "run", max_time=0.5)
    assert len(resumed.fit_.draws.lengths) == 2


def wait_until_free(folder):
    """Workers of a parent that was killed end by themselves: the folder no longer changes."""
    for _ in range(100):
        before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
        time.sleep(0.5)
        if before == {path: path.stat().st_mtime_ns for path in folder.iterdir()}:
            return
    raise AssertionError("workers go on after their parent was killed")


def test_sigterm_ends_the_command_with_what_there_is(tmp_path):
    data = with_times()
    lines = ["user_id,item_id,rating", *(",".join(map(str, row)) for row in zip(*list(data.values())[:3], strict=True))]
    (tmp_path / "ratings.csv").write_text("\n".join(lines))
    call = "from tuckergp.cli import main; main()"
    command = [sys.executable, "-c", call, "fit", "ratings.csv", "-o", "model.tgp", "--draws", "1000000"]
    command += ["--warmup", "0", "--rank", "2", "--checkpoint", "run", "--checkpoint-minutes", "0"]
    process = subprocess.Popen(command, cwd=tmp_path, env=dict(os.environ), stderr=subprocess.PIPE, text=True)
    for _ in range(600):
        if (tmp_path / "run" / "chain-0.safetensors").exists():
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert 1 <= len(load(tmp_path / "model.tgp").fit_.draws) < 1_000_000


def test_the_trial_itself_takes_a_time_limit(monkeypatch):
    from tuckergp.data.tables import as_table

    with pytest.warns(DataWarning, match="too short"):
        assert not drift_trial.drift_helps(recommender(), as_table(with_times(), "ratings"), None, None, 0, 0.0)
