"""Attribute tables of users or items as the columns and the kernel of a mode.

How each column is used is decided in `tuckergp.recommender.decisions`; here it is encoded accordingly.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from tuckergp.data.columns import as_bag, freeze
from tuckergp.data.ids import number_ids
from tuckergp.data.tables import Table, is_missing, show_cell
from tuckergp.errors import DataWarning, InputError
from tuckergp.kernels import Cosine, Identity, Kernel, Linear, Scaled
from tuckergp.recommender.decisions import WHO_RATED_WHAT, Attribute, Choice, as_numbers, as_vectors, decide
from tuckergp.recommender.ranges import refuse_far
from tuckergp.recommender.words import buckets

__all__ = ["WHO_RATED_WHAT", "Attribute", "Attributes", "check_keys", "join", "two_rows"]

# Prior variance of an attribute's part of the factors relative to that of the part each user or item has for itself.
BLOCK_VARIANCE = 0.2

# The same for a text, smaller because most words say nothing about tastes. Methods that do not learn variances
# predicted new items worse with a larger one; Gibbs sampling learns it and only starts there.
TEXT_VARIANCE = 0.02

MISSING = (None,)
"""The value of a missing cell: a level like any other."""


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
    def fit(cls, key: str, table: Table | None, choices: Mapping[str, Choice] | None = None) -> Self:
        """Decide how to use every column but the key.

        Parameters
        ----------
        key : str
            The id column.
        table : Table or None
            None for no attributes.
        choices : mapping of str to Kernel, {"number", "category", "bag", "text", "vector"} or None, optional
            How to use some columns instead: read them as this kind, compare them with this kernel, or leave them out
            (None). Kernels get standardised numbers, so lengthscales are in standard deviations of the column; a period
            is in units of the column. A kernel with a scale in front (``0.5 * SE(1.0)``) keeps it; others get the
            default variance of attributes.
        """
        choices = {} if choices is None else dict(choices)
        if table is None:
            table = Table({}, f"The table with {key} that was not given", 0)
        names = [column for column in table.columns if column != key]
        _check_choices(choices, table, names)
        columns = []
        for column in names:
            attribute = decide(table, column, choices.get(column, "auto"))
            if attribute.says_nothing:
                warnings.warn(
                    f"{table.name} column {column!r} is not used: {attribute.note}. Remove or repair it.",
                    DataWarning,
                    stacklevel=3,
                )
            columns.append(attribute)
        return cls(key, tuple(columns))

    @property
    def used(self) -> list[Attribute]:
        """The columns that are used."""
        return [attribute for attribute in self.columns if attribute.use != "nothing"]

    def encode(self, table: Table) -> Table:
        """Encode the key and the used columns: numbers standardised, everything else as sets of values.

        Each number has a further column with its level or, if it has a kernel of its own, with whether it is missing.
        A number that is far from all those of training is refused.
        """
        encoded: dict[str, npt.NDArray[Any]] = {self.key: table[self.key]}
        for attribute in self.used:
            values = table[attribute.column]
            if attribute.means:
                vectors = as_vectors(table, attribute.column, len(attribute.means))
                refuse_far(table, attribute, vectors)
                standardised = np.nan_to_num(
                    (vectors - attribute.means) / attribute.spreads
                )  # a missing vector counts as the mean
                encoded |= dict(zip(attribute.vector_columns, standardised.T, strict=True))
            elif attribute.numeric:
                numbers = as_numbers(table, attribute.column)
                refuse_far(table, attribute, numbers)
                missing = np.isnan(numbers)
                numbers[missing] = attribute.mean
                encoded[attribute.column] = (numbers - attribute.mean) / attribute.spread
                if attribute.use == "number":
                    level = np.searchsorted(attribute.edges, numbers, side="right").astype(object)
                    level[missing] = "missing"
                    encoded[attribute.level_column] = np.array([f"level {value}" for value in level], dtype=object)
                else:
                    encoded[attribute.missing_column] = _objects(MISSING if gone else () for gone in missing)
            elif attribute.use == "kernel" or attribute.column == WHO_RATED_WHAT:
                encoded[attribute.column] = values
            else:
                encoded[attribute.column] = _sets(values, attribute)
        return Table(encoded, table.name, len(table))

    def kernel(self, encoded: Table) -> Kernel:
        """Identity on the key plus a kernel per attribute, scaled so that the mean of k(x, x) is its variance."""
        kernel: Kernel = Identity(self.key)
        for attribute in self.used:
            for term in _terms(attribute):
                if isinstance(term, Scaled):
                    kernel = kernel + term
                    continue
                size = float(np.mean(term.diag(encoded.select(term.reads(list(encoded.columns))))))
                if size > 0:
                    variance = TEXT_VARIANCE if attribute.use == "text" else BLOCK_VARIANCE
                    kernel = kernel + (variance / size) * term
        return kernel


def _terms(attribute: Attribute) -> list[Kernel]:
    """The kernels on the encoded columns of an attribute."""
    if attribute.use == "number":
        return [Linear(attribute.column), Linear(attribute.level_column)]
    if attribute.use == "vector":
        return [Linear(attribute.vector_columns)]
    if attribute.kernel is not None:
        return [attribute.kernel, Linear(attribute.missing_column)] if attribute.numeric else [attribute.kernel]
    # where sizes differ by orders of magnitude, an inner product would make the largest similar to all others
    return [(Cosine if attribute.use == "text" or attribute.cosine else Linear)(attribute.column)]


def _sets(values: npt.NDArray[Any], attribute: Attribute) -> npt.NDArray[Any]:
    """The cells of a column as tuples: one category, the values of a bag, the words of a text."""
    missing = is_missing(values)
    listed = (values.astype("datetime64[us]") if values.dtype.kind == "M" else values).tolist()
    cells = zip(listed, missing, strict=True)
    if attribute.use == "bag":
        return _objects(MISSING if gone else as_bag(value) for value, gone in cells)
    if attribute.use == "text":
        common = attribute.common
        return _objects(
            MISSING if gone else tuple(word for word in buckets(str(value)) if word not in common)
            for value, gone in cells
        )
    levels: dict[Any, tuple[Any, ...]] = {}  # equal cells are one tuple
    return _objects(MISSING if gone else levels.setdefault(freeze(value), (freeze(value),)) for value, gone in cells)


def _objects(cells: Iterable[Any]) -> npt.NDArray[Any]:
    listed = list(cells)
    array = np.empty(len(listed), dtype=object)
    array[:] = listed
    return array


def _check_choices(choices: Mapping[str, Choice], table: Table, names: Sequence[str]) -> None:
    for column in choices:
        if column not in names:
            listed = ", ".join(name for name in names if name != WHO_RATED_WHAT) or "none"
            raise InputError(f"{table.name} has no attribute {column!r} to choose for; its attributes are {listed}.")


def join(
    table: Table | None, key: str, ids: Sequence[Any], name: str, row_of: Mapping[Any, int] | None = None
) -> Table:
    """The rows of an attribute table at some ids, in their order; missing where the table lacks an id.

    Where the row of each id is known already, ``row_of``, not all ids are looked at.
    """
    keys = _objects(ids)
    if table is None:
        return Table({key: keys}, name, len(ids))
    row_of = rows_by_id(table, key) if row_of is None else row_of
    rows = np.array([row_of.get(value, -1) for value in ids], dtype=np.intp)
    columns: dict[str, npt.NDArray[Any]] = {key: keys}
    for column, values in table.columns.items():
        if column != key:
            columns[column] = _at(values, rows)
    return Table(columns, name, len(ids), table.first_line, numbers=rows)


def rows_by_id(table: Table, key: str) -> dict[Any, int]:
    """The row of each id of an attribute table."""
    return {value: row for row, value in enumerate(table[key].tolist())}


def _at(values: npt.NDArray[Any], rows: npt.NDArray[np.intp]) -> npt.NDArray[Any]:
    """Some rows of a column, missing where the row is negative."""
    known = rows >= 0
    if known.all():
        return values[rows]
    if values.dtype.kind not in "fM":
        values = values.astype(object)
    nothing = {"f": np.nan, "M": np.datetime64("NaT")}.get(values.dtype.kind)
    taken = np.full(len(rows), nothing, dtype=values.dtype)
    taken[known] = values[rows[known]]
    return taken


def check_keys(table: Table, key: str) -> None:
    """Raise an error for missing or repeated ids."""
    _, codes = number_ids(table, key)
    repeats = np.flatnonzero(codes != np.arange(len(codes)))
    if len(repeats):
        row = int(repeats[0])
        raise two_rows(table, key, int(codes[row]), row)


def two_rows(table: Table, key: str, first: int, second: int) -> InputError:
    """The error for an id that has two rows."""
    return InputError(
        f"{table.name} has {key} {show_cell(table[key][first])} twice, at {table.row_label(first)} and "
        f"{table.row_label(second)}; keep one row for each."
    )
