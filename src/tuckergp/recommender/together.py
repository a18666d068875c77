"""One list for a group: what several people would like to see together.

In each draw an item has one score by each member, the expected rating or the value of the item; the group's is their
mean, or the least of them. What a list is sorted by is its posterior mean over the draws, so the least is the expected
least, not the least of the expected scores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from tuckergp.data.tables import Table
from tuckergp.model.design import Design
from tuckergp.posterior.fitted import Fit
from tuckergp.recommender.layout import Layout
from tuckergp.recommender.value import Part, utility

__all__ = ["COMBINED", "Expected", "Group", "How", "Values"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.integer]
How: TypeAlias = Literal["mean", "least"]

# How many scores are held at once, over all draws.
BLOCK = 4_000_000

# The score of a group from those of its members, which are on the last axis.
COMBINED: dict[str, Callable[[Floats], Floats]] = {
    "mean": lambda scores: np.asarray(scores.mean(axis=-1)),
    "least": lambda scores: np.asarray(scores.min(axis=-1)),
}


class Opinions(Protocol):
    """What the members of a group make of items."""

    @property
    def draws(self) -> int:
        """The number of draws."""

    @property
    def sampled(self) -> bool:
        """Whether the draws are of a posterior; False for a MAP estimate."""

    def means(self, items: Ints) -> Floats:
        """The posterior mean of the score of each item by each member, shape (n, m)."""

    def in_draws(self, items: Ints) -> Floats:
        """The score of each item by each member in each draw, shape (S, n, m)."""


@dataclass(frozen=True)
class Expected:
    """The ratings, or choices, that one model expects of the members of a group.

    Attributes
    ----------
    layout : Layout
    fit : Fit
    members : ndarray of int, shape (m,)
        Their rows.
    occasion : Table
        Circumstances, one row per member.
    places : ndarray of int or None
        The rows of items in this model, by the numbers that items are asked for; None where these are the rows.
    """

    layout: Layout
    fit: Fit
    members: Ints
    occasion: Table
    places: Ints | None = None

    @classmethod
    def of(cls, part: Part, occasion: Table) -> Expected:
        """Those of one of the two models of a value."""
        return cls(part.layout, part.fitted.fit, part.users, occasion, part.items)

    @property
    def draws(self) -> int:
        """The number of draws."""
        return len(self.fit.draws)

    @property
    def sampled(self) -> bool:
        """Whether the draws are of a posterior."""
        return self.fit.draws.sampled

    def means(self, items: Ints) -> Floats:
        """The expected rating of each item by each member, known exactly also without ratings, shape (n, m)."""
        return self.fit.predict(self._pairs(items)).reshape(len(items), -1)

    def in_draws(self, items: Ints) -> Floats:
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
        rows = items if self.places is None else self.places[items]
        who = np.tile(np.arange(len(self.members)), len(items))
        return self.layout.design(self.members[who], np.repeat(rows, len(self.members)), self.occasion.take(who))


@dataclass(frozen=True)
class Values:
    """The values of items for the members of a group: how probable a choice is times how good its expected rating.

    The posteriors of the two models are independent, so any draw of one goes with any draw of the other.

    Attributes
    ----------
    rating, choice : Expected
    utility : callable
        How good ratings are.
    """

    rating: Expected
    choice: Expected
    utility: Callable[[Floats], Floats]

    @classmethod
    def of(cls, parts: tuple[Part, Part], occasion: Table) -> Values:
        """Those of the two models of a recommender."""
        rating, choice = (Expected.of(part, occasion) for part in parts)
        return cls(rating, choice, lambda ratings: np.asarray(utility(parts[0].fitted, ratings)))

    @property
    def draws(self) -> int:
        """The number of pairs of draws: each draw of either model is in one at least."""
        return max(self.rating.draws, self.choice.draws)

    @property
    def sampled(self) -> bool:
        """Whether the draws are of a posterior."""
        return self.rating.sampled and self.choice.sampled

    def means(self, items: Ints) -> Floats:
        """The posterior mean of the value of each item for each member, shape (n, m)."""
        liked, chosen = self.utility(self.rating.in_draws(items)), self.choice.in_draws(items)
        return np.asarray(liked.mean(axis=0) * chosen.mean(axis=0))

    def in_draws(self, items: Ints) -> Floats:
        """The value of each item for each member in each pair of draws, shape (S, n, m)."""
        each = np.arange(self.draws)
        liked, chosen = self.utility(self.rating.in_draws(items)), self.choice.in_draws(items)
        return np.asarray(liked[each % len(liked)] * chosen[each % len(chosen)])


@dataclass(frozen=True)
class Group:
    """What the members of a group make of items, and how that is combined.

    Attributes
    ----------
    opinions : Opinions
    members : int
        How many there are.
    how : {"mean", "least"}
    """

    opinions: Opinions
    members: int
    how: How

    def best(self, items: Ints, n: int) -> tuple[Ints, Floats, Floats]:
        """The n best of some items, their scores, and the standard deviations of these over the draws."""
        if not len(items):
            return items, np.zeros(0), np.zeros(0)
        step = max(1, BLOCK // (self.opinions.draws * self.members))
        blocks = [items[first : first + step] for first in range(0, len(items), step)]
        score = np.concatenate([self.scores(block) for block in blocks])
        order = np.lexsort((items, -score))[:n]
        return items[order], score[order], self._std(items[order])

    def scores(self, items: Ints) -> Floats:
        """The posterior mean of the group's score of each item."""
        if not len(items):
            return np.zeros(0)
        if self.how == "mean":  # the mean of the members' means
            return COMBINED["mean"](self.opinions.means(items))
        return np.asarray(COMBINED[self.how](self.opinions.in_draws(items)).mean(axis=0))

    def _std(self, items: Ints) -> Floats:
        """The posterior standard deviation of the group's score of each item; NaN for a MAP estimate."""
        if not self.opinions.sampled:
            return np.full(len(items), np.nan)
        combined = COMBINED[self.how](self.opinions.in_draws(items))
        return np.asarray(combined.std(axis=0, ddof=min(1, len(combined) - 1)))
