"""The safe Cholesky factorisation: no jitter unless needed, and never without bound."""

from __future__ import annotations

import numpy as np
import pytest

from tuckergp.errors import InputError
from tuckergp.kernels import SE
from tuckergp.linalg import safe_cholesky


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
