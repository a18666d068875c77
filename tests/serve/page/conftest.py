"""Small models that the tests of the page only read."""

import numpy as np
import pytest
from tuckergp.datasets import make_ratings

from tuckergp import TuckerGPRegressor, TuckerRecommender

SHORT = {"rank": 3, "draws": 24, "warmup": 12, "time": None, "random_state": 0}


@pytest.fixture(scope="package")
def ratings():
    return make_ratings(n_users=60, n_items=50, n_ratings=1500, random_state=0)


@pytest.fixture(scope="package")
def recommender(ratings):
    return TuckerRecommender(**SHORT).fit(ratings.train, ratings.users, ratings.items)


@pytest.fixture(scope="package")
def clicks(ratings):
    chosen = {key: ratings.train[key] for key in ("user_id", "item_id")}
    return TuckerRecommender(**SHORT).fit(chosen, ratings.users, ratings.items)


@pytest.fixture(scope="package")
def regressor():
    rng = np.random.default_rng(0)
    X = {
        "longitude": rng.uniform(-2, 2, 200),
        "latitude": rng.uniform(0, 3, 200),
        "season": rng.choice(["dry", "wet"], 200),
    }
    y = np.sin(X["longitude"]) * X["latitude"] + (X["season"] == "wet") + 0.1 * rng.standard_normal(200)
    return TuckerGPRegressor(rank=3, draws=20, warmup=20, random_state=0).fit(X, y)
