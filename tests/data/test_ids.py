"""Ids of any type get numbers in order of first appearance."""

import datetime
import uuid

import numpy as np
import pandas as pd
import pytest

from tuckergp.data.ids import FEW, Ids, number_ids
from tuckergp.data.tables import Table, as_table
from tuckergp.errors import InputError


def objects(values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def numbered_one_by_one(values):
    """The twin: a dict, one id after the other."""
    number = {}
    codes = [number.setdefault(value, len(number)) for value in values]
    return list(number), codes


@pytest.mark.parametrize(
    "values",
    [
        np.array([7, 3, 7, -1, 3]),
        np.array([7, 3, 7, 2**62], dtype=np.uint64),
        np.array([7, 3, 7, -1, 3], dtype=np.int8),
        np.array([7, 3, 7], dtype=">i4"),
        np.arange(20)[::-3],
        np.array([1.5, 0.0, -0.0, 1.5]),
        np.array([0.1, 0.2, 0.1], dtype=np.float32),
        np.array([True, False, True]),
        np.array(["2020-01-02", "2020-01-01", "2020-01-02"], dtype="datetime64[D]"),
        objects(["b", "a", "b"]),
        objects([(1, "x"), (0, "y"), (1, "x")]),
        objects([datetime.date(2020, 1, 2), datetime.date(2020, 1, 1)]),
        objects([uuid.UUID(int=2), uuid.UUID(int=1), uuid.UUID(int=2)]),
        objects([3, 2.5, 3.0, np.int64(3)]),
        objects([]),
        np.array([], dtype=np.int64),
    ],
)
def test_numbers_are_those_of_a_dict(values):
    ids, codes = number_ids(Table({"k": values}, "t", len(values)), "k")
    expected_ids, expected = numbered_one_by_one(values.tolist())
    assert ids == expected_ids
    assert codes.dtype == np.int32
    assert codes.tolist() == expected
    assert not any(isinstance(value, np.generic) for value in ids)
    assert Ids(ids).number(values).tolist() == expected


def test_times_come_back_as_datetimes():
    frame = pd.DataFrame({"k": pd.to_datetime(["2020-01-02 10:00", "2020-01-01 00:00", "2020-01-02 10:00"])})
    ids, codes = number_ids(as_table(frame, "t"), "k")
    assert ids == [datetime.datetime(2020, 1, 2, 10), datetime.datetime(2020, 1, 1)]
    assert codes.tolist() == [0, 1, 0]
    assert Ids(ids).number(as_table(frame, "t")["k"]).tolist() == [0, 1, 0]


def test_movielens_ids_are_numbered_as_a_dict_does(movielens):
    for key in ("user_id", "item_id"):
        ids, codes = number_ids(movielens.ratings, key)
        expected_ids, expected = numbered_one_by_one(movielens.ratings[key].tolist())
        assert ids == expected_ids
        np.testing.assert_array_equal(codes, expected)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, 2, 3, 4, 5, "7"], r"t column 'k' mixes int and str ids, first at row 5 \('7'\): give them one type\."),
        (["a", 3.5], r"mixes str and float ids, first at row 1 \(3\.5\)"),
        ([1, 0, True], r"mixes int and bool ids, first at row 2 \(True\)"),
        (["a", b"a"], "mixes str and bytes ids"),
        (["a", None], r"t column 'k' is missing at row 1; remove or fill such rows\."),
        ([1, 2, float("nan")], "is missing at row 2"),
        ([1.0, np.nan, 2.0], "is missing at row 1"),
        ([["a"], ["b"]], "t column 'k' holds a list at row 0, which cannot be an id; use text, numbers or tuples"),
        (["a", {"b": 1}], "holds a dict at row 1"),
    ],
)
def test_bad_ids_get_one_clear_sentence(values, message):
    with pytest.raises(InputError, match=message) as caught:
        number_ids(Table({"k": objects(values)}, "t", len(values)), "k")
    assert "\n" not in str(caught.value)


def test_missing_dates_are_missing_ids():
    with pytest.raises(InputError, match="missing at row 1"):
        number_ids(Table({"k": np.array(["2020-01-01", "NaT"], dtype="datetime64[D]")}, "t", 2), "k")


def test_ids_that_are_not_known_have_no_number():
    ids = Ids([5, 2**60, -3])
    assert ids.number(np.array([2**60, 5, 6, -3])).tolist() == [1, 0, -1, 2]
    assert ids.number(np.array([5.0, 5.5, np.nan, np.inf, -3.0, 1e300])).tolist() == [0, -1, -1, -1, 2, -1]
    assert ids.number(np.array([5, 2**64 - 3], dtype=np.uint64)).tolist() == [0, -1]
    assert ids.number(["5", 5, None, (5,)]).tolist() == [-1, 0, -1, -1]
    assert ids.number([[5], 5]).tolist() == [-1, 0]
    assert Ids([2**70, 1]).number([1, 2**70]).tolist() == [1, 0]
    assert Ids([]).number(np.array([1, 2])).tolist() == [-1, -1]
    assert 5 in ids
    assert "5" not in ids
    assert len(ids) == 3
    assert list(ids) == [5, 2**60, -3]


@pytest.mark.parametrize("ids", [[5, 2**60, -3, -(2**63), 2**63 - 1], [1.5, 1, 3], [2**63, 2**64 - 3, 5], [7]])
@pytest.mark.parametrize(
    "values",
    [
        np.array([2**60, 5, 6, -3, -(2**63), 2**63 - 1]),
        np.array([5.0, 1.5, np.nan, np.inf, -np.inf, -3.0, 1e300, 2.0**63, -(2.0**63), 2.0**60]),
        np.array([5, 1.5, -3, 7], dtype=np.float32),
        np.array([5, 2**64 - 3, 2**63], dtype=np.uint64),
        np.array([5, 7, -3], dtype=">i8"),
        np.array([5, 7, 1], dtype=np.uint8),
    ],
)
def test_many_ids_are_found_as_a_dict_finds_them(ids, values):
    many = np.tile(values, 1 + FEW // len(values))
    assert len(many) > FEW
    places = {value: place for place, value in enumerate(ids)}
    assert Ids(ids).number(many).tolist() == [places.get(value, -1) for value in many.tolist()]
