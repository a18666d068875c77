"""Consistency checks of a recommender read from a file; see `tuckergp.store.checks`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tuckergp.data.history import SortedHistory
from tuckergp.model.mode_table import ModeTable
from tuckergp.recommender.circumstances import Circumstance
from tuckergp.recommender.entities import Side
from tuckergp.recommender.fitted import FittedRecommender
from tuckergp.recommender.layout import Layout
from tuckergp.store.checks import check_fit, check_modes, check_new, inside, require
from tuckergp.store.schema import declared
from tuckergp.store.stored_rows import StoredRows
from tuckergp.store.typed import check_fields

__all__ = ["check_parts"]


def check_parts(fitted: FittedRecommender) -> None:
    """Raise a ValueError for a recommender whose parts do not fit together."""
    check_fields(replace(fitted, rating_range=(0.0, 0.0)), declared(FittedRecommender))
    layout, fit, history = fitted.layout, fitted.fit, fitted.history
    low, high = map(float, fitted.rating_range)  # counts have no largest
    require(low <= high, "its range of ratings is empty")
    if isinstance(history, SortedHistory) and isinstance(history.value, StoredRows):
        history.value.limit(*((0.0, np.inf) if history.clicks else (low, high)))  # of clicks, how often each was made
    check_modes(layout.modes)
    check_fit(fit, layout.modes)
    for d, side in enumerate(layout.sides):
        _check_side(side, len(fit.draws.modes[d].rows["psi"]) if len(fit.draws) else None)
    for circumstance in layout.circumstances:
        require(isinstance(circumstance, Circumstance), "its circumstances are of another class")
        require(circumstance.average.shape == (_width(circumstance),), "its averages are of other features")
    _check_history(history.sorted(), layout)


def _check_history(history: SortedHistory, layout: Layout) -> None:
    """Check the ratings; numbers of items and places in files are checked when they are first read."""
    for side, ids in zip(layout.sides, history.ids, strict=True):
        _check_ids(ids)
        require(len(ids) == side.n_rated, "it has ratings of other users or items than it knows")
    starts, count = history.starts, len(history)
    require(starts.shape == (len(history.ids[0]) + 1,) and inside(starts, count + 1), "its ratings are not in order")
    require(starts[0] == 0 and starts[-1] == count and (np.diff(starts) >= 0).all(), "its ratings are not in order")
    for values, below in ((history.item, len(history.ids[1])), (history.place, count)):
        bounded = inside(values, below) if isinstance(values, np.ndarray) else values.below == below
        require(bounded and values.dtype.kind == "i", "its ratings are of users or items that it does not have")
    if history.counts is not None:
        shaped = isinstance(history.counts, np.ndarray) and history.counts.shape == (len(history.ids[1]),)
        require(shaped and inside(history.counts, 2**62), "its numbers of ratings are no such")
    columns = [history.item, history.place, history.value, *history.when.columns.values()]
    require(all(column.shape == (count,) for column in columns), "its ratings differ in length")
    require(history.value.dtype == np.float64, "its ratings are no numbers")


def _check_ids(ids: list[Any]) -> None:
    try:
        require(len(set(ids)) == len(ids), "it has an id twice")
    except TypeError:
        require(False, "it has an id that cannot be one")


def _width(side: Side | Circumstance) -> int:
    return sum(block.map.n_features_ for block in side.mode.blocks)


def _check_side(side: Side, rows: int | None) -> None:
    """Check users or items: one row per id and one for unknown ids, and as many ``rows`` in draws that were kept."""
    _check_ids(side.base.values)
    table, width = side.table, _width(side)
    require(isinstance(table, ModeTable) and table.more is None, "its users or items are in parts")
    require(not (side.more or side.added or side.gone), "its users or items are in parts")
    require(table.features.shape == (len(side.base) + 1, width), "it does not have one row of features for every id")
    require(table.blocks == tuple(block.columns for block in side.mode.blocks), "its features differ from its modes")
    require(table.nested == side.mode.nested, "its features differ from its modes")
    require(table.set_block == side.mode.set_block, "its features differ from its modes")
    if table.new is not None:
        check_new(table.new, table.n_rows, len(table.blocks))
    require(side.average.shape == (width,), "its averages are of other features")
    require(inside(side.n_rated, len(side.base) + 1), "it has ratings of more users or items than it knows")
    fault = table.residual.fault(table.n_rows, rows)
    require(fault is None, str(fault))
