"""Weights given factors and weights given data: every route solves the same system, and its noise is the right one."""

import numpy as np
import pytest
from scipy import sparse

from tuckergp.errors import InputError
from tuckergp.features import Fourier, Hashing
from tuckergp.kernels import SE, Cosine
from tuckergp.priors import regression, weights
from tuckergp.priors.regression import Regression
from tuckergp.priors.regressions import weights_given_factors
from tuckergp.priors.weights import weights_given_data

SHAPES = {"primal": (12, 5), "dual": (5, 12)}
BLOCKS = {5: (slice(0, 2), slice(2, 5)), 12: (slice(0, 2), slice(2, 12))}


def tables(rng, M, n, kind):
    features = rng.standard_normal((M, n))
    features[rng.random((M, n)) < 0.3] = 0.0
    return features, sparse.csr_array(features) if kind == "sparse" else features


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("route", ["primal", "dual", "iterative"])
def test_every_route_solves_the_same_system(route, kind, monkeypatch):
    rng = np.random.default_rng(0)
    if route == "iterative":
        monkeypatch.setattr(regression, "LARGEST_DENSE", 0)
    M, n = SHAPES.get(route, (12, 5))
    dense, features = tables(rng, M, n, kind)
    tau = np.array([0.5, 2.0])
    solver = Regression(features, BLOCKS[n])
    assert solver.route == route
    target, extra = rng.standard_normal((M, 3)), rng.standard_normal((n, 3))
    system = dense.T @ dense + np.diag(np.repeat(tau, solver.sizes))
    expected = np.linalg.solve(system, dense.T @ target + extra)
    np.testing.assert_allclose(solver.solve(target, extra, tau, np.zeros((n, 3))), expected, rtol=1e-6, atol=1e-7)


