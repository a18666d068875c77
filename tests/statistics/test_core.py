"""Draws of full cores given the factors, by every route, against the exact posterior of a linear regression."""

from functools import reduce

import numpy as np
import pytest

from tests.helpers import random_design
from tuckergp.likelihoods.precision import Precision
from tuckergp.model.tucker import make_core
from tuckergp.statistics import core as core_module
from tuckergp.statistics.core import core_given_factors
from tuckergp.statistics.evidence import sort_by_row


@pytest.mark.parametrize("route", ["dense", "conjugate gradients"])
@pytest.mark.parametrize("ranks", [(2, 3), (2, 1, 3)], ids=str)
def test_draws_of_a_core_have_the_conditional_mean_and_covariance(ranks, route, monkeypatch):
    """Means and covariances of 1,500 independent draws, whitened by the exact ones: |z| < 5 for 27 numbers.

    Weights and noise factors differ between observations, and data and prior count about the same. With a fresh seed,
    false alarms below 1e-4.
    """
    if route == "conjugate gradients":
        monkeypatch.setattr(core_module, "LARGEST_DENSE", 0)
    rng = np.random.default_rng(3)
    rows, n, prior, count = [4, 5, 3][: len(ranks)], 10, 1.5, 1_500
    design, core = random_design(rng, rows, [1] * len(ranks), n), make_core("full", list(ranks))
    psi = [rng.standard_normal((M, r)) for M, r in zip(rows, ranks, strict=True)]
    y, weight = 2 * rng.standard_normal(n), rng.uniform(0.2, 3.0, n)
    factors = [rng.uniform(0.3, 2.0, M) for M in rows]
    # the posterior of a regression on products of factors
    X = np.array([reduce(np.kron, [psi[d][row] for d, row in enumerate(index)]) for index in design.index])
    w = 0.7 * weight * np.prod([factors[d][design.index[:, d]] for d in range(len(ranks))], axis=0)
    covariance = np.linalg.inv(X.T @ (w[:, None] * X) + prior * np.eye(X.shape[1]))
    mean, k = covariance @ X.T @ (w * y), X.shape[1]
    given = (core, psi, design.index, sort_by_row(design, 0), y, Precision(0.7, weight, factors), prior)
    np.testing.assert_allclose(core_given_factors(*given, np.zeros(k)), mean, rtol=1e-6, atol=1e-7)
    draws = np.array([core_given_factors(*given, np.zeros(k), rng) for _ in range(count)])
    white = np.linalg.solve(np.linalg.cholesky(covariance), (draws - mean).T)
    assert np.abs(white.mean(axis=1)).max() < 5 / np.sqrt(count)
    # products of two independent standard normals have variance 1, squares of one 2
    z = (white @ white.T / count - np.eye(k)) / np.sqrt((1 + np.eye(k)) / count)
    assert np.abs(z).max() < 5
