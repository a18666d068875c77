"""Baselines against what they are by definition."""

import numpy as np
import pytest

from tuckergp.data.datasets import make_ratings
from tuckergp.errors import InputError
from tuckergp.evaluation.baselines import BASELINES, Biases, GlobalMean, Popularity
from tuckergp.evaluation.metrics import rmse


@pytest.fixture(scope="module")
def data():
    return make_ratings(n_users=30, n_items=25, n_ratings=300, random_state=0)


def test_biases_solve_the_damped_least_squares_problem(data):
    train = data.train
    model = Biases(damping=3.0).fit(train)
    users, u = np.unique(train["user_id"].astype(str), return_inverse=True)
    items, i = np.unique(train["item_id"].astype(str), return_inverse=True)
    X = np.hstack([np.eye(len(users))[u], np.eye(len(items))[i]])
    y = train["rating"] - train["rating"].mean()
    solved = np.linalg.solve(X.T @ X + 3.0 * np.eye(X.shape[1]), X.T @ y)
    found = [*(model.biases_["user_id"][v] for v in users), *(model.biases_["item_id"][v] for v in items)]
    np.testing.assert_allclose(found, solved, atol=1e-4)


def test_learned_damping_is_near_the_most_likely_one(movielens):
    """Against the exact marginal likelihood of a mixed model, on a few busy users and items."""
    ratings = movielens.ratings
    busy = [np.argsort(-np.bincount(ratings[key]))[:size] for key, size in (("user_id", 40), ("item_id", 50))]
    kept = np.isin(ratings["user_id"], busy[0]) & np.isin(ratings["item_id"], busy[1])
    train = ratings.take(np.flatnonzero(kept))
    model = Biases(damping="auto").fit(train)

    n, X = len(train), []
    for key in ("user_id", "item_id"):
        known, code = np.unique(train[key], return_inverse=True)
        X.append(np.eye(len(known))[code])

    def fit(users, items):  # marginal likelihood with the noise profiled out
        V = np.eye(n) + X[0] @ X[0].T / users + X[1] @ X[1].T / items
        solved = np.linalg.solve(V, np.column_stack([np.ones(n), train["rating"]]))
        mean = solved[:, 1].sum() / solved[:, 0].sum()
        rest = train["rating"] - mean
        noise = rest @ (solved[:, 1] - mean * solved[:, 0]) / n
        return -0.5 * (n * np.log(noise) + np.linalg.slogdet(V)[1])

    found = fit(*model.damping_.values())
    others = [fit(a * model.damping_["user_id"], b * model.damping_["item_id"]) for a, b in
              [(2, 1), (0.5, 1), (1, 2), (1, 0.5), (2, 2), (0.5, 0.5)]]  # fmt: skip
    assert found > max(others)


def test_learned_damping_is_better_on_movielens(movielens):
    train, test = movielens.split(1)
    learned, fixed = (rmse(test["rating"], Biases(d).fit(train).predict(test)) for d in ("auto", 5.0))
    assert learned < fixed - 0.001


def test_learned_damping_shrinks_what_is_not_there():
    rng = np.random.default_rng(0)
    noise = {
        "user_id": rng.integers(20, size=2000),
        "item_id": rng.integers(20, size=2000),
        "rating": rng.normal(size=2000),
    }
    assert min(Biases("auto").fit(noise).damping_.values()) > 100
    same = Biases("auto").fit({"user_id": [1, 2], "item_id": [1, 1], "rating": [3.0, 3.0]})
    assert same.predict({"user_id": [1, 9], "item_id": [1, 2]}).tolist() == [3.0, 3.0]


@pytest.mark.parametrize("damping", [-1, "much", None, True, np.nan, np.inf])
def test_a_damping_that_is_none_is_refused(damping, data):
    with pytest.raises(InputError, match="damping must be a number from 0 on or 'auto'"):
        Biases(damping).fit(data.train)


@pytest.mark.parametrize("kind", [GlobalMean, Biases])
def test_ratings_have_a_spread_and_stay_within_their_range(kind, data):
    model = kind().fit(data.train)
    mean, std = model.predict(data.test, return_std=True, clip=False)
    _, ends = model.predict(data.test, quantiles=[0.05, 0.95], clip=False)
    np.testing.assert_allclose(ends, mean[:, None] + 1.6448536 * std[:, None] * [-1, 1])
    assert std[0] == pytest.approx(np.std(data.train["rating"] - model.predict(data.train, clip=False)), rel=0.01)
    clipped = model.predict(data.test)
    assert clipped.min() >= data.train["rating"].min()
    with pytest.raises(InputError, match="not both"):
        model.predict(data.test, return_std=True, quantiles=[0.5])


def test_popular_items_were_rated_most(data):
    found = Popularity().fit(data.train).predict(data.test)
    assert found.tolist() == [(data.train["item_id"] == item).sum() for item in data.test["item_id"]]


@pytest.mark.parametrize("kind", BASELINES.values())
def test_a_missing_column_is_named(kind):
    with pytest.raises(InputError, match="no column 'item_id'"):
        kind().fit({"user_id": [1], "rating": [1.0]})
