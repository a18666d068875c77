"""Decisions about how to use each column of an attribute table, from its values or from the user's choice.

An `Attribute` records the decision, its reason, and what is needed to encode other rows alike. Nothing here builds
features.
"""

from __future__ import annotations

import datetime
import decimal
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from tuckergp.data.columns import COLLECTIONS, as_bag, column_kind
from tuckergp.data.standard import mean_and_std
from tuckergp.data.tables import Table, is_missing, show_cell
from tuckergp.errors import InputError
from tuckergp.kernels import Constant, Identity, Kernel, Linear, Periodic, Product, Scaled, Sum
from tuckergp.recommender.words import BUCKETS, buckets, reads_as_text

__all__ = [
    "CO_RATING",
    "WHO_RATED_WHAT",
    "Attribute",
    "Choice",
    "Use",
    "as_numbers",
    "as_vectors",
    "decide",
    "holds_dates",
    "holds_numbers",
    "shown_kernel",
    "shown_name",
]

Use: TypeAlias = Literal["number", "category", "bag", "text", "vector", "kernel", "nothing"]
Choice: TypeAlias = Kernel | str | None

# The column of the ids that a user or an item has ratings with: its name in model files, and as it is shown.
WHO_RATED_WHAT = "who rated what"
CO_RATING = "co-rating"
N_LEVELS = 10
READINGS = ("number", "category", "bag", "text", "vector")

_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ].*)?")


def shown_name(column: str) -> str:
    """The name of a column in reports and explanations."""
    return CO_RATING if column == WHO_RATED_WHAT else column


def shown_kernel(kernel: str) -> str:
    """The text of a kernel with the names of columns as in reports and explanations."""
    return kernel.replace(repr(WHO_RATED_WHAT), repr(CO_RATING))


@dataclass(frozen=True)
class Attribute:
    """How one column is used, and why.

    Attributes
    ----------
    column : str
    use : {"number", "category", "bag", "text", "vector", "kernel", "nothing"}
    note : str
        The reason, or details.
    mean, spread : float
        Mean and standard deviation of the training values of a number; missing values are replaced by the mean.
    edges : tuple of float
        The bounds between the levels of a number.
    common : frozenset of str
        Buckets of words that occur in more than half of the texts, which are left out.
    kernel : Kernel or None
        The kernel chosen for the column.
    numeric : bool
        Whether the column is standardised.
    means, spreads : tuple of float
        Mean and standard deviation of each coordinate of a vector; a missing vector is replaced by the means.
    lows, highs : tuple of float
        The least and the largest training value of a number, or of each coordinate of a vector; empty in older files.
    dates : bool
        Whether its numbers are dates, as days since 1970-01-01.
    cosine : bool
        Whether bags are compared by cosine, because some have many times as many values as others.
    says_nothing : bool
        Whether it is left out because all its values are missing or the same.
    """

    column: str
    use: Use
    note: str
    mean: float = 0.0
    spread: float = 1.0
    edges: tuple[float, ...] = ()
    common: frozenset[str] = frozenset()
    kernel: Kernel | None = None
    numeric: bool = False
    says_nothing: bool = False
    means: tuple[float, ...] = ()
    spreads: tuple[float, ...] = ()
    lows: tuple[float, ...] = ()
    highs: tuple[float, ...] = ()
    dates: bool = False
    cosine: bool = False

    @property
    def vector_columns(self) -> list[str]:
        """The names of the encoded columns with the coordinates of a vector."""
        return [f"{self.column}[{k}]" for k in range(len(self.means))]

    @property
    def encoded_columns(self) -> list[str]:
        """The names of all columns that it may be encoded as."""
        return [self.column, self.level_column, self.missing_column, *self.vector_columns]

    @property
    def level_column(self) -> str:
        """The name of the encoded column with the level of a number (its tenth of the training values)."""
        return f"{self.column} level"

    @property
    def missing_column(self) -> str:
        """The name of the encoded column that marks missing values of a number with a kernel of its own."""
        return f"{self.column} missing"

    def shown(self, number: float) -> str:
        """One of its numbers as text; a date as its day."""
        if not self.dates:
            return f"{number:g}"
        day = np.floor(round(number, 6))  # standardised numbers are back up to rounding
        return str(np.datetime64(int(day), "D"))


