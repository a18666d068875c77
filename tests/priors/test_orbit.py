"""Moves along the orbit of f keep f and the priors; without their Jacobian they do not."""

import numpy as np
import pytest

from tests.helpers import z_scores
from tuckergp.priors.hyper import MOST_LOG_TAU
from tuckergp.priors.orbit import scale_against_core, scale_against_mode, stretches

# Few weights and a narrow core, so that a wrong power of the Jacobian shows
N, RANKS, SD, SHAPE, RATE, LAMBDA = (4, 3), (2, 3), 0.6, 3.0, 1.5, 2.0


def of_prior(rng):
    """tau of two blocks of mode 0 and one block of mode 1, their weights, and the core, from their priors."""
    tau = [rng.gamma(SHAPE, 1 / RATE, size=2), rng.gamma(SHAPE, 1 / RATE, size=1)]
    T = by_feature(tau)
    U = [rng.standard_normal((n, r)) / np.sqrt(LAMBDA * t[:, None]) for n, r, t in zip(N, RANKS, T, strict=True)]
    return tau, U, SD * rng.standard_normal(RANKS)


def by_feature(tau):
    return [np.repeat(tau[0], [1, 3]), np.repeat(tau[1], [3])]


def summary(tau, U, W):
    squares = [np.log((u**2).sum(axis=0)) for u in U] + [np.log((W**2).sum(axis=axis)) for axis in (0, 1)]
    return np.concatenate([np.log(tau[0]), np.log(tau[1]), *squares, [np.tanh(W[0, 0] * U[0][0, 0])]])


def stretched(tau, U, W, rng, wrong=0):
    for d in (0, 1):
        unfolded = np.moveaxis(W, d, 0)
        spread = LAMBDA * (U[d] * by_feature(tau)[d][:, None]).T @ U[d]
        M, inverse = stretches(spread, unfolded / SD, N[d] + wrong, rng)
        U[d], W = U[d] @ M, np.moveaxis(inverse @ unfolded, 0, d)
    return tau, U, W


def scaled_with_core(tau, U, W, rng, wrong=0):
    # a wrong count of entries of W is a wrong Jacobian
    core = W.ravel() if not wrong else np.concatenate([W.ravel(), np.zeros(wrong)])
    c = scale_against_core(tau[0], core / SD, SHAPE, RATE, rng)
    return [tau[0] / c**2, tau[1]], [U[0] * c, U[1]], W / c


def scaled_with_mode(tau, U, W, rng, wrong=0):
    c = scale_against_mode(tau[0], tau[1], SHAPE + wrong, RATE, rng)
    return [tau[0] / c**2, tau[1] * c**2], [U[0] * c, U[1] / c], W


MOVES = [stretched, scaled_with_core, scaled_with_mode]


def changes(move, restarts, **wrong):
    """What three moves change, from unknowns of the prior on, shape (restarts, functions)."""
    rng, found = np.random.default_rng(0), []
    for _ in range(restarts):
        now = of_prior(rng)
        before, after = summary(*now), []
        for _ in range(3):
            now = move(*now, rng, **wrong)
            after.append(summary(*now))
        found.append(np.mean(after, axis=0) - before)
    return np.array(found)


@pytest.mark.parametrize("move", MOVES)
def test_f_is_kept(move):
    rng = np.random.default_rng(0)
    tau, U, W = of_prior(rng)
    f = U[0] @ W @ U[1].T
    moved, V, X = move(tau, list(U), W, rng)
    np.testing.assert_allclose(V[0] @ X @ V[1].T, f, rtol=1e-10)
    assert not np.allclose(V[0], U[0])
    if move is not stretched:  # weights move with their precisions
        for d in (0, 1):
            before, after = (u[d] ** 2 * by_feature(t)[d][:, None] for u, t in ((U, tau), (V, moved)))
            np.testing.assert_allclose(after, before)


@pytest.mark.parametrize("move", MOVES)
def test_moves_keep_the_prior(move):
    """14 functions, 3 moves: |z| < 4.5 has false alarms below 42 P(|z| > 4.5) = 3e-4 with a fresh seed."""
    found = changes(move, 1_500)
    z = z_scores(found[:, found.std(axis=0) > 1e-9])
    assert np.abs(z).max() < 4.5, np.round(z, 1)


WRONG = [(stretched, 2), (stretched, -2), (scaled_with_core, 4), (scaled_with_mode, 2.0)]


@pytest.mark.parametrize(("move", "wrong"), WRONG)
def test_a_wrong_jacobian_shows(move, wrong):
    """The test above means something: a power of the Jacobian that is off by little fails it."""
    found = changes(move, 1_500, wrong=wrong)
    assert np.abs(z_scores(found[:, found.std(axis=0) > 1e-9])).max() > 4.5


def test_scales_beyond_all_proportion_are_refused():
    rng = np.random.default_rng(0)
    for edge in (-MOST_LOG_TAU, MOST_LOG_TAU):
        tau, W = np.exp([edge]), np.ones(4)
        cs = [scale_against_core(tau, W, 0.5, 0.0, rng) for _ in range(200)]
        assert 0 < np.mean(np.array(cs) == 1.0) < 1
        assert np.abs(edge - 2 * np.log(cs)).max() <= MOST_LOG_TAU
