"""The order of places and their neighbours, against brute force."""

import numpy as np
import pytest
from scipy.spatial import KDTree

from tuckergp.compute import places
from tuckergp.compute.places import Search, coarse_to_fine, nearest_earlier


def brute_force(X, m):
    out = np.full((len(X), min(m, len(X) - 1)), -1)
    for i in range(1, len(X)):
        near = np.argsort(np.linalg.norm(X[:i] - X[i], axis=1), kind="stable")[:m]
        out[i, : len(near)] = near
    return out


@pytest.mark.parametrize(("rows", "p", "m"), [(1, 2, 5), (4, 2, 15), (300, 2, 7), (300, 5, 15), (90, 1, 3)])
def test_neighbours_are_the_nearest_of_the_earlier_places(rows, p, m, monkeypatch):
    monkeypatch.setattr(places, "SOME", 50)
    X = np.random.default_rng(0).random((rows, p))
    np.testing.assert_array_equal(nearest_earlier(X, m), brute_force(X, m))


def test_an_order_in_which_neighbours_are_late_has_them_as_well():
    # along a line from one end, the nearest places of the tree are mostly later ones
    X = np.linspace(0, 1, 200)[:, None] ** 2
    np.testing.assert_array_equal(nearest_earlier(X, 4), brute_force(X, 4))


def test_places_that_come_first_are_spread_over_the_region():
    X = np.random.default_rng(1).random((4000, 2)) * [1.0, 3.0]
    order = coarse_to_fine(X)
    np.testing.assert_array_equal(np.sort(order), np.arange(4000))
    for count in (50, 100, 200):
        found, random = (KDTree(X[rows]).query(X)[0].mean() for rows in (order[:count], slice(count)))
        assert found < 0.9 * random  # 0.80 to 0.85 by farthest places


@pytest.mark.parametrize(
    "X", [np.zeros((1, 2)), np.zeros((7, 2)), np.array([[0.0, 5.0], [1.0, 5.0], [1.0 + 1e-15, 5.0], [2.0, 5.0]])]
)
def test_equal_places_and_constant_columns_are_ordered_too(X):
    np.testing.assert_array_equal(np.sort(coarse_to_fine(X)), np.arange(len(X)))


def test_new_places_are_surrounded_by_near_places_and_by_farther_ones_each_once():
    rng = np.random.default_rng(2)
    X = rng.random((2000, 2))
    X = X[coarse_to_fine(X)]
    X = X[np.linalg.norm(X - 0.5, axis=1) > 0.3]  # a gap in the middle
    points = 0.5 + 0.2 * (rng.random((20, 2)) - 0.5)
    search = Search(X)
    for point, found in zip(points, search.around(points, 60), strict=True):
        near = set(found)
        assert len(near) == len(found) == 60
        by_distance = np.argsort(np.linalg.norm(X - point, axis=1))
        assert set(by_distance[:20]) <= near
        coarse = len(X) // 8
        assert set(np.argsort(np.linalg.norm(X[:coarse] - point, axis=1))[:20]) <= near
    np.testing.assert_array_equal(np.sort(search.around(points, 5000)), np.tile(np.arange(len(X)), (20, 1)))
    assert search.around(points, len(X) - 1).shape == (20, len(X) - 1)
    np.testing.assert_array_equal(search.around(points, 2), search.nearest(points, 2))


def test_in_many_dimensions_the_nearest_places_are_around_new_ones():
    X = np.random.default_rng(3).random((300, 4))
    search = Search(X[coarse_to_fine(X)])
    np.testing.assert_array_equal(search.around(X[:5] + 0.1, 40), search.nearest(X[:5] + 0.1, 40))
