"""Joint samples of f and of new observations, and their covariances, from the draws of a fitted model."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tuckergp.errors import InputError
from tuckergp.model.design import Design
from tuckergp.posterior.draws import PREDICTION_SEED
from tuckergp.posterior.fitted import CountFit, Fit, OrdinalFit
from tuckergp.random import stream

__all__ = ["covariance", "samples"]

Floats = npt.NDArray[np.float64]

# Means beyond are too large for the generator of counts.
LARGEST_RATE = 1e15


def samples(fit: Fit, design: Design, n: int, include_noise: bool, seed: int) -> Floats:
    """Draw n functions at all observations of a design, or new observations there, shape (N, n).

    Every one is of another draw of the parameters while there are enough, then draws are used again. What a draw does
    not say of rows never seen is drawn too.
    """
    fit.require_draws("samples")
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise InputError(f"n_samples must be a whole number from 1 on, not {n!r}.")
    draws = list(fit.draws)
    rng = stream(seed, 0)
    rounds = -(-int(n) // len(draws))
    chosen = np.concatenate([rng.permutation(len(draws)) for _ in range(rounds)])[:n]
    out = np.empty((design.n_observations, int(n)))
    for column, number in enumerate(chosen.tolist()):
        only = fit.only(draws[number])
        own = stream(seed, 1, column)
        if isinstance(only, CountFit):
            (rate,) = only.rates(design, own)
            out[:, column] = _counts(rate, own) if include_noise else rate
        elif isinstance(fit, OrdinalFit):
            (probability,) = only.draws.probabilities(design, own)
            out[:, column] = _levels(probability, fit.levels, own) if include_noise else probability @ fit.levels
        else:
            ((f, variance),) = only.draws.functions(design, own)
            if include_noise:
                f = f + np.sqrt(variance) * own.standard_normal(len(f))
            out[:, column] = fit.mean + fit.scale * f
    return out


def _counts(rate: Floats, rng: np.random.Generator) -> Floats:
    """A Poisson count of each mean; of very large ones rounded normals, which are as good."""
    normal = np.rint(rate + np.sqrt(rate) * rng.standard_normal(len(rate)))
    return np.asarray(np.where(rate < LARGEST_RATE, rng.poisson(np.minimum(rate, LARGEST_RATE)), normal))


def _levels(probability: Floats, levels: Floats, rng: np.random.Generator) -> Floats:
    """A level of each row, by the probabilities (N, K)."""
    reached = np.cumsum(probability, axis=1) >= rng.random((len(probability), 1))
    reached[:, -1] = True
    return np.asarray(levels[np.argmax(reached, axis=1)])


def covariance(fit: Fit, design: Design, include_noise: bool) -> Floats:
    """Covariances of new observations, or of f, at all observations of a design, shape (N, N)."""
    fit.require_draws("covariances")
    means, noise = np.empty((len(fit.draws), design.n_observations)), np.zeros(design.n_observations)
    for number, (mean, variance) in enumerate(_moments(fit, design)):
        means[number] = mean
        noise += variance
    means -= means.mean(axis=0)
    found = means.T @ means / max(len(means) - 1, 1)
    if include_noise:
        found[np.diag_indices(len(found))] += noise / len(means)
    return np.asarray(fit.scale**2 * found)


def _moments(fit: Fit, design: Design) -> Iterator[tuple[Floats, Floats]]:
    """Mean and variance of observations given the parameters, draw by draw."""
    rng = stream(PREDICTION_SEED)
    if isinstance(fit, CountFit):
        for rate in fit.rates(design, rng):
            yield rate, rate
    elif isinstance(fit, OrdinalFit):
        for probability in fit.draws.probabilities(design, rng):
            mean = probability @ fit.levels
            yield mean, probability @ fit.levels**2 - mean**2
    else:
        yield from fit.draws.functions(design, rng)
