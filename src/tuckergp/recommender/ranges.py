"""Numbers of attributes that are far from those of training, which are refused.

Numbers count linearly. One of 1.7e9 among ages says nothing about its user, and would change answers for others, too:
users and items are compared by predictions for everybody, and that user's would outweigh all the rest.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tuckergp.data.tables import Table, show_cell
from tuckergp.errors import InputError
from tuckergp.recommender.decisions import Attribute

__all__ = ["FAR", "refuse_far"]

FAR = 10.0
"""How far from the training range a number may be, in widths of this range."""


def refuse_far(table: Table, attribute: Attribute, numbers: npt.NDArray[np.float64]) -> None:
    """Refuse numbers of an attribute, (n,), or coordinates of its vectors, (n, k), that are far from those of training.

    Missing ones are NaN, and are not.
    """
    if not attribute.lows:
        return
    low, high = np.array(attribute.lows), np.array(attribute.highs)
    each = numbers.reshape(len(table), len(low))
    with np.errstate(over="ignore"):
        # a coordinate that was constant in training has no width, and a spread of 1
        reach = FAR * np.maximum(high - low, attribute.spreads or attribute.spread)
        far = (each < low - reach) | (each > high + reach)
    if not far.any():
        return
    row, place = (int(first) for first in np.argwhere(far)[0])
    cell = table[attribute.column][row]
    if attribute.means:
        cell, where = cell[place], f"{table.row_label(row)}, coordinate {place}"
    else:
        where = table.row_label(row)
    raise InputError(
        f"{table.name} column {attribute.column!r} holds {show_cell(cell)} at {where}, far from the training values, "
        f"which are from {attribute.shown(low[place])} to {attribute.shown(high[place])}; correct it, leave it "
        f"empty, or fit with values like it."
    )
