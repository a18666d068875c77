"""Chains in processes draw what chains one after the other draw, and stop when they are told to."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.helpers import fingerprint
from tuckergp import TuckerGPRegressor, TuckerRecommender
from tuckergp.data.datasets import make_ratings
from tuckergp.errors import InputError
from tuckergp.running import parallel
from tuckergp.running.parallel import turns
from tuckergp.store.trees import digest


class Stop(Exception):
    pass


@pytest.fixture(scope="module")
def data():
    return make_ratings(n_users=30, n_items=25, n_ratings=350, random_state=0)


def recommender(**settings):
    return TuckerRecommender(**{"rank": 2, "draws": 12, "warmup": 6, "chains": 3, "random_state": 3, **settings})


def test_draws_moments_and_history_do_not_depend_on_the_number_of_processes(data):
    seen = []
    alone = recommender().fit(data.train, data.users, moments_of=data.test)
    together = recommender(n_jobs=2).fit(data.train, data.users, moments_of=data.test, callback=seen.append)
    assert fingerprint(alone.fit_.draws) == fingerprint(together.fit_.draws)
    assert digest(alone.fit_.draws.watched) == digest(together.fit_.draws.watched)
    assert digest(alone.moments_) == digest(together.moments_)
    assert alone.fit_.steps == together.fit_.steps
    assert sorted(seen, key=lambda info: (info.chain, info.step)) == alone.fit_.steps


def test_an_error_in_a_callback_stops_all_and_the_run_goes_on_from_its_checkpoint(data, tmp_path):
    def stop(info):
        if info.step == 10:
            raise Stop

    with pytest.raises(Stop):
        recommender(n_jobs=2).fit(data.train, checkpoint=tmp_path / "run", callback=stop)
    assert (tmp_path / "run" / "chain-0.safetensors").exists()
    resumed = recommender().fit(data.train, checkpoint=tmp_path / "run")
    assert fingerprint(recommender().fit(data.train).fit_.draws) == fingerprint(resumed.fit_.draws)


def test_an_interrupt_ends_all_processes_at_once(data, monkeypatch):
    killed = []
    kill = parallel._kill

    def watched(process):
        kill(process)
        killed.append(process.exitcode)

    def interrupt(info):
        raise KeyboardInterrupt

    monkeypatch.setattr(parallel, "_kill", watched)
    with pytest.raises(KeyboardInterrupt):
        recommender(draws=100_000, n_jobs=2).fit(data.train, callback=interrupt)
    assert killed == [-signal.SIGKILL] * 2


def test_ctrl_c_leaves_the_draws_there_are_of_all_chains(data):
    def interrupt(info):  # once: both chains come to step 50, and a second Ctrl-C gives up at once
        if (info.chain, info.step) == (0, 50):
            os.kill(os.getpid(), signal.SIGINT)

    model = recommender(n_jobs=2, draws=50_000, chains=2).fit(data.train, callback=interrupt)
    assert len(model.fit_.draws.lengths) == 2
    assert min(model.fit_.draws.lengths) >= 1
    assert np.isfinite(model.predict(data.test)).all()


SCRIPT = """
from tuckergp import TuckerRecommender
from tuckergp.data.datasets import make_ratings
data = make_ratings(n_users=30, n_items=25, n_ratings=350, random_state=0)
model = TuckerRecommender(rank=2, draws=50_000, chains=2, n_jobs=2, random_state=0).fit(data.train, max_time=2)
print([length > 0 for length in model.fit_.draws.lengths])
"""


def test_a_script_needs_no_guard_and_a_time_limit_holds(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    ended = subprocess.run([sys.executable, tmp_path / "script.py"], capture_output=True, text=True, check=False)
    assert ended.stdout == "[True, True]\n", ended.stderr


def test_errors_of_a_process_are_raised_here():
    model = TuckerGPRegressor(rank=1, likelihood="ordinal", chains=2, n_jobs=2, random_state=0)
    with pytest.raises(InputError, match="likelihood='ordinal' takes no weights but 1"):
        model.fit([[0.0], [1.0], [2.0]], [0, 1, 2], sample_weight=[1, 2, 3])


@pytest.mark.parametrize("n_jobs", [0, "two"])
def test_numbers_of_processes_that_make_no_sense_are_refused(n_jobs):
    with pytest.raises(InputError, match="n_jobs must be None, a positive number or -1 for all cores, not"):
        TuckerGPRegressor(n_jobs=n_jobs, draws=2, warmup=0).fit([[0.0], [1.0]], [0.0, 1.0])


def test_time_is_shared_out_by_rounds():
    now = time.monotonic()
    ends = [until - now for _, until in turns([0, 2, 3, 4, 5], 2, 30.0)]
    np.testing.assert_allclose(ends, [10, 10, 20, 20, 30], atol=0.1)
    assert turns([1], 1, None) == [(1, None)]
    assert turns([], 1, 3.0) == []


THREADS = """
import numba, numpy as np
from tuckergp import Mode, TuckerGPRegressor, TuckerRecommender
from tuckergp.data.datasets import make_ratings
from tuckergp.running import threads
from tests.helpers import fingerprint
from tuckergp.store.trees import digest
from tuckergp.kernels import SE, Identity

threads.SHARED_WORK = 0  # share even the smallest pass
used, found = [], []
data = make_ratings(n_users=300, n_items=80, n_ratings=5000, random_state=0)
rng = np.random.default_rng(0)
X = {"group": rng.integers(40, size=400), "x": rng.uniform(-2, 2, size=400)}
y = np.sin(X["x"]) * X["group"] / 40 + 0.1 * rng.standard_normal(400)
for count in (1, 2):
    numba.set_num_threads(count)
    models = [
        TuckerRecommender(rank=4, draws=8, warmup=4, random_state=0).fit(data.train, data.users, data.items,
            callback=lambda info: used.append(numba.get_num_threads())),
        TuckerRecommender(rank=4, draws=8, warmup=4, likelihood="ordinal", random_state=0).fit(data.train),
        TuckerGPRegressor([Mode("group", Identity()), Mode("x", SE(1.0))], rank=3, draws=8, warmup=4,
            noise="rows", random_state=0).fit(X, y),
    ]
    found.append(digest([(draws.modes, draws.W, draws.unknowns) for draws in (model.fit_.draws for model in models)]))
assert sorted(set(used)) == [1, 2], used
assert found[0] == found[1]
"""


def test_a_fit_does_not_depend_on_the_number_of_threads():
    # in a process of its own, because the number of threads numba starts with cannot be raised afterwards
    environment = {**os.environ, "NUMBA_NUM_THREADS": "2"}
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", THREADS], env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
