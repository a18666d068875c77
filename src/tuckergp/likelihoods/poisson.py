"""Counts: y ~ Poisson(exposure exp(f)), f with the logarithm of the mean rate added to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from tuckergp.errors import InputError
from tuckergp.likelihoods.base import Likelihood, Predicted
from tuckergp.likelihoods.mixture import poisson_quantiles

__all__ = ["Poisson", "check_counts", "log_mean_rate", "poisson_counts", "rates"]

Floats = npt.NDArray[np.float64]

# Beyond this logarithm of a mean count the exponential goes on as its tangent: nothing overflows.
LARGEST_LOG = 100.0
# Means beyond are too large for the generator of counts.
LARGEST_RATE = 1e15


@dataclass(frozen=True)
class Poisson(Likelihood):
    """Counts with mean exp(f), where f has the logarithms of exposure and of the mean rate added to it already.

    Attributes
    ----------
    mean : float
        The logarithm of the mean rate.

    Examples
    --------
    >>> import numpy as np
    >>> Poisson().score(np.array([3.0]), np.log(np.array([2.0])))
    array([1.])
    """

    mean: float = 0.0

    name: ClassVar[str] = "poisson"
    inferences: ClassVar[tuple[str, ...]] = ("hmc", "nuts", "sgld", "sgd")
    code: ClassVar[int] = 2
    counts: ClassVar[bool] = True
    sampler: ClassVar[str] = "nuts"

    # Targets

    @classmethod
    def check(cls, y: Floats) -> None:
        """Refuse targets that are no counts."""
        check_counts(cls.name, y)

    @classmethod
    def read(cls, y: Floats, weight: Floats | None = None, exposure: Floats | None = None) -> Self:
        """With the logarithm of the mean rate."""
        cls.check(y)
        return cls(mean=log_mean_rate(y, weight, exposure))

    def targets(self, y: Floats) -> Floats:
        """The counts themselves."""
        return y

    def offset(self, count: int, exposure: Floats | None) -> Floats:
        """The logarithms of mean rate and exposure."""
        return self.mean + (np.zeros(count) if exposure is None else np.log(exposure))

    @classmethod
    def as_numbers(cls, y: Floats, exposure: Floats | None) -> Floats:
        """Logarithms of rates, half a count more."""
        return np.asarray(np.log((y + 0.5) / (1.0 if exposure is None else exposure)))

    # Density

    def log_density(self, y: Floats, f: Floats) -> Floats:
        """Log of the Poisson probability, normaliser included; finite for every finite f."""
        near = np.minimum(f, LARGEST_LOG)
        density: Floats = y * f - np.exp(near) * (1.0 + (f - near)) - gammaln(y + 1.0)
        return density

    def score(self, y: Floats, f: Floats) -> Floats:
        """Y - exp(f)."""
        return y - np.exp(np.minimum(f, LARGEST_LOG))

    def information(self, y: Floats) -> float:
        """The mean count, which is the mean of the curvature exp(f)."""
        return max(float(np.mean(y)), 0.01)

    # Predictions

    def means(self, at: Predicted) -> Floats:
        """Exposure times rate."""
        return rates(self.mean, at)

    def variances(self, at: Predicted) -> Floats:
        """Of a Poisson variable its mean."""
        return rates(self.mean, at)

    def quantiles(self, at: Predicted, levels: Sequence[float]) -> Floats:
        """The least count that reaches each quantile."""
        each = rates(self.mean, at)
        return np.stack([poisson_quantiles(each, level) for level in levels], axis=1)

    def sample(self, at: Predicted, rng: np.random.Generator) -> Floats:
        """Counts."""
        return poisson_counts(rates(self.mean, at), rng)


def log_mean_rate(y: Floats, weight: Floats | None, exposure: Floats | None) -> float:
    """The logarithm of the mean rate of counts, half a count more so that counts which are all 0 have one."""
    exposure = np.ones(len(y)) if exposure is None else exposure
    each = np.ones(len(y)) if weight is None else weight
    return float(np.log((each @ y + 0.5) / (each @ exposure)))


def check_counts(name: str, y: Floats) -> None:
    """Refuse targets that are no counts, naming the first."""
    wrong = (y < 0) | (y != np.floor(y))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"likelihood={name!r} needs counts, whole numbers from 0 on, but row {row} of the target holds {y[row]:g}."
        )


def rates(log_rate: float, at: Predicted) -> Floats:
    """Mean counts exposure exp(log_rate + f), kept from overflowing, shape (S, n)."""
    rate = np.exp(np.minimum(log_rate + at.f, LARGEST_LOG))
    return np.asarray(rate if at.exposure is None else at.exposure * rate)


def poisson_counts(rate: Floats, rng: np.random.Generator) -> Floats:
    """A Poisson count of each mean; of very large ones rounded normals, which are as good."""
    normal = np.rint(rate + np.sqrt(rate) * rng.standard_normal(rate.shape))
    return np.asarray(np.where(rate < LARGEST_RATE, rng.poisson(np.minimum(rate, LARGEST_RATE)), normal))
