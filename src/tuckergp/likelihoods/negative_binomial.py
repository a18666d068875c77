"""Counts that vary more than Poisson's: mean mu = exposure exp(f), variance mu + mu^2 / h, h the dispersion.

Gibbs sampling draws omega ~ PG(y + h, f - log h) for each count, given which the model is Gaussian (Polson, Scott and
Windle 2013); f here has the logarithms of exposure and mean rate added to it. h is drawn given f with omega integrated
out: the usual draw, which augments with numbers of tables, holds mu / (mu + h) fixed, but here the means must not
change with h. A priori log h ~ N(log 10, 1.5^2): rates vary by 7 to 140 % around exp(f), with probability 95 %.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.special import digamma, expit, gammaln

from tuckergp.errors import InputError, NotConvergedWarning
from tuckergp.likelihoods.counts import Counts, poisson_counts
from tuckergp.likelihoods.given import NoiseSettings, Observed, Predicted
from tuckergp.likelihoods.mixture import negative_binomial_distribution, negative_binomial_quantiles
from tuckergp.likelihoods.polya_gamma import mean_and_variance, polya_gamma
from tuckergp.likelihoods.precision import Precision
from tuckergp.random import log_slice

__all__ = ["NegativeBinomial", "NegativeBinomialState", "draw_dispersion"]

Floats = npt.NDArray[np.float64]

# Prior mean and standard deviation of log h, and the bound of |log h| under gradients.
LOG_MEAN, LOG_SD = float(np.log(10.0)), 1.5
LARGEST_LOG_DISPERSION = 20.0
SLICE_WIDTH = 0.5
# Mean counts from which on Gibbs sampling moves slowly: given omega, f moves by about 1 / sqrt(count).
SLOW = 1e3
# Dispersions from which on Stirling's series is better than a difference of log gamma functions.
LARGE = 1e4


class NegativeBinomialState(NamedTuple):
    """The dispersion h."""

    dispersion: float


@dataclass(frozen=True)
class NegativeBinomial(Counts):
    """Counts with mean exp(f) and variance exp(f) + exp(2 f) / dispersion.

    Attributes
    ----------
    mean : float
        The logarithm of the mean rate.
    dispersion : float
        h; the larger the nearer to Poisson.

    Examples
    --------
    >>> import numpy as np
    >>> NegativeBinomial(dispersion=2.0).score(np.array([4.0]), np.log(np.array([2.0])))
    array([1.])
    """

    dispersion: float = 10.0

    name: ClassVar[str] = "negative_binomial"
    inferences: ClassVar[tuple[str, ...]] = ("gibbs", "hmc", "nuts", "sgld")

    def __post_init__(self) -> None:
        if not (np.isfinite(self.dispersion) and self.dispersion > 0):
            raise InputError(f"The dispersion must be a positive number, not {self.dispersion!r}.")

    # Density

    def log_density(self, y: Floats, f: Floats) -> Floats:
        """Log of the probability of a count; finite for every finite f."""
        h = self.dispersion
        return np.asarray(
            log_rising(y, h) + y * f - (y + h) * np.logaddexp(0.0, f - np.log(h)) - gammaln(y + 1.0), dtype=np.float64
        )

    def score(self, y: Floats, f: Floats) -> Floats:
        """The derivative of the log probability in f, y - (y + h) mu / (mu + h)."""
        return np.asarray(y - (y + self.dispersion) * expit(f - np.log(self.dispersion)))

    def information(self, y: Floats) -> float:
        """The information of a count with the mean of all counts, mu h / (mu + h)."""
        mean = max(float(np.mean(y)), 0.01)
        return mean * self.dispersion / (mean + self.dispersion)

    # log h, which gradients move

    @property
    def free(self) -> Floats:
        """The unknown that gradients move, log h, (1,)."""
        return np.log([self.dispersion])

    @property
    def free_scale(self) -> float:
        """The prior standard deviation of log h."""
        return LOG_SD

    def with_free(self, values: Floats) -> Self:
        """The same likelihood with another log h."""
        log_h = np.clip(np.nan_to_num(values[0]), -LARGEST_LOG_DISPERSION, LARGEST_LOG_DISPERSION)
        return replace(self, dispersion=float(np.exp(log_h)))

    def log_prior(self, values: Floats) -> tuple[float, Floats]:
        """Log prior density of log h, up to a constant, and its gradient."""
        away = (values - LOG_MEAN) / LOG_SD
        return -0.5 * float(away @ away), -away / LOG_SD

    def slopes(self, y: Floats, f: Floats, weight: Floats | None = None) -> tuple[Floats, Floats, Floats]:
        """Log densities and scores (N,), and the derivative of the weighted sum of the former in log h, (1,)."""
        h = self.dispersion
        away = f - np.log(h)
        # h d/dh log p(y | f, h), mu = exp(f)
        slope = h * (digamma(y + h) - digamma(h) - np.logaddexp(0.0, away)) - y + (y + h) * expit(away)
        total = slope.sum() if weight is None else weight @ slope
        return self.log_density(y, f), self.score(y, f), np.array([total])

    # Gibbs sampling

    def initial(self, observed: Observed, settings: NoiseSettings) -> NegativeBinomialState:
        """The state before the first sweep: the dispersion of this object."""
        if observed.y.mean() > SLOW:
            warnings.warn(
                f"Counts of {observed.y.mean():,.0f} on average hold f where it is in Gibbs sampling; use "
                f"inference='nuts', or logarithms of the counts with likelihood='student'.",
                NotConvergedWarning,
                stacklevel=2,
            )
        return NegativeBinomialState(self.dispersion)

    def draw_given_function(
        self, state: NegativeBinomialState, observed: Observed, f: Floats, rng: np.random.Generator
    ) -> NegativeBinomialState:
        """Draw the dispersion with all omega integrated out."""
        shifted = f + _offset(observed)
        return NegativeBinomialState(draw_dispersion(observed.y, shifted, observed.weight, state.dispersion, rng))

    def augment(
        self, state: NegativeBinomialState, observed: Observed, f: Callable[[], Floats], rng: np.random.Generator
    ) -> tuple[Floats, Precision]:
        """Draw omega: working targets (y - h) / (2 omega) + log h - offset of precision omega.

        A weight counts equal observations.
        """
        h, away = state.dispersion, np.log(state.dispersion) - _offset(observed)
        weight = 1.0 if observed.weight is None else observed.weight
        omega = polya_gamma(weight * (observed.y + h), f() - away, rng)
        return weight * (observed.y - h) / (2 * omega) + away, Precision(1.0, omega)

    def log_likelihood(self, state: NegativeBinomialState, observed: Observed, f: Floats) -> Floats:
        """Log probability of each count."""
        return replace(self, dispersion=state.dispersion).log_density(observed.y, f + _offset(observed))

    def kept(self, state: NegativeBinomialState) -> dict[str, Floats]:
        """The ``dispersion`` h."""
        return {"dispersion": np.asarray(state.dispersion)}

    def working(self, at: Predicted, y: Floats, rng: np.random.Generator | None) -> tuple[Floats, Floats]:
        """Working targets (y - h) / (2 omega) + log h - offset of precision omega, which is drawn, or its mean."""
        h = at.unknowns["dispersion"][:, None]
        away = np.log(h) - self.offset(len(y), at.exposure)
        b, c = y + h, at.f - away
        omega = mean_and_variance(b, c)[0] if rng is None else polya_gamma(b.T, c.T, rng).T
        return (y - h) / (2 * omega) + away, omega

    def continued(
        self,
        state: NegativeBinomialState,
        unknowns: Mapping[str, Floats],
        factors: Sequence[Floats | None],
        rng: np.random.Generator,
    ) -> NegativeBinomialState:
        """A state with this dispersion."""
        return NegativeBinomialState(float(unknowns["dispersion"]))

    def unknowns(self) -> dict[str, Floats]:
        """The ``dispersion`` h."""
        return {"dispersion": np.asarray(self.dispersion)}

    def fault(self, unknowns: Mapping[str, Floats]) -> str | None:
        """A dispersion that is not positive."""
        return None if (unknowns["dispersion"] > 0).all() else "dispersion is not positive"

    def watched(self, unknowns: Mapping[str, Floats]) -> dict[str, Floats]:
        """The unknown to monitor, the dispersion."""
        return {"dispersion": unknowns["dispersion"]}

    def figures(self, mean_square: float, log_likelihood: Callable[[], Floats], unknowns: Mapping[str, Floats]) -> Any:
        """Mean log probability and dispersion."""
        return {"log_probability": float(log_likelihood().mean()), "dispersion": float(unknowns["dispersion"])}

    # Predictions

    def variances(self, at: Predicted) -> Floats:
        """The variance of each count, mean + mean^2 / h."""
        mean = self.means(at)
        return np.asarray(mean + mean**2 / at.unknowns["dispersion"][:, None])

    def log_densities(self, at: Predicted, y: Floats) -> Floats:
        """Of negative binomial distributions."""
        f = at.f + self.offset(len(y), at.exposure)
        each = zip(f, at.unknowns["dispersion"], strict=True)
        return np.stack([replace(self, dispersion=float(h)).log_density(y, values) for values, h in each])

    def distribution(self, at: Predicted, y: Floats) -> Floats:
        """Of a mixture of negative binomial distributions, one for each draw."""
        each = negative_binomial_distribution(self.means(at), at.unknowns["dispersion"], y)
        return np.asarray(each.mean(axis=0))

    def quantiles(self, at: Predicted, levels: Sequence[float]) -> Floats:
        """The smallest count that reaches each quantile."""
        mean, h = self.means(at), at.unknowns["dispersion"]
        return np.stack([negative_binomial_quantiles(mean, h, level) for level in levels], axis=1)

    def sample_block(self, at: Predicted, rng: np.random.Generator) -> Floats:
        """New counts from each draw: Poisson with gamma distributed rates."""
        mean, h = self.means(at), at.unknowns["dispersion"][:, None]
        return poisson_counts(mean * rng.standard_gamma(h, mean.shape) / h, rng)


def _offset(observed: Observed) -> Floats:
    return np.zeros(len(observed.y)) if observed.offset is None else observed.offset


def log_rising(y: Floats, h: float) -> Floats:
    """Log of Gamma(y + h) / (Gamma(h) h^y), which vanishes for large h."""
    if h < LARGE:
        return np.asarray(gammaln(y + h) - gammaln(h) - y * np.log(h))
    return np.asarray((y + h - 0.5) * np.log1p(y / h) - y + (1 / (y + h) - 1 / h) / 12)


def draw_dispersion(y: Floats, f: Floats, weight: Floats | None, h: float, rng: np.random.Generator) -> float:
    """Draw h given counts and logarithms of their means (N,), by a slice step on log h."""
    distinct, place = np.unique(y, return_inverse=True)
    counts = np.bincount(place, weight)

    def log_density(x: float) -> float:
        h = float(np.exp(x))
        # the terms of the log probability that h is in: - (y + h) log(1 + mu / h) one by one
        terms = (y + h) * np.logaddexp(0.0, f - x)
        fit = counts @ log_rising(distinct, h) - (terms.sum() if weight is None else weight @ terms)
        return float(fit - 0.5 * ((x - LOG_MEAN) / LOG_SD) ** 2)

    return float(np.exp(log_slice(log_density, float(np.log(h)), SLICE_WIDTH, rng)))
