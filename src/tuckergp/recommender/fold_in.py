"""New ratings without a new fit: in each draw, the users concerned are drawn again given all else.

Given items, circumstances and hyperparameters, the ratings of a user are a small regression with a closed form, the
same as in `tuckergp.inference.gibbs`, for few rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.compute.rows import row_in_draws
from tuckergp.data.history import RATING, Duplicates, History
from tuckergp.data.tables import Table
from tuckergp.features.base import vstack
from tuckergp.likelihoods.base import Predicted
from tuckergp.linalg import Matrix
from tuckergp.model.design import Design
from tuckergp.model.mode_table import ModeTable
from tuckergp.posterior.draws import map_draws
from tuckergp.posterior.fitted import Fit
from tuckergp.random import normals, stream
from tuckergp.recommender.clicks import with_negatives
from tuckergp.recommender.entities import Side
from tuckergp.recommender.growth import features_of, read_more
from tuckergp.recommender.layout import Layout
from tuckergp.recommender.reading import rating_label
from tuckergp.residuals.base import ModeDraws
from tuckergp.residuals.grown import grown
from tuckergp.residuals.rows import Rows

__all__ = ["SCANS", "Folded", "fold_in"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.integer]

SCANS = 20
"""The number of Gibbs scans over the rows and what else is unknown: latent utilities, items without ratings so far.

