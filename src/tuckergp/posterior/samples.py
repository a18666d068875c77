"""Joint samples of f and of new observations, and their covariances, from the draws of a fitted model."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tuckergp.checks import check, whole
from tuckergp.model.design import Design
from tuckergp.posterior.draws import PREDICTION_SEED
from tuckergp.posterior.fitted import Fit
from tuckergp.random import stream

__all__ = ["covariance", "samples"]

Floats = npt.NDArray[np.float64]


def samples(fit: Fit, design: Design, n: int, include_noise: bool, seed: int) -> Floats:
    """Draw n functions f at all observations of a design, or with noise new observations there, shape (N, n).

    Each uses another draw of the parameters; once all are used, they are used again. What a draw leaves open about
    rows that training did not have is drawn too.
    """
    fit.require_draws("samples")
    check("n_samples", n, whole(1))
    count, likelihood = len(fit.draws), fit.likelihood
    rng = stream(seed, 0)
    rounds = -(-int(n) // count)
    chosen = np.concatenate([rng.permutation(count) for _ in range(rounds)])[:n]
    out = np.empty((design.n_observations, int(n)))
    for column, number in enumerate(chosen.tolist()):
        own = stream(seed, 1, column)
        at = fit.draws.only(number).predicted(design, own, fit.exposure)
        out[:, column] = (likelihood.sample(at, own) if include_noise else likelihood.means(at))[0]
    return out


def covariance(fit: Fit, design: Design, include_noise: bool) -> Floats:
    """Covariances of new observations or, without noise, of their means at all observations of a design, (N, N)."""
    fit.require_draws("covariances")
    at = fit.draws.predicted(design, stream(PREDICTION_SEED), fit.exposure)
    means = fit.likelihood.means(at)
    means = means - means.mean(axis=0)
    covariances = means.T @ means / max(len(means) - 1, 1)
    if include_noise:
        covariances[np.diag_indices(len(covariances))] += fit.likelihood.variances(at).mean(axis=0)
    return np.asarray(covariances)
