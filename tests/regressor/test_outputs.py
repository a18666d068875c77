"""Several outputs of one model: rows of one more mode."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.metrics import r2_score

from tuckergp import Mode, TuckerGPRegressor, load
from tuckergp.errors import InputError
from tuckergp.inference import ALS, Gibbs
from tuckergp.kernels import SE, Linear
from tuckergp.regressor.reading import Observations
from tuckergp.regressor.trial import _split

pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")

MODE = Mode("x", Linear() + SE(1.0))


def curves(n=60, seed=0):
    """Two outputs in units of their own: one curve, up and down."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(-3, 3, n))
    f = np.sin(1.5 * x)
    noise = 0.05 * rng.standard_normal((n, 2))
    return {"x": x}, pd.DataFrame({"degrees": 20 + 5 * (f + noise[:, 0]), "pascal": 1e5 - 3000 * (f + noise[:, 1])})


@pytest.fixture(scope="module")
def fitted():
    X, Y = curves()
    model = TuckerGPRegressor([MODE], 2, Gibbs(draws=60, warmup=60), random_state=0)
    return X, Y, model.fit(X, Y)


def test_predictions_have_one_column_per_output_in_its_units(fitted):
    X, Y, model = fitted
    mean, sd, quantiles, interval = model.predict(X, return_std=True, quantiles=[0.1, 0.5, 0.9], interval=0.9)
    assert mean.shape == sd.shape == Y.shape
    assert quantiles.shape == (*Y.shape, 3)
    assert interval.shape == (*Y.shape, 2)
    assert model.outputs_.names == ["degrees", "pascal"]
    errors = (mean - Y.to_numpy()) / Y.std().to_numpy()
    assert (np.abs(errors) < 0.4).all()
    assert 0.7 < ((interval[..., 0] < Y) & (interval[..., 1] > Y)).to_numpy().mean() <= 1
    share = sd.mean(axis=0) / Y.std()  # the noise is 0.07, and the prior of its precision counts at 120 observations
    assert ((share > 0.06) & (share < 0.18)).all()
    np.testing.assert_allclose(quantiles[..., 1], mean, atol=(0.3 * sd).max(axis=0).max())
    assert model.score(X, Y) > 0.95
    assert set(model.features_) == {"x"}


@pytest.mark.parametrize("kind", ["dict", "pyarrow", "polars"])
def test_tables_of_any_library_name_the_outputs(kind):
    X, Y = curves()
    columns = {name: Y[name].to_numpy() for name in Y}
    table = {"dict": dict, "pyarrow": pa.table, "polars": pl.DataFrame}[kind](columns)
    frame, same = (TuckerGPRegressor([MODE], 2, Gibbs(draws=3, warmup=2), random_state=0).fit(X, y) for y in (Y, table))
    assert same.outputs_.names == ["degrees", "pascal"]
    np.testing.assert_array_equal(same.predict(X), frame.predict(X))
    assert same.score(X, table) == frame.score(X, Y)
    np.testing.assert_array_equal(same.log_predictive_density(X, table), frame.log_predictive_density(X, Y))


def test_columns_of_targets_to_score_are_found_by_their_names(fitted):
    X, Y, model = fitted
    other = Y[["pascal", "degrees"]]
    assert model.score(X, other) == model.score(X, Y)
    density = model.log_predictive_density(X, Y)
    np.testing.assert_array_equal(model.log_predictive_density(X, other), density)


def test_one_output_may_be_a_dict_of_one_column():
    X, Y = curves()
    one = {"degrees": Y["degrees"]}
    model = TuckerGPRegressor([MODE], 2, Gibbs(draws=3, warmup=2), random_state=0).fit(X, one)
    assert model.predict(X).shape == (len(Y),)
    assert model.score(X, one) == model.score(X, Y["degrees"])


