"""Vecchia's approximation against the dense Gaussian process, to which it is equal where all places are neighbours."""

import numpy as np
import pytest

from tuckergp.compute.places import coarse_to_fine, nearest_earlier
from tuckergp.errors import NotPositiveDefinite
from tuckergp.kernels import Matern12, Matern32, Matern52
from tuckergp.residuals import vecchia
from tuckergp.residuals.markov import independent_ranks
from tuckergp.residuals.vecchia import JITTER, PlaceData, VecchiaProcess

KERNELS = {1: Matern12(), 2: Matern32(), 3: Matern52()}
orders = pytest.mark.parametrize("order", KERNELS)


def places(rows=25, p=2, seed=0):
    X = 3 * np.random.default_rng(seed).random((rows, p))
    return X[coarse_to_fine(X)]


def exact(order, X):
    return VecchiaProcess(X, nearest_earlier(X, len(X) - 1), order), KERNELS[order](X) + JITTER * np.eye(len(X))


def data(rows, r, seed=1):
    """Statistics of two observations per place, none of the fourth, so that A is singular for r = 3."""
    rng = np.random.default_rng(seed)
    z, y = rng.standard_normal((rows, 2, r)), rng.standard_normal((rows, 2))
    z[3] = 0
    root = rng.standard_normal((r + 2, r))
    mean = rng.standard_normal((rows, r))
    return np.einsum("mij,mik->mjk", z, z), np.einsum("mij,mi->mj", z, y), mean, root.T @ root


def dense_posterior(K, A, b, mean, precision):
    r = len(precision)
    Q = np.kron(np.linalg.inv(K), precision)
    for m in range(len(K)):
        Q[m * r : (m + 1) * r, m * r : (m + 1) * r] += A[m]
    right = (b - np.einsum("mij,mj->mi", A, mean)).ravel()
    return np.linalg.solve(Q, right).reshape(mean.shape), np.linalg.inv(Q)


@orders
@pytest.mark.parametrize("p", [1, 2, 5])
def test_with_all_neighbours_it_is_the_dense_process(order, p):
    X = places(p=p)
    process, K = exact(order, X)
    root = process.colour(np.eye(len(X)))
    np.testing.assert_allclose(root @ root.T, K, atol=1e-12)
    np.testing.assert_allclose(process.log_determinant, np.linalg.slogdet(K)[1], rtol=1e-9)
    E = np.random.default_rng(0).standard_normal((len(X), 3))
    np.testing.assert_allclose(process.whiten(E).T @ process.whiten(E), E.T @ np.linalg.solve(K, E), rtol=1e-6)
    np.testing.assert_allclose(process.colour(process.whiten(E)), E, atol=1e-9)
    np.testing.assert_allclose(process.covariance_times(E), K @ E, atol=1e-10)


def test_with_few_neighbours_a_place_is_what_they_say():
    # K^-1 = R'R by the definition: each row a regression on the neighbours
    X = places()
    neighbours = nearest_earlier(X, 3)
    process, K = VecchiaProcess(X, neighbours, 2), Matern32()(X) + JITTER * np.eye(len(X))
    R = np.zeros((len(X), len(X)))
    for i, near in enumerate(neighbours):
        near = near[near >= 0]
        w = np.linalg.solve(K[np.ix_(near, near)], K[near, i])
        R[i, i], R[i, near] = 1, -w
        R[i] /= np.sqrt(K[i, i] - K[i, near] @ w)
    np.testing.assert_allclose(process.whiten(np.eye(len(X))), R, rtol=1e-7, atol=1e-9)


