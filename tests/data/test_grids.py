"""TuckerGPRegressor on xarray grids with missing cells."""

import importlib
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

from tuckergp import Mode, TuckerGPRegressor, load
from tuckergp.errors import InputError
from tuckergp.kernels import SE, Identity, Matern12

SHORT = {"rank": 2, "draws": 30, "warmup": 30, "random_state": 0}
DAYS = np.arange("2001-01-01", "2001-03-02", dtype="datetime64[D]").astype("datetime64[ns]")
EAST, NORTH = np.array([0.0, 1.0, 2.0, 3.0, 4.0]), np.array([1.0, 0.0, 2.0, 1.0, 3.0])
TRUTH = 10 + EAST[:, None] + np.sin(np.arange(60) / 6) * (2 + NORTH[:, None])
PLACE = Mode(["east", "north"], SE(3.0))
DAY = Mode("day", Matern12(10.0))


@pytest.fixture
def grid():
    """Wind at five stations on sixty days; a tenth of the cells are missing."""
    rng = np.random.default_rng(0)
    values = TRUTH + 0.2 * rng.standard_normal(TRUTH.shape)
    values[rng.random(values.shape) < 0.1] = np.nan
    return xr.DataArray(
        values,
        dims=("station", "day"),
        coords={
            "station": ["Cork", "Dublin", "Kerry", "Mayo", "Sligo"],
            "day": DAYS,
            "east": ("station", EAST, {"units": "km"}),
            "north": ("station", NORTH),
            "run": 7,
        },
        name="speed",
        attrs={"units": "knots", "box": np.arange(3)},
    )


def test_missing_cells_are_filled_and_the_grid_keeps_its_shape(grid):
    model = TuckerGPRegressor([PLACE, DAY], **SHORT).fit(grid)
    filled = model.predict_grid()
    assert list(model.feature_names_in_) == ["day", "east", "north"]
    xr.testing.assert_identical(filled.coords.to_dataset(), grid.coords.to_dataset())
    assert (filled.dims, filled.name) == (grid.dims, "speed")
    assert filled.attrs == grid.attrs
    gone = np.isnan(grid.values)
    assert np.abs(filled.values - TRUTH)[gone].mean() < 0.4
    assert np.isnan(grid.values).sum() == gone.sum() > 0


def test_observed_cells_may_stay_as_they_are(grid):
    model = TuckerGPRegressor([PLACE, DAY], **SHORT).fit(grid)
    found = model.predict_grid(return_std=True, keep_observed=True)
    there = ~np.isnan(grid.values)
    np.testing.assert_array_equal(found["mean"].values[there], grid.values[there])
    assert (found["std"].values[there] == 0).all()
    assert (found["std"].values[~there] > 0).all()
    everywhere = model.predict_grid(return_std=True, include_noise=False)
    assert set(everywhere) == {"mean", "std"}
    np.testing.assert_array_equal(everywhere["mean"].values, model.predict_grid().values)
    assert (everywhere["std"].values < model.predict_grid(return_std=True)["std"].values).all()


def test_a_grid_is_the_same_as_the_table_of_its_cells(grid):
    model = TuckerGPRegressor([PLACE, DAY], **SHORT).fit(grid)
    cells = grid.to_dataframe().reset_index().dropna()
    table = TuckerGPRegressor([PLACE, DAY], **SHORT).fit(cells[["day", "east", "north"]], cells["speed"])
    new = cells[["day", "east", "north"]][:7]
    np.testing.assert_allclose(model.predict(new), table.predict(new))
    flat = model.predict(grid)  # the coordinates alone are read
    np.testing.assert_array_equal(flat.reshape(grid.shape), model.predict_grid().values)
    assert model.components(grid).values.shape == (300, 4)
    np.testing.assert_allclose(table.predict_grid(grid).values, model.predict_grid().values)


