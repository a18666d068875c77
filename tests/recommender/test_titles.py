"""Items by their titles, and the small conveniences of a fitted recommender."""

import numpy as np
import pytest
from tuckergp.datasets import make_ratings

from tuckergp import TuckerGPRegressor, TuckerRecommender, load
from tuckergp.errors import InputError


@pytest.fixture(scope="module")
def data():
    return make_ratings(n_users=30, n_items=20, n_ratings=300, random_state=0)


@pytest.fixture(scope="module")
def rec(data):
    return TuckerRecommender(rank=2, draws=5, warmup=3, random_state=0).fit(data.train, data.users, data.items)


def title_of(data, item):
    return data.items["title"][data.items["item_id"].tolist().index(item)]


def test_titles_are_shown_beside_ids(data, rec):
    user = data.train["user_id"][0]
    lists = rec.recommend(user, n=4, titles="title")
    assert list(lists["title"]) == [title_of(data, item) for item in lists["item_id"]]
    assert list(rec.recommend(user, n=4)["item_id"]) == list(lists["item_id"])
    alike = rec.similar_items(data.items["item_id"][0], n=3, titles="title")
    assert list(alike["title"]) == [title_of(data, item) for item in alike["item_id"]]


def test_an_item_may_be_named_by_its_title(data, rec):
    item = data.items["item_id"][3]
    title = title_of(data, item)
    assert list(rec.similar_items(f" {title.upper()}")["item_id"]) == list(rec.similar_items(item)["item_id"])
    assert rec.explain("nobody", title).total == rec.explain("nobody", item).total
    with pytest.raises(InputError, match="has neither ratings nor attributes"):
        rec.similar_items("no such film")


def test_titles_that_cannot_be_used_are_refused_with_a_sentence(data, rec):
    with pytest.raises(InputError, match="no column 'director'"):
        rec.recommend(n=1, titles="director")
    bare = TuckerRecommender(rank=2, inference="als", random_state=0).fit(data.train)
    with pytest.raises(InputError, match="the model has none; give fit one"):
        bare.recommend(n=1, titles="title")
    items = {"item_id": data.items["item_id"], "title": ["Twin"] * len(data.items["item_id"])}
    twins = TuckerRecommender(rank=2, inference="als", random_state=0).fit(data.train, items=items)
    with pytest.raises(InputError, match="20 items have the title 'twin'"):
        twins.similar_items("twin")
    for pair in (({"age": [3]}, data.items["item_id"][0]), (data.train["user_id"][0], {"year": [1990]})):
        with pytest.raises(InputError, match="not a table; give new ones to fold_in first"):
            rec.explain(*pair)


def test_each_class_loads_its_own_files(rec, tmp_path):
    rec.save(tmp_path / "rec.tgp")
    assert isinstance(TuckerRecommender.load(tmp_path / "rec.tgp"), TuckerRecommender)
    assert type(load(tmp_path / "rec.tgp")) is TuckerRecommender
    with pytest.raises(InputError, match="holds a TuckerRecommender, not a TuckerGPRegressor"):
        TuckerGPRegressor.load(tmp_path / "rec.tgp")


def test_the_score_is_the_share_of_variance_predicted(data, rec):
    y, predicted = data.test["rating"], rec.predict(data.test)
    assert rec.score(data.test) == pytest.approx(1 - np.mean((y - predicted) ** 2) / np.var(y))
    with pytest.raises(InputError, match="ratings that differ"):
        rec.score({"user_id": [1, 2], "item_id": [1, 2], "rating": [3.0, 3.0]})
