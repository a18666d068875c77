"""Kernels against scikit-learn's, their spectra against numerical Fourier transforms, and what composition means."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.base import clone
from sklearn.gaussian_process import kernels as sk

from tuckergp.data.tables import as_table
from tuckergp.errors import InputError
from tuckergp.kernels import (
    SE,
    Constant,
    Identity,
    Kernel,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Product,
    Scaled,
    Sum,
)

ARD = [0.7, 2.0]
RADIAL = [SE, Matern12, Matern32, Matern52]
COMPOSED = [
    0.25 * Identity("user_id") + Linear("age", "sex"),
    SE(lengthscale=[1.0, 2.0]),
    SE(np.array([1.0, 2.0]), columns=["a", "b"]),
    Constant() + (SE(1.0) + Periodic(7.0, 0.5)),
    2.0 * (SE(1.0) * (Matern12(3.0) * Identity())),
    (SE(1.0) + Constant()) * (0.5 * Matern32(1.0)),
    0.5 * (0.5 * Matern52(1.0, "x")) * np.float64(3.0),
    Linear(),
]


@pytest.fixture
def points() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(12, 2)), rng.normal(size=(7, 2))


def people():
    return as_table(
        {
            "user_id": ["ann", "bob", "cat", "ann"],
            "age": [20.0, 30.0, 40.0, 20.0],
            "job": ["doctor", None, None, "cook"],
            "member": [True, False, True, True],
            "genres": ["Action|Comedy", "Comedy", None, "Drama| Action "],
        },
        "users",
    )


@pytest.mark.parametrize(
    ("kernel", "reference"),
    [
        (SE(ARD), sk.RBF(ARD)),
        (Matern12(ARD), sk.Matern(ARD, nu=0.5)),
        (Matern32(ARD), sk.Matern(ARD, nu=1.5)),
        (Matern52(ARD), sk.Matern(ARD, nu=2.5)),
        (SE(1.3), sk.RBF(1.3)),
        (Linear(), sk.DotProduct(sigma_0=0)),
        (2.5 * SE(1.0) + Constant(), 2.5 * sk.RBF(1.0) + sk.ConstantKernel(1.0)),
        (SE(1.0) * Matern32(2.0), sk.RBF(1.0) * sk.Matern(2.0, nu=1.5)),
    ],
    ids=repr,
)
def test_agrees_with_scikit_learn(kernel, reference, points):
    X, Y = points
    np.testing.assert_allclose(kernel(X, Y), reference(X, Y), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel(X), reference(X), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel.diag(X), np.diag(kernel(X)), rtol=1e-14)


def test_periodic_agrees_with_scikit_learn_in_one_dimension_and_multiplies_over_columns(points):
    X, Y = points
    one = sk.ExpSineSquared(length_scale=0.8, periodicity=1.7)
    np.testing.assert_allclose(Periodic(1.7, 0.8)(X[:, 0], Y[:, 0]), one(X[:, :1], Y[:, :1]), rtol=1e-12)
    other = sk.ExpSineSquared(length_scale=2.0, periodicity=3.0)
    both = one(X[:, :1], Y[:, :1]) * other(X[:, 1:], Y[:, 1:])
    np.testing.assert_allclose(Periodic([1.7, 3.0], [0.8, 2.0])(X, Y), both, rtol=1e-12)


@pytest.mark.parametrize(
    "kernel", [*(k(ARD) for k in RADIAL), Periodic(1.3), Linear(), Identity(), Constant(), SE() * Linear()], ids=repr
)
def test_gram_is_symmetric_and_positive_semidefinite(kernel, points):
    X = np.vstack(points)
    K = kernel(X)
    np.testing.assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K).min() > -1e-10
    np.testing.assert_allclose(kernel.diag(X), np.diag(K), atol=1e-12)


def test_kernels_read_the_columns_they_name(points):
    X, Y = points
    tables = [as_table({"a": Z[:, 0], "b": Z[:, 1], "text": ["?"] * len(Z)}, "t") for Z in points]
    np.testing.assert_array_equal(SE(2.0, "b")(*tables), SE(2.0)(X[:, 1], Y[:, 1]))
    np.testing.assert_array_equal(Matern12(ARD, ["b", "a"])(*tables), Matern12(ARD)(X[:, ::-1], Y[:, ::-1]))


def test_identity_compares_rows_of_any_type():
    table = as_table({"user": ["ann", "ann", None, None], "week": [1, 2, 1, 1]}, "t")
    expected = np.zeros((4, 4))
    expected[[0, 1, 2, 2, 3, 3], [0, 1, 2, 3, 2, 3]] = 1
    np.testing.assert_array_equal(Identity("user", "week")(table), expected)
    np.testing.assert_array_equal(Identity(["user", "week"])(table), expected)
    np.testing.assert_array_equal(Identity("week")(table)[0], [1, 0, 1, 1])
    np.testing.assert_array_equal(Identity()([np.nan, 1.0], [np.nan, 2.0]), [[1, 0], [0, 0]])
    np.testing.assert_array_equal(Identity()([1, 2], [2.0, 2.5]), [[0, 0], [1, 0]])
    np.testing.assert_array_equal(Identity()(["a"], [3]), [[0]])


def test_linear_is_the_inner_product_of_attributes():
    table = people()
    age = np.array([20.0, 30, 40, 20])
    job = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]])  # doctor, missing, cook
    member = np.array([[1, 0], [0, 1], [1, 0], [1, 0]])
    genres = np.array([[1, 1, 0], [0, 1, 0], [0, 0, 0], [1, 0, 1]])  # action, comedy, drama
    for columns, phi in [(["age"], age[:, None]), (["job"], job), (["member"], member), (["genres"], genres)]:
        np.testing.assert_array_equal(Linear(columns)(table), phi @ phi.T)
    phi = np.hstack([age[:, None], job, member, genres])
    kernel = Linear("age", "job", "member", "genres")
    np.testing.assert_array_equal(kernel(table), phi @ phi.T)
    np.testing.assert_array_equal(kernel.diag(table), (phi**2).sum(axis=1))
    np.testing.assert_array_equal(kernel(table, table.take(np.array([1]))), (phi @ phi.T)[:, [1]])


@pytest.mark.parametrize("cells", [[["x", "y"], ["y"]], [("x", "y"), ("y",)], [{"x", "y"}, {"y"}]])
def test_linear_counts_common_values_of_collections(cells):
    np.testing.assert_array_equal(Linear("tags")({"tags": cells}), [[2, 1], [1, 1]])


def test_a_column_is_a_bag_where_either_side_has_several_values():
    one, two = {"g": ["Action"]}, {"g": ["Action|Drama", "Drama"]}
    np.testing.assert_array_equal(Linear()(one, two), [[1, 0]])


def test_composition_builds_sums_products_and_scales():
    a, b = SE(1.0), Matern12(2.0)
    assert a + b == Sum(a, b)
    assert a * b == Product(a, b)
    assert 0.25 * a == a * 0.25 == np.float64(0.25) * a == Scaled(a, 0.25)
    assert a != b
    assert SE([1.0, 2.0]) == SE((1.0, 2.0)) == SE(np.array([1.0, 2.0])) != SE([1.0, 3.0])
    with pytest.raises(TypeError):
        a + 1.0


def test_terms_are_flat_and_scales_distribute_and_fold():
    a, b, c = SE(1.0), Identity("u"), Linear("v")
    assert (a + (b + c)).terms() == [a, b, c]
    assert (2.0 * (a + 0.5 * (0.5 * b)) + c).terms() == [2.0 * a, 0.5 * b, c]
    assert (a * (b + c)).terms() == [a * (b + c)]


@pytest.mark.parametrize("kernel", COMPOSED, ids=repr)
def test_repr_clone_and_parameters_round_trip(kernel: Kernel):
    assert eval(repr(kernel)) == kernel
    copy = clone(kernel)
    assert copy is not kernel
    assert copy == kernel
    assert copy.set_params(**kernel.get_params()) == kernel


def test_repr_reads_like_the_formula():
    assert repr(COMPOSED[0]) == "0.25 * Identity('user_id') + Linear('age', 'sex')"
    assert repr(COMPOSED[1]) == "SE(lengthscale=[1.0, 2.0])"


def test_nested_parameters_are_read_and_set():
    kernel = 0.5 * SE(1.0) + Identity("u")
    assert kernel.get_params()["k1__kernel__lengthscale"] == 1.0
    assert kernel.set_params(k1__kernel__lengthscale=3.0, k1__scale=2.0) == 2.0 * SE(3.0) + Identity("u")
    assert kernel.set_params(k1=SE(1.0), k1__lengthscale=4.0, k2__columns=["v"]) == SE(4.0) + Identity("v")
    with pytest.raises(InputError, match="no parameter 'width'"):
        kernel.set_params(k1__width=1.0)


@pytest.mark.parametrize("family", RADIAL)
def test_spectral_density_integrates_to_one_and_transforms_to_the_kernel(family):
    kernel = family(0.7)
    density = lambda v: kernel.spectral_density([[v]])[0]  # noqa: E731
    mass, _ = integrate.quad(density, 0, np.inf)
    assert 2 * mass == pytest.approx(1, abs=1e-8)
    for distance in (0.3, 1.1):
        # the oscillating tail by a Fourier-type rule (weight="cos")
        half, _ = integrate.quad(density, 0, np.inf, weight="cos", wvar=distance)
        assert 2 * half == pytest.approx(kernel([0.0], [distance]).item(), abs=1e-6)


@pytest.mark.parametrize("family", RADIAL)
def test_spectral_density_with_a_lengthscale_a_column_agrees_with_scipy(family):
    kernel, omega = family(ARD), np.random.default_rng(1).normal(size=(20, 2))
    shape = np.diag(1 / np.square(ARD))
    law = (
        stats.multivariate_normal(np.zeros(2), shape)
        if family is SE
        else stats.multivariate_t(np.zeros(2), shape, df=2 * family.nu)
    )
    np.testing.assert_allclose(kernel.spectral_density(omega), law.pdf(omega), rtol=1e-10)


@pytest.mark.parametrize("family", [*RADIAL, Periodic])
def test_the_mean_wave_of_spectral_samples_is_the_kernel(family):
    # |z| < 4.5 fails a correct sampler once in 150,000 comparisons
    kernel = family(lengthscale=ARD)
    omega = kernel.spectral_sample(40_000, 2, np.random.default_rng(2))
    for difference in ([0.5, 0.0], [0.3, -1.0], [1.2, 0.7]):
        waves = np.cos(omega @ np.array(difference))
        z = (waves.mean() - kernel([[0.0, 0.0]], [difference]).item()) / (waves.std() / np.sqrt(len(waves)))
        assert abs(z) < 4.5


@pytest.mark.parametrize("family", RADIAL)
def test_spectral_samples_follow_the_density(family):
    kernel = family(0.7)
    sample = kernel.spectral_sample(5000, 1, np.random.default_rng(3))[:, 0]
    edges = np.array([-np.inf, -3, -1, -0.3, 0, 0.3, 1, 3, np.inf])
    inside = [integrate.quad(lambda v: kernel.spectral_density([[v]])[0], *e)[0] for e in pairwise(edges)]
    counts = np.histogram(sample, edges)[0]
    assert stats.chisquare(counts, np.array(inside) / sum(inside) * counts.sum()).pvalue > 1e-4


def test_spectral_mass_of_periodic_sums_to_one_transforms_to_the_kernel_and_is_sampled():
    kernel, harmonics = Periodic(period=2.0, lengthscale=0.6), np.arange(-40, 41)
    mass = kernel.spectral_mass(harmonics[:, None])
    assert mass.sum() == pytest.approx(1, abs=1e-12)
    waves = np.cos(2 * np.pi * harmonics / 2.0 * 0.37)
    assert mass @ waves == pytest.approx(kernel([0.0], [0.37]).item(), abs=1e-12)
    drawn = kernel.spectral_sample(20_000, 1, np.random.default_rng(4))[:, 0] * 2.0 / (2 * np.pi)
    np.testing.assert_allclose(drawn, np.round(drawn), atol=1e-9)
    counts = np.array([np.sum(np.round(drawn) == k) for k in range(-3, 4)])
    expected = 20_000 * kernel.spectral_mass(np.arange(-3, 4)[:, None])
    assert np.all(np.abs(counts - expected) < 4.5 * np.sqrt(expected))


def test_products_and_scales_of_stationary_kernels_are_stationary():
    assert (2.0 * (SE() * Periodic())).stationary
    assert not (SE() * Linear()).stationary
    assert not (SE() + SE()).stationary
    names = ["a", "b"]
    omega = (SE(1.0, "a") * Matern12(1.0, "b")).frequencies(5, names, np.random.default_rng(0))
    assert omega.shape == (5, 2)
    assert (omega != 0).all()
    assert (SE(1.0, "b").frequencies(5, names, np.random.default_rng(0))[:, 0] == 0).all()


@pytest.mark.parametrize(
    ("kernel", "X", "message"),
    [
        (SE(0.0), [1.0], "lengthscale of SE.* must be positive"),
        (SE("day"), [1.0], "lengthscale of SE.* must be positive"),
        (SE([1.0, np.nan]), [[1.0, 2.0]], "must be positive and finite"),
        (SE([1.0, 2.0]), [[1.0, 2.0, 3.0]], "2 values of lengthscale for 3 columns"),
        (Periodic(-1.0), [1.0], "period of Periodic"),
        (-1.0 * SE(), [1.0], "scale of a kernel must be positive"),
        (Identity("user"), [1.0], "needs a table"),
        (SE(1.0, "job"), people(), "users column 'job' must be numeric, but row 0 holds 'doctor'"),
        (SE(1.0, "height"), people(), "users has no column 'height'"),
        (SE(), [1.0, np.nan], "missing"),
        (SE(), np.zeros((2, 2, 2)), "got shape"),
        (SE(), np.zeros((2, 0)), "needs at least one column"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_bad_input_is_refused_with_a_sentence(kernel, X, message):
    with pytest.raises(InputError, match=message):
        kernel(X)
