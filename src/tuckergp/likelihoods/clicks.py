"""Clicks, plays, purchases: a choice is an observation, and so is every pair that was not chosen.

What f says about the probability of a choice is a logistic link that held-out choices decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_expit

from tuckergp.likelihoods.all_pairs import AllPairs, AllPairsState
from tuckergp.likelihoods.given import Observed, Predicted
from tuckergp.likelihoods.of_levels import OfLevels

__all__ = ["Clicks"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Clicks(AllPairs, OfLevels):
    """Choices among all items: chosen pairs are ones, all other pairs are zeros of less weight.

    Parameters
    ----------
    zeros : float or "auto"
        w0, the weight of a pair that was not chosen; a chosen one has weight 1, or more by its count.
    popularity : float or "auto"
        From 0 to 1: zeros of item j weigh w0 c_j, where c_j is n_j^popularity, n_j how often the item was chosen, with
        mean 1. Where popular items are seen by more people, not choosing them says more.
    counting : {"none", "log", "linear", "auto"}
        How counts, such as plays, weigh: not at all, w = 1 + log(1 + n / m), or w = 1 + n / m, with m the median count.
    temper : float or "auto"
        The power of the pseudo-likelihood, from 0 (without it) to 1: each pair counts as so many observations.
    activity : float or "auto"
        From 0 to 1: all pairs of user u, chosen or not, weigh a_u = (n_u / m)^-activity, n_u how many choices the user
        made, with m the geometric mean over users. So those who choose much do not outweigh the others.
    slope, intercept : float
        The probability of a choice is logistic(intercept + slope f).
    typical : float
        The median count.
    usual : float
        The geometric mean of the numbers of choices of the users.
    noise : float
        Variance of f's noise in algorithms that hold it fixed.

    ``"auto"`` values are chosen by `TuckerRecommender` on held-out choices.

    Examples
    --------
    >>> Clicks(zeros=0.2).open
    ['popularity', 'counting', 'temper', 'activity']
    """

    name: ClassVar[str] = "clicks"

    @property
    def levels(self) -> Floats:
        """Not chosen and chosen, 0 and 1."""
        return np.array([0.0, 1.0])

    # Density, of a pair given whether it was chosen

    def log_density(self, y: Floats, f: Floats) -> Floats:
        """Log of the probability of a choice (y > 0) or of none."""
        return np.asarray(log_expit(np.where(y > 0, 1.0, -1.0) * self._logit(f)))

    def score(self, y: Floats, f: Floats) -> Floats:
        """The derivative of the log probability in f."""
        return self.slope * ((y > 0) - expit(self._logit(f)))

    def information(self, y: Floats) -> float:
        """The precision that each choice adds."""
        return 1 / self.noise

    def _logit(self, f: Floats) -> Floats:
        return self.intercept + self.slope * f

    def log_likelihood(self, state: AllPairsState, observed: Observed, f: Floats) -> Floats:
        """Log probability of each choice."""
        return self.log_density(observed.y, f)

    # Predictions

    def means(self, at: Predicted) -> Floats:
        """The probability of a choice, in the precision of f."""
        return np.asarray(expit(self._logit(at.f)))

    def probabilities(self, at: Predicted) -> Floats:
        """The probabilities of no choice and of a choice in each draw, (S, n, 2)."""
        chosen = expit(self._logit(at.f))
        return np.stack([1 - chosen, chosen], axis=2)
