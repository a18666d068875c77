"""The factors of users and items in all draws: predictions for many pairs as one matrix product.

In draw s the prediction is q_s(user) . v_s(item), where q combines the user's factors, the circumstances and the core.
With the draws side by side, the posterior mean is one product of width S r. Factors of items with ratings are read from
the draws without a copy; nothing here passes over all users.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.data.tables import Table
from tuckergp.posterior.draws import Draws
from tuckergp.posterior.fitted import Fit
from tuckergp.random import DrawStreams, stream
from tuckergp.recommender.layout import Layout

__all__ = ["FactorRows", "Factors", "Queries"]

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Ints = npt.NDArray[np.integer]


class FactorRows(NamedTuple):
    """The numbers of some users or items, (m,), and their factors in all draws, (m, S, r)."""

    numbers: Ints
    factors: Singles


class Queries(NamedTuple):
    """What multiplies the factors of items, (n, S, r), and what is added for every item, (n, S)."""

    vectors: Singles
    alone: Floats


@dataclass(frozen=True)
class Factors:
    """The users and items of a fitted recommender as vectors.

    Attributes
    ----------
    layout : Layout
    fit : Fit
    unseen : int or None
        None: rows without data get their mean. A seed: they are drawn, which uncertainty needs.
    """

    layout: Layout
    fit: Fit
    unseen: int | None = None

    @property
    def draws(self) -> Draws:
        """The draws of the fit."""
        return self.fit.draws

    def thinned(self, most: int) -> Factors:
        """The same with at most ``most`` draws, evenly spread."""
        return replace(self, fit=replace(self.fit, draws=self.draws.thinned(most)))

    def only(self, s: int) -> Factors:
        """The same with draw s alone."""
        return replace(self, fit=self.fit.only(s))

    @cached_property
    def _streams(self) -> DrawStreams | None:
        return None if self.unseen is None or not self.draws.sampled else self.draws.streams(stream(self.unseen))

    def users(self, numbers: Ints, occasion: Table) -> Queries:
        """The queries of some users in the circumstances of the rows of ``occasion``."""
        distinct, place = np.unique(numbers, return_inverse=True)
        rows = self.layout.sides[0].table.take(distinct)
        psi = [self.draws.factors(0, rows, self._streams)[place]]
        for e, circumstance in enumerate(self.layout.circumstances, start=2):
            table, code = circumstance.realise(self.layout.sides[0].rows_at_fit(numbers), occasion)
            psi.append(self.draws.factors(e, table, self._streams)[code])
        # modes are users, items, circumstances
        z, alone = self.draws.model.core.others_in_draws(self.draws.W, [psi[0], None, *psi[1:]], 1)
        return Queries(z.astype(np.float32), alone)

    def of_items(self, numbers: Ints) -> Singles:
        """The factors of some items in all draws, (n, S, r)."""
        rows = self.layout.sides[1].table.take(numbers)
        return np.asarray(self.draws.factors(1, rows, self._streams), dtype=np.float32)

    @cached_property
    def items(self) -> list[FactorRows]:
        """The factors of all known items, those in the draws first, and last of an unknown item."""
        return self._parts(1)

    def side(self, d: int) -> list[FactorRows]:
        """The factors of all users (d = 0) or items (d = 1), and last of an unknown one."""
        return self.items if d == 1 else self._parts(d)

    def _parts(self, d: int) -> list[FactorRows]:
        table = self.layout.sides[d].table
        numbers, kept = table.residual.rows_in_place(self.draws.modes[d])
        parts = [FactorRows(numbers, kept.astype(np.float32, copy=False))] if len(numbers) else []
        rest = np.ones(table.n_rows, dtype=bool)
        rest[numbers] = False
        others = np.flatnonzero(rest)
        if len(others):
            factors = self.draws.factors(d, table.take(others), self._streams)
            parts.append(FactorRows(others, factors.astype(np.float32)))
        return parts
