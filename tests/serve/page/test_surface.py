"""A regression model over one or two columns, and the usual values of columns that a model keeps."""

import numpy as np
import pytest

from tuckergp import TuckerGPRegressor, load
from tuckergp.data.tables import as_table
from tuckergp.errors import InputError
from tuckergp.model.kinds import MOST_VALUES, values_of
from tuckergp.serve.views.surface import columns_of, surface


def test_a_map_holds_predictions_with_the_last_axis_fastest(regressor):
    found = surface(regressor, ["longitude", "latitude"], {"season": 1})
    x, y = (axis["values"] for axis in found["axes"])
    assert columns_of(regressor)["first"] == ["longitude", "latitude"]
    rows = {"longitude": np.repeat(x, len(y)), "latitude": np.tile(y, len(x)), "season": ["wet"] * (len(x) * len(y))}
    mean, std = regressor.predict(rows, return_std=True, include_noise=False)
    np.testing.assert_allclose(found["mean"], mean, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found["std"], std, rtol=1e-4)
    parts = regressor.components(rows, top=4)
    np.testing.assert_allclose(found["components"][0]["values"], parts.values[:, 0], rtol=1e-3, atol=1e-4)
    assert len(found["components"]) == 4


def test_a_series_has_bands_of_f_and_of_observations(regressor):
    found = surface(regressor, ["longitude"], {"season": 0, "latitude": 50}, draw=3)
    (axis,) = found["axes"]
    height = regressor.column_values_["latitude"][50]
    rows = {"longitude": axis["values"], "latitude": [height] * len(axis["values"])}
    rows["season"] = ["dry"] * len(axis["values"])
    for band in found["bands"]:
        _, ends = regressor.predict(rows, quantiles=[0.05, 0.95], include_noise=band["noise"])
        np.testing.assert_allclose(band["low"], ends[:, 0], rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(band["high"], ends[:, 1], rtol=1e-3, atol=1e-3)
    assert [band["noise"] for band in found["bands"]] == [False, True]
    values = regressor.components(rows, draw=3, top=1).values[:, 0]
    np.testing.assert_allclose(found["components"][0]["values"], values, rtol=1e-3, atol=1e-4)


def test_levels_of_text_are_an_axis(regressor):
    assert surface(regressor, ["season"], {})["axes"] == [{"name": "season", "values": ["dry", "wet"]}]


@pytest.mark.parametrize(
    ("along", "fixed", "message"),
    [
        (["height"], {}, "reads no column 'height'"),
        (["season"], {"height": 1}, "reads no column 'height'"),
        (["season", "season"], {}, "two different ones"),
        (["longitude"], {"season": 2}, "values 0 to 1, not 2"),
        (["longitude"], {"season": -1}, "values 0 to 1, not -1"),
    ],
)
def test_what_cannot_be_drawn_is_refused(regressor, along, fixed, message):
    with pytest.raises(InputError, match=message):
        surface(regressor, along, fixed)


def test_a_point_estimate_has_no_bands_and_a_file_without_values_says_so(regressor):
    X = {"day": np.arange("2020-01-01", "2020-03-01", dtype="datetime64[D]")}
    model = TuckerGPRegressor(rank=1, inference="als", random_state=0).fit(X, np.sin(np.arange(60) / 9))
    assert columns_of(model)["first"] == ["day"]
    found = surface(model, ["day"], {})
    assert found["bands"] == []
    assert found["axes"][0]["values"][0] == "2020-01-01T00:00:00"
    assert found["axes"][0]["values"][-1] == "2020-02-29T00:00:00"
    model.column_values_ = {}
    with pytest.raises(InputError, match="fit the model again"):
        columns_of(model)


def test_usual_values_are_all_of_few_and_quantiles_of_many(regressor, tmp_path):
    rng = np.random.default_rng(0)
    many = rng.standard_normal(5000)
    texts = [f"t{k % 300}" for k in range(5000)]
    table = as_table({"few": np.tile([2.0, 1.0], 2500), "many": many, "text": texts}, "X")
    values = values_of(table)
    assert values["few"] == [1.0, 2.0]
    assert len(values["many"]) == len(values["text"]) == MOST_VALUES
    assert (values["many"][0], values["many"][-1]) == (many.min(), many.max())
    assert values["many"][50] == pytest.approx(np.median(many), abs=0.01)
    regressor.save(tmp_path / "model.tgp")
    assert load(tmp_path / "model.tgp").column_values_ == regressor.column_values_
