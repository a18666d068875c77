"""TuckerGPRegressor with the numbers in its kernels learned by maximum likelihood."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from tuckergp import Mode, TuckerGPRegressor, load
from tuckergp.errors import InputError
from tuckergp.gp.learning import learn_modes
from tuckergp.kernels import SE, Identity, Matern12, Periodic
from tuckergp.regressor import choosing
from tuckergp.running.threads import _libraries

MODES = [Mode("x0", SE(1.0), whiten=True), Mode("x1", SE(1.0), whiten=True)]
SHORT = {"rank": 2, "draws": 30, "warmup": 30, "random_state": 0}


@pytest.fixture(scope="module")
def waves():
    """Waves far shorter than the default lengthscale of one standard deviation."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(260, 2))
    f = np.sin(4 * X[:, 0]) * np.cos(2 * X[:, 1])
    return X, f + 0.1 * rng.standard_normal(260), f


def test_learned_lengthscales_find_what_given_ones_miss(waves):
    X, y, f = waves
    fixed, learned = (
        TuckerGPRegressor(MODES, rank=2, inference="als", random_state=0, hyperparameters=name).fit(X[:200], y[:200])
        for name in ("fixed", "ml")
    )
    assert fixed.score(X[200:], f[200:]) < 0.5
    assert learned.score(X[200:], f[200:]) > 0.95
    assert learned.hyperparameters_["x0__k1__kernel__lengthscale"] == pytest.approx([0.25], abs=0.1)
    assert learned.hyperparameters_["noise"] == pytest.approx([0.04], abs=0.03)
    assert [fitted.mode for fitted in learned.modes_] == learned.learned_modes_
    assert not hasattr(fixed, "hyperparameters_")
    assert [mode.kernel for mode in fixed.learned_modes_] == [SE(1.0), SE(1.0)]


def test_a_chain_starts_from_the_learned_lengthscale(waves):
    X, y, _ = waves
    modes = [Mode("x0", Matern12(30.0)), Mode("x1", SE(1.0))]
    model = TuckerGPRegressor(modes, hyperparameters="ml", learn_rows=100, **SHORT).fit(X, y)
    found = model.hyperparameters_["x0__k1__kernel__lengthscale"][0]
    assert found < 10.0
    assert model.modes_[0].residual.lengthscale_ == found


def test_text_columns_and_fixed_periods(waves):
    X, y, _ = waves
    table = {"site": np.where(X[:, 0] > 0, "east", "west"), "day": X[:, 1]}
    modes = [Mode("site", Identity()), Mode("day", Periodic(np.pi))]
    model = TuckerGPRegressor(modes, hyperparameters="ml", fixed=["period"], learn_rows=100, **SHORT)
    clone(model).fit(table, y)
    model.fit(table, y)
    assert model.hyperparameters_["day__k1__kernel__period"] == [np.pi]
    assert np.isfinite(model.predict(table)).all()


def test_weights_of_zero_and_two_act_as_leaving_out_and_repeating(waves):
    X, y, _ = waves
    weight = np.repeat([0.0, 1.0, 2.0], [100, 80, 80])
    again = np.repeat(np.arange(260), weight.astype(int))
    settings = {"rank": 2, "inference": "als", "hyperparameters": "ml", "random_state": 0}
    weighted = TuckerGPRegressor(**settings).fit(X, y, sample_weight=weight)
    repeated = TuckerGPRegressor(**settings).fit(X[again], y[again])
    for name, values in weighted.hyperparameters_.items():
        if name.endswith(("lengthscale", "noise")):
            np.testing.assert_allclose(values, repeated.hyperparameters_[name], rtol=0.01)


@pytest.mark.filterwarnings("ignore:The draws have not mixed")
def test_numbers_fit_the_pairwise_core_that_many_columns_have():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(220, 8))
    f = np.sin(3 * X[:, 0]) + X[:, 1] + X[:, 2] * X[:, 3]
    y = f + 0.1 * rng.standard_normal(220)
    model = TuckerGPRegressor(rank=3, draws=20, warmup=40, hyperparameters="ml", random_state=0)
    assert model.fit(X[:120], y[:120]).score(X[120:], f[120:]) > 0.98  # numbers of a product kernel: 0.00


def test_it_is_saved_with_the_model(waves, tmp_path):
    X, y, _ = waves
    model = TuckerGPRegressor(hyperparameters="ml", learn_rows=60, **SHORT).fit(X, y)
    model.save(tmp_path / "model.tgp")
    again = load(tmp_path / "model.tgp")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.learned_modes_ == model.learned_modes_
    assert again.get_params()["hyperparameters"] == "ml"
    assert {n: v.tolist() for n, v in again.hyperparameters_.items()} == {
        n: v.tolist() for n, v in model.hyperparameters_.items()
    }


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hyperparameters": "gibbs"}, "hyperparameters must be 'fixed' or 'ml', not 'gibbs'"),
        ({"hyperparameters": "ml", "learn_rows": 1}, "learn_rows must be a whole number from 2 on, not 1"),
        ({"hyperparameters": "ml", "fixed": ["width"]}, "fixed names 'width'"),
        ({"fixed": ["period"]}, "fixed names numbers that hyperparameters='ml' is not to learn"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message, waves):
    with pytest.raises(InputError, match=message):
        TuckerGPRegressor(**settings).fit(*waves[:2])


def test_one_point_teaches_nothing():
    model = TuckerGPRegressor(hyperparameters="ml", **SHORT).fit([[1.0, 2.0]], [3.0])
    assert model.predict([[1.0, 2.0]]) == pytest.approx([3.0], abs=0.5)


def test_older_files_have_the_defaults():
    model = load(Path(__file__).parents[1] / "store" / "fixtures" / "regressor-1.0.tgp")
    assert (model.hyperparameters, model.learn_rows, model.fixed) == ("fixed", 2000, ())
    assert [mode.name for mode in model.learned_modes_] == ["station", "day", "east, north"]
    assert model.grid_ is None
    new = {"station": ["Cork"], "day": [3.0], "east": [0.25], "north": [0.5]}
    last = model.fit_.draws.predicted(model._inputs(new)).f[-1]
    np.testing.assert_allclose(model.components(new).total(), model.fit_.mean + model.fit_.scale * last)
    assert model.sample_y(new, 3).shape == (1, 3)


@pytest.mark.parametrize("modes", [None, [Mode("x0", SE(1.0)), Mode("x1", SE(1.0))]])
def test_numbers_are_learned_by_one_thread_of_blas(modes, monkeypatch):
    threads = []

    def learned(*given):
        # those of NumPy and SciPy; what other packages bring is loaded later
        threads.append({pool["num_threads"] for pool in _libraries().info() if pool["user_api"] == "blas"})
        return learn_modes(*given)

    monkeypatch.setattr(choosing, "learn_modes", learned)
    rng = np.random.default_rng(0)
    X = rng.random((300, 2))
    how = {} if modes is None else {"hyperparameters": "ml"}
    with threadpool_limits(2, user_api="blas"):
        TuckerGPRegressor(modes, draws=2, warmup=2, random_state=0, **how).fit(X, X.sum(axis=1) + rng.random(300))
    assert threads
    assert all(found == {1} for found in threads)
