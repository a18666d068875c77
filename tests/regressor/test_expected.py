"""What people expect of a regressor who come from other libraries: nested parameters, densities, quantiles of grids."""

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from tuckergp import Mode, TuckerGPRegressor
from tuckergp.errors import InputError
from tuckergp.inference import ALS, Gibbs
from tuckergp.kernels import SE, Matern32
from tuckergp.regressor.choosing import NOISE


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(120, 2))
    return X, np.sin(X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(120)


class TestNestedParameters:
    def test_all_are_listed_and_can_be_set(self):
        model = TuckerGPRegressor([Mode(0, SE(1.0) + Matern32(2.0)), Mode(1, SE(3.0))], inference=ALS(noise=0.5))
        params = model.get_params()
        assert params["modes__0__kernel__k2__lengthscale"] == 2.0
        assert params["inference__noise"] == 0.5
        kernel = model.modes[0].kernel
        changed = clone(model).set_params(modes__0__kernel__k2__lengthscale=5.0, inference__noise=0.1, rank=2)
        assert changed.modes[0].kernel == SE(1.0) + Matern32(5.0)
        assert changed.modes[1] == model.modes[1]
        assert (changed.inference.noise, changed.rank) == (0.1, 2)
        assert kernel == SE(1.0) + Matern32(2.0)
        assert clone(changed).get_params()["modes__0__kernel__k2__lengthscale"] == 5.0

    def test_a_name_becomes_the_object_that_it_stands_for(self):
        model = TuckerGPRegressor(draws=7, warmup=3, noise="rows").set_params(inference__thin=2)
        assert model.inference == Gibbs(draws=7, warmup=3, noise="rows", thin=2, **NOISE)
        assert (model.draws, model.noise) == (None, "shared")
        assert TuckerGPRegressor(inference="als").set_params(inference__iterations=9).inference.iterations == 9

    @pytest.mark.parametrize(
        ("name", "sentence"),
        [
            ("inference__speed", "has no parameter 'speed'"),
            (
                "modes__0__kernel__colour",
                r"SE\(lengthscale=1.0\) has no parameter 'colour'; its parameters are: lengths",
            ),
            ("modes__4__kernel", "has no parameter '4'"),
            ("rank__x", "has no parameter 'x'"),
        ],
    )
    def test_what_is_not_there_is_refused(self, name, sentence):
        with pytest.raises(InputError, match=sentence):
            TuckerGPRegressor([Mode(0, SE(1.0))]).set_params(**{name: 1})

    def test_a_grid_search_varies_a_lengthscale(self, data):
        model = TuckerGPRegressor([Mode(0, SE(1.0)), Mode(1, SE(1.0))], rank=2, inference="als", random_state=0)
        grid = {"modes__0__kernel__lengthscale": [0.01, 1.0], "inference__iterations": [5]}
        found = GridSearchCV(model, grid, cv=2).fit(*data)
        assert found.best_params_["modes__0__kernel__lengthscale"] == 1.0
        assert found.best_estimator_.inference.iterations == 5


class TestLogPredictiveDensity:
    def test_it_is_that_of_the_mixture_of_all_draws(self, data):
        X, y = data
        model = TuckerGPRegressor(rank=2, draws=20, warmup=20, random_state=0).fit(X, y)
        found = model.log_predictive_density(X, y)
        fit = model.fit_
        f = fit.mean + fit.scale * fit.draws.predicted(model._inputs(X)).f
        sd = fit.scale / np.sqrt(fit.draws.unknowns["alpha"])
        expected = np.log(stats.norm(f, sd.reshape(-1, 1)).pdf(y).mean(axis=0))
        np.testing.assert_allclose(found, expected, rtol=1e-6)

    def test_counts_have_probabilities_with_their_exposures(self):
        rng = np.random.default_rng(1)
        X, hours = rng.uniform(size=(60, 1)), rng.choice([1.0, 3.0], 60)
        y = rng.poisson(hours * np.exp(X[:, 0]))
        model = TuckerGPRegressor(likelihood="negative_binomial", rank=1, draws=10, warmup=10, random_state=0)
        model.fit(X, y, exposure=hours)
        every = [model.log_predictive_density(X[:1], [k], exposure=hours[:1])[0] for k in range(200)]
        assert np.exp(every).sum() == pytest.approx(1, abs=1e-6)
        with pytest.raises(InputError, match="counts"):
            model.log_predictive_density(X[:1], [0.5])


class TestGrids:
    @pytest.fixture(scope="class")
    def grid(self):
        xarray = pytest.importorskip("xarray")
        rng = np.random.default_rng(0)
        values = np.sin(np.arange(12) / 3)[:, None] * np.arange(1, 5) + 0.1 * rng.standard_normal((12, 4))
        values[2:4, 1] = np.nan
        return xarray.DataArray(values, dims=("day", "place"), coords={"day": np.arange(12.0), "place": list("abcd")})

    @pytest.fixture(scope="class")
    def model(self, grid):
        return TuckerGPRegressor(rank=2, draws=30, warmup=30, random_state=0).fit(grid)

    def test_quantiles_and_intervals_are_those_of_the_rows(self, grid, model):
        found = model.predict_grid(return_std=True, quantiles=[0.1, 0.9], interval=0.8)
        assert found["quantiles"].dims == ("day", "place", "quantile")
        table = {"day": np.repeat(np.arange(12.0), 4), "place": list("abcd") * 12}
        mean, std, quantiles, interval = model.predict(table, return_std=True, quantiles=[0.1, 0.9], interval=0.8)
        np.testing.assert_allclose(found["mean"].values.ravel(), mean)
        np.testing.assert_allclose(found["std"].values.ravel(), std)
        np.testing.assert_allclose(found["quantiles"].sel(quantile=0.9).values.ravel(), quantiles[:, 1])
        np.testing.assert_allclose(found["lower"].values.ravel(), interval[:, 0])
        np.testing.assert_allclose(found["upper"].values.ravel(), interval[:, 1])
        np.testing.assert_allclose(interval, quantiles)  # a tenth is below it, and a tenth above
        _, *of_f = model.predict(table, quantiles=[0.1, 0.9], interval=0.8, include_noise=False)
        np.testing.assert_allclose(*of_f)

    def test_observed_cells_are_certain_where_they_are_kept(self, grid, model):
        found = model.predict_grid(quantiles=0.9, interval=0.5, keep_observed=True)
        missing = np.isnan(grid.values)
        assert list(found) == ["mean", "quantiles", "lower", "upper"]
        for name in ("mean", "lower", "upper"):
            np.testing.assert_array_equal(found[name].values[~missing], grid.values[~missing])
        np.testing.assert_array_equal(found["quantiles"].values[~missing][:, 0], grid.values[~missing])
        assert (found["upper"].values[missing] > found["lower"].values[missing]).all()

    def test_a_grid_has_a_score(self, grid, model):
        known = ~np.isnan(grid.values.ravel())
        table = {"day": np.repeat(np.arange(12.0), 4)[known], "place": np.array(list("abcd") * 12)[known]}
        assert model.score(grid) == pytest.approx(model.score(table, grid.values.ravel()[known]))
        assert model.score(grid) > 0.9
