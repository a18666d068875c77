"""Whatever a value is, it works or is refused in a sentence that says where it is and what to do."""

import datetime

import numpy as np
import polars as pl
import pytest
from tuckergp.describe import describe

import tuckergp
from tuckergp import TuckerGPRegressor, TuckerRecommender
from tuckergp.errors import InputError

FAST = {"rank": 1, "inference": "als"}
GOOD = {"user_id": ["a", "a", "b", "b"], "item_id": [1, 2, 1, 3], "rating": [1.0, 2.0, 3.0, 5.0]}
PAIR = {"user_id": ["a"], "item_id": [1]}


@pytest.fixture(scope="module")
def model():
    return TuckerRecommender(rank=1, draws=3, warmup=1, time=None, random_state=0).fit(GOOD)


def refused(message, call, *arguments, **more):
    with pytest.raises(InputError, match=message) as caught:
        call(*arguments, **more)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def fit(ratings, users=None, **settings):
    return TuckerRecommender(**{**FAST, **settings}).fit(ratings, users)


DAY = datetime.date(2020, 1, 1)


@pytest.mark.parametrize(
    ("rating", "message"),
    [
        ([1, 2, 10**400, 4], "ratings column 'rating' holds a number at row 2 that is too large; correct or remove"),
        ([1, 2, 10**5000, 4], "at row 2 that is too large"),
        (
            np.array([DAY] * 4, dtype="M8[D]"),
            "ratings column 'rating' must be numeric, but row 0 holds the date 2020-01-01",
        ),
        ([1.0, DAY, DAY, 2.0], "but row 1 holds the date 2020-01-01; name the right column with columns="),
        ([1.0, 2.0, [3.0], 4.0], r"must be numeric, but row 2 holds \[3\.0\]"),
        (
            [1.0, 2.0, 3.0, 4e200],
            "ratings column 'rating' at row 3 is 4e.200, which is too large; divide the ratings by",
        ),
    ],
)
def test_ratings_that_are_no_numbers_to_learn_from(rating, message):
    refused(message, fit, {**GOOD, "rating": rating})


def test_attributes_that_are_too_large_and_their_description():
    users = {"user_id": ["a", "b"], "age": [3, 10**400]}
    refused("users column 'age' holds a number at row 1 that is too large", fit, GOOD, users)
    report = describe({**GOOD, "rating": [1, 2, 10**400, 4]})
    assert "whose rating is infinite" in str(report)


def test_ids_that_are_none(model):
    refused(r"\[1\] is no user_id; give an id, or a list of ids", model.recommend, [[1]])
    refused(r"\[1, 2\] is no user_id", model.recommend, np.array([[1, 2]]))
    refused(r"\[1\] is no item_id", model.recommend, "a", n=1, items=[[1]])
    refused(r"\{\} is no item_id", model.recommend, "a", n=1, exclude=[{}])
    refused("give one id, or a table of one row, not of 0", model.similar_items, {})
    refused(r"\[1\] is no item_id; give one id", model.similar_items, [1])
    refused(r"\['a'\] is no user_id; give one id", model.explain, ["a"], 1)
    refused(r"\['a'\] is no user_id", model.scores, [["a"]], [1])
    refused(r"\[1\] is no user_id", model.recommend, ([1],))
    assert model.scores("a", 1) == model.scores(["a"], [1])


def test_scalars_stand_for_columns(model):
    assert model.predict({"user_id": "a", "item_id": 2}).shape == (1,)
    expected = model.predict({"user_id": ["a", "a"], "item_id": [1, 2]})
    np.testing.assert_array_equal(model.predict({"user_id": "a", "item_id": [1, 2]}), expected)
    refused("differ in length: 'user_id' has 1, 'item_id' has 2", model.predict, {"user_id": ["a"], "item_id": [1, 2]})


def test_integers_of_128_bits():
    ids = pl.Series([10**30, 10**30 + 1, 3, 10**30], dtype=pl.Int128)
    rating = pl.Series([1, 2, 3, 4], dtype=pl.Int128)
    fitted = fit(pl.DataFrame({"user_id": ids, "item_id": [1, 2, 1, 3], "rating": rating}))
    assert fitted.history_.ids[0] == [10**30, 10**30 + 1, 3]
    assert fitted.history_.rating.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "times", [["1998-01-01", 2, None, 10**30], [1, 2, 3, 10**30], [1, 2, 3, 10**400], [1.0, 2.0, 3.0, 1e300]]
)
def test_times_that_are_none(times):
    refused("ratings column 'timestamp' .*row 3", fit, {**GOOD, "timestamp": times}, inference="gibbs", time="week")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rank": "a"}, "rank must be a whole number from 1 on"),
        ({"rating_scale": (0, 10**400)}, "rating_scale must be a lowest and a highest rating"),
    ],
)
def test_settings_that_are_none(settings, message):
    refused(message, fit, GOOD, **settings)


@pytest.mark.parametrize("value", [[], "a", ["a"], [1.5], [[0.5]], {}, [0.5, None], np.array(0.5)])
def test_quantiles_are_a_list_of_probabilities(model, value):
    refused("quantiles must be a list of probabilities between 0 and 1, not", model.predict, PAIR, quantiles=value)


@pytest.mark.parametrize("name", ["return_std", "include_noise", "clip"])
@pytest.mark.parametrize("value", ["yes", None, [True]])
def test_flags_are_true_or_false(model, name, value):
    refused(f"{name} must be True or False, not", model.predict, PAIR, **{name: value})
    refused("exclude_seen must be True or False", model.recommend, "a", n=1, exclude_seen=value)


def test_good_forms_of_them_still_work(model):
    mean, quantiles = model.predict(PAIR, quantiles=np.array([0.1, 0.9]))
    assert quantiles.shape == (1, 2)
    assert model.predict(PAIR, return_std=np.True_)[0] == mean
    refused("interval must be a probability between 0 and 1, not 'yes'", model.predict, PAIR, interval="yes")


LONG = "x" * 5000


@pytest.mark.parametrize("path", ["a\0b.csv", "", LONG, f"{LONG}.csv"])
def test_paths_that_no_file_has(model, path):
    refused("is no path|cannot be read: File name too long", fit, path)
    refused("must be a path|cannot be used: File name too long", tuckergp.load, path)
    refused("must be a path|cannot be used: File name too long", model.save, path)
    gibbs = TuckerRecommender(rank=1, draws=2, warmup=1)
    refused("checkpoint must be a path|cannot be used: File name too long", gibbs.fit, GOOD, checkpoint=path)


def test_a_table_is_no_model(tmp_path):
    (tmp_path / "r.csv").write_text("user_id,item_id,rating\na,1,2\n")
    refused(
        r"r\.csv is damaged or no tuckergp model: it is no file that save or tuckergp fit",
        tuckergp.load,
        tmp_path / "r.csv",
    )
    refused("A model file must be a path, not 3", tuckergp.load, 3)


def test_an_open_quote_in_a_large_file_is_named_by_its_line(tmp_path):
    path = tmp_path / "r.csv"
    lines = "a,1,2\n" * 300_000
    path.write_text(f'user_id,item_id,rating\n{lines}b,"2,3\n{lines}')
    refused(r"r\.csv line 300002 opens a quote", fit, path)


def test_weights_of_several_lengths():
    X = np.arange(10.0).reshape(5, 2)
    refused(
        "sample_weight must have one entry for each of the 5 rows",
        TuckerGPRegressor(rank=2).fit,
        X,
        np.arange(5.0),
        sample_weight=[1, [2, 3], 1, 1, 1],
    )
