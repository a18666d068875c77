"""Tables of ratings or clicks as arrays: users, items, ratings, times and contexts.

Ids keep their type and are numbered by first appearance. Columns may have other names than the usual ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from tuckergp.data.ids import number_ids
from tuckergp.data.names import KEYS, RATING, TIMESTAMP
from tuckergp.data.pairs import Duplicates, counts_of, one_of_each, ratings_of
from tuckergp.data.periods import times
from tuckergp.data.tables import Table, stacked
from tuckergp.errors import InputError

__all__ = ["KEYS", "RATING", "TIMESTAMP", "History", "Nobody", "SortedHistory", "read_ratings"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
# More ratings than this are worth sorting before they are learned.
MANY = 2**22


@dataclass(frozen=True)
class History:
    """All ratings, one in each row.

    Attributes
    ----------
    ids : tuple of list
        Distinct users and distinct items, in the order of their first rating.
    codes : tuple of ndarray of int32, shapes (N,)
        The number of the user and of the item of every rating.
    rating : ndarray, shape (N,)
        For clicks their counts, ones where there are none.
    occasion : Table
        The timestamp and context columns that were asked for, as they came.
    clicks : bool
        Whether the table had no rating column.
    """

    ids: tuple[list[Any], list[Any]]
    codes: tuple[Ints, Ints]
    rating: Floats
    occasion: Table
    clicks: bool = False

    def __len__(self) -> int:
        return len(self.rating)

    def pairs(self) -> npt.NDArray[np.int64]:
        """A number for each rating that identifies its user and item, shape (N,)."""
        return self.codes[0].astype(np.int64) * len(self.ids[1]) + self.codes[1]

    @classmethod
    def read(
        cls,
        table: Table,
        occasion: Sequence[str] = (),
        clicks: bool = False,
        scale: tuple[float, float] | None = None,
        duplicates: Duplicates = "keep",
    ) -> Self:
        """Read a table of ratings, or of clicks, with the usual names; see `TuckerRecommender` for the choices."""
        if len(table) == 0:
            raise InputError(f"{table.name} is empty; there is nothing to learn from.")
        ids, codes = zip(*(number_ids(table, key) for key in KEYS), strict=True)
        y = counts_of(table) if clicks else ratings_of(table, scale)
        kept = replace(table.select(occasion), n_rows=len(table))
        if TIMESTAMP in occasion:  # as datetimes, so that ratings with timestamps of another type can be added
            kept = replace(kept, columns={**kept.columns, TIMESTAMP: times(table, TIMESTAMP)})
        history = cls((ids[0], ids[1]), (codes[0], codes[1]), y, kept, clicks)
        return history if duplicates == "keep" and not clicks else history._without_duplicates(table, duplicates)

    def together(self) -> Self:
        """The same ratings; very many of them those of each user together, which are learned faster in less memory."""
        if len(self) <= MANY or (self.codes[0][1:] >= self.codes[0][:-1]).all():
            return self
        order = np.argsort(self.codes[0], kind="stable")
        codes = np.stack([code[order] for code in self.codes], axis=1)
        return replace(
            self, codes=(codes[:, 0], codes[:, 1]), rating=self.rating[order], occasion=self.occasion.take(order)
        )

    @cached_property
    def _by_user(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """The rows sorted by user, and where the rows of each user begin."""
        counts = np.bincount(self.codes[0], minlength=len(self.ids[0]))
        return np.argsort(self.codes[0], kind="stable"), np.concatenate([[0], np.cumsum(counts)])

    def items_of(self, users: npt.NDArray[np.integer]) -> tuple[Ints, npt.NDArray[np.intp]]:
        """Numbers of the items that some users rated, one user after the other, and where those of each user begin.

        Users are given by their numbers; a negative number has no ratings. All ratings are sorted once; after that a
        call costs no more than what it returns.
        """
        order, starts = self._by_user
        places, ends = _ranges(starts, users)
        return self.codes[1][order[places]], ends

    @cached_property
    def ratings_per_item(self) -> npt.NDArray[np.intp]:
        """The number of ratings of each item, shape (n_items,)."""
        rated, _ = self.items_of(np.arange(len(self.ids[0])))
        return np.bincount(rated, minlength=len(self.ids[1]))

    @cached_property
    def ratings_per_user(self) -> npt.NDArray[np.intp]:
        """The number of ratings of each user, shape (n_users,)."""
        return np.asarray(np.diff(self.items_of(np.arange(len(self.ids[0])))[1]))

    def of_item(self, item: Any) -> Floats:
        """All ratings of one item, shape (n,); none of an item that nobody rated."""
        return np.asarray(self.rating[self.codes[1] == self.items.get(item, -1)])

    def of_users(self, users: npt.NDArray[np.integer]) -> History:
        """The ratings of some users, one user after the other, with only their ids."""
        order, starts = self._by_user
        return self.alone(order[_ranges(starts, users)[0]])

    def without_ratings(self, users: list[Any]) -> History:
        """A history of some users with the same columns, and no ratings."""
        none = np.zeros(0, dtype=np.int32)
        return History((users, []), (none, none), np.zeros(0), self._occasions(none), self.clicks)

    def _occasions(self, rows: npt.NDArray[np.integer]) -> Table:
        """The timestamp and context columns at some of the rows as they are stored."""
        return self.occasion.take(rows)

    def sorted(self) -> SortedHistory:
        """The same ratings sorted by user."""
        order, starts = self._by_user
        place = order.astype(np.min_scalar_type(-len(order)))
        occasion = self.occasion.take(order)
        return SortedHistory(self.ids, starts, self.codes[1][order], self.rating[order], occasion, place, self.clicks)

    @property
    def occasion_columns(self) -> list[str]:
        """The timestamp and context columns."""
        return list(self.occasion.columns)

    @cached_property
    def users(self) -> dict[Any, int]:
        """The number of each user."""
        return {value: number for number, value in enumerate(self.ids[0])}

    def numbers_of(self, users: Sequence[Any]) -> list[int]:
        """The numbers of some users, -1 for those without ratings."""
        return [self.users.get(user, -1) for user in users]

    @cached_property
    def items(self) -> dict[Any, int]:
        """The number of each item."""
        return {value: number for number, value in enumerate(self.ids[1])}

    @property
    def parts(self) -> tuple[History, ...]:
        """Ratings that were added later, each part with its own ids: none here, see `GrownHistory`."""
        return ()

    @property
    def base(self) -> History:
        """The ratings without those added later."""
        return self

    @property
    def flat(self) -> History:
        """All ratings as one `History` in memory."""
        return self

    def appended(self, more: History, table: Table, duplicates: Duplicates = "keep") -> History:
        """Add ratings as `joined` does, but without a copy of these ratings where duplicates do not matter.

        Parts of about the same size are merged, so that there are few of them however many were added. Counts of clicks
        of one pair in several parts are added where they are used.
        """
        if duplicates != "keep" and not self.clicks:
            return self.flat.joined(more, table, duplicates)
        parts = [*self.parts, more]
        while len(parts) > 1 and len(parts[-2]) < 2 * len(parts[-1]):
            last = parts.pop()
            parts[-1] = parts[-1].joined(last, table)
        return GrownHistory(self.base, tuple(parts))

    def without_users(self, users: Sequence[Any]) -> History:
        """The same ratings without those of some users, whose ids are in it no more; the others keep their numbers."""
        base = self.base
        hidden = [base.users[user] for user in users if user in base.users]
        if hidden:
            base = (base if isinstance(base, SortedHistory) else base.sorted()).hiding(hidden)
        parts = (part.alone(np.flatnonzero(~np.isin(part.codes[0], part.numbers_of(users)))) for part in self.parts)
        kept = tuple(part for part in parts if len(part))
        return GrownHistory(base, kept) if kept else base

    def withheld(self) -> SortedHistory:
        """The same users and items without any ratings but their number per item; see `is_withheld`."""
        base, none = self.flat, np.zeros(0, dtype=np.int32)
        starts = np.zeros(len(base.ids[0]) + 1, dtype=np.intp)
        when, counts = base._occasions(none), base.ratings_per_item
        return SortedHistory(base.ids, starts, none, np.zeros(0), when, none, self.clicks, counts=counts)

    @property
    def is_withheld(self) -> bool:
        """Whether there were ratings that were left out of a file."""
        return not len(self.base) and len(self.base.ids[0]) > 0

    def choices(self) -> History:
        """The same pairs as clicks, without ratings, times and contexts."""
        occasion = self.occasion.select(())
        whole = History(self.ids, self.codes, np.ones(len(self)), replace(occasion, n_rows=len(self)), clicks=True)
        once = whole._without_duplicates(Table({}, "ratings", len(self)), "keep")
        return replace(once, rating=np.ones(len(once)))

    def take(self, rows: npt.NDArray[np.integer]) -> Self:
        """Some of the ratings, with all ids."""
        codes = (self.codes[0][rows], self.codes[1][rows])
        return replace(self, codes=codes, rating=self.rating[rows], occasion=self.occasion.take(rows))

    def alone(self, rows: npt.NDArray[np.integer]) -> Self:
        """Some of the ratings, with only their ids, in the order of their numbers."""
        some = self.take(rows)
        ids, codes = [], []
        for all_ids, code in zip(some.ids, some.codes, strict=True):
            distinct, number = np.unique(code, return_inverse=True)
            ids.append([all_ids[k] for k in distinct.tolist()])
            codes.append(number.astype(np.int32))
        return replace(some, ids=(ids[0], ids[1]), codes=(codes[0], codes[1]))

    def joined(self, more: History, table: Table, duplicates: Duplicates = "keep") -> Self:
        """These ratings, then more of them, which were read from ``table``.

        Ids keep their numbers, new ones come after. With ``duplicates="mean"`` a pair that is in both has the mean of
        both ratings, with ``"last"`` the second.
        """
        ids, codes = [], []
        for d in range(2):
            number = {value: place for place, value in enumerate(self.ids[d])}
            theirs = np.array([number.setdefault(value, len(number)) for value in more.ids[d]], dtype=np.int32)
            ids.append(list(number))
            codes.append(np.concatenate([self.codes[d], theirs[more.codes[d]]]))
        rating, occasion = np.concatenate([self.rating, more.rating]), stacked(self.occasion, more.occasion)
        history = replace(self, ids=(ids[0], ids[1]), codes=(codes[0], codes[1]), rating=rating, occasion=occasion)
        if duplicates == "keep" and not self.clicks:
            return history
        return history._without_duplicates(table, duplicates, before=len(self))

    def _without_duplicates(self, table: Table, duplicates: Duplicates, before: int = 0) -> Self:
        """Merge duplicates: the last of each pair, or counts of clicks are added, and ratings averaged, or refused.

        The first ``before`` rows do not come from the table.
        """
        pairs = self.pairs()
        if len(np.unique(pairs)) == len(self):
            return self
        if duplicates == "refuse" and not self.clicks:
            self._refuse_duplicates(table, before)
        how: Any = "last" if duplicates == "last" else "sum" if self.clicks else "mean"
        rows, rating = one_of_each(pairs, self.rating, how)
        return replace(self.take(rows), rating=rating)

    def _refuse_duplicates(self, table: Table, before: int) -> None:
        _, first, inverse = np.unique(self.pairs(), return_index=True, return_inverse=True)
        again = np.ones(len(self), dtype=bool)
        again[first] = False
        row = int(np.argmax(again))
        user, item = (self.ids[d][self.codes[d][row]] for d in range(2))
        earlier = int(first[inverse[row]]) - before
        where = f"twice, at {table.row_label(earlier)} and" if earlier >= 0 else "again, rated before, at"
        raise InputError(
            f"{table.name} has user {user!r} and item {item!r} {where} {table.row_label(row - before)} (and "
            f"{int(again.sum()) - 1:,} more such rows); remove them, or use duplicates='last', 'mean' or 'keep'."
        )


class Nobody:
    """What stands in place of the id of somebody who was forgotten; it equals no other."""

    def __repr__(self) -> str:
        return "<nobody>"


class _Elsewhere(History):
    """Ratings that are stored in another form; arrays of all of them are taken from `flat`, which is made once."""

    def __getattr__(self, name: str) -> Any:
        if name in ("ids", "codes", "rating", "occasion"):
            return getattr(self.flat, name)
        raise AttributeError(name)


class SortedHistory(_Elsewhere):
    """Ratings sorted by user, as in a model file: those of one user are read without the others.

    Parameters
    ----------
    ids : tuple of list
    starts : ndarray of int, shape (n_users + 1,)
        Where the ratings of each user begin.
    item, value : ndarray, or what has rows like one, shape (N,)
        The number of the item of each rating, and the rating.
    when : Table
        The timestamp and context columns.
    place : ndarray of int, or what has rows like one, shape (N,)
        The row of each rating in `flat`, in the order that was learned from.
    clicks : bool
    hidden : frozenset of int
        The numbers of users whose ratings do not count any more.
    counts : ndarray of int, shape (n_items,), or None
        How many ratings each item had, where the ratings themselves were left out.
    """

    def __init__(
        self,
        ids: tuple[list[Any], list[Any]],
        starts: Any,
        item: Any,
        value: Any,
        when: Table,
        place: Any,
        clicks: bool,
        hidden: frozenset[int] = frozenset(),
        counts: Any = None,
    ) -> None:
        self.__dict__.update(ids=ids, starts=starts, item=item, value=value, when=when, place=place, clicks=clicks)
        self.__dict__.update(hidden=hidden, counts=counts)
        if counts is not None:
            self.__dict__["ratings_per_item"] = counts

    def __len__(self) -> int:
        return len(self.item) - sum(int(self.starts[user + 1] - self.starts[user]) for user in self.hidden)

    def sorted(self) -> SortedHistory:
        """These ratings, which are sorted already."""
        return self.flat.sorted() if self.hidden else self

    def hiding(self, users: Sequence[int]) -> SortedHistory:
        """The same ratings without those of some users, given by number; nothing is copied but the ids."""
        ids = list(self.ids[0])
        for user in users:
            ids[user] = Nobody()
        return SortedHistory(
            (ids, self.ids[1]), self.starts, self.item, self.value, self.when, self.place, self.clicks,
            self.hidden.union(users), self.counts,
        )  # fmt: skip

    def _shown(self, users: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
        """The numbers of users, -1 for those whose ratings are hidden."""
        return np.where(np.isin(users, list(self.hidden)), -1, users) if self.hidden else users

    def items_of(self, users: npt.NDArray[np.integer]) -> tuple[Ints, npt.NDArray[np.intp]]:
        """Numbers of the items that some users rated, and where those of each user begin."""
        places, ends = _ranges(self.starts, self._shown(users))
        return self.item[places], ends

    @cached_property
    def ratings_per_item(self) -> npt.NDArray[np.intp]:
        """The number of ratings of each item, shape (n_items,): of all, without those of users who are hidden."""
        hidden, _ = _ranges(self.starts, np.array(sorted(self.hidden), dtype=np.intp))
        n_items = len(self.ids[1])
        return np.bincount(self.item, minlength=n_items) - np.bincount(self.item[hidden], minlength=n_items)

    def of_users(self, users: npt.NDArray[np.integer]) -> History:
        """The ratings of some users, one user after the other, with only their ids."""
        places, ends = _ranges(self.starts, self._shown(users))
        codes = (np.repeat(users, np.diff(ends)).astype(np.int32), self.item[places])
        some = History(self.ids, codes, self.value[places], self.when.take(places), self.clicks)
        return some.alone(np.arange(len(places)))

    def of_item(self, item: Any) -> Floats:
        """All ratings of one item, shape (n,), which are read without the others."""
        return np.asarray(self.value[np.flatnonzero(np.asarray(self.item) == self.items.get(item, -1))])

    def _occasions(self, rows: npt.NDArray[np.integer]) -> Table:
        table: Table = self.when
        return table.take(rows)

    @property
    def occasion_columns(self) -> list[str]:
        """The timestamp and context columns."""
        return list(self.when.columns)

    @cached_property
    def flat(self) -> History:
        """All ratings in memory, in the order that was learned from."""
        order = np.zeros(len(self.item), dtype=np.intp)
        order[np.asarray(self.place)] = np.arange(len(self.item))
        user = np.repeat(np.arange(len(self.ids[0]), dtype=np.int32), np.diff(self.starts))
        item, value = np.asarray(self.item), np.asarray(self.value)
        if not self.hidden:
            return History(self.ids, (user[order], item[order]), value[order], self.when.take(order), self.clicks)
        shown = np.ones(len(self.ids[0]), dtype=bool)
        shown[list(self.hidden)] = False
        order = order[shown[user[order]]]
        ids = [value for value, kept in zip(self.ids[0], shown.tolist(), strict=True) if kept]
        number = (np.cumsum(shown) - 1).astype(np.int32)
        codes = (number[user[order]], item[order])
        return History((ids, self.ids[1]), codes, value[order], self.when.take(order), self.clicks)

    def take(self, rows: npt.NDArray[np.integer]) -> Any:
        """Some of the ratings, by their rows in `flat`."""
        return self.flat.take(rows)


class GrownHistory(_Elsewhere):
    """Ratings that are not copied, and parts with more of them."""

    def __init__(self, base: History, parts: tuple[History, ...]) -> None:
        self.__dict__.update(_base=base, _parts=parts, clicks=base.clicks)

    @property
    def parts(self) -> tuple[History, ...]:
        """The ratings that were added, in their order."""
        parts: tuple[History, ...] = self.__dict__["_parts"]
        return parts

    @property
    def base(self) -> History:
        """The ratings before any were added."""
        base: History = self.__dict__["_base"]
        return base

    @cached_property
    def flat(self) -> History:
        """All ratings as one `History` in memory."""
        joined = self.base.flat
        for added in self.parts:
            joined = joined.joined(added, Table({}, "ratings", len(added)))
        return joined

    def __len__(self) -> int:
        return len(self.base) + sum(map(len, self.parts))

    def of_item(self, item: Any) -> Floats:
        """All ratings of one item, shape (n,), those that were added last."""
        return np.concatenate([part.of_item(item) for part in (self.base, *self.parts)])


def _ranges(
    starts: npt.NDArray[np.integer], users: npt.NDArray[np.integer]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Places of some users' ratings among those sorted by user, and where those of each user begin, (n + 1,)."""
    known = np.maximum(users, 0)
    sizes = np.where(users >= 0, starts[known + 1] - starts[known], 0)
    ends = np.concatenate([[0], np.cumsum(sizes)])
    within = np.arange(ends[-1]) - np.repeat(ends[:-1], sizes)
    return np.repeat(starts[known], sizes) + within, ends


def read_ratings(table: Table) -> tuple[Floats, list[list[Any]], list[npt.NDArray[np.intp]]]:
    """Ratings as numbers, and for users and items the distinct ids and their number in every row."""
    history = History.read(table)
    return history.rating, list(history.ids), [code.astype(np.intp) for code in history.codes]
