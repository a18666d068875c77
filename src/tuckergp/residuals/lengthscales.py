"""Draws of the lengthscales of a field, with its variance where both can move together.

Given E a lengthscale of 100,000 places hardly moves, and less so where Lambda is held fixed: the data know a product of
both. So Lambda is integrated out, and E as well where the field is all there is of f.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tuckergp.priors.given import ModeGiven, SharedNoise
from tuckergp.priors.hyper import PrecisionPrior
from tuckergp.random import log_slice
from tuckergp.residuals.line_draws import SLICE_WIDTH, LengthscalePrior
from tuckergp.residuals.markov import independent_ranks, log_likelihood
from tuckergp.residuals.places import Places
from tuckergp.residuals.process import JITTER, PlaceProcess

__all__ = ["FieldState", "before_values", "given_data", "given_responses", "given_values", "scatter_of"]

Floats = npt.NDArray[np.float64]
Statistics: TypeAlias = tuple[Floats, Floats]

FIRST, FEW = 5, 1_000
"""Slices are wide in so many first sweeps, and for so few places."""

NOTHING = 1e-12
"""Weights of places smaller than this, relative to the largest, tell nothing."""


@dataclass(frozen=True, eq=False)
class FieldState:
    """What the distribution of E depends on: E ~ N(0, sd^2 K kron Lambda^-1).

    Attributes
    ----------
    places : Places
    lengthscale, metric : ndarray, shape (1,) or (p,)
        Of the kernel, and of the distances by which neighbours were chosen.
    precision : ndarray, shape (r, r)
        Lambda.
    sd : float
    centre : ndarray, shape (1,) or (p,)
        Of the prior of the lengthscales.
    """

    places: Places
    lengthscale: Floats
    metric: Floats
    precision: Floats
    sd: float
    centre: Floats

    @cached_property
    def process(self) -> PlaceProcess:
        """The process of unit variance at the training places."""
        return self.places.process(self.lengthscale, self.metric)

    @property
    def log_prior(self) -> float:
        """Log density of the logarithms of the lengthscales, up to a constant."""
        pairs = zip(self.centre, np.log(self.lengthscale), strict=True)
        return float(sum(LengthscalePrior(float(centre)).log_density(float(x)) for centre, x in pairs))

    @property
    def log_size(self) -> float:
        """2 nu times the mean logarithm of the lengthscales: the variance at which small distances look the same."""
        return (2 * self.places.order - 1) * float(np.log(self.lengthscale).mean())

    def with_lengthscale(self, j: int, log_lengthscale: float) -> FieldState:
        """The same with another lengthscale of column j."""
        lengthscale = self.lengthscale.copy()
        lengthscale[j] = np.exp(log_lengthscale)
        return replace(self, lengthscale=lengthscale)

    def drawn(
        self,
        log_density: Callable[[FieldState], float],
        rng: np.random.Generator,
        width: float = SLICE_WIDTH,
        columns: Sequence[int] | None = None,
    ) -> FieldState:
        """Draw lengthscales, of all or some columns, one by one by slice steps on logarithms, given a log density."""
        state = self
        for j in range(len(self.lengthscale)) if columns is None else columns:
            at = state.with_lengthscale

            def log_posterior(x: float, j: int = j, at: Callable[[int, float], FieldState] = at) -> float:
                proposal = at(j, x)
                return log_density(proposal) + proposal.log_prior

            state = at(j, log_slice(log_posterior, float(np.log(state.lengthscale[j])), width, rng))
        return state


def scatter_of(B: Floats, by_feature: Floats) -> Floats:
    """B'T B, (r, r): what the weights tell of Lambda."""
    return np.asarray((B * by_feature[:, None]).T @ B)


def before_values(
    state: FieldState,
    statistics: Statistics,
    mean: Floats,
    weights: Floats,
    given: ModeGiven,
    rng: np.random.Generator,
) -> tuple[FieldState, Statistics]:
    """Draw lengthscales with E integrated out, where that is due; E must be drawn next, with the statistics returned.

    Where the field is all there is of f, with Lambda and the noise; else in the first sweeps alone, for a start.
    """
    if given.noise is not None:
        return given_responses(state, statistics, mean, weights, given, given.noise, rng)
    return (given_data(state, statistics, mean, rng) if given.starting else state), statistics


def given_data(state: FieldState, statistics: Statistics, mean: Floats, rng: np.random.Generator) -> FieldState:
    """Draw lengthscales given Lambda, E integrated out by an approximation of its own: a start for other draws."""
    _, A, b = independent_ranks(*statistics, mean, state.precision / state.sd**2)
    return state.drawn(lambda at: at.process.log_evidence(A, b), rng)


