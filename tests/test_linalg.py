"""Factorisations: the safe one, without jitter unless needed and never without bound, and that of small systems."""

from __future__ import annotations

import numpy as np
import pytest

from tuckergp.errors import InputError
from tuckergp.kernels import SE, Matern12
from tuckergp.linalg import (
    Factored,
    cholesky_in_place,
    inverse_in_place,
    normal_given_precision,
    safe_cholesky,
    solve_lower,
)


def test_a_definite_matrix_is_factorised_without_jitter():
    A = np.random.default_rng(0).normal(size=(6, 6))
    K = A @ A.T + np.eye(6)
    np.testing.assert_array_equal(safe_cholesky(K, "K"), np.linalg.cholesky(K))


def test_a_numerically_singular_matrix_is_changed_by_little():
    K = SE(5.0)(np.linspace(0, 1, 60))
    L = safe_cholesky(K, "K")
    np.testing.assert_allclose(L @ L.T, K, atol=1e-8)


@pytest.mark.parametrize(("K", "reason"), [(-np.eye(2), "not positive definite"), (np.full((2, 2), np.nan), "NaN")])
def test_an_impossible_matrix_is_named_with_a_remedy(K, reason):
    with pytest.raises(InputError, match=f"of the Gram matrix does not exist: .*{reason}"):
        safe_cholesky(K, "the Gram matrix")


def test_in_place_work_gives_the_same_factor_with_jitter_and_without():
    for kernel in (Matern12(0.5), SE(5.0)):
        K = np.asfortranarray(kernel(np.linspace(0, 1, 60)))
        expected = safe_cholesky(K, "K")
        cholesky_in_place(K, "K")
        np.testing.assert_allclose(np.tril(K), expected, atol=1e-12)


def test_the_inverse_in_place_is_that_of_the_matrix():
    K = np.asfortranarray(Matern12(0.5)(np.linspace(0, 1, 60)))
    expected = np.linalg.inv(K)
    cholesky_in_place(K, "K")
    inverse_in_place(K)
    np.testing.assert_allclose(np.tril(K), np.tril(expected), atol=1e-9)


def test_in_place_work_is_refused_where_it_would_copy():
    with pytest.raises(InputError, match="Fortran order"):
        cholesky_in_place(np.ones((2, 2)), "K")
    with pytest.raises(InputError, match="not positive definite"):
        cholesky_in_place(np.asfortranarray(-np.eye(2)), "K")


def test_a_normal_given_its_precision_has_the_closed_form():
    A, right = np.random.default_rng(1).normal(size=(5, 5)), np.arange(5.0)
    H = A @ A.T + np.diag([1e-8, 1.0, 1.0, 1.0, 1e8])
    expected = np.linalg.solve(H, right)
    np.testing.assert_allclose(normal_given_precision(np.tril(H), right, 0.0, "H"), expected, rtol=1e-6)
    roots = np.stack([normal_given_precision(H.copy(), np.zeros(5), unit, "H") for unit in np.eye(5)], axis=1)
    np.testing.assert_allclose(roots @ roots.T, np.linalg.inv(H), rtol=1e-6, atol=1e-12)


def test_a_normal_whose_precision_is_singular_but_for_rounding_is_right_where_it_is_known():
    x = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1e-9]])  # columns 0 and 1 are the same; 2 is in units of its own
    H = 1e20 * x.T @ x + 1e-6 * np.eye(3)
    known = x @ normal_given_precision(H, 1e20 * x.T @ np.array([1.0, 3.0]), 0.0, "H")
    np.testing.assert_allclose(known, [1.0, 3.0], rtol=1e-5)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_factored_matrix_solves_and_has_its_determinant(order):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((6, 6))
    K, right = np.asarray(A @ A.T + np.eye(6), order=order), rng.standard_normal((6, 3))
    factor = Factored(K.copy(order="K"), overwrite=True)
    np.testing.assert_allclose(factor.solve(right), np.linalg.solve(K, right), rtol=1e-10)
    assert factor.log_det == pytest.approx(np.linalg.slogdet(K)[1])
    kept = K.copy()
    Factored(K)
    np.testing.assert_array_equal(K, kept)


@pytest.mark.parametrize("K", [[[1.0, 2.0], [2.0, 1.0]], [[1.0, np.nan], [np.nan, 1.0]], [[np.inf, 0.0], [0.0, 1.0]]])
def test_what_is_not_positive_definite_or_not_finite_has_no_factor(K):
    with pytest.raises(np.linalg.LinAlgError):
        Factored(np.array(K))


@pytest.mark.parametrize("order", ["C", "F"])
def test_triangular_systems_are_solved_both_ways(order):
    rng = np.random.default_rng(1)
    L = np.asarray(np.tril(rng.standard_normal((5, 5))) + 3 * np.eye(5), order=order)
    right = rng.standard_normal((5, 4))
    np.testing.assert_allclose(L @ solve_lower(L, right), right, atol=1e-12)
    np.testing.assert_allclose(L.T @ solve_lower(L, right, transposed=True), right, atol=1e-12)
    # what is above the diagonal is not read
    spoilt = L + np.triu(np.full((5, 5), 7.0), 1)
    np.testing.assert_allclose(solve_lower(spoilt, right), solve_lower(L, right), rtol=1e-12)
