"""Users and items: ids and attribute tables as they come, and the rows of the modes that they become.

Ids keep their type. What is known of an entity is its attributes, and whom or what it was rated with.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from tuckergp.data.ids import Ids
from tuckergp.data.tables import Table, as_table
from tuckergp.errors import DataWarning, InputError
from tuckergp.model.design import FittedMode
from tuckergp.model.mode_table import ModeTable
from tuckergp.recommender.attributes import WHO_RATED_WHAT, Attributes, check_keys, join

__all__ = ["Newcomer", "Side", "as_objects", "read_attributes", "who_rated_what", "with_sets"]

Ints = npt.NDArray[np.integer]


@dataclass(frozen=True)
class Side:
    """Users or items: the ids known, and the row of a mode of each.

    Attributes
    ----------
    key : str
        ``user_id`` or ``item_id``.
    number : dict
        The ids known and their numbers: those with ratings first, then those with attributes alone.
    table : ModeTable
        A row for every id, in the order of their numbers, then one for all that are unknown.
    attributes : Attributes
        How the columns of the attribute table are read.
    mode : FittedMode
        Turns them into features.
    n_rated : int
        How many ids have ratings.
    """

    key: str
    number: dict[Any, int]
    table: ModeTable
    attributes: Attributes
    mode: FittedMode
    n_rated: int

    @classmethod
    def of(cls, rated: Sequence[Any], table: Table | None, kind: Attributes, mode: FittedMode) -> Self:
        """All ids known, those of the attribute table included."""
        known = dict.fromkeys(rated)
        if table is not None:
            known.update(dict.fromkeys(table[kind.key]))
        rows = mode.realise(kind.encode(join(table, kind.key, [*known, Newcomer()], kind.key)))
        return cls(kind.key, {value: number for number, value in enumerate(known)}, rows, kind, mode, len(rated))

    @property
    def ids(self) -> list[Any]:
        """The ids known, in the order of their numbers."""
        return list(self.number)

    def ids_at(self, numbers: npt.NDArray[np.integer]) -> list[Any]:
        """The ids of some numbers."""
        ids = self.ids
        return [ids[number] for number in numbers.tolist()]

    def numbers(self, ids: npt.NDArray[Any] | Sequence[Any]) -> Ints:
        """The number of every id, which is its row of the table; the last one for those unknown."""
        found = self._index.number(ids).astype(np.intp)
        found[found < 0] = len(self.number)
        return found

    def warn_of_other_types(self, table: Table) -> None:
        """Warn if no id of a table is known and none has the type of those known: text, perhaps, instead of numbers."""
        asked = table[self.key]
        if len(asked) == 0 or not self.number or (self.numbers(asked) < len(self.number)).any():
            return
        known, here = next(iter(self.number)), asked.tolist()[0]
        if isinstance(known, str) != isinstance(here, str):
            warnings.warn(
                f"No {self.key} of {table.name} is known: ids are like {here!r} there, and the model's like {known!r}. "
                f"Give both the same type.",
                DataWarning,
                stacklevel=3,
            )

    @cached_property
    def _index(self) -> Ids:
        return Ids(list(self.number))

    def enlarged(self, table: Table) -> Side:
        """The same side with the ids of a table that are not known yet, as its attributes describe them."""
        place: dict[Any, int] = {}
        for row, value in enumerate(table[self.key].tolist()):
            if value not in self.number:
                place.setdefault(value, row)
        new = list(place)
        if not new or not any(attribute.column in table.columns for attribute in self.attributes.used):
            return self
        rows = self.realise(table.take(np.array(list(place.values()))))
        number = {**self.number, **{value: len(self.number) + k for k, value in enumerate(new)}}
        return replace(self, number=number, table=self.table.with_rows(rows, len(self.number)))

    def realise(self, table: Table, sets: Sequence[Sequence[int]] | None = None) -> ModeTable:
        """The rows of a mode that ids would have with these attributes, and these sets of who rated what."""
        missing = [attribute.column for attribute in self.attributes.used if attribute.column not in table.columns]
        columns = dict(table.columns)
        for column in missing:
            columns[column] = np.full(len(table), None, dtype=object)
        if WHO_RATED_WHAT in missing and sets is not None:
            columns[WHO_RATED_WHAT] = _as_cells(sets)
        return self.mode.realise(self.attributes.encode(replace(table, columns=columns)))


def with_sets(table: Table | None, key: str, ids: Sequence[Any], sets: dict[Any, Sequence[int]]) -> Table:
    """An attribute table with who rated what as one more column, and a row for every id that is in either."""
    known = list(ids) if table is None else list(dict.fromkeys([*table[key], *ids]))
    joined = join(table, key, known, key if table is None else table.name)
    column = _as_cells([sets.get(value, ()) for value in known])
    return replace(joined, columns={**joined.columns, WHO_RATED_WHAT: column})


def who_rated_what(ids: Sequence[Any], code: Ints, other: Ints) -> dict[Any, Sequence[int]]:
    """For every id the numbers of the other side that it was rated with."""
    order = np.argsort(code, kind="stable")
    ends = np.cumsum(np.bincount(code, minlength=len(ids)))
    return dict(zip(ids, np.split(other[order], ends[:-1]), strict=True))


def _as_cells(sets: Sequence[Sequence[int]]) -> npt.NDArray[Any]:
    column = np.empty(len(sets), dtype=object)
    column[:] = [tuple(values) for values in sets]
    return column


class Newcomer:
    """An id that equals no other."""


def read_attributes(source: Any, name: str, key: str, rated: Sequence[Any]) -> Table | None:
    """An attribute table with one row an id, some of which must have been rated; None for none."""
    if source is None:
        return None
    table = as_table(source, name)
    check_keys(table, key)
    table = replace(table, columns={**table.columns, key: as_objects(table[key])})
    known = set(table[key])
    if not any(value in known for value in rated):
        raise InputError(
            f"No {key} of the ratings is in {table.name}: ids are like {rated[0]!r} there and "
            f"{next(iter(known), None)!r} here. Give both the same type and spelling."
        )
    return table


def as_objects(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Python objects, so that 3 and numpy's 3 are one id."""
    out = np.empty(len(values), dtype=object)
    out[:] = values.tolist()
    return out
