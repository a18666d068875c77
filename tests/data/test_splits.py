"""Training and test parts."""

import numpy as np
import pandas as pd
import pytest

from tuckergp.data.datasets import make_ratings
from tuckergp.data.splits import (
    ColdItems,
    ColdUsers,
    FoldColumn,
    GivenParts,
    Holdout,
    KFold,
    LastN,
    TimeSplit,
    UserHoldout,
    holdout,
)
from tuckergp.data.tables import Table, as_table
from tuckergp.errors import InputError

SPLITTERS = [
    Holdout(0.25, new_users=0.1),
    KFold(3),
    FoldColumn(),
    FoldColumn(test=[1]),
    UserHoldout(n=2),
    UserHoldout(share=0.3),
    LastN(2),
    TimeSplit(0.3),
    TimeSplit(at="2020-03-01"),
    ColdUsers(0.2),
    ColdItems(0.2),
]


@pytest.fixture(scope="module")
def ratings():
    table = make_ratings(n_users=40, n_items=30, n_ratings=500, random_state=0).train
    # the rows of a table of the outside world are in no particular order
    table = table.take(np.random.default_rng(1).permutation(len(table)))
    return Table({**table.columns, "fold": np.arange(len(table)) % 4}, "ratings", len(table))


def pairs(table):
    return set(zip(table["user_id"], table["item_id"], strict=True))


@pytest.mark.parametrize("splitter", SPLITTERS, ids=repr)
def test_parts_are_disjoint_and_complete_and_the_same_every_time(splitter, ratings):
    parts = list(splitter.split(ratings))
    for train, test in parts:
        assert len(train) + len(test) == len(ratings)
        assert not pairs(train) & pairs(test)
        assert list(train.columns) == list(test.columns) == list(ratings.columns)
    for (train, test), (again, test_again) in zip(parts, splitter.split(ratings), strict=True):
        assert pairs(train) == pairs(again)
        assert pairs(test) == pairs(test_again)


@pytest.mark.parametrize("kind", [Holdout, KFold, ColdUsers, ColdItems, UserHoldout])
def test_another_seed_parts_differently(kind, ratings):
    first, second = (next(iter(kind(seed=seed).split(ratings)))[1] for seed in (0, 1))
    assert pairs(first) != pairs(second)


def test_new_users_and_items_of_a_holdout_are_only_in_the_test_part():
    ratings = make_ratings(n_users=100, n_items=80, n_ratings=3000, random_state=0).train
    train, test = holdout(ratings, test_size=0.2, new_users=0.1, new_items=0.05, seed=3)
    assert not pairs(train) & pairs(test)
    assert len(train) + len(test) == len(ratings)
    for key, share in (("user_id", 0.1), ("item_id", 0.05)):
        new = set(test[key]) - set(train[key])
        assert len(new) >= round(share * len(set(ratings[key])))
    again, _ = holdout(ratings, test_size=0.2, new_users=0.1, new_items=0.05, seed=3)
    np.testing.assert_array_equal(train["user_id"], again["user_id"])


@pytest.mark.parametrize("splitter", [KFold(3), FoldColumn()])
def test_every_rating_is_tested_on_once(splitter, ratings):
    tested = [pair for _, test in splitter.split(ratings) for pair in pairs(test)]
    assert sorted(tested) == sorted(pairs(ratings))


def test_folds_are_of_one_size(ratings):
    sizes = [len(test) for _, test in KFold(3).split(ratings)]
    assert max(sizes) - min(sizes) <= 1


def test_named_folds_alone_are_tested_on(ratings):
    part = np.where(ratings["fold"] == 2, "test", "train").astype(object)
    table = Table({**ratings.columns, "part": part}, "ratings", len(ratings))
    ((train, test),) = FoldColumn("part", test=["test"]).split(table)
    assert set(test["fold"]) == {2}
    assert set(train["fold"]) == {0, 1, 3}


def test_given_parts_are_read_and_yielded(ratings):
    train, test = holdout(ratings)
    frames = [pd.DataFrame(part.columns) for part in (train, test)]
    ((read, tested),) = GivenParts([tuple(frames)]).split()
    assert pairs(read) == pairs(train)
    assert pairs(tested) == pairs(test)


@pytest.mark.parametrize("keep", [1, 3])
def test_n_of_every_user_who_has_enough_are_held_out(ratings, keep):
    _, test = next(UserHoldout(n=2, keep=keep).split(ratings))
    for user in set(ratings["user_id"]):
        count = (ratings["user_id"] == user).sum()
        assert (test["user_id"] == user).sum() == (2 if count >= 2 + keep else 0)


