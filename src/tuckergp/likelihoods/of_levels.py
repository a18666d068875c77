"""Targets that are one of a few levels: every prediction follows from the probabilities of the levels given f."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tuckergp.likelihoods.base import Likelihood
from tuckergp.likelihoods.given import Predicted
from tuckergp.likelihoods.levels import level_interval
from tuckergp.likelihoods.ranked import levels_score

__all__ = ["OfLevels"]

Floats = npt.NDArray[np.float64]


class OfLevels(Likelihood):
    """Predictions of a likelihood that has ``levels`` and their ``probabilities``."""

    has_levels: ClassVar[bool] = True

    def means(self, at: Predicted) -> Floats:
        """The mean of the distribution over levels."""
        return self.probabilities(at) @ self.levels

    def variances(self, at: Predicted) -> Floats:
        """The variance of the distribution over levels."""
        probabilities = self.probabilities(at)
        return np.maximum(probabilities @ self.levels**2 - (probabilities @ self.levels) ** 2, 0.0)

    def log_densities(self, at: Predicted, y: Floats) -> Floats:
        """Of the levels; minus infinity for what is no level."""
        is_level = y[:, None] == self.levels
        with np.errstate(divide="ignore"):
            return np.asarray(np.log((self.probabilities(at) * is_level).sum(axis=2)))

    def distribution(self, at: Predicted, y: Floats) -> Floats:
        """The probability of the levels up to y."""
        return np.asarray((self.probabilities(at).mean(axis=0) * (self.levels <= y[:, None])).sum(axis=1))

    def crps(self, at: Predicted, y: Floats) -> Floats:
        """Of the distribution over levels, by a sum over them."""
        return levels_score(self.probabilities(at).mean(axis=0), self.levels, y)

    def quantiles(self, at: Predicted, levels: Sequence[float]) -> Floats:
        """The lowest level that reaches each quantile."""
        together = self.probabilities(at).mean(axis=0)
        reached = np.cumsum(together, axis=1)[:, :, None] >= np.asarray(levels) - 1e-12
        reached[:, -1] = True
        return np.asarray(self.levels[np.argmax(reached, axis=1)])

    def interval(self, at: Predicted, share: float) -> Floats:
        """The interval of levels that holds a new observation with probability about ``share``."""
        return level_interval(self.probabilities(at).mean(axis=0), self.levels, share)

    def sample_block(self, at: Predicted, rng: np.random.Generator) -> Floats:
        """A new level from each draw, by its probabilities."""
        probability = self.probabilities(at)
        reached = np.cumsum(probability, axis=2) >= rng.random((*at.f.shape, 1))
        reached[:, :, -1] = True
        return np.asarray(self.levels[np.argmax(reached, axis=2)])
