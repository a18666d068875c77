"""The prior of the sizes of components, which all modes share."""

import numpy as np
from scipy import stats
from scipy.integrate import quad

from tuckergp.priors.shrinkage import ComponentPrior

RNG = np.random.default_rng(0)
ROWS = [RNG.standard_normal((n, 2)) * [1.0, 0.2] for n in (3, 5)]
PRIOR = ComponentPrior(2.0, np.array([0.7, 1.5]))


def test_rows_of_all_modes_tell_of_each_precision():
    here, other = ROWS
    prior = PRIOR.given([(other.T @ other, len(other))])
    drawn = np.array([prior.draw(here.T @ here, len(here), RNG) for _ in range(20_000)])
    assert (drawn[:, 0, 1] == 0).all()
    for k in range(2):
        # Bayes' rule with the density of all rows: Gamma(2 + 8 / 2, rate + sum of squares / 2)
        exact = stats.gamma(
            2.0 + 4, scale=1 / (PRIOR.rate[k] + (here[:, k] @ here[:, k] + other[:, k] @ other[:, k]) / 2)
        )
        assert stats.kstest(drawn[:, k, k], exact.cdf).pvalue > 1e-4


def test_the_marginal_is_the_integral_over_the_precisions():
    def integral(rows, k):
        """log of the integral of N(column k | 0, 1 / x) Gamma(x | shape, rate)."""
        prior = stats.gamma(PRIOR.shape, scale=1 / PRIOR.rate[k])
        return np.log(quad(lambda x: prior.pdf(x) * stats.norm.pdf(rows[:, k], scale=x**-0.5).prod(), 0, 60)[0])

    first, second = ROWS[1], 1.7 * ROWS[1]
    ours = [PRIOR.log_marginal(rows.T @ rows, len(rows)) for rows in (first, second)]
    exact = [sum(integral(rows, k) for k in range(2)) for rows in (first, second)]
    np.testing.assert_allclose(ours[1] - ours[0], exact[1] - exact[0], rtol=1e-6)


def test_the_prior_is_centred_at_the_variance_of_the_model():
    prior = ComponentPrior.centred(0.25, 3)
    np.testing.assert_allclose(prior.shape / prior.rate, 4.0)