def test_covariances_samples_and_densities_are_those_of_each_output(fitted):
    X, Y, model = fitted
    few = {"x": X["x"][:4]}
    mean, sd = model.predict(few, return_std=True)
    again, covariance = model.predict(few, return_cov=True)
    np.testing.assert_allclose(again, mean)
    assert covariance.shape == (4, 4, 2)
    np.testing.assert_allclose(np.sqrt([np.diag(covariance[:, :, k]) for k in range(2)]).T, sd, rtol=1e-6)
    samples = model.sample_y(few, 400, random_state=1)
    assert samples.shape == (4, 2, 400)
    np.testing.assert_allclose(samples.mean(axis=2), mean, atol=(0.3 * sd).max(axis=0).max())
    np.testing.assert_allclose(samples.std(axis=2) / sd, 1, atol=0.2)
    density = model.log_predictive_density(few, Y[:4])
    # the density of degrees, a few of them, is larger than that of thousands of pascal by the ratio of their units
    expected = -0.5 * ((Y[:4] - mean) / sd) ** 2 - np.log(sd) - 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(density, expected, atol=0.3)


def test_an_output_that_is_missing_is_told_by_the_other():
    X, Y = curves(80)
    holes = Y.copy()
    holes.iloc[20:50, 1] = np.nan
    model = TuckerGPRegressor([MODE], 2, Gibbs(draws=60, warmup=60), random_state=0).fit(X, holes)
    errors = (model.predict(X)[20:50, 1] - Y.iloc[20:50, 1]) / Y["pascal"].std()
    assert np.sqrt((errors**2).mean()) < 0.25
    known = holes["pascal"].notna()
    each = [r2_score(Y["degrees"], model.predict(X)[:, 0]), r2_score(Y["pascal"][known], model.predict(X)[known, 1])]
    assert model.score(X, holes) == pytest.approx(np.mean(each))
    density = model.log_predictive_density(X, holes)
    assert np.isnan(density[20:50, 1]).all()
    assert np.isfinite(density[:, 0]).all()


def test_a_model_of_outputs_is_saved_with_them(fitted, tmp_path):
    X, _, model = fitted
    model.save(tmp_path / "model.tgp")
    again = load(tmp_path / "model.tgp")
    assert again.outputs_ == model.outputs_
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize(("k", "name"), [(0, "degrees"), (1, "pascal")])
def test_one_output_can_be_asked_for_by_name_or_number(fitted, k, name):
    X, _, model = fitted
    few = {"x": X["x"][:4]}
    asked = {"return_std": True, "quantiles": [0.1, 0.9], "interval": 0.5}
    for one, all_of_them in zip(model.predict(few, **asked, output=name), model.predict(few, **asked), strict=True):
        np.testing.assert_allclose(one, all_of_them[:, k])
    np.testing.assert_allclose(
        model.predict(few, return_cov=True, output=k)[1], model.predict(few, return_cov=True)[1][:, :, k]
    )
    mean, sd = model.predict(few, return_std=True, include_noise=False)
    parts = [model.components(few, draw, output=name).total() for draw in range(len(model.fit_.draws))]
    np.testing.assert_allclose(np.mean(parts, axis=0), mean[:, k])
    np.testing.assert_allclose(np.std(parts, axis=0, ddof=1), sd[:, k], rtol=1e-3)
    terms = model.decompose(few, output=name)
    assert set(terms.terms) == {"Linear(x)", "SE(x)"}
    np.testing.assert_allclose(terms.total(), mean[:, k])
    np.testing.assert_allclose(model.partial_dependence(few, "x", few["x"], output=name).mean, mean[:, k])


def test_plots_are_of_one_output(fitted):
    plots = pytest.importorskip("matplotlib.pyplot")
    plots.switch_backend("agg")
    X, Y, model = fitted
    ends = Y["pascal"].min() - 3000, Y["pascal"].max() + 3000
    for axes in (model.plot_partial_dependence(X, output="pascal"), model.plot_components(X, top=2, output="pascal")):
        assert [ax.get_xlabel() for ax in axes.ravel() if ax.get_xlabel()]
    assert ends[0] < model.plot_partial_dependence(X, output="pascal")[0].get_ylim()[0] < ends[1]
    model.decompose(X, output="degrees").plot()
    plots.close("all")