def decide(table: Table, column: str, choice: Choice = "auto") -> Attribute:
    """Decide how to use a column.

    Parameters
    ----------
    table : Table
    column : str
    choice : Kernel, {"auto", "number", "category", "bag", "text", "vector"} or None
        ``"auto"`` looks at the values; None leaves the column out.
    """
    if choice is None:
        return Attribute(column, "nothing", "left out as asked")
    if not (isinstance(choice, Kernel) or choice in (*READINGS, "auto")):
        raise InputError(
            f"The choice for {table.name} column {column!r} must be one of {', '.join(map(repr, READINGS))}, a "
            f"tuckergp kernel, or None to leave it out; not {choice!r}."
        )
    if column == WHO_RATED_WHAT and choice == "auto":
        return Attribute(column, "bag", "ids of the rated items, or of the raters, whatever the ratings", cosine=True)
    missing = is_missing(table[column])
    if missing.all():
        return Attribute(column, "nothing", "all its values are missing", says_nothing=True)
    if isinstance(choice, Kernel):
        return _with_kernel(table, column, choice)
    asked = "" if choice == "auto" else "as asked: "
    use = _reading(table, column, missing) if choice == "auto" else choice
    if isinstance(use, Attribute):
        return use
    readers = {"number": _number, "category": _category, "bag": _bag, "text": _text, "vector": _vector}
    attribute = readers[use](table, column, missing)
    return replace(attribute, note=asked + attribute.note) if attribute.use != "nothing" else attribute


def _reading(table: Table, column: str, missing: npt.NDArray[np.bool_]) -> str | Attribute:
    """How to read the values, judged by what they look like; an `Attribute` where they should not be used."""
    values = table[column]
    present = values[~missing]
    if holds_numbers(present):
        constant = _std(as_numbers(table, column)) == 0
        return "category" if constant and missing.any() else "number"
    if _all_vectors(present):
        return "vector"
    if column_kind(values) == "bag" and (_has_collections(present) or _parted(present)):
        return "bag"
    levels = {str(value) for value in present}
    if len(levels) > max(20, len(values) / 4):
        if all(isinstance(value, str) for value in present) and reads_as_text(present):
            return "text"
        note = f"{len(levels)} different texts in {len(values)} rows say little"
        return Attribute(column, "nothing", note)
    return "category"


def _number(table: Table, column: str, missing: npt.NDArray[np.bool_]) -> Attribute:
    numbers = as_numbers(table, column)
    spread = _std(numbers)
    if spread == 0:
        return _constant(column)
    present = numbers[~np.isnan(numbers)]
    dates = holds_dates(table[column][~missing])
    note = f"{'dates, ' if dates else ''}standardised, and by tenths{_how_many(missing)}"
    read = Attribute(column, "number", note, float(present.mean()), spread, _edges(present), numeric=True, dates=dates)
    return _with_range(read, present)


def _edges(present: npt.NDArray[np.float64]) -> tuple[float, ...]:
    """The deciles, and the next larger value after one that a tenth of the rows share, which is a level of its own.

    A level holds its lower edge, not its upper one.
    """
    deciles = np.unique(np.quantile(present, np.arange(1, N_LEVELS) / N_LEVELS))
    common = [value for value in deciles if np.mean(present == value) >= 1 / N_LEVELS and value < present.max()]
    after = {value: present[present > value].min() for value in common}
    edges = [edge for edge in deciles if not any(low < edge < high for low, high in after.items())]
    return tuple(np.unique([*edges, *after.values()]).tolist())


def _category(table: Table, column: str, missing: npt.NDArray[np.bool_]) -> Attribute:
    values = table[column]
    levels = {str(value) for value in values[~missing]}
    if len(levels) == 1 and not missing.any():
        return _constant(column)
    for row in np.flatnonzero(~missing):
        try:
            hash(tuple(values[row]) if isinstance(values[row], COLLECTIONS) else values[row])
        except TypeError:
            return Attribute(column, "nothing", f"cells of type {type(values[row]).__name__} cannot be compared")
    yes_or_no = levels <= {"True", "False"}
    note = "yes or no" if yes_or_no else f"{len(levels)} levels"
    return Attribute(column, "category", note + _how_many(missing))


def _bag(table: Table, column: str, missing: npt.NDArray[np.bool_]) -> Attribute:
    values = table[column]
    if not missing.any() and len({str(value) for value in values}) == 1:
        return _constant(column)
    cosine = _differ_widely([len(as_bag(value)) for value in values[~missing]])
    note = "several values per row" + (", compared by cosine: some have many" if cosine else "")
    return Attribute(column, "bag", note + _how_many(missing), cosine=cosine)


