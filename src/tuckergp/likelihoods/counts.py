"""What likelihoods of counts share: the mean is exposure exp(m + f), m the logarithm of the targets' mean rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from tuckergp.likelihoods.base import Likelihood
from tuckergp.likelihoods.given import Label, Predicted, row_of_target

__all__ = ["LARGEST_LOG", "Counts", "poisson_counts"]

Floats = npt.NDArray[np.float64]

# Beyond this logarithm of a mean count the exponential continues as its tangent, so that nothing overflows.
LARGEST_LOG = 100.0
# Larger means are too large for the generator of counts.
LARGEST_RATE = 1e15
# Differences between log probabilities of larger counts are rounding errors.
LARGEST_COUNT = 1e12


@dataclass(frozen=True)
class Counts(Likelihood):
    """Whole numbers from 0 on. Log densities take f with the logarithms of exposure and mean rate added to it.

    Attributes
    ----------
    mean : float
        The logarithm of the mean rate.
    """

    mean: float = 0.0

    counts: ClassVar[bool] = True
    latent: ClassVar[str] = "log of the mean"
    predicts: ClassVar[str] = "count"

    # Targets

    @classmethod
    def check(cls, y: Floats, label: Label = row_of_target) -> None:
        """Refuse targets that are no counts."""
        cls.require((y >= 0) & (y == np.floor(y)), "counts, whole numbers from 0 on", y, label)
        cls.require(y <= LARGEST_COUNT, f"counts up to {LARGEST_COUNT:g}", y, label)

    @classmethod
    def read(cls, y: Floats, weight: Floats | None = None, exposure: Floats | None = None) -> Self:
        """The likelihood with the log of the mean rate; half a count is added, so that it exists for zeros alone."""
        cls.check(y)
        exposure = np.ones(len(y)) if exposure is None else exposure
        each = np.ones(len(y)) if weight is None else weight
        return cls(mean=float(np.log((each @ y + 0.5) / (each @ exposure))))

    def targets(self, y: Floats) -> Floats:
        """The counts themselves."""
        if not (y == np.floor(y)).all():
            self.refuse_means()
        return y

    @classmethod
    def target_range(cls, y: Floats) -> tuple[float, float]:
        """From 0 on; there is no largest count."""
        return 0.0, np.inf

    def offset(self, count: int, exposure: Floats | None) -> Floats:
        """The logarithms of mean rate and exposure."""
        return self.mean + (np.zeros(count) if exposure is None else np.log(exposure))

    @classmethod
    def as_numbers(cls, y: Floats, exposure: Floats | None) -> Floats:
        """Logarithms of the rates, with half a count added to each count."""
        return np.asarray(np.log((y + 0.5) / (1.0 if exposure is None else exposure)))

    # Predictions

    def means(self, at: Predicted) -> Floats:
        """The mean of each count, exposure times rate, limited so that it does not overflow."""
        rate = np.exp(np.minimum(self.mean + at.f, LARGEST_LOG))
        return np.asarray(rate if at.exposure is None else at.exposure * rate)


def poisson_counts(rate: Floats, rng: np.random.Generator) -> Floats:
    """Draw a Poisson count with each mean; for very large means a rounded normal, which is as good."""
    normal = np.rint(rate + np.sqrt(rate) * rng.standard_normal(rate.shape))
    return np.asarray(np.where(rate < LARGEST_RATE, rng.poisson(np.minimum(rate, LARGEST_RATE)), normal))
