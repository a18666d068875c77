"""Drift over time in the recommender: what a week does, and what is refused."""

import numpy as np
import pytest

from tuckergp import TuckerRecommender
from tuckergp.errors import InputError
from tuckergp.evaluation.metrics import rmse

WEEK = 7 * 86_400
FAST = {"rank": 2, "draws": 60, "warmup": 40, "implicit": False, "random_state": 0}

pytestmark = pytest.mark.filterwarnings("ignore::tuckergp.errors.NotConvergedWarning")


@pytest.fixture(scope="module")
def moody():
    """30 users with a mood of their own in each of 4 weeks, 40 items; training and test ratings of the same weeks."""
    rng = np.random.default_rng(0)
    user, item, week = rng.integers(30, size=3_000), rng.integers(40, size=3_000), rng.integers(4, size=3_000)
    mood, quality = rng.normal(0, 0.8, (30, 4)), rng.normal(0, 0.5, 40)
    rating = 3 + mood[user, week] + quality[item] + rng.normal(0, 0.4, 3_000)
    columns = {
        "user_id": np.array([f"u{k}" for k in user], dtype=object),
        "item_id": item,
        "rating": rating,
        "timestamp": 893_030_400 + week * WEEK + rng.integers(WEEK, size=3_000),
    }
    parts = np.split(np.arange(3_000), [2_000])
    return [{key: values[rows] for key, values in columns.items()} for rows in parts]


@pytest.fixture(scope="module")
def drifting(moody):
    return TuckerRecommender(**FAST).fit(moody[0])


def test_weeks_are_used_where_there_are_timestamps_and_help_where_there_is_drift(moody, drifting):
    train, test = moody
    still = TuckerRecommender(**FAST, time=None).fit(train)
    assert drifting.time_ == "week"
    assert still.time_ is None
    # noise has sd 0.4, moods 0.8: without weeks they are noise
    assert rmse(test["rating"], drifting.predict(test)) < 0.55
    assert rmse(test["rating"], still.predict(test)) > 0.75


def test_auto_does_without_weeks_where_moods_do_not_change(moody):
    rng = np.random.default_rng(1)
    steady = {**moody[0], "timestamp": rng.permutation(moody[0]["timestamp"])}  # the weeks now say nothing
    assert TuckerRecommender(**{**FAST, "draws": 3, "warmup": 2}).fit(steady).time_ is None


def test_without_a_time_the_user_is_taken_as_on_average_and_less_surely(moody, drifting):
    test = moody[1]
    pairs = {key: test[key][:50] for key in ("user_id", "item_id")}
    mean, std = drifting.predict(pairs, return_std=True)
    _, known = drifting.predict({**pairs, "timestamp": test["timestamp"][:50]}, return_std=True)
    assert np.isfinite(mean).all()
    assert std.mean() > known.mean()
    missing = drifting.predict({**pairs, "timestamp": [None] * 50})
    np.testing.assert_allclose(missing, mean)
    later = drifting.predict({**pairs, "timestamp": [2_000_000_000] * 50})
    np.testing.assert_allclose(later, mean)


def test_a_new_user_in_a_known_week_is_predicted(drifting):
    found = drifting.predict({"user_id": ["nobody"], "item_id": [3], "timestamp": [893_030_500]}, return_std=True)
    assert np.isfinite(found).all()


def test_months_and_dates(moody):
    train = {**moody[0], "timestamp": moody[0]["timestamp"].astype("datetime64[s]")}
    model = TuckerRecommender(**{**FAST, "draws": 3, "warmup": 2}, time="month").fit(train)
    assert model.time_ == "month"
    assert np.isfinite(model.predict({**moody[1], "timestamp": ["1998-05-01"] * 1_000})).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"time": "day"}, "time must be 'week', 'month', 'auto' or None, not 'day'"),
        ({"time": "week", "core": "full"}, "needs inference='gibbs' and core='identity'"),
        ({"time": "week", "inference": "als", "draws": 250, "warmup": 50}, "needs inference='gibbs'"),
    ],
)
def test_what_cannot_drift_is_refused(moody, settings, message):
    with pytest.raises(InputError, match=message):
        TuckerRecommender(**{**FAST, **settings}).fit(moody[0])


def test_time_needs_its_column_and_auto_does_without(moody):
    ratings = {key: moody[0][key] for key in ("user_id", "item_id", "rating")}
    with pytest.raises(InputError, match="timestamp"):
        TuckerRecommender(**FAST, time="week").fit(ratings)
    assert TuckerRecommender(**{**FAST, "draws": 3, "warmup": 2}).fit(ratings).time_ is None


def test_ordinal_ratings_with_weeks_and_noise_by_rows(moody):
    train, test = ({**part, "rating": np.clip(np.round(part["rating"]), 1, 5)} for part in moody)
    model = TuckerRecommender(**FAST, likelihood="ordinal").fit(train)
    mean, band = model.predict(test, interval=0.9)
    assert rmse(test["rating"], mean) < 0.7
    assert (band[:, 0] <= band[:, 1]).all()
    # randomised probability transform: uniform for a calibrated model; standard error 1 % of the share between
    probability = model.predict_proba(test)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    level = test["rating"].astype(int) - 1
    below = np.cumsum(np.pad(probability, ((0, 0), (1, 0))), axis=1)[np.arange(1_000), level]
    place = below + np.random.default_rng(0).random(1_000) * probability[np.arange(1_000), level]
    assert 0.86 < np.mean((place > 0.05) & (place < 0.95)) < 0.94
