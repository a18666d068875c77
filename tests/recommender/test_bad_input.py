"""Bad input: one or two plain sentences that say what is wrong, where, and what to do."""

import numpy as np
import pytest

from tuckergp import TuckerRecommender
from tuckergp.data.datasets import make_ratings
from tuckergp.errors import DataWarning, InputError, UnknownIdWarning
from tuckergp.evaluation.evaluate import evaluate

FAST = {"rank": 1, "inference": "als", "random_state": 0}
GOOD = {"user_id": ["a", "a", "b", "b"], "item_id": [1, 2, 1, 3], "rating": [1.0, 2.0, 3.0, 4.0]}


def refused(match, *tables, **settings):
    with pytest.raises(InputError, match=match) as caught:
        TuckerRecommender(**FAST, **settings).fit(*tables)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


AGAIN = {"user_id": ["a", "b", "a"], "item_id": [1, 1, 1], "rating": [1.0, 2.0, 5.0]}


def test_repeated_pairs_are_kept_averaged_or_refused():
    refused("ratings has user 'a' and item 1 twice, at row 0 and row 2", AGAIN, duplicates="refuse")
    refused("duplicates must be 'keep', 'mean', 'last' or 'refuse', not 'drop'", AGAIN, duplicates="drop")
    kept = TuckerRecommender(**FAST).fit(AGAIN)
    assert len(kept.history_) == 3
    averaged = TuckerRecommender(**FAST, duplicates="mean").fit(AGAIN)
    np.testing.assert_allclose(averaged.history_.rating, [3.0, 2.0])


def test_ratings_outside_a_declared_scale():
    bad = {**GOOD, "rating": [1.0, 2.0, 9.0, 4.0]}
    refused("column 'rating' holds 9 at row 2, outside the scale from 1 to 5", bad, rating_scale=(1, 5))
    refused("rating_scale must be a lowest and a highest rating", GOOD, rating_scale=(5, 1))
    model = TuckerRecommender(**FAST, rating_scale=(0, 10)).fit(GOOD)
    assert model.rating_range_ == (0, 10)


def test_a_user_table_with_repeated_ids():
    refused("users has user_id 'a' twice, at row 0 and row 2", GOOD, {"user_id": ["a", "b", "a"], "age": [1, 2, 3]})


@pytest.mark.parametrize(("values", "why"), [([7, 7], "the same value everywhere"), ([None, None], "are missing")])
def test_a_column_that_says_nothing_is_left_out_with_a_warning(values, why):
    with pytest.warns(DataWarning, match=f"users column 'x' is not used: .*{why}"):
        model = TuckerRecommender(**FAST).fit(GOOD, {"user_id": ["a", "b"], "x": values})
    assert model.features_["users"][0].use == "nothing"


def test_ids_of_mixed_types():
    mixed = {**GOOD, "item_id": [1, 2, "1", 3]}
    refused(r"ratings column 'item_id' mixes int and str ids, first at row 2 \('1'\): give them one type", mixed)


def test_ids_of_another_type_than_those_learned_are_noticed():
    model = TuckerRecommender(**FAST).fit(GOOD)
    with pytest.warns(UnknownIdWarning, match=r"item_id '01' has neither ratings nor attributes.*did you mean 1\?"):
        model.predict({"user_id": ["a"], "item_id": ["01"]})
    for method in (model.fold_in, model.partial_fit):
        with pytest.raises(
            InputError, match=r"ratings column 'item_id' holds 'x' at row 1, and the model's ids are like 1"
        ):
            method({"user_id": ["a", "a"], "item_id": [1, "x"], "rating": [1.0, 2.0]})
        with pytest.raises(
            InputError, match=r"users column 'user_id' holds 9.5 at row 0, and the model's ids are like 'a"
        ):
            method({"user_id": ["a"], "item_id": [1], "rating": [1.0]}, {"user_id": [9.5], "age": [1]})


def test_an_empty_history():
    refused("ratings is empty; there is nothing to learn from", {"user_id": [], "item_id": [], "rating": []})


