"""Lists restricted by attributes and by numbers of ratings, against loops over the item table."""

import datetime

import numpy as np
import pandas as pd
import pytest

from tuckergp import TuckerRecommender, load
from tuckergp.data.datasets import make_ratings
from tuckergp.errors import DataWarning, InputError
from tuckergp.recommender.written import written_conditions

pytestmark = pytest.mark.filterwarnings("ignore::tuckergp.errors.NotConvergedWarning")

FAST = {"rank": 2, "draws": 8, "warmup": 5, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    return make_ratings(n_users=40, n_items=50, n_ratings=600, random_state=2)


@pytest.fixture(scope="module")
def items(data):
    """Attributes of all kinds; the first item has none."""
    rng = np.random.default_rng(0)
    released = [datetime.datetime(1990 + k % 8, 1 + k % 12, 1 + k % 28, k % 24) for k in range(50)]
    frame = pd.DataFrame({"item_id": data.items["item_id"]})
    frame["year"] = data.items["year"]
    frame["genres"] = ["|".join(genres) for genres in data.items["genres"]]
    frame["tags"] = [rng.choice(6, size=1 + k % 3, replace=False).tolist() for k in range(50)]
    frame["kind"] = [("long", "short", "series")[k % 3] for k in range(50)]
    frame["colour"] = [k % 4 == 0 for k in range(50)]
    frame["released"] = released
    frame["bought"] = [f"{day:%Y-%m-%d}" for day in released]
    frame["studio"] = "Only One"  # says nothing, and is not used
    for column in ("year", "genres", "tags", "kind", "released", "bought"):
        frame[column] = frame[column].astype(object).where(np.arange(50) > 0, None)
    return frame.astype({"year": float, "released": "datetime64[us]"})


@pytest.fixture(scope="module")
def model(data, items):
    with pytest.warns(DataWarning, match="studio"):
        return TuckerRecommender(**FAST).fit(data.train, items=items)


def found(model, **options):
    return set(model.recommend("u0001", n=50, exclude_seen=False, **options)["item_id"])


def day(text):
    return pd.Timestamp(text)


@pytest.mark.parametrize(
    ("where", "meets"),
    [
        ({"kind": "short"}, lambda row: row.kind == "short"),
        ({"kind": ["short", "long"]}, lambda row: row.kind in ("short", "long")),
        ({"genres": "Comedy"}, lambda row: "Comedy" in str(row.genres).split("|")),
        ({"genres": {"Comedy", "Drama"}}, lambda row: {"Comedy", "Drama"} & set(str(row.genres).split("|"))),
        ({"tags": 3}, lambda row: row.tags is not None and 3 in row.tags),
        ({"tags": "3"}, lambda row: row.tags is not None and 3 in row.tags),
        ({"colour": True}, lambda row: row.colour),
        ({"colour": "false"}, lambda row: not row.colour),
        ({"studio": "Only One"}, lambda row: True),
        ({"year": (1980, 1999)}, lambda row: 1980 <= row.year <= 1999),
        ({"year": (None, 1990)}, lambda row: row.year <= 1990),
        ({"year": ("1990", None)}, lambda row: row.year >= 1990),
        ({"year": [(None, 1970), (1995, None)]}, lambda row: row.year <= 1970 or row.year >= 1995),
        ({"released": ("1992", "1994")}, lambda row: day("1992") <= row.released < day("1995")),
        ({"released": ("1992-03", "1992-11-11")}, lambda row: day("1992-03") <= row.released < day("1992-11-12")),
        ({"released": (datetime.date(1993, 2, 4), None)}, lambda row: row.released >= day("1993-02-04")),
        ({"released": (None, datetime.datetime(1991, 2, 2, 1))}, lambda row: row.released <= day("1991-02-02 01:00")),
        ({"released": (np.datetime64("1993"), "1993-04-04T03")}, lambda r: "1993" < str(r.released) < "1993-04-04 04"),
        ({"released": "1991-02-02"}, lambda row: day("1991-02-02") <= row.released < day("1991-02-03")),
        ({"bought": ("1992-02", "1993")}, lambda row: "1992-02" <= str(row.bought) < "1994"),
        ({"kind": "long", "year": (1970, None)}, lambda row: row.kind == "long" and row.year >= 1970),
        ({}, lambda row: True),
    ],
)  # fmt: skip
def test_items_that_meet_the_conditions_are_recommended(model, items, where, meets):
    expected = {row.item_id for row in items.itertuples() if meets(row)}
    assert expected, "a condition that no item meets shows nothing"
    assert found(model, where=where) == expected


def test_every_year_is_met_by_the_items_that_have_it(model, items):
    for year, those in items.groupby("year"):
        assert found(model, where={"year": year}) == set(those["item_id"])
        assert found(model, where={"year": np.int64(year)}) == set(those["item_id"])


def test_the_best_of_those_that_are_left_come_first(model, items):
    everything = model.recommend("u0001", n=50)
    short = set(items["item_id"][items["kind"] == "short"])
    expected = everything[everything["item_id"].isin(short)].head(4)
    for strategy in ("mean", "ucb"):
        everything = model.recommend("u0001", n=50, strategy=strategy)
        expected = everything[everything["item_id"].isin(short)].head(4)
        listed = model.recommend("u0001", n=4, where={"kind": "short"}, strategy=strategy)
        assert listed["item_id"].tolist() == expected["item_id"].tolist()
        np.testing.assert_allclose(listed["score"], expected["score"], rtol=1e-10)


def test_conditions_and_lists_of_items_hold_together(model, items):
    some = items["item_id"].tolist()[:20]
    short = set(items["item_id"][items["kind"] == "short"])
    assert found(model, where={"kind": "short"}, items=some, exclude=some[:5]) == short & set(some[5:])


def test_items_folded_in_later_are_found_by_their_attributes(data, items, tmp_path):
    with pytest.warns(DataWarning, match="studio"):
        model = TuckerRecommender(**FAST).fit(data.train, items=items)
    new = {"user_id": ["u0001"] * 2, "item_id": ["new", "i0001"], "rating": [4.0, 3.0]}
    model.fold_in(new, items={"item_id": ["new", "i0001"], "kind": ["silent", "silent"], "year": [1920.0, 1921.0]})
    assert found(model, where={"kind": "silent"}) == {"new", "i0001"}
    model.save(tmp_path / "model.tgp")
    assert found(load(tmp_path / "model.tgp"), where={"year": (None, 1920)}) == {"new"}


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"genre": "comedy"}, "no such column; the columns of the item table are year, genres, tags, kind"),
        ({"kind": (1, 2)}, r"'kind' to be from 1 to 2, but it holds neither numbers nor dates.*; the columns of"),
        ({"year": "soon"}, "'year' to be 'soon', but it holds numbers; the columns of the item table are year"),
        ({"year": datetime.date(1990, 1, 1)}, "but it holds numbers"),
        ({"year": (1999, 1980)}, "but the first is above the second"),
        ({"year": (1, 2, 3)}, "but a tuple is a range"),
        ({"year": None}, "but None is no value"),
        ({"year": float("nan")}, "but nan is no value"),
        ({"kind": [None]}, "but None is no value"),
        ({"kind": []}, "but nothing is in the list"),
        ({"released": 1992}, "but it holds dates such as '1999-12-31'"),
        ({"released": ("then", None)}, "but it holds dates such as '1999-12-31'"),
        ("kind=short", "where must be a dict from columns"),
    ],
)  # fmt: skip
def test_conditions_that_make_no_sense_get_one_clear_sentence(model, where, message):
    with pytest.raises(InputError, match=message):
        model.recommend("u0001", where=where)


