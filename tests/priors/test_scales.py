"""tau of a block drawn together with its weights: against the density on a grid, computed from the data themselves."""

import numpy as np
from scipy import stats

from tuckergp.priors import scales as scales_module
from tuckergp.priors.given import ModeGiven
from tuckergp.priors.hyper import PrecisionPrior
from tuckergp.priors.regressions import regression_of
from tuckergp.priors.scales import scales_given_factors, scales_given_noise

SHAPE, RATE = 2.0, 0.7


def problem():
    """Two blocks of features of 6 rows at rank 2, which explain nearly the same, observed with noise of precision 3."""
    rng = np.random.default_rng(0)
    features, blocks = rng.standard_normal((6, 5)), (slice(0, 2), slice(2, 5))
    features[:, 2:4] = features[:, :2] + 0.1 * features[:, 2:4]
    given = ModeGiven(features, blocks, None, PrecisionPrior(3.0, 1.0, True), SHAPE, RATE)
    row, z = rng.integers(6, size=30), rng.standard_normal((30, 2))
    B, tau = 0.5 * rng.standard_normal((5, 2)), np.array([1.5, 0.4])
    B[2:4] = B[:2]
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
            assert_mean(drawn[:, g] ** power, expected)
    # of blocks that were drawn given old values of each other, each would have its density, but not both together
    assert_mean(drawn.prod(axis=1), grid @ density @ grid)


def test_tau_of_wide_blocks_and_lambda_given_factors_have_their_density(monkeypatch):
    """At rank 1 psi given tau is a multivariate t, Lambda integrated out; moments of tau and of Lambda by a grid."""
    monkeypatch.setattr(scales_module, "WIDE", 2)
    rng, dof, size, variance = np.random.default_rng(2), 4.0, 0.8, 0.3
    features, blocks = rng.standard_normal((7, 5)), (slice(0, 2), slice(2, 5))
    features[:, 2:4] = features[:, :2] + 0.3 * features[:, 2:4]  # so that the blocks explain much the same
    prior = PrecisionPrior(dof, size, False)
    given = ModeGiven(features, blocks, regression_of(features, blocks), prior, SHAPE, RATE)
    psi = 1.5 * rng.standard_normal((7, 1))
    grid = np.linspace(-6, 5, 45)
    log_density, means = np.empty((45, 45)), np.empty((45, 45))
    prior_density = stats.gamma.logpdf(np.exp(grid), SHAPE, scale=1 / RATE) + grid
    for i, j in np.ndindex(45, 45):
        K = variance * np.eye(7) + features[:, :2] @ features[:, :2].T / np.exp(grid[i])
        K += features[:, 2:] @ features[:, 2:].T / np.exp(grid[j])
        rate = dof * size + psi[:, 0] @ np.linalg.solve(K, psi[:, 0])
        # a t distribution with dof degrees of freedom; Lambda given tau ~ Gamma((dof + 7) / 2, rate / 2)
        log_density[i, j] = -0.5 * ((dof + 7) * np.log(rate) + np.linalg.slogdet(K)[1])
        log_density[i, j] += prior_density[i] + prior_density[j]
        means[i, j] = (dof + 7) / rate
    density = np.exp(log_density - log_density.max())
    density /= density.sum()
    tau, drawn = np.ones(2), []
    for _ in range(3_000):
        tau, precision = scales_given_factors(given, psi, tau, variance, rng)
        drawn.append([*np.log(tau), precision[0, 0]])
    first, second, precision = np.array(drawn).T
    for values, at in ((first, grid[:, None]), (second, grid)):
        assert_mean(values, (density * at).sum())
        assert_mean(values**2, (density * at**2).sum())
    assert_mean(precision, (density * means).sum())
    assert_mean(first * precision, (density * means * grid[:, None]).sum())


def assert_mean(values, expected):
    batches = values.reshape(60, -1).mean(axis=1)
    assert abs(batches.mean() - expected) < 5 * batches.std() / np.sqrt(60)
