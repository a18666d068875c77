"""Users and items: ids and attribute tables as they come, and the rows of the modes that they become.

Ids keep their type. What is known of an entity is its attributes, whom or what it was rated with, and when.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from tuckergp.attributes import WHO_RATED_WHAT, Attributes, check_keys, join
from tuckergp.design import FittedMode, Mode
from tuckergp.errors import InputError
from tuckergp.kernels import Identity
from tuckergp.mode_table import ModeTable
from tuckergp.periods import UNKNOWN
from tuckergp.tables import Table, as_table, distinct_rows, is_missing

__all__ = ["KEYS", "Drift", "Side", "add_who_rated_what", "known", "read_attributes", "read_ratings"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

KEYS = ("user_id", "item_id")

# Prior variance of the drift of a user in a period, relative to the user's average, and of what all share in a period.
DRIFT_VARIANCE = 0.04
SHARED_DRIFT = 0.2


@dataclass(frozen=True)
class Side:
    """Users or items: the ids known (rated, or with attributes), their features, and an unknown id's last."""

    number: dict[Any, int]
    table: ModeTable
    code: Ints

    def numbers(self, ids: npt.NDArray[Any]) -> Ints:
        """The number of every id; the last one for those unknown."""
        unknown = len(self.number)
        return np.fromiter((self.number.get(value, unknown) for value in ids.tolist()), dtype=np.intp, count=len(ids))

    def rows(self, ids: npt.NDArray[Any]) -> Ints:
        """The row of the table of every id."""
        return self.code[self.numbers(ids)]


@dataclass(frozen=True)
class Drift:
    """Users in periods, a third mode: f = sum_k u_k v_k t_k, where t is constant but for the user's drift."""

    mode: Mode
    rows: Table
    code: Ints

    @classmethod
    def of(cls, user: Ints, period: npt.NDArray[np.int64]) -> Self:
        """Every user in every period of the ratings."""
        inputs = cls.inputs(user, period)
        first, code = distinct_rows(inputs, list(inputs.columns))
        kernel = Identity() + SHARED_DRIFT * Identity("period")
        return cls(Mode(list(inputs.columns), DRIFT_VARIANCE * kernel), inputs.take(first), code)

    @staticmethod
    def inputs(user: Ints, period: npt.NDArray[np.int64] | None) -> Table:
        """Numbers of users and periods, a row a rating; None for times that are not known."""
        when = np.full(len(user), UNKNOWN) if period is None else period
        return Table({"user": user.astype(np.int64), "period": when}, "ratings", len(user))


def known(key: str, rated: list[Any], table: Table | None, kind: Attributes, mode: FittedMode) -> Side:
    """The features of all ids known: rated ones first, then those with attributes alone, then one that is unknown."""
    known = dict.fromkeys(rated)
    if table is not None:
        known.update(dict.fromkeys(table[key]))
    mode_table, code = mode.transform(kind.encode(join(table, key, [*known, _Unknown()], key)))
    return Side({value: number for number, value in enumerate(known)}, mode_table, code)


def add_who_rated_what(tables: list[Table | None], rated: list[list[Any]], codes: list[Ints]) -> list[Table | None]:
    """Give users the set of items they rated, and items the set of their raters, as one more attribute."""
    out: list[Table | None] = []
    for d, table in enumerate(tables):
        order = np.argsort(codes[d], kind="stable")
        ends = np.cumsum(np.bincount(codes[d], minlength=len(rated[d])))
        sets = dict(zip(rated[d], np.split(codes[1 - d][order], ends[:-1]), strict=True))
        ids = list(rated[d]) if table is None else list(dict.fromkeys([*table[KEYS[d]], *rated[d]]))
        column = np.empty(len(ids), dtype=object)
        column[:] = [tuple(sets.get(value, ())) for value in ids]
        joined = join(table, KEYS[d], ids, ("users", "items")[d])
        out.append(Table({**joined.columns, WHO_RATED_WHAT: column}, joined.name, len(ids)))
    return out


class _Unknown:
    """An id that equals no other."""


def read_ratings(table: Table) -> tuple[Floats, list[list[Any]], list[Ints]]:
    """Ratings as numbers, and for users and items the distinct ids and their number in every row."""
    if len(table) == 0:
        raise InputError(f"{table.name} is empty; there is nothing to learn from.")
    ids, codes = [], []
    for key in KEYS:
        values = table[key]
        missing = is_missing(values)
        if missing.any():
            raise InputError(f"{table.name} column {key!r} is missing at {table.row_label(int(np.argmax(missing)))}.")
        number: dict[Any, int] = {}
        codes.append(np.array([number.setdefault(value, len(number)) for value in values.tolist()], dtype=np.intp))
        ids.append(list(number))
    return table.numeric("rating"), ids, codes


def read_attributes(source: Any, name: str, key: str, rated: list[Any]) -> Table | None:
    """An attribute table with one row an id, some of which must have been rated; None for none."""
    if source is None:
        return None
    table = as_table(source, name)
    check_keys(table, key)
    table = Table({**table.columns, key: _objects(table[key])}, table.name, len(table), table.first_line)
    known = set(table[key])
    if not any(value in known for value in rated):
        raise InputError(
            f"No {key} of the ratings is in {table.name}: ids are like {rated[0]!r} there and "
            f"{next(iter(known), None)!r} here. Give both the same type and spelling."
        )
    return table


def _objects(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Python objects, so that 3 and numpy's 3 are one id."""
    out = np.empty(len(values), dtype=object)
    out[:] = values.tolist()
    return out