def test_outputs_are_the_last_dimension_of_a_grid(fitted):
    xr = pytest.importorskip("xarray")
    X, Y, model = fitted
    x = X["x"][:5]
    seen = xr.Dataset({"pascal": ("x", [np.nan, 7.0, np.nan, np.nan, 8.0])}, {"x": x})
    found = model.predict_grid(seen, return_std=True, quantiles=[0.1, 0.9], keep_observed=True)
    mean, sd, quantiles = model.predict({"x": x}, return_std=True, quantiles=[0.1, 0.9])
    mean[[1, 4], 1], sd[[1, 4], 1] = (7.0, 8.0), 0.0
    assert found["mean"].dims == ("x", "output")
    assert found["output"].values.tolist() == list(Y)
    np.testing.assert_allclose(found["mean"], mean)
    np.testing.assert_allclose(found["std"], sd)
    np.testing.assert_allclose(found["quantiles"].sel(output="degrees"), quantiles[:, 0])
    with pytest.raises(InputError, match="dimension 'output', which the grid has already"):
        model.predict_grid(xr.DataArray(np.zeros((2, 2)), {"x": [0.0, 1.0], "output": [0, 1]}))


def test_arviz_has_a_variable_of_each_output_in_its_units(fitted):
    pytest.importorskip("arviz", exc_type=ImportError)
    X, Y, model = fitted
    check_exported(model.inference_data(), X, Y, model)


def check_exported(found, X, Y, model):
    """Means are those of predictions, and log densities those of the targets given f and the noise in their units."""
    from scipy.stats import norm

    groups = [found[name] if hasattr(found, "groups") else getattr(found, name)
              for name in ("posterior", "log_likelihood", "posterior_predictive", "observed_data")]  # fmt: skip
    posterior, densities, replicated, observed = groups
    mean, sd = model.predict(X, return_std=True)
    for k, name in enumerate(Y):
        f, rows = posterior[f"f_{name}"].values, posterior[f"row_{name}"].values
        np.testing.assert_allclose(f[0].mean(axis=0), mean[rows, k], rtol=1e-6, atol=1e-6 * np.ptp(mean[:, k]))
        np.testing.assert_allclose(observed[name].values, Y[name].to_numpy()[rows])
        noise = posterior[f"noise_{name}"].values[..., None]
        expected = norm.logpdf(Y[name].to_numpy()[rows], f, noise)
        np.testing.assert_allclose(densities[name].values, expected, rtol=1e-6, atol=1e-6)
        apart = (replicated[name].values[0].mean(axis=0) - mean[rows, k]) / sd[rows, k]
        assert (np.abs(apart) < 0.8).all()  # of 60 draws


def test_a_server_answers_for_each_output_and_its_page_shows_one(fitted, tmp_path):
    pytest.importorskip("fastapi")
    from fastapi.testclient import TestClient

    from tuckergp.serve.app import create_app
    from tuckergp.serve.pages import PageState

    X, Y, model = fitted
    model.save(tmp_path / "model.tgp")
    app = create_app(tmp_path / "model.tgp", watch=0.0)
    app.state.page = PageState({**X, **Y}, "pascal")
    mean, sd, ends = model.predict({"x": X["x"][:2]}, return_std=True, interval=0.9)
    with TestClient(app, base_url="http://localhost") as client:
        rows = [{"x": x} for x in X["x"][:2].tolist()]
        got = client.post("/predict", json={"rows": rows, "interval": 0.9}).json()["predictions"]
        for part, values in (("mean", mean), ("std", sd), ("low", ends[..., 0]), ("high", ends[..., 1])):
            np.testing.assert_allclose([list(line[part].values()) for line in got], values)
        assert list(got[0]["mean"]) == client.get("/version").json()["model"]["outputs"] == list(Y)
        about = client.get("/page/about").json()
        assert ([column["name"] for column in about["columns"]], about["outputs"]) == (["x"], list(Y))
        for output, k in ((None, 0), ("pascal", 1)):
            found = client.post("/page/surface", json={"along": ["x"], "output": output}).json()
            at = {"x": found["axes"][0]["values"]}
            np.testing.assert_allclose(found["mean"], model.predict(at)[:, k], rtol=1e-4)
        assert client.post("/page/surface", json={"along": ["x"], "output": "kelvin"}).status_code == 422
        error = Y["pascal"] - model.predict(X)[:, 1]
        judged = client.get("/page/model/accuracy").json()
        assert judged["rmse"] == pytest.approx(np.sqrt((error**2).mean()))


