"""The user's ids and the numbers they have inside the library: 0, 1, ... in order of first appearance.

Any hashable id will do, of one type. Whole columns are numbered at once, and tens of millions of integers in seconds.
"""

from __future__ import annotations

import datetime
import numbers
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.data.id_types import aligned
from tuckergp.data.tables import Table, is_missing, show_cell
from tuckergp.errors import InputError

__all__ = ["Ids", "number_ids", "refuse_other_types", "with_aligned_ids"]

Codes = npt.NDArray[np.int32]

# Up to this many ids are looked up one by one.
FEW = 100
# From here on, several integers are one float.
EXACT = 2.0**53


@dataclass(frozen=True)
class Ids:
    """Distinct ids; an id's number is its place.

    Attributes
    ----------
    values : list
        Python objects, not NumPy's.

    Examples
    --------
    >>> ids = Ids(["ann", "bob"])
    >>> ids.number(["bob", "carl", "ann"])
    array([ 1, -1,  0], dtype=int32)
    """

    values: list[Any]

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __contains__(self, value: object) -> bool:
        return value in self.places

    @cached_property
    def places(self) -> dict[Any, int]:
        """The number of each id."""
        return {value: number for number, value in enumerate(self.values)}

    def place(self, value: Any) -> int:
        """The number of one id, -1 for an unknown one."""
        return self.places.get(value, -1)

    @cached_property
    def _integers(self) -> npt.NDArray[np.int64] | None:
        """The ids as an array where all are integers of 64 bits."""
        if not self.values or set(map(type, self.values)) != {int}:
            return None
        try:
            return np.array(self.values, dtype=np.int64)
        except OverflowError:
            return None

    def number(self, values: npt.NDArray[Any] | Sequence[Any]) -> Codes:
        """The number of every value, -1 for an unknown id, shape (n,). As in Python, 3 and 3.0 are one id."""
        if (
            isinstance(values, np.ndarray)
            and values.dtype.kind in "iuf"
            and len(values) > FEW
            and self._integers is not None
        ):
            return _find(self._integers, values)
        listed = _natives(values) if isinstance(values, np.ndarray) else list(values)
        try:
            return np.fromiter(map(self.places.get, listed, repeat(-1)), dtype=np.int32, count=len(listed))
        except TypeError:  # something that cannot be hashed is no id
            return np.array([_place(self.places, value) for value in listed], dtype=np.int32)


def number_ids(table: Table, key: str) -> tuple[list[Any], Codes]:
    """Number the ids of a column.

    Missing ids, ids of several types and ids that cannot be hashed are refused.

    Parameters
    ----------
    table : Table
    key : str
        The column.

    Returns
    -------
    ids : list
        The distinct ids in order of first appearance, as Python objects.
    codes : ndarray of int32, shape (n_rows,)
        For every row the place of its id.

    Examples
    --------
    >>> from tuckergp.data.tables import as_table
    >>> number_ids(as_table({"user_id": [7, 3, 7]}, "ratings"), "user_id")
    ([7, 3], array([0, 1, 0], dtype=int32))
    """
    values = table[key]
    if values.dtype.kind == "O":
        return _number_objects(table, key, values)
    if values.dtype.kind in "iu" and len(values) <= FEW:
        return _numbered(values.tolist())
    missing = is_missing(values)
    if missing.any():
        raise _missing(table, key, int(np.argmax(missing)))
    del missing
    import pyarrow as pa

    if values.dtype.kind == "f":
        if table.sources:
            raise _no_ids(table, key)
        values = values.astype(np.float64) + 0.0  # -0.0 and 0.0 are one id
    plain = values.view(np.int64) if values.dtype.kind == "M" else values
    array = pa.array(np.ascontiguousarray(plain, dtype=plain.dtype.newbyteorder("=")))
    encoded = array.dictionary_encode()
    distinct = encoded.dictionary.to_numpy(zero_copy_only=False)
    return _natives(
        distinct.view(values.dtype) if values.dtype.kind == "M" else distinct
    ), encoded.indices.to_numpy().astype(np.int32, copy=False)


def with_aligned_ids(table: Table, key: str, example: Any) -> Table:
    """A table with the ids of a column in the type of known ones, of which one is given; see `id_types.aligned`.

    Integers beyond 64 bits that a file reader made floats of are refused, for several of them may have become one.
    """
    values = table[key]
    if values.dtype.kind == "f" and table.sources and (np.abs(values) >= EXACT).any():
        raise _no_ids(table, key)
    return replace(table, columns={**table.columns, key: aligned(table[key], example)})


