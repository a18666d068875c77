"""A model in a server: threads that ask while others fold in, and processes that are forked after a fit."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tuckergp import TuckerRecommender
from tuckergp.data.datasets import make_ratings
from tuckergp.recommender.estimator import LEARNED


@pytest.fixture(scope="module")
def data():
    return make_ratings(n_users=40, n_items=30, n_ratings=500, random_state=0)


def fitted(data):
    return TuckerRecommender(rank=2, draws=10, warmup=5, time=None, random_state=0).fit(data.train, data.users)


def rated(data, n):
    """Some items with ratings, which fold-ins leave as they are."""
    return list(dict.fromkeys(data.train["item_id"].tolist()))[:n]


def newcomer(data, k):
    """Ratings of one new user, of whom there is a fixed number."""
    return {"user_id": [f"new {k}"] * 4, "item_id": rated(data, 4), "rating": [5.0, 1.0, 4.0, 2.0]}


def test_eight_threads_fold_in_and_ask(data):
    """Every answer is from the model before or after a fold-in, and no fold-in is lost."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    model, known = fitted(data), data.train["user_id"].tolist()[:3]
    expected = model.predict({"user_id": known, "item_id": rated(data, 3)})
    count = 12

    def ask(_):
        for _ in range(15):
            now = model._fitted
            users = now.layout.sides[0]
            assert len(now.fit.draws.modes[0].rows["psi"]) == users.n_rated + len(users.more)
            assert len(now.history) == len(data.train) + 4 * len(users.more)
            np.testing.assert_array_equal(model.predict({"user_id": known, "item_id": rated(data, 3)}), expected)
            assert len(model.recommend(["new 0"], n=3)) == 3

    def fold(k):
        model.fold_in(newcomer(data, k))

    try:
        with ThreadPoolExecutor(8) as pool:
            jobs = [pool.submit(ask, k) for k in range(6)] + [pool.submit(fold, k) for k in range(count)]
            for job in jobs:
                job.result(timeout=300)
    finally:
        sys.setswitchinterval(before)
    assert all(f"new {k}" in model.layout_.sides[0].number for k in range(count))
    assert len(model.history_) == len(data.train) + 4 * count


def test_all_fitted_attributes_change_at_once(data):
    model = fitted(data)
    old = model.__dict__
    kept = dict(old)
    model.fold_in(newcomer(data, 0))
    assert model.__dict__ is not old
    assert old == kept
    assert all(f"{name}_" in vars(model) for name in LEARNED)
    again = pickle.loads(pickle.dumps(model))
    pairs = {"user_id": ["new 0"], "item_id": data.items["item_id"][:1]}
    assert again.predict(pairs) == model.predict(pairs)


FORKED = """
import os, sys, warnings
warnings.simplefilter("ignore")
import numba
import numpy as np
from tuckergp import Mode, TuckerGPRegressor, TuckerRecommender
from tuckergp.kernels import Identity
from tuckergp.running import threads
from tuckergp.data.datasets import make_ratings
threads.SHARED_WORK = 0  # so that even this little is shared among threads
numba.set_num_threads(2)
data = make_ratings(n_users=40, n_items=30, n_ratings=500, random_state=0)
model = TuckerRecommender(rank=2, core="full", noise="shared", draws=4, warmup=2, time=None, random_state=0)
model.fit(data.train)
expected = model.predict(data.test)
rng = np.random.default_rng(0)
X = {name: rng.integers(0, 8, 400) for name in "abc"}
y = rng.standard_normal(400)
modes = [Mode(name, Identity()) for name in X]
regressor = TuckerGPRegressor(modes, rank=2, core="full", draws=3, warmup=1, random_state=0).fit(X, y)
fitted = regressor.predict(X)
new = {"user_id": ["a", "a"], "item_id": data.items["item_id"][:2], "rating": [1.0, 5.0]}
for _ in range(2):
    child = os.fork()
    if child == 0:
        assert (model.predict(data.test) == expected).all()
        model.fold_in(new)
        assert len(model.recommend(["a"], n=3)) == 3
        model.partial_fit(new)
        assert (regressor.fit(X, y).predict(X) == fitted).all()
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_forked_after_a_fit_answers_and_learns():
    environment = {**os.environ, "NUMBA_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, env=environment, timeout=500)
    assert done.stdout.split() == ["0", "0"], done.stderr
