"""Numbers of attributes that are far from those of training."""

import numpy as np
import pytest

from tuckergp import TuckerRecommender, load
from tuckergp.errors import InputError
from tuckergp.kernels import SE

FAST = {"rank": 2, "draws": 6, "warmup": 3, "time": None, "random_state": 0}
NEW = {"user_id": ["n"], "item_id": ["i1"], "rating": [5.0]}


def tables():
    rng = np.random.default_rng(0)
    users, items = [f"u{k}" for k in range(12)], [f"i{k}" for k in range(8)]
    pairs = [(user, item) for user in users for item in items if rng.random() < 0.7]
    ratings = [{"user_id": user, "item_id": item, "rating": float(rng.integers(1, 6))} for user, item in pairs]
    about = {
        "user_id": users,
        "age": [20 + 5 * k for k in range(12)],
        "height": rng.normal(170.0, 10.0, size=12),
        "since": np.datetime64("2020-01-01") + np.arange(12),
        "taste": [rng.random(2).tolist() for _ in users],
    }
    return ratings, about


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.tgp"
    TuckerRecommender(**FAST, attributes={"users": {"height": SE(1.0)}}).fit(*tables()).save(path)
    return path


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        (
            "age",
            1.7e9,
            "holds 1700000000.0 at row 0, far from the training values, which are from 20 to 75; correct it",
        ),
        ("age", -1e308, "far from the training values"),
        ("height", 1e25, "far from the training values"),
        ("since", "2045-06-01", "holds '2045-06-01' at row 0, .* are from 2020-01-01 to 2020-01-12;"),
        ("taste", [0.5, 1e300], r"holds 1e\+300 at row 0, coordinate 1, far from"),
    ],
)
def test_an_implausible_number_of_a_newcomer_is_refused_wherever_it_is_given(path, column, value, message):
    rec = load(path)
    row = {"user_id": ["n"], column: [value]}
    for ask in (
        lambda: rec.fold_in(NEW, row),
        lambda: rec.partial_fit(NEW, row),
        lambda: rec.recommend(row),
        lambda: rec.similar_users({column: [value]}),
        lambda: rec.fold_in({**NEW, "user_id": ["u1"]}, {**row, "user_id": ["u1"]}),
    ):
        with pytest.raises(InputError, match=f"users column '{column}' {message}" if "holds" in message else message):
            ask()
    assert len(rec.history_) == len(load(path).history_)


def test_the_row_that_is_named_is_that_of_the_table(path):
    users = {"user_id": ["x", "y", "n"], "age": [30, 1e6, 40]}
    with pytest.raises(InputError, match=r"holds 1000000\.0 at row 1"):
        load(path).fold_in(NEW, users)


def test_ten_widths_of_the_training_range_are_near_enough_and_missing_ones_are_no_numbers(path):
    for age in (75 + 10 * 55, 20 - 10 * 55, None):
        rec = load(path).fold_in(NEW, {"user_id": ["n"], "age": [age]})
        assert np.isfinite(rec.similar_items("i1")["similarity"]).all()
        assert np.isfinite(rec.similar_users("u1")["similarity"]).all()
    with pytest.raises(InputError, match="holds 626"):
        load(path).fold_in(NEW, {"user_id": ["n"], "age": [626]})


def test_training_values_are_never_far():
    ratings, about = tables()
    about["age"][3] = 10**9
    rec = TuckerRecommender(**FAST).fit(ratings, about)
    rec.fold_in(NEW, {"user_id": ["n"], "age": [2 * 10**9]})
    assert np.isfinite(rec.recommend("n")["score"]).all()


def test_a_coordinate_that_was_constant_in_training_takes_other_values():
    from tuckergp.data.tables import as_table
    from tuckergp.recommender.decisions import Attribute
    from tuckergp.recommender.ranges import refuse_far

    attribute = Attribute("v", "vector", "", means=(0.0, 1.0), spreads=(1.0, 1.0), lows=(0.0, 0.0), highs=(0.0, 2.0))
    table = as_table({"v": [[0.5, 1.0], [0.0, 3.0]]}, "users")
    refuse_far(table, attribute, np.array([[0.5, 1.0], [0.0, 3.0]]))
    with pytest.raises(InputError, match=r"coordinate 0"):
        refuse_far(table, attribute, np.array([[0.5, 1.0], [11.0, 3.0]]))
