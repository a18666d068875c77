"""Waiting times: y ~ Exponential with mean exp(m + f), m the logarithm of the targets' mean.

A complete likelihood to copy: reading, density and score, predictions. It has nothing to learn beside f, and gradients
are enough for it. For Gibbs sampling add `initial`, `augment`, `log_likelihood`, `kept`, `continued` and `working`, and
draws of unknowns of its own, as `student.py` and `negative_binomial.py` do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from tuckergp.likelihoods.base import Label, Likelihood, Predicted, row_of_target
from tuckergp.likelihoods.mixture import Standard, mixture_quantiles

__all__ = ["Exponential"]

Floats = npt.NDArray[np.float64]

# Beyond these logarithms of a mean nothing overflows.
LARGEST_LOG = 100.0
UNIT = Standard(lambda z: -np.expm1(-z), lambda z: np.exp(-z), lambda level: -np.log1p(-level))


@dataclass(frozen=True)
class Exponential(Likelihood):
    """Positive numbers with mean exp(f), where f has the logarithm of the mean added to it already.

    Attributes
    ----------
    mean : float
        The logarithm of the targets' mean.
    """

    mean: float = 0.0

    name: ClassVar[str] = "exponential"
    inferences: ClassVar[tuple[str, ...]] = ("hmc", "nuts", "sgld")
    sampler: ClassVar[str] = "nuts"
    latent: ClassVar[str] = "log of the mean"

    # Targets

    @classmethod
    def check(cls, y: Floats, label: Label = row_of_target) -> None:
        """Refuse what is not positive."""
        cls.require(y > 0, "positive numbers", y, label)

    @classmethod
    def read(cls, y: Floats, weight: Floats | None = None, exposure: Floats | None = None) -> Self:
        """With the logarithm of their mean."""
        cls.check(y)
        return cls(mean=float(np.log(np.average(y, weights=weight))))

    def targets(self, y: Floats) -> Floats:
        """As they are."""
        return y

    def offset(self, count: int, exposure: Floats | None) -> Floats:
        """The logarithm of the mean, which f is to correct."""
        return np.full(count, self.mean)

    # Density

    def log_density(self, y: Floats, f: Floats) -> Floats:
        """Log of exp(-f) exp(-y exp(-f)), which is -f - y exp(-f)."""
        return np.asarray(-f - y * np.exp(np.minimum(-f, LARGEST_LOG)))

    def score(self, y: Floats, f: Floats) -> Floats:
        """Its derivative in f."""
        return np.asarray(y * np.exp(np.minimum(-f, LARGEST_LOG)) - 1.0)

    def information(self, y: Floats) -> float:
        """The mean of y exp(-f)."""
        return 1.0

    # Predictions

    def means(self, at: Predicted) -> Floats:
        """Of each draw."""
        return np.asarray(np.exp(np.minimum(self.mean + at.f, LARGEST_LOG)))

    def variances(self, at: Predicted) -> Floats:
        """The squared means."""
        return self.means(at) ** 2

    def quantiles(self, at: Predicted, levels: Sequence[float]) -> Floats:
        """Of a mixture of exponentials, one for each draw."""
        mean = self.means(at)
        return np.stack([mixture_quantiles(np.zeros_like(mean), mean, level, UNIT) for level in levels], axis=1)

    def sample(self, at: Predicted, rng: np.random.Generator) -> Floats:
        """A waiting time of each draw."""
        return self.means(at) * rng.standard_exponential(at.f.shape)