def refuse_other_types(table: Table, key: str, example: Any) -> None:
    """Refuse ids that cannot be in one column with known ones, of which one is given: text among numbers, say."""
    family = _family(type(example))
    values = table[key]
    listed = values.tolist() if values.dtype.kind == "O" else _natives(values[:1])  # other columns are of one type
    other = {kind for kind in set(map(type, listed)) if _family(kind) != family}
    row = next((row for row, value in enumerate(listed) if type(value) in other), None) if other else None
    if row is None or is_missing(values[row : row + 1]).all():
        return
    raise InputError(
        f"{table.name} column {key!r} holds {show_cell(listed[row])} at {table.row_label(row)}, and the model's ids "
        f"are like {show_cell(example)}; give ids of the same type."
    )


def _number_objects(table: Table, key: str, values: npt.NDArray[Any]) -> tuple[list[Any], Codes]:
    listed = values.tolist()
    try:
        ids, codes = _numbered(listed)
    except TypeError:
        row, value = next((row, value) for row, value in enumerate(listed) if not _hashable(value))
        raise InputError(
            f"{table.name} column {key!r} holds a {type(value).__name__} at {table.row_label(row)}, which cannot be an "
            f"id; use text, numbers or tuples."
        ) from None
    distinct = np.empty(len(ids), dtype=object)
    distinct[:] = ids
    missing = is_missing(distinct)
    if missing.any():
        raise _missing(table, key, int(np.argmax(codes == np.argmax(missing))))
    if ids and (len({_family(kind) for kind in set(map(type, ids))}) > 1 or isinstance(ids[0], numbers.Number)):
        _refuse_mixed_types(table, key, listed)  # every row, for True equals 1 and so is not among the distinct
    return [value.item() if isinstance(value, np.generic) else value for value in ids], codes


def _numbered(values: list[Any]) -> tuple[list[Any], Codes]:
    """The distinct values in order of first appearance, and the place of every value."""
    places: dict[Any, int] = {}
    codes = np.array([places.setdefault(value, len(places)) for value in values], dtype=np.int32)
    return list(places), codes


def _refuse_mixed_types(table: Table, key: str, values: list[Any]) -> None:
    family = {kind: _family(kind) for kind in set(map(type, values))}
    if len(set(family.values())) <= 1:
        return
    first = family[type(values[0])]
    row = next(row for row, value in enumerate(values) if family[type(value)] != first)
    raise InputError(
        f"{table.name} column {key!r} mixes {_type_name(values[0])} and {_type_name(values[row])} ids, first at "
        f"{table.row_label(row)} ({values[row]!r}): give them one type."
    )


def _family(kind: type) -> type:
    """Types whose values can be equal are one family: int and float, but not int and bool."""
    if issubclass(kind, bool | np.bool_):
        return bool
    for family in (str, bytes, tuple, datetime.datetime, datetime.date):
        if issubclass(kind, family):
            return family
    return numbers.Number if issubclass(kind, numbers.Number | np.number) else kind


def _type_name(value: Any) -> str:
    return type(value.item() if isinstance(value, np.generic) else value).__name__


def _natives(values: npt.NDArray[Any]) -> list[Any]:
    """Values as Python objects; times finer than a microsecond lose the rest."""
    if values.dtype.kind == "M" and np.datetime_data(values.dtype)[0] not in ("Y", "M", "W", "D"):
        values = values.astype("datetime64[us]")
    return list(values.tolist())


def _find(ids: npt.NDArray[np.int64], values: npt.NDArray[Any]) -> Codes:
    """The places of integers given as any numbers."""
    import pyarrow as pa
    from pyarrow import compute

    if values.dtype.kind == "f":
        whole = (values >= -(2.0**63)) & (values < 2.0**63) & (np.floor(values) == values)
        integers = np.where(whole, values, 0.0).astype(np.int64)
    else:
        whole = values <= np.iinfo(np.int64).max if values.dtype == np.uint64 else None
        integers = values.astype(np.int64, copy=False)
    places = compute.index_in(pa.array(integers), value_set=pa.array(ids)).fill_null(-1).to_numpy()
    return np.asarray(places if whole is None else np.where(whole, places, -1), dtype=np.int32)


def _place(places: dict[Any, int], value: Any) -> int:
    return places.get(value, -1) if _hashable(value) else -1


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _no_ids(table: Table, key: str) -> InputError:
    return InputError(
        f"{table.name} column {key!r} holds numbers with decimals or beyond 64 bits, which are no ids; write them as "
        f"text or as whole numbers."
    )


def _missing(table: Table, key: str, row: int) -> InputError:
    return InputError(f"{table.name} column {key!r} is missing at {table.row_label(row)}; remove or fill such rows.")
