"""TuckerGPRegressor on tables, modes and real data."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tuckergp import Mode, TuckerGPRegressor
from tuckergp.data.datasets import load_california, load_wind
from tuckergp.errors import InputError
from tuckergp.evaluation.metrics import rmse
from tuckergp.features import Nystrom
from tuckergp.inference import ALS, HMC, NUTS, SGD, SGLD
from tuckergp.kernels import SE, Identity, Linear, Matern12, Matern52, Periodic


@pytest.fixture(scope="module")
def surface():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(400, 2))
    f = np.sin(2 * X[:, 0]) * np.cos(X[:, 1]) + 0.5 * X[:, 0]
    return X, 7 + 30 * (f + 0.1 * rng.standard_normal(400)), 7 + 30 * f


@pytest.fixture(scope="module")
def sampled(surface):
    X, y, _ = surface
    return TuckerGPRegressor(rank=3, draws=150, warmup=100, random_state=0).fit(X[:300], y[:300])


def test_it_recovers_a_separable_surface_in_the_units_of_the_targets(surface, sampled):
    X, _, f = surface
    assert rmse(f[300:], sampled.predict(X[300:])) < 1.5


@pytest.mark.parametrize("inference", ["als", "sgd"])
def test_other_inferences_recover_it_too(surface, inference):
    """The noise has sd 3, the surface sd about 26. SGD came to rest elsewhere from 4 of 24 starts, with an error of 7,
    and had one below 2.4 from the others; the best of five starts on training data is elsewhere in 1 of 8,000 cases.
    """
    X, y, f = surface
    starts = 5 if inference == "sgd" else 1
    models = [TuckerGPRegressor(rank=3, inference=inference, random_state=seed) for seed in range(starts)]
    model = max((model.fit(X[:300], y[:300]) for model in models), key=lambda fitted: fitted.score(X[:300], y[:300]))
    assert rmse(f[300:], model.predict(X[300:])) < (3.0 if inference == "sgd" else 1.5)


def test_draws_give_calibrated_bands_and_functions_of_the_right_noise(surface, sampled):
    X, y, f = surface
    model = sampled
    mean, std = model.predict(X[300:], return_std=True)
    assert 2.4 < np.median(std) < 4.5  # the noise has sd 3
    _, band = model.predict(X[300:], quantiles=[0.05, 0.95])
    # 100 new observations, 90 % bands: within four binomial standard errors
    assert abs(np.mean((band[:, 0] < y[300:]) & (y[300:] < band[:, 1])) - 0.9) < 0.12
    _, of_f = model.predict(X[300:], return_std=True, include_noise=False)
    assert np.median(of_f) < 0.6 * np.median(std)
    assert np.mean(np.abs(mean - f[300:]) < 4 * of_f) > 0.9


def test_different_ranks_a_mode_and_every_core(surface):
    X, y, _ = surface
    for rank, core in (((2, 4), "full"), (3, "identity"), (3, "full")):
        assert TuckerGPRegressor(rank=rank, core=core, draws=20, warmup=30, random_state=0).fit(X, y).score(X, y) > 0.95


def test_shifting_and_scaling_inputs_and_targets_changes_nothing_else(surface):
    X, y, _ = surface
    plain = TuckerGPRegressor(rank=2, inference="als", random_state=0).fit(X, y).predict(X)
    moved = (
        TuckerGPRegressor(rank=2, inference="als", random_state=0).fit(1000 + 50 * X, 3 - 2 * y).predict(1000 + 50 * X)
    )
    np.testing.assert_allclose(moved, 3 - 2 * plain, rtol=1e-4, atol=1e-3 * np.ptp(plain))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, dict])
def test_columns_are_used_by_name(surface, frame):
    X, y, _ = surface
    table = frame({"lon": X[:, 0], "lat": X[:, 1]})
    modes = [Mode("lat", SE(1.0)), Mode("lon", SE(1.0), features=Nystrom(20, points="greedy"))]
    model = TuckerGPRegressor(modes, rank=3, draws=50, warmup=50, random_state=0).fit(table, y)
    assert model.feature_names_in_.tolist() == ["lon", "lat"]
    assert model.score(table, y) > 0.95


def test_categories_make_a_mode_of_their_own_and_unseen_ones_get_the_average():
    rng = np.random.default_rng(0)
    station = rng.choice(["a", "b", "c"], size=300)
    day = rng.uniform(0, 10, 300)
    y = np.array([{"a": 1.0, "b": 2.0, "c": 3.0}[s] for s in station]) * np.sin(day)
    y += 0.1 * rng.standard_normal(300)
    frame = pd.DataFrame({"station": station, "day": day})
    model = TuckerGPRegressor(rank=2, random_state=0).fit(frame, y)
    assert model.score(frame, y) > 0.95
    new = model.predict(pd.DataFrame({"station": ["z"] * 50, "day": np.linspace(0, 10, 50)}))
    assert np.isfinite(new).all()
    assert np.corrcoef(new, np.sin(np.linspace(0, 10, 50)))[0, 1] > 0.8


def test_it_works_in_pipelines_and_cross_validation(surface):
    X, y, _ = surface
    model = make_pipeline(StandardScaler(), TuckerGPRegressor(rank=2, inference="als", random_state=0))
    assert cross_val_score(model, X, y, cv=3).min() > 0.9


def test_one_training_point_and_constant_columns_are_fine():
    for inference in ("als", "gibbs"):
        model = TuckerGPRegressor(inference=inference, random_state=0).fit([[1.0, 2.0]], [3.0])
        assert model.predict([[1.0, 2.0]]) == pytest.approx([3.0], abs=0.5)
    X = np.column_stack([np.ones(50), np.linspace(0, 1, 50)])
    assert TuckerGPRegressor(random_state=0).fit(X, X[:, 1]).score(X, X[:, 1]) > 0.95


def test_repeated_inputs_with_different_targets_are_averaged():
    X = np.repeat(np.linspace(0, 1, 10), 20)[:, None]
    y = np.sin(6 * X[:, 0]) + np.tile([-1.0, 1.0], 100)
    predicted = TuckerGPRegressor(inference=ALS(noise=0.1), random_state=0).fit(X, y).predict(X)
    assert rmse(np.sin(6 * X[:, 0]), predicted) < 0.1


def test_california_on_the_authors_split_beats_linear_regression_by_far(data_dir):
    data = load_california(data_dir)
    X = np.column_stack([data.table["longitude"], data.table["latitude"]])
    y = np.log(data.table["house_value"])
    modes = [Mode(column, SE(0.1), whiten=True) for column in ("x0", "x1")]
    model = TuckerGPRegressor(modes, rank=5, inference=ALS(noise=0.4, iterations=20), random_state=0)
    model.fit(X[data.train], y[data.train])
    assert rmse(y[data.test], model.predict(X[data.test])) < 0.33  # predicting the mean: 0.5709


def test_wind_as_stations_times_days(data_dir):
    wind = load_wind(data_dir).values
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(wind))
    train, test = wind.take(rows[:20_000]), wind.take(rows[20_000:30_000])
    modes = [Mode("station", Identity()), Mode("day", Periodic(365.25) + Identity())]
    model = TuckerGPRegressor(modes, rank=3, core="identity", inference=ALS(noise=0.3), random_state=0)
    model.fit(train.select(["station", "day"]), train["speed"])
    assert rmse(test["speed"], model.predict(test.select(["station", "day"]))) < 4.0  # the paper's best: 4.97


@pytest.mark.filterwarnings("ignore::tuckergp.errors.NotConvergedWarning")
@pytest.mark.parametrize(
    "inference",
    ["hmc", "nuts", "sgld", HMC(draws=60, warmup=60), SGLD(draws=60, warmup=60, batch_size=20)],
)
def test_other_samplers_predict_from_their_draws(inference):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(220, 2))
    y = 5 + 2 * np.sin(X[:, 0]) * X[:, 1] + 0.2 * rng.standard_normal(220)
    lengths = {"draws": 60, "warmup": 60} if isinstance(inference, str) else {}
    modes = [Mode("x0", Matern12(1.0)), Mode("x1", SE(1.0))]  # a chain for Gibbs sampling, features here
    model = TuckerGPRegressor(modes, rank=2, inference=inference, random_state=0, **lengths).fit(X[:150], y[:150])
    mean, std = model.predict(X[150:], return_std=True)
    assert len(model.fit_.draws) == 60
    assert len(model.fit_.steps) == 120
    assert rmse(y[150:], mean) < 0.6 * y[150:].std()
    assert np.mean(np.abs(y[150:] - mean) < 2 * std) > 0.8
    again = TuckerGPRegressor(modes, rank=2, inference=inference, random_state=0, **lengths).fit(X[:150], y[:150])
    np.testing.assert_array_equal(again.predict(X[150:]), mean)


BAD = [
    ({"inference": "hmc", "noise": "rows"}, {}, "noise is a setting of inference='gibbs'; with 'hmc' leave it out"),
    ({"inference": NUTS(), "draws": 10}, {}, r"draws is a setting of the object here; give inference=NUTS\(draws=10\)"),
    ({"inference": HMC(), "draws": 10}, {}, r"draws is a setting of the object here; give inference=HMC\(draws=10\)"),
    ({"inference": "als", "likelihood": "ordinal"}, {},
     r"likelihood='ordinal' needs inference='gibbs', 'hmc', 'nuts', 'sgld' or 'sgd', not ALS"),
    ({"rank": 0}, {}, "rank must be a whole number from 1 on or a list of such, one per mode, not 0"),
    ({"rank": (2, 2, 2)}, {}, "rank has 3 entries for 2 modes"),
    ({"rank": 2.5}, {}, "rank must be a whole number"),
    ({"inference": "gradient"}, {}, "must be 'gibbs', 'als', 'sgd', 'vi', 'hmc', 'nuts', 'sgld' or an object"),
    ({"likelihood": "gamma"}, {}, "likelihood must be 'gaussian', 'student', 'ordinal', 'bernoulli', 'poisson' or "),
    ({"core": "identity", "rank": (2, 3)}, {}, "same rank in every mode"),
    ({"random_state": -1}, {}, "random_state must be"),
    ({}, {"y": [1.0, np.nan, 2.0]}, r"the target column 'y' is missing \(NaN\) at row 1"),
    ({}, {"y": [1.0, np.inf, 2.0]}, "the target column 'y' is infinite at row 1"),
    ({}, {"y": ["a", "b", "c"]}, "the target column 'y' must be numeric, but row 0 holds 'a'"),
    ({}, {"y": [1.0, 2.0]}, "X has 3 rows but y has 2"),
    ({}, {"X": [[1.0, np.nan], [1.0, 2.0], [3.0, 4.0]]}, r"X column 'x1' is missing \(NaN\) at row 0"),
    ({}, {"X": [[1.0, 2.0], [np.inf, 2.0], [3.0, 4.0]]}, "X column 'x0' is infinite at row 1"),
    ({}, {"X": pd.DataFrame({"a": [], "b": []})}, "X has no rows"),
    ({}, {"sample_weight": [1.0, -1.0, 1.0]}, "sample_weight must not be negative, but row 1 holds -1"),
    ({}, {"sample_weight": [1.0, 1e200, 1.0]}, "sample_weight reaches 1e.200, which is too large; divide it"),
    ({}, {"sample_weight": [1.0, 1.0]}, "sample_weight must have one entry for each of the 3 rows"),
    ({"modes": [Mode("z", SE())]}, {}, "X has no column 'z'; its columns are x0, x1"),
    ({"modes": [Mode("x0", SE(-1.0))]}, {}, "lengthscale"),
    ({"modes": [Mode("x0", Matern12([1.0, 2.0]))]}, {}, "lengthscale"),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "data", "message"), BAD)
def test_bad_input_gets_one_clear_sentence(settings, data, message):
    arguments = {"X": [[1.0, 2.0], [2.0, 3.0], [3.0, 5.0]], "y": [1.0, 2.0, 3.0], **data}
    with pytest.raises(InputError, match=message) as caught:
        TuckerGPRegressor(**settings).fit(**arguments)
    assert "\n" not in str(caught.value)


def test_plain_sgd_is_reachable(surface):
    X, y, _ = surface
    inference = SGD(method="sgd", step_u=2e-5, step_w=2e-5, noise=0.1, epochs=300, validation=0.0, init_scale=1.0)
    assert TuckerGPRegressor(rank=2, inference=inference, random_state=0).fit(X, y).score(X, y) > 0.5


def test_intervals_of_precise_measurements_are_narrow():
    """Half of new targets lie in intervals of 50 % where noise is 0.3 % of the function; a strong prior widens them."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (600, 1))
    y = np.sin(3 * x[:, 0]) + 0.003 * rng.standard_normal(600)
    modes = [Mode("x", Linear() + Matern52(1.0))]
    model = TuckerGPRegressor(modes, rank=1, draws=60, warmup=60, random_state=0).fit({"x": x[:300, 0]}, y[:300])
    _, ends = model.predict({"x": x[300:, 0]}, interval=0.5)
    assert 0.4 < np.mean((ends[:, 0] <= y[300:]) & (y[300:] <= ends[:, 1])) < 0.62
