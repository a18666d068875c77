"""New ratings without a new fit: the rows concerned from their exact conditional, draw by draw, all else as it was.

Given items, circumstances and hyperparameters, the ratings of a user are a small regression with a closed form. The
same solves as in `tuckergp.inference.gibbs`, for few rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.data.history import RATING, Duplicates, History
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.features.base import vstack
from tuckergp.likelihoods.base import Predicted
from tuckergp.linalg import Matrix
from tuckergp.model.design import Design
from tuckergp.model.mode_table import ModeTable
from tuckergp.posterior.draws import map_draws
from tuckergp.posterior.fitted import Fit
from tuckergp.random import stream
from tuckergp.recommender.clicks import with_negatives
from tuckergp.recommender.growth import features_of, grown, read_more, sets_of
from tuckergp.recommender.layout import Layout
from tuckergp.residuals.base import ModeDraws
from tuckergp.residuals.rows import Rows

__all__ = ["SCANS", "Folded", "fold_in"]

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
    found = part.find(stream(seed, 0) if fit.draws.sampled else None)
    draws = map_draws(fit.draws, lambda d, mode: part.locals[d].grown(mode, found[d]) if d < 2 else mode)
    more = read_more(history, ratings, scale, duplicates)
    joined = history.joined(more, ratings, duplicates)
    sides = [
        grown(side, joined.ids[d], local.changed, local.changed_features)
        for d, (side, local) in enumerate(zip(layout.sides, part.locals, strict=True))
    ]
    return Folded(replace(layout, sides=(sides[0], sides[1])), replace(fit, draws=draws), joined)


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

    def table(self, n_train: int) -> ModeTable:
        """The rows as those of a mode with so many training rows."""
        return ModeTable(self.features, Rows(self.column.astype(np.int32), n_train, self.scale))

    def grown(self, mode: ModeDraws, psi: Floats) -> ModeDraws:
        """The draws with the factors (m, S, r) of the rows found in place or after those there were."""
        if not self.free:
            return mode
        column = self.column[: self.free]
        known = column >= 0
        kept = np.concatenate([mode.rows["psi"], psi[~known].astype(np.float32)])
        kept[column[known]] = psi[known]
        noise = mode.noise
        if noise is not None:
            noise = np.concatenate([noise, np.ones((int((~known).sum()), noise.shape[1]), dtype=np.float32)])
        return replace(mode, rows={**mode.rows, "psi": kept}, noise=noise)


class Found(NamedTuple):
    """Factors in all draws: of users, (m, S, r), and of items never rated before."""

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
        Targets, as the likelihood takes them.
    """

    fit: Fit
    locals: tuple[Local, Local]
    design: Design
    y: Floats

    def find(self, rng: np.random.Generator | None) -> Found:
        """The rows to be found given the rest of each draw: a draw of them, or their means without ``rng``."""
        draws, likelihood, index = self.fit.draws, self.fit.likelihood, self.design.index
        core, W = draws.model.core, draws.W
        means = [draws.modes[d].mean(local.features[: local.free]) for d, local in enumerate(self.locals)]
        psi = [draws.factors(d, table) for d, table in enumerate(self.design.modes)]
        free = self.locals[1].free
        factors = draws.noise_factors(self.design)
        new_items = np.flatnonzero(index[:, 1] < free)
        for _ in range(SCANS if likelihood.augmented or free else 1):
            f = draws.model.contract_draws(psi, W, index) if likelihood.augmented else np.zeros((len(W), len(self.y)))
            y, w = likelihood.working(Predicted(f, draws.unknowns, factors), self.y, rng)
            for d, rows in ((0, np.arange(len(index))), (1, new_items)):
                if not len(rows):
                    continue
                at = [None if e == d else table[index[rows, e]] for e, table in enumerate(psi)]
                z, alone = core.others_in_draws(W, at, d)
                owner = index[rows, d]
                found = _rows_given_rest(z, y[:, rows].T - alone, w[:, rows].T, owner, means[d], draws.modes[d], rng)
                psi[d][: len(found)] = found
        return Found(psi[0][: self.locals[0].free], psi[1][:free])


def _rows_given_rest(
    z: Floats, y: Floats, w: Floats, owner: Ints, mean: Floats, mode: ModeDraws, rng: np.random.Generator | None
) -> Floats:
    """Mean of p(psi_m | its observations), or with ``rng`` a draw, for each row m in each draw, (M, S, r).

    Parameters
    ----------
    z : ndarray, shape (n, S, r)
        What multiplies psi in each observation.
    y, w : ndarray, shapes (n, S)
        Targets and precisions.
    owner : ndarray of int, shape (n,)
        The row of each observation.
    mean : ndarray, shape (M, S, r)
        What the features say.
    mode : ModeDraws
        Has the covariance around that.
    """
    inner = np.linalg.inv(mode.covariance)
    out = np.empty_like(mean)
    noise = np.zeros_like(mean) if rng is None else rng.standard_normal(mean.shape)
    order = np.argsort(owner, kind="stable")
    ends = np.searchsorted(owner[order], np.arange(len(mean) + 1))
    for m, (first, last) in enumerate(pairwise(ends)):
        mine = order[first:last]
        Z = z[mine].transpose(1, 0, 2)  # (S, n_m, r)
        weighted = Z * w[mine].T[:, :, None]
        # the conditional of row m: precision P + sum w z z', its mean (P + sum w z z')^-1 (P mean + sum w z y)
        root = np.linalg.cholesky(inner + weighted.transpose(0, 2, 1) @ Z)
        pull = np.einsum("skl,sl->sk", inner, mean[m]) + np.einsum("snk,sn->sk", weighted, y[mine].T)
        half = np.linalg.solve(root, pull[:, :, None]) + noise[m][:, :, None]
        out[m] = np.linalg.solve(root.transpose(0, 2, 1), half)[:, :, 0]
    return out


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
    modes = [local.table(len(fit.draws.modes[d].rows["psi"])) for d, local in enumerate((local_users, local_items))]
    for circumstance in layout.circumstances:
        table, code = circumstance.realise(codes[0], moment)
        modes.append(table)
        index.append(code)
    design = Design(tuple(modes), np.ascontiguousarray(np.stack(index, axis=1), dtype=np.int32))
    return Part(fit, (local_users, local_items), design, fit.likelihood.targets(y))


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


def _check_levels(fit: Fit, table: Table, ratings: History) -> None:
    """Refuse ratings that an ordinal model has no level for."""
    levels = getattr(fit.likelihood, "levels", None)
    if levels is None or ratings.clicks:
        return
    strange = ~np.isin(table.numeric(RATING), levels)
    if strange.any():
        row, known = int(np.argmax(strange)), ", ".join(f"{level:g}" for level in levels)
        raise InputError(
            f"{table.name} column {RATING!r} holds {table.numeric(RATING)[row]:g} at {table.row_label(row)}, which is "
            f"none of the levels that were learned: {known}; correct it, or fit again."
        )
