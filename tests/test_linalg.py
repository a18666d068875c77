"""The safe Cholesky factorisation: no jitter unless needed, and never without bound."""

from __future__ import annotations

import numpy as np
import pytest

from tuckergp.errors import InputError
from tuckergp.kernels import SE, Matern12
from tuckergp.linalg import cholesky_in_place, inverse_in_place, safe_cholesky


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
