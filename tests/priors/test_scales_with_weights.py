"""tau of a block drawn together with its weights: against the density on a grid, computed from the data themselves."""

import numpy as np
from scipy import stats

from tuckergp.priors.given import ModeGiven
from tuckergp.priors.hyper import PrecisionPrior
from tuckergp.priors.scales import scales_given_noise

SHAPE, RATE = 2.0, 0.7


def problem():
    """Two blocks of features of 6 rows at rank 2, observed with noise of precision 3."""
    rng = np.random.default_rng(0)
    features, blocks = rng.standard_normal((6, 5)), (slice(0, 2), slice(2, 5))
    given = ModeGiven(features, blocks, None, PrecisionPrior(3.0, 1.0, True), SHAPE, RATE)
    row, z = rng.integers(6, size=30), rng.standard_normal((30, 2))
    B, tau = 0.5 * rng.standard_normal((5, 2)), np.array([1.5, 0.4])
    y = ((features @ B)[row] * z).sum(axis=1) + rng.standard_normal(30) / 3**0.5
    A, b = np.zeros((6, 2, 2)), np.zeros((6, 2))
    for m, at, target in zip(row, z, y, strict=True):
        A[m] += 3 * np.outer(at, at)
        b[m] += 3 * at * target
    return given, A, b, B, tau, (row, z, y)


def test_tau_given_whitened_weights_has_its_density():
    """The chain of many draws has the moments of the joint density of both blocks' log tau; 5 standard errors."""
    given, A, b, B, tau, (row, z, y) = problem()
    white = [B[block] * np.sqrt(tau[g]) for g, block in enumerate(given.blocks)]
    grid = np.linspace(-6, 6, 241)
    parts = [((given.features[:, block] @ white[g])[row] * z).sum(axis=1) for g, block in enumerate(given.blocks)]
    log_density = np.empty((241, 241))
    for i, first in enumerate(grid):
        f = parts[0] * np.exp(-first / 2) + parts[1] * np.exp(-grid / 2)[:, None]
        prior = stats.gamma.logpdf(np.exp(first), SHAPE, scale=1 / RATE) + first
        prior = prior + stats.gamma.logpdf(np.exp(grid), SHAPE, scale=1 / RATE) + grid
        log_density[i] = stats.norm.logpdf(y, f, 3**-0.5).sum(axis=1) + prior
    density = np.exp(log_density - log_density.max())
    density /= density.sum()
    marginal = [density.sum(axis=1), density.sum(axis=0)]
    rng, drawn = np.random.default_rng(1), []
    for _ in range(6_000):
        B, tau = scales_given_noise(given, A, b, B, tau, rng)
        drawn.append(np.log(tau))
    drawn = np.array(drawn)
    for g, block in enumerate(given.blocks):
        np.testing.assert_allclose(B[block] * np.sqrt(tau[g]), white[g], rtol=1e-8)
        for power in (1, 2):
            expected = marginal[g] @ grid**power
            blocks = (drawn[:, g] ** power).reshape(60, 100).mean(axis=1)
            assert abs(blocks.mean() - expected) < 5 * blocks.std() / np.sqrt(60)
