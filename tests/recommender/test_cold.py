"""Users and items without ratings: what is not known of them is drawn from what training rows have."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse, stats

from tuckergp import TuckerRecommender, load
from tuckergp.data.tables import Table, as_table
from tuckergp.evaluation.metrics import rmse
from tuckergp.kernels import Cosine, Identity
from tuckergp.model.fitted_mode import FittedMode
from tuckergp.model.mode import Mode
from tuckergp.recommender.attributes import WHO_RATED_WHAT

pytestmark = pytest.mark.filterwarnings("ignore::tuckergp.errors.NotConvergedWarning")


def test_an_empty_set_is_nothing_special_where_training_rows_have_it():
    table = as_table({"set": [("a",), ()]}, "sets")
    mode, trained = FittedMode.fit(Mode("set", Cosine()), table, {}, np.random.default_rng(0))
    assert trained.set_block is mode.set_block is None
    np.testing.assert_allclose(sparse.csr_array(trained.features).toarray()[:, 1:], [[1.0], [0.0]])


def test_the_set_that_is_named_may_be_not_known_and_others_are_the_average():
    sets = {"id": [1, 2, 3], "set": [("a",), ("a", "b"), ("b", "c", "d")], "words": [("x",), ("x", "y"), ("y",)]}
    kernel = Identity("id") + Cosine("words") + Cosine("set")
    table = as_table(sets, "sets")
    mode, trained = FittedMode.fit(Mode(list(sets), kernel), table, {}, np.random.default_rng(0), set_column="set")
    new = mode.realise(as_table({"id": [4, 5, 6], "set": [(), ("b",), ("other",)], "words": [("y",), (), ()]}, "new"))
    assert mode.set_block == trained.set_block == new.set_block == 2
    np.testing.assert_array_equal(new.newcomers, [0, 2])
    assert len(trained.newcomers) == 0
    words, members = (sparse.csr_array(new.features).toarray()[:, block.columns] for block in mode.blocks[1:])
    average = np.array([1, 2, 1]) @ np.array([[1, 0], [2**-0.5, 2**-0.5], [0, 1]]) / 4  # by the number of their values
    np.testing.assert_allclose(words, [[0, 1], average, average])
    np.testing.assert_allclose(members, [[0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]])
    assert new.new is None  # members never seen say nothing


def coverage(model, test, share=0.9):
    """The share of ratings in their intervals."""
    _, interval = model.predict(test, interval=share, clip=False)
    return ((interval[:, 0] <= test["rating"]) & (test["rating"] <= interval[:, 1])).mean()


@pytest.fixture(scope="module")
def shelves():
    """Ratings of items on 20 shelves that differ in quality and have visitors of their own; and of 100 new items."""
    rng = np.random.default_rng(0)
    quality = stats.norm.ppf((np.arange(20) + 0.5) / 20)
    shelf = rng.permutation(np.repeat(np.arange(20), 20))
    item = np.repeat(np.arange(400), 12)
    visitors = (shelf[item] * 10 + rng.integers(10, size=len(item))) % 200  # 10 users visit each shelf
    anybody = rng.integers(200, size=len(item))
    user = np.where((rng.random(len(item)) < 0.7) & (item < 300), visitors, anybody)
    rating = quality[shelf[item]] + 0.3 * rng.standard_normal(400)[item] + 0.3 * rng.standard_normal(len(item))
    columns = {"user_id": user, "item_id": item, "rating": rating}
    return [
        Table({name: values[part] for name, values in columns.items()}, "ratings", int(part.sum()))
        for part in (item < 300, item >= 300)
    ]


def fitted(train):
    return TuckerRecommender(rank=2, draws=60, warmup=60, time=None, implicit=True, random_state=0).fit(train)


def test_new_items_are_as_uncertain_as_the_shelf_that_they_would_stand_on(shelves):
    train, test = shelves
    # with the average set for certain 0.67 of the ratings were within the intervals
    assert 0.85 < coverage(fitted(train), test) < 0.97


def test_a_file_keeps_what_newcomers_need(shelves, tmp_path):
    train, test = shelves
    model = fitted(train)
    model.save(tmp_path / "model.tgp")
    again = load(tmp_path / "model.tgp")
    for found, expected in zip(again.predict(test, interval=0.9), model.predict(test, interval=0.9), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_running_moments_are_those_of_the_draws(shelves):
    train, test = shelves
    model = TuckerRecommender(rank=2, draws=10, warmup=5, time=None, implicit=True, random_state=0)
    model.fit(train, moments_of=test)
    mean, spread = model.predict(test, return_std=True, clip=False)
    np.testing.assert_allclose(model.moments_.mean, mean, rtol=1e-5)
    np.testing.assert_allclose(model.moments_.std, spread, rtol=1e-4)


def test_a_newcomer_whose_raters_are_new_too_is_folded_in_around_what_is_predicted_for_it(shelves):
    model = fitted(shelves[0])
    pair = {"user_id": [1000], "item_id": [1000]}
    before, spread = model.predict(pair, return_std=True)
    model.fold_in({**pair, "rating": [before[0] + 2 * spread[0]]})
    after, less = model.predict(pair, return_std=True)
    assert before[0] + 0.3 * spread[0] < after[0] < before[0] + 2 * spread[0]
    assert less[0] < spread[0]


@pytest.mark.slow
@pytest.mark.parametrize("key", ["user_id", "item_id"])
def test_newcomers_are_predicted_well_and_with_honest_intervals_although_nobody_rated_them(movielens, key):
    ids = np.unique(movielens.ratings[key])
    cold = np.isin(movielens.ratings[key], np.random.default_rng(0).choice(ids, 150, replace=False))
    train, test = (movielens.ratings.take(np.flatnonzero(part)) for part in (~cold, cold))
    size = {"rank": 4, "draws": 20, "warmup": 20}
    model = TuckerRecommender(**size, implicit=True, time=None, objective="rating", random_state=0)
    model.fit(train, movielens.users, movielens.items)
    error = rmse(test["rating"], model.predict(test))
    assert error < 0.93 * rmse(test["rating"], np.full(len(test), train["rating"].mean()))
    assert 0.86 < coverage(model, test) < 0.95  # items had 0.82 with the average set


def test_modes_of_files_that_have_an_average_set_still_use_it():
    sets = {"id": [1, 2], "set": [("a",), ("a", "b")]}
    mode = Mode(["id", "set"], Identity("id") + Cosine("set"))
    mode, _ = FittedMode.fit(mode, as_table(sets, "sets"), {}, np.random.default_rng(0))
    block = replace(mode.blocks[1], average=sparse.csr_array([[0.8, 0.5]]))
    old = replace(mode, blocks=(mode.blocks[0], block), set_block=None)
    new = old.realise(as_table({"id": [3, 4], "set": [(), ("b",)]}, "new"))
    np.testing.assert_allclose(sparse.csr_array(new.features).toarray(), [[1.0, 0.8, 0.5], [1.0, 0.0, 1.0]])
    assert len(new.newcomers) == 0


def test_the_set_is_who_rated_what_however_many_words_titles_have():
    """Titles are compared by cosines too, and may have more words than there are users."""
    rng = np.random.default_rng(0)
    ratings = {
        "user_id": rng.integers(12, size=200),
        "item_id": rng.integers(25, size=200),
        "rating": rng.integers(1, 6, 200),
    }
    titles = [" ".join(f"word{w}" for w in rng.integers(200, size=4)) for _ in range(25)]
    model = TuckerRecommender(
        rank=2, draws=5, warmup=5, implicit=True, attributes={"items": {"title": "text"}}, random_state=0
    )
    model.fit(ratings, items={"item_id": np.arange(25), "title": titles})
    for side in model.layout_.sides:
        block = side.mode.blocks[side.mode.set_block]
        assert block.kernel.reads(side.mode.mode.columns) == [WHO_RATED_WHAT]
