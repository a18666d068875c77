from __future__ import annotations

import doctest

import numpy as np
import pytest

import tuckergp.data.datasets.synthetic as synthetic
from tuckergp.data.datasets import SyntheticRatings, make_ratings
from tuckergp.errors import InputError
from tuckergp.evaluation.metrics import rmse


@pytest.fixture(scope="module")
def data() -> SyntheticRatings:
    return make_ratings(random_state=0)


def codes(data: SyntheticRatings, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers of users and items of one part; ids are numbered from 1."""
    table = getattr(data, part)
    return tuple(np.array([int(i[1:]) - 1 for i in table[column]]) for column in ("user_id", "item_id"))


def attributes(table, numeric: list[str], labels: list[list[str]]) -> np.ndarray:
    """Attributes as numbers, written anew from the table: a constant, the numeric columns, a 0/1 column a label."""
    names = sorted({label for row in labels for label in row})
    hot = np.array([[name in row for name in names] for row in labels], dtype=float)
    return np.column_stack([np.ones(len(table)), *(table[c].astype(float) for c in numeric), hot])


def user_attributes(data: SyntheticRatings) -> np.ndarray:
    users = data.users
    return attributes(users, ["age"], [list(pair) for pair in zip(users["sex"], users["occupation"], strict=True)])


def share_explained(y: np.ndarray, X: np.ndarray) -> float:
    """Adjusted R^2, over all columns of y."""
    residual = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
    spread = y - y.mean(axis=0)
    n, p = len(X), np.linalg.matrix_rank(X)
    return 1 - (residual**2).sum() / (n - p) / ((spread**2).sum() / (n - 1))


def test_sizes_are_as_asked(data):
    assert (len(data.users), len(data.items)) == (600, 400)
    assert len(data.train) + len(data.test) == 20_000
    assert data.user_factors.shape == (600, 4)
    assert data.item_factors.shape == (400, 4)
    for mask in (data.new_user, data.new_item, data.test_known, data.expected):
        assert mask.shape == (len(data.test),)


def test_columns_and_their_kinds(data):
    assert list(data.train.columns) == ["user_id", "item_id", "rating", "timestamp"]
    assert list(data.users.columns) == ["user_id", "age", "sex", "occupation"]
    assert list(data.items.columns) == ["item_id", "title", "year", "genres"]
    for column in (data.train["user_id"], data.items["title"], data.users["occupation"], data.users["sex"]):
        assert {type(value) for value in column} == {str}
    assert all(isinstance(genres, list) and 1 <= len(genres) <= 3 for genres in data.items["genres"])
    assert data.train["timestamp"].dtype.kind == "i"
    assert (np.diff(data.train["timestamp"]) >= 0).all()


def test_ratings_are_half_stars(data):
    assert sorted(set(data.train["rating"])) == [1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5]


def test_titles_and_pairs_are_distinct(data):
    assert len(set(data.items["title"])) == 400
    pairs = [pair for part in (data.train, data.test) for pair in zip(part["user_id"], part["item_id"], strict=True)]
    assert len(set(pairs)) == 20_000


def test_titles_stay_distinct_when_names_run_out():
    many = make_ratings(20, 9_000, 2_000, random_state=0)
    assert len(set(many.items["title"])) == 9_000


def test_masks_tell_who_is_missing_from_the_training_part(data):
    for column, mask in (("user_id", data.new_user), ("item_id", data.new_item)):
        known = set(data.train[column])
        assert mask.tolist() == [identifier not in known for identifier in data.test[column]]
        assert 100 < mask.sum() < 3_000
    assert (data.test_known == ~data.new_user & ~data.new_item).all()
    assert data.test_known.sum() > 1_500


def test_a_few_items_and_users_have_most_ratings(data):
    for column in ("user_id", "item_id"):
        counts = np.sort(np.unique(data.train[column], return_counts=True)[1])[::-1]
        assert counts[: len(counts) // 10].sum() > 0.25 * counts.sum()


def test_same_seed_same_data_other_seed_other_data():
    first, again, other = (make_ratings(100, 80, 2_000, random_state=seed) for seed in (3, 3, 4))
    for part in ("train", "test", "users", "items"):
        for column, values in getattr(first, part).columns.items():
            np.testing.assert_array_equal(values, getattr(again, part)[column])
    assert first.noise_floor == again.noise_floor
    assert first.train["rating"].tolist() != other.train["rating"].tolist()


def test_a_generator_is_taken_up_where_it_stands():
    rng = np.random.default_rng(3)
    first, second = (make_ratings(50, 40, 500, random_state=rng) for _ in range(2))
    assert first.noise_floor == make_ratings(50, 40, 500, random_state=3).noise_floor
    assert first.noise_floor != second.noise_floor


def test_magnitudes_are_those_of_movielens():
    sets = [make_ratings(random_state=seed) for seed in range(10)]
    global_mean = [rmse(d.test["rating"], np.full(len(d.test), d.train["rating"].mean())) for d in sets]
    assert np.mean(global_mean) == pytest.approx(1.1, abs=0.04)
    assert np.mean([d.noise_floor for d in sets]) == pytest.approx(0.8, abs=0.02)


def test_moments_given_f_agree_with_simulation():
    f = np.array([0.5, 1.0, 2.1, 3.25, 3.6, 4.9, 6.0])
    mean, variance = synthetic._moments_given(f, 0.9)
    draws = f + 0.9 * np.random.default_rng(1).standard_normal((100_000, len(f)))
    levels = np.arange(1, 5.5, 0.5)
    nearest = levels[np.abs(draws[:, :, None] - levels).argmin(axis=2)]
    np.testing.assert_allclose(mean, nearest.mean(axis=0), atol=0.01)
    np.testing.assert_allclose(variance, nearest.var(axis=0), atol=0.01)


def test_the_noise_floor_is_the_error_of_the_best_predictor():
    n = excess = 0.0
    for seed in range(20):
        data = make_ratings(random_state=seed)
        excess += ((data.test["rating"] - data.expected) ** 2 - data.noise_floor**2).sum()
        n += len(data.test)
    # squared errors have a standard deviation of about 0.85: this is four standard errors
    assert abs(excess / n) < 4 * 0.85 / np.sqrt(n)


def test_no_simple_predictor_is_below_the_floor(data):
    # with a few thousand rows, the best predictor's own error wanders about the floor by a hundredth
    y, slope = data.test["rating"], np.polyfit(data.expected, data.test["rating"], 1)
    assert rmse(y, np.polyval(slope, data.expected)) > data.noise_floor - 0.03
    assert slope[0] == pytest.approx(1.0, abs=0.06)


@pytest.mark.parametrize("explained", [0.0, 0.3, 0.5, 0.8, 1.0])
def test_attributes_explain_the_share_of_the_factors_that_was_asked_for(explained):
    data = make_ratings(2_000, 1_200, 10_000, rank=6, explained=explained, random_state=1)
    assert share_explained(data.user_factors, user_attributes(data)) == pytest.approx(explained, abs=0.04)
    items = attributes(data.items, ["year"], list(data.items["genres"]))
    assert share_explained(data.item_factors, items) == pytest.approx(explained, abs=0.04)
    assert data.user_factors.std() == pytest.approx(1.0, abs=0.05)


def test_factors_explain_the_ratings(data):
    """Given the true factors of items, a user's taste is a regression: it comes back from the ratings."""
    item_bias = np.zeros(400)
    users, items = codes(data, "train")
    y = data.train["rating"] - data.train["rating"].mean()
    counts = np.bincount(items, minlength=400)
    item_bias[counts > 0] = np.bincount(items, y, 400)[counts > 0] / counts[counts > 0]
    found = []
    for user in range(600):
        rows = users == user
        if rows.sum() >= 80:
            X = np.column_stack([np.ones(rows.sum()), data.item_factors[items[rows]]])
            found.append((np.linalg.lstsq(X, (y - item_bias[items])[rows], rcond=None)[0][1:], data.user_factors[user]))
    estimate, truth = (np.concatenate(column) for column in zip(*found, strict=True))
    assert len(found) > 20
    assert np.corrcoef(estimate, truth)[0, 1] > 0.8


@pytest.mark.parametrize(("explained", "helps"), [(1.0, True), (0.0, False)])
def test_attributes_predict_a_new_user_only_where_they_explain_something(explained, helps):
    data = make_ratings(2_000, 200, 60_000, explained=explained, new_users=0.3, new_items=0.0, random_state=2)
    X, (users, _), (test_users, _) = user_attributes(data), codes(data, "train"), codes(data, "test")
    y = data.train["rating"]
    weights = np.linalg.lstsq(X[users], y, rcond=None)[0]
    new = data.new_user
    gain = rmse(data.test["rating"][new], np.full(new.sum(), y.mean())) - rmse(
        data.test["rating"][new], X[test_users[new]] @ weights
    )
    assert (gain > 0.04) if helps else (gain < 0.01)


def test_a_library_table_goes_in_and_out_unchanged(data):
    from tuckergp.data.tables import as_table

    assert as_table(data.train, "ratings") is data.train


@pytest.mark.parametrize("n_ratings", [30, 31, 299, 300])
def test_the_fewest_and_the_most_ratings_are_possible(n_ratings):
    data = make_ratings(30, 20, n_ratings, test_size=0.5, random_state=0)
    assert len(data.train) + len(data.test) == n_ratings
    both = set(data.train["user_id"]) | set(data.test["user_id"])
    assert len(both) == 30


def test_without_new_users_and_items_the_test_part_is_a_share_of_all():
    data = make_ratings(random_state=0, new_users=0, new_items=0, test_size=0.25)
    assert len(data.test) == pytest.approx(5_000, abs=250)
    assert data.test_known.mean() > 0.99


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_users": 0}, "n_users must be a whole number"),
        ({"n_items": 2.5}, "n_items must be a whole number"),
        ({"rank": True}, "rank must be a whole number"),
        ({"n_users": 1, "n_ratings": 5}, "at least 2 users"),
        ({"n_ratings": 599}, r"between n_users \(600\)"),
        ({"n_ratings": 120_001}, r"\(120000\); got 120001"),
        ({"explained": 1.5}, "explained must be a number from 0 to 1"),
        ({"test_size": float("nan")}, "test_size must be"),
        ({"new_users": "some"}, "new_users must be"),
        ({"noise": 0}, "noise must be a number above 0"),
        ({"random_state": -1}, "random_state must be"),
        ({"random_state": "seed"}, "random_state must be"),
        ({"test_size": 0, "new_users": 0, "new_items": 0}, "fell into one"),
        ({"test_size": 1}, "fell into one"),
    ],
)
def test_bad_parameters_are_named(arguments, message):
    with pytest.raises(InputError, match=message):
        make_ratings(**arguments)


def test_examples_in_the_docstrings_run():
    assert doctest.testmod(synthetic).failed == 0
