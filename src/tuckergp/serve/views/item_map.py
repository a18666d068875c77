"""A map of items: close together where the same people are predicted to like them, with values to colour them by."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from tuckergp.data.tables import Table
from tuckergp.recommender.attributes import join
from tuckergp.recommender.factors import Factors
from tuckergp.recommender.filters import ratings_per_item
from tuckergp.recommender.fitted import FittedRecommender
from tuckergp.recommender.neighbours import positions
from tuckergp.recommender.titles import title_column
from tuckergp.serve.views.cells import bag_of, numbers, titles

__all__ = ["colourings", "item_map"]

MOST_DRAWS, MOST_ITEMS = 20, 5_000
"""The largest numbers of draws that give the places, and of items on the map, those with the most ratings."""

MOST_VALUES = 8
"""How many values of an attribute have a colour of their own."""


def item_map(fitted: FittedRecommender) -> dict[str, Any]:
    """Places of the items with the most ratings on two axes, and their attributes as values to colour them by."""
    side = fitted.layout.sides[1]
    count = ratings_per_item(fitted.history, side)
    rows = np.flatnonzero(side.current & side.table.seen)
    rows = np.sort(rows[np.argsort(-count[rows], kind="stable")[:MOST_ITEMS]])
    places, share = positions(Factors(fitted.layout, fitted.fit).thinned(MOST_DRAWS), 1, 2)
    ids = side.ids_at(rows)
    called = titles(fitted.tables[1], side.key)
    return {
        "ids": [str(value) for value in ids],
        "titles": [called.get(value) for value in ids],
        "x": numbers(places[rows, 0]),
        "y": numbers(places[rows, 1]),
        "count": [int(n) for n in count[rows]],
        "share": numbers(share),
        "left_out": int((side.current & side.table.seen).sum()) - len(rows),
        "colours": colourings(fitted.tables[1], side.key, ids),
    }


def colourings(table: Table | None, key: str, ids: list[Any]) -> list[dict[str, Any]]:
    """The columns that items can be coloured by: each with its most frequent values and those of every item.

    Columns in which most values occur once, such as titles, are left out; numbers with many values are cut at their
    quintiles.
    """
    if table is None:
        return []
    joined = join(table, key, ids, table.name)
    found = []
    for name in table.columns:
        if name not in (key, title_column(table)):
            cells = [bag_of(cell) for cell in joined[name].tolist()]
            grouped = _fifths(cells) or [[str(value) for value in cell] for cell in cells]
            tally = Counter(value for cell in grouped for value in cell)
            values = [value for value, n in tally.most_common(MOST_VALUES) if n > 1]
            if len(values) > 1 and sum(tally[value] for value in values) > 0.2 * sum(tally.values()):
                values = sorted(values, key=_first_number) if _fifths(cells) else values
                place = {value: number for number, value in enumerate(values)}
                of_items = [[place[value] for value in cell if value in place] for cell in grouped]
                found.append({"name": str(name), "values": values, "of_items": of_items})
    return sorted(found, key=lambda each: -max(map(len, each["of_items"]), default=0))  # genres before years


def _fifths(cells: list[list[Any]]) -> list[list[str]] | None:
    """Numbers as the fifth of all that they lie in, such as ``1990 to 1995``; None for what is no number, or few."""
    single = [cell[0] for cell in cells if len(cell) == 1]
    if max(map(len, cells), default=0) > 1 or not all(isinstance(value, int | float) for value in single):
        return None
    if len(set(single)) <= MOST_VALUES:
        return None
    edges = np.unique(np.quantile(single, np.linspace(0, 1, 6)))
    place = [min(int(np.searchsorted(edges, value, "right")), len(edges) - 1) - 1 for value in single]
    labels = iter([f"{edges[k]:g} to {edges[k + 1]:g}" for k in place])
    return [[next(labels)] if cell else [] for cell in cells]


def _first_number(label: str) -> float:
    return float(label.split(" ", 1)[0])