def test_without_modes_every_dimension_is_one(grid):
    model = TuckerGPRegressor(rank=1, inference="als", random_state=0).fit(grid)
    assert [mode.mode.columns for mode in model.modes_] == [("station",), ("day",)]
    assert isinstance(model.modes_[0].mode.kernel, Identity)
    assert np.isfinite(model.predict_grid().values).all()
    bare = xr.DataArray(grid.values)  # neither names nor coordinates
    model.fit(bare)
    assert list(model.feature_names_in_) == ["dim_0", "dim_1"]
    assert model.predict_grid().dims == ("dim_0", "dim_1")


def test_a_station_without_any_value_is_answered_from_its_neighbours(grid):
    grid[2, :] = np.nan
    grid[:, 30] = np.nan
    filled = TuckerGPRegressor([PLACE, DAY], **SHORT).fit(grid).predict_grid(return_std=True)
    assert np.abs(filled["mean"].values[2] - TRUTH[2]).mean() < 2.0  # the mean of all is off by 2.6
    assert np.abs(filled["mean"].values[:2, 30] - TRUTH[:2, 30]).mean() < 1.0
    assert filled["std"].values[2].mean() > filled["std"].values[1].mean()
    alone = TuckerGPRegressor([Mode("station", Identity()), DAY], **SHORT).fit(grid)
    assert np.isfinite(alone.predict_grid().values).all()


def test_other_coordinates_may_be_asked_for(grid):
    model = TuckerGPRegressor([PLACE, DAY], **SHORT).fit(grid)
    later = model.predict_grid({"day": DAYS[:3] + np.timedelta64(12, "h")})
    assert later.shape == (5, 3)
    assert later["east"].attrs == {"units": "km"}
    place = model.predict_grid({"station": ["Dublin", "Trim"], "east": [1.0, 1.5], "north": [0.0, 0.5]})
    assert place.shape == (2, 60)
    np.testing.assert_allclose(place.values[0], model.predict_grid().values[1])
    other = grid[:, :4].transpose("day", "station")
    swapped = model.predict_grid(other)
    assert swapped.dims == ("day", "station")
    np.testing.assert_allclose(swapped.values, model.predict_grid().values[:, :4].T)
    of_dataset = model.predict_grid(other.to_dataset()).transpose("day", "station")
    np.testing.assert_array_equal(of_dataset.values, swapped.values)


def test_cells_with_the_same_coordinates_are_repeated_observations(grid):
    twice = xr.concat([grid, grid], "day")
    model = TuckerGPRegressor([PLACE, DAY], **SHORT).fit(twice)
    filled = model.predict_grid().values
    np.testing.assert_array_equal(filled[:, :60], filled[:, 60:])


def test_three_dimensions_and_maximum_likelihood():
    rng = np.random.default_rng(1)
    a, b, c = np.meshgrid(np.arange(6.0), np.arange(5.0), np.arange(4.0), indexing="ij")
    values = np.sin(a) * np.cos(b / 2) + c / 4 + 0.05 * rng.standard_normal(a.shape)
    grid = xr.DataArray(
        values, dims=list("abc"), coords={"a": np.arange(6.0), "b": np.arange(5.0), "c": np.arange(4.0)}
    )
    grid = grid.where(rng.random(a.shape) > 0.2)
    model = TuckerGPRegressor(rank=2, inference="als", hyperparameters="ml", random_state=0).fit(grid)
    filled = model.predict_grid().values
    assert np.sqrt(np.mean((filled - values)[np.isnan(grid.values)] ** 2)) < 0.3


def test_weights_have_the_shape_of_the_grid(grid):
    weight = np.ones(grid.shape)
    weight[:, 40:] = 0.0
    settings = {"rank": 1, "inference": "als", "random_state": 0}
    some = TuckerGPRegressor([PLACE, DAY], **settings).fit(grid, sample_weight=weight)
    first = TuckerGPRegressor([PLACE, DAY], **settings).fit(grid[:, :40])
    np.testing.assert_allclose(some.predict_grid().values[:, :40], first.predict_grid().values, rtol=1e-6)
    with pytest.raises(InputError, match=r"sample_weight must have the shape \(5, 60\) of the grid"):
        TuckerGPRegressor([PLACE, DAY], **settings).fit(grid, sample_weight=np.ones(3))


