"""Quantiles of mixtures of normals against bisection of their distribution function."""

import numpy as np
import pytest
from scipy import optimize, stats

from tuckergp.likelihoods.mixture import mixture_quantiles


@pytest.mark.parametrize("level", [1e-6, 0.05, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("gap", [0.0, 1.0, 50.0])
def test_quantiles_equal_those_of_bisection(level, gap):
    rng = np.random.default_rng(0)
    mean = rng.standard_normal((7, 4)) + gap * rng.integers(0, 2, (7, 4))
    sd = rng.uniform(0.01, 2.0, (7, 4))
    found = mixture_quantiles(mean, sd, level)
    for k in range(4):
        expected = optimize.brentq(
            lambda x, k=k: stats.norm.cdf(x, mean[:, k], sd[:, k]).mean() - level, -100, 200, xtol=1e-13
        )
        # in a flat stretch between components many values are as good
        assert stats.norm.cdf(found[k], mean[:, k], sd[:, k]).mean() == pytest.approx(level, rel=1e-5)
        assert found[k] == pytest.approx(expected, abs=1e-6) or gap == 50.0


def test_one_draw_is_a_normal():
    found = mixture_quantiles(np.array([[2.0, -1.0]]), np.array([[0.5, 3.0]]), 0.95)
    np.testing.assert_allclose(found, stats.norm.ppf(0.95, [2.0, -1.0], [0.5, 3.0]), rtol=1e-9)


def test_components_far_apart_have_quantiles_without_overflow():
    """Between them the density is next to nothing, so that a step of Newton's method is no number."""
    with np.errstate(over="raise"):
        found = mixture_quantiles(np.array([[-80.7], [80.7]]), np.ones((2, 1)), 0.3)
    assert found == pytest.approx(-80.7 + stats.norm.ppf(0.6))
