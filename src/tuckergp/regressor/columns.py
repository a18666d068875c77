"""The modes that columns have where the user names none: what each column holds decides how it is read.

Where a column goes in a field with others is decided in `tuckergp.regressor.contenders`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from types import MappingProxyType
from typing import Any

import numpy.typing as npt

from tuckergp.data.tables import Table
from tuckergp.kernels import SE, Identity, Kernel, Linear, Matern32, Periodic, Sum
from tuckergp.model.mode import Mode

__all__ = ["column_modes", "curve_for", "is_numeric", "two_values", "useful"]

FEW_ROWS = 20
"""From so many rows on, text that differs in nearly all of them is a name, and tells nothing about others."""

NAMES = 0.9
"""The share of rows with a value of their own from which on text is a name."""


def is_numeric(values: npt.NDArray[Any]) -> bool:
    """Whether a column holds numbers, truth values or dates."""
    return values.dtype.kind in "fiubM"


def useful(table: Table) -> list[str]:
    """The columns that can tell something: not constant, and no text that names the rows; all where none can."""
    names = [name for name, values in table.columns.items() if _tells(values)]
    return names or list(table.columns)


def _tells(values: npt.NDArray[Any]) -> bool:
    if is_numeric(values):
        return bool((values != values[0]).any())
    levels = len(set(map(str, values.tolist())))
    return levels > 1 and not (len(values) >= FEW_ROWS and levels > NAMES * len(values))


def curve_for(lines: bool) -> Kernel:
    """The kernel of numbers: a trend and a Matern on a line, where the inference learns lines; else SE."""
    return Linear() + Matern32(1.0) if lines else SE(1.0)


def column_modes(
    table: Table, curve: Kernel, seasons: Mapping[str, Sequence[float]] = MappingProxyType({})
) -> list[Mode]:
    """One mode for each column.

    Numbers and dates are standardised and have the kernel ``curve``, and their ``seasons`` of periods in standard
    deviations; of two values a trend says all. Anything else: levels.
    """
    return [
        _mode(name, values, reduce(Sum, map(Periodic, seasons.get(name, ())), curve))
        for name, values in table.columns.items()
    ]


def _mode(name: str, values: npt.NDArray[Any], curve: Kernel) -> Mode:
    if not is_numeric(values):
        return Mode(name, Identity())
    return Mode(name, Linear() if two_values(values) else curve, whiten=True)


def two_values(values: npt.NDArray[Any]) -> bool:
    """Whether a column of numbers has no more than two values."""
    return bool(((values == values.min()) | (values == values.max())).all())
