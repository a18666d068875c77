"""The best products against all of them, sorted; moments over draws against NumPy."""

import numba as nb
import numpy as np
import pytest

from tuckergp.compute import bounds, topk
from tuckergp.compute.bounds import balanced, enlarged, make_bounds, rotate
from tuckergp.compute.topk import top_products

NONE = np.zeros(0, dtype=np.int32)


def all_sorted(Q, V, k, indptr, indices, allowed=None):
    """The twin: all products, a stable sort."""
    F = Q.astype(np.float64) @ V.astype(np.float64).T
    for i in range(len(Q)):
        F[i, indices[indptr[i] : indptr[i + 1]]] = -np.inf
    if allowed is not None:
        F[:, ~allowed] = -np.inf
    items, scores = np.full((len(Q), k), -1), np.full((len(Q), k), -np.inf)
    order = np.argsort(-F, axis=1, kind="stable")[:, :k]
    best = np.take_along_axis(F, order, axis=1)
    items[:, : order.shape[1]] = np.where(best == -np.inf, -1, order)
    scores[:, : order.shape[1]] = best
    return items, scores


def seen_by(rng, n, m, most):
    counts = rng.integers(0, min(most, m) + 1, n)
    indices = [rng.choice(m, count, replace=False) for count in counts]
    return np.append(0, np.cumsum(counts)), np.concatenate(indices).astype(np.int32)


def normal(rng, n, m, w):
    return rng.standard_normal((n, w)), rng.standard_normal((m, w))


def like_draws(rng, n, m, w):
    """Draws that resemble each other."""
    draws = w // 8
    return tuple(
        np.tile(rng.standard_normal((rows, 8)), draws) + 0.1 * rng.standard_normal((rows, w)) for rows in (n, m)
    )


def flat(rng, n, m, w):
    """Of rank 3 exactly."""
    A = rng.standard_normal((3, w))
    return rng.standard_normal((n, 3)) @ A, rng.standard_normal((m, 3)) @ A


def spread(rng, n, m, w):
    """Norms from 1e-30 to 1e30."""
    return tuple(table * 10.0 ** rng.uniform(-30, 30, (len(table), 1)) for table in normal(rng, n, m, w))


def biased(rng, n, m, w):
    """All products are negative, and nearly alike."""
    Q, V = normal(rng, n, m, w)
    Q[:, 0], V[:, 0] = 100.0, -100.0
    return Q, V


def whole(rng, n, m, w):
    """Small whole numbers: products are exact, and most are tied."""
    return rng.integers(-1, 2, (n, w)), rng.integers(-1, 2, (m, w))


