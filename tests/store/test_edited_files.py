"""Model files that were edited, with checksums that are right: an answer or one sentence, soon and in little memory."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from tests.store.edits import MODELS, in_time, trials
from tests.store.files import rewrite
from tuckergp import TuckerGPRegressor, TuckerRecommender, load
from tuckergp.data.tables import as_table
from tuckergp.errors import InputError
from tuckergp.features import Field, Line
from tuckergp.inference import Gibbs
from tuckergp.kernels import Identity, Matern12
from tuckergp.store.plain import pack, unpack
from tuckergp.store.typed import fits, hints_of


@pytest.mark.parametrize(("kind", "count"), [("recommender", 12), ("regressor", 12)])
def test_edited_files_answer_or_are_refused(kind, count, tmp_path):
    """A sample; ``python -m tests.store.edits 10000`` makes more of them."""
    ends = [how for _, what, how, where, memory in checked(kind, count, tmp_path)]
    assert {"answered", "refused"} == set(ends)


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS)
def test_thousands_of_edited_files_answer_or_are_refused(kind, tmp_path):
    assert len(checked(kind, 5_000, tmp_path)) == 5_000


def checked(kind, count, folder):
    ran = list(trials(kind, count, 1, folder))
    for _, what, how, where, memory in ran:
        assert how in ("answered", "refused"), (what, how, where)
        assert memory < 2, what  # times the file
    return ran


@pytest.fixture
def path(tmp_path):
    ratings = {"user_id": [1, 2, 3, 1], "item_id": [5, 5, 6, 6], "rating": [1.0, 2.0, 3.0, 5.0]}
    TuckerRecommender(rank=2, draws=3, warmup=1, random_state=0).fit(ratings).save(tmp_path / "model.tgp")
    return tmp_path / "model.tgp"


def put(name, place, value):
    def change(tensors):
        tensors[name] = tensors[name].copy()
        tensors[name][place] = value

    return change


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("fit_.draws.modes.0.covariance", np.nan, "covariance of a ModeDraws is a ndarray that cannot be there"),
        ("fit_.draws.modes.0.covariance", -1.0, "covariance is not positive definite"),
        ("fit_.draws.modes.0.covariance", 2.0, "covariance is not positive definite"),
        ("fit_.draws.modes.0.values.spread", 1e300, "spread is not positive definite"),
        ("layout_.sides.0.average", np.inf, "average of a Side is a ndarray that cannot be there"),
        ("layout_.sides.0.table.features.data", np.nan, "a sparse matrix is not finite"),
        ("fit_.draws.model.sigma_u", np.nan, "sigma_u of a TuckerModel is a ndarray that cannot be there"),
    ],
)
def test_numbers_out_of_range_are_refused(name, value, what, path):
    rewrite(path, arrays=put(name, (0, 0, 1) if value == 1e300 else 0, value))
    with pytest.raises(InputError, match=what):
        load(path)


@pytest.mark.parametrize(
    ("likelihood", "name", "value", "what"),
    [
        ("gaussian", "alpha", -0.5, "alpha is not positive"),
        ("student", "alpha", 0.0, "alpha is not positive"),
        ("student", "nu", 2.0, "nu is not above 2"),
        ("negative_binomial", "dispersion", 0.0, "dispersion is not positive"),
        ("ordinal", "cuts", 1e9, "cuts are not in order"),
    ],
)
def test_unknowns_of_noise_out_of_range_are_refused(likelihood, name, value, what, tmp_path):
    ratings = {"user_id": [1, 2, 3, 1], "item_id": [5, 5, 6, 6], "rating": [1, 2, 3, 5]}
    model = TuckerRecommender(rank=1, draws=3, warmup=1, likelihood=likelihood, random_state=0).fit(ratings)
    model.save(tmp_path / "model.tgp")
    load(tmp_path / "model.tgp")
    rewrite(tmp_path / "model.tgp", arrays=put(f"fit_.draws.unknowns.{name}", (1, 0) if name == "cuts" else 1, value))
    with pytest.raises(InputError, match=what):
        load(tmp_path / "model.tgp")


@pytest.mark.parametrize("end", [10**6, 10**30])
def test_ranges_that_would_take_much_time_and_memory_are_refused(end, path):
    def put_range(known):
        known["state"]["fit_"]["fields"]["draws"]["fields"]["model"]["fields"]["sigma_u"] = {"range": [0, end, 1]}

    assert unpack("range", [0, 3, 1]) == range(3)
    with pytest.raises(TypeError, match="too long to be stored"):
        pack(range(end))
    rewrite(path, manifest=put_range)
    with pytest.raises(InputError, match=rf"range\(0, {end}\) is too long to be stored"):
        load(path)


@pytest.mark.parametrize("error", [FloatingPointError, np.linalg.LinAlgError])
def test_a_chain_whose_numbers_are_out_of_proportion_ends_with_a_sentence(error, path, monkeypatch):
    def step(*_):
        raise error("the precision of 1 rows is not positive definite")

    model = load(path).set_params(draws=1)
    monkeypatch.setattr(Gibbs, "step", step)
    with pytest.raises(InputError, match=r"Chain 0 cannot go on after 0 sweeps, .* \(the precision of 1 rows"):
        model.partial_fit({"user_id": [1], "item_id": [5], "rating": [2.0]}, warmup=0)


@pytest.mark.parametrize("name", ["column_kinds_", "column_values_", "n_features_in_", "feature_names_in_"])
def test_what_a_regressor_knows_of_its_columns_has_its_type(name, tmp_path):
    model = TuckerGPRegressor(rank=1, draws=1, warmup=1, random_state=0)
    model.fit({"a": [1.0, 2.0, 3.0], "b": [0.0, 1.0, 0.0]}, [1.0, 2.0, 4.0]).save(tmp_path / "model.tgp")
    load(tmp_path / "model.tgp")
    rewrite(tmp_path / "model.tgp", manifest=lambda known: known["state"].update({name: "x"}))
    with pytest.raises(InputError, match=f"{name} of a TuckerGPRegressor is a str that cannot be there"):
        load(tmp_path / "model.tgp")


@pytest.mark.parametrize(
    ("name", "value"), [("knots_", np.ones((2, 1))), ("knots_", np.array([2.0, 1.0])), ("lengthscale_", -1.0)]
)
def test_points_on_a_line_are_in_order(name, value):
    line = Line().fit(as_table({"t": [1.0, 2.0]}, "X"), Matern12(1.0))
    assert line.fault() is None
    setattr(line, name, value)
    assert line.fault() == "its chains are not in order"


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("order_", 4, "another smoothness"),
        ("places_", np.ones(2), "no places"),
        ("places_", np.ones((2, 3)), "no places"),
        ("places_", np.full((2, 2), np.nan), "no neighbours"),
        ("lengthscales_", np.ones(3), "no lengthscales"),
        ("lengthscales_", -np.ones(1), "no lengthscales"),
        ("neighbours", 0, "no neighbours"),
        ("predicting", 1.5, "no neighbours"),
    ],
)
def test_fields_have_places_and_lengthscales(name, value, fault):
    field = Field().fit(as_table({"a": [1.0, 2.0], "b": [3.0, 3.0]}, "X"), Matern12(1.0))
    assert field.fault() is None
    setattr(field, name, value)
    assert fault in field.fault()


def test_fields_are_declared_by_their_class_before_the_arguments_of_its_constructor():
    hints = hints_of(Identity, {})
    assert fits(("age",), hints["columns"])
    assert not fits((["age"],), hints["columns"])


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan])
def test_noise_factors_that_are_not_positive_are_found_when_they_are_used(value, path):
    def change(tensor):
        return np.where(np.arange(tensor.size).reshape(tensor.shape) == 1, tensor.dtype.type(value), tensor)

    rewrite(path, rows={"fit_.draws.modes.0.row_noise": change})
    with pytest.raises(InputError, match="numbers that make no sense"):
        load(path, verify=True)
    model = load(path).set_params(draws=1)
    new = {"user_id": [1], "item_id": [5], "rating": [2.0]}
    with in_time(60), pytest.raises(InputError, match="numbers that make no sense"):
        model.partial_fit(new, warmup=0)


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (True, int), (1.5, int), ("x", float), (np.inf, float), (None, float), ((1, "x"), tuple[int, ...]),
        ((1,), tuple[int, str]), ([1], tuple[int, ...]), ("abc", list[str]), ({"a": None}, dict[str, float]),
        (np.zeros(2, dtype=np.float32), np.typing.NDArray[np.float64]), (3, str | None),
        (np.array([np.nan]), np.typing.NDArray[np.float64]), (True, Literal[1]), (1, Literal[True]),
        ((1, "x", 2), tuple[int, str]), ({1: 1.0}, dict[str, float]),
    ],
)  # fmt: skip
def test_values_of_other_types_do_not_fit(value, hint):
    assert not fits(value, hint)


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (np.int64(3), int), (3, float), ((), tuple[int, ...]), ((1, "x"), tuple[int, str]), (None, str | None),
        ({"a": 1.0}, dict[str, float]), (np.zeros(2), np.typing.NDArray[np.float64]), (frozenset("a"), frozenset[str]),
    ],
)  # fmt: skip
def test_values_of_their_types_fit(value, hint):
    assert fits(value, hint)
