"""People who are forgotten: no id, rating, attribute or vector of theirs is found any more, and files hold none.

Forgetting is quick: ids and ratings are hidden, and nothing is copied. Saving and further learning copy the model
without the hidden rows (`tuckergp.recommender.growth.compacted`); the numbers of later users then change, and with them
the rows of drift, which are named by users, and the sets of who rated what, in which a forgotten user leaves an empty
place. Files without any ratings are made here too.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from tuckergp.data.history import Nobody
from tuckergp.data.tables import Table
from tuckergp.features.base import hstack
from tuckergp.linalg import Matrix
from tuckergp.model.fitted_mode import FittedMode
from tuckergp.model.mode_table import ModeTable
from tuckergp.posterior.draws import map_draws
from tuckergp.posterior.fitted import Fit
from tuckergp.recommender.circumstances import Drift
from tuckergp.recommender.entities import Side
from tuckergp.recommender.fitted import FittedRecommender
from tuckergp.recommender.layout import Layout

__all__ = ["new_numbers", "renumbered_circumstances", "renumbered_sets", "without_ratings", "without_user"]


def without_user(fitted: FittedRecommender, user: Any) -> FittedRecommender:
    """The recommender without a known user, as `TuckerRecommender.forget` describes."""
    users, items = fitted.layout.sides
    return replace(
        fitted,
        layout=replace(fitted.layout, sides=(users.without(user) if user in users.number else users, items)),
        history=fitted.history.without_users([user]),
        tables=(_without_row(fitted.tables[0], users.key, user), fitted.tables[1]),
        fit=_without_targets(fitted.fit),
        moments=None,
        choice=fitted.choice and without_user(fitted.choice, user),
    )


def _without_row(table: Table | None, key: str, value: Any) -> Table | None:
    if table is None:
        return None
    return table.take(np.array([row for row, known in enumerate(table[key].tolist()) if known != value], dtype=np.intp))


def without_ratings(fitted: FittedRecommender) -> FittedRecommender:
    """A compacted recommender without ratings, as `TuckerRecommender.save` describes, and without sets."""
    sides = tuple(_without_sets(side) for side in fitted.layout.sides)
    return replace(
        fitted,
        layout=replace(fitted.layout, sides=(sides[0], sides[1])),
        fit=_without_targets(fitted.fit),
        history=fitted.history.withheld(),
        choice=fitted.choice and without_ratings(fitted.choice),
    )


def _without_targets(fit: Fit) -> Fit:
    """The fit without the ratings that were watched."""
    return replace(fit, draws=replace(fit.draws, targets=()))


def _without_sets(side: Side) -> Side:
    """A side whose rows do not tell who rated what; the vectors that were learned from it stay."""
    if side.mode.set_block is None:
        return side
    block = side.mode.blocks[side.mode.set_block].columns
    everyone = list(range(block.stop - block.start))
    return replace(side, table=replace(side.table, features=_emptied(side.table.features, block, everyone)))


def new_numbers(side: Side) -> dict[int, int]:
    """The number that each user of the fit has once those who were forgotten are gone."""
    kept = (place for place, value in enumerate(side.base) if not isinstance(value, Nobody))
    return {place: number for number, place in enumerate(kept)}


def renumbered_circumstances(layout: Layout, fit: Fit) -> tuple[Layout, Fit]:
    """Layout and draws whose rows of drift are those of the users that are left."""
    numbers, circumstances, draws = new_numbers(layout.sides[0]), [], fit.draws
    for d, circumstance in enumerate(layout.circumstances, start=2):
        mark: Any = circumstance.mode.residual
        if isinstance(circumstance.reader, Drift):
            rows = mark.onehot_.rows_.take(mark.column_)
            users = rows["user"].tolist()
            kept = np.array([row for row, user in enumerate(users) if user in numbers or user < 0], dtype=np.intp)
            now = np.array([numbers.get(users[row], users[row]) for row in kept.tolist()], dtype=np.int64)
            table = replace(rows.take(kept), columns={**rows.take(kept).columns, "user": now})
            circumstance = replace(circumstance, mode=replace(circumstance.mode, residual=mark.of_rows(table)))
            own = replace(draws.modes[d], rows={name: v[kept] for name, v in draws.modes[d].rows.items()})
            draws = map_draws(draws, lambda e, mode, d=d, own=own: own if e == d else mode)  # type: ignore[misc]
        circumstances.append(circumstance)
    return replace(layout, circumstances=tuple(circumstances)), replace(fit, draws=draws)


def renumbered_sets(mode: FittedMode, table: ModeTable, numbers: Mapping[int, int]) -> tuple[FittedMode, ModeTable]:
    """Items whose sets of users have the new numbers, and no trace of those who were forgotten."""
    if mode.set_block is None:
        return mode, table
    block = mode.blocks[mode.set_block]
    scaled: Any = copy(block.map)
    exact = copy(scaled.base_)
    (encoder,) = exact.encoders_
    levels = {int(numbers.get(int(user), -1 - column)): column for user, column in encoder.levels.items()}
    exact.encoders_ = [replace(encoder, levels=levels)]
    exact.feature_names_ = exact.encoders_[0].feature_names
    scaled.base_, scaled.feature_names_ = exact, exact.feature_names_
    blocks = tuple(replace(block, map=scaled) if each is block else each for each in mode.blocks)
    gone = [column for user, column in levels.items() if user < 0]
    return replace(mode, blocks=blocks), replace(table, features=_emptied(table.features, block.columns, gone))


def _emptied(features: Matrix, block: slice, columns: list[int]) -> Matrix:
    """The features with zeros in some columns of a block."""
    kept = np.ones(block.stop - block.start)
    kept[columns] = 0.0
    emptied = sparse.csr_array(features[:, block] @ sparse.diags_array(kept))
    emptied.eliminate_zeros()
    return hstack([features[:, : block.start], emptied, features[:, block.stop :]])
