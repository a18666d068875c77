"""Counts: y ~ Poisson(exposure exp(f)), f with the logarithm of the mean rate added to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from tuckergp.likelihoods.counts import LARGEST_LOG, Counts, poisson_counts
from tuckergp.likelihoods.given import Predicted
from tuckergp.likelihoods.mixture import poisson_distribution, poisson_quantiles

__all__ = ["Poisson"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Poisson(Counts):
    """Counts with mean exp(f), where f has the logarithms of exposure and of the mean rate added to it already.

    Examples
    --------
    >>> import numpy as np
    >>> Poisson().score(np.array([3.0]), np.log(np.array([2.0])))
    array([1.])
    """

    name: ClassVar[str] = "poisson"
    inferences: ClassVar[tuple[str, ...]] = ("hmc", "nuts", "sgld", "sgd")
    sampler: ClassVar[str] = "nuts"
    code: ClassVar[int] = 2

    # Density

    def log_density(self, y: Floats, f: Floats) -> Floats:
        """Log of the Poisson probability, normaliser included; finite for every finite f."""
        near = np.minimum(f, LARGEST_LOG)
        density: Floats = y * f - np.exp(near) * (1.0 + (f - near)) - gammaln(y + 1.0)
        return density

    def score(self, y: Floats, f: Floats) -> Floats:
        """The derivative of the log probability in f, y - exp(f)."""
        return y - np.exp(np.minimum(f, LARGEST_LOG))

    def information(self, y: Floats) -> float:
        """The mean count, which is the mean of the curvature exp(f)."""
        return max(float(np.mean(y)), 0.01)

    # Predictions

    def variances(self, at: Predicted) -> Floats:
        """The variance of each count, which is its mean."""
        return self.means(at)

    def log_densities(self, at: Predicted, y: Floats) -> Floats:
        """Of Poisson distributions."""
        return self.log_density(y, at.f + self.offset(len(y), at.exposure))

    def distribution(self, at: Predicted, y: Floats) -> Floats:
        """Of a mixture of Poisson distributions, one for each draw."""
        return np.asarray(poisson_distribution(self.means(at), y).mean(axis=0))

    def quantiles(self, at: Predicted, levels: Sequence[float]) -> Floats:
        """The smallest count that reaches each quantile."""
        each = self.means(at)
        return np.stack([poisson_quantiles(each, level) for level in levels], axis=1)

    def sample_block(self, at: Predicted, rng: np.random.Generator) -> Floats:
        """New counts from each draw."""
        return poisson_counts(self.means(at), rng)
