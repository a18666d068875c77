"""Confidence intervals: against formulas, and by how often they cover."""

import numpy as np
import pytest

from tuckergp.errors import InputError
from tuckergp.evaluation.metrics import catalogue_coverage, confidence_interval
from tuckergp.evaluation.metrics.intervals import Part, estimate


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_a_mean_over_users_has_about_the_interval_of_the_normal_law(rng):
    values = rng.normal(size=400)
    half = 1.96 * values.std() / 20
    low, high = confidence_interval(values)
    assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.02)
    assert confidence_interval(values) == (low, high)
    assert confidence_interval(values, seed=1) != (low, high)


def test_intervals_cover_with_ratings_that_are_alike_within_users(rng):
    """Rows taken one by one would promise too much: each user has twenty of about the same value."""
    covered = {"clustered": 0, "by rows": 0}
    for _ in range(100):
        users = np.repeat(np.arange(60), 20)
        values = rng.normal(size=60)[users] + 0.3 * rng.normal(size=len(users))
        for name, who in (("clustered", users), ("by rows", None)):
            low, high = confidence_interval(values, who, resamples=200)
            covered[name] += low <= 0.0 <= high
    assert covered["clustered"] >= 88
    assert covered["by rows"] < 60


def test_the_root_of_a_mean_is_resampled_as_such(rng):
    squares, users = rng.normal(size=100) ** 2, rng.integers(20, size=100)
    low, high = confidence_interval(squares, users)
    assert confidence_interval(squares, users, root=True) == pytest.approx((low**0.5, high**0.5))


def test_resampling_agrees_with_users_drawn_one_by_one(rng):
    values, users = rng.normal(size=60), rng.integers(8, size=60)
    means = []
    for _ in range(4000):
        rows = np.concatenate([np.flatnonzero(users == user) for user in rng.choice(np.unique(users), 8)])
        means.append(values[rows].mean())
    found = confidence_interval(values, users, resamples=4000)
    assert found == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=0.03)


def test_several_folds_are_averaged_and_their_users_resampled_together(rng):
    """Two folds that are the same are no more certain than one."""
    values, users = rng.normal(size=80), rng.integers(20, size=80)
    fold = Part.of(values, users)
    assert estimate([fold, fold], 20) == estimate([fold], 20)
    assert estimate([fold], 20).value == pytest.approx(values.mean())
    other = Part.of(values[:40], users[:40])
    assert estimate([fold, other], 20).value == pytest.approx((values.mean() + values[:40].mean()) / 2)


def test_differences_are_paired(rng):
    users = np.arange(200)
    values = rng.normal(size=200)
    better = Part.of(values - 0.1, users)
    found = estimate([better], 200, minus=[Part.of(values, users)])
    assert (found.low, found.value, found.high) == pytest.approx((-0.1, -0.1, -0.1))


def test_rows_without_a_value_do_not_count():
    part = Part.of([1.0, np.nan, 3.0], np.array([0, 1, 1]))
    assert part.value == 2.0
    assert np.isnan(Part.of([np.nan], np.array([0])).value)


def test_the_interval_of_a_catalogue_is_as_wide_as_it_varies(rng):
    """Against many populations of users, each with a list of its own."""
    popularity = 1 / np.arange(1, 61)
    shares, widths = [], []
    for _ in range(60):
        lists = np.array([rng.choice(60, 5, replace=False, p=popularity / popularity.sum()) for _ in range(40)])
        share = catalogue_coverage(lists, 60)
        without = [catalogue_coverage(np.delete(lists, user, axis=0), 60) for user in range(40)]
        part = Part(share, np.arange(40), share - np.array(without), np.ones(40))
        found = estimate([part], 40, kind="distinct")
        assert 0 <= found.low < found.value < found.high <= 1
        shares.append(share)
        widths.append((found.high - found.low) / 2 / 1.96)
    assert np.mean(widths) == pytest.approx(np.std(shares), rel=0.35)


def test_one_user_alone_has_no_interval():
    assert np.isnan(confidence_interval([1.0, 2.0], ["a", "a"])).all()


@pytest.mark.parametrize(
    ("arguments", "settings", "message"),
    [
        (([1.0, 2.0], [1]), {}, "2 values and 1 users"),
        (([],), {}, "0 values"),
        (([1.0, 2.0],), {"level": 95}, "between 0 and 1"),
    ],
)
def test_bad_input_is_named(arguments, settings, message):
    with pytest.raises(InputError, match=message):
        confidence_interval(*arguments, **settings)
