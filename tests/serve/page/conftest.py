"""Small models that the tests of the page only read."""

import pytest
from tuckergp.datasets import make_ratings

from tests.serve.models import map_model
from tuckergp import TuckerRecommender

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
    return map_model()
