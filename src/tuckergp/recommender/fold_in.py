"""New ratings without a new fit: the rows concerned from their exact conditional, draw by draw, all else as it was.

Given items, circumstances and hyperparameters, the ratings of a user are a small regression with a closed form. The
same solves as in `tuckergp.inference.gibbs`, for few rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.data.history import RATING, Duplicates, History
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.features.base import vstack
from tuckergp.inference.base import Problem
from tuckergp.likelihoods.levels import draw_latent
from tuckergp.model.design import Design
from tuckergp.model.mode_table import Matrix, ModeTable
from tuckergp.model.tucker import Parameters, TuckerModel
from tuckergp.posterior.draws import Draw
from tuckergp.priors.evidence import Evidence, Precision
from tuckergp.priors.rows import factors_given_weights
from tuckergp.random import stream
from tuckergp.recommender.clicks import with_negatives
from tuckergp.recommender.growth import features_of, grown, read_more, sets_of
from tuckergp.recommender.layout import Layout
from tuckergp.running.fit import Fit, OrdinalFit
from tuckergp.running.threads import few_threads

__all__ = ["SCANS", "Folded", "fold_in", "posterior_rows"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.integer]

SCANS = 20
"""How often rows are drawn in turn with what else is unknown: latent utilities, items never rated before.

