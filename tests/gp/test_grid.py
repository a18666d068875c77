"""The grid GP against the exact GP, on full grids and with missing cells."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from tuckergp import Mode
from tuckergp.errors import InputError, NotConvergedWarning
from tuckergp.gp import ExactGP, GridGP
from tuckergp.gp.kronecker import KroneckerSystem, conjugate_gradients, contract, multiply
from tuckergp.kernels import SE, Identity, Matern32, Periodic

MODES = [
    Mode("station", Identity()),
    Mode("day", SE(2.0) + 0.4 * Periodic(4.0, 0.9), constant=False),
    Mode(["u", "v"], Matern32([0.7, 1.5]), constant=False, whiten=True),
]
SETTINGS = {"scale": 0.7, "noise": 0.05, "learn": False}


@pytest.fixture
def cells():
    """Three stations, seven days and two places, in random order; and inputs off the grid."""
    rng = np.random.default_rng(0)
    order = rng.permutation(42)
    s, d, p = (axis.ravel()[order] for axis in np.meshgrid(range(3), range(7), range(2), indexing="ij"))
    X = {
        "station": np.array(list("abc"))[s],
        "day": d**1.1,
        "u": np.array([0.1, 0.9])[p],
        "v": np.array([2.0, -1.0])[p],
    }
    y = 2 + s + np.sin(d) * (1 + p) + 0.2 * rng.standard_normal(42)
    new = {"station": np.array(["b", "zz", "a"]), "day": [2.5, 1.0, 9.0], "u": [0.1, 0.5, 0.9], "v": [2.0, 0.0, -1.0]}
    return X, y, new


def some(X, rows):
    return {name: values[rows] for name, values in X.items()}


def assert_same_predictions(mine, exact, X, atol):
    for options in ({"return_std": True}, {"return_std": True, "include_noise": False}, {"return_cov": True}):
        for found, expected in zip(mine.predict(X, **options), exact.predict(X, **options), strict=True):
            np.testing.assert_allclose(found, expected, atol=atol)
    np.testing.assert_allclose(mine.predict(X), exact.predict(X), atol=atol)


def test_a_full_grid_is_exact(cells):
    X, y, new = cells
    mine, exact = GridGP(MODES, **SETTINGS).fit(X, y), ExactGP(MODES, **SETTINGS).fit(X, y)
    assert mine.shape_ == (3, 7, 2)
    for inputs in (X, new):
        assert_same_predictions(mine, exact, inputs, 1e-8)
    assert mine.log_marginal_likelihood_ == pytest.approx(exact.log_marginal_likelihood_, abs=1e-8)
    (value, slopes), (expected, exact_slopes) = (m.log_marginal_likelihood(gradient=True) for m in (mine, exact))
    assert value == pytest.approx(expected, abs=1e-8)
    assert set(slopes) == set(exact_slopes)
    for name, slope in slopes.items():
        np.testing.assert_allclose(slope, exact_slopes[name], atol=1e-7, err_msg=name)


@pytest.mark.parametrize("n", [38, 15])
def test_predictions_with_missing_cells_are_exact(cells, n):
    X, y, new = cells
    seen = some(X, np.arange(n))
    settings = SETTINGS | {"noise": 0.01}
    mine, exact = GridGP(MODES, **settings).fit(seen, y[:n]), ExactGP(MODES, **settings).fit(seen, y[:n])
    for inputs in (X, new):
        assert_same_predictions(mine, exact, inputs, 1e-6)


@pytest.mark.parametrize("n", [42, 38, 15])
def test_gradients_are_those_of_finite_differences(cells, n):
    X, y, _ = cells
    gp = GridGP(MODES, tolerance=1e-12, **SETTINGS).fit(some(X, np.arange(n)), y[:n])
    _, slopes = gp.log_marginal_likelihood(gradient=True)
    assert set(slopes) == set(gp.hyperparameters_)
    for name, values in gp.hyperparameters_.items():
        for j in range(len(values)):
            step = np.zeros(len(values))
            step[j] = 1e-5
            above, below = (gp.log_marginal_likelihood({name: values * np.exp(s)}) for s in (step, -step))
            assert slopes[name][j] == pytest.approx((above - below) / 2e-5, rel=1e-5, abs=1e-6), name


def test_the_approximate_likelihood_is_near_the_exact_one(cells):
    X, y, _ = cells
    seen = some(X, np.arange(36))
    mine, exact = (model(MODES, **SETTINGS).fit(seen, y[:36]) for model in (GridGP, ExactGP))
    assert mine.log_marginal_likelihood_ == pytest.approx(exact.log_marginal_likelihood_, abs=3.0)


def test_learning_on_a_full_grid_finds_what_the_exact_gp_finds(cells):
    X, y, _ = cells
    modes = [Mode("station", Identity()), Mode("day", SE(1.0), constant=False), Mode("u", Identity(), constant=False)]
    mine, exact = GridGP(modes).fit(X, y), ExactGP(modes).fit(X, y)
    assert mine.learned_.converged
    assert mine.log_marginal_likelihood_ == pytest.approx(exact.log_marginal_likelihood_, abs=1e-3)


def test_learning_with_missing_cells_beats_the_start():
    rng = np.random.default_rng(1)
    a, b = (axis.ravel() for axis in np.meshgrid(np.arange(12.0), np.arange(15.0), indexing="ij"))
    truth = np.sin(a / 2) * np.cos(b / 3)
    y = truth + 0.1 * rng.standard_normal(180)
    seen = rng.permutation(180)[:90]
    modes = [Mode("x0", SE(0.5), constant=False), Mode("x1", SE(0.5), constant=False)]
    X = np.stack([a, b], axis=1)
    start = GridGP(modes, learn=False).fit(X[seen], y[seen])
    learned = GridGP(modes).fit(X[seen], y[seen])
    error, error_at_start = (np.sqrt(np.mean((gp.predict(X) - truth) ** 2)) for gp in (learned, start))
    assert error < 0.08 < error_at_start


def test_products_go_mode_by_mode():
    rng = np.random.default_rng(2)
    A, B, T = rng.normal(size=(2, 3)), rng.normal(size=(5, 4)), rng.normal(size=(3, 4, 2))
    expected = np.kron(A, B) @ T.reshape(12, 2)
    np.testing.assert_allclose(multiply([A, B], T).reshape(10, 2), expected)
    codes = [np.array([1, 0, 1]), np.array([4, 2, 0])]
    np.testing.assert_allclose(contract([A, B], codes, T[..., 0]), expected[:, 0].reshape(2, 5)[codes[0], codes[1]])


def test_the_preconditioner_saves_steps():
    rng = np.random.default_rng(3)
    grams = [SE(2.0)(np.arange(12.0)), SE(3.0)(np.arange(9.0))]
    system = KroneckerSystem(grams, 1.0, 1e-3, np.sort(rng.permutation(108)[:60]))
    b = rng.normal(size=(60, 2))
    dense = np.kron(*grams)[np.ix_(system.cells, system.cells)] + 1e-3 * np.eye(60)
    np.testing.assert_allclose(system.solve(b), np.linalg.solve(dense, b), rtol=1e-5)
    with pytest.warns(NotConvergedWarning, match="8 steps"):
        conjugate_gradients(system.apply, lambda v: v, b, 1e-8, 8)
    found = conjugate_gradients(system.apply, system.precondition, b, 1e-8, 8)
    np.testing.assert_allclose(dense @ found, b, atol=1e-6)


def test_a_preconditioner_of_low_rank_changes_no_answer(cells, monkeypatch):
    X, y, new = cells
    monkeypatch.setattr("tuckergp.gp.kronecker.RANK", 4)
    seen = some(X, np.arange(30))
    mine, exact = (model(MODES, **SETTINGS).fit(seen, y[:30]) for model in (GridGP, ExactGP))
    assert_same_predictions(mine, exact, new, 1e-6)


@pytest.mark.parametrize("share", [1.0, 0.6])
def test_eigenvectors_of_smooth_kernels_are_few_and_change_no_answer(monkeypatch, share):
    rng = np.random.default_rng(4)
    X = np.stack([axis.ravel() for axis in np.meshgrid(np.arange(4.0), np.arange(40.0), indexing="ij")], axis=1)
    X = X[rng.permutation(160)[: int(160 * share)]]
    y = np.sin(X[:, 0] + X[:, 1] / 9) + 0.1 * rng.standard_normal(len(X))
    modes = [Mode("x0", Matern32(2.0)), Mode("x1", SE(15.0), constant=False)]
    whole = GridGP(modes, noise=0.02, learn=False).fit(X, y)
    monkeypatch.setattr("tuckergp.gp.kronecker.SMALL", 10)
    thin = GridGP(modes, noise=0.02, learn=False).fit(X, y)
    new = np.array([[1.0, 7.5], [2.5, 30.0], [0.0, 60.0]])
    assert thin._system.spectrum.size < whole._system.spectrum.size
    assert_same_predictions(thin, whole, new, 1e-7)
    (value, slopes), (expected, expected_slopes) = (gp.log_marginal_likelihood(gradient=True) for gp in (thin, whole))
    assert value == pytest.approx(expected, abs=1e-6)
    for name, slope in slopes.items():
        np.testing.assert_allclose(slope, expected_slopes[name], rtol=1e-5, atol=1e-5, err_msg=name)


def test_what_is_no_grid_is_refused(cells, monkeypatch):
    X, y, _ = cells
    twice = np.r_[np.arange(10), 3]
    with pytest.raises(InputError, match="rows 3 and 10 have the same inputs"):
        GridGP(MODES).fit(some(X, twice), y[twice])
    monkeypatch.setattr("tuckergp.gp.grid.LARGEST_GRID", 40)
    with pytest.raises(InputError, match="3 x 7 x 2 cells for 42 observations"):
        GridGP(MODES).fit(X, y)


def test_it_is_cloned_by_its_parameters():
    gp = GridGP(MODES, noise=0.3, fixed=("period",), max_cg=7)
    assert clone(gp).get_params() == gp.get_params()
