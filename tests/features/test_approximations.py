"""Cholesky, Fourier and Nystrom features against the kernels they stand for."""

from __future__ import annotations

import numpy as np
import pytest

from tuckergp.errors import InputError
from tuckergp.features import Cholesky, Fourier, Nystrom, pivoted
from tuckergp.kernels import SE, Constant, Identity, Linear, Matern12, Matern32, Periodic

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(60, 2))
NEW = RNG.uniform(size=(9, 2))


@pytest.mark.parametrize("kernel", [Matern12(0.3), Matern32([0.2, 0.4]), SE(0.1), Identity(), Constant()], ids=repr)
def test_cholesky_features_reproduce_the_gram_matrix(kernel):
    features = Cholesky().fit(X, kernel)
    np.testing.assert_allclose(features.gram(X), kernel(X), atol=1e-10)


def test_cholesky_features_of_the_modes_reproduce_the_kronecker_gram_of_a_grid():
    a, b = np.linspace(0, 1, 8), np.linspace(0, 2, 11)
    phi_a = Cholesky().fit_transform(a, Matern12(0.5))
    phi_b = Cholesky().fit_transform(b, Matern32(0.5))
    phi = np.kron(phi_a, phi_b)
    grid = np.array([(s, t) for s in a for t in b])
    full = Matern12(0.5)(grid[:, 0]) * Matern32(0.5)(grid[:, 1])
    np.testing.assert_allclose(phi @ phi.T, full, atol=1e-10)


def test_repeated_inputs_cost_no_features():
    repeated = np.tile(np.arange(5.0), 4)
    features = Cholesky().fit(repeated, Matern12(1.0))
    assert features.n_features_ == 5
    np.testing.assert_allclose(features.gram(repeated), Matern12(1.0)(repeated), atol=1e-12)


@pytest.mark.parametrize("limit", [pivoted.GRAM_ROWS, 0])
def test_a_smooth_kernel_on_many_points_needs_few_features(limit, monkeypatch):
    # 3,000 points: column by column; the same 500 of them: once each way
    monkeypatch.setattr(pivoted, "GRAM_ROWS", limit)
    x = np.random.default_rng(1).uniform(0, 10, 3000)
    for points in (x, x[:500]):
        features = Cholesky(tolerance=1e-6).fit(points, SE(1.0))
        assert features.n_features_ < 60
        assert np.abs(features.gram(points) - SE(1.0)(points)).max() < 1e-6


def test_both_ways_of_pivoting_choose_the_same_pivots(monkeypatch):
    whole = Cholesky(1e-8).fit(X, SE(0.5))
    monkeypatch.setattr(pivoted, "GRAM_ROWS", 0)
    lazy = Cholesky(1e-8).fit(X, SE(0.5))
    np.testing.assert_array_equal(whole.pivots_["x0"], lazy.pivots_["x0"])
    np.testing.assert_allclose(whole.L_, lazy.L_, atol=1e-8)
    many = np.arange(150.0)  # full rank: the factor grows more than once
    np.testing.assert_allclose(Cholesky().fit(many, Matern12()).gram(many), Matern12()(many), atol=1e-10)


def test_a_singular_gram_matrix_needs_no_jitter():
    x = np.linspace(0, 1, 300)
    features = Cholesky(tolerance=0.0).fit(x, SE(3.0))
    assert features.n_features_ < 20
    np.testing.assert_allclose(features.gram(x), SE(3.0)(x), atol=1e-11)
    linear = Cholesky().fit(X, Linear())
    assert linear.n_features_ == 2
    np.testing.assert_allclose(linear.gram(NEW), Linear()(NEW), atol=1e-12)
    assert Cholesky().fit_transform([0.0, 0.0], Linear()).shape == (2, 0)


@pytest.mark.parametrize("spec", [Cholesky(max_features=12), Nystrom(12, "kmeans"), Nystrom(12, "greedy")], ids=repr)
def test_features_extend_to_unseen_inputs_through_the_points(spec):
    kernel = Matern32(0.6)
    features = spec.unfitted().fit(X, kernel, random_state=0)
    chosen = features.pivots_ if isinstance(features, Cholesky) else features.points_
    P = np.column_stack([chosen["x0"], chosen["x1"]])
    expected = kernel(NEW, P) @ np.linalg.solve(kernel(P), kernel(P, X))
    np.testing.assert_allclose(features.gram(NEW, X), expected, atol=1e-10)


def test_max_features_keeps_the_first_pivots():
    few, more = (Cholesky(max_features=k).fit(X, SE(0.3)) for k in (5, 9))
    assert few.n_features_ == 5
    np.testing.assert_array_equal(few.pivots_["x0"], more.pivots_["x0"][:5])


