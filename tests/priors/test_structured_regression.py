"""Nested and spectral routes against dense algebra: the solution, the determinant and the quadratic form."""

import numpy as np
import pytest
from scipy import sparse

from tuckergp.priors import regressions as rows_module
from tuckergp.priors.nested import NestedRegression
from tuckergp.priors.regression import Regression
from tuckergp.priors.regressions import regression_of, weights_given_factors
from tuckergp.priors.spectral import SpectralRegression

TAU = np.array([0.3, 2.0, 1.5, 4.0])


def grouped(rng, wide, M=40, G=12):
    """A constant, six levels that vary within groups, one-hot groups, and features that are constant within groups."""
    group = np.concatenate([np.arange(G), rng.integers(0, G, M - G)])
    between = rng.standard_normal((G, wide)) * (rng.random((G, wide)) < 0.7)
    levels = np.eye(6)[rng.integers(0, 6, M)]
    features = np.hstack([np.ones((M, 1)), levels, 0.7 * np.eye(G)[group], between[group]])
    ends = np.cumsum([1, 6, G, wide])
    blocks = tuple(slice(int(e - s), int(e)) for e, s in zip(ends, [1, 6, G, wide], strict=True))
    return features, blocks


def solvers(features, blocks):
    return {
        "nested": NestedRegression(features, blocks, 2),
        "spectral": SpectralRegression(features, blocks),
        "plain": Regression(features, blocks),
    }


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("wide", [3, 30, 60])
@pytest.mark.parametrize("route", ["nested", "spectral", "plain"])
def test_every_route_agrees_with_dense_algebra(route, wide, kind):
    rng = np.random.default_rng(wide)
    dense, blocks = grouped(rng, wide)
    solver = solvers(sparse.csr_array(dense) if kind == "sparse" else dense, blocks)[route]
    M, n = dense.shape
    precision = np.repeat(TAU, solver.sizes)
    target, extra = rng.standard_normal((M, 3)), rng.standard_normal((n, 3))
    expected = np.linalg.solve(dense.T @ dense + np.diag(precision), dense.T @ target + extra)
    np.testing.assert_allclose(solver.solve(target, extra, TAU, np.zeros((n, 3))), expected, atol=1e-10)
    K = np.eye(M) + (dense / precision) @ dense.T
    log_det, quadratic = solver.collapse(target)(TAU)
    assert log_det == pytest.approx(np.linalg.slogdet(K)[1], abs=1e-9)
    np.testing.assert_allclose(quadratic, target.T @ np.linalg.solve(K, target), atol=1e-9)


@pytest.mark.parametrize("route", ["nested", "spectral", "plain"])
def test_one_function_of_precisions_serves_them_in_any_order(route):
    rng = np.random.default_rng(4)
    dense, blocks = grouped(rng, 30)
    solver = solvers(dense, blocks)[route]
    target = rng.standard_normal((len(dense), 2))
    evaluate = solver.collapse(target)
    for changed, value in [(0, 0.3), (3, 0.1), (1, 5.0), (0, 0.3), (3, 4.0), (2, 0.7), (3, 0.1)]:
        tau = TAU.copy()
        tau[changed] = value
        log_det, quadratic = evaluate(tau)
        K = np.eye(len(dense)) + (dense / np.repeat(tau, solver.sizes)) @ dense.T
        assert log_det == pytest.approx(np.linalg.slogdet(K)[1], abs=1e-9)
        np.testing.assert_allclose(quadratic, target.T @ np.linalg.solve(K, target), atol=1e-9)


def test_groups_without_features_of_their_own_need_no_factorisation():
    rng = np.random.default_rng(0)
    dense, blocks = grouped(rng, 3)
    onehot = dense[:, blocks[2]]
    solver = NestedRegression(onehot, [slice(0, onehot.shape[1])], 0)
    target = rng.standard_normal((len(onehot), 2))
    log_det, quadratic = solver.collapse(target)(np.array([1.5]))
    K = np.eye(len(onehot)) + onehot @ onehot.T / 1.5
    assert log_det == pytest.approx(np.linalg.slogdet(K)[1], abs=1e-9)
    np.testing.assert_allclose(quadratic, target.T @ np.linalg.solve(K, target), atol=1e-10)


@pytest.mark.parametrize("route", ["nested", "spectral"])
def test_draws_have_the_conditional_mean_and_covariance(route):
    # 4,000 independent draws; means within 5 standard errors, variances within 6 of theirs: false alarms below 1e-3
    rng = np.random.default_rng(3)
    dense, blocks = grouped(rng, 3, M=15, G=4)
    solver, r, count = solvers(dense, blocks)[route], 2, 4_000
    Lambda = np.array([[2.0, 0.7], [0.7, 1.0]])
    psi = rng.standard_normal((len(dense), r))
    start = np.zeros((dense.shape[1], r))
    draws = np.stack([weights_given_factors(solver, psi, TAU, start, Lambda, rng).ravel() for _ in range(count)])
    system = dense.T @ dense + np.diag(np.repeat(TAU, solver.sizes))
    mean = np.linalg.solve(system, dense.T @ psi).ravel()
    variance = np.diag(np.kron(np.linalg.inv(system), np.linalg.inv(Lambda)))
    assert (np.abs(draws.mean(axis=0) - mean) < 5 * np.sqrt(variance / count)).all()
    assert (np.abs(draws.var(axis=0) / variance - 1) < 6 * np.sqrt(2 / count)).all()


def test_the_cheapest_exact_route_is_chosen(monkeypatch):
    rng = np.random.default_rng(1)
    dense, blocks = grouped(rng, 30)
    features = sparse.csr_array(dense)
    assert isinstance(regression_of(features, blocks, 2), NestedRegression)
    assert isinstance(regression_of(features, blocks), Regression)
    monkeypatch.setattr(rows_module, "NARROW", 20)
    assert isinstance(regression_of(features, blocks), SpectralRegression)
    monkeypatch.setattr(rows_module, "LARGEST_DENSE", 2)
    monkeypatch.setattr(rows_module, "LARGEST_SPECTRUM", 2)
    assert isinstance(regression_of(features, blocks, 2), Regression)
