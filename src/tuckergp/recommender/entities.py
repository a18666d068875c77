"""Users and items: their ids and attributes, and the rows that they have in the modes.

Ids keep their type. The features of an entity come from its attributes and, for co-rating, from who rated what.
"""

from __future__ import annotations

import warnings
from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from tuckergp.data.columns import row_keys
from tuckergp.data.history import Nobody
from tuckergp.data.ids import Ids, refuse_other_types, with_aligned_ids
from tuckergp.data.tables import Table, as_table, show_cell
from tuckergp.errors import InputError, UnknownIdWarning
from tuckergp.model.fitted_mode import FittedMode
from tuckergp.model.mode_table import ModeTable
from tuckergp.model.whitening import whiten
from tuckergp.recommender.attributes import WHO_RATED_WHAT, Attributes, check_keys, join, two_rows

__all__ = [
    "Newcomer",
    "Side",
    "as_objects",
    "average_of",
    "one_row_each",
    "read_attributes",
    "who_rated_what",
    "with_sets",
]

Ints = npt.NDArray[np.integer]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Side:
    """Users or items: the known ids, and the row that each has in its mode.

    Ids that are added or changed later get new rows behind the others, which stay where they are: the cost grows with
    what is added, not with what is there already.

    Attributes
    ----------
    key : str
        ``user_id`` or ``item_id``.
    base : Ids
        The ids known at the fit: those with ratings first, then those with attributes alone.
    table : ModeTable
        A row for each of these ids, one for all that are unknown, then the rows that were added.
    attributes : Attributes
        How the columns of the attribute table are read.
    mode : FittedMode
        Turns the columns into features.
    n_rated : int
        How many of the ids known at the fit have ratings.
    average : ndarray, shape (n,)
        The mean of the features of these.
    more : dict
        The rows of ids that were added or changed since the fit.
    added : list
        The ids of the rows behind the one for unknown ids.
    gone : tuple of int
        Rows whose id has another row now, or was forgotten.
    nobodies : int
        How many of the ids known at the fit were forgotten.
    """

    key: str
    base: Ids
    table: ModeTable
    attributes: Attributes
    mode: FittedMode
    n_rated: int
    average: Floats
    more: dict[Any, int] = field(default_factory=dict)
    added: list[Any] = field(default_factory=list)
    gone: tuple[int, ...] = ()
    nobodies: int = 0

    @classmethod
    def of(cls, rated: Sequence[Any], table: Table | None, kind: Attributes, mode: FittedMode) -> Self:
        """Build a side from the ids with ratings and the attribute table, which may have more ids."""
        known = dict.fromkeys(rated)
        if table is not None:
            known.update(dict.fromkeys(table[kind.key]))
        rows = mode.realise(kind.encode(join(table, kind.key, [*known, Newcomer()], kind.key)))
        return cls(kind.key, Ids(list(known)), rows, kind, mode, len(rated), average_of(rows, len(rated)))

    @property
    def number(self) -> Mapping[Any, int]:
        """The row of each known id."""
        return ChainMap(self.more, self.base.places)

    @property
    def unknown(self) -> int:
        """The row for unknown ids."""
        return len(self.base)

    @property
    def ids(self) -> list[Any]:
        """The known ids, those of the fit first."""
        known = self.base if not self.forgotten else (v for v in self.base if not isinstance(v, Nobody))
        return [*known, *(value for value in self.more if value not in self.base)]

    @property
    def forgotten(self) -> bool:
        """Whether somebody of the fit was forgotten since."""
        return self.nobodies > 0

    @property
    def example(self) -> Any:
        """A known id, which says of which type they are; None where there is none."""
        return next((value for value in self.base if not isinstance(value, Nobody)), None)

    @property
    def rated_ids(self) -> list[Any]:
        """The ids with ratings."""
        seen = self.table.seen
        return [
            *(value for value in self.base.values[: self.n_rated] if not isinstance(value, Nobody)),
            *(v for v, row in self.more.items() if seen[row] and self.base.place(v) not in range(self.n_rated)),
        ]

    @cached_property
    def current(self) -> npt.NDArray[np.bool_]:
        """Which rows belong to an id, (M,): all but the row for unknown ids and rows that were replaced."""
        out = np.ones(self.table.n_rows, dtype=bool)
        out[[self.unknown, *self.gone]] = False
        return out

    def ids_at(self, rows: npt.NDArray[np.integer]) -> list[Any]:
        """The ids of some rows."""
        base, first = self.base.values, self.unknown + 1
        return [base[row] if row < len(base) else self.added[row - first] for row in rows.tolist()]

    def numbers(self, ids: npt.NDArray[Any] | Sequence[Any]) -> Ints:
        """The row of each id; for unknown ids, the row ``unknown``."""
        numbers = self.base.number(ids).astype(np.intp)
        numbers[numbers < 0] = self.unknown
        if self.more:
            listed = ids.tolist() if isinstance(ids, np.ndarray) else ids
            for place, value in enumerate(listed):
                numbers[place] = _place(self.more, value, int(numbers[place]))
        return numbers

    def rows_at_fit(self, rows: Ints) -> Ints:
        """The rows that ids had at the fit, which circumstances refer to; for later ids their present rows."""
        if not self.more or (rows <= self.unknown).all():
            return rows
        first = self.unknown + 1
        base = [self.base.place(self.added[row - first]) if row >= first else row for row in rows.tolist()]
        return np.array([row if place < 0 else place for row, place in zip(rows.tolist(), base, strict=True)])

    def aligned(self, table: Table) -> Table:
        """A table whose ids, if it has any, are of the type that was decided at the fit."""
        if self.key not in table or self.example is None:
            return table
        return with_aligned_ids(table, self.key, self.example)

    def to_keep(self, table: Table) -> Table:
        """The table with ids of the type decided at the fit; others are refused, because they become known ones."""
        table = self.aligned(table)
        if self.key in table and self.example is not None:
            refuse_other_types(table, self.key, self.example)
        return table

    def alike(self, unknown: Any) -> Any:
        """A known id that differs by case, surrounding spaces and leading zeros alone; None if there is none."""
        plain = _plain(unknown)
        return next((value for value in self.number if _plain(value) == plain), None)

    def warn_of_unknown(self, table: Table) -> None:
        """Warn of ids of a table that have neither ratings nor attributes, with the first few of them."""
        asked = table[self.key]
        unknown = list(dict.fromkeys(asked[self.numbers(asked) == self.unknown].tolist()))
        if not unknown or not len(self.base):
            return
        shown = ", ".join(map(show_cell, unknown[:3])) + (f" and {len(unknown) - 3:,} more" if len(unknown) > 3 else "")
        have = "has" if len(unknown) == 1 else "have"
        alike = self.alike(unknown[0])
        hint = f"ids are like {self.example!r}" if alike is None else f"did you mean {alike!r}?"
        warnings.warn(
            f"{self.key} {shown} {have} neither ratings nor attributes here, and the average is taken ({hint}).",
            UnknownIdWarning,
            stacklevel=5,
        )

    def enlarged(self, table: Table) -> Side:
        """The same side with the new ids of a table, described by their attributes."""
        columns, ids = self.described_by(table), table[self.key].tolist()
        new = [row for row, value in enumerate(ids) if value not in self.base and value not in self.more]
        if not new or not columns:
            return self
        place = one_row_each(table, self.key, columns, new)
        return self.grown(list(place), self.realise(table.take(np.array(list(place.values())))))

    def described_by(self, table: Table) -> list[str]:
        """The columns of a table that hold attributes which the model uses."""
        return [attribute.column for attribute in self.attributes.used if attribute.column in table.columns]

    def grown(self, ids: Sequence[Any], rows: ModeTable) -> Side:
        """The same side with new rows for some ids, known or new."""
        if not ids:
            return self
        first, before = self.table.n_rows, self.numbers(list(ids))
        more = {**self.more, **{value: first + k for k, value in enumerate(ids)}}
        gone = (*self.gone, *(int(row) for row in before if row != self.unknown))
        return replace(self, table=self.table.grown(rows), more=more, added=[*self.added, *ids], gone=gone)

    def without(self, value: Any) -> Side:
        """The same side without one known id: nothing finds its rows any more."""
        row, place = self.number[value], self.base.place(value)
        base, nobodies = self.base, self.nobodies
        if place >= 0:
            base = Ids([*base.values[:place], Nobody(), *base.values[place + 1 :]])
            nobodies += 1
        more = {known: number for known, number in self.more.items() if known != value}
        added = [Nobody() if known == value else known for known in self.added]
        return replace(self, base=base, more=more, added=added, gone=(*self.gone, row), nobodies=nobodies)

    def realise(self, table: Table, sets: Sequence[Sequence[int]] | None = None) -> ModeTable:
        """The rows that ids without ratings would have with these attributes and sets of who rated what."""
        missing = [attribute.column for attribute in self.attributes.used if attribute.column not in table.columns]
        columns = dict(table.columns)
        for column in missing:
            columns[column] = np.full(len(table), None, dtype=object)
        if WHO_RATED_WHAT in missing and sets is not None:
            columns[WHO_RATED_WHAT] = _as_cells(sets)
        inputs = self.attributes.encode(replace(table, columns=columns)).select(self.mode.mode.columns)
        unseen = self.table.take(np.full(len(table), self.unknown))
        residual = unseen.residual.named(row_keys(table.select([self.key])))
        inputs = whiten(inputs, self.mode.whitening)
        new = self.mode.new_features(inputs, joint=False)
        return replace(unseen, features=self.mode.features(inputs), residual=residual, new=new)


