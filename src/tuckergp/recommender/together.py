"""One list for a group: what several people would like to see together.

In each draw an item has one expected rating by each member; the group's is their mean, or the least of them. The score
is the posterior mean of it over the draws, so the least is the expected least, not the least of the expected ratings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from tuckergp.data.tables import Table
from tuckergp.model.design import Design
from tuckergp.posterior.fitted import Fit
from tuckergp.recommender.layout import Layout

__all__ = ["COMBINED", "Group", "How"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.integer]
How: TypeAlias = Literal["mean", "least"]

# How many expected ratings are held at once, over all draws.
BLOCK = 4_000_000

# The rating of a group from those of its members, which are on the last axis.
COMBINED: dict[str, Callable[[Floats], Floats]] = {
    "mean": lambda ratings: np.asarray(ratings.mean(axis=-1)),
    "least": lambda ratings: np.asarray(ratings.min(axis=-1)),
}


@dataclass(frozen=True)
class Group:
    """The members of a group, and how their ratings are combined.

    Attributes
    ----------
    layout : Layout
    fit : Fit
    members : ndarray of int, shape (m,)
        Their rows.
    occasion : Table
        Circumstances, one row per member.
    how : {"mean", "least"}
    """

    layout: Layout
    fit: Fit
    members: Ints
    occasion: Table
    how: How

    def best(self, items: Ints, n: int) -> tuple[Ints, Floats, Floats]:
        """The n best of some items, their scores, and the standard deviations of these over the draws."""
        self.fit.draws.require_kept()
        if not len(items):
            return items, np.zeros(0), np.zeros(0)
        step = max(1, BLOCK // (len(self.fit.draws) * len(self.members)))
        blocks = [items[first : first + step] for first in range(0, len(items), step)]
        score = np.concatenate([self._scores(block) for block in blocks])
        order = np.lexsort((items, -score))[:n]
        return items[order], score[order], self._std(items[order])

    def _scores(self, items: Ints) -> Floats:
        """The posterior mean of the group's rating of each item."""
        if self.how == "mean":  # the mean of the members' means, which are known exactly also without ratings
            return COMBINED["mean"](self.fit.predict(self._pairs(items)).reshape(len(items), -1))
        return np.asarray(COMBINED[self.how](self._ratings(items)).mean(axis=0))

    def _std(self, items: Ints) -> Floats:
        """The posterior standard deviation of the group's rating of each item; NaN for a MAP estimate."""
        if not self.fit.draws.sampled:
            return np.full(len(items), np.nan)
        combined = COMBINED[self.how](self._ratings(items))
        return np.asarray(combined.std(axis=0, ddof=min(1, len(combined) - 1)))

    def _ratings(self, items: Ints) -> Floats:
        """The expected rating of each item by each member in each draw, shape (S, n, m).

        Of a member who is unknown, that of the average person, the same in each draw.
        """
        pairs = self._pairs(items)
        blocks = [self.fit.likelihood.means(at) for _, at in self.fit.blocks(pairs, unseen=True, noise=False)]
        ratings = np.concatenate(blocks, axis=1).reshape(-1, len(items), len(self.members))
        unknown = self.members == self.layout.sides[0].unknown
        if unknown.any():
            average = self.fit.predict(pairs).reshape(len(items), -1)
            ratings[:, :, unknown] = average[:, unknown]
        return ratings

    def _pairs(self, items: Ints) -> Design:
        """The design of all pairs of these items and the members, those of one item side by side."""
        who = np.tile(np.arange(len(self.members)), len(items))
        return self.layout.design(self.members[who], np.repeat(items, len(self.members)), self.occasion.take(who))
