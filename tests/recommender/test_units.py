"""The unit of ratings does not matter."""

import numpy as np
import pytest
from tuckergp.datasets import make_ratings

from tuckergp import TuckerRecommender


@pytest.mark.parametrize("inference", ["als", "gibbs"])
@pytest.mark.parametrize("power", [-400, -100, 100, 400])
def test_predictions_have_the_unit_of_the_ratings(inference, power):
    """Powers of two change no digit, so the draws are the same."""
    data = make_ratings(n_users=20, n_items=15, n_ratings=150, random_state=0)
    train = {name: data.train[name] for name in ("user_id", "item_id", "rating")}
    few = {"draws": 5, "warmup": 5} if inference == "gibbs" else {}
    models = [
        TuckerRecommender(rank=2, inference=inference, random_state=0, **few).fit(
            {**train, "rating": np.ldexp(train["rating"], k)}
        )
        for k in (0, power)
    ]
    plain, scaled = (model.predict(data.test, clip=False) for model in models)
    assert np.ptp(plain) > 0.1
    np.testing.assert_allclose(np.ldexp(scaled, -power), plain, rtol=1e-6)
    user = train["user_id"][0]
    lists = [model.recommend(user, n=3) for model in models]
    assert list(lists[0]["item_id"]) == list(lists[1]["item_id"])
    np.testing.assert_allclose(np.ldexp(np.asarray(lists[1]["score"]), -power), lists[0]["score"], rtol=1e-4)
