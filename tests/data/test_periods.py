"""Weeks and months from whatever holds a time."""

import datetime

import numpy as np
import pytest

from tuckergp.data.periods import UNKNOWN, periods, times
from tuckergp.data.tables import as_table
from tuckergp.errors import InputError

MONDAY = datetime.datetime(1998, 4, 20)


def times_of(values):
    return as_table({"timestamp": values}, "ratings")


@pytest.mark.parametrize("unit", [1, 1_000, 1_000_000, 1_000_000_000])
def test_numbers_are_seconds_or_smaller_units_where_they_are_too_large(unit):
    seconds = np.array([893_030_400, 893_030_400 + 6 * 86_400, 893_030_400 + 7 * 86_400])  # Monday 1998-04-20
    found = periods(times_of(seconds * unit), "timestamp", "week")
    assert found[0] == found[1] == found[2] - 1


@pytest.mark.parametrize(
    "values",
    [
        np.array(["1998-04-20", "1998-04-26", "1998-04-27"], dtype="datetime64[ns]"),
        ["1998-04-20", "1998-04-26 23:59:59", "1998-04-27T00:00"],
        [MONDAY, MONDAY + datetime.timedelta(days=6), MONDAY + datetime.timedelta(days=7)],
        [datetime.date(1998, 4, 20), datetime.date(1998, 4, 26), datetime.date(1998, 4, 27)],
    ],
)
def test_dates_and_text_agree(values):
    week = periods(times_of(values), "timestamp", "week")
    assert week[0] == week[1] == week[2] - 1
    assert (periods(times_of(values), "timestamp", "month") == (1998 - 1970) * 12 + 3).all()


def test_missing_times_have_no_period_and_bad_ones_are_named():
    assert periods(times_of([0, None]), "timestamp", "week").tolist() == [0, UNKNOWN]
    with pytest.raises(InputError, match="column 'timestamp' must hold times, but row 1 holds 'soon'"):
        periods(times_of(["1998-04-20", "soon"]), "timestamp", "week")


def test_text_may_have_a_time_zone_or_be_a_number():
    noon = np.datetime64("2020-01-01T12:00:00")
    texts = ["2020-01-01 12:00", "2020-01-01T12:00:00Z", "2020-01-01T14:00:00+02:00", " 2020-01-01 07:00:00-0500"]
    assert (times(as_table({"t": texts}, "r"), "t") == noon).all()
    aware = datetime.datetime(2020, 1, 1, 13, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))
    assert times(as_table({"t": [aware, "2020-01-01"]}, "r"), "t")[0] == noon
    seconds = str(noon.astype(int))
    assert (times(as_table({"t": [seconds, f"{seconds}000"[:10]]}, "r"), "t") == noon).all()
    assert times(as_table({"t": ["1998", "1998-04"]}, "r"), "t")[1] == np.datetime64("1998-04-01")
