"""The full-rank model against the exact GP, and its two forms against each other."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.utils.estimator_checks import parametrize_with_checks

from tuckergp import Mode
from tuckergp.errors import InputError
from tuckergp.features import Cholesky, Fourier
from tuckergp.gp import ExactGP, FullRank, GridGP
from tuckergp.kernels import SE, Identity, Linear, Matern12, Periodic

GRID_MODES = [
    Mode(["station", "height"], Identity("station") + Linear("height")),
    Mode("day", 0.5 * Periodic(4.0) + Matern12(2.0), features=Cholesky(0.0)),
]


@pytest.fixture(params=[256, 5], ids=["one block", "many blocks"])
def grid(request, monkeypatch):
    """Eight days at three stations, some cells missing."""
    monkeypatch.setattr("tuckergp.gp.dense.BLOCK", request.param)
    rng = np.random.default_rng(0)
    station, day = (axis.ravel() for axis in np.meshgrid(np.arange(3), np.arange(8.0), indexing="ij"))
    X = {"station": np.array(list("abc"))[station], "height": np.array([0.2, 1.0, -0.5])[station], "day": day}
    y = 2 + station + np.sin(day) + 0.2 * rng.standard_normal(24)
    seen = rng.permutation(24)[:19]
    return X, y, {name: values[seen] for name, values in X.items()}, y[seen]


@pytest.mark.parametrize("space", ["primal", "dual"])
def test_with_exact_features_on_a_grid_it_is_the_gaussian_process(grid, space):
    X, _, seen, y = grid
    model = FullRank(GRID_MODES, scale=0.7, noise=0.05, space=space).fit(seen, y)
    gp = ExactGP(GRID_MODES, scale=0.7, noise=0.05, learn=False).fit(seen, y)
    for included in (True, False):
        found, expected = (m.predict(X, return_std=True, include_noise=included) for m in (model, gp))
        np.testing.assert_allclose(found[0], expected[0], atol=1e-8)
        np.testing.assert_allclose(found[1], expected[1], atol=1e-8)
        found, expected = (m.predict(X, return_cov=True, include_noise=included) for m in (model, gp))
        np.testing.assert_allclose(found[1], expected[1], atol=1e-8)
    assert model.log_marginal_likelihood_ == pytest.approx(gp.log_marginal_likelihood_, abs=1e-8)


@pytest.mark.parametrize("reference", [ExactGP, GridGP])
def test_it_takes_over_what_a_gaussian_process_learned(grid, reference):
    X, _, seen, y = grid
    modes = [Mode(["station", "height"], 0.5 * Identity("station")), Mode("day", SE(3.0) + Periodic(4.0))]
    gp = reference(modes, max_iter=3).fit(seen, y)
    assert gp.modes_[1].kernel != modes[1].kernel
    scale, noise = (float(gp.hyperparameters_[name][0]) for name in ("scale", "noise"))
    model = FullRank(gp.modes_, scale=scale, noise=noise).fit(seen, y)
    np.testing.assert_allclose(model.predict(X), gp.predict(X), atol=1e-6)


def test_both_forms_have_the_same_weights_and_the_smaller_is_chosen(grid):
    _, _, seen, y = grid
    few = [Mode("height", Linear()), Mode("day", SE(3.0), features=Fourier(4))]
    primal, dual = (FullRank(few, space=space, random_state=0).fit(seen, y) for space in ("auto", "dual"))
    assert (primal.space_, dual.space_) == ("primal", "dual")
    assert primal.weights().shape == (2, 5)
    np.testing.assert_allclose(primal.weights(), dual.weights(), atol=1e-9)
    assert FullRank(GRID_MODES).fit(seen, y).space_ == "dual"


@pytest.mark.parametrize("space", ["primal", "dual"])
def test_with_random_features_it_is_linear_regression_on_their_products(space):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    modes = [Mode("x0", SE(1.0), Fourier(4), constant=False), Mode("x1", SE(2.0), Fourier(6), constant=False)]
    model = FullRank(modes, scale=2.0, noise=0.3, space=space, normalize_y=False, random_state=0).fit(X, y)
    maps = [mode.blocks[0].map for mode in model.modes_]
    left, right = maps[0].transform({"x0": X[:, 0]}), maps[1].transform({"x1": X[:, 1]})
    phi = np.stack([np.kron(a, b) for a, b in zip(left, right, strict=True)])
    weights = np.linalg.solve(phi.T @ phi + 0.15 * np.eye(24), phi.T @ y)
    np.testing.assert_allclose(model.weights().ravel(), weights, atol=1e-10)
    np.testing.assert_allclose(model.predict(X), phi @ weights, atol=1e-10)
    law = stats.multivariate_normal(np.zeros(30), 2.0 * phi @ phi.T + 0.3 * np.eye(30))
    assert model.log_marginal_likelihood_ == pytest.approx(law.logpdf(y), abs=1e-8)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (FullRank(scale=0.0), "scale must be a positive variance"),
        (FullRank(noise=-1.0), "noise must be a positive variance"),
        (FullRank(space="both"), "space must be"),
    ],
)
def test_bad_settings_are_refused_with_a_sentence(model, message):
    with pytest.raises(InputError, match=message):
        model.fit([[1.0], [2.0]], [1.0, 2.0])


@parametrize_with_checks([FullRank()])
def test_estimator_contract(estimator, check):
    check(estimator)