Without either one draw is exact. Otherwise the last of so many scans is a draw in the limit of many.
"""


class Folded(NamedTuple):
    """What a recommender is made of, after new ratings."""

    layout: Layout
    fit: Fit
    history: History


def posterior_rows(
    layout: Layout,
    fit: Fit,
    history: History,
    ratings: Table,
    users: Table | None = None,
    *,
    scale: tuple[float, float] | None = None,
    duplicates: Duplicates = "keep",
    negatives: int = 16,
    seed: int = 0,
) -> Floats:
    """The factors of the users of new ratings, draw by draw, given these and their earlier ratings.

    A sampled model gives a draw of each row for every draw of the rest, a most probable point the mean. Nothing of the
    model changes.

    Parameters
    ----------
    layout, fit, history : Layout, Fit, History
        Of a fitted recommender.
    ratings : Table
        With the usual names.
    users : Table or None
        Attributes of these users, as far as they are known.
    scale, duplicates, negatives
        As in `TuckerRecommender`.
    seed : int
        Names the random streams.

    Returns
    -------
    ndarray, shape (draws, users, r)
        Users in the order of their first rating in ``ratings``.
    """
    part = _part(layout, fit, history, ratings, (users, None), scale, duplicates, negatives, seed)
    return np.stack([rows.users for rows in part.rows(seed)])


def fold_in(
    layout: Layout,
    fit: Fit,
    history: History,
    ratings: Table,
    tables: tuple[Table | None, Table | None] = (None, None),
    *,
    scale: tuple[float, float] | None = None,
    duplicates: Duplicates = "keep",
    negatives: int = 16,
    seed: int = 0,
) -> Folded:
    """A model that knows new ratings too; see `TuckerRecommender.fold_in`. What is given stays as it is."""
    part = _part(layout, fit, history, ratings, tables, scale, duplicates, negatives, seed)
    rows = iter(part.rows(seed))
    chains = [[part.updated(draw, next(rows)) for draw in chain] for chain in fit.draws.chains]
    more = read_more(history, ratings, scale, duplicates)
    joined = history.joined(more, ratings, duplicates)
    sides = [
        grown(side, joined.ids[d], local.changed, local.changed_features)
        for d, (side, local) in enumerate(zip(layout.sides, part.locals, strict=True))
    ]
    new_layout = replace(layout, sides=(sides[0], sides[1]))
    return Folded(new_layout, replace(fit, draws=replace(fit.draws, chains=chains)), joined)


@dataclass(frozen=True)
class Local:
    """Rows of one side that take part.

    Attributes
    ----------
    features : ndarray or csr_array, shape (m, n)
        Those to be found first.
    column : ndarray, shape (m,)
        Where their residuals stand among those of the fit, -1 for none.
    free : int
        How many are to be found.
    scale : float
        Standard deviation that the kernel gives residuals.
    changed : list
        The ids of those to be found, then others that are new.
    changed_features : ndarray or csr_array, shape (len(changed), n)
    """

    features: Matrix
    column: Ints
    free: int
    scale: float
    changed: list[Any]
    changed_features: Matrix

    def mean(self, U: Floats) -> Floats:
        """What features say of the rows, (m, r)."""
        return np.asarray(self.features @ U[len(U) - self.features.shape[1] :], dtype=np.float64)

    def factors(self, U: Floats, mean: Floats) -> Floats:
        """Factors of the rows in a draw; those never rated have their mean."""
        psi, known = mean.copy(), self.column >= 0
        psi[known] += self.scale * U[self.column[known]]
        return psi

    def with_rows(self, U: Floats, psi: Floats) -> Floats:
        """The weights of a draw with the rows found: their residuals in place or after those there were, above B."""
        width = len(U) - self.features.shape[1]
        E = ((psi - self.mean(U)[: self.free]) / self.scale).astype(U.dtype)
        known = self.column[: self.free] >= 0
        before = U[:width]
        if known.any():
            before = before.copy()
            before[self.column[: self.free][known]] = E[known]
        return np.concatenate([before, E[~known], U[width:]])


class Rows(NamedTuple):
    """Factors found in one draw: of users, (m, r), and of items never rated before."""

    users: Floats
    items: Floats


@dataclass(frozen=True)
class Part:
    """All ratings of the users concerned, as a problem of their own.

    Attributes
    ----------
    fit : Fit
    locals : tuple of Local
        The users concerned; items never rated before, then the others that they rated.
    design : Design
        Rows of users and items by their place above, and of circumstances.
    y : ndarray, shape (n,)
        Standardised ratings, or levels.
    """

    fit: Fit
    locals: tuple[Local, Local]
    design: Design
    y: Floats

    @property
    def model(self) -> TuckerModel:
        """Of the fit."""
        return self.fit.draws.model

    @cached_property
    def problem(self) -> Problem:
        """The users' ratings."""
        return Problem(self.model, self.design, self.y)

    @cached_property
    def of_items(self) -> tuple[Ints, Problem]:
        """The ratings of items never rated before: their places, and the problem of these."""
        places = np.flatnonzero(self.design.index[:, 1] < self.locals[1].free)
        table = self.design.modes[1].take(np.arange(self.locals[1].free))
        modes = (self.design.modes[0], table, *self.design.modes[2:])
        design = Design(modes, np.ascontiguousarray(self.design.index[places]))
        return places, Problem(self.model, design, self.y[places])

    def rows(self, seed: int) -> Iterator[Rows]:
        """The rows to be found, draw by draw, each from a stream of its own."""
        draws = self.fit.draws
        draws.require_kept()
        with few_threads(self.problem):
            for c, chain in enumerate(draws.chains):
                for number, draw in enumerate(chain):
                    yield self.find(draw, stream(seed, c, number) if draws.sampled else None)

    def find(self, draw: Draw, rng: np.random.Generator | None) -> Rows:
        """The rows to be found given one draw of the rest: a draw of them, or their mean without ``rng``."""
        U, W, free = draw.parameters.U, draw.parameters.W, self.locals[1].free
        means = [local.mean(u) for local, u in zip(self.locals, U, strict=False)]
        psi = [local.factors(u, mean) for local, u, mean in zip(self.locals, U, means, strict=False)]
        psi += [np.asarray(mode.table @ u) for mode, u in zip(self.design.modes[2:], U[2:], strict=True)]
        precision, inner = self._precision(draw), [self._inner(draw, d) for d in range(2)]
        ordinal = isinstance(self.fit, OrdinalFit)
        root = np.sqrt(precision.at(self.design.index)) if ordinal else None
        y = self.y
        for _ in range(SCANS if ordinal or free else 1):
            if ordinal and rng is not None:
                f = self.model.contract(psi, W, self.design.index)
                y = draw_latent(f, self.y.astype(np.int64), draw.cuts, rng.random(len(f)), root)
            evidence = Evidence(self.problem.sorted[0], y, precision, self.model.core, 0, psi, W)
            psi[0] = factors_given_weights(evidence, means[0], inner[0], _noise(means[0], rng))
            if free:
                places, problem = self.of_items
                evidence = Evidence(problem.sorted[1], y[places], precision, self.model.core, 1, psi, W)
                psi[1][:free] = factors_given_weights(evidence, means[1][:free], inner[1], _noise(means[1][:free], rng))
        return Rows(psi[0], psi[1][:free])

    def _inner(self, draw: Draw, d: int) -> Floats:
        """Precision of a row around what its features say."""
        if draw.covariance:
            return np.asarray(np.linalg.inv(draw.covariance[d]), dtype=np.float64)
        sd = float(self.model.sigma_u[d]) * self.locals[d].scale
        return np.asarray(np.eye(int(self.model.core.ranks[d])) / sd**2)

    def _precision(self, draw: Draw) -> Precision:
        """Of the noise; rows never rated have the factor 1."""
        if all(factors is None for factors in draw.noise):
            return Precision(draw.alpha)
        groups: list[npt.NDArray[Any]] = [local.column for local in self.locals]
        groups += [mode.groups for mode in self.design.modes[2:]]
        at_rows = [
            np.ones(len(group)) if factors is None else np.append(factors.astype(np.float64), 1.0)[group]
            for factors, group in zip(draw.noise, groups, strict=True)
        ]
        return Precision(draw.alpha, None, at_rows)

    def updated(self, draw: Draw, rows: Rows) -> Draw:
        """The draw with the rows found in it."""
        U, noise = list(draw.parameters.U), list(draw.noise)
        for d, (local, psi) in enumerate(zip(self.locals, rows, strict=True)):
            if local.free:
                U[d] = local.with_rows(U[d], psi)
            new, factors = int((local.column[: local.free] < 0).sum()), noise[d]
            if factors is not None and new:
                noise[d] = np.concatenate([factors, np.ones(new, dtype=factors.dtype)])
        parameters = Parameters(tuple(U), draw.parameters.W, draw.parameters.paths)
        return replace(draw, parameters=parameters, noise=tuple(noise))


