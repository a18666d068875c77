"""Exploring strategies: what was never seen is drawn anew for each answer, and counts with its variance."""

import numpy as np
import pytest

from tuckergp import TuckerRecommender
from tuckergp.data.tables import Table
from tuckergp.recommender import serving
from tuckergp.recommender.factors import Factors

pytestmark = pytest.mark.filterwarnings("ignore::tuckergp.errors.NotConvergedWarning")

COLD = [f"cold {k}" for k in range(5)]


def fitted(likelihood, **more):
    rng = np.random.default_rng(0)
    n = 500
    rating = rng.integers(2, size=n) if likelihood == "bernoulli" else rng.integers(1, 6, size=n)
    names = np.array([f"item {k}" for k in range(20)])
    ratings = {"user_id": rng.integers(25, size=n), "item_id": names[rng.integers(20, size=n)],
               "rating": rating.astype(float), "timestamp": 86_400 * rng.integers(30, size=n),
               "place": np.array(["a", "b"], dtype=object)[rng.integers(2, size=n)]}  # fmt: skip
    settings = {"rank": 2, "draws": 40, "warmup": 20, "time": None, "implicit": False, "random_state": 0} | more
    items = {"item_id": [*dict.fromkeys(ratings["item_id"].tolist()), *COLD]}
    return TuckerRecommender(**settings, likelihood=likelihood).fit(ratings, items=items)


@pytest.mark.parametrize("likelihood", ["gaussian", "ordinal", "bernoulli"])
def test_thompson_sampling_tries_each_of_five_cold_items(likelihood):
    model = fitted(likelihood)
    first = [
        model.recommend(3, n=1, items=COLD, strategy="thompson", random_state=seed)["item_id"].tolist()[0]
        for seed in range(120)
    ]
    counts = np.array([first.count(item) for item in COLD])
    # about 24 of 120 for each, with a standard deviation of 4.4: four of them
    assert (np.abs(counts - 24) < 18).all()


@pytest.mark.parametrize("likelihood", ["gaussian", "ordinal", "bernoulli"])
def test_one_draw_ranks_cold_items_differently_in_each_answer(likelihood):
    model = fitted(likelihood, draws=1)
    first = {
        model.recommend(3, n=1, items=COLD, strategy="thompson", random_state=seed)["item_id"].tolist()[0]
        for seed in range(60)
    }
    assert first == set(COLD)  # one of them is missed in fewer than one of 100,000 seeds


@pytest.mark.parametrize("likelihood", ["ordinal", "bernoulli"])
def test_a_short_shortlist_of_thompson_sampling_has_the_best_of_the_draw(likelihood, monkeypatch):
    model = fitted(likelihood, noise="shared")

    def best(n, seed):
        found = model.recommend(3, n=n, items=COLD, strategy="thompson", random_state=seed)
        return found["item_id"].tolist()[0]

    whole = [best(5, seed) for seed in range(8)]
    monkeypatch.setattr(serving, "MORE", 0)
    monkeypatch.setattr(serving, "SHORTLIST", 1)
    assert [best(1, seed) for seed in range(8)] == whole


def test_the_shortlist_of_upper_bounds_has_the_items_that_are_least_sure(monkeypatch):
    model = fitted("gaussian")
    monkeypatch.setattr(serving, "MORE", 0)
    monkeypatch.setattr(serving, "SHORTLIST", 1)
    found = model.recommend(3, n=5, strategy="ucb", kappa=50.0, exclude_seen=False)
    ids = model.layout_.sides[1].ids
    pairs = {"user_id": [3] * len(ids), "item_id": ids}
    mean, std = model.predict(pairs, return_std=True, include_noise=False, clip=False)
    best = [ids[k] for k in np.argsort(-(mean + 50 * std))[:5]]
    assert set(best) & set(COLD)
    assert set(best) != {ids[k] for k in np.argsort(-mean)[:5]}
    assert found["item_id"].tolist() == best


def test_periods_never_seen_are_drawn():
    model = fitted("gaussian", time="week")
    asked = {"user_id": [3], "timestamp": [86_400 * 900]}
    scores = {
        float(model.recommend(asked, n=1, items=["item 1"], exclude_seen=False, strategy="thompson", random_state=k)
              ["score"].tolist()[0])
        for k in range(60)
    }  # fmt: skip
    assert len(scores) > 40  # more than there are draws


@pytest.mark.parametrize("likelihood", ["gaussian", "ordinal"])
def test_upper_bounds_count_the_variance_of_a_period_and_a_context_never_seen(likelihood, monkeypatch):
    model = fitted(likelihood, time="week", context="place")
    monkeypatch.setattr(serving, "MORE", 0)
    ids = model.layout_.sides[1].ids[:20]
    where = {"timestamp": [86_400 * 900], "place": ["never seen"]}
    factors = Factors(model.layout_, model.fit_, unseen=0).users(np.array([3]), Table(where_of(where), "q", 1))
    mean = Factors(model.layout_, model.fit_).users(np.array([3]), Table(where_of(where), "q", 1))
    assert factors.vectors.var(axis=1).sum() > 1.2 * mean.vectors.var(axis=1).sum()
    found = model.recommend({"user_id": [3], **where}, n=20, items=ids, exclude_seen=False, strategy="ucb", kappa=3.0)
    pairs = {"user_id": [3] * 20, "item_id": ids, **{name: values * 20 for name, values in where.items()}}
    middle, std = model.predict(pairs, return_std=True, include_noise=False, clip=False)
    order = np.argsort(-(middle + 3 * std))
    assert found["item_id"].tolist() == [ids[k] for k in order]


def where_of(columns):
    return {name: np.array(values, dtype=object if name == "place" else None) for name, values in columns.items()}
