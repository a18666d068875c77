"""Joint samples of f and of new observations, and their covariances, from the draws of a fitted model."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tuckergp.design import Design
from tuckergp.errors import InputError
from tuckergp.inference.draws import Draws
from tuckergp.inference.fit import Fit, OrdinalFit
from tuckergp.random import stream

__all__ = ["covariance", "samples"]

Floats = npt.NDArray[np.float64]


def samples(fit: Fit, design: Design, n: int, include_noise: bool, seed: int) -> Floats:
    """Draw n functions at all observations of a design, or new observations there, shape (N, n).

    Every one is of another draw of the parameters while there are enough, then draws are used again. What a draw does
    not say of rows never seen is drawn too.
    """
    _require_draws(fit, "samples")
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise InputError(f"n_samples must be a whole number from 1 on, not {n!r}.")
    draws = list(fit.draws)
    rng = stream(seed, 0)
    rounds = -(-int(n) // len(draws))
    chosen = np.concatenate([rng.permutation(len(draws)) for _ in range(rounds)])[:n]
    out = np.empty((design.n_observations, int(n)))
    for column, number in enumerate(chosen.tolist()):
        only = fit.only(draws[number]).draws
        own = stream(seed, 1, column)
        if isinstance(fit, OrdinalFit):
            (probability,) = only.probabilities(design, own)
            out[:, column] = _levels(probability, fit.levels, own) if include_noise else probability @ fit.levels
        else:
            ((f, variance),) = only.functions(design, own)
            if include_noise:
                f = f + np.sqrt(variance) * own.standard_normal(len(f))
            out[:, column] = fit.mean + fit.scale * f
    return out


def _levels(probability: Floats, levels: Floats, rng: np.random.Generator) -> Floats:
    """A level of each row, by the probabilities (N, K)."""
    reached = np.cumsum(probability, axis=1) >= rng.random((len(probability), 1))
    reached[:, -1] = True
    return np.asarray(levels[np.argmax(reached, axis=1)])


def covariance(fit: Fit, design: Design, include_noise: bool) -> Floats:
    """Covariances of new observations, or of f, at all observations of a design, shape (N, N)."""
    _require_draws(fit, "covariances")
    means, noise = np.empty((len(fit.draws), design.n_observations)), np.zeros(design.n_observations)
    for number, (mean, variance) in enumerate(_moments(fit, fit.draws, design)):
        means[number] = mean
        noise += variance
    means -= means.mean(axis=0)
    found = means.T @ means / max(len(means) - 1, 1)
    if include_noise:
        found[np.diag_indices(len(found))] += noise / len(means)
    return np.asarray(fit.scale**2 * found)


def _moments(fit: Fit, draws: Draws, design: Design) -> Iterator[tuple[Floats, Floats]]:
    """Mean and variance of observations given the parameters, draw by draw."""
    if not isinstance(fit, OrdinalFit):
        yield from draws.functions(design, stream(0))
        return
    for probability in draws.probabilities(design, stream(0)):
        mean = probability @ fit.levels
        yield mean, probability @ fit.levels**2 - mean**2


def _require_draws(fit: Fit, what: str) -> None:
    fit.draws.require_kept()
    if not fit.draws.sampled:
        raise InputError(f"The most probable point says nothing of how sure it is; for {what} use inference='gibbs'.")
