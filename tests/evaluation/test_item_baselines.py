"""Baselines that score items by other items, against regressions and sums written out."""

import numpy as np
import pytest

from tuckergp.data.splits import UserHoldout
from tuckergp.errors import InputError
from tuckergp.evaluation.baselines import BASELINES, EASE, NearestItems
from tuckergp.evaluation.evaluate import evaluate


@pytest.fixture(scope="module")
def chosen():
    """Who chose what of 12 items, 30 users; and the same as a table, with some rows twice."""
    rng = np.random.default_rng(0)
    X = (rng.random((30, 12)) < 0.3).astype(float)
    X[:, 0] = X[0] = 1.0  # so that every id occurs
    user, item = np.nonzero(X)
    rows = rng.permutation(np.concatenate([np.arange(len(user)), np.arange(20)]))
    return X, {"user_id": user[rows], "item_id": [f"i{j}" for j in item[rows]]}


IDS = [f"i{j}" for j in range(12)]


def test_ease_is_a_ridge_regression_of_each_item_on_the_others(chosen):
    X, table = chosen
    expected = np.empty_like(X)
    for j in range(12):
        rest = np.delete(X, j, axis=1)
        expected[:, j] = rest @ np.linalg.solve(rest.T @ rest + 7.0 * np.eye(11), rest.T @ X[:, j])
    np.testing.assert_allclose(EASE(7.0).fit(table).scores(range(30), IDS), expected, atol=1e-12)


@pytest.mark.parametrize("shrinkage", [0.0, 5.0])
def test_nearest_items_add_up_the_cosines_of_the_nearest(chosen, shrinkage):
    X, table = chosen
    expected = np.zeros_like(X)
    for j in range(12):
        cosine = np.array(
            [X[:, i] @ X[:, j] / (np.sqrt(X[:, i].sum() * X[:, j].sum()) + shrinkage) * (i != j) for i in range(12)]
        )
        nearest = np.argsort(-cosine)[:4]
        expected[:, j] = X[:, nearest] @ cosine[nearest]
    found = NearestItems(4, shrinkage).fit(table).scores(range(30), IDS)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("model", [EASE(3.0), NearestItems(5)])
def test_predictions_are_the_scores_and_unknown_ids_have_none(chosen, model):
    model.fit(chosen[1])
    users, items = [4, 99, 4, 17], ["i3", "i3", "new", "i0"]
    scores = model.scores(users, items)
    np.testing.assert_array_equal(model.predict({"user_id": users, "item_id": items}), np.diag(scores))
    assert scores[0, 0] > 0
    assert not scores[1].any()
    assert not scores[:, 2].any()


def test_they_are_evaluated_by_name(chosen):
    names = ["ease", "nearest_items"]
    board = evaluate({}, chosen[1], split=UserHoldout(share=0.3), metrics=["ndcg"], baselines=names)
    assert all(name in str(board) for name in names)
    assert set(names) <= set(BASELINES)


@pytest.mark.parametrize("model", [EASE(0.0), EASE("much"), NearestItems(0), NearestItems(3, -1.0)])
def test_impossible_settings_are_refused(chosen, model):
    with pytest.raises(InputError, match=r"l2|neighbours|shrinkage"):
        model.fit(chosen[1])
