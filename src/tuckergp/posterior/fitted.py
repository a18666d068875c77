"""A model with its draws, and what it answers in the units of the targets: numbers, levels or counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from tuckergp.errors import InputError
from tuckergp.inference.base import Info
from tuckergp.likelihoods import Poisson
from tuckergp.likelihoods.levels import level_interval, mean_level
from tuckergp.model.design import Design
from tuckergp.posterior.draws import PREDICTION_SEED, Draw, Draws
from tuckergp.posterior.mixture import mixture_quantiles, poisson_quantiles
from tuckergp.posterior.moments import Moments, summarised
from tuckergp.random import stream

__all__ = ["CountFit", "Fit", "OrdinalFit", "predict_with", "probabilities_with"]

Floats = npt.NDArray[np.float64]

# Numbers held at once while quantiles are taken.
BLOCK = 4_000_000


@dataclass(frozen=True)
class Fit:
    """A model with its draws, on targets (y - mean) / scale."""

    draws: Draws
    mean: float
    scale: float
    history: list[Info]
    sampler: ClassVar[str] = "gibbs"

    def only(self, draw: Draw) -> Self:
        """The same with one draw."""
        return replace(self, draws=replace(self.draws, chains=[[draw]]))

    def predict(self, design: Design) -> Floats:
        """Predictions in the units of the targets: the mean of f over the draws, shape (N,)."""
        total = np.zeros(design.n_observations)
        for f, _ in self.draws.functions(design):
            total += f
        return self.mean + self.scale * total / len(self.draws)

    def spread(self, design: Design, include_noise: bool) -> Floats:
        """Standard deviation of a new observation, or of f alone, shape (N,)."""
        self.require_draws("a standard deviation")
        total, squares, noise = (np.zeros(design.n_observations) for _ in range(3))
        for f, variance in self.draws.functions(design, stream(PREDICTION_SEED)):
            total += f
            squares += f**2
            noise += variance
        n = len(self.draws)
        between = np.maximum(squares / n - (total / n) ** 2, 0.0) * n / max(n - 1, 1)
        return np.asarray(self.scale * np.sqrt(between + (noise / n if include_noise else 0.0)))

    def quantiles(self, design: Design, levels: Sequence[float], include_noise: bool) -> Floats:
        """Quantiles of a new observation, or of f alone, shape (N, len(levels))."""
        self.require_draws("quantiles")
        _check_quantiles(levels)
        block = max(1, BLOCK // len(self.draws))
        out = np.empty((design.n_observations, len(levels)))
        for first in range(0, design.n_observations, block):
            rows = np.arange(first, min(first + block, design.n_observations))
            found = self.draws.functions(design.take(rows), stream(PREDICTION_SEED))
            f, variance = map(np.stack, zip(*found, strict=True))
            for column, level in enumerate(levels):
                out[rows, column] = (
                    mixture_quantiles(f, np.sqrt(variance), level) if include_noise else np.quantile(f, level, axis=0)
                )
        return self.mean + self.scale * out

    def interval(self, design: Design, share: float, include_noise: bool) -> Floats:
        """Between which values a new observation, or f, is with this probability, shape (N, 2)."""
        tail = (1 - _checked_share(share)) / 2
        return self.quantiles(design, [tail, 1 - tail], include_noise)

    def moments(self) -> Moments:
        """The running moments that were asked for, in the units of the targets."""
        return summarised(self.draws.required_moments(), None, self.mean, self.scale)

    def require_draws(self, what: str) -> None:
        """Refuse what a most probable point cannot answer."""
        self.draws.require_kept()
        if not self.draws.sampled:
            raise InputError(
                f"The most probable point says nothing of how sure it is; for {what} use inference={self.sampler!r}."
            )

    def _stream(self) -> np.random.Generator | None:
        """Of rows never seen, which a most probable point gives their mean."""
        return stream(PREDICTION_SEED) if self.draws.sampled else None


@dataclass(frozen=True)
class OrdinalFit(Fit):
    """A model of ordered levels with its draws; ``levels`` are the values of the targets, in order."""

    levels: Floats

    def probabilities(self, design: Design) -> Floats:
        """Probability of every level, mean over the draws, shape (N, K)."""
        total = np.zeros((design.n_observations, len(self.levels)))
        for probability in self.draws.probabilities(design, self._stream()):
            total += probability
        return total / len(self.draws)

    def moments(self) -> Moments:
        """The running moments that were asked for."""
        return summarised(self.draws.required_moments(), self.levels, self.mean, self.scale)

    def predict(self, design: Design) -> Floats:
        """The mean of the predicted distribution over levels, shape (N,)."""
        return mean_level(self.probabilities(design), self.levels)

    def spread(self, design: Design, include_noise: bool) -> Floats:
        """Standard deviation of a new observation, or of its mean level over the draws, shape (N,)."""
        self.require_draws("a standard deviation")
        if include_noise:
            probabilities = self.probabilities(design)
            mean = mean_level(probabilities, self.levels)
            return np.asarray(np.sqrt(np.maximum(probabilities @ self.levels**2 - mean**2, 0.0)))
        means = [mean_level(p, self.levels) for p in self.draws.probabilities(design, self._stream())]
        return np.asarray(np.std(means, axis=0, ddof=min(1, len(means) - 1)))

    def quantiles(self, design: Design, levels: Sequence[float], include_noise: bool) -> Floats:
        """The lowest level that reaches each quantile, or quantiles of the mean level, shape (N, len(levels))."""
        self.require_draws("quantiles")
        _check_quantiles(levels)
        if include_noise:
            reached = np.cumsum(self.probabilities(design), axis=1)[:, :, None] >= np.asarray(levels) - 1e-12
            reached[:, -1] = True
            return np.asarray(self.levels[np.argmax(reached, axis=1)])
        means = [mean_level(p, self.levels) for p in self.draws.probabilities(design, self._stream())]
        return np.asarray(np.quantile(means, levels, axis=0).T)

    def interval(self, design: Design, share: float, include_noise: bool) -> Floats:
        """The levels between which a new observation is with about this probability, shape (N, 2)."""
        if not include_noise:
            return super().interval(design, share, include_noise)
        self.require_draws("an interval")
        return level_interval(self.probabilities(design), self.levels, _checked_share(share))


@dataclass(frozen=True)
class CountFit(Fit):
    """A model of counts with its draws: ``mean`` is the logarithm of the mean rate, to which f is added.

    Attributes
    ----------
    exposure : ndarray, shape (N,), or None
        Of the observations asked about; None for ones. See `exposed`.
    """

    exposure: Floats | None = None
    sampler: ClassVar[str] = "nuts"

    def exposed(self, exposure: Floats | None) -> Self:
        """The same, to be asked about observations of these exposures (N,)."""
        return replace(self, exposure=exposure)

    def rates(self, design: Design, rng: np.random.Generator | None) -> Iterator[Floats]:
        """The mean count at every observation given the parameters, draw by draw, shapes (N,)."""
        for f, _ in self.draws.functions(design, rng):
            rate = Poisson.mean(self.mean + f)
            yield rate if self.exposure is None else self.exposure * rate

    def moments(self) -> Moments:
        """The running moments that were asked for, of counts with exposure 1."""
        return summarised(self.draws.required_moments(), None, 0.0, 1.0)

    def predict(self, design: Design) -> Floats:
        """The mean count over the draws, shape (N,)."""
        total = np.zeros(design.n_observations)
        for rate in self.rates(design, self._stream()):
            total += rate
        return total / len(self.draws)

    def spread(self, design: Design, include_noise: bool) -> Floats:
        """Standard deviation of a new count, or of its mean over the draws, shape (N,)."""
        self.require_draws("a standard deviation")
        mean, squares = np.zeros(design.n_observations), np.zeros(design.n_observations)
        for number, rate in enumerate(self.rates(design, self._stream()), start=1):
            step = rate - mean
            mean += step / number
            squares += step * (rate - mean)
        variance = squares / max(len(self.draws) - 1, 1)
        return np.asarray(np.sqrt(variance + mean if include_noise else variance))

    def quantiles(self, design: Design, levels: Sequence[float], include_noise: bool) -> Floats:
        """The least count that reaches each quantile, or quantiles of its mean, shape (N, len(levels))."""
        self.require_draws("quantiles")
        _check_quantiles(levels)
        block = max(1, BLOCK // len(self.draws))
        out = np.empty((design.n_observations, len(levels)))
        for first in range(0, design.n_observations, block):
            rows = np.arange(first, min(first + block, design.n_observations))
            asked = self if self.exposure is None else self.exposed(self.exposure[rows])
            rates = np.stack(list(asked.rates(design.take(rows), self._stream())))
            for column, level in enumerate(levels):
                out[rows, column] = (
                    poisson_quantiles(rates, level) if include_noise else np.quantile(rates, level, axis=0)
                )
        return out


def _checked_share(share: float) -> float:
    if not 0 < share < 1:
        raise InputError(f"interval must be a probability between 0 and 1, not {share!r}.")
    return float(share)


def _check_quantiles(levels: Sequence[float]) -> None:
    if not all(0 < level < 1 for level in levels):
        raise InputError(f"quantiles must be between 0 and 1, not {list(levels)}.")


def predict_with(
    fit: Fit,
    design: Design,
    return_std: bool,
    quantiles: Sequence[float] | None,
    interval: float | None,
    include_noise: bool,
) -> Floats | tuple[Floats, Floats]:
    """The mean alone, or with standard deviations, quantiles or an interval as asked."""
    if return_std + (quantiles is not None) + (interval is not None) > 1:
        raise InputError("Ask for one of standard deviations, quantiles and an interval, not for several.")
    mean = fit.predict(design)
    if return_std:
        return mean, fit.spread(design, include_noise)
    if quantiles is not None:
        return mean, fit.quantiles(design, quantiles, include_noise)
    if interval is not None:
        return mean, fit.interval(design, interval, include_noise)
    return mean


def probabilities_with(fit: Fit, design: Design) -> Floats:
    """Probabilities of the levels of an ordinal model; refused for others."""
    if not isinstance(fit, OrdinalFit):
        raise InputError("Only models with likelihood='ordinal' or 'bernoulli' have probabilities of levels.")
    fit.draws.require_kept()
    return fit.probabilities(design)
