"""Modes without a residual: draws of the weights that all rows share."""

import numpy as np
import pytest

from tuckergp.priors.given import ModeGiven
from tuckergp.priors.hyper import PrecisionPrior
from tuckergp.residuals import NoResidual, none
from tuckergp.residuals.base import ModeState


class Told:
    """Evidence with these statistics."""

    def __init__(self, A, b):
        self.A, self.b = A, b

    def statistics(self):
        return self.A, self.b


def test_weights_are_overrelaxed_and_means_are_not(monkeypatch):
    monkeypatch.setattr(none, "scales_given_noise", lambda given, A, b, B, tau, rng: (B, tau))
    rng = np.random.default_rng(0)
    features, z = rng.standard_normal((6, 3)), rng.standard_normal((6, 2))
    last = rng.standard_normal((3, 2))
    mode = ModeState(features @ last, last, np.eye(2), np.ones(1))
    prior, told = PrecisionPrior(3.0, 1.0, True), Told(np.einsum("mi,mj->mij", z, z), z)

    def update(share, rng):
        given = ModeGiven(features, [slice(0, 3)], None, prior, overrelaxation=share)
        state, _ = NoResidual().update(mode, told, given, rng)
        np.testing.assert_allclose(state.psi, features @ state.B)
        return state.B

    mean, plain, moved = update(0.0, None), *(update(share, np.random.default_rng(1)) for share in (0.0, 0.6))
    assert moved == pytest.approx(mean - 0.6 * (last - mean) + 0.8 * (plain - mean))
