"""Diverse lists against maximal marginal relevance as a loop over all pairs of items."""

import numpy as np
import pandas as pd
import pytest

from tuckergp import TuckerRecommender
from tuckergp.data.datasets import make_ratings
from tuckergp.data.tables import as_table
from tuckergp.errors import InputError
from tuckergp.recommender import diversity

pytestmark = pytest.mark.filterwarnings("ignore::tuckergp.errors.NotConvergedWarning")

FAST = {"rank": 3, "draws": 25, "warmup": 15, "random_state": 0}
MODELS = {
    "gibbs": {},
    "als": {"inference": "als", "draws": 250, "warmup": 50},
    "ordinal": {"likelihood": "ordinal"},
}
N = 4  # of 60 items, so that shortlists leave out some


@pytest.fixture(scope="module")
def data():
    return make_ratings(n_users=60, n_items=60, n_ratings=1_400, random_state=2)


@pytest.fixture(scope="module", params=MODELS)
def fitted(request, data):
    return TuckerRecommender(**{**FAST, **MODELS[request.param]}).fit(data.train, data.users, data.items)


@pytest.fixture(scope="module")
def plain(data):
    return TuckerRecommender(**FAST).fit(data.train, data.users, data.items)


def similarity_of(model, user, items):
    """All similarities of some items for one user, from predictions of each draw."""
    pairs = model.layout_.pairs(model.layout_.aligned(table(user, items)))
    if not model.fit_.draws.sampled:
        factors = model.fit_.draws.factors(1, model.layout_.sides[1].table.take(pairs.index[:, 1]))[:, 0]
        length = np.sqrt((factors**2).sum(axis=1))
        return factors @ factors.T / np.outer(length, length)
    (block,) = model.fit_.blocks(pairs, unseen=True)
    return np.corrcoef(model.fit_.likelihood.means(block[1]), rowvar=False)


def table(user, items):
    return as_table({"user_id": [user] * len(items), "item_id": items}, "pairs")


def by_hand(model, user, n, d, **options):
    """The ids and scores that maximal marginal relevance picks of the 10 n best."""
    best = model.recommend(user, n=10 * n, **options)
    items, score = best["item_id"].tolist(), best["score"].to_numpy()
    z = (score - score.mean()) / score.std()
    alike = similarity_of(model, user, items)
    chosen = [0]
    while len(chosen) < min(n, len(items)):
        worth = {
            k: (1 - d) * z[k] - d * max(alike[k, other] for other in chosen)
            for k in range(len(items))
            if k not in chosen
        }
        chosen.append(max(worth, key=worth.get))
    return [items[k] for k in chosen], score[chosen]


@pytest.mark.parametrize("d", [0.3, 0.7, 1.0])
def test_the_next_item_is_good_and_unlike_those_before(fitted, data, d, monkeypatch):
    monkeypatch.setattr(diversity, "BLOCK", 25 * 40 * 2)  # two users at a time
    users = list(dict.fromkeys(data.train["user_id"].tolist()))[:5]
    found = fitted.recommend(users, n=N, diversity=d)
    changed = 0
    for user in users:
        own = found[found["user_id"] == user]
        items, score = by_hand(fitted, user, N, d)
        assert own["item_id"].tolist() == items
        np.testing.assert_allclose(own["score"], score, rtol=1e-10)
        assert own["rank"].tolist() == [1, 2, 3, 4]
        changed += items != fitted.recommend(user, n=N)["item_id"].tolist()
    assert changed or d < 0.5, "no list differs from the best items"


def test_the_bound_is_traded_for_diversity_too(plain, data):
    user = data.train["user_id"][3]
    found = plain.recommend(user, n=N, diversity=0.6, strategy="ucb", kappa=2.0)
    items, score = by_hand(plain, user, N, 0.6, strategy="ucb", kappa=2.0)
    assert found["item_id"].tolist() == items
    np.testing.assert_allclose(found["score"], score, rtol=1e-10)


def test_so_is_one_draw(plain, data):
    users = data.train["user_id"][:1].tolist()
    options = {"strategy": "thompson", "random_state": 3}
    items, score = by_hand(plain, users[0], N, 0.6, **options)
    found = plain.recommend(users[0], n=N, diversity=0.6, **options)
    assert found["item_id"].tolist() == items
    np.testing.assert_allclose(found["score"], score, rtol=1e-10)


def test_no_diversity_changes_nothing_and_the_first_item_stays(fitted):
    best = fitted.recommend(n=3)
    pd.testing.assert_frame_equal(fitted.recommend(n=3, diversity=0), best)
    diverse = fitted.recommend(n=3, diversity=1.0)
    pd.testing.assert_frame_equal(diverse[diverse["rank"] == 1], best[best["rank"] == 1])
    assert not diverse["item_id"].equals(best["item_id"])


def test_lists_that_run_out_are_whole(plain):
    items = plain.layout_.sides[1].ids[:3]
    found = plain.recommend(["u0001", "u0002"], items=items, exclude_seen=False, diversity=0.5)
    assert sorted(found["item_id"]) == sorted(2 * items)
    user = plain.layout_.sides[0].ids[0]
    everything = plain.layout_.sides[1].ids
    short = plain.recommend(user, n=100, diversity=0.5)
    assert set(short["item_id"]) == set(plain.recommend(user, n=100)["item_id"]) < set(everything)


@pytest.mark.parametrize("wrong", [-0.1, 1.5, "much", float("nan"), True])
def test_diversity_is_from_0_to_1(plain, wrong):
    with pytest.raises(InputError, match="diversity must be a number from 0 to 1, not"):
        plain.recommend(diversity=wrong)