def test_a_broken_row_is_named_by_its_line(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text("user_id,item_id,rating\na,1,5\nb,2\nc,3,4\n")
    refused("ratings.csv line 3 has 2 values, but the header names 3 columns", path)
    path.write_text("user_id,item_id,rating\na,1,5\nb,2,good\n")
    refused("ratings.csv column 'rating' must be numeric, but line 3 holds 'good'", path)


def test_missing_columns_are_refused_and_others_ignored():
    refused("ratings has no column 'item_id'; its columns are", {"user_id": [1], "rating": [2.0]})
    refused("ratings has no column 'rating'.*For clicks", {"user_id": [1], "item_id": [2]}, likelihood="gaussian")
    nameless = {"item_id": [1], "rating": [2.0]}
    refused("ratings has no column 'userId'", nameless, columns={"user_id": "userId"})
    refused(
        "columns gives other names for user_id, item_id, rating, timestamp, count; it has 'user'",
        GOOD,
        columns={"user": "u"},
    )
    refused("has no column 'device'", GOOD, context="device")
    refused("attributes has choices for 'users' and for 'items', not for 'films'", GOOD, attributes={"films": {}})
    TuckerRecommender(**FAST).fit({**GOOD, "mood": [object()] * 4})


def test_more_than_there_are_gives_all_that_are_left():
    model = TuckerRecommender(**FAST).fit(GOOD)
    rated = {item for user, item in zip(GOOD["user_id"], GOOD["item_id"], strict=True) if user == "a"}
    assert set(model.recommend("a", n=10)["item_id"]) == set(GOOD["item_id"]) - rated
    assert set(model.recommend("a", n=10, exclude_seen=False)["item_id"]) == set(GOOD["item_id"])
    assert len(model.similar_items(GOOD["item_id"][0], n=10)["item_id"]) == len(set(GOOD["item_id"])) - 1


def test_ratings_for_one_request_alone_answer_for_their_users():
    model = TuckerRecommender(**FAST).fit(GOOD)
    new = {"user_id": ["new", "a", "new"], "item_id": [1, 3, 2], "rating": [1.0, 2.0, 3.0]}
    lists = model.recommend(ratings=new, exclude_seen=False)
    assert list(dict.fromkeys(lists["user_id"])) == ["new", "a"]
    assert "new" not in model.layout_.sides[0].number


def test_several_kinds_of_uncertainty_in_one_call():
    pairs = {"user_id": ["a", "b"], "item_id": [1, 2]}
    model = TuckerRecommender(rank=2, draws=20, warmup=5, random_state=0).fit(GOOD)
    mean, std, quantiles, interval = model.predict(pairs, return_std=True, quantiles=[0.1, 0.9], interval=0.8)
    for value, (first, alone) in (
        (std, model.predict(pairs, return_std=True)),
        (quantiles, model.predict(pairs, quantiles=[0.1, 0.9])),
        (interval, model.predict(pairs, interval=0.8)),
    ):
        np.testing.assert_allclose(first, mean, rtol=1e-12)
        np.testing.assert_array_equal(value, alone)


def test_unknown_ids_are_predicted_refused_or_left_open():
    model = TuckerRecommender(**FAST).fit(GOOD)
    pairs = {"user_id": ["a", "nobody"], "item_id": [1, 2]}
    assert np.isfinite(model.predict(pairs)).all()
    np.testing.assert_array_equal(np.isnan(model.predict(pairs, on_unknown="nan")), [False, True])
    with pytest.raises(InputError, match="column 'user_id' holds 'nobody' at row 1, which has neither ratings nor"):
        model.predict(pairs, on_unknown="raise")
    with pytest.raises(InputError, match="on_unknown must be 'predict', 'nan' or 'raise', not 'drop'"):
        model.predict(pairs, on_unknown="drop")


def test_columns_of_other_names_are_understood_everywhere():
    data = make_ratings(n_users=40, n_items=30, n_ratings=600, random_state=0)
    names = {"user_id": "userId", "item_id": "movieId", "rating": "stars"}
    ratings = {names.get(name, name): values for name, values in data.train.columns.items()}
    users = {names.get(name, name): values for name, values in data.users.columns.items()}
    model = TuckerRecommender(**FAST, columns=names)
    board = evaluate(model, ratings, users=users, metrics=["rmse"], baselines=["biases"])
    plain = evaluate(TuckerRecommender(**FAST), data.train, users=data.users, metrics=["rmse"], baselines=["biases"])
    assert board.value("rmse") == plain.value("rmse")


def test_errors_name_the_row_although_drift_is_tried_on_a_part():
    data = make_ratings(n_users=60, n_items=40, n_ratings=900, random_state=0)
    rating = data.train["rating"].copy()
    rating[-2] = np.nan
    with pytest.raises(InputError, match=f"is missing .NaN. at row {len(rating) - 2}"):
        TuckerRecommender(rank=1).fit({**data.train.columns, "rating": rating})


def test_a_named_rating_column_that_is_not_there_does_not_make_clicks():
    likes = {**GOOD, "stars": [0, 1, 0, 1]}
    del likes["rating"]
    with pytest.raises(InputError, match="has no column 'strs'"):
        TuckerRecommender(likelihood="bernoulli", columns={"rating": "strs"}).fit(likes)
    clicks = {key: GOOD[key] for key in ("user_id", "item_id")}
    with pytest.raises(InputError, match="rating_scale is for ratings"):
        TuckerRecommender(likelihood="bernoulli", rating_scale=(1, 5)).fit(clicks)


def test_means_of_ratings_are_no_levels():
    with pytest.raises(InputError, match="Means of ratings make no sense with likelihood='ordinal'"):
        TuckerRecommender(likelihood="ordinal", duplicates="mean", draws=2, warmup=1).fit(
            {"user_id": ["a", "a", "b"], "item_id": [1, 1, 2], "rating": [1, 2, 5]}
        )


@pytest.mark.filterwarnings("ignore::tuckergp.errors.NotConvergedWarning")
def test_times_of_all_kinds_may_follow_each_other():
    start = np.datetime64("1998-01-05T12:00:00", "ns")
    week = np.timedelta64(7, "D")
    first = {**GOOD, "timestamp": start + week * np.arange(4)}
    model = TuckerRecommender(rank=1, draws=3, warmup=2, time="week", random_state=0).fit(first)
    for times in (["1998-03-02"], [888_840_000], [888_840_000_000], [None]):
        model.fold_in({"user_id": ["a"], "item_id": [3], "rating": [2.0], "timestamp": times})
    kept = model.history_.occasion["timestamp"]
    assert kept.dtype == "datetime64[s]"
    np.testing.assert_array_equal(kept[:4], first["timestamp"].astype("datetime64[s]"))
    assert (kept[4:7].astype("datetime64[D]") == np.datetime64("1998-03-02")).all()
    assert np.isnat(kept[7])


def test_times_that_cannot_be_read_are_left_out_unless_asked_for():
    table = {**GOOD, "timestamp": ["yesterday", "1998-01-01", "x", "y"]}
    quick = {"rank": 1, "draws": 2, "warmup": 1, "random_state": 0}
    with pytest.warns(
        DataWarning, match="ratings column 'timestamp' must hold times, but row 0 holds 'yesterday'; .*left"
    ):
        model = TuckerRecommender(**quick).fit(table)
    assert model.time_ is None
    assert model.history_.occasion_columns == []
    assert np.isfinite(model.predict(table)).all()
    with pytest.raises(InputError, match="must hold times, but row 0 holds 'yesterday'"):
        TuckerRecommender(**quick, time="week").fit(table)


def test_unknown_ids_are_named_once_and_the_average_is_taken():
    model = TuckerRecommender(**FAST).fit(GOOD)
    strangers = ["x", "y", "z", "v", "w"]
    with pytest.warns(UnknownIdWarning, match=r"user_id 'x', 'y', 'z' and 2 more have neither") as caught:
        lists = model.recommend(["a", *strangers], n=1, exclude_seen=False)
    assert len(caught) == 1
    assert len(set(list(lists["item_id"])[1:])) == 1
    with pytest.warns(UnknownIdWarning, match=r"user_id 'A' has neither ratings nor attributes.*did you mean 'a'\?"):
        model.predict({"user_id": ["A"], "item_id": [1]})


def test_an_empty_table_of_items_is_refused():
    ratings = {"user_id": [1, 2], "item_id": [1, 2], "rating": [3.0, 4.0]}
    with pytest.raises(InputError, match=r"items is empty; leave it out, or give a row for each item_id\."):
        TuckerRecommender(rank=1, inference="als").fit(ratings, items={"item_id": [], "year": []})