def repeated(rng, n, m, w):
    """Every item ten times."""
    Q, V = normal(rng, n, m, w)
    return Q, V[np.arange(m) % (m // 10)]


def empty_rows(rng, n, m, w):
    """Some rows and most items are zeros."""
    Q, V = normal(rng, n, m, w)
    Q[::3] = 0.0
    V[5:] = 0.0
    return Q, V


def one_large(rng, n, m, w):
    """One row outweighs all others, on both sides."""
    Q, V = normal(rng, n, m, w)
    Q[0] *= 1e15
    V[7] *= 1e15
    return Q, V


KINDS = [normal, like_draws, flat, spread, biased, whole, repeated, empty_rows, one_large]


@pytest.fixture
def small_tiles(monkeypatch):
    monkeypatch.setattr(bounds, "TILE", 100)
    monkeypatch.setattr(topk, "BLOCK", 64)


@pytest.mark.parametrize("w", [1, 16, 40])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("small_tiles")
def test_finds_the_best_of_all_products(kind, w):
    rng = np.random.default_rng(w)
    n, m, k = 300, 410, 10
    Q, V = (np.float32(table) for table in kind(rng, n, m, max(w, 8) if kind is like_draws else w))
    indptr, indices = seen_by(rng, n, m, 60)
    items, scores = top_products(Q, V, k, indptr, indices)
    expected, best = all_sorted(Q, V, k, indptr, indices)
    np.testing.assert_array_equal(items, expected)
    np.testing.assert_allclose(scores, best, rtol=1e-9, atol=0 if kind in (spread, one_large) else 1e-9)


@pytest.mark.parametrize("n", [5, 300])
@pytest.mark.parametrize("kind", [like_draws, whole])
def test_only_allowed_items_are_found(kind, n):
    rng = np.random.default_rng(n)
    Q, V = (np.float32(table) for table in kind(rng, n, 200, 32))
    indptr, indices = seen_by(rng, n, 200, 150)
    allowed = rng.random(200) < 0.3
    items, scores = top_products(Q, V, 10, indptr, indices, allowed)
    expected, best = all_sorted(Q, V, 10, indptr, indices, allowed)
    np.testing.assert_array_equal(items, expected)
    np.testing.assert_allclose(scores, best, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n", [5, 300])
def test_few_rows_and_many_get_the_same(n):
    rng = np.random.default_rng(0)
    Q, V = (np.float32(table) for table in like_draws(rng, 300, 500, 40))
    indptr, indices = seen_by(rng, 300, 500, 20)
    items, scores = top_products(Q, V, 7, indptr, indices)
    some = top_products(Q[:n], V, 7, indptr[: n + 1], indices)
    np.testing.assert_array_equal(some[0], items[:n])
    np.testing.assert_array_equal(some[1], scores[:n])


@pytest.mark.parametrize("n", [3, 300])
def test_places_that_no_item_can_fill_are_empty(n):
    rng = np.random.default_rng(1)
    Q, V = (np.float32(table) for table in normal(rng, n, 4, 8))
    items, scores = top_products(Q, V, 6, np.zeros(n + 1, dtype=np.int64), NONE)
    assert (np.sort(items[:, :4], axis=1) == np.arange(4)).all()
    assert (items[:, 4:] == -1).all()
    assert (scores[:, 4:] == -np.inf).all()
    all_seen = top_products(Q, V, 2, 4 * np.arange(n + 1), np.tile(np.arange(4), n))
    assert (all_seen[0] == -1).all()
    none_allowed = top_products(Q, V, 2, np.zeros(n + 1, dtype=np.int64), NONE, np.zeros(4, dtype=bool))
    assert (none_allowed[0] == -1).all()
    assert top_products(Q[:0], V, 2, np.zeros(1, dtype=np.int64), NONE)[0].shape == (0, 2)


def test_nothing_depends_on_blocks_or_threads(monkeypatch):
    rng = np.random.default_rng(2)
    Q, V = (np.float32(table) for table in like_draws(rng, 700, 900, 80))
    indptr, indices = seen_by(rng, 700, 900, 30)
    expected = top_products(Q, V, 10, indptr, indices)
    before = nb.get_num_threads()
    for block, tile, sample, threads in ((100, 900, 3, 1), (33, 70, 64, before), (1000, 128, 700, before)):
        monkeypatch.setattr(topk, "BLOCK", block)
        monkeypatch.setattr(bounds, "TILE", tile)
        monkeypatch.setattr(bounds, "SAMPLE", sample)
        try:
            nb.set_num_threads(threads)
            found = top_products(Q, V, 10, indptr, indices)
        finally:
            nb.set_num_threads(before)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)


def test_arguments_are_left_alone():
    rng = np.random.default_rng(3)
    Q, V = (np.float32(table) for table in normal(rng, 300, 50, 8))
    indptr, indices = seen_by(rng, 300, 50, 30)
    copies = [array.copy() for array in (Q, V, indptr, indices)]
    top_products(Q, V, 5, indptr, indices)
    for array, copy in zip((Q, V, indptr, indices), copies, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize("kind", [normal, like_draws, flat, one_large, empty_rows])
def test_a_change_of_coordinates_keeps_products(kind):
    rng = np.random.default_rng(4)
    Q, V = (np.float32(table) for table in kind(rng, 80, 90, 24))
    A, B, error = balanced(Q, V)
    assert np.linalg.norm(A @ B.T - np.eye(24), 2) <= error < 1e-6
    Q, V = Q.astype(np.float64), V.astype(np.float64)
    sizes = np.linalg.norm(Q, axis=1)[:, None] * np.linalg.norm(V, axis=1)
    assert (abs((Q @ A) @ (V @ B).T - Q @ V.T) <= error * sizes + 1e-300).all()


@pytest.mark.parametrize("kind", [normal, like_draws, spread])
def test_bounds_hold_at_every_level(kind):
    rng = np.random.default_rng(5)
    Q, V = (np.float32(table) for table in kind(rng, 70, 60, 40))
    found = make_bounds(Q, V, np.arange(60), 5, np.zeros(71, dtype=np.int64), NONE)
    block = rotate(Q, found.to_rows, found.error, found.unit)
    exact = Q.astype(np.float64) @ V[found.number].astype(np.float64).T / block.units[:, None]
    for level in range(found.items.tails.shape[1]):
        width = level * bounds.STEP
        upper = block.rows[:, :width] @ found.items.rows[:, :width].T
        upper += block.tails[:, level, None] * found.items.tails[:, level]
        assert (upper >= exact).all()


def test_draws_that_resemble_each_other_need_few_coordinates():
    rng = np.random.default_rng(6)
    no_one = np.zeros(501, dtype=np.int64), NONE
    (alike,), (unlike,) = (
        make_bounds(*(np.float32(table) for table in kind(rng, 500, 800, 320)), np.arange(800), 10, *no_one).tiles
        for kind in (like_draws, normal)
    )
    assert alike.level <= 4
    assert unlike.level >= 15


def test_norms_are_those_of_what_is_left_out():
    Y = np.random.default_rng(7).standard_normal((5, 40))
    rows, tails = enlarged(Y, np.zeros(5), 0.0)
    np.testing.assert_allclose(rows[:, :40], Y, rtol=1e-6)
    for level, width in enumerate((0, 16, 32)):
        left = np.linalg.norm(Y[:, width:], axis=1)
        assert (tails[:, level] >= left).all()
        np.testing.assert_allclose(tails[:, level], left, rtol=1e-2)