def many_draws(draw, count, k):
    """As many flat draws (n r), from a function that makes k independent ones side by side, (n, k r)."""
    drawn = np.stack([draw() for _ in range(count // k)])
    calls, n, columns = drawn.shape
    return drawn.reshape(calls, n, k, columns // k).swapaxes(1, 2).reshape(calls * k, -1)


@pytest.mark.parametrize("route", ["primal", "dual", "iterative"])
def test_draws_of_weights_given_factors_have_the_conditional_mean_and_covariance(route, monkeypatch):
    # 6,000 independent draws; means within 5 standard errors, covariances within 5 of theirs (false alarms below 1e-3)
    rng = np.random.default_rng(1)
    if route == "iterative":
        monkeypatch.setattr(regression, "LARGEST_DENSE", 0)
    M, n = SHAPES.get(route, (12, 5))
    dense, features = tables(rng, M, n, "sparse")
    tau, r, count = np.array([0.5, 2.0]), 2, 6_000
    precision = np.array([[2.0, 0.7], [0.7, 1.0]])
    solver, psi = Regression(features, BLOCKS[n]), rng.standard_normal((M, r))
    k = 20  # draws at once: columns side by side, each r of them with a block of Lambda of their own
    many, start, blocks = np.tile(psi, k), np.zeros((n, k * r)), np.kron(np.eye(k), precision)
    draws = many_draws(lambda: weights_given_factors(solver, many, tau, start, blocks, rng), count, k)
    assert draws.shape == (count, n * r)
    system = dense.T @ dense + np.diag(np.repeat(tau, solver.sizes))
    mean = np.linalg.solve(system, dense.T @ psi).ravel()
    covariance = np.kron(np.linalg.inv(system), np.linalg.inv(precision))
    sd = np.sqrt(np.diag(covariance))
    assert (np.abs(draws.mean(axis=0) - mean) < 5 * sd / np.sqrt(count)).all()
    error = np.abs(np.cov(draws.T) - covariance) / np.sqrt((np.outer(sd, sd) ** 2 + covariance**2) / count)
    assert error.max() < 5


@pytest.mark.parametrize("route", ["cholesky", "iterative"])
def test_draws_of_weights_given_data_have_the_conditional_mean_and_covariance(route, monkeypatch):
    rng = np.random.default_rng(2)
    if route == "iterative":
        monkeypatch.setattr(weights, "LARGEST_DENSE", 0)
    M, n, r, count = 6, 4, 2, 6_000
    dense, features = tables(rng, M, n, "sparse")
    z = rng.standard_normal((M, 1, r))  # one observation a row: A_m is singular
    A, b = z.transpose(0, 2, 1) @ z, rng.standard_normal((M, r))
    tau, precision = rng.uniform(0.5, 2.0, n), np.array([[2.0, 0.7], [0.7, 1.0]])
    system = sum(np.kron(np.outer(phi, phi), a) for phi, a in zip(dense, A, strict=True)) + np.kron(
        np.diag(tau), precision
    )
    mean, covariance = np.linalg.solve(system, (dense.T @ b).ravel()), np.linalg.inv(system)
    for table in (dense, features):
        point = weights_given_data(table, A, b, tau, precision, np.zeros((n, r)))
        np.testing.assert_allclose(point.ravel(), mean, rtol=1e-6, atol=1e-8)
    # draws at once are columns side by side, which a factored system cannot use; that one is quicker to form if dense
    k, features = (20, features) if route == "iterative" else (1, dense)
    many, start = (np.kron(np.eye(k), A), np.tile(b, k)), np.zeros((n, k * r))
    blocks = np.kron(np.eye(k), precision)
    draws = many_draws(lambda: weights_given_data(features, *many, tau, blocks, start, rng), count, k)
    assert draws.shape == (count, n * r)
    sd = np.sqrt(np.diag(covariance))
    assert (np.abs(draws.mean(axis=0) - mean) < 5 * sd / np.sqrt(count)).all()
    error = np.abs(np.cov(draws.T) - covariance) / np.sqrt((np.outer(sd, sd) ** 2 + covariance**2) / count)
    assert error.max() < 5


@pytest.mark.parametrize("largest", [4_000, 0], ids=["cholesky", "iterative"])
def test_noise_of_weights_given_data_is_as_large_as_asked_for(largest, monkeypatch):
    monkeypatch.setattr(weights, "LARGEST_DENSE", largest)
    rng = np.random.default_rng(3)
    z = rng.standard_normal((6, 2))
    given = (rng.standard_normal((6, 4)), np.einsum("mi,mj->mij", z, z), z, np.ones(4), np.eye(2), np.zeros((4, 2)))
    mean = weights_given_data(*given)
    whole, half = (weights_given_data(*given, np.random.default_rng(4), noise) for noise in (1.0, 0.5))
    np.testing.assert_allclose(half - mean, (whole - mean) / 2, atol=1e-6)


def test_collinear_features_do_not_end_a_fit():
    """A hundred waves that are twenty functions, and a prior that is nothing beside the data."""
    rng = np.random.default_rng(5)
    x = rng.uniform(-1.7, 1.7, 300)
    features = Fourier(100).fit_transform(x, SE(1.0), random_state=0)
    z = rng.standard_normal(3)
    A, f = np.broadcast_to(1e6 * np.outer(z, z), (300, 3, 3)), np.sin(x)
    tau, start = np.full(100, 1e-13), np.zeros((100, 3))
    for stream in (None, rng):
        B = weights_given_data(features, A, 1e6 * f[:, None] * z, tau, 5 * np.eye(3), start, stream)
        np.testing.assert_allclose(features @ B @ z, f, atol=0.01)  # ten standard deviations of the noise


def test_features_of_very_different_sizes_do_not_end_a_fit():
    """As a smooth process makes them of a season: columns nearly alike, and huge beside their prior."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((50, 6)))[0] * 10.0 ** np.arange(0, 12, 2)
    features = np.concatenate([Q, Q @ rng.standard_normal((6, 6)), 1e10 * Q[:, :2] + 1e-3 * Q[:, 2:4]], axis=1)
    target = features[:, :1] + 0.01 * rng.standard_normal((50, 1))
    B = Regression(features, [slice(0, 14)]).solve(target, np.zeros((14, 1)), np.array([1e-3]), np.zeros((14, 1)))
    assert np.isfinite(B).all()
    assert np.abs(features @ B - target).max() < 0.1 * np.abs(target).max()


def test_hashing_leaves_cosine_to_its_exact_features():
    assert not Hashing(8).suits(Cosine("genres"))
    with pytest.raises(InputError, match="no exact features to hash"):
        Hashing(8).fit({"genres": ["a|b", "b"]}, Cosine("genres"))