def test_what_cannot_be_told_is_refused(fitted):
    X, Y, model = fitted
    for call in (model.components, model.decompose, model.plot_components, model.plot_partial_dependence):
        with pytest.raises(InputError, match="has the outputs degrees, pascal; say which one with output="):
            call(X)
    with pytest.raises(InputError, match="no output 'kelvin'; its outputs are degrees, pascal"):
        model.predict(X, output="kelvin")
    with pytest.raises(InputError, match="60 rows and there are 2 outputs, but y has shape 60 x 3"):
        model.log_predictive_density(X, np.zeros((60, 3)))
    with pytest.raises(InputError, match="'b' has no value"):
        TuckerGPRegressor([MODE]).fit(X, pd.DataFrame({"a": Y["degrees"], "b": np.nan}))
    with pytest.raises(InputError, match="names that differ"):
        TuckerGPRegressor([MODE]).fit(X, pd.concat([Y["degrees"], Y["degrees"]], axis=1))
    with pytest.raises(InputError, match="one entry for each of the 60 rows"):
        TuckerGPRegressor([MODE]).fit(X, Y, sample_weight=np.ones(61))


def test_one_output_after_several_is_one_output():
    X, Y = curves(30)
    model = TuckerGPRegressor([MODE], 1, ALS(iterations=3), random_state=0)
    assert model.fit(X, Y).predict(X).shape == (30, 2)
    assert model.fit(X, Y["degrees"]).predict(X).shape == (30,)
    assert model.outputs_ is None
    with pytest.raises(InputError, match="one output; leave output='degrees' out"):
        model.predict(X, output="degrees")


def test_weights_count_inputs_and_a_column_called_output_stays_one_of_the_inputs():
    X, Y = curves(30)
    X["output"] = np.arange(30.0)
    weight = np.ones(30)
    weight[:10] = 0
    settings = {"rank": 1, "inference": ALS(iterations=3), "random_state": 0}
    model = TuckerGPRegressor([MODE, "output"], **settings).fit(X, Y, sample_weight=weight)
    assert model.outputs_.column == "output_"
    without = TuckerGPRegressor([MODE, "output"], **settings)
    rest = {name: values[10:] for name, values in X.items()}
    np.testing.assert_allclose(without.fit(rest, Y[10:]).predict(rest), model.predict(rest), rtol=1e-9)


def test_each_output_has_noise_of_its_own():
    X, Y = curves(60)
    Y["noise"] = np.random.default_rng(1).standard_normal(60)
    model = TuckerGPRegressor([MODE], 2, draws=60, warmup=60, random_state=0).fit(X, Y)
    share = model.predict(X, return_std=True)[1].mean(axis=0) / Y.std()
    assert share["degrees"] < 0.2
    assert share["pascal"] < 0.2
    assert share["noise"] > 0.7
    pytest.importorskip("arviz", exc_type=ImportError)
    check_exported(model.inference_data(), X, Y, model)


def test_a_trial_holds_out_whole_inputs():
    from tuckergp.data.tables import Table

    inputs = np.repeat(np.arange(300), 3)[5:]
    table = Table({"x": inputs.astype(float)}, "X", len(inputs))
    data = Observations(table, np.zeros(len(inputs)), None, None, 5 + np.arange(len(inputs)), 3)
    some, held = map(data.take, _split(data, 0))
    assert not set(some.inputs) & set(held.inputs)
    assert len(held.target) == pytest.approx(len(inputs) // 4, abs=3)
    assert len(some.target) + len(held.target) == len(inputs)


def test_moments_while_sampling_have_the_units_of_the_outputs():
    X, Y = curves(40)
    model = TuckerGPRegressor([MODE], 1, Gibbs(draws=10, warmup=10), random_state=0).fit(X, Y, moments_of=X)
    mean, sd = model.predict(X, return_std=True)
    np.testing.assert_allclose(model.moments_.mean, mean, rtol=1e-4)
    np.testing.assert_allclose(model.moments_.std, sd, rtol=1e-3)
