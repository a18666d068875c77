"""Rows of users and items drawn given their ratings, in each draw of a fit: the computation of a fold-in.

Rows, their noise factors, and what the likelihood draws for each rating are drawn in turn. Each row has a random stream
that is named by its id: who else is folded in changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.compute.row_in_draws import row_in_draws
from tuckergp.data.history import History
from tuckergp.errors import NotPositiveDefinite
from tuckergp.likelihoods.given import Predicted
from tuckergp.model.design import Design
from tuckergp.model.mode_table import ModeTable
from tuckergp.posterior.draws import Draws
from tuckergp.posterior.fitted import Fit
from tuckergp.posterior.newcomers import prior_of_rows
from tuckergp.random import Keys, stream
from tuckergp.recommender.zeros import Zeros
from tuckergp.residuals.base import ModeDraws
from tuckergp.stopping import stop_if_unwanted

__all__ = ["SCANS", "TURNS", "Drawn", "FoldIn", "LocalRows", "ZerosBeside"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.integer]
# The noise factors of the rows of each mode that has some, (M_d, S).
Noise = dict[int, Floats]
# A random stream for each row to be drawn of users and of items; none for means.
Rngs = list[list[np.random.Generator]]

SCANS = 20
"""The number of Gibbs scans over the rows and what else is unknown: latent utilities, items without ratings so far.

Without either, and without noise factors, one draw is exact. Otherwise the last scan is exact in the limit of many.
"""

TURNS = 5
"""How often a row and its noise factor are drawn in turn where there is a single scan.