def one_row_each(table: Table, key: str, columns: Sequence[str], rows: Sequence[int]) -> dict[Any, int]:
    """The first of some rows for each id; an id that other rows describe otherwise is refused."""
    ids, first = table[key].tolist(), dict[Any, int]()
    for row in rows:
        before = first.setdefault(ids[row], row)
        if before != row and any(repr(table[column][row]) != repr(table[column][before]) for column in columns):
            raise two_rows(table, key, before, row)
    return first


def _plain(value: Any) -> str:
    """An id as text without case, surrounding spaces and leading zeros."""
    return str(value).strip().casefold().lstrip("0")


def with_sets(table: Table | None, key: str, ids: Sequence[Any], sets: dict[Any, Sequence[int]]) -> Table:
    """An attribute table with who rated what as a further column, and a row for each id with either."""
    known = list(ids) if table is None else list(dict.fromkeys([*table[key], *ids]))
    joined = join(table, key, known, key if table is None else table.name)
    column = _as_cells([sets.get(value, ()) for value in known])
    return replace(joined, columns={**joined.columns, WHO_RATED_WHAT: column})


def who_rated_what(ids: Sequence[Any], code: Ints, other: Ints) -> dict[Any, Sequence[int]]:
    """For each user the numbers of the items that it rated, or for each item those of its users."""
    order = np.argsort(code, kind="stable")
    ends = np.cumsum(np.bincount(code, minlength=len(ids)))
    return dict(zip(ids, np.split(other[order], ends[:-1]), strict=True))


