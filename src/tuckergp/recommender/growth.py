"""More users and items than at the time of the fit: their features, and sides with rows for them.

Whoever had ratings before keeps their number. How the factors of new rows are found is in
`tuckergp.recommender.fold_in`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuckergp.data.history import RATING, Duplicates, History
from tuckergp.data.tables import Table, stacked
from tuckergp.errors import InputError
from tuckergp.features import Rows
from tuckergp.features.base import hstack, vstack
from tuckergp.linalg import Matrix
from tuckergp.recommender.attributes import WHO_RATED_WHAT, check_keys, join
from tuckergp.recommender.entities import Side, as_objects
from tuckergp.residuals import rows as residuals

__all__ = ["features_of", "grown", "merged_tables", "read_more", "sets_of"]

Ints = npt.NDArray[np.integer]


def read_more(history: History, table: Table, scale: tuple[float, float] | None, duplicates: Duplicates) -> History:
    """Read new ratings, or clicks, like those of a history; the moment may be missing."""
    if history.clicks and RATING in table.columns:
        raise InputError(f"The model learned from clicks, and {table.name} has ratings; leave their column out.")
    missing = {name: np.full(len(table), None, dtype=object) for name in history.moment.columns if name not in table}
    whole = replace(table, columns={**table.columns, **missing})
    return History.read(whole, list(history.moment.columns), history.clicks, scale, duplicates)


def features_of(side: Side, ids: Sequence[Any], table: Table | None, sets: Sequence[Sequence[int]]) -> Matrix:
    """Features of ids with what is known of them now, shape (n, n_features).

    A known id keeps what the attribute table does not say anew. Who rated what is that of ``sets``, as far as the
    other side was there at the time of the fit.
    """
    if table is not None:
        check_keys(table, side.key)
    rows = join(table, side.key, ids, side.key)
    now = side.realise(rows, sets)
    listed = set() if table is None else set(table[side.key].tolist())
    is_new = side.numbers(ids) == len(side.number)
    is_listed = np.array([value in listed for value in ids], dtype=bool)
    before: Matrix = side.table.features[side.numbers(ids)]
    read = {
        name
        for attribute in side.attributes.used
        if attribute.column in rows.columns
        for name in (attribute.column, attribute.level_column, attribute.missing_column)
    }
    parts: list[Matrix] = []
    for block in side.mode.blocks:
        columns = set(block.kernel.reads(side.mode.mode.columns))
        anew = is_new | (is_listed & bool(columns <= read)) | (columns == {WHO_RATED_WHAT})
        parts.append(_chosen(anew, now.features[:, block.columns], before[:, block.columns]))
    return hstack(parts)


def sets_of(history: History, d: int, numbers: Ints) -> list[Sequence[int]]:
    """For some users (d = 0) or items (d = 1), by their numbers, those of the other side that they were rated with."""
    order = np.argsort(history.codes[d], kind="stable")
    codes, other = history.codes[d][order], history.codes[1 - d][order]
    ends = [np.searchsorted(codes, numbers, side) for side in ("left", "right")]
    return [other[first:last].tolist() for first, last in zip(*ends, strict=True)]


def _chosen(first: npt.NDArray[np.bool_], a: Matrix, b: Matrix) -> Matrix:
    """Rows of a where ``first``, else of b."""
    if sparse.issparse(a):
        keep, other = (sparse.diags_array(mask.astype(np.float64)) for mask in (first, ~first))
        return sparse.csr_array(keep @ a + other @ b)
    return np.where(first[:, None], np.asarray(a), np.asarray(b))


def grown(side: Side, rated: Sequence[Any], changed: Sequence[Any], features: Matrix) -> Side:
    """The side with a row and a residual for all that have ratings now.

    Parameters
    ----------
    side : Side
    rated : sequence
        All ids with ratings, those that had some before first.
    changed : sequence
        Ids that have new features; those that are not known are added.
    features : ndarray or csr_array, shape (len(changed), n_features)
    """
    place = {value: len(side.number) + 1 + row for row, value in enumerate(changed)}
    has_ratings = set(rated)
    rest = [value for value in dict.fromkeys([*side.number, *changed]) if value not in has_ratings]
    ids = [*rated, *rest]
    source = np.array([place.get(value, side.number.get(value, -1)) for value in ids] + [len(side.number)])
    before, mark = side.table, side.mode.residual
    if not isinstance(mark, Rows):
        raise TypeError("users and items have a row each")
    fresh = rated[side.n_rated :]
    width = before.residual.n_groups
    column = np.full(len(ids) + 1, -1, dtype=np.int32)
    column[: side.n_rated] = before.groups[: side.n_rated]
    column[side.n_rated : len(rated)] = width + np.arange(len(fresh))
    keys = np.empty(len(fresh), dtype=object)
    keys[:] = fresh
    residual = residuals.Rows(column, width + len(fresh), side.mode.residual_scale)
    table = replace(before, features=vstack([before.features, features])[source], residual=residual)
    mode = replace(side.mode, residual=mark.with_rows(Table({side.key: keys}, side.key, len(keys))))
    number = {value: row for row, value in enumerate(ids)}
    return replace(side, number=number, table=table, mode=mode, n_rated=len(rated))


def merged_tables(first: Table | None, second: Table | None, key: str) -> Table | None:
    """Two attribute tables as one; of an id that is in both the second's row counts."""
    if second is None:
        return first
    check_keys(second, key)
    second = replace(second, columns={**second.columns, key: as_objects(second[key])})
    if first is None:
        return second
    replaced = set(second[key].tolist())
    kept = np.array([row for row, value in enumerate(first[key].tolist()) if value not in replaced], dtype=np.intp)
    return stacked(first.take(kept), second)
