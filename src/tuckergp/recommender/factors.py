"""The factors of all draws side by side: predictions for many pairs as one matrix product.

In draw s the prediction is q_s(user) . v_s(item), where q holds the user's factors, the circumstances and the core.
Stacked over the draws, the posterior mean is one product of width S r.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tuckergp.data.tables import Table
from tuckergp.model.mode_table import ModeTable
from tuckergp.model.tucker import Core
from tuckergp.random import stream
from tuckergp.recommender.layout import Layout
from tuckergp.running.fit import Fit

__all__ = ["Factors"]

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Ints = npt.NDArray[np.integer]


@dataclass(frozen=True)
class Factors:
    """The users and items of a fitted recommender as vectors.

    Attributes
    ----------
    layout : Layout
    fit : Fit
    unseen : int or None
        Rows that the data say nothing about have their mean; with a number, which is a seed, they are drawn, as
        uncertainty needs.
    """

    layout: Layout
    fit: Fit
    unseen: int | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Number of draws and width of a vector."""
        core = self.fit.draws.model.core
        return len(self.fit.draws), int(core.ranks[1]) + core.leaves_out

    def thinned(self, most: int) -> Factors:
        """The same with at most so many draws, evenly spread."""
        draws = list(self.fit.draws)
        if len(draws) <= most:
            return self
        kept = [draws[place] for place in np.linspace(0, len(draws) - 1, most).round().astype(int)]
        return replace(self, fit=replace(self.fit, draws=replace(self.fit.draws, chains=[kept])))

    def users(self, numbers: Ints, moment: Table) -> Singles:
        """Q of some users in the circumstances of the rows of ``moment``, shape (n, S, r)."""
        modes = [circumstance.realise(numbers, moment) for circumstance in self.layout.circumstances]
        core = self.fit.draws.model.core
        out = np.empty((len(numbers), *self.shape), dtype=np.float32)
        distinct, place = np.unique(numbers, return_inverse=True)
        rows = self.layout.sides[0].table.take(distinct)
        for s, draw in enumerate(self.fit.draws):
            U = draw.parameters.U
            psi = [self._factors(rows, U[0], s, 0, distinct)[place]]
            psi += [np.asarray(table.table @ U[2 + e])[code] for e, (table, code) in enumerate(modes)]
            out[:, s] = _queries(core, psi, draw.parameters.W)
        return out

    def items(self) -> Singles:
        """V of all items known and, last, of an unknown one, shape (m, S, r)."""
        rows, rank = self.layout.sides[1].table, int(self.fit.draws.model.core.ranks[1])
        out = np.ones((rows.n_rows, *self.shape), dtype=np.float32)
        for s, draw in enumerate(self.fit.draws):
            out[:, s, :rank] = self._factors(rows, draw.parameters.U[1], s, 1, np.arange(rows.n_rows))
        return out

    def _factors(self, rows: ModeTable, U: Floats, s: int, d: int, numbers: Ints) -> Floats:
        """Psi of some rows in draw s."""
        psi = np.asarray(rows.table @ U, dtype=np.float64)
        unseen, parts = self._unseen_parts[d]
        place = np.minimum(np.searchsorted(unseen, numbers), max(len(unseen) - 1, 0))
        here = np.flatnonzero(unseen[place] == numbers) if len(unseen) else unseen
        psi[here] += parts[s, place[here]]
        return psi

    @cached_property
    def _unseen_parts(self) -> list[tuple[Ints, Singles]]:
        """The rows of users and of items without a residual of their own, and what each draw adds to them."""
        found: list[tuple[Ints, Singles]] = []
        draws = self.fit.draws
        for d, side in enumerate(self.layout.sides):
            residual = side.table.residual
            rows = np.zeros(0, dtype=np.intp)
            if residual is not None and self.unseen is not None and draws.sampled:
                rows = np.flatnonzero(np.diff(residual.indptr) == 0)
            parts = np.empty((len(draws), len(rows), int(draws.model.core.ranks[d])), dtype=np.float32)
            if len(rows):
                for s, draw in enumerate(draws):
                    root = np.linalg.cholesky(draw.covariance[d])
                    parts[s] = stream(self.unseen or 0, s, d).standard_normal(parts.shape[1:]) @ root.T
            found.append((rows, parts))
        return found


def _queries(core: Core, psi: Sequence[Floats], W: Floats) -> Floats:
    """The core with all modes but the items' filled in, shape (n, r_items), and last what does not depend on the item.

    Items have a factor 1 for the latter.
    """
    # modes are users, items, circumstances
    z, alone = core.others(np.asarray(W, dtype=np.float64), [psi[0], None, *psi[1:]], 1)
    return np.column_stack([z, alone]) if core.leaves_out else z
