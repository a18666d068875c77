"""Processes of places against linear algebra: the exact one, and Vecchia's approximation, exact with all neighbours."""

import numpy as np
import pytest

from tuckergp.compute.places import Search, coarse_to_fine, nearest_earlier
from tuckergp.errors import NotPositiveDefinite
from tuckergp.kernels import Matern12, Matern32, Matern52
from tuckergp.residuals import dense, vecchia
from tuckergp.residuals.dense import DenseProcess, NewAmongFew
from tuckergp.residuals.markov import independent_ranks
from tuckergp.residuals.process import JITTER
from tuckergp.residuals.vecchia import NewAmongMany, VecchiaProcess

KERNELS = {1: Matern12(), 2: Matern32(), 3: Matern52()}
orders = pytest.mark.parametrize("order", KERNELS)


def places(rows=25, p=2, seed=0):
    X = 3 * np.random.default_rng(seed).random((rows, p))
    return X[coarse_to_fine(X)]


def with_all_neighbours(X, order):
    return VecchiaProcess(X, nearest_earlier(X, len(X) - 1), order)


exact = pytest.mark.parametrize("process_of", [with_all_neighbours, DenseProcess])


def covariance(order, X):
    return KERNELS[order](X) + JITTER * np.eye(len(X))


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


@exact
@orders
@pytest.mark.parametrize("p", [1, 2, 5])
def test_an_exact_process_has_the_covariance_of_the_kernel(process_of, order, p):
    X = places(p=p)
    process, K = process_of(X, order), covariance(order, X)
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
@pytest.mark.parametrize("neighbours", [24, 4, None])
def test_values_given_data_have_the_dense_mean_and_covariance(order, r, neighbours):
    """A draw is linear in its noise, so the covariance of draws is known exactly, without Monte Carlo."""
    X = places()
    sparse = None if neighbours is None else VecchiaProcess(X, nearest_earlier(X, neighbours), order)
    process = sparse or DenseProcess(X, order)
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
    assert process.data(A, b).neighbours.shape == (60, 4)
    np.testing.assert_allclose(process.values_given_data(A, b, mean, precision), found, atol=2e-5)


@orders
@pytest.mark.parametrize(("process_of", "r"), [(with_all_neighbours, 1), (with_all_neighbours, 3), (DenseProcess, 1)])
def test_log_evidence_differs_between_lengthscales_as_the_dense_one(process_of, order, r):
    A, b, mean, precision = data(20, r)
    _, A, b = independent_ranks(A, b, mean, precision)
    found, expected = [], []
    for lengthscale in (0.5, 2.0):
        X = places(20) / lengthscale
        K = covariance(order, X)
        found.append(process_of(X, order).log_evidence(A, b))
        # log of the integral of exp(b'e - e'A e / 2) N(e; 0, K kron I)
        mode, C = dense_posterior(K, A, b, np.zeros_like(b), np.eye(r))
        expected.append((mode * b).sum() / 2 + (np.linalg.slogdet(C)[1] - r * np.linalg.slogdet(K)[1]) / 2)
    assert found[1] - found[0] == pytest.approx(expected[1] - expected[0], rel=1e-6)


def test_data_that_tell_ranks_apart_have_their_density_also_for_several():
    """Along the axes of A, the exact process treats each rank for itself."""
    X, axes = places(20), np.linalg.qr(np.random.default_rng(2).standard_normal((2, 2)))[0]
    A, b, _, _ = data(20, 1)
    apart = np.concatenate([A, 3 * A], axis=2) * np.eye(2)
    both = DenseProcess(X, 2).log_evidence(axes @ apart @ axes.T, np.concatenate([b, 2 * b], axis=1) @ axes.T)
    one, other = (DenseProcess(X, 2).log_evidence(scale * A, by * b) for scale, by in ((1, 1), (3, 2)))
    assert both == pytest.approx(one + other, rel=1e-9)


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("lengthscale", [[0.8], [0.5, 2.0]])
def test_new_places_have_the_dense_mean_and_covariance_among_few_and_among_many(lengthscale, joint):
    """With all places around, both are exact; values are linear in their noise."""
    X, lengthscale = places(30), np.array(lengthscale)
    known, new = X[:20], np.vstack([X[20:], X[20] + 1e-10])
    unit = lengthscale / lengthscale[0]
    among = [NewAmongMany(Search(known / unit), new, unit, 2, 20, 10 if joint else 0, joint)]
    among += [NewAmongFew(known, new, 2)] if joint else []
    K = covariance(2, np.vstack([known, new]) / lengthscale)
    E = np.random.default_rng(0).standard_normal((20, 2))
    weights = np.linalg.solve(K[:20, :20], K[:20, 20:]).T
    conditional = K[20:, 20:] - weights @ K[:20, 20:]
    for each in among:
        np.testing.assert_allclose(each.values(lengthscale, E), weights @ E, atol=1e-5)
        root = each.values(lengthscale, np.zeros((20, len(new))), np.eye(len(new)))
        expected = conditional if joint else np.diag(np.diagonal(conditional))
        np.testing.assert_allclose(root @ root.T, expected, atol=1e-7)


def test_new_places_are_drawn_in_groups_where_there_are_many(monkeypatch):
    X = places(30)
    noise, E = np.random.default_rng(0).standard_normal((2, 10, 1)), np.ones((20, 1))
    monkeypatch.setattr(dense, "TOGETHER", 4)
    found = NewAmongFew(X[:20], X[20:], 1).values(np.ones(1), E, noise[0])
    for some in (slice(0, 4), slice(4, 8), slice(8, 10)):
        group = NewAmongFew(X[:20], X[20:][some], 1).values(np.ones(1), E, noise[0][some])
        np.testing.assert_allclose(found[some], group, atol=1e-12)


@pytest.mark.parametrize(
    "process_of", [lambda X, order: VecchiaProcess(X, nearest_earlier(X, 15), order), DenseProcess]
)
@orders
def test_places_as_close_as_rounding_are_no_trouble(process_of, order):
    X = np.repeat(places(10), 3, axis=0)
    X[1::3] += 1e-9
    process = process_of(X, order)
    A, b, mean, precision = data(30, 1)
    E = process.values_given_data(A, b, mean, precision, np.random.default_rng(0).standard_normal((2, 30, 1)))
    assert np.isfinite(E).all()
    np.testing.assert_allclose(E[::3], E[2::3], atol=1e-3)


@exact
def test_data_or_places_that_are_not_numbers_are_refused(process_of):
    X = places(6)
    A, b, mean, precision = data(6, 1)
    with pytest.raises(FloatingPointError, match="statistics A of the places"):
        process_of(X, 1).values_given_data(np.full_like(A, np.nan), b, mean, precision)
    with pytest.raises(NotPositiveDefinite, match="shorter lengthscales"):
        process_of(X, 1).with_nugget(np.full(6, -2.0)).whiten(b)