@pytest.mark.parametrize("pairs", [True, False])
@pytest.mark.parametrize(
    "kernel", [SE([0.5, 1.0]), Matern12(0.7), Periodic(0.8), 2.0 * SE(0.5) * Matern32(1.0)], ids=repr
)
def test_fourier_features_are_unbiased(kernel, pairs):
    # 2,000 independent maps; |z| < 4.5 fails a correct one once in 150,000 entries
    grams = np.array([Fourier(10, pairs).fit(X, kernel, random_state=s).gram(NEW[:4]) for s in range(2000)])
    error = grams.std(axis=0) / np.sqrt(len(grams))
    gap = np.abs(grams.mean(axis=0) - kernel(NEW[:4]))
    assert np.all(gap < 4.5 * error + 1e-12)


def test_the_variance_of_fourier_features_falls_as_one_over_n_and_pairs_vary_less():
    # a variance from 3,000 maps is off by some 3 per cent (one standard error): the ratio of two, allowed 25 per cent
    x, kernel = np.array([0.0, 0.8]), SE(1.0)
    variance = {
        (n, pairs): np.var([Fourier(n, pairs).fit(x, kernel, random_state=s).gram(x)[0, 1] for s in range(3000)])
        for n in (16, 64)
        for pairs in (True, False)
    }
    for pairs in (True, False):
        assert variance[16, pairs] / variance[64, pairs] == pytest.approx(4, rel=0.25)
    assert variance[16, True] < variance[16, False]
    k = np.exp(-0.5 * 0.8**2)  # Sutherland and Schneider (2015): (1 - k^2)^2 / n for pairs with this kernel
    assert variance[16, True] == pytest.approx((1 - k**2) ** 2 / 16, rel=0.15)


def test_fourier_pairs_have_the_exact_variance_everywhere():
    features = Fourier(20).fit(X, 3.0 * SE(0.5), random_state=0)
    np.testing.assert_allclose((features.transform(NEW) ** 2).sum(axis=1), 3.0, rtol=1e-12)


@pytest.mark.parametrize("points", ["kmeans", "random", "greedy"])
def test_nystrom_never_exceeds_the_kernel_and_improves_with_n(points):
    kernel = SE(0.4)
    K, errors = kernel(X), []
    for n in (5, 15, 45):
        features = Nystrom(n, points).fit(X, kernel, random_state=1)
        assert features.transform(X).shape == (60, n)
        gap = K - features.gram(X)
        assert np.linalg.eigvalsh(gap).min() > -1e-7
        errors.append(np.trace(gap))
    assert errors[0] > errors[1] > errors[2]


def test_nystrom_is_exact_at_its_points():
    features = Nystrom(10, "random").fit(X, Matern12(0.5), random_state=0)
    P = features.points_
    np.testing.assert_allclose(features.gram(P), Matern12(0.5)(P), atol=1e-10)


@pytest.mark.parametrize("points", ["kmeans", "random", "greedy"])
def test_more_nystrom_points_than_inputs_means_all_inputs(points):
    features = Nystrom(500, points).fit(np.vstack([X, X]), Matern12(0.5))
    assert features.n_features_ == 60
    np.testing.assert_allclose(features.gram(X), Matern12(0.5)(X), atol=1e-10)


@pytest.mark.parametrize("spec", [Fourier(10), Fourier(10, pairs=False), Nystrom(5), Nystrom(5, "random")], ids=repr)
def test_a_seed_repeats_the_features_and_another_changes_them(spec):
    one, same, other = (spec.unfitted().fit(X, SE(0.5), random_state=s).transform(NEW) for s in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.allclose(one, other)


def test_a_fitted_map_keeps_its_kernel_when_the_original_changes():
    kernel = SE(0.5)
    features = Cholesky().fit(X, kernel)
    before = features.transform(NEW)
    kernel.set_params(lengthscale=9.0)
    np.testing.assert_array_equal(features.transform(NEW), before)


@pytest.mark.parametrize(
    ("spec", "kernel", "message"),
    [
        (Fourier(10), Linear(), "not stationary, so it has no Fourier features"),
        (Fourier(11), SE(), "positive even number"),
        (Fourier(0, pairs=False), SE(), "positive number"),
        (Nystrom(0), SE(), "at least one point"),
        (Nystrom(5, "best"), SE(), "kmeans, random or greedy; got 'best'"),
        (Cholesky(tolerance=-1.0), SE(), "tolerance"),
        (Cholesky(max_features=0), SE(), "max_features"),
    ],
)
def test_what_makes_no_sense_is_refused(spec, kernel, message):
    with pytest.raises(InputError, match=message):
        spec.fit(X, kernel)
