"""Baselines against what they are by definition."""

import numpy as np
import pytest

from tuckergp.baselines import BASELINES, Biases, GlobalMean, Popularity
from tuckergp.datasets import make_ratings
from tuckergp.errors import InputError


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
