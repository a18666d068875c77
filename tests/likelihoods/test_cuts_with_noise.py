"""Cut points of ordered levels where observations differ in their noise: against the density on a grid, by SciPy."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from tuckergp.compute.ordinal import level_masses, total_log_mass
from tuckergp.likelihoods import Ordinal, ordinal
from tuckergp.likelihoods.given import NoiseSettings, Observed
from tuckergp.likelihoods.levels import draw_cuts, log_probability


def test_a_cut_has_its_density_where_observations_differ_in_their_noise():
    """Three levels, the first cut point fixed at 0; means over 40 batches of a chain, 5 standard errors."""
    rng = np.random.default_rng(0)
    n = 60
    root, f = np.where(rng.random(n) < 0.5, 0.3, 3.0), rng.normal(0.5, 1.0, n)
    y = np.searchsorted([0.0, 1.2], f + rng.standard_normal(n) / root)
    grid = np.linspace(0.005, 8.0, 1_600)
    # P(z below each end), z ~ N(f, 1 / root^2), for all observations and all places of the second cut point
    first, second = (stats.norm.cdf(root[:, None] * (cut - f[:, None])) for cut in (np.zeros_like(grid), grid))
    masses = np.choose(y[:, None], [first, second - first, 1 - second])
    logs = np.log(np.maximum(masses, 1e-300)).sum(axis=0) + stats.gamma.logpdf(grid, 2.0)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    cuts, drawn = np.array([0.0, 1.0]), []
    for _ in range(4_000):
        cuts = draw_cuts(cuts, f, y, rng, root=root)
        drawn.append(cuts[1])
    assert cuts[0] == 0
    for power in (1, 2):
        batches = (np.array(drawn) ** power).reshape(40, 100).mean(axis=1)
        assert abs(batches.mean() - weights @ grid**power) < 5 * batches.std() / np.sqrt(40)


def test_probabilities_of_levels_have_the_noise_of_their_observations():
    rng, cuts = np.random.default_rng(1), np.array([-0.5, 0.2, 1.0])
    y, f, root = rng.integers(4, size=40), rng.standard_normal(40), rng.uniform(0.3, 3.0, 40)
    ends = np.array([-np.inf, *cuts, np.inf])
    exact = stats.norm.cdf(ends[y + 1], f, 1 / root) - stats.norm.cdf(ends[y], f, 1 / root)
    np.testing.assert_allclose(np.exp(log_probability(y, f, cuts, root)), exact, rtol=1e-8, atol=1e-14)


def test_masses_of_levels_have_the_noise_of_each_observation():
    rng = np.random.default_rng(2)
    f, root, cuts = rng.standard_normal(40), rng.uniform(0.3, 3.0, 40), np.array([-0.7, 0.1, 1.5])
    ends = np.array([-np.inf, *cuts, np.inf])
    exact = np.diff(stats.norm.cdf(root[:, None] * (ends - f[:, None])), axis=1)
    np.testing.assert_allclose(level_masses(f, root, cuts), exact, rtol=1e-8, atol=1e-14)
    for lower, upper in pairwise(cuts):
        mass = stats.norm.cdf(upper, f, 1 / root) - stats.norm.cdf(lower, f, 1 / root)
        assert total_log_mass(f, root, lower, upper) == pytest.approx(np.log(mass).sum(), rel=1e-8)


def test_the_likelihood_draws_its_cut_points_with_the_noise_of_each_observation(monkeypatch):
    rng, n = np.random.default_rng(3), 30
    index = rng.integers(5, size=(n, 1)).astype(np.int32)
    observed = Observed(rng.integers(3, size=n).astype(float), None, None, index, (np.arange(5, dtype=np.int32),), (5,))
    likelihood, given = Ordinal((0.0, 1.0)), []

    def draw(cuts, f, y, rng, root=None, **_):
        given.append(root)
        return cuts

    monkeypatch.setattr(ordinal, "draw_cuts", draw)
    state = likelihood.start(observed, NoiseSettings(True, 1.0, 0.5))
    factors = np.array([0.2, 1.0, 3.0, 0.5, 2.0])
    state = state._replace(rows=state.rows._replace(factors=(factors,)))
    likelihood.draw_given_function(state, observed, np.zeros(n), rng)
    np.testing.assert_allclose(given[0], np.sqrt(factors[index[:, 0]]))