def _differ_widely(sizes: Sequence[int]) -> bool:
    """Whether the standard deviation of the sizes of bags that are not empty is above their mean."""
    some = np.array([size for size in sizes if size])
    return bool(some.size and some.std() > some.mean())


def _text(table: Table, column: str, missing: npt.NDArray[np.bool_]) -> Attribute:
    values = table[column]
    for row in np.flatnonzero(~missing):
        if not isinstance(values[row], str):
            raise InputError(
                f"{table.name} column {column!r} cannot be read as text: {table.row_label(int(row))} holds "
                f"{show_cell(values[row])}."
            )
    present = values[~missing]
    if len(set(present)) == 1 and not missing.any():
        return _constant(column)
    counts = Counter(bucket for value in present for bucket in buckets(value))
    common = frozenset(bucket for bucket, count in counts.items() if 2 * count > len(present))
    return Attribute(column, "text", f"words, hashed to {BUCKETS}{_how_many(missing)}", common=common)


def _vector(table: Table, column: str, missing: npt.NDArray[np.bool_]) -> Attribute:
    vectors = as_vectors(table, column)[~missing]
    means, spreads = vectors.mean(axis=0), vectors.std(axis=0)
    constant = spreads <= 1e-12 * np.abs(means)
    if constant.all():
        return _constant(column)
    note = f"vector of {vectors.shape[1]}, standardised{_how_many(missing)}"
    spreads = np.where(constant, 1.0, spreads)
    read = Attribute(column, "vector", note, means=tuple(means.tolist()), spreads=tuple(spreads.tolist()))
    return _with_range(read, vectors)


def as_vectors(table: Table, column: str, size: int | None = None) -> npt.NDArray[np.float64]:
    """A column of vectors of one length as an array, (n, k); NaN where a vector is missing.

    The length is that of the first, or ``size``.
    """
    values = table[column]
    present = np.flatnonzero(~is_missing(values))
    size = len(values[present[0]]) if size is None else size
    vectors = np.full((len(values), size), np.nan)
    for row in present.tolist():
        where = f"{table.name} column {column!r} at {table.row_label(row)}"
        if not _all_vectors([values[row]]):
            raise InputError(f"{where} holds {show_cell(values[row])}, where a vector of {size} numbers is expected.")
        if len(values[row]) != size:
            raise InputError(
                f"{where} has a vector of length {len(values[row])}, and others are of length {size}; give all the "
                f"same length, or choose 'bag' to compare single numbers."
            )
        vectors[row] = values[row]
        if not np.isfinite(vectors[row]).all():
            raise InputError(f"{where} has a vector with NaN or infinity; repair it, or leave the cell empty.")
    return vectors


def _with_kernel(table: Table, column: str, kernel: Kernel) -> Attribute:
    values = table[column]
    missing = is_missing(values)
    present = values[~missing]
    if _all_vectors(present):
        vector = _vector(table, column, missing)
        if vector.use == "nothing":
            return vector
        bound = _bind(kernel, table, vector.vector_columns, 1.0)
        return replace(vector, use="kernel", note=f"{kernel!r} on the {vector.note}", kernel=bound)
    if values.dtype.kind == "b" or holds_numbers(present):
        numbers = as_numbers(table, column)
        spread = _std(numbers)
        if spread == 0:
            return _constant(column)
        note = f"{kernel!r} on the standardised numbers{_how_many(missing)}"
        bound = _bind(kernel, table, column, spread)
        read = Attribute(column, "kernel", note, float(np.nanmean(numbers)), spread, kernel=bound, numeric=True)
        return _with_range(replace(read, dates=holds_dates(present)), numbers[~np.isnan(numbers)])
    if not all(isinstance(leaf, Identity | Linear | Constant) for leaf in kernel.leaves()):  # others need numbers
        row = int(np.argmax(~missing))
        raise InputError(
            f"{kernel!r} needs numbers, but {table.name} column {column!r} holds {show_cell(values[row])} at "
            f"{table.row_label(row)}; choose 'category', 'bag' or 'text', or Identity() or Linear()."
        )
    return Attribute(column, "kernel", f"{kernel!r} as asked", kernel=_bind(kernel, table, column, 1.0))


