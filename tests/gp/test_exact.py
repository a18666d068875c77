"""The exact GP against scikit-learn's, finite differences and closed forms."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk
from sklearn.utils.estimator_checks import parametrize_with_checks

from tuckergp import Mode
from tuckergp.errors import InputError
from tuckergp.gp import ExactGP
from tuckergp.kernels import SE, Constant, Identity, Linear, Matern12, Matern32, Matern52, Periodic

PEERS = [
    (SE([0.7, 1.6]), sk.RBF([0.7, 1.6])),
    (Matern32(0.9), sk.Matern(0.9, nu=1.5)),
    (Matern12(0.9), sk.Matern(0.9, nu=0.5)),
    (SE(1.2) * (0.4 * Matern52([0.8, 2.0])), sk.RBF(1.2) * (sk.ConstantKernel(0.4) * sk.Matern([0.8, 2.0], nu=2.5))),
    (SE(1.2) + 0.3 * Matern32(0.5), sk.RBF(1.2) + sk.ConstantKernel(0.3) * sk.Matern(0.5, nu=1.5)),
]


@pytest.fixture(params=[256, 7], ids=["one block", "many blocks"])
def data(request, monkeypatch):
    monkeypatch.setattr("tuckergp.gp.dense.BLOCK", request.param)
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(40, 2))
    y = 3 + np.sin(X[:, 0]) * np.cos(2 * X[:, 1]) + 0.1 * rng.standard_normal(40)
    return X, y, rng.uniform(-2.5, 2.5, size=(9, 2))


@pytest.mark.parametrize("normalize_y", [True, False])
@pytest.mark.parametrize(("kernel", "peer"), PEERS, ids=lambda value: repr(value)[:20])
def test_it_agrees_with_scikit_learn(data, kernel, peer, normalize_y):
    X, y, new = data
    mine = ExactGP(kernel, scale=1.5, noise=0.05, learn=False, normalize_y=normalize_y).fit(X, y)
    peer = sk.ConstantKernel(1.5) * peer + sk.WhiteKernel(0.05)
    theirs = GaussianProcessRegressor(peer, alpha=0.0, optimizer=None, normalize_y=normalize_y).fit(X, y)

    mean, std = mine.predict(new, return_std=True)
    expected_mean, expected_std = theirs.predict(new, return_std=True)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-9)
    np.testing.assert_allclose(std, expected_std, rtol=1e-8)
    _, covariance = mine.predict(new, return_cov=True)
    np.testing.assert_allclose(covariance, theirs.predict(new, return_cov=True)[1], atol=1e-9)

    value, slopes = mine.log_marginal_likelihood(gradient=True)
    expected, expected_slopes = theirs.log_marginal_likelihood(theirs.kernel_.theta, eval_gradient=True)
    assert value == pytest.approx(expected, abs=1e-8)
    assert mine.log_marginal_likelihood_ == mine.log_marginal_likelihood() == pytest.approx(expected, abs=1e-8)
    # their names are in another order
    found = np.sort(np.concatenate(list(slopes.values())))
    np.testing.assert_allclose(found, np.sort(expected_slopes), rtol=1e-7, atol=1e-8)


TABLE_MODES = [
    [Mode("a", SE(0.7) + 0.5 * Periodic(1.3, 0.9)), Mode("b", Matern32(1.1), whiten=True), Mode("c", Identity())],
    [Mode("a", 0.5 * SE(0.7), constant=False), Mode(["b", "c"], Linear("b") + Identity("c") * Matern12(0.4, "b"))],
    [Mode("b", 2.0 * (Matern52(0.4) + Constant()))],
]


@pytest.fixture
def table(data):
    X, y, _ = data
    return {"a": X[:, 0], "b": X[:, 1], "c": np.array(list("xyzz") * 10)}, y


@pytest.mark.parametrize("modes", TABLE_MODES, ids=["three", "two", "one"])
def test_gradients_are_those_of_finite_differences(table, modes):
    X, y = table
    gp = ExactGP(modes, scale=0.8, noise=0.3, learn=False).fit(X, y)
    _, slopes = gp.log_marginal_likelihood(gradient=True)
    assert set(slopes) == set(gp.hyperparameters_)
    for name, values in gp.hyperparameters_.items():
        above, below = (gp.log_marginal_likelihood({name: values * np.exp(s)}) for s in (1e-5, -1e-5))
        assert slopes[name].sum() == pytest.approx((above - below) / 2e-5, rel=1e-5, abs=1e-6), name


def test_the_likelihood_is_that_of_the_joint_normal(table):
    X, y = table
    gp = ExactGP(TABLE_MODES[0], noise=0.3, learn=False, normalize_y=False).fit(X, y)
    a, b, c = X["a"], (X["b"] - X["b"].mean()) / X["b"].std(), X["c"]
    K = (SE(0.7)(a) + 0.5 * Periodic(1.3, 0.9)(a) + 1) * (Matern32(1.1)(b) + 1) * (Identity()(c) + 1)
    law = stats.multivariate_normal(np.zeros(40), K + 0.3 * np.eye(40))
    assert gp.log_marginal_likelihood_ == pytest.approx(law.logpdf(y), abs=1e-8)


def test_learning_finds_what_scikit_learn_finds(data):
    X, y, _ = data
    mine = ExactGP(SE([1.0, 1.0]), noise=0.1).fit(X, y)
    peer = sk.ConstantKernel(1.0) * sk.RBF([1.0, 1.0]) + sk.WhiteKernel(0.1)
    theirs = GaussianProcessRegressor(peer, alpha=0.0, normalize_y=True).fit(X, y)
    assert mine.log_marginal_likelihood_ == pytest.approx(theirs.log_marginal_likelihood_value_, abs=1e-4)
    assert mine.learned_.converged
    assert mine.learned_.log_marginal_likelihood == pytest.approx(mine.log_marginal_likelihood_)
    assert 0.05 < mine.predict(X, return_std=True)[1].mean() < 0.2  # the noise is 0.1


def test_restarts_never_end_lower_and_repeat_with_a_seed(data):
    X, y, _ = data
    poor = SE(40.0)
    once = ExactGP(poor, noise=1.0).fit(X, y)
    again = [ExactGP(poor, noise=1.0, restarts=3, random_state=1).fit(X, y) for _ in range(2)]
    assert again[0].log_marginal_likelihood_ >= once.log_marginal_likelihood_ - 1e-6
    assert again[0].log_marginal_likelihood_ == again[1].log_marginal_likelihood_


def test_fixed_numbers_stay(data):
    X, y, _ = data
    gp = ExactGP([Mode("x0", Periodic(3.0), constant=False), Mode("x1", SE(1.0), constant=False)], fixed=["period"])
    gp.fit(X, y)
    assert gp.hyperparameters_["x0__period"] == 3.0
    assert gp.hyperparameters_["x0__lengthscale"] != 1.0
    with pytest.raises(InputError, match="fixed names 'width'"):
        ExactGP(SE(), fixed=["width"]).fit(X, y)


def test_hyperparameters_of_some_rows_serve_all(data):
    X, y, new = data
    gp = ExactGP(SE([1.0, 1.0]), learn_rows=25, random_state=0).fit(X, y)
    values = gp.hyperparameters_
    kernel = SE(values["lengthscale"].tolist())
    same = ExactGP(kernel, scale=values["scale"][0], noise=values["noise"][0], learn=False).fit(X, y)
    np.testing.assert_allclose(gp.predict(new), same.predict(new))


def test_noise_is_that_of_observations_alone(data):
    X, y, new = data
    gp = ExactGP(SE(1.0), noise=0.2, learn=False).fit(X, y)
    (mean, with_noise), (same, without) = (
        gp.predict(new, return_std=True, include_noise=included) for included in (True, False)
    )
    np.testing.assert_array_equal(mean, same)
    np.testing.assert_allclose(with_noise**2 - without**2, 0.2 * y.var())
    covariances = [gp.predict(new, return_cov=True, include_noise=included)[1] for included in (True, False)]
    np.testing.assert_allclose(covariances[0] - covariances[1], 0.2 * y.var() * np.eye(9), atol=1e-12)
    np.testing.assert_allclose(np.sqrt(np.diag(covariances[1])), without)


@pytest.mark.parametrize(
    ("gp", "message"),
    [
        (ExactGP(SE(), noise=0.0), "noise must be a positive variance, not 0.0"),
        (ExactGP(SE(), noise="0.1"), "noise must be a positive variance, not '0.1'"),
        (ExactGP(SE(), learn="no"), "learn must be True or False, not 'no'"),
        (ExactGP(SE(), restarts=-1), "restarts must be a whole number from 0 on, not -1"),
        (ExactGP(SE(), max_iter=0), "max_iter must be a whole number from 1 on, not 0"),
        (ExactGP(SE(), learn_rows=0), "learn_rows must be a whole number from 2 on or None, not 0"),
        (ExactGP(SE(), fixed="noise"), "fixed must be a list of names, not 'noise'"),
        (ExactGP(SE(), normalize_y="yes"), "normalize_y must be True or False, not 'yes'"),
        (ExactGP([]), "modes must be a kernel"),
        (ExactGP([Mode("x0", SE()), Mode("x0", SE())]), "must differ in their columns"),
        (ExactGP(SE(), scale=-1.0), "scale must be a positive variance, not -1.0"),
    ],
)
def test_bad_settings_are_refused_with_a_sentence(data, gp, message):
    with pytest.raises(InputError, match=message):
        gp.fit(*data[:2])


def test_one_kind_of_spread_at_a_time(data):
    gp = ExactGP(SE(), learn=False).fit(*data[:2])
    with pytest.raises(InputError, match="not for both"):
        gp.predict(data[2], return_std=True, return_cov=True)


@pytest.mark.parametrize("option", ["return_std", "return_cov", "include_noise"])
def test_options_of_predictions_are_true_or_false(data, option):
    gp = ExactGP(SE(), learn=False).fit(*data[:2])
    with pytest.raises(InputError, match=f"{option} must be True or False, not 'no'"):
        gp.predict(data[2], **{option: "no"})


def test_learning_keeps_one_square_array(monkeypatch):
    monkeypatch.setattr("tuckergp.gp.dense.BLOCK", 16)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 2)), rng.normal(size=1000)
    gp = ExactGP(SE([1.0, 1.0]) + Matern32(1.0), max_iter=1)
    tracemalloc.start()
    gp.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * 8 * 1000**2


@parametrize_with_checks([ExactGP(max_iter=5)])
def test_estimator_contract(estimator, check):
    check(estimator)