def _noise(mean: Floats, rng: np.random.Generator | None) -> Floats | None:
    return None if rng is None else rng.standard_normal(mean.shape)


def _part(
    layout: Layout,
    fit: Fit,
    history: History,
    ratings: Table,
    tables: Sequence[Table | None],
    scale: tuple[float, float] | None,
    duplicates: Duplicates,
    negatives: int,
    seed: int,
) -> Part:
    fit.draws.require_kept()
    more = read_more(history, ratings, scale, duplicates)
    _check_levels(fit, ratings, more)
    users, items = layout.sides
    known = users.numbers(more.ids[0])
    mine = history.take(np.flatnonzero(np.isin(history.codes[0], known[known < users.n_rated])))
    mine = mine.joined(more, ratings, duplicates)
    codes, y, moment = mine.codes, mine.rating, mine.moment
    if history.clicks:
        sample = with_negatives(mine, negatives, stream(seed, 0, 0, 1), required=False)
        codes, y, moment = (sample.user, sample.item), sample.y, mine.moment.take(sample.row)
    fresh = np.arange(items.n_rated, len(mine.ids[1]))
    number = {value: place for place, value in enumerate(mine.ids[0])}
    concerned = np.array([number[value] for value in more.ids[0]], dtype=np.intp)
    rated = np.unique(codes[1])
    local_users = _local(layout, 0, concerned, concerned[:0], tables[0], mine)
    local_items = _local(layout, 1, fresh, rated[rated < items.n_rated], tables[1], mine)
    index = [
        _places(concerned, len(mine.ids[0]))[codes[0]],
        _places(np.concatenate([fresh, rated[rated < items.n_rated]]), len(mine.ids[1]))[codes[1]],
    ]
    modes = [ModeTable(local_users.features), ModeTable(local_items.features)]
    for circumstance in layout.circumstances:
        table, code = circumstance.realise(codes[0], moment)
        modes.append(table)
        index.append(code)
    design = Design(tuple(modes), np.ascontiguousarray(np.stack(index, axis=1), dtype=np.int32))
    return Part(fit, (local_users, local_items), design, _targets(fit, y))


def _local(layout: Layout, d: int, free: Ints, others: Ints, table: Table | None, history: History) -> Local:
    """Rows to be found, and others as they are."""
    side, ids = layout.sides[d], history.ids[d]
    has_ratings = set(ids)
    changed = [ids[number] for number in free]
    if table is not None:
        changed += [v for v in table[side.key].tolist() if v not in side.number and v not in has_ratings]
    sets = [*sets_of(history, d, free), *[()] * (len(changed) - len(free))]
    new = features_of(side, changed, table, sets) if changed else side.table.features[:0]
    both = vstack([new[: len(free)], side.table.features[others]])
    column = np.full(len(free) + len(others), -1, dtype=np.intp)
    known = free < side.n_rated
    column[: len(free)][known] = side.table.groups[free[known]]
    column[len(free) :] = side.table.groups[others]
    return Local(both, column, len(free), side.mode.residual_scale, changed, new)


def _places(numbers: Ints, size: int) -> Ints:
    """Where each of the numbers below ``size`` stands."""
    place = np.full(size, -1, dtype=np.intp)
    place[numbers] = np.arange(len(numbers))
    return place


def _targets(fit: Fit, y: Floats) -> Floats:
    """Standardised ratings, or levels."""
    if not isinstance(fit, OrdinalFit):
        return np.asarray((y - fit.mean) / fit.scale)
    if not np.isin(y, fit.levels).all():
        raise InputError("Means of ratings are no levels of an ordinal model; use duplicates='keep' or 'refuse'.")
    return np.searchsorted(fit.levels, y).astype(np.float64)


def _check_levels(fit: Fit, table: Table, ratings: History) -> None:
    """Refuse ratings that an ordinal model has no level for."""
    if not isinstance(fit, OrdinalFit) or ratings.clicks:
        return
    strange = ~np.isin(table.numeric(RATING), fit.levels)
    if strange.any():
        row, levels = int(np.argmax(strange)), ", ".join(f"{level:g}" for level in fit.levels)
        raise InputError(
            f"{table.name} column {RATING!r} holds {table.numeric(RATING)[row]:g} at {table.row_label(row)}, which is "
            f"none of the levels that were learned: {levels}; correct it, or fit again."
        )
