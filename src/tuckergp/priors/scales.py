"""Scales of a mode by ways that mix: tau of wide blocks with the weights integrated out, or tau with the weights.

Given the many weights of a block, tau hardly moves. In a mode with rows the weights are integrated out: psi given tau
is a matrix normal with covariance K(tau) between rows. In a mode without, the weights move with tau.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tuckergp.priors.given import ModeGiven
from tuckergp.priors.hyper import MOST_LOG_TAU, collapsed_precision
from tuckergp.random import log_slice

__all__ = ["scales_given_factors", "scales_given_noise"]

Floats = npt.NDArray[np.float64]

# The precision of a block with at least this many weights is drawn with the weights integrated out.
WIDE = 50
# The first width of slices of the logarithm of a scale.
SLICE_WIDTH = 0.5


def scales_given_factors(
    given: ModeGiven, psi: Floats, tau: Floats, variance: float, rng: np.random.Generator, count: int | None = None
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
    count : int or None
        How many rows these stand for, where they are others with the same sums of products; None for as many.
    """
    count = len(psi) if count is None else count
    regression, prior = given.regression, given.prior
    evaluate = regression.collapse(psi) if regression.cheap or given.affordable else None
    if evaluate is None:
        return None

    def log_density(tau: Floats) -> float:
        # psi | tau ~ MN(0, K(tau), Lambda^-1): |K|^(-r/2), and Lambda integrated out of etr(-psi'K^-1 psi Lambda / 2)
        log_det, scatter = evaluate(variance * tau)
        return prior.log_marginal(scatter / variance, count) - 0.5 * len(scatter) * log_det

    wide = [g for g, size in enumerate(regression.sizes) if size >= WIDE]
    for g in wide if regression.cheap else wide[given.turn % max(len(wide), 1) :][:1]:
        tau = collapsed_precision(tau, g, log_density, given.tau_shape, given.tau_rate, rng)
    # Lambda | psi, tau: the prior's degrees of freedom plus M, its scale plus psi'K^-1 psi
    _, scatter = evaluate(variance * tau)
    return tau, prior.draw(scatter / variance, count, rng)


def scales_given_noise(
    given: ModeGiven, A: Floats, b: Floats, B: Floats, tau: Floats, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Draw tau given Z of B_g = tau_g^-1/2 Z_g, the whitened weights: B moves with tau and is compared with the data.

    Returns the new weights and the new tau. Alternate with tau given B (interweaving, Yu and Meng 2011): given many
    weights tau hardly moves, given Z it moves as far as the data allow.

    Parameters
    ----------
    given : ModeGiven
    A, b : ndarray, shapes (M, r, r), (M, r)
        Statistics of the rows.
    B : ndarray, shape (n, r)
    tau : ndarray, shape (blocks,)
    """
    B, tau = B.copy(), tau.copy()
    parts = [np.asarray(given.features[:, block] @ B[block]) for block in given.blocks]
    psi = np.sum(parts, axis=0)
    for g, part in enumerate(parts):
        # log p(data | psi) = sum_m b_m'psi_m - psi_m'A_m psi_m / 2, with psi = rest + c part a parabola in c
        pulled = np.einsum("mij,mj->mi", A, part)
        curvature = float(np.vdot(part, pulled))
        slope = float(np.vdot(part, b) - np.vdot(psi - part, pulled))
        c = _scale_given_noise(given, curvature, slope, float(np.log(tau[g])), rng)
        B[given.blocks[g]] *= c
        tau[g] /= c**2
        psi += (c - 1) * part
    return B, tau


def _scale_given_noise(
    given: ModeGiven, curvature: float, slope: float, log_tau: float, rng: np.random.Generator
) -> float:
    """Draw the factor c that multiplies the weights of a block, whose log likelihood is slope c - curvature c^2 / 2."""

    def log_density(log_c: float) -> float:
        # tau / c^2 ~ Gamma(shape, rate), times itself for the change to its logarithm
        moved, c = log_tau - 2 * log_c, np.exp(log_c)
        if abs(moved) > MOST_LOG_TAU:
            return -np.inf
        fit = slope * c - 0.5 * curvature * c**2
        return float(fit + given.tau_shape * moved - given.tau_rate * np.exp(moved))

    return float(np.exp(log_slice(log_density, 0.0, SLICE_WIDTH, rng)))
