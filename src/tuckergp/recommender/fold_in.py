"""New ratings without a new fit: in each draw, the users concerned are drawn again given all else.

Given items, circumstances and hyperparameters, the ratings of a user are a small regression with a closed form, the
same as in `tuckergp.inference.gibbs`, for few rows: `tuckergp.recommender.folding`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.data.columns import row_keys
from tuckergp.data.history import RATING, History
from tuckergp.data.pairs import Duplicates
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.features.base import vstack
from tuckergp.likelihoods.all_pairs import AllPairs
from tuckergp.model.design import Design
from tuckergp.posterior.draws import map_draws
from tuckergp.posterior.fitted import Fit
from tuckergp.random import stream
from tuckergp.recommender.clicks import with_negatives
from tuckergp.recommender.entities import Side
from tuckergp.recommender.folding import FoldIn, LocalRows, ZerosBeside
from tuckergp.recommender.growth import read_more, rows_of
from tuckergp.recommender.layout import Layout
from tuckergp.recommender.questions import cells
from tuckergp.recommender.reading import rating_label
from tuckergp.recommender.zeros import Zeros

__all__ = ["Folded", "check_withheld", "fold_in", "ratings_of"]

Ints = npt.NDArray[np.integer]


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
    found = problem.find(seed if fit.draws.sampled else None)
    draws = map_draws(fit.draws, lambda d, mode: problem.locals[d].kept(mode, found[d]) if d < 2 else mode)
    sides = [
        side.grown(local.changed, local.rows(mode))
        for side, local, mode in zip(layout.sides, problem.locals, fit.draws.modes, strict=False)
    ]
    if problem.replaced:
        history = history.without_users(problem.more.ids[0])
    joined = history.appended(problem.more, ratings, "keep" if duplicates == "last" else duplicates)
    return Folded(replace(layout, sides=(sides[0], sides[1])), replace(fit, draws=draws), joined)


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
    check_withheld(history, more.ids[0])
    if not more.clicks:
        fit.likelihood.check_more(ratings.numeric(RATING), rating_label(ratings))
    users, items = layout.sides
    before = ratings_of(history, more.ids[0], users)
    mine = before.joined(more, ratings, duplicates)
    replaced = duplicates == "last" and len(mine) < len(before) + len(more)
    # known items are numbered by their rows, new ones come after
    rows = items.numbers(mine.ids[1])
    seen = items.table.seen[rows]
    number = np.where(seen, rows, items.table.n_rows + np.cumsum(~seen) - 1)
    fresh = [value for value, known in zip(mine.ids[1], seen.tolist(), strict=True) if not known]
    codes, y, occasion = (mine.codes[0], number[mine.codes[1]]), mine.rating, mine.occasion
    if history.clicks and not fit.likelihood.all_pairs:
        shown = History((mine.ids[0], range(items.table.n_rows + len(fresh))), codes, y, occasion, True)  # type: ignore[arg-type]
        forbidden = np.flatnonzero(~items.table.seen | ~items.current)
        sample = with_negatives(shown, negatives, stream(seed, 0, 0, 1), required=False, never=forbidden)
        codes, y, occasion = (sample.user, sample.item), sample.y, mine.occasion.take(sample.row)
    rated = np.unique(codes[1])
    rated = rated[rated < items.table.n_rows]
    sets = _sets(mine, (users, items))
    local_users = _local(users, mine.ids[0], np.zeros(0, dtype=np.intp), tables[0], sets[0])
    local_items = _local(items, fresh, rated, tables[1], [sets[1][k] for k in np.flatnonzero(~seen)])
    is_new = codes[1] >= items.table.n_rows
    place = np.where(is_new, codes[1] - items.table.n_rows, len(fresh) + np.searchsorted(rated, codes[1]))
    index: list[Ints] = [codes[0], place]
    modes = [local_users.table, local_items.table]
    known = users.rows_at_fit(users.numbers(mine.ids[0]))
    for circumstance in layout.circumstances:
        table, code = circumstance.realise(known[codes[0]], occasion)
        modes.append(table)
        index.append(code)
    design = Design(tuple(modes), np.ascontiguousarray(np.stack(index, axis=1), dtype=np.int32))
    zeros = None
    if isinstance(fit.likelihood, AllPairs):
        of_model = Zeros.of(fit.likelihood, fit.draws, history)
        choices = np.bincount(codes[0], minlength=local_users.free).astype(np.float64)
        at = of_model.at(local_items.table.groups[place])
        zeros = ZerosBeside(of_model, at, fit.likelihood.weights_of_users(choices))
    more = mine if replaced else more
    return FoldIn(fit, (local_users, local_items), design, fit.likelihood.targets(y), more, replaced, zeros)


def check_withheld(history: History, users: Sequence[Any]) -> None:
    """Refuse to draw users again whose ratings were left out of the file."""
    if not history.is_withheld:
        return
    known = next((value for value in users if value in history.base.users), None)
    if known is not None:
        raise InputError(
            f"User {known!r} has ratings that were left out of the file (save(ratings=False)), so that more of them "
            f"or attributes cannot be added; give all of them under a new id, or load the file with ratings."
        )


def ratings_of(history: History, ids: Sequence[Any], side: Side) -> History:
    """All earlier ratings of some users, who are numbered in the order of ``ids``."""
    base, at_fit = history.base, np.array([side.base.place(value) for value in ids], dtype=np.intp)
    numbers = [np.where(at_fit < side.n_rated, at_fit, -1)]
    if len(base.ids[0]) > side.n_rated:  # ratings of users who came later are among them
        numbers = [np.array(base.numbers_of(ids))]
    numbers += [np.array(piece.numbers_of(ids)) for piece in history.parts]
    rated = base.without_ratings(list(ids))
    for piece, users in zip((base, *history.parts), numbers, strict=True):
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
    new = rows_of(side, changed, table, sets) if changed else known.take(np.zeros(0, dtype=np.intp))
    both = vstack([new.features[: len(free)], known.features[len(free) :]])
    names = row_keys(Table({side.key: cells(changed)}, side.key, len(changed)))
    keys = np.concatenate([names[: len(free)], known.residual.keys[len(free) :]])
    rows = replace(known, features=both, residual=known.residual.named(keys), new=None)
    return LocalRows(rows, len(free), changed, new, names)
