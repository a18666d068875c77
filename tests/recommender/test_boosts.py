"""Boosts are added to scores, wherever an item would stand without them."""

from __future__ import annotations

import numpy as np
import pytest

from tuckergp import TuckerRecommender
from tuckergp.data.datasets import make_ratings
from tuckergp.errors import InputError

KINDS = {
    "gaussian": {},
    "ordinal": {"likelihood": "ordinal"},
    "als": {"inference": "als", "draws": 250, "warmup": 50},
    "value": {"objective": "value"},
}


@pytest.fixture(scope="module", params=KINDS, ids=str)
def rec(request):
    data = make_ratings(n_users=40, n_items=300, n_ratings=2500, random_state=0)
    ratings = {**data.train.columns, "rating": np.round(data.train["rating"])}
    given = {"rank": 3, "draws": 12, "warmup": 5, "time": None, "objective": "rating", "random_state": 0}
    return TuckerRecommender(**{**given, **KINDS[request.param]}).fit(ratings)


def everything(rec, user, **more):
    """The score of each item that may be recommended, from the longest list there is."""
    lists = rec.recommend(user, n=300, **more)
    return dict(zip(lists["item_id"], lists["score"], strict=True))


@pytest.mark.parametrize("strategy", ["mean", "ucb", "thompson"])
def test_lists_are_those_of_the_sums(rec, strategy):
    if strategy != "mean" and rec.inference == "als":
        pytest.skip("a point has no spread")
    asked = {"strategy": strategy, "random_state": 3}
    user = rec.history_.ids[0][0]
    plain = everything(rec, user, **asked)
    ranked = sorted(plain, key=lambda item: -plain[item])
    spread = max(plain.values()) - min(plain.values())
    boosts = {ranked[-1]: spread, ranked[len(ranked) // 2]: 0.7 * spread, ranked[0]: -spread, ranked[1]: -spread}
    expected = {item: score + boosts.get(item, 0.0) for item, score in plain.items()}
    lists = rec.recommend(user, n=5, boosts=boosts, **asked)
    best = sorted(expected, key=lambda item: -expected[item])[:5]
    assert list(lists["item_id"]) == best
    np.testing.assert_allclose(lists["score"], [expected[item] for item in best], rtol=1e-5)


def test_what_is_seen_excluded_or_unknown_stays_out(rec):
    user = rec.history_.ids[0][0]
    seen = [rec.history_.ids[1][k] for k in rec.history_.items_of(np.array([0]))[0].tolist()]
    other = next(iter(everything(rec, user)))
    boosts = {seen[0]: 100.0, other: 100.0, "no such item": 100.0}
    lists = rec.recommend(user, n=5, boosts=boosts, exclude=[other])
    assert not {seen[0], other, "no such item"} & set(lists["item_id"])
    assert len(lists) == 5


def test_diverse_lists_take_them(rec):
    user = rec.history_.ids[0][0]
    last = list(everything(rec, user))[-1]
    assert rec.recommend(user, n=3, boosts={last: 100.0}, diversity=0.3)["item_id"].tolist()[0] == last


@pytest.mark.parametrize("boosts", [[1], {"i0001": "much"}, {"i0001": float("nan")}])
def test_what_is_no_boost_is_refused(rec, boosts):
    with pytest.raises(InputError, match="boost"):
        rec.recommend(rec.history_.ids[0][0], boosts=boosts)