def test_a_share_of_every_user_is_held_out_and_something_kept(ratings):
    train, test = next(UserHoldout(share=0.4).split(ratings))
    for user in set(ratings["user_id"]):
        count = (ratings["user_id"] == user).sum()
        assert (train["user_id"] == user).sum() >= 1
        assert (test["user_id"] == user).sum() == min(round(0.4 * count), count - 1)


@pytest.mark.parametrize(
    "form", [lambda t: t, lambda t: t.astype("datetime64[s]"), lambda t: t.astype("M8[s]").astype(str)]
)
def test_the_last_of_a_user_are_later_than_all_others(ratings, form):
    table = as_table({**ratings.columns, "timestamp": form(ratings["timestamp"])}, "ratings")
    train, test = next(LastN(2).split(table))
    for user in set(test["user_id"]):
        kept = train["timestamp"][train["user_id"] == user]
        held = test["timestamp"][test["user_id"] == user]
        assert len(held) == 2
        assert max(kept) <= min(held)


def test_of_ratings_at_the_same_time_the_later_in_the_table_is_the_last():
    ratings = {"user_id": [1] * 3, "item_id": [5, 6, 7], "rating": [1.0] * 3, "timestamp": [4, 4, 4]}
    _, test = next(LastN(1).split(ratings))
    assert test["item_id"].tolist() == [7]


def test_a_split_by_time_learns_from_the_past(ratings):
    train, test = next(TimeSplit(0.3).split(ratings))
    assert train["timestamp"].max() < test["timestamp"].min()
    assert len(test) == pytest.approx(0.3 * len(ratings), abs=2)


def test_times_of_a_cut_may_be_numbers_text_or_dates(ratings):
    number = int(np.datetime64("2020-03-01", "s").astype(int))
    dates = as_table({**ratings.columns, "timestamp": ratings["timestamp"].astype("M8[s]")}, "ratings")
    found = [
        pairs(next(TimeSplit(at=at).split(table))[1])
        for at in (number, "2020-03-01", np.datetime64("2020-03-01"), pd.Timestamp("2020-03-01"))
        for table in (ratings, dates)
    ]
    assert all(test == found[0] for test in found)


@pytest.mark.parametrize(("splitter", "key"), [(ColdUsers(0.25), "user_id"), (ColdItems(0.25), "item_id")])
def test_cold_ones_have_no_training_rating(splitter, key, ratings):
    train, test = next(splitter.split(ratings))
    assert not set(train[key]) & set(test[key])
    assert len(set(test[key])) == round(0.25 * len(set(ratings[key])))


@pytest.mark.parametrize(
    ("splitter", "message"),
    [
        (Holdout(1.5), r"test_size must be a share from 0 to below 1, not 1\.5"),
        (Holdout(0.0), "no rating to test on"),
        (KFold(1), "n_folds must be a whole number of at least 2"),
        (KFold(1000), "too few for 1000 folds"),
        (FoldColumn("part"), "no column 'part'"),
        (FoldColumn("one"), "but one value"),
        (FoldColumn(test=[9]), "nowhere holds 9"),
        (FoldColumn(test="a"), "must be a list"),
        (UserHoldout(n=1, share=0.5), "n or share, not both"),
        (UserHoldout(n=0), "n must be a whole number of at least 1"),
        (UserHoldout(n=500), "No user of ratings has enough ratings"),
        (UserHoldout(share=1.0), r"share must be a share between 0 and 1, not 1\.0"),
        (LastN(1, column="when"), "needs a column 'when'"),
        (LastN(1, column="gap"), "'gap' is missing at row 0"),
        (TimeSplit(share=0.2, at=3), "share or at, not both"),
        (TimeSplit(at="1990-01-01"), "no rating to train on; choose another time"),
        (TimeSplit(at="2190-01-01"), "no rating to test on; choose another time"),
        (TimeSplit(at="soon"), "must hold times"),
        (ColdUsers(0.999), "leaves none"),
        (ColdItems(0), "share must be a share"),
        (GivenParts([(1, 2)]), "ratings must be None"),
    ],
)
def test_what_cannot_be_split_is_said(splitter, message, ratings):
    columns = {"one": np.ones(len(ratings)), "gap": np.full(len(ratings), np.nan)}
    table = Table({**ratings.columns, **columns}, "ratings", len(ratings))
    with pytest.raises(InputError, match=message):
        list(splitter.split(table))


def test_given_parts_must_be_pairs():
    with pytest.raises(InputError, match="pairs"):
        GivenParts([])
    with pytest.raises(InputError, match="pairs"):
        GivenParts([({}, {}, {})])
