"""Every parameter of every estimator: a wrong value is refused by `fit`, with a sentence that names the parameter."""

import inspect
import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import tuckergp
from tuckergp import TuckerGPRegressor, TuckerRecommender
from tuckergp.errors import InputError
from tuckergp.inference import HMC, Gibbs
from tuckergp.recommender.settings import RecommenderSettings
from tuckergp.regressor.settings import RegressorSettings

RATINGS = {"user_id": ["a", "a", "b", "b"], "item_id": [1, 2, 1, 3], "rating": [1.0, 2.0, 3.0, 4.0]}
X, Y = np.array([[1.0, 2.0], [2.0, 3.0], [3.0, 5.0]]), np.array([1.0, 2.0, 3.0])

SHARED = {
    "rank": ["a", 0, 2.5, True, None, [], [2, 0]],
    "likelihood": ["x", None, 1],
    "core": ["x", None, 3],
    "draws": [1.5, 0, "a", True],
    "warmup": [-1, "a", 2.5],
    "chains": [0, "a", 1.5],
    "n_jobs": ["a", 0, 1.5],
    "random_state": ["x", -1, 1.5],
}
WRONG = {
    TuckerRecommender: {
        **SHARED,
        "inference": ["x", None, Gibbs, HMC()],
        "side_information": ["x", None, 1],
        "implicit": ["x", None, 1],
        "time": [3, "day", True],
        "noise": ["x", None, 0.1],
        "columns": [5, "user", {"user_id": 3}, ["user_id"]],
        "attributes": [3, {"users": 3}, {3: {}}, ["age"]],
        "context": [4, None, [4], {"device": 1}],
        "rating_scale": ["x", "15", 5, (5, 1), (1, 2, 3), ("a", "b")],
        "duplicates": [1, "drop", None],
        "negatives": [0, "a", 2.5, None],
        "objective": ["price", 1, None],
    },
    TuckerGPRegressor: {
        **SHARED,
        "inference": ["x", None, Gibbs],
        "modes": [3, [], "x0"],
        "noise": ["auto", None, 0.1],
        "hyperparameters": ["x", None, True],
        "learn_rows": [1, "a", 2.5],
        "fixed": [3, "period", [3], None],
    },
}
CASES = [
    pytest.param(kind, name, value, id=f"{kind.__name__}-{name}-{value!r}"[:80])
    for kind, wrong in WRONG.items()
    for name, values in wrong.items()
    for value in values
]


@pytest.mark.parametrize(("kind", "name", "value"), CASES)
def test_a_wrong_value_is_refused_by_fit_with_a_sentence_that_names_the_parameter(kind, name, value):
    data = (RATINGS,) if kind is TuckerRecommender else (X, Y)
    model = kind().set_params(**{name: value})
    with pytest.raises(InputError, match=rf"^{name} must be .*, not .*\.$") as caught:
        model.fit(*data)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300
    assert not hasattr(model, "fit_")


@pytest.mark.parametrize("kind", WRONG)
def test_every_parameter_is_among_the_wrong_ones(kind):
    assert set(WRONG[kind]) == set(kind().get_params())


@pytest.mark.parametrize(
    ("kind", "settings"), [(TuckerRecommender, RecommenderSettings), (TuckerGPRegressor, RegressorSettings)]
)
def test_declarations_have_the_defaults_of_the_estimator(kind, settings):
    parameters = inspect.signature(kind).parameters.values()
    assert {each.name: each.default for each in parameters} == {each.name: each.default for each in fields(settings)}


def test_more_ratings_are_refused_with_wrong_settings_too():
    model = TuckerRecommender(rank=1, inference="als", random_state=0).fit(RATINGS).set_params(duplicates="drop")
    new = {"user_id": ["c"], "item_id": [1], "rating": [2.0]}
    for learn in (model.fold_in, model.partial_fit):
        with pytest.raises(InputError, match=r"^duplicates must be 'keep', 'mean', 'last' or 'refuse', not 'drop'"):
            learn(new)


def test_a_value_that_is_long_to_print_is_cut():
    with pytest.raises(InputError, match=r"^columns must be .*\.\.\.\.$") as caught:
        TuckerRecommender(columns=["x" * 50] * 100).fit(RATINGS)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("context", ["device", ["device"], ("device",), np.array(["device"]), {"device"}])
def test_numpy_and_other_collections_pass_as_lists(context):
    assert RecommenderSettings(context=context, rank=np.int64(3), side_information=np.True_).contexts == ["device"]


def test_estimators_are_used_by_nothing_that_they_are_made_of():
    for package in ("recommender", "regressor"):
        folder = Path(tuckergp.__file__).parent / package
        others = [path for path in folder.glob("*.py") if path.name not in ("__init__.py", "estimator.py")]
        assert others
        for path in others:
            assert "estimator import" not in path.read_text(), path
            assert not re.search(r"^(?!\s*>>>).*import Tucker(Recommender|GPRegressor)", path.read_text(), re.M), path