def test_files_keep_the_grid(grid, tmp_path):
    grid = grid.assign_coords(lead=("day", np.arange(60).astype("timedelta64[h]").astype("timedelta64[ns]")))
    model = TuckerGPRegressor([PLACE, Mode("lead", SE(0.5))], **SHORT).fit(grid)
    model.save(tmp_path / "model.tgp")
    again = load(tmp_path / "model.tgp")
    xr.testing.assert_equal(again.predict_grid(), model.predict_grid())
    assert again.predict_grid().attrs == {"units": "knots"}  # what is plain
    xr.testing.assert_equal(again.predict_grid(keep_observed=True), model.predict_grid(keep_observed=True))


def test_with_targets_a_data_array_is_an_array_of_features():
    X = np.random.default_rng(0).normal(size=(30, 2))
    settings = {"rank": 1, "inference": "als", "random_state": 0}
    plain, wrapped = (TuckerGPRegressor(**settings).fit(data, X[:, 0]) for data in (X, xr.DataArray(X)))
    np.testing.assert_array_equal(wrapped.predict(xr.DataArray(X)), plain.predict(X))
    assert wrapped.grid_ is None


def test_a_fit_to_a_table_forgets_the_grid(grid):
    model = TuckerGPRegressor(rank=1, inference="als", random_state=0).fit(grid)
    model.fit([[1.0], [2.0]], [1.0, 2.0])
    with pytest.raises(InputError, match="not fitted to a grid"):
        model.predict_grid()


def damaged(grid, value, everywhere=False):
    grid = grid.copy()
    grid[1, 3] = value
    return xr.full_like(grid, value) if everywhere else grid


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda g: damaged(g, np.inf), "The grid is infinite at station='Dublin', day=2001-01-04T00:00:00"),
        (lambda g: damaged(g, np.nan, everywhere=True), "All 300 cells of the grid are missing"),
        (lambda g: g.to_dataset(), r"A Dataset has several variables \('speed'\)"),
        (lambda g: g[:, :0], r"The grid of shape \(5, 0\) has no cells"),
        (lambda g: g.astype(str), "The grid must hold numbers"),
        (lambda g: g.stack(cell=("station", "day")), "Dimension 'cell' of the grid has an index of several levels"),
        (lambda g: g.drop_vars("east"), "The grid has no coordinate 'east'; it has station, day, north, run"),
        (lambda g: g.assign_coords(east=("station", [0, 1, np.nan, 3, 4])), "'east' is missing"),
    ],
)
def test_bad_grids_get_one_clear_sentence(grid, change, message):
    with pytest.raises(InputError, match=message) as caught:
        TuckerGPRegressor([PLACE, DAY], **SHORT).fit(change(grid))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("like", "message"),
    [
        ({"week": [1]}, "like names 'week', but the coordinates are station, day, east, north, run"),
        ({"station": ["Trim"]}, "The grid has no coordinate 'east'"),
        ({"east": [1.0, 2.0]}, "There are 2 values of 'east', which runs along station"),
        ([1, 2], "like must be an xarray grid or a dict of coordinates, not list"),
    ],
)
def test_bad_questions_get_one_clear_sentence(grid, like, message):
    model = TuckerGPRegressor([PLACE, DAY], rank=1, inference="als", random_state=0).fit(grid)
    with pytest.raises(InputError, match=message):
        model.predict_grid(like)


def test_without_xarray_one_sentence_says_so(grid, monkeypatch):
    model = TuckerGPRegressor([PLACE, DAY], rank=1, inference="als", random_state=0).fit(grid)

    def without(name):
        if name.startswith("xarray"):
            raise ImportError(name)
        return importlib.import_module(name)

    monkeypatch.setattr("tuckergp.data.grids.import_module", without)
    with pytest.raises(ImportError, match=r"pip install 'tuckergp\[grid\]'"):
        model.predict_grid()


def test_xarray_is_not_loaded_for_tables():
    code = "import sys, tuckergp; tuckergp.TuckerGPRegressor(); sys.exit('xarray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
