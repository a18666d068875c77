"""Ratings in the order in which they are learned."""

import numpy as np

from tuckergp import TuckerRecommender
from tuckergp.data import history
from tuckergp.data.history import History
from tuckergp.data.tables import Table


def ratings(n: int = 400) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    pairs = rng.permutation(30 * 20)[:n]
    return {"user_id": pairs // 20, "item_id": pairs % 20, "rating": rng.standard_normal(n), "timestamp": np.arange(n)}


def test_very_many_ratings_are_put_together_by_user_and_no_others(monkeypatch):
    table = ratings()
    read = History.read(Table(table, "ratings", 400), ["timestamp"])
    assert read.together() is read
    monkeypatch.setattr(history, "MANY", 399)
    together = read.together()
    assert (np.diff(together.codes[0]) >= 0).all()
    place = together.occasion.columns["timestamp"].astype("datetime64[s]").astype(int)
    assert sorted(place) == list(range(400))
    same_user = np.diff(together.codes[0]) == 0
    assert (np.diff(place)[same_user] > 0).all()  # as they came
    np.testing.assert_array_equal(together.rating, table["rating"][place])
    for d, name in enumerate(("user_id", "item_id")):
        assert [together.ids[d][code] for code in together.codes[d]] == table[name][place].tolist()
    assert together.codes[0].base is together.codes[1].base  # columns of one array, which a design takes as it is
    assert together.together() is together


def test_ratings_put_together_give_the_same_predictions_but_for_rounding(monkeypatch):
    table = ratings()
    settings = {"rank": 3, "draws": 3, "warmup": 0, "time": None, "random_state": 0}
    expected = TuckerRecommender(**settings).fit(table).predict(table)
    monkeypatch.setattr(history, "MANY", 0)
    rec = TuckerRecommender(**settings).fit(table)
    np.testing.assert_allclose(rec.predict(table), expected, rtol=1e-5)


def test_ratings_of_items_are_counted_without_those_of_hidden_users():
    rng = np.random.default_rng(0)
    user, item = rng.integers(0, 30, 400), rng.integers(0, 20, 400)
    ratings = History.read(Table({"user_id": user, "item_id": item, "rating": np.ones(400)}, "ratings", 400))
    some = ratings.sorted()
    number = {value: k for k, value in enumerate(some.ids[1])}
    for hidden in ([], [some.users[3]], [some.users[3], some.users[7]]):
        history = some.hiding(hidden) if hidden else some
        gone = {some.ids[0][k] for k in hidden}
        expected = np.zeros(len(number), dtype=int)
        for who, what in zip(user.tolist(), item.tolist(), strict=True):
            expected[number[what]] += who not in gone
        np.testing.assert_array_equal(history.ratings_per_item, expected)
