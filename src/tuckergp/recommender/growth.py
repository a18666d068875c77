"""Users and items added after the fit: their features, and sides with rows for them.

Users and items that had ratings before keep their numbers. The factors of new rows are drawn in
`tuckergp.recommender.fold_in`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuckergp.data.history import RATING, History
from tuckergp.data.ids import Ids
from tuckergp.data.pairs import Duplicates
from tuckergp.data.tables import Table, stacked
from tuckergp.errors import InputError
from tuckergp.features.base import hstack
from tuckergp.features.new import NewFeatures, side_by_side
from tuckergp.linalg import Matrix
from tuckergp.model.mode_table import ModeTable
from tuckergp.posterior.draws import map_draws
from tuckergp.posterior.fitted import Fit
from tuckergp.recommender.attributes import WHO_RATED_WHAT, check_keys, join, rows_by_id
from tuckergp.recommender.entities import Side, as_objects, average_of
from tuckergp.recommender.fitted import FittedRecommender
from tuckergp.recommender.forgetting import new_numbers, renumbered_circumstances, renumbered_sets
from tuckergp.recommender.layout import Layout
from tuckergp.residuals.base import ModeDraws
from tuckergp.residuals.grown import GrownRows

__all__ = ["compacted", "merged_tables", "read_more", "repacked", "rows_of", "with_described_users"]

Ints = npt.NDArray[np.integer]
# Up to so many rows without use are kept.
MOST_UNUSED = 500
T = TypeVar("T")


def read_more(history: History, table: Table, scale: tuple[float, float] | None, duplicates: Duplicates) -> History:
    """Read new ratings, or clicks, in the form of a history; times and contexts may be missing."""
    if history.clicks and RATING in table.columns:
        raise InputError(f"The model learned from clicks, and {table.name} has ratings; leave their column out.")
    occasion = history.base.occasion_columns
    missing = {name: np.full(len(table), None, dtype=object) for name in occasion if name not in table}
    whole = replace(table, columns={**table.columns, **missing})
    return History.read(whole, occasion, history.clicks, scale, duplicates)


def rows_of(side: Side, ids: Sequence[Any], table: Table | None, sets: Sequence[Sequence[int]] | None) -> ModeTable:
    """Some ids with their updated features, also those that training did not have.

    Known ids keep the attributes that the table does not give. Who rated what comes from ``sets``, restricted to those
    users or items that were there at the fit; without them it stays as it was.
    """
    if table is not None:
        check_keys(table, side.key)
    rows = join(table, side.key, ids, side.key if table is None else table.name)
    now = side.realise(rows, sets)
    listed = set() if table is None else set(table[side.key].tolist())
    rows_before = side.numbers(ids)
    is_new = rows_before == side.unknown
    is_listed = np.array([value in listed for value in ids], dtype=bool)
    before = side.table.take(rows_before)
    read = {
        name
        for attribute in side.attributes.used
        if attribute.column in rows.columns
        for name in attribute.encoded_columns
    }
    parts: list[Matrix] = []
    new: list[NewFeatures | None] = []
    for g, block in enumerate(side.mode.blocks):
        columns = set(block.kernel.reads(side.mode.mode.columns))
        anew = is_new | (is_listed & bool(columns <= read)) | (sets is not None and columns == {WHO_RATED_WHAT})
        parts.append(_chosen(anew, now.features[:, block.columns], before.features[:, block.columns]))
        new += [source.new and source.new.only(g, rows) for source, rows in ((now, anew), (before, ~anew))]
    return replace(now, features=hstack(parts), new=side_by_side(new))


def with_described_users(fitted: FittedRecommender, table: Table) -> FittedRecommender:
    """The model with users, new ones or such without ratings, as a table describes them."""
    users, items = fitted.layout.sides
    table = users.to_keep(table)
    ids = table[users.key].tolist()
    return replace(
        fitted,
        layout=replace(fitted.layout, sides=(users.grown(ids, rows_of(users, ids, table, None)), items)),
        tables=(merged_tables(fitted.tables[0], table, users.key), fitted.tables[1]),
        choice=fitted.choice and with_described_users(fitted.choice, table),
    )


def _chosen(first: npt.NDArray[np.bool_], a: Matrix, b: Matrix) -> Matrix:
    """Rows of a where ``first``, else of b."""
    if sparse.issparse(a):
        keep, other = (sparse.diags_array(mask.astype(np.float64)) for mask in (first, ~first))
        return sparse.csr_array(keep @ a + other @ b)
    return np.where(first[:, None], np.asarray(a), np.asarray(b))


def compacted(layout: Layout, fit: Fit, history: History) -> tuple[Layout, Fit, History]:
    """The same model with added rows merged into the others: those with ratings first, in the order of the ratings.

    Copies the draws of users and items, without those who were forgotten; a model to which nothing was added, and of
    which nobody was forgotten, is returned unchanged.
    """
    forgotten = layout.sides[0].forgotten
    if not forgotten and not any(side.more for side in layout.sides):
        return layout, fit, history.flat if history.parts else history
    numbers = new_numbers(layout.sides[0]) if forgotten else {}
    if forgotten:
        layout, fit = renumbered_circumstances(layout, fit)
    history, draws = history.flat, fit.draws
    sides = []
    for d, side in enumerate(layout.sides):
        rated = history.ids[d]
        ids = list(dict.fromkeys([*rated, *side.ids]))
        table = side.table.take(np.append(side.numbers(ids), side.unknown).astype(np.intp))
        fitted_mode = side.mode
        if d == 1 and forgotten:
            fitted_mode, table = renumbered_sets(fitted_mode, table, numbers)
        old, mode, mark = _required(table.residual.groups)[: len(rated)], draws.modes[d], _required(side.mode.residual)
        noise = mode.row_noise
        if noise is not None and table.nested is None:
            noise = noise[old]
        own = replace(mode, rows={name: values[old] for name, values in mode.rows.items()}, row_noise=noise)
        draws = map_draws(draws, lambda e, before, d=d, own=own: own if e == d else before)  # type: ignore[misc]
        keys = np.empty(len(rated), dtype=object)
        keys[:] = rated
        fitted = replace(fitted_mode, residual=mark.of_rows(Table({side.key: keys}, side.key, len(keys))))
        sides.append(
            replace(
                side,
                base=Ids(ids),
                table=table.with_residual(table.residual.renumbered(len(rated))),
                mode=fitted,
                n_rated=len(rated),
                average=average_of(table, len(rated)),
                more={},
                added=[],
                gone=(),
                nobodies=0,
            )
        )
    return replace(layout, sides=(sides[0], sides[1])), replace(fit, draws=draws), history


def repacked(fitted: FittedRecommender) -> FittedRecommender:
    """The same model without added rows whose id has a later one, once these are more than those in use, and not few.

    So memory grows with the ids that are added, not with how often their ratings are.
    """
    sides, draws = list(fitted.layout.sides), fitted.fit.draws
    for d, side in enumerate(sides):
        if len(side.added) - len(side.more) > max(MOST_UNUSED, len(side.more)):
            sides[d], own = _repacked(side, draws.modes[d])
            draws = map_draws(draws, lambda e, mode, d=d, own=own: own if e == d else mode)  # type: ignore[misc]
    return replace(
        fitted,
        layout=replace(fitted.layout, sides=(sides[0], sides[1])),
        fit=replace(fitted.fit, draws=draws),
        choice=fitted.choice and repacked(fitted.choice),
    )


def _repacked(side: Side, mode: ModeDraws) -> tuple[Side, ModeDraws]:
    """A side and its draws with the rows of the fit, then those of ids that were added: learned ones first."""
    ids, rows = list(side.more), np.array(list(side.more.values()), dtype=np.intp)
    learned = side.table.seen[rows]
    order = np.argsort(~learned, kind="stable")
    added, count = side.table.take(rows[order]), int(learned.sum())
    places = _required(added.residual.groups)[:count]
    noise = mode.row_noise if side.table.nested is None else None
    at_fit = replace(
        mode, rows={name: _at_fit(values) for name, values in mode.rows.items()}, row_noise=_at_fit(mode.row_noise)
    )
    residual = added.residual.grown(at_fit, added.residual.keys, count)
    draws = residual.with_rows(at_fit, mode.rows["psi"][places], None if noise is None else noise[places])
    ids, first = [ids[place] for place in order.tolist()], side.unknown + 1
    return replace(
        side,
        table=replace(side.table, more=None).grown(replace(added, residual=residual)),
        more={value: first + number for number, value in enumerate(ids)},
        added=ids,
        gone=tuple(row for row in side.gone if row < first),
    ), draws


def _at_fit(rows: Any) -> Any:
    """The rows that an array had before it was grown."""
    return rows.base if isinstance(rows, GrownRows) else rows


def _required(value: T | None) -> T:
    if value is None:
        raise TypeError("users and items have a row each")
    return value


def merged_tables(first: Table | None, second: Table | None, key: str) -> Table | None:
    """Two attribute tables as one; for an id in both, the second counts, and the first in columns that only it has."""
    if second is None:
        return first
    check_keys(second, key)
    second = replace(second, columns={**second.columns, key: as_objects(second[key])})
    if first is None:
        return second
    lacking = [column for column in first.columns if column not in second.columns]
    if lacking:
        ids = second[key].tolist()
        known = join(first.select([key, *lacking]), key, ids, second.name, rows_by_id(first, key))
        second = replace(second, columns={**second.columns, **{column: known[column] for column in lacking}})
    replaced = set(second[key].tolist())
    kept = np.array([row for row, value in enumerate(first[key].tolist()) if value not in replaced], dtype=np.intp)
    return stacked(first.take(kept), second)
