"""Predicted distributions against numerical integrals, sums written out, and the mixtures they stand for."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from tuckergp.errors import InputError
from tuckergp.evaluation.metrics import interval_coverage, levels_crps, levels_nll, normal_crps, normal_nll

LEVELS = np.array([1.0, 2.0, 4.0, 4.5])


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_normal_scores_agree_with_scipy_and_with_the_integral(rng):
    y, mean, std = rng.normal(size=6), rng.normal(size=6), rng.uniform(0.2, 2.0, 6)
    np.testing.assert_allclose(normal_nll(y, mean, std), -stats.norm(mean, std).logpdf(y))
    for value, m, s in zip(y, mean, std, strict=True):
        law = stats.norm(m, s)
        below, _ = integrate.quad(lambda x, law=law: law.cdf(x) ** 2, -20, value, epsabs=1e-10)
        above, _ = integrate.quad(lambda x, law=law: law.sf(x) ** 2, value, 20, epsabs=1e-10)
        assert normal_crps([value], [m], [s])[0] == pytest.approx(below + above, abs=1e-8)


def test_levels_agree_with_sums_written_out(rng):
    p = rng.dirichlet(np.ones(4), 30)
    y = rng.choice(LEVELS, 30)
    for row in range(30):
        index = list(LEVELS).index(y[row])
        assert levels_nll(y, LEVELS, p)[row] == pytest.approx(-math.log(p[row, index]))
        away = sum(p[row, a] * abs(LEVELS[a] - y[row]) for a in range(4))
        apart = sum(p[row, a] * p[row, b] * abs(LEVELS[a] - LEVELS[b]) for a in range(4) for b in range(4))
        assert levels_crps(y, LEVELS, p)[row] == pytest.approx(away - apart / 2)


def test_a_rating_that_is_no_level_was_impossible():
    p = [[0.25] * 4, [0.0, 0.5, 0.5, 0.0]]
    assert np.isinf(levels_nll([3.0, 9.0], LEVELS, p)).all()
    assert np.isinf(levels_nll([1.0], LEVELS, p[1:])).all()
    # beyond all levels the distance still counts
    assert levels_crps([9.0], LEVELS, p[1:])[0] == pytest.approx(6.0 - 0.5)


def test_one_normal_stands_well_for_a_mixture_of_draws(rng):
    """As with ratings: f is drawn with an sd of 0.4, noise with sds around 0.9."""
    f = 3.5 + 0.4 * rng.standard_normal((200, 40))
    sd = 0.9 * np.exp(0.15 * rng.standard_normal((200, 40)))
    y = f[0] + sd[0] * rng.standard_normal(40)
    mean, std = f.mean(axis=0), np.sqrt(f.var(axis=0) + (sd**2).mean(axis=0))
    exact_nll = -np.log(stats.norm(f, sd).pdf(y).mean(axis=0))

    def expected_distance(gap, spread):
        return gap * (2 * stats.norm.cdf(gap / spread) - 1) + 2 * spread * stats.norm.pdf(gap / spread)

    exact_crps = [
        expected_distance(y[n] - f[:, n], sd[:, n]).mean()
        - expected_distance(f[:, None, n] - f[None, :, n], np.hypot(sd[:, None, n], sd[None, :, n])).mean() / 2
        for n in range(40)
    ]
    assert normal_nll(y, mean, std).mean() == pytest.approx(exact_nll.mean(), abs=0.01)
    assert normal_crps(y, mean, std).mean() == pytest.approx(np.mean(exact_crps), abs=0.002)


def test_ends_belong_to_an_interval():
    assert interval_coverage([1, 2, 3, 4], [1, 1, 1, 1], [3, 3, 3, 3]).tolist() == [True, True, True, False]


@pytest.mark.parametrize(
    ("metric", "arguments", "message"),
    [
        (normal_nll, ([1], [1], [0]), "std must be above 0, but it is 0 at row 0"),
        (normal_crps, ([1, 2], [1], [1]), "same length: y 2, mean 1, std 1"),
        (normal_nll, ([math.nan], [1], [1]), "y is nan at row 0"),
        (interval_coverage, ([1], [2], [1]), "low is above high at row 0"),
        (levels_nll, ([1], [2, 1], [[0.5, 0.5]]), "increasing"),
        (levels_crps, ([1], [1, 2], [[0.5, 0.6]]), "sum to 1"),
        (levels_crps, ([1], [1, 2], [0.5, 0.5]), "a column for each of 2 levels"),
    ],
)
def test_bad_input_is_named(metric, arguments, message):
    with pytest.raises(InputError, match=message):
        metric(*arguments)