def test_a_model_without_an_item_table_has_no_conditions(data):
    with pytest.raises(InputError, match="the model has none; give fit one"):
        TuckerRecommender(**FAST).fit(data.train).recommend("u0001", where={"year": 1990})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"where": {"kind": "Short"}}, r"no item is left by where: 'kind' holds 'short'\."),
        ({"where": {"kind": "opera"}}, r"by where: 'kind' holds ('\w+', ){3}\.\.\."),
        ({"where": {"year": (2100, None)}}, r"by where: 'year' is from 19\d\d to \d+\."),
        ({"where": {"released": "2100"}}, r"'released' is from 1990-\d\d-\d\d to 1997-\d\d-\d\d\."),
        ({"where": {"kind": "long"}, "min_ratings": 10_000}, r"by where and min_ratings=10000\."),
    ],
)
def test_a_filter_that_leaves_nothing_gives_an_empty_list_and_says_so(model, options, message):
    with pytest.warns(DataWarning, match=message):
        nothing = model.recommend(["u0001", "u0002"], **options)
    assert len(nothing) == 0
    assert list(nothing.columns) == ["user_id", "item_id", "score", "std", "rank"]


@pytest.mark.parametrize("duplicates", ["keep", "mean"])
def test_items_with_few_ratings_are_left_out(data, items, duplicates, tmp_path):
    model = TuckerRecommender(**FAST, duplicates=duplicates).fit(data.train, items=items[["item_id", "kind"]])
    counts = pd.Series(data.train["item_id"]).value_counts()
    for least in (0, 1, int(counts.median()), int(counts.max())):
        expected = set(items["item_id"]) if least == 0 else set(counts.index[counts >= least])
        assert found(model, min_ratings=least) == expected
    rare = counts.index[-1]
    more = counts[rare] + 2
    asked = {"user_id": ["x", "y", "x", "y"], "item_id": [rare, rare, "brand new", "brand new"], "rating": [3.0] * 4}
    for_once = model.recommend("u0001", n=60, exclude_seen=False, ratings=asked, min_ratings=2)["item_id"].tolist()
    assert "brand new" in for_once
    model.fold_in(asked)
    expected = {*counts.index[counts >= more], rare, *(["brand new"] if more <= 2 else [])}
    assert found(model, min_ratings=more) == expected
    model.save(tmp_path / "model.tgp")
    assert found(load(tmp_path / "model.tgp"), min_ratings=more) == expected
    with pytest.raises(InputError, match=r"min_ratings must be a whole number from 0 on, not 1\.5"):
        model.recommend("u0001", min_ratings=1.5)


def test_ranges_are_written_with_two_dots_between_numbers_or_dates():
    asked = ["a=1..2.5", "a=1998-01-01..", "a=..-3", "a=to..from", "a=..", "a=1..2 x"]
    expected = [("1", "2.5"), ("1998-01-01", None), (None, "-3"), "to..from", "..", "1..2 x"]
    assert written_conditions(asked) == {"a": expected}
    assert written_conditions(["a=" + "1.." * 20_000 + " x"])["a"][0].endswith(" x")  # took minutes
