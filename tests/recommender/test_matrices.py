"""Scores of many users and items at once against predictions of every pair."""

from __future__ import annotations

import numpy as np
import pytest

from tests.recommender.test_recommend import with_times
from tuckergp import TuckerRecommender
from tuckergp.data.datasets import make_ratings
from tuckergp.posterior.fitted import Fit

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

FAST = {"rank": 2, "draws": 8, "warmup": 4, "time": None, "random_state": 0}
MODELS = {
    "clicks": {"likelihood": "clicks"},
    "clicks in contexts": {"likelihood": "clicks", "context": "device"},
    "clicks, one point": {"likelihood": "clicks", "inference": "als", "draws": 250, "warmup": 50},
    "ordinal": {"likelihood": "ordinal", "noise": "shared"},
    "ordinal with noise of rows": {"likelihood": "ordinal", "noise": "rows"},
    "gaussian": {"implicit": True},
}


@pytest.fixture(scope="module")
def data():
    return make_ratings(n_users=30, n_items=20, n_ratings=300, random_state=1)


@pytest.mark.parametrize("name", MODELS)
def test_scores_are_what_predict_gives_for_every_pair(name, data, monkeypatch):
    items = {key: [*column.tolist(), column.tolist()[0]] for key, column in data.items.columns.items()}
    items["item_id"][-1] = "unrated"  # its row is drawn
    model = TuckerRecommender(**{**FAST, **MODELS[name]}).fit(with_times(data.train), data.users, items)
    users, asked = ["u0001", "nobody", "u0003"], ["unrated", "i0002", "nothing", "i0005"]
    pairs = {"user_id": np.repeat(users, len(asked)), "item_id": asked * len(users)}
    expected = model.predict(pairs, clip=False).reshape(len(users), len(asked))
    if "noise" not in name:  # pair by pair would take longer than the fit
        monkeypatch.setattr(Fit, "blocks", None)
    # products are in float32, whose rounding is a share of the largest summand
    np.testing.assert_allclose(model.scores(users, asked), expected, rtol=2e-6, atol=3e-7)
    assert model.scores([], asked).shape == (0, 4)
