"""Scales drawn with the weights integrated out: do they keep the prior?"""

import numpy as np
import pytest
from scipy import stats

from tests.helpers import z_scores
from tuckergp.priors import scales as scales_module
from tuckergp.priors.given import ModeGiven
from tuckergp.priors.hyper import PrecisionPrior
from tuckergp.priors.regressions import regression_of
from tuckergp.priors.scales import scales_given_factors

# Few rows, few degrees of freedom and a wide prior of tau, so that two degrees too few show
M, R, DOF, SHAPE, RATE, VARIANCE, SD = 5, 2, 1.0, 2.0, 1.0, 0.7, 0.5


def changes(scalar, prior, restarts, rng):
    """What four rounds of factors given scales, scales given factors change, from scales of the prior on."""
    phi, blocks = rng.standard_normal((M, 4)), (slice(0, 4),)
    given = ModeGiven(phi, blocks, regression_of(phi, blocks, None), prior, SHAPE, RATE)
    found = []
    for _ in range(restarts):
        tau = rng.gamma(SHAPE, 1 / RATE, size=1)
        if scalar:
            covariance = np.eye(R) * stats.invgamma.rvs(DOF * R / 2 + 1, scale=DOF * VARIANCE * R / 2, random_state=rng)
        else:
            covariance = stats.invwishart.rvs(DOF + R + 1, DOF * VARIANCE * np.eye(R), random_state=rng)
        before, after = summary(tau, np.linalg.inv(covariance)), []
        for _ in range(4):
            K = SD**2 * np.eye(M) + (phi / tau) @ phi.T
            psi = np.linalg.cholesky(K) @ rng.standard_normal((M, R)) @ np.linalg.cholesky(covariance).T
            tau, precision = scales_given_factors(given, psi, tau, SD**2, rng)
            covariance = np.linalg.inv(precision)
            after.append(summary(tau, precision))
        found.append(np.mean(after, axis=0) - before)
    return np.array(found)


def summary(tau, precision):
    return np.array([*np.log(tau), *np.log(tau) ** 2, np.linalg.slogdet(precision)[1], np.log(np.trace(precision))])


@pytest.mark.parametrize("scalar", [False, True])
def test_factors_and_scales_in_turn_keep_the_prior(scalar, monkeypatch):
    # 4 functions, 600 independent restarts: |z| < 4.5
    monkeypatch.setattr(scales_module, "WIDE", 2)
    rng = np.random.default_rng(0)
    right = PrecisionPrior.centred(DOF, VARIANCE, R, scalar)
    assert np.abs(z_scores(changes(scalar, right, 600, rng))).max() < 4.5


@pytest.mark.parametrize("scalar", [False, True])
def test_a_wrong_marginal_density_of_the_factors_shows(scalar, monkeypatch):
    # as many degrees of freedom as a Wishart centred on Lambda has, in the draws of tau alone
    monkeypatch.setattr(scales_module, "WIDE", 2)
    right = PrecisionPrior.log_marginal
    monkeypatch.setattr(PrecisionPrior, "log_marginal", lambda self, spread, count: right(self, spread, count - 2))
    prior = PrecisionPrior.centred(DOF, VARIANCE, R, scalar)
    assert np.abs(z_scores(changes(scalar, prior, 600, np.random.default_rng(0)))).max() > 4.5