@orders
@pytest.mark.parametrize("r", [1, 3])
@pytest.mark.parametrize("neighbours", [24, 4])
def test_values_given_data_have_the_dense_mean_and_covariance(order, r, neighbours):
    """A draw is linear in its noise, so the covariance of draws is known exactly, without Monte Carlo."""
    X = places()
    process = VecchiaProcess(X, nearest_earlier(X, neighbours), order)
    root = process.colour(np.eye(len(X)))
    A, b, mean, precision = data(len(X), r)
    expected, covariance = dense_posterior(root @ root.T, A, b, mean, precision)
    found = process.values_given_data(A, b, mean, precision)
    np.testing.assert_allclose(found, expected, atol=2e-5)
    units = np.eye(2 * len(X) * r).reshape(-1, 2, len(X), r)
    moved = np.stack([process.values_given_data(A, b, mean, precision, unit) - found for unit in units])
    moved = moved.reshape(len(units), -1)
    np.testing.assert_allclose(moved.T @ moved, covariance, atol=5e-5)


def test_many_ranks_have_fewer_neighbours_in_the_preconditioner_and_the_same_answer(monkeypatch):
    X = places(60)
    process = VecchiaProcess(X, nearest_earlier(X, 20), 1)
    A, b, mean, precision = data(60, 3)
    found = process.values_given_data(A, b, mean, precision)
    monkeypatch.setattr(vecchia, "WIDEST", 6)
    assert PlaceData.of(process, A, b).neighbours.shape == (60, 4)
    np.testing.assert_allclose(process.values_given_data(A, b, mean, precision), found, atol=2e-5)


@orders
@pytest.mark.parametrize("r", [1, 3])
def test_log_evidence_differs_between_lengthscales_as_the_dense_one(order, r):
    A, b, mean, precision = data(20, r)
    _, A, b = independent_ranks(A, b, mean, precision)
    found, expected = [], []
    for lengthscale in (0.5, 2.0):
        process, K = exact(order, places(20) / lengthscale)
        found.append(process.log_evidence(A, b))
        # log of the integral of exp(b'e - e'A e / 2) N(e; 0, K kron I)
        mode, covariance = dense_posterior(K, A, b, np.zeros_like(b), np.eye(r))
        expected.append((mode * b).sum() / 2 + (np.linalg.slogdet(covariance)[1] - r * np.linalg.slogdet(K)[1]) / 2)
    assert found[1] - found[0] == pytest.approx(expected[1] - expected[0], rel=1e-6)


@orders
def test_new_places_follow_known_ones_jointly(order):
    X = places(30)
    neighbours = np.tril(np.broadcast_to(np.arange(30), (8, 30)) + 1, 21) - 1
    process = VecchiaProcess(X, neighbours.astype(np.int32), order)
    K = KERNELS[order](X) + JITTER * np.eye(30)
    E = np.random.default_rng(0).standard_normal((22, 2))
    weights = np.linalg.solve(K[:22, :22], K[:22, 22:]).T
    mean = process.colour(np.zeros((8, 2)), E)
    np.testing.assert_allclose(mean, weights @ E, atol=1e-5)
    root = process.colour(np.eye(8), np.zeros((22, 8)))
    np.testing.assert_allclose(root @ root.T, K[22:, 22:] - weights @ K[:22, 22:], atol=1e-8)


@orders
def test_places_as_close_as_rounding_are_no_trouble(order):
    X = np.repeat(places(10), 3, axis=0)
    X[1::3] += 1e-9
    process = VecchiaProcess(X, nearest_earlier(X, 15), order)
    A, b, mean, precision = data(30, 1)
    E = process.values_given_data(A, b, mean, precision, np.random.default_rng(0).standard_normal((2, 30, 1)))
    assert np.isfinite(E).all()
    np.testing.assert_allclose(E[::3], E[2::3], atol=1e-3)


def test_data_or_places_that_are_not_numbers_are_refused():
    X = places(6)
    process = VecchiaProcess(X, nearest_earlier(X, 3), 1)
    A, b, mean, precision = data(6, 1)
    with pytest.raises(FloatingPointError, match="statistics A of the places"):
        process.values_given_data(np.full_like(A, np.nan), b, mean, precision)
    with pytest.raises(NotPositiveDefinite, match="shorter lengthscales"):
        _ = VecchiaProcess(X * np.nan, nearest_earlier(X, 3), 1).R