Without either, one draw is exact. Otherwise the last scan is exact in the limit of many scans.
"""


class Folded(NamedTuple):
    """The parts of a recommender after new ratings were folded in."""

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
    """Fold new ratings into a model, which is not changed itself; see `TuckerRecommender.fold_in`."""
    problem = _problem(layout, fit, history, ratings, tables, scale, duplicates, negatives, seed)
    factors = problem.find(stream(seed, 0) if fit.draws.sampled else None)
    draws = map_draws(fit.draws, lambda d, mode: problem.locals[d].kept(mode, factors[d]) if d < 2 else mode)
    sides = [
        side.grown(local.changed, local.rows(len(fit.draws.modes[d].rows["psi"])))
        for d, (side, local) in enumerate(zip(layout.sides, problem.locals, strict=True))
    ]
    joined = history.appended(problem.more, ratings, duplicates)
    return Folded(replace(layout, sides=(sides[0], sides[1])), replace(fit, draws=draws), joined)


@dataclass(frozen=True)
class LocalRows:
    """The users, or items, of the ratings of a fold-in; the first ``free`` of them are drawn, the others are given.

    Attributes
    ----------
    features : ndarray or csr_array, shape (m, n)
        Features of the rows, those to be drawn first.
    place : ndarray of int32, shape (m,)
        The places of their factors among those of the fit, -1 for none.
    free : int
        How many rows are to be drawn.
    scale : float
        Standard deviation that the kernel gives residuals.
    changed : list
        The ids of the rows to be drawn, then other new ids.
    changed_features : ndarray or csr_array, shape (len(changed), n)
    """

    features: Matrix
    place: npt.NDArray[np.int32]
    free: int
    scale: float
    changed: list[Any]
    changed_features: Matrix

    def table(self, n_train: int) -> ModeTable:
        """The rows as the table of a mode with ``n_train`` training rows."""
        return ModeTable(self.features, Rows(self.place, n_train, self.scale))

    def rows(self, n_train: int) -> ModeTable:
        """The new rows of the changed ids; those that were drawn are training rows now."""
        place = np.full(len(self.changed), -1, dtype=np.int32)
        place[: self.free] = n_train + np.arange(self.free)
        return ModeTable(self.changed_features, Rows(place, n_train + self.free, self.scale))

    def kept(self, mode: ModeDraws, psi: Floats) -> ModeDraws:
        """The draws of the mode, with the new factors (m, S, r) appended."""
        if not self.free:
            return mode
        noise = mode.row_noise
        if noise is not None:
            place = self.place[: self.free]
            own = np.ones((self.free, noise.shape[1]), dtype=np.float32)
            own[place >= 0] = noise[place[place >= 0]]
            noise = grown(noise, own)
        return replace(
            mode, rows={**mode.rows, "psi": grown(mode.rows["psi"], psi.astype(np.float32))}, row_noise=noise
        )


class NewFactors(NamedTuple):
    """New factors in all draws: of users, (m, S, r), and of items without ratings so far."""

    users: Floats
    items: Floats


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
        The new ratings.
    """

    fit: Fit
    locals: tuple[LocalRows, LocalRows]
    design: Design
    y: Floats
    more: History

    def find(self, rng: np.random.Generator | None) -> NewFactors:
        """Draw the new factors given the rest of each draw; their means without ``rng``."""
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
                drawn = _rows_given_rest(z, y[:, rows].T - alone, w[:, rows].T, owner, means[d], draws.modes[d], rng)
                psi[d][: len(drawn)] = drawn
        return NewFactors(psi[0][: self.locals[0].free], psi[1][:free])


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
        Prior mean, from the features.
    mode : ModeDraws
        Has the prior covariance.
    """
    out = np.empty_like(mean)
    noise = np.zeros_like(mean) if rng is None else normals(mean.shape, rng)
    order = np.argsort(owner, kind="stable")
    ends = np.searchsorted(owner[order], np.arange(len(mean) + 1))
    z, y, w = (np.ascontiguousarray(values, dtype=np.float64) for values in (z, y, w))
    for m, (first, last) in enumerate(pairwise(ends)):
        if not row_in_draws(z, y, w, order[first:last], mean[m], mode.precision, noise[m], out[m]):
            raise FloatingPointError("the precision of a row is not positive definite")
    return out


def _problem(
    layout: Layout,
    fit: Fit,
    history: History,
    ratings: Table,
    tables: Sequence[Table | None],
    scale: tuple[float, float] | None,
    duplicates: Duplicates,
    negatives: int,
    seed: int,
) -> FoldIn:
    fit.draws.require_kept()
    more = read_more(history, ratings, scale, duplicates)
    if not more.clicks:
        fit.likelihood.check_more(ratings.numeric(RATING), rating_label(ratings))
    users, items = layout.sides
    mine = _ratings_of(history, more.ids[0], users).joined(more, ratings, duplicates)
    # known items are numbered by their rows, new ones come after
    rows = items.numbers(mine.ids[1])
    seen = items.table.seen[rows]
    number = np.where(seen, rows, items.table.n_rows + np.cumsum(~seen) - 1)
    fresh = [value for value, known in zip(mine.ids[1], seen.tolist(), strict=True) if not known]
    codes, y, occasion = (mine.codes[0], number[mine.codes[1]]), mine.rating, mine.occasion
    if history.clicks:
        shown = History((mine.ids[0], range(items.table.n_rows + len(fresh))), codes, y, occasion, True)  # type: ignore[arg-type]
        forbidden = np.flatnonzero(~items.table.seen | ~items.current)
        sample = with_negatives(shown, negatives, stream(seed, 0, 0, 1), required=False, never=forbidden)
        codes, y, occasion = (sample.user, sample.item), sample.y, mine.occasion.take(sample.row)
    rated = np.unique(codes[1])
    rated = rated[rated < items.table.n_rows]
    sets = _sets(mine, (users, items))
    local_users = _local(users, mine.ids[0], np.zeros(0, dtype=np.intp), tables[0], sets[0])
    local_items = _local(items, fresh, rated, tables[1], [sets[1][k] for k in np.flatnonzero(~seen)])
    place = np.full(items.table.n_rows + len(fresh), -1, dtype=np.intp)
    place[items.table.n_rows :] = np.arange(len(fresh))
    place[rated] = len(fresh) + np.arange(len(rated))
    index: list[Ints] = [codes[0], place[codes[1]]]
    modes = [local.table(len(fit.draws.modes[d].rows["psi"])) for d, local in enumerate((local_users, local_items))]
    known = users.rows_at_fit(users.numbers(mine.ids[0]))
    for circumstance in layout.circumstances:
        table, code = circumstance.realise(known[codes[0]], occasion)
        modes.append(table)
        index.append(code)
    design = Design(tuple(modes), np.ascontiguousarray(np.stack(index, axis=1), dtype=np.int32))
    return FoldIn(fit, (local_users, local_items), design, fit.likelihood.targets(y), more)


def _ratings_of(history: History, ids: Sequence[Any], side: Side) -> History:
    """All earlier ratings of some users, who are numbered in the order of ``ids``."""
    at_fit = np.array([side.base.place(value) for value in ids], dtype=np.intp)
    numbers = [np.where(at_fit < side.n_rated, at_fit, -1)]
    numbers += [np.array([piece.users.get(value, -1) for value in ids]) for piece in history.parts]
    rated = replace(history.base.of_users(np.full(1, -1)), ids=(list(ids), []))
    for piece, users in zip((history.base, *history.parts), numbers, strict=True):
        if (users >= 0).any():
            rated = rated.joined(piece.of_users(users), Table({}, "ratings", len(piece)))
    return rated


def _sets(mine: History, sides: tuple[Side, Side]) -> tuple[list[list[int]], list[list[int]]]:
    """Who rated what: for each user the items, and for each item the users, by their numbers at the fit."""
    by_side: list[list[list[int]]] = []
    for d in range(2):
        other = sides[1 - d]
        place = [other.base.place(value) for value in mine.ids[1 - d]]
        sets: list[list[int]] = [[] for _ in mine.ids[d]]
        for own, theirs in zip(mine.codes[d].tolist(), mine.codes[1 - d].tolist(), strict=True):
            if 0 <= place[theirs] < other.n_rated:
                sets[own].append(place[theirs])
        by_side.append(sets)
    return by_side[0], by_side[1]


def _local(
    side: Side, free: Sequence[Any], others: Ints, table: Table | None, sets: Sequence[Sequence[int]]
) -> LocalRows:
    """The rows of one side: those of the ``free`` ids, to be drawn, then those of others, which are given."""
    changed, wanted = list(free), set(free)
    if table is not None:
        changed += [v for v in table[side.key].tolist() if v not in side.number and v not in wanted]
    sets = [*sets, *[()] * (len(changed) - len(free))]
    known = side.table.take(np.concatenate([side.numbers(list(free)), others]).astype(np.intp))
    new = features_of(side, changed, table, sets) if changed else known.features[:0]
    both = vstack([new[: len(free)], known.features[len(free) :]])
    return LocalRows(both, known.groups, len(free), side.mode.residual_sd, changed, new)