def given_values(
    state: FieldState,
    E: Floats,
    statistics: Statistics,
    mean: Floats,
    weights: Floats,
    given: ModeGiven,
    rng: np.random.Generator,
) -> tuple[FieldState, Floats]:
    """Draw lengthscales given R E, so that E moves with them, then given E with Lambda, in turn (Yu and Meng 2011)."""
    Z = state.process.whiten(E)
    state = state.drawn(lambda at: log_likelihood(at.process.colour(Z), *statistics, mean), rng)
    E = state.process.colour(Z)
    count = len(E) + given.features.shape[1]

    def scatter(at: FieldState) -> Floats:
        white = at.process.whiten(E) / at.sd
        return np.asarray(weights + white.T @ white)

    def log_density(at: FieldState) -> float:
        return given.prior.log_marginal(scatter(at), count) - float(E.shape[1]) / 2 * at.process.log_determinant

    state = state.drawn(log_density, rng)
    return replace(state, precision=given.prior.draw(scatter(state), count, rng)), E


@dataclass(frozen=True)
class Responses:
    """Means of the observations of each place, where f is a field of rank 1 and a mean that is given.

    With h the variance of the field over that of the noise, they are N(0, (sd^2 / Lambda) (K + diag(1 / (h a)))), which
    leaves Lambda a gamma distribution given h, lengthscales, and weights.
    """

    y: Floats  # (M, 1)
    a: Floats  # (M,): the sum of the weights of each place
    within: float  # squares of observations around the means of their places
    noise: SharedNoise

    @classmethod
    def of(cls, statistics: Statistics, mean: Floats, noise: SharedNoise) -> Responses:
        """From the statistics of the places."""
        A, b = statistics[0][:, 0, 0], statistics[1][:, 0]
        # a place without data counts as one with next to none
        a = np.maximum(A / noise.alpha, NOTHING * max(float(A.max()) / noise.alpha, NOTHING))
        means = b / noise.alpha / a
        return cls(means[:, None] - mean, a, max(noise.squares - float((a * means**2).sum()), 0.0), noise)

    def process(self, state: FieldState, h: float) -> PlaceProcess:
        """The process with noise, of variance 1 + 1 / (h a)."""
        return state.process.with_nugget(JITTER + 1 / (h * self.a))

    def shape(self, given: ModeGiven) -> float:
        """Shape of the gamma distribution of Lambda."""
        return self.noise.shape + (_of_one(given).degrees + int(given.features.shape[1]) + self.noise.count) / 2

    def rate(self, state: FieldState, log_h: float, weights: Floats, given: ModeGiven) -> tuple[float, float]:
        """Rate of the gamma distribution of Lambda, and the log determinant of the covariance over its scale."""
        h = float(np.exp(log_h))
        process = self.process(state, h)
        squares = float((process.whiten(self.y) ** 2).sum()) + h * self.within
        rate = (_of_one(given).square + float(weights[0, 0])) / 2 + (h * self.noise.rate + squares / 2) / state.sd**2
        return rate, process.log_determinant

    def log_density(self, state: FieldState, log_h: float, weights: Floats, given: ModeGiven) -> float:
        """Of the data and log h given lengthscales and weights, Lambda integrated out."""
        rate, log_determinant = self.rate(state, log_h, weights, given)
        power = self.noise.shape + (self.noise.count - len(self.y)) / 2
        return power * log_h - log_determinant / 2 - self.shape(given) * float(np.log(rate))


def given_responses(
    state: FieldState,
    statistics: Statistics,
    mean: Floats,
    weights: Floats,
    given: ModeGiven,
    noise: SharedNoise,
    rng: np.random.Generator,
) -> tuple[FieldState, Statistics]:
    """Draw a lengthscale, Lambda and the noise precision from their marginal posterior, all of E integrated out.

    Lengthscales take turns, because each try costs a factorisation of all places. By Vecchia's approximation of the
    responses, exact where all places are neighbours. Also returns the statistics with the new noise precision; that of
    the likelihood's state is drawn given f later.
    """
    responses = Responses.of(statistics, mean, noise)
    log_h = float(np.log(noise.alpha * state.sd**2 / state.precision[0, 0]))
    # the posterior narrows with the number of places, and each try costs a factorisation of all
    width = SLICE_WIDTH if given.sweep < FIRST else SLICE_WIDTH * min(1.0, (FEW / len(mean)) ** 0.5)
    log_h = log_slice(lambda x: responses.log_density(state, x, weights, given), log_h, width, rng)
    # what nearby places tell is h over l^(2 nu), so this stays where it is while lengthscales move
    rough = log_h - state.log_size
    one = given.sweep % len(state.lengthscale)
    state = state.drawn(lambda at: responses.log_density(at, rough + at.log_size, weights, given), rng, width, [one])
    log_h = rough + state.log_size
    rate, _ = responses.rate(state, log_h, weights, given)
    precision = rng.gamma(responses.shape(given)) / rate
    alpha = float(np.exp(log_h)) * precision / state.sd**2
    A, b = statistics
    more = alpha / noise.alpha
    return replace(state, precision=np.full((1, 1), precision)), (more * A, more * b)


def _of_one(given: ModeGiven) -> PrecisionPrior:
    """The prior of Lambda where the mode is all there is of f: there are no components to shrink."""
    assert isinstance(given.prior, PrecisionPrior)
    return given.prior
