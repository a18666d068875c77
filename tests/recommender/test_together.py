"""Lists for groups against predictions of every pair in every draw."""

import numpy as np
import pandas as pd
import pytest

from tests.recommender.test_recommend import with_times
from tuckergp import TuckerRecommender
from tuckergp.data.datasets import make_ratings
from tuckergp.data.tables import as_table
from tuckergp.errors import DataWarning, InputError, UnknownIdWarning
from tuckergp.recommender import together

pytestmark = pytest.mark.filterwarnings("ignore::tuckergp.errors.NotConvergedWarning")

FAST = {"rank": 3, "draws": 25, "warmup": 15, "random_state": 0}
MODELS = {
    "gibbs": {},
    "als": {"inference": "als", "draws": 250, "warmup": 50},
    "ordinal": {"likelihood": "ordinal"},
    "context": {"time": "week", "context": "device"},
}
GROUP = ["u0001", "u0002", "u0007"]
COMBINE = {"mean": np.mean, "least": np.min}


@pytest.fixture(scope="module")
def data():
    return make_ratings(n_users=60, n_items=50, n_ratings=1_200, random_state=2)


@pytest.fixture(scope="module", params=MODELS)
def fitted(request, data):
    return TuckerRecommender(**{**FAST, **MODELS[request.param]}).fit(with_times(data.train), data.users, data.items)


@pytest.fixture(scope="module")
def plain(data):
    return TuckerRecommender(**FAST).fit(data.train, data.users, data.items)


def unseen(model, data, users):
    seen = {i for u, i in zip(data.train["user_id"], data.train["item_id"], strict=True) if u in users}
    return [item for item in model.layout_.sides[1].ids if item not in seen]


def in_draws(model, user, items, **more):
    """Expected ratings in each draw, shape (S, n)."""
    columns = {"user_id": [user] * len(items), "item_id": items, **{k: [v] * len(items) for k, v in more.items()}}
    pairs = model.layout_.pairs(model.layout_.aligned(as_table(columns, "pairs")))
    (block,) = model.fit_.blocks(pairs, unseen=True)
    return model.fit_.likelihood.means(block[1])


@pytest.mark.parametrize("how", COMBINE)
def test_a_group_gets_the_best_items_that_none_of_them_has_seen(fitted, data, how, monkeypatch):
    monkeypatch.setattr(together, "BLOCK", 25 * 3 * 4)  # four items at a time
    items = unseen(fitted, data, GROUP)
    ratings = COMBINE[how]([in_draws(fitted, user, items) for user in GROUP], axis=0)
    found = fitted.recommend_together(GROUP, n=len(items) + 5, how=how)
    assert list(found.columns) == ["item_id", "score", "std", "rank"]
    assert sorted(found["item_id"]) == sorted(items)
    assert found["rank"].tolist() == list(range(1, len(items) + 1))
    assert found["score"].is_monotonic_decreasing
    found = found.set_index("item_id").loc[items]
    if how == "least":  # the mean is known exactly, see below
        np.testing.assert_allclose(found["score"], ratings.mean(axis=0), rtol=1e-10)
    if len(ratings) > 1:
        np.testing.assert_allclose(found["std"], ratings.std(axis=0, ddof=1), rtol=1e-8)
    else:
        assert found["std"].isna().all()


def test_the_mean_of_a_group_is_the_mean_of_predictions(fitted, data):
    items = unseen(fitted, data, GROUP)
    predicted = [fitted.predict({"user_id": [u] * len(items), "item_id": items}, clip=False) for u in GROUP]
    best = np.argsort(-np.mean(predicted, axis=0), kind="stable")[:6]
    found = fitted.recommend_together(GROUP, n=6)
    assert found["item_id"].tolist() == [items[k] for k in best]
    np.testing.assert_allclose(found["score"], np.mean(predicted, axis=0)[best], rtol=1e-10)


