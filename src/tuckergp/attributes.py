"""What is known of users or items, read column by column: numbers, categories, bags, or left out with a reason.

Turns an attribute table into the columns and the kernel of a mode. Every decision can be printed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from tuckergp._columns import column_kind
from tuckergp.errors import InputError
from tuckergp.kernels import Cosine, Identity, Kernel, Linear
from tuckergp.tables import Table, is_missing

__all__ = ["Attribute", "Attributes"]

# Prior variance of an attribute's part of the factors relative to that of the part each user or item has for itself.
BLOCK_VARIANCE = 0.2
N_LEVELS = 10
WHO_RATED_WHAT = "who rated what"


@dataclass(frozen=True)
class Attribute:
    """How one column is used: ``use`` is number, category, bag or nothing, ``note`` says why."""

    column: str
    use: Literal["number", "category", "bag", "nothing"]
    note: str
    mean: float = 0.0
    spread: float = 1.0
    edges: tuple[float, ...] = ()

    @property
    def level_column(self) -> str:
        """Where the level of a number stands (its tenth of the training values)."""
        return f"{self.column} level"


@dataclass(frozen=True)
class Attributes:
    """The columns of one attribute table and the kernel built from them.

    Attributes
    ----------
    key : str
        The id column.
    columns : tuple of Attribute
    """

    key: str
    columns: tuple[Attribute, ...]

    @classmethod
    def fit(cls, key: str, table: Table | None) -> Self:
        """Decide how to use every column but the key; no table means no attributes."""
        if table is None:
            return cls(key, ())
        return cls(key, tuple(_decide(column, table) for column in table.columns if column != key))

    @property
    def used(self) -> list[Attribute]:
        """The columns that are used."""
        return [attribute for attribute in self.columns if attribute.use != "nothing"]

    def encode(self, table: Table) -> Table:
        """Key and used columns: numbers standardised with their level beside them, the rest as they are."""
        encoded: dict[str, npt.NDArray[Any]] = {self.key: table[self.key]}
        for attribute in self.used:
            values = table[attribute.column]
            if attribute.use != "number":
                encoded[attribute.column] = values
                continue
            missing = is_missing(values)
            numbers = np.full(len(table), attribute.mean)
            numbers[~missing] = table.take(np.flatnonzero(~missing)).numeric(attribute.column)
            encoded[attribute.column] = (numbers - attribute.mean) / attribute.spread
            level = np.searchsorted(attribute.edges, numbers, side="right").astype(object)
            level[missing] = "missing"
            encoded[attribute.level_column] = np.array([f"level {value}" for value in level], dtype=object)
        return Table(encoded, table.name, len(table))

    def kernel(self, encoded: Table) -> Kernel:
        """Identity on the key plus a linear kernel an attribute, its mean of k(x, x) scaled to BLOCK_VARIANCE."""
        kernel: Kernel = Identity(self.key)
        for column in encoded.columns:
            if column == self.key:
                continue
            # sets of rated items differ in size by orders of magnitude, attributes do not
            term = Cosine(column) if column == WHO_RATED_WHAT else Linear(column)
            size = float(np.mean(term.diag(encoded.select([column]))))
            if size > 0:
                kernel = kernel + (BLOCK_VARIANCE / size) * term
        return kernel


def _decide(column: str, table: Table) -> Attribute:
    values = table[column]
    missing = is_missing(values)
    if missing.all():
        return Attribute(column, "nothing", "all values are missing")
    kind = column_kind(values)
    if column == WHO_RATED_WHAT:
        return Attribute(column, "bag", "the set of the other side, whatever the ratings")
    if kind == "bag":
        return Attribute(column, "bag", "several values a row")
    if values.dtype.kind == "O" and _all_numbers(values[~missing]):
        kind = "number"
    if kind == "number":
        numbers = table.take(np.flatnonzero(~missing)).numeric(column)
        spread = float(numbers.std())
        if spread == 0:
            return Attribute(column, "nothing", "the same value everywhere")
        edges = tuple(float(edge) for edge in np.unique(np.quantile(numbers, np.arange(1, N_LEVELS) / N_LEVELS)))
        return Attribute(column, "number", "standardised, and by tenths", float(numbers.mean()), spread, edges)
    levels = {str(value) for value in values[~missing]}
    if len(levels) == 1 and not missing.any():
        return Attribute(column, "nothing", "the same value everywhere")
    if len(levels) > max(20, len(values) / 4):
        return Attribute(column, "nothing", f"{len(levels)} different texts in {len(values)} rows say little")
    return Attribute(column, "category", f"{len(levels)} levels")


def _all_numbers(values: Sequence[Any] | npt.NDArray[Any]) -> bool:
    return all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in values)


def join(table: Table | None, key: str, ids: Sequence[Any], name: str) -> Table:
    """The rows of an attribute table at some ids, in their order; missing where the table lacks an id."""
    keys = np.empty(len(ids), dtype=object)
    keys[:] = list(ids)
    if table is None:
        return Table({key: keys}, name, len(ids))
    row_of = {value: row for row, value in enumerate(table[key])}
    rows = np.array([row_of.get(value, -1) for value in ids], dtype=np.intp)
    columns: dict[str, npt.NDArray[Any]] = {key: keys}
    for column, values in table.columns.items():
        if column == key:
            continue
        if (rows < 0).any():
            values = values.astype(object)
            taken = np.empty(len(ids), dtype=object)
            taken[rows >= 0] = values[rows[rows >= 0]]
            taken[rows < 0] = None
        else:
            taken = values[rows]
        columns[column] = taken
    return Table(columns, name, len(ids))


def check_keys(table: Table, key: str) -> None:
    """Refuse missing and repeated ids."""
    missing = is_missing(table[key])
    if missing.any():
        raise InputError(f"{table.name} column {key!r} is missing at {table.row_label(int(np.argmax(missing)))}.")
    seen: dict[Any, int] = {}
    for row, value in enumerate(table[key]):
        if value in seen:
            raise InputError(
                f"{table.name} has {key} {value!r} twice, at {table.row_label(seen[value])} and "
                f"{table.row_label(row)}; keep one row for each."
            )
        seen[value] = row