def _with_range(attribute: Attribute, present: npt.NDArray[np.float64]) -> Attribute:
    """The attribute with the range of its training values, (n,) or (n, k)."""
    lows, highs = (np.atleast_1d(end(present, axis=0)).tolist() for end in (np.min, np.max))
    return replace(attribute, lows=tuple(lows), highs=tuple(highs))


def _bind(kernel: Kernel, table: Table, column: str | list[str], spread: float) -> Kernel:
    """The kernel with all its terms on this column, or these, and periods in standard deviations."""
    if isinstance(kernel, Sum | Product):
        return type(kernel)(_bind(kernel.k1, table, column, spread), _bind(kernel.k2, table, column, spread))
    if isinstance(kernel, Scaled):
        return Scaled(_bind(kernel.kernel, table, column, spread), kernel.scale)
    if isinstance(kernel, Constant):
        return kernel
    columns = [column] if isinstance(column, str) else column
    if kernel.reads(columns) != columns:
        raise InputError(
            f"The kernel {kernel!r} chosen for {table.name} column {columns[0]!r} names other columns; give it none."
        )
    if isinstance(kernel, Identity | Linear):
        return type(kernel)(column)
    parameters = {**kernel.get_params(deep=False), "columns": column}
    if isinstance(kernel, Periodic):
        parameters["period"] = np.asarray(kernel.period) / spread
        parameters["period"] = float(parameters["period"]) if parameters["period"].ndim == 0 else parameters["period"]
    return type(kernel)(**parameters)


def as_numbers(table: Table, column: str) -> npt.NDArray[np.float64]:
    """A column as numbers, shape (n,): dates such as 1995-12-31 as days, NaN where missing."""
    values = table[column]
    if values.dtype.kind != "O" or not any(isinstance(value, str) and _DATE.fullmatch(value) for value in values):
        return table.numeric(column, missing=True)
    read = np.empty(len(values), dtype=object)
    read[:] = [_read_date(value) for value in values]
    return replace(table, columns={column: read}).numeric(column, missing=True)


def holds_numbers(present: npt.NDArray[Any]) -> bool:
    """Whether the cells of a column that are there are numbers, or dates."""
    return present.dtype.kind in "fiu" or _all_numbers(present) or holds_dates(present)


def holds_dates(present: npt.NDArray[Any]) -> bool:
    """Whether the cells of a column that are there are dates, or their text such as 1995-12-31."""
    return present.dtype.kind == "M" or (present.dtype.kind == "O" and _all_dates(present))


def _read_date(value: Any) -> Any:
    if not (isinstance(value, str) and _DATE.fullmatch(value)):
        return value
    try:
        return datetime.datetime.fromisoformat(value)
    except ValueError:
        return value


def _all_dates(values: Sequence[Any] | npt.NDArray[Any]) -> bool:
    return all(isinstance(_read_date(value), datetime.date) for value in values)


def _all_numbers(values: Sequence[Any] | npt.NDArray[Any]) -> bool:
    numbers = (int, float, np.number, decimal.Decimal)
    return all(isinstance(value, numbers) and not isinstance(value, bool) for value in values)


def _has_collections(values: npt.NDArray[Any]) -> bool:
    return any(isinstance(value, COLLECTIONS) for value in values)


def _all_vectors(values: Sequence[Any] | npt.NDArray[Any]) -> bool:
    """Whether all cells are lists or arrays of numbers, and one of them has a number that is no whole one's type."""
    if not len(values) or not all(isinstance(v, list | tuple | np.ndarray) and len(v) for v in values):
        return False
    floats = any(isinstance(x, float | np.floating) for v in values for x in v)
    return floats and all(_all_numbers(v) for v in values)


def _parted(values: npt.NDArray[Any]) -> bool:
    """Whether ``|`` separates values, rather than being a character that occurs in some text."""
    cells = [value.split("|") for value in values if isinstance(value, str)]
    parts = {value.strip() for cell in cells for value in cell}
    return len(parts) <= max(20, len(cells) / 4) or 10 * sum(len(cell) > 1 for cell in cells) >= len(cells)


def _std(numbers: npt.NDArray[np.float64]) -> float:
    """Standard deviation of the numbers that are there; zero where it is due to rounding alone."""
    return mean_and_std(numbers[~np.isnan(numbers)])[1]


def _constant(column: str) -> Attribute:
    return Attribute(column, "nothing", "it has the same value everywhere", says_nothing=True)


def _how_many(missing: npt.NDArray[np.bool_]) -> str:
    return f"; {int(missing.sum())} missing" if missing.any() else ""
