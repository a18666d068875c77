"""Draws of hyperparameters against their densities: Lambda, and tau of blocks with weights given or integrated out."""

import numpy as np
import pytest
from scipy import stats

from tuckergp.priors.hyper import MOST_LOG_TAU, PrecisionPrior, block_precisions, collapsed_precision

ROWS = np.array([[1.0, 0.3], [-0.4, 2.0], [0.8, -1.1], [0.2, 0.5]])


def prior_of(prior, r):
    """The prior of Lambda by SciPy: of its scale, or of the matrix."""
    if prior.scalar:
        return stats.gamma(prior.degrees * r / 2, scale=2 / (prior.square * r))
    return stats.wishart(prior.degrees, np.eye(r) / prior.square)


@pytest.mark.parametrize("scalar", [False, True])
def test_lambda_is_drawn_from_prior_times_likelihood(scalar):
    """Weights of prior draws by the likelihood of the rows give the moments of the posterior."""
    rng, prior, r = np.random.default_rng(0), PrecisionPrior(9.0, 5.0, scalar), 2
    scales = prior_of(prior, r).rvs(size=200_000, random_state=rng)
    each = scales[:, None, None] * np.eye(r) if scalar else scales
    spread = ROWS.T @ ROWS
    logs = 0.5 * (len(ROWS) * np.linalg.slogdet(each)[1] - (each * spread).sum(axis=(1, 2)))
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    drawn = np.array([prior.draw(spread, len(ROWS), rng) for _ in range(20_000)])
    for function in (lambda L: L[:, 0, 0], lambda L: L[:, 1, 1] ** 2, lambda L: L[:, 0, 1], lambda L: L[:, 0, 1] ** 2):
        values, expected = function(drawn), weights @ function(each)
        error = np.sqrt(weights**2 @ (function(each) - expected) ** 2 + values.var() / len(values))
        assert abs(values.mean() - expected) <= 5 * error


@pytest.mark.parametrize("scalar", [False, True])
def test_rows_with_lambda_integrated_out_have_their_density(scalar):
    """Of n rows, log p(rows) = log p(rows | Lambda) + log p(Lambda) - log p(Lambda | rows) at any Lambda."""
    prior, r = PrecisionPrior(5.0, 3.5, scalar), 2
    L = 1.3 * np.eye(r) if scalar else np.array([[1.3, 0.4], [0.4, 0.9]])
    n, logs, marginals = len(ROWS), [], []
    for scale in (0.5, 1.0, 2.0):
        spread = scale**2 * ROWS.T @ ROWS
        given = stats.multivariate_normal(np.zeros(r), np.linalg.inv(L)).logpdf(scale * ROWS).sum()
        if scalar:
            shape, rate = prior.degrees * r / 2, prior.square * r / 2
            after = stats.gamma(shape + n * r / 2, scale=1 / (rate + np.trace(spread) / 2)).logpdf(1.3)
            before = prior_of(prior, r).logpdf(1.3)
        else:
            after = stats.wishart(prior.degrees + n, np.linalg.inv(prior.square * np.eye(r) + spread)).logpdf(L)
            before = prior_of(prior, r).logpdf(L)
        logs.append(given + before - after)
        marginals.append(prior.log_marginal(spread, n))
    np.testing.assert_allclose(np.diff(marginals), np.diff(logs), rtol=1e-9)


def test_one_row_has_students_distribution():
    """With Lambda ~ Gamma(5 / 2, 5 v / 2) integrated out, numbers N(0, 1 / Lambda) are a multivariate t of scale v."""
    x = np.array([[0.5], [2.0], [-1.0]])
    for scalar in (False, True):
        prior = PrecisionPrior(5.0, 5.0 * 0.7, scalar)
        found = [prior.log_marginal(scale**2 * x.T @ x, 3) for scale in (0.3, 1.0, 4.0)]
        exact = [stats.multivariate_t(np.zeros(3), 0.7 * np.eye(3), 5.0).logpdf(s * x[:, 0]) for s in (0.3, 1.0, 4.0)]
        np.testing.assert_allclose(np.diff(found), np.diff(exact), rtol=1e-9)


def test_tau_given_weights_is_gamma():
    """Weights of a block are N(0, (tau Lambda)^-1): so tau given them, on a grid, against many draws."""
    rng = np.random.default_rng(1)
    L, B, blocks = np.array([[2.0, 0.6], [0.6, 0.5]]), rng.standard_normal((5, 2)), (slice(0, 2), slice(2, 5))
    drawn = np.array([block_precisions(B, L, blocks, 2.5, 0.8, rng) for _ in range(4_000)])
    grid = np.linspace(1e-3, 30, 30_000)
    for g, block in enumerate(blocks):
        log_density = stats.gamma(2.5, scale=1 / 0.8).logpdf(grid)
        for b in B[block]:  # log N(b; 0, (tau L)^-1), but for its constant
            log_density = log_density + np.log(grid) - 0.5 * grid * (b @ L @ b)
        density = np.exp(log_density - log_density.max())
        distribution = np.cumsum(density) / density.sum()
        assert stats.kstest(drawn[:, g], lambda x, F=distribution: np.interp(x, grid, F)).pvalue > 1e-4


def test_tau_with_weights_integrated_out_keeps_its_density():
    """Of one block among two; the density of the data is that of numbers N(0, 1 + 1 / tau_0 + 1 / tau_1)."""
    rng, x = np.random.default_rng(2), np.array([1.2, -0.4, 2.0])

    def log_density(tau):
        variance = 1 + (1 / tau).sum()
        return -0.5 * float(len(x) * np.log(variance) + x @ x / variance)

    grid = np.linspace(-12, 6, 1_801)
    logs = np.array([log_density(np.array([3.0, t])) for t in np.exp(grid)])
    weights = np.exp(logs + stats.gamma(1.5, scale=1 / 0.5).logpdf(np.exp(grid)) + grid)
    weights /= weights.sum()
    tau, drawn = np.array([3.0, 1.0]), []
    for _ in range(6_000):
        tau = collapsed_precision(tau, 1, log_density, 1.5, 0.5, rng)
        assert tau[0] == 3.0
        drawn.append(np.log(tau[1]))
    for power in (1, 2):
        batches = (np.array(drawn) ** power).reshape(60, 100).mean(axis=1)
        assert abs(batches.mean() - weights @ grid**power) < 5 * batches.std() / np.sqrt(60)


def test_precisions_of_blocks_stay_within_their_bounds():
    rng = np.random.default_rng(0)
    blocks = [slice(0, 2), slice(2, 4), slice(4, 6)]
    B = np.repeat([1e20, 1e-20, 1.0], 2)[:, None] * np.ones((6, 3))
    drawn = block_precisions(B, np.eye(3), blocks, 0.5, 1e-30, rng)
    np.testing.assert_allclose(np.log(drawn[:2]), [-MOST_LOG_TAU, MOST_LOG_TAU])
    assert abs(np.log(drawn[2])) < 5
