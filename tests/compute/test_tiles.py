"""Tiles of outer products, and the algebra made of them, against NumPy."""

import numpy as np
import pytest

from tuckergp.compute.compiled import jit
from tuckergp.compute.tiles import add_gram as add_gram_at
from tuckergp.compute.tiles import factorise as factorise_at
from tuckergp.compute.tiles import solve_lower as solve_lower_at
from tuckergp.compute.tiles import solve_upper as solve_upper_at
from tuckergp.compute.vectors import padded, pointer


@jit
def add_gram(Z, n, A):
    add_gram_at(pointer(Z), n, pointer(A), len(A))


@jit
def factorise(A, inverse, u):
    return factorise_at(pointer(A), len(A), pointer(inverse), pointer(u))


@jit
def solve_lower(U, inverse, x):
    solve_lower_at(pointer(U), len(U), pointer(inverse), pointer(x))


@jit
def solve_upper(U, inverse, x):
    solve_upper_at(pointer(U), len(U), pointer(inverse), pointer(x))


@pytest.mark.parametrize(("kind", "accuracy"), [(np.float64, 1e-10), (np.float32, 1e-4)])
@pytest.mark.parametrize(("r", "n"), [(8, 0), (8, 3), (16, 40), (24, 128), (64, 16)])
def test_a_gram_matrix_is_added_to_the_upper_triangle(r, n, kind, accuracy):
    rng = np.random.default_rng(r)
    Z, before = rng.standard_normal((n + 8, r)).astype(kind), rng.standard_normal((r, r))
    A = before.copy()
    add_gram(Z, n, A)
    np.testing.assert_allclose(np.triu(A), np.triu(before + Z[:n].T @ Z[:n]), rtol=accuracy, atol=accuracy)


def positive_definite(r):
    rng = np.random.default_rng(r)
    root = rng.standard_normal((r, r))
    return root @ root.T + np.eye(r), rng.standard_normal(r)


@pytest.mark.parametrize("r", [8, 16, 24, 64])
def test_factorise_gives_the_cholesky_factor_and_solves_use_it(r):
    A, x = positive_definite(r)
    U, inverse = A.copy(), np.empty(r)
    assert factorise(U, inverse, np.empty((4, 4)))
    expected = np.linalg.cholesky(A).T
    np.testing.assert_allclose(np.triu(U), expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(inverse, 1 / np.diag(expected), rtol=1e-10)
    lower, upper = x.copy(), x.copy()
    solve_lower(U, inverse, lower)
    solve_upper(U, inverse, upper)
    np.testing.assert_allclose(lower, np.linalg.solve(expected.T, x), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(upper, np.linalg.solve(expected, x), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("place", [0, 3, 5, 7])
def test_factorise_refuses_a_matrix_that_is_not_positive_definite(place):
    A = np.eye(8)
    A[place, place] = -1.0
    assert not factorise(A, np.empty(8), np.empty((4, 4)))


def test_sizes_are_padded_to_whole_vectors():
    assert [padded(r) for r in (1, 8, 9, 16)] == [8, 8, 16, 16]