def _as_cells(sets: Sequence[Sequence[int]]) -> npt.NDArray[Any]:
    column = np.empty(len(sets), dtype=object)
    column[:] = [tuple(values) for values in sets]
    return column


def average_of(table: ModeTable, count: int) -> Floats:
    """The mean of the features of the first ``count`` rows, (n,)."""
    return np.asarray(table.features[:count].mean(axis=0), dtype=np.float64).ravel()


def _place(more: dict[Any, int], value: Any, otherwise: int) -> int:
    try:
        return more.get(value, otherwise)
    except TypeError:  # something that cannot be hashed is no id
        return otherwise


class Newcomer:
    """A placeholder id that equals no other."""

    def __str__(self) -> str:
        return "<unknown>"


def read_attributes(source: Any, name: str, key: str, rated: Sequence[Any]) -> Table | None:
    """Read an attribute table with one row per id, some of which must have ratings; None for none."""
    if source is None:
        return None
    table = with_aligned_ids(as_table(source, name), key, rated[0])
    check_keys(table, key)
    table = replace(table, columns={**table.columns, key: as_objects(table[key])})
    known = set(table[key])
    if not known:
        raise InputError(f"{table.name} is empty; leave it out, or give a row for each {key}.")
    if not any(value in known for value in rated):
        raise InputError(
            f"No {key} of the ratings is in {table.name}: ids are like {rated[0]!r} there and "
            f"{next(iter(known))!r} here. Give both the same type and spelling."
        )
    return table


def as_objects(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The values as Python objects, so that 3 and NumPy's 3 are the same id."""
    out = np.empty(len(values), dtype=object)
    out[:] = values.tolist()
    return out
