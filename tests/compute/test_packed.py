"""Packed statistics against plain NumPy."""

import numpy as np
import pytest

from tuckergp.compute.packed import add_statistics, explained, packed_size, solve_packed


@pytest.fixture(params=[1, 3, 8])
def world(request):
    r, rows = request.param, 5
    rng = np.random.default_rng(r)
    X = rng.standard_normal((rows, 9, r))
    A, b = np.einsum("mij,mik->mjk", X, X), rng.standard_normal((rows, r))
    T = np.zeros((rows, packed_size(r)))
    add_statistics(0, rows, A, b, T)
    return r, rows, rng, A, b, T


def test_rows_are_solved_with_noise_and_background(world):
    r, rows, rng, A, b, T = world
    root = rng.standard_normal((r, r))
    precision, gram, share = root @ root.T + np.eye(r), np.eye(r) + 0.1, rng.random(rows)
    shift, noise, out = rng.standard_normal((rows, r)), rng.standard_normal((rows, r)), np.empty((rows, r))
    assert solve_packed(0, rows, 0.7, T, gram, share, shift, precision, noise, out) == 0
    for m in range(rows):
        P = precision + 0.7 * A[m] + share[m] * gram
        expected = np.linalg.solve(P, shift[m] + 0.7 * b[m]) + np.linalg.solve(np.linalg.cholesky(P).T, noise[m])
        np.testing.assert_allclose(out[m], expected, rtol=1e-10)


def test_without_background_nothing_is_added(world):
    r, rows, _, A, b, T = world
    out, none = np.empty((rows, r)), np.zeros((rows, r))
    solve_packed(0, rows, 1.0, T, np.zeros((0, 0)), np.zeros(0), none, np.eye(r), none, out)
    np.testing.assert_allclose(out, np.linalg.solve(A + np.eye(r), b[:, :, None])[:, :, 0], rtol=1e-10)


def test_a_row_that_is_not_positive_definite_is_counted(world):
    r, rows, _, _, _, T = world
    out, none = np.empty((rows, r)), np.zeros((rows, r))
    assert solve_packed(0, rows, -1.0, T, np.zeros((0, 0)), np.zeros(0), none, 1e-9 * np.eye(r), none, out) == rows


def test_explained_is_what_factors_take_from_the_squares(world):
    r, rows, rng, A, b, T = world
    psi = rng.standard_normal((rows, r))
    expected = 2 * (b * psi).sum(axis=1) - np.einsum("mj,mjk,mk->m", psi, A, psi)
    np.testing.assert_allclose(explained(T, psi), expected, rtol=1e-10)


def test_statistics_add_up(world):
    _, rows, _, A, b, T = world
    twice = T.copy()
    add_statistics(0, rows, A, b, twice)
    np.testing.assert_array_equal(twice, 2 * T)
