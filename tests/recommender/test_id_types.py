"""The type of ids is decided by the training ratings and holds for all later tables and arguments."""

import numpy as np
import pytest
from tuckergp.baselines import Biases, Popularity
from tuckergp.describe import describe

import tuckergp
from tuckergp import TuckerRecommender
from tuckergp.data.tables import as_table
from tuckergp.errors import InputError
from tuckergp.evaluation.evaluate import parts_of

FAST = {"rank": 1, "inference": "als", "time": None}
USERS = ["007", "07", "7", "12"]


def write(path, header, *rows):
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


@pytest.fixture
def text_model(tmp_path):
    """Text users, integer items, from a file."""
    rows = [(user, item, 1 + (k + item) % 5) for k, user in enumerate(USERS) for item in range(1, 6)]
    users = write(tmp_path / "users.csv", "user_id,age", *((user, 20 + 5 * k) for k, user in enumerate(USERS)))
    return TuckerRecommender(**FAST).fit(write(tmp_path / "r.csv", "user_id,item_id,rating", *rows), users)


def test_ids_are_not_merged(text_model, tmp_path):
    assert text_model.history_.ids[0] == USERS
    text_model.save(tmp_path / "m.tgp")
    again = tuckergp.load(tmp_path / "m.tgp")
    assert again.history_.ids[0] == USERS
    lists = again.recommend(n=1, exclude_seen=False)
    assert list(lists["user_id"]) == USERS


def test_later_tables_are_read_in_the_type_of_the_training(text_model, tmp_path):
    pairs = write(tmp_path / "pairs.csv", "user_id,item_id", (7, 1), (12, 2))
    expected = text_model.predict({"user_id": ["7", "12"], "item_id": [1, 2]}, on_unknown="raise")
    np.testing.assert_array_equal(text_model.predict(pairs, on_unknown="raise"), expected)
    assert np.isnan(text_model.predict({"user_id": ["0007"], "item_id": [1]}, on_unknown="nan")).all()


def test_arguments_have_the_type_of_the_training(text_model, tmp_path):
    assert list(text_model.recommend(12, n=1, exclude_seen=False)["user_id"]) == ["12"]
    assert list(text_model.recommend("12", n=1, items=["3"], exclude_seen=False)["item_id"]) == [3]
    assert list(text_model.recommend("12", n=1, items=[3, 4], exclude=["4"], exclude_seen=False)["item_id"]) == [3]
    np.testing.assert_array_equal(text_model.scores([7], ["1"]), text_model.scores(["7"], [1]))
    assert len(text_model.similar_users(12, n=2)) == 2
    assert len(text_model.similar_items("2", n=2)) == 2
    assert text_model.explain(7, "1").total == text_model.explain("7", 1).total
    asked = write(tmp_path / "u.csv", "user_id", (12,))
    assert list(text_model.recommend(as_table(asked, "u"), n=1, exclude_seen=False)["user_id"]) == ["12"]


@pytest.mark.parametrize("method", ["fold_in", "partial_fit"])
def test_new_ratings_have_the_type_of_the_training(method, text_model, tmp_path):
    new = write(tmp_path / "new.csv", "user_id,item_id,rating", (7, 6, 5), (99, 1, 2))
    getattr(text_model, method)(new, write(tmp_path / "u.csv", "user_id,age", (99, 30)))
    assert text_model.history_.flat.ids[0] == [*USERS, "99"]
    assert text_model.history_.flat.ids[1] == [1, 2, 3, 4, 5, 6]


def test_integer_models_find_text_that_is_an_integer_and_nothing_else():
    ratings = {"user_id": [1, 1, 2, 12], "item_id": ["a", "b", "a", "b"], "rating": [1.0, 4.0, 2.0, 5.0]}
    model = TuckerRecommender(**FAST).fit(ratings)
    known = model.predict({"user_id": [12], "item_id": ["a"]}, on_unknown="raise")
    assert model.predict({"user_id": ["12"], "item_id": ["a"]}, on_unknown="raise") == known
    with pytest.raises(InputError, match="holds '012' at row 0, which has neither ratings nor"):
        model.predict({"user_id": ["012"], "item_id": ["a"]}, on_unknown="raise")


def test_attribute_tables_follow_the_ratings(tmp_path):
    ratings = write(tmp_path / "r.csv", "user_id,item_id,rating", ("007", 1, 5), (7, 2, 3), (8, 1, 1))
    users = write(tmp_path / "u.csv", "user_id,age", (7, 20), (8, 50))
    model = TuckerRecommender(**FAST).fit(ratings, users)
    assert model.tables_[0]["user_id"].tolist() == ["7", "8"]
    report = describe(ratings, users)
    assert not report.refused
    assert report.tables["users"].not_in_table == 1
    assert report.id_types == {"user_id": "text", "item_id": "integers"}
    assert "ids               user_id text, item_id integers (007 and 7 are two)" in str(report)
    assert report.n_users == 3
    other = write(tmp_path / "u.csv", "user_id,age", ("07", 20), (8, 50))
    whole = write(tmp_path / "r.csv", "user_id,item_id,rating", (7, 2, 3), (8, 1, 1))
    with pytest.raises(InputError, match=r"u\.csv column 'user_id' mixes str and int ids, first at line 3"):
        TuckerRecommender(**FAST).fit(whole, other)


def test_baselines_and_given_parts_follow_the_training_part(tmp_path):
    train = write(tmp_path / "a.csv", "user_id,item_id,rating", ("007", 1, 5), (7, 1, 1), (7, 2, 1))
    test = write(tmp_path / "b.csv", "user_id,item_id,rating", (7, 1, 1))
    assert Biases(damping=1).fit(train).predict(test) == Biases(damping=1).fit(train).predict(
        {"user_id": ["7"], "item_id": [1]}
    )
    assert Popularity().fit(train).predict({"user_id": ["7"], "item_id": ["1"]}) == [2]
    ((_, asked),) = parts_of([(train, test)], None)
    assert asked["user_id"].tolist() == ["7"]


@pytest.mark.parametrize("sign", [1, -1])
def test_integers_beyond_64_bits_in_lines_of_json_are_those_of_the_table(sign, tmp_path):
    ids = [sign * (2**63 + k) for k in range(1, 4)]
    model = TuckerRecommender(**FAST).fit({"user_id": ids, "item_id": ["a", "b", "a"], "rating": [1.0, 4.0, 2.0]})
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(f'{{"user_id": {value}, "item_id": "a"}}\n' for value in ids))
    expected = model.predict({"user_id": ids, "item_id": ["a"] * 3}, on_unknown="raise")
    np.testing.assert_array_equal(model.predict(path, on_unknown="raise"), expected)
    path.write_text('{"user_id": 7.0, "item_id": "a"}\n')
    assert np.isnan(model.predict(path, on_unknown="nan")).all()


def test_unknown_ids_are_shown_as_python_writes_them():
    ratings = {"user_id": [1.5, 1.5, 2.5], "item_id": ["a", "b", "a"], "rating": [1.0, 4.0, 2.0]}
    model = TuckerRecommender(**FAST).fit(ratings)
    with pytest.raises(InputError, match=r"'user_id' holds 0\.5 at row 0"):
        model.predict({"user_id": [0.5], "item_id": ["a"]}, on_unknown="raise")
