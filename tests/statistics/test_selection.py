"""Draws of sparse cores given the factors, against exact posteriors: learned patterns, and blocks of entries."""

from itertools import product

import numpy as np
import pytest
from scipy import special

from tests.helpers import random_design
from tuckergp.likelihoods.precision import Precision
from tuckergp.model.cores import Entries, Learned, Random
from tuckergp.model.tucker import make_core
from tuckergp.statistics import core as core_module
from tuckergp.statistics.core import core_given_factors
from tuckergp.statistics.evidence import sort_by_row
from tuckergp.statistics.selection import entries_given_factors


def regression(core, rng, n=60, noise=0.5, W=None):
    """Factors, targets with these entries, and the columns that W is regressed on, by NumPy."""
    design = random_design(rng, [8] * core.modes, [4] * core.modes, n)
    psi = [rng.standard_normal((8, int(r))) for r in core.ranks]
    X = np.ones((n, core.n_weights))
    for d, table in enumerate(psi):
        there = core.coords[:, d] >= 0
        X[:, there] *= table[design.index[:, d]][:, core.coords[there, d]]
    W = rng.standard_normal(core.n_weights) if W is None else W
    return design, psi, X, X @ W + noise * rng.standard_normal(n)


def test_draws_of_a_learned_pattern_have_the_posterior_of_all_patterns():
    # Five entries: 32 patterns, each with a normal marginal likelihood in closed form and a beta-binomial prior.
    # Inclusion probabilities and means of W of 8,000 sweeps by 50 batches; |z| < 4.5 ten times: false alarms below
    # 10 P(|t_49| > 4.5) = 4e-4.
    rng = np.random.default_rng(4)
    core = make_core(Learned(Entries([(0, 0, 0), (1, 1, None), (None, 0, 1), (1, 0, 1), (None,) * 3]), 0.3), [2, 2, 2])
    design, psi, X, y = regression(core, rng, n=25, noise=1.0, W=np.array([0.8, 0.3, 0.5, 0.2, 0.6]))
    weight, alpha, prior = rng.uniform(0.5, 2.0, 25), 0.8, 0.7
    precision = alpha * weight
    logs, means, patterns = [], [], [np.array(p) for p in product([False, True], repeat=5)]
    for there in patterns:
        Z = X[:, there]
        S = Z.T @ (precision[:, None] * Z) + prior * np.eye(there.sum())
        right = Z.T @ (precision * y)
        fit = 0.5 * (there.sum() * np.log(prior) - np.linalg.slogdet(S)[1] + right @ np.linalg.solve(S, right))
        logs.append(fit + special.betaln(0.6 + there.sum(), 1.4 + 5 - there.sum()))
        mean = np.zeros(5)
        mean[there] = np.linalg.solve(S, right)
        means.append(mean)
    posterior = special.softmax(logs)
    expected = np.concatenate([posterior @ np.array(patterns), posterior @ np.array(means)])
    W, draws = rng.standard_normal(5), []
    for _ in range(8_000):
        W = entries_given_factors(core, psi, design.index, y, Precision(alpha, weight), prior, W, rng)
        draws.append(np.concatenate([W != 0, W]))
    batches = np.array(draws).reshape(50, 160, 10).mean(axis=1)
    z = (batches.mean(axis=0) - expected) / batches.std(axis=0, ddof=1) * np.sqrt(50)
    assert np.abs(z).max() < 4.5, np.round(z, 1)
    assert 0.05 < expected[:5].min() < expected[:5].max() < 0.98  # the example decides nothing by itself


def test_planted_entries_are_found_given_the_factors():
    # 5 entries of 64, each about 10 noise standard deviations over 400 observations
    rng = np.random.default_rng(0)
    core = make_core(Learned("full", share=0.1), [4, 4, 4])
    planted = rng.choice(64, size=5, replace=False)
    truth = np.zeros(64)
    truth[planted] = rng.choice([-1.0, 1.0], size=5)
    design, psi, _, y = regression(core, rng, n=400, noise=0.5, W=truth)
    W, there = np.ones(64), np.zeros(64)
    for sweep in range(150):
        W = entries_given_factors(core, psi, design.index, y, Precision(4.0), 1.0, W, rng)
        there += (W != 0) * (sweep >= 50) / 100
    assert sorted(np.flatnonzero(there > 0.5)) == sorted(planted)
    np.testing.assert_allclose(W[planted], truth[planted], atol=0.2)


def exact(X, y, precision, prior):
    S = np.linalg.inv(X.T @ (precision[:, None] * X) + prior * np.eye(X.shape[1]))
    return S @ X.T @ (precision * y), S


@pytest.mark.parametrize("overrelaxation", [0.0, 0.6])
@pytest.mark.parametrize("pattern", [Random(7), "pairwise"], ids=str)
def test_blocks_of_entries_keep_the_posterior_of_all(pattern, overrelaxation, monkeypatch):
    # blocks of three entries; 1,500 sweeps in 50 batches, |z| < 4.5 at most 35 times: false alarms below 0.002
    monkeypatch.setattr(core_module, "BLOCK", 3)
    rng = np.random.default_rng(1)
    core = make_core(pattern, [2, 2, 2], rng)
    design, psi, X, y = regression(core, rng)
    precision, data, prior = Precision(2.0), sort_by_row(design, 0), 1.5
    mean, covariance = exact(X, y, np.full(len(y), 2.0), prior)
    W, draws = np.zeros(7), []
    for _ in range(1_500):
        W = core_given_factors(core, psi, design.index, data, y, precision, prior, W, rng, overrelaxation)
        draws.append(np.concatenate([W - mean, np.outer(W - mean, W - mean)[np.triu_indices(7)]]))
    expected = np.concatenate([np.zeros(7), covariance[np.triu_indices(7)]])
    batches = np.array(draws).reshape(50, -1, 35).mean(axis=1)
    z = (batches.mean(axis=0) - expected) / batches.std(axis=0, ddof=1) * np.sqrt(50)
    assert np.abs(z).max() < 4.5, np.round(z, 1)


@pytest.mark.parametrize("largest", [3_000, 0], ids=["cholesky", "iterative"])
def test_an_overrelaxed_core_is_the_plain_draw_moved_to_the_other_side_of_the_mean(largest, monkeypatch):
    monkeypatch.setattr(core_module, "LARGEST_DENSE", largest)
    rng = np.random.default_rng(1)
    core = make_core(Random(7), [2, 2, 2], rng)
    design, psi, X, y = regression(core, rng)
    mean, _ = exact(X, y, np.full(len(y), 2.0), 1.5)
    last, data = rng.standard_normal(7), sort_by_row(design, 0)
    given = (core, psi, design.index, data, y, Precision(2.0), 1.5, last)
    plain, moved = (core_given_factors(*given, np.random.default_rng(3), share) for share in (0.0, 0.6))
    np.testing.assert_allclose(moved, mean - 0.6 * (last - mean) + 0.8 * (plain - mean), rtol=1e-5)


def test_blocks_climb_to_the_most_probable_core(monkeypatch):
    monkeypatch.setattr(core_module, "BLOCK", 3)
    rng = np.random.default_rng(1)
    core = make_core(Random(7), [2, 2, 2], rng)
    design, psi, X, y = regression(core, rng)
    mean, _ = exact(X, y, np.full(len(y), 2.0), 1.5)
    W, data = np.zeros(7), sort_by_row(design, 0)
    for _ in range(200):
        W = core_given_factors(core, psi, design.index, data, y, Precision(2.0), 1.5, W)
    np.testing.assert_allclose(W, mean, atol=1e-8)
