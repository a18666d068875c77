"""Tiles of inner products against NumPy."""

import numpy as np
import pytest

from tuckergp.compute.tiles import add_gram, factorise, padded


@pytest.mark.parametrize(("r", "n"), [(4, 8), (8, 40), (20, 128), (64, 16)])
def test_a_gram_matrix_is_added_to_the_lower_triangle(r, n):
    rng = np.random.default_rng(r)
    Z, before = rng.standard_normal((r, n + 8)), rng.standard_normal((r, r))
    A = before.copy()
    add_gram(Z, n, A)
    np.testing.assert_allclose(np.tril(A), np.tril(before + Z[:, :n] @ Z[:, :n].T), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("r", [4, 8, 20, 64])
def test_factorise_gives_the_cholesky_factor(r):
    rng = np.random.default_rng(r)
    root = rng.standard_normal((r, r))
    A = root @ root.T + np.eye(r)
    L = A.copy()
    assert factorise(L)
    np.testing.assert_allclose(np.tril(L), np.linalg.cholesky(A), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("place", [0, 3, 5, 7])
def test_factorise_refuses_a_matrix_that_is_not_positive_definite(place):
    A = np.eye(8)
    A[place, place] = -1.0
    assert not factorise(A)


def test_sizes_are_padded_to_whole_tiles():
    assert [padded(r) for r in (1, 4, 5, 16)] == [4, 4, 8, 16]