def test_one_person_is_a_group_and_a_second_mention_a_second_voice(plain, data):
    alone = plain.recommend("u0001", n=5)
    for users in ("u0001", ["u0001"], ["u0001", "u0001"]):
        for how in COMBINE:
            found = plain.recommend_together(users, n=5, how=how)
            pd.testing.assert_frame_equal(found, alone.drop(columns="user_id"))
    items = unseen(plain, data, ["u0001", "u0002"])
    one, two = (in_draws(plain, user, items).mean(axis=0) for user in ("u0001", "u0002"))
    found = plain.recommend_together(["u0001", "u0002", "u0002"], n=50).set_index("item_id").loc[items]
    known = [item in set(data.train["item_id"].tolist()) for item in items]
    np.testing.assert_allclose(found["score"][known], ((one + 2 * two) / 3)[known], rtol=1e-10)


@pytest.mark.parametrize("likelihood", ["gaussian", "ordinal"])
def test_a_stranger_counts_as_an_average_person(data, likelihood):
    model = TuckerRecommender(**FAST, likelihood=likelihood).fit(data.train, data.users, data.items)
    items = model.layout_.sides[1].ids[:20]
    known = in_draws(model, "u0001", items)
    with pytest.warns(UnknownIdWarning):
        average = model.predict({"user_id": ["nobody"] * 20, "item_id": items}, clip=False)
    least = np.minimum(known, average)
    with pytest.warns(UnknownIdWarning, match="'nobody' has neither ratings nor attributes here, and the average"):
        found = model.recommend_together(["u0001", "nobody"], n=20, how="least", items=items, exclude_seen=False)
    found = found.set_index("item_id").loc[items]
    np.testing.assert_allclose(found["score"], least.mean(axis=0), rtol=1e-10)
    np.testing.assert_allclose(found["std"], least.std(axis=0, ddof=1), rtol=1e-8)


def test_members_may_be_new_and_be_in_different_circumstances(data):
    model = TuckerRecommender(**FAST, context="device", time=None).fit(with_times(data.train), data.users, data.items)
    group = {"user_id": ["u0001", "new"], "device": ["tv", "phone"], "age": [30, 20], "sex": ["F", "M"]}
    liked = {"user_id": ["new"] * 2, "item_id": data.items["item_id"][:2], "rating": [5.0, 4.0]}
    found = model.recommend_together(group, n=50, ratings=liked, exclude_seen=False, how="least")
    assert len(found) == 50
    assert not set(liked["item_id"]) & set(model.recommend_together(group, n=50, ratings=liked)["item_id"])
    rated = data.train["item_id"][:5].tolist()
    one, two = in_draws(model, "u0001", rated, device="tv"), in_draws(model, "u0002", rated, device="phone")
    group = {"user_id": ["u0001", "u0002"], "device": ["tv", "phone"]}
    found = (
        model.recommend_together(group, items=rated, exclude_seen=False, how="least").set_index("item_id").loc[rated]
    )
    np.testing.assert_allclose(found["score"], np.minimum(one, two).mean(axis=0), rtol=1e-10)


def test_the_choice_of_items_is_restricted_as_in_other_lists(plain, data):
    years = dict(zip(data.items["item_id"].tolist(), data.items["year"].tolist(), strict=True))
    found = plain.recommend_together(GROUP, n=50, where={"year": (1990, None)}, min_ratings=10, titles="title")
    assert len(found)
    assert list(found.columns) == ["item_id", "title", "score", "std", "rank"]
    assert all(years[item] >= 1990 for item in found["item_id"])
    with pytest.warns(DataWarning, match="no item is left by where"):
        assert len(plain.recommend_together(GROUP, where={"year": 3000})) == 0
    seen = data.train["item_id"][data.train["user_id"] == "u0001"][:2].tolist()
    assert len(plain.recommend_together(GROUP, items=seen)) == 0


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (
            lambda model: model.recommend_together([]),
            "needs a group, and this one is empty; give the ids of its members",
        ),
        (lambda model: model.recommend_together(None), "needs a group: give the ids of its members"),
        (lambda model: model.recommend_together(GROUP, how="most"), "how must be 'mean' or 'least', not 'most'"),
        (lambda model: model.recommend_together(GROUP, n=0), "n must be a whole number from 1 on, not 0"),
        (lambda model: model.recommend_together(GROUP, items=[]), "items and exclude leave no item"),
    ],
)
def test_questions_that_make_no_sense_get_one_clear_sentence(plain, question, message):
    with pytest.raises(InputError, match=message):
        question(plain)
