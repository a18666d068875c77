"""Log predictive densities: those of scipy's distributions, and what evaluation takes for them."""

import numpy as np
import pytest
from scipy import stats

from tuckergp import TuckerRecommender
from tuckergp.data.datasets import make_ratings
from tuckergp.likelihoods import Gaussian, NegativeBinomial, Ordinal, Poisson, Student
from tuckergp.likelihoods.given import Predicted

RNG = np.random.default_rng(0)
F = RNG.standard_normal((3, 4))
ALPHA, NU, H = np.array([1.0, 2.0, 4.0]), np.array([3.0, 5.0, 30.0]), np.array([0.5, 3.0, 40.0])
FACTORS, EXPOSURE = RNG.uniform(0.5, 2, (3, 4)), RNG.uniform(0.5, 2, 4)
Y, COUNTS = RNG.normal(2, 3, 4), np.array([0.0, 1.0, 4.0, 9.0])
SD = (ALPHA[:, None] * FACTORS) ** -0.5


def test_of_numbers_with_noise():
    at = Predicted(F, {"alpha": ALPHA, "nu": NU}, FACTORS)
    normal = stats.norm(1 + 2 * F, 2 * SD).logpdf(Y)
    np.testing.assert_allclose(Gaussian(mean=1.0, scale=2.0).log_densities(at, Y), normal)
    t = stats.t(NU[:, None], 1 + 2 * F, 2 * SD).logpdf(Y)
    np.testing.assert_allclose(Student(mean=1.0, scale=2.0).log_densities(at, Y), t)


def test_quantiles_of_one_draw_are_those_of_its_normal_distribution():
    at = Predicted(F[2:], {"alpha": ALPHA[2:]}, FACTORS[2:])
    expected = stats.norm(1 + 2 * F[2], 2 * SD[2]).ppf([[0.05], [0.5], [0.99]]).T
    np.testing.assert_allclose(Gaussian(mean=1.0, scale=2.0).quantiles(at, [0.05, 0.5, 0.99]), expected, rtol=1e-6)


def test_of_counts():
    at, rate = Predicted(F, {"dispersion": H}, exposure=EXPOSURE), EXPOSURE * np.exp(0.3 + F)
    np.testing.assert_allclose(Poisson(mean=0.3).log_densities(at, COUNTS), stats.poisson(rate).logpmf(COUNTS))
    expected = stats.nbinom(H[:, None], H[:, None] / (H[:, None] + rate)).logpmf(COUNTS)
    np.testing.assert_allclose(NegativeBinomial(mean=0.3).log_densities(at, COUNTS), expected)


def test_of_levels():
    levels = Ordinal((0.0, 1.0), (1.0, 2.0, 5.0))
    at = Predicted(F, {"cuts": np.array([[0.0, 1.0]] * 3)}, FACTORS)
    logs = levels.log_densities(at, np.array([1.0, 2.0, 5.0, 3.0]))
    probabilities = levels.probabilities(at)
    # z = f + e / factor^(1/2) lies between the cut points
    first, last = stats.norm(F, FACTORS**-0.5).cdf(0.0), stats.norm(F, FACTORS**-0.5).sf(1.0)
    np.testing.assert_allclose(probabilities, np.stack([first, 1 - first - last, last], axis=2), rtol=1e-9)
    np.testing.assert_allclose(np.exp(logs[:, :3]), probabilities[:, np.arange(3), np.arange(3)])
    assert np.isneginf(logs[:, 3]).all()


@pytest.mark.parametrize("likelihood", ["gaussian", "student"])
def test_a_recommender_averages_densities_over_its_draws(likelihood):
    data = make_ratings(n_users=40, n_items=30, n_ratings=600, random_state=0)
    model = TuckerRecommender(rank=2, likelihood=likelihood, draws=8, warmup=5, time=None, random_state=0)
    model.fit(data.train)
    alone = [model.fit_.only(s).log_density(model.layout_.pairs(data.test), data.test["rating"]) for s in range(8)]
    np.testing.assert_allclose(np.exp(model.log_density(data.test)), np.exp(alone).mean(axis=0), rtol=1e-9)
