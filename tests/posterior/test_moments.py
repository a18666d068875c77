"""Moments kept on the way are those of the draws."""

import numpy as np
import pytest

from tuckergp import TuckerGPRegressor, TuckerRecommender
from tuckergp.data.datasets import make_ratings
from tuckergp.errors import InputError
from tuckergp.posterior.moments import Running


@pytest.fixture(scope="module")
def data():
    return make_ratings(n_users=60, n_items=50, n_ratings=1200, random_state=0)


def test_running_moments_are_those_of_all_values_at_once():
    rng = np.random.default_rng(0)
    values = 1e8 + rng.standard_normal((50, 3))  # sums of squares would lose all digits here
    parts = []
    for part in (values[:7], values[7:8], values[8:]):
        running = Running(np.zeros(3), np.zeros(3))
        for row in part:
            running.add(row)
        parts.append(running)
    together = parts[0].merge(parts[1]).merge(parts[2])
    np.testing.assert_allclose(together.mean, values.mean(axis=0), rtol=1e-15)
    np.testing.assert_allclose(together.variance(), values.var(axis=0, ddof=1), rtol=1e-6)
    assert together.count == 50
    assert (parts[1].variance() == 0).all()


@pytest.mark.parametrize("likelihood", ["gaussian", "ordinal", "bernoulli"])
def test_moments_equal_predictions_from_kept_draws(likelihood, data):
    ratings = {key: data.train[key] for key in ("user_id", "item_id", "rating")}
    if likelihood == "bernoulli":
        ratings["rating"] = (ratings["rating"] >= 4).astype(float)
    # known and unknown users and items: rows never seen are drawn from the prior
    pairs = {
        "user_id": [*data.test["user_id"][:40], "nobody", "nobody", data.test["user_id"][0]],
        "item_id": [*data.test["item_id"][:40], data.test["item_id"][0], "nothing", "nothing"],
    }
    settings = {"rank": 3, "draws": 25, "warmup": 5, "chains": 2, "likelihood": likelihood, "random_state": 0}
    kept = TuckerRecommender(**settings).fit(ratings, data.users, data.items)
    model = TuckerRecommender(**settings).fit(ratings, data.users, data.items, moments_of=pairs, keep_draws=False)
    mean, std = kept.predict(pairs, return_std=True)
    found = model.moments_
    np.testing.assert_allclose(found.mean, mean, rtol=1e-6)
    np.testing.assert_allclose(found.std, std, rtol=1e-6)
    np.testing.assert_allclose(found.std_f, kept.predict(pairs, return_std=True, include_noise=False)[1], rtol=1e-6)
    assert found.draws == 50
    if likelihood == "gaussian":
        assert found.probabilities is None
    else:
        np.testing.assert_allclose(found.probabilities, kept.predict_proba(pairs), rtol=1e-6)
    assert len(model.fit_.draws) == 0
    assert model.fit_.draws.diagnostics().rhat.shape == (100,)


def test_moments_and_draws_may_both_be_kept_and_predictions_need_draws():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(80, 2))
    y = 100 + 10 * np.sin(X[:, 0])
    model = TuckerGPRegressor(rank=2, draws=20, warmup=10, random_state=0).fit(X, y, moments_of=X[:5])
    mean, std = model.predict(X[:5], return_std=True)
    np.testing.assert_allclose(model.moments_.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(model.moments_.std, std, rtol=1e-6)
    model.fit(X, y, moments_of=X[:5], keep_draws=False)
    np.testing.assert_allclose(model.moments_.mean, mean, rtol=1e-9)
    for arguments in ({}, {"return_std": True}, {"quantiles": [0.5]}):
        with pytest.raises(InputError, match="The draws were not kept: read moments_"):
            model.predict(X, **arguments)
    model.fit(X, y)
    assert not hasattr(model, "moments_")


def test_probabilities_need_draws_too(data):
    model = TuckerRecommender(rank=2, draws=5, warmup=2, likelihood="ordinal", random_state=0)
    model.fit(data.train, moments_of=data.test, keep_draws=False)
    with pytest.raises(InputError, match="The draws were not kept"):
        model.predict_proba(data.test)


def test_a_most_probable_point_has_no_moments(data):
    with pytest.raises(InputError, match="moments_of is an argument for samplers, such as inference='gibbs'"):
        TuckerRecommender(inference="als").fit(data.train, moments_of=data.test)


def test_a_run_stopped_in_its_warm_up_has_the_moments_of_one_draw(data):
    model = TuckerRecommender(rank=2, random_state=0).fit(
        data.train, moments_of=data.test, keep_draws=False, max_time=0
    )
    assert model.moments_.draws == 1
    assert (model.moments_.std_f == 0).all()
    assert (model.moments_.std > 0).all()