Newcomers start at a factor from the prior. The share of what the start gets wrong that is left after k turns is about
(p / (n + nu))^k for n ratings that tell p numbers.
"""


@dataclass(frozen=True)
class LocalRows:
    """The users, or items, of the ratings of a fold-in; the first ``free`` of them are drawn, the others are given.

    Attributes
    ----------
    table : ModeTable
        The rows, those to be drawn first; those that have factors in the fit are training rows.
    free : int
        How many rows are to be drawn.
    changed : list
        The ids of the rows to be drawn, then other new ids.
    changed_rows : ModeTable
        Their features, with those that training did not have.
    names : ndarray of uint64, shape (len(changed),)
        What names their random numbers.
    """

    table: ModeTable
    free: int
    changed: list[Any]
    changed_rows: ModeTable
    names: Keys

    def streams(self, seed: int, d: int) -> list[np.random.Generator]:
        """A random stream for each row to be drawn, named by its id."""
        return [stream(seed, d, name) for name in self.names[: self.free].tolist()]

    def rows(self, mode: ModeDraws) -> ModeTable:
        """The new rows of the changed ids; those that were drawn are training rows now."""
        residual = self.table.residual.grown(mode, self.names, self.free)
        return replace(self.changed_rows, residual=residual, group_names=None)

    def prior(self, d: int, draws: Draws) -> tuple[Floats, list[Floats]]:
        """Mean and precision of the rows to be drawn, from their features alone."""
        rows = self.changed_rows.take(np.arange(self.free))
        never_seen = rows.residual.grown(draws.modes[d], self.names[: self.free], 0)
        return prior_of_rows(draws, d, replace(rows, residual=never_seen))

    def kept(self, mode: ModeDraws, drawn: Drawn) -> ModeDraws:
        """The draws of the mode, with those of the new rows appended."""
        return self.table.residual.with_rows(mode, *drawn) if self.free else mode


class Drawn(NamedTuple):
    """Factors of some rows in all draws, (m, S, r), and their noise factors, (m, S), where they have their own."""

    psi: Floats
    noise: Floats | None


class FoldInState(NamedTuple):
    """What a fold-in draws, in place, from which priors, and by which random numbers.

    Attributes
    ----------
    psi : list of ndarray, shapes (M_d, S, r_d)
        The factors of all rows of the design; those of rows to be drawn change.
    noise : dict of int to ndarray
    prior : dict of int to tuple
        Of users, and of items if some are to be drawn; see `LocalRows.prior`.
    rngs : list
    """

    psi: list[Floats]
    noise: Noise
    prior: dict[int, tuple[Floats, list[Floats]]]
    rngs: Rngs


class RowData(NamedTuple):
    """What observations say of the rows of one mode while all else stands still.

    Attributes
    ----------
    z : ndarray, shape (n, S, r)
        What multiplies psi in each observation.
    y : ndarray, shape (n, S)
        Working targets, less what does not depend on the mode.
    precision : ndarray, shape (n, S)
        Without the rows' own noise factors.
    owner : ndarray of int, shape (n,)
        The row of each observation.
    """

    z: Floats
    y: Floats
    precision: Floats
    owner: Ints


class ZerosBeside(NamedTuple):
    """The zeros of clicks beside the observations of a fold-in.

    Attributes
    ----------
    of_model : Zeros
        Those of the model.
    weight : ndarray, shape (n,)
        Their weights in the cells of the observations.
    of_users : ndarray, shape (users,)
        The weights of all pairs of the users to be drawn.
    """

    of_model: Zeros
    weight: Floats
    of_users: Floats


@dataclass(frozen=True)
class FoldIn:
    """The problem of a fold-in: all ratings, old and new, of the users with new ratings.

    Attributes
    ----------
    fit : Fit
    locals : tuple of LocalRows
        These users; and items without ratings so far, followed by the others that the users rated.
    design : Design
        Rows of users and items by their place in ``locals``, and of circumstances.
    y : ndarray, shape (n,)
        Targets, as the likelihood takes them.
    more : History
        The ratings that are added to the history.
    replaced : bool
        Whether they are all ratings of their users, and take the place of those that the history has.
    zeros : ZerosBeside or None
        For clicks.
    """

    fit: Fit
    locals: tuple[LocalRows, LocalRows]
    design: Design
    y: Floats
    more: History
    replaced: bool = False
    zeros: ZerosBeside | None = None

    def find(self, seed: int | None) -> tuple[Drawn, Drawn]:
        """Draw the rows of users, and of items without ratings so far, given the rest of each draw.

        Without ``seed`` their means. Drift and context without data are at their means.
        """
        index, free = self.design.index, self.locals[1].free
        several = self.fit.likelihood.augmented or free > 0
        state = self._start(seed, several)
        of_mode = {0: np.arange(len(index)), 1: np.flatnonzero(index[:, 1] < free)}
        for _ in range(SCANS if several else 1):
            y, precision = self._working(state)
            for d, rows in of_mode.items():
                if len(rows):
                    data = self._data(state, d, rows, y[rows], precision[rows])
                    self._draw(state, d, data, 1 if several else TURNS)
        found = [Drawn(state.psi[d][: each.free], self._own(d, state.noise)) for d, each in enumerate(self.locals)]
        return found[0], found[1]

    def _start(self, seed: int | None, several: bool) -> FoldInState:
        """Where the rows start: as in the draws, or at their means; users who are drawn but once may start anywhere."""
        draws = self.fit.draws
        noise = self._noise(seed)
        prior = {d: self._prior(d, local) for d, local in enumerate(self.locals) if local.free}
        psi = [
            prior[0][0].copy() if d == 0 and not several else draws.factors(d, table)
            for d, table in enumerate(self.design.modes)
        ]
        rngs: Rngs = [] if seed is None else [local.streams(seed, d) for d, local in enumerate(self.locals)]
        return FoldInState(psi, noise, prior, rngs)

    def _data(self, state: FoldInState, d: int, rows: Ints, y: Floats, precision: Floats) -> RowData:
        """What the observations ``rows``, with these working targets and precisions, say of the rows of a mode."""
        draws, index = self.fit.draws, self.design.index[rows]
        for e, factors in state.noise.items():
            precision = precision if e == d and self._has_own(d) else precision * factors[index[:, e]]
        at = [None if e == d else psi[index[:, e]] for e, psi in enumerate(state.psi)]
        z, alone = draws.model.core.others_in_draws(draws.W, at, d)
        return RowData(z, y - alone, precision, index[:, d])

    def _prior(self, d: int, local: LocalRows) -> tuple[Floats, list[Floats]]:
        """Mean and precision of the rows to be drawn, from their features and the zeros of clicks."""
        draws, prior = self.fit.draws, local.prior(d, self.fit.draws)
        if self.zeros is None:
            return prior
        index = self.design.index
        others = [draws.factors(e, table) for e, table in enumerate(self.design.modes) if e > 1]
        each = _by_owner(index[:, d], local.free) if others else []
        x = [np.prod([psi[index[mine, e]] for e, psi in enumerate(others, start=2)], axis=0) for mine in each]
        return self.zeros.of_model.beside(draws, d, prior, x, self.zeros.of_users if d == 0 else None)

    def _has_own(self, d: int) -> bool:
        """Whether each row of a mode has its own noise factor, not that of a group."""
        return self.fit.draws.modes[d].row_noise is not None and self.design.modes[d].nested is None

    def _own(self, d: int, noise: Noise) -> Floats | None:
        """The noise factors of the rows to be drawn, (free, S); None where they have none of their own."""
        return noise[d][: self.locals[d].free] if self._has_own(d) else None

    def _noise(self, seed: int | None) -> Noise:
        """Where noise factors start: as in the draws; for rows never seen at a draw from their prior."""
        draws = self.fit.draws
        streams = None if seed is None else draws.streams(stream(seed, 2))
        return {
            d: draws.row_factors(d, table, streams if d < 2 else None)
            for d, (table, mode) in enumerate(zip(self.design.modes, draws.modes, strict=True))
            if mode.row_noise is not None
        }

    def _working(self, state: FoldInState) -> tuple[Floats, ...]:
        """Working targets, and precisions without noise factors, (n, S); each user's are drawn from a stream."""
        draws, likelihood, index = self.fit.draws, self.fit.likelihood, self.design.index
        psi, noise, _, rngs = state
        shape = (len(draws), len(index))
        factors = np.ones(shape)
        for e, of_rows in noise.items():
            factors *= of_rows[index[:, e]].T
        if not (likelihood.augmented and rngs):
            f = draws.model.contract_draws(psi, draws.W, index) if likelihood.augmented else np.zeros(shape)
            zeros = None if self.zeros is None else self.zeros.weight
            y, w = likelihood.working(Predicted(f, draws.unknowns, factors, zeros=zeros), self.y, None)
            if self.zeros is not None:
                w = w * self.zeros.of_users[index[:, 0]]
            return y.T, (w / factors).T
        f, y, w = draws.model.contract_draws(psi, draws.W, index), np.empty(shape), np.empty(shape)
        for rows, rng in zip(_by_owner(index[:, 0], self.locals[0].free), rngs[0], strict=True):
            mine = self._ordered(rows)
            at = Predicted(f[:, mine], draws.unknowns, factors[:, mine])
            y[:, mine], w[:, mine] = likelihood.working(at, self.y[mine], rng)
        return y.T, (w / factors).T

    def _ordered(self, rows: Ints) -> Ints:
        """A user's observations by their items, so that random numbers do not depend on the order of a table."""
        index = self.design.index[rows]
        names = self.locals[1].table.residual.keys[index[:, 1]]
        return rows[np.lexsort((*index[:, 2:].T, self.y[rows], names))]

    def _draw(self, state: FoldInState, d: int, data: RowData, turns: int) -> None:
        """Draw the rows of a mode and their noise factors given their observations, so many times in turn."""
        rngs, (mean, precision) = state.rngs, state.prior[d]
        free, own = self.locals[d].free, self._own(d, state.noise)
        draws, r = mean.shape[1:]
        factors, turns = (np.ones((free, draws)), 1) if own is None else (own, turns)
        nu = np.ones(draws) if own is None else np.ascontiguousarray(self.fit.draws.nu(d))
        normals, gammas = np.zeros((draws, turns, r)), np.empty((draws, 0))
        z, y, w = (np.ascontiguousarray(values, dtype=np.float64) for values in data[:3])
        for m, mine in enumerate(_by_owner(data.owner, free)):
            stop_if_unwanted()
            if rngs:
                normals = rngs[d][m].standard_normal((draws, turns, r))
                if own is not None:
                    gammas = rngs[d][m].standard_gamma((nu[:, None] + len(mine)) / 2, (draws, turns))
            given = z, y, w, mine, mean[m], precision[m], normals, gammas, nu, factors[m]
            if not row_in_draws(*given, state.psi[d][m]):
                raise NotPositiveDefinite(
                    "The precision of a row to fold in is not positive definite: the model, or its file, holds numbers "
                    "out of all proportion. Fit it again."
                )


def _by_owner(owner: Ints, count: int) -> list[npt.NDArray[np.intp]]:
    """The observations of each of the rows 0 to ``count`` - 1."""
    order = np.argsort(owner, kind="stable")
    ends = np.searchsorted(owner[order], np.arange(count + 1))
    return [order[first:last] for first, last in pairwise(ends)]
