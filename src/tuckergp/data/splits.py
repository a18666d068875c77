"""Ways to split a table of ratings into training and test data.

A splitter is a description: ``split(ratings)`` yields pairs of tables (train, test), the same ones every time. Rows
keep their order and all their columns.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from tuckergp.data.names import KEYS, TIMESTAMP, named_table
from tuckergp.data.parting import both, count_of, parted, refuse_missing, share_of, times_of
from tuckergp.data.periods import times_at
from tuckergp.data.tables import Table, as_table, distinct_rows
from tuckergp.errors import InputError
from tuckergp.random import stream

__all__ = [
    "ColdItems",
    "ColdUsers",
    "FoldColumn",
    "GivenParts",
    "Holdout",
    "KFold",
    "LastN",
    "Splitter",
    "TimeSplit",
    "UserHoldout",
    "holdout",
]

Parts: TypeAlias = Iterator[tuple[Table, Table]]
Ints: TypeAlias = npt.NDArray[np.intp]


class Splitter(Protocol):
    """The interface of all splitters."""

    def split(self, ratings: Any) -> Parts:
        """Yield (train, test)."""


def holdout(
    ratings: Table, *, test_size: float = 0.2, new_users: float = 0.0, new_items: float = 0.0, seed: int = 0
) -> tuple[Table, Table]:
    """Split ratings at random into a training and a test part.

    Parameters
    ----------
    ratings : Table
        With columns user_id and item_id.
    test_size : float
        Share of the ratings held out.
    new_users, new_items : float
        Share of the users and items of which all ratings are held out.
    seed : int

    Returns
    -------
    train, test : Table

    Examples
    --------
    >>> from tuckergp.datasets import make_ratings
    >>> ratings = make_ratings(n_users=50, n_items=40, n_ratings=800, random_state=0).train
    >>> train, test = holdout(ratings, test_size=0.25, new_users=0.1)
    >>> len(train) + len(test) == len(ratings)
    True
    """
    for name, share in (("test_size", test_size), ("new_users", new_users), ("new_items", new_items)):
        if not 0 <= share < 1:
            raise InputError(f"{name} must be a share from 0 to below 1, not {share!r}.")
    rng = stream(seed)
    held_out = rng.random(len(ratings)) < test_size
    for key, share in (("user_id", new_users), ("item_id", new_items)):
        ids, code = np.unique(ratings[key], return_inverse=True)
        chosen = np.zeros(len(ids), dtype=bool)
        chosen[rng.permutation(len(ids))[: round(share * len(ids))]] = True
        held_out |= chosen[code]
    return ratings.take(np.flatnonzero(~held_out)), ratings.take(np.flatnonzero(held_out))


@dataclass(frozen=True)
class Holdout:
    """A random share of the ratings, once, as a splitter: see `holdout`.

    Examples
    --------
    >>> from tuckergp.datasets import make_ratings
    >>> ratings = make_ratings(n_users=50, n_items=40, n_ratings=800, random_state=0).train
    >>> [len(train) > len(test) for train, test in Holdout(0.2).split(ratings)]
    [True]
    """

    test_size: float = 0.2
    new_users: float = 0.0
    new_items: float = 0.0
    seed: int = 0

    def split(self, ratings: Any) -> Parts:
        """Yield one (train, test)."""
        train, test = holdout(
            named_table(ratings, "ratings", None, KEYS),
            test_size=self.test_size,
            new_users=self.new_users,
            new_items=self.new_items,
            seed=self.seed,
        )
        yield both(train, test, "take more ratings, or another test_size")


@dataclass(frozen=True)
class KFold:
    """Ratings at random in ``n_folds`` parts whose sizes differ by at most one; each is the test part once.

    Examples
    --------
    >>> ratings = {"user_id": [1, 1, 2, 2, 3], "item_id": [1, 2, 1, 2, 1], "rating": [3.0, 4.0, 2.0, 5.0, 1.0]}
    >>> [(len(train), len(test)) for train, test in KFold(2).split(ratings)]
    [(2, 3), (3, 2)]
    """

    n_folds: int = 5
    seed: int = 0

    def split(self, ratings: Any) -> Parts:
        """Yield (train, test), ``n_folds`` of them."""
        table = named_table(ratings, "ratings", None, KEYS)
        n_folds = count_of(self.n_folds, "n_folds", least=2)
        if len(table) < n_folds:
            raise InputError(f"{table.name} has {len(table)} ratings, too few for {n_folds} folds.")
        fold = np.empty(len(table), dtype=np.intp)
        fold[stream(self.seed).permutation(len(table))] = np.arange(len(table)) % n_folds
        for number in range(n_folds):
            yield parted(table, fold == number)


@dataclass(frozen=True)
class FoldColumn:
    """Folds that are given by a column of the ratings.

    Parameters
    ----------
    column : str
    test : sequence or None
        The values whose rows are a test part, one after the other, with all other rows to train on; None for every
        value of the column. ``FoldColumn("part", test=["test"])`` is for a column that says train or test.

    Examples
    --------
    >>> ratings = {"user_id": [1, 1, 2], "item_id": [1, 2, 1], "rating": [3.0, 4.0, 2.0], "fold": [0, 1, 0]}
    >>> [test["item_id"].tolist() for train, test in FoldColumn().split(ratings)]
    [[1, 1], [2]]
    """

    column: str = "fold"
    test: Sequence[Hashable] | None = None

    def split(self, ratings: Any) -> Parts:
        """Yield (train, test), one for each fold."""
        table = as_table(ratings, "ratings")
        values = table[self.column]
        refuse_missing(table, self.column)
        first, code = distinct_rows(table, [self.column])
        names = values[first].tolist()
        if len(names) < 2:
            raise InputError(f"{table.name} column {self.column!r} has but one value, so that there is only one part.")
        if isinstance(self.test, str):
            raise InputError(f"test must be a list of values of column {self.column!r}: [{self.test!r}].")
        for name in names if self.test is None else self.test:
            if name not in names:
                raise InputError(f"{table.name} column {self.column!r} nowhere holds {name!r}.")
            yield parted(table, code == names.index(name))


@dataclass(frozen=True)
class GivenParts:
    """Training and test tables that are given, such as the official ones of a data set.

    Parameters
    ----------
    parts : sequence of (train, test)
        Tables of any kind that a recommender reads. For MovieLens 100K: ``[data.split(k) for k in range(1, 6)]``.

    Examples
    --------
    >>> train = {"user_id": [1, 2], "item_id": [1, 1], "rating": [3.0, 2.0]}
    >>> test = {"user_id": [1], "item_id": [2], "rating": [4.0]}
    >>> [(len(train), len(test)) for train, test in GivenParts([(train, test)]).split()]
    [(2, 1)]
    """

    parts: Iterable[tuple[Any, Any]]

    def __post_init__(self) -> None:
        parts = tuple(self.parts) if isinstance(self.parts, Iterable) else ()
        if not parts or any(not isinstance(pair, tuple | list) or len(pair) != 2 for pair in parts):
            raise InputError("parts must be a list of pairs (train, test) of tables, with at least one pair.")
        object.__setattr__(self, "parts", parts)

    def split(self, ratings: Any = None) -> Parts:
        """Yield the pairs; ``ratings`` must be None, because there is nothing to split."""
        if ratings is not None:
            raise InputError("The parts to train and test on are given, so that ratings must be None.")
        for train, test in self.parts:
            yield both(as_table(train, "train"), as_table(test, "test"), "give tables with ratings")


@dataclass(frozen=True)
class UserHoldout:
    """Some ratings of every user, at random.

    Parameters
    ----------
    n : int or None
        How many of each user. Users with fewer than ``n + keep`` ratings stay in the training part.
    share : float or None
        The share of each user's ratings instead, rounded to the nearest number that leaves at least ``keep``.
        0.2 where neither is given.
    keep : int
        The least number of ratings that a user has left to learn from.
    seed : int

    Examples
    --------
    >>> ratings = {"user_id": [1, 1, 2, 2, 3], "item_id": [1, 2, 1, 2, 1], "rating": [3.0, 4.0, 2.0, 5.0, 1.0]}
    >>> train, test = next(UserHoldout(n=1).split(ratings))
    >>> test["user_id"].tolist()
    [1, 2]
    """

    n: int | None = None
    share: float | None = None
    keep: int = 1
    seed: int = 0

    def split(self, ratings: Any) -> Parts:
        """Yield one (train, test)."""
        table = named_table(ratings, "ratings", None, KEYS)
        order = stream(self.seed).permutation(len(table))
        yield _last_of_users(table, order, self.n, self.share, self.keep)


@dataclass(frozen=True)
class LastN:
    """The latest ratings of every user; of those at the same time, the ones further down in the table.

    Parameters
    ----------
    n : int
        How many of each user. Users with fewer than ``n + keep`` ratings stay in the training part.
    keep : int
    column : str
        Numbers (in any unit), dates, or text such as ``1998-04-22 10:30``.

    Examples
    --------
    >>> ratings = {"user_id": [1, 1, 2], "item_id": [1, 2, 1], "rating": [3.0, 4.0, 2.0], "timestamp": [9, 5, 7]}
    >>> train, test = next(LastN(1).split(ratings))
    >>> test["item_id"].tolist()
    [1]
    """

    n: int = 1
    keep: int = 1
    column: str = TIMESTAMP

    def split(self, ratings: Any) -> Parts:
        """Yield one (train, test)."""
        table = named_table(ratings, "ratings", None, [*KEYS, *({TIMESTAMP} & {self.column})])
        order = np.argsort(times_of(table, self.column), kind="stable")
        yield _last_of_users(table, order, self.n, None, self.keep)


@dataclass(frozen=True)
class TimeSplit:
    """Train on all ratings before some time, test on those at that time or later.

    Parameters
    ----------
    share : float or None
        About this share of the ratings is tested on (more where several have the time of the cut). 0.2 where neither
        is given.
    at : number, text, date or None
        The time of the cut instead: ``"1998-03-01"``, or a number in the unit of the column.
    column : str

    Examples
    --------
    >>> ratings = {"user_id": [1, 1, 2], "item_id": [1, 2, 1], "rating": [3.0, 4.0, 2.0], "timestamp": [9, 5, 7]}
    >>> train, test = next(TimeSplit(at=7).split(ratings))
    >>> test["timestamp"].tolist()
    [9, 7]
    """

    share: float | None = None
    at: float | str | date | np.datetime64 | None = None
    column: str = TIMESTAMP

    def split(self, ratings: Any) -> Parts:
        """Yield one (train, test)."""
        table = named_table(ratings, "ratings", None, [*KEYS, *({TIMESTAMP} & {self.column})])
        if self.at is not None and self.share is not None:
            raise InputError("Give share or at, not both.")
        when = times_of(table, self.column)
        if self.at is None:
            share = share_of(0.2 if self.share is None else self.share, "share")
            late = when >= np.sort(when)[len(when) - max(1, round(share * len(when)))]
        elif isinstance(self.at, int | float | np.number) and table[self.column].dtype.kind in "iuf":
            late = when >= float(self.at)
        else:
            cut = as_table({self.column: [self.at]}, "at")
            late = times_at(table, self.column, np.arange(len(table))) >= times_at(cut, self.column, np.arange(1))
        yield both(*parted(table, late), "choose another time")


@dataclass(frozen=True)
class ColdUsers:
    """Test on all ratings of a random share of the users, of whom only attributes are known (cold start).

    Examples
    --------
    >>> ratings = {"user_id": [1, 1, 2, 2], "item_id": [1, 2, 1, 2], "rating": [3.0, 4.0, 2.0, 5.0]}
    >>> train, test = next(ColdUsers(0.5).split(ratings))
    >>> set(train["user_id"]) & set(test["user_id"])
    set()
    """

    share: float = 0.2
    seed: int = 0

    def split(self, ratings: Any) -> Parts:
        """Yield one (train, test)."""
        yield _cold(named_table(ratings, "ratings", None, KEYS), "user_id", self.share, self.seed)


@dataclass(frozen=True)
class ColdItems:
    """Test on all ratings of a random share of the items (cold start).

    Examples
    --------
    >>> ratings = {"user_id": [1, 1, 2, 2], "item_id": [1, 2, 1, 2], "rating": [3.0, 4.0, 2.0, 5.0]}
    >>> train, test = next(ColdItems(0.5).split(ratings))
    >>> set(train["item_id"]) & set(test["item_id"])
    set()
    """

    share: float = 0.2
    seed: int = 0

    def split(self, ratings: Any) -> Parts:
        """Yield one (train, test)."""
        yield _cold(named_table(ratings, "ratings", None, KEYS), "item_id", self.share, self.seed)


def _cold(table: Table, key: str, share: float, seed: int) -> tuple[Table, Table]:
    first, code = distinct_rows(table, [key])
    n_cold = max(1, round(share_of(share, "share") * len(first)))
    if len(first) <= n_cold:
        raise InputError(
            f"{table.name} has {len(first)} different values of {key!r}; holding out {n_cold} leaves none."
        )
    cold = np.zeros(len(first), dtype=bool)
    cold[stream(seed).permutation(len(first))[:n_cold]] = True
    return parted(table, cold[code])


def _last_of_users(table: Table, order: Ints, n: int | None, share: float | None, keep: int) -> tuple[Table, Table]:
    """Hold out the rows of each user that come last in ``order``."""
    if n is not None and share is not None:
        raise InputError("Give n or share, not both.")
    keep = count_of(keep, "keep", least=0)
    first, user = distinct_rows(table, ["user_id"])
    counts = np.bincount(user, minlength=len(first))
    if n is not None:
        held = np.where(counts >= count_of(n, "n", least=1) + keep, n, 0)
    else:
        wanted = np.rint(share_of(0.2 if share is None else share, "share") * counts).astype(np.intp)
        held = np.minimum(wanted, np.maximum(counts - keep, 0))
    if not held.any():
        raise InputError(
            f"No user of {table.name} has enough ratings to hold some out and keep {keep}: the most that one has is "
            f"{counts.max(initial=0)}."
        )
    by_user = order[np.argsort(user[order], kind="stable")]
    from_the_end = np.repeat(np.cumsum(counts), counts) - np.arange(len(table))  # 1 for the last of a user
    test = np.zeros(len(table), dtype=bool)
    test[by_user] = from_the_end <= held[user[by_user]]
    return both(*parted(table, test), "keep at least one rating of each user")
