"""Scales of a mode with rows given its factors, with the weights integrated out: tau of wide blocks, then Lambda.

Given the thousands of weights of a wide block, tau could hardly move. With the weights integrated out, psi given tau
is a matrix normal with covariance K(tau) between rows, from which both scales are drawn.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tuckergp.priors.given import ModeGiven
from tuckergp.priors.hyper import collapsed_precision

__all__ = ["scales_given_factors"]

Floats = npt.NDArray[np.float64]

# The precision of a block with at least this many weights is drawn with the weights integrated out.
WIDE = 50


def scales_given_factors(
    given: ModeGiven, psi: Floats, tau: Floats, variance: float, rng: np.random.Generator
) -> tuple[Floats, Floats] | None:
    """Draw tau of wide blocks and Lambda given psi (M, r); None where that is too costly in this sweep.

    Parameters
    ----------
    given : ModeGiven
    psi : ndarray, shape (M, r)
    tau : ndarray, shape (blocks,)
        The last draw.
    variance : float
        The variance that the residual's kernel gives each row.
    """
    regression, prior = given.regression, given.prior
    evaluate = regression.collapse(psi) if regression.cheap or given.affordable else None
    if evaluate is None:
        return None

    def log_density(tau: Floats) -> float:
        # psi | tau ~ MN(0, K(tau), Lambda^-1): |K|^(-r/2), and Lambda integrated out of etr(-psi'K^-1 psi Lambda / 2)
        log_det, spread = evaluate(variance * tau)
        return prior.log_marginal(spread / variance, len(psi)) - 0.5 * len(spread) * log_det

    wide = [g for g, size in enumerate(regression.sizes) if size >= WIDE]
    for g in wide if regression.cheap else wide[given.turn % max(len(wide), 1) :][:1]:
        tau = collapsed_precision(tau, g, log_density, given.tau_shape, given.tau_rate, rng)
    # Lambda | psi, tau: the prior's degrees of freedom plus M, its scale plus psi'K^-1 psi
    _, spread = evaluate(variance * tau)
    return tau, prior.draw(spread / variance, len(psi), rng)
