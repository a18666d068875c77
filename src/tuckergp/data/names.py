"""The names of columns with users, items, ratings and times: the usual ones, others that are common, or those given.

Case, underscores and the like do not matter for common names. Columns without names (of arrays, lists of tuples, and
files without a header) are taken by their order.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from shlex import quote
from typing import Any

from tuckergp.data.frames import with_index
from tuckergp.data.id_types import ID_COLUMNS
from tuckergp.data.reading import no_column
from tuckergp.data.tables import Table, as_table, column_names
from tuckergp.errors import InputError

__all__ = [
    "COUNT",
    "KEYS",
    "RATING",
    "TIMESTAMP",
    "USUAL",
    "count_columns",
    "id_names",
    "missing_column",
    "named_table",
    "shown_names",
    "standard_names",
    "taken_names",
    "words",
]

KEYS = ID_COLUMNS
RATING = "rating"
TIMESTAMP = "timestamp"
COUNT = "count"
USUAL = (*KEYS, RATING, TIMESTAMP)

# Other names, in groups: one of the first group that a table has is taken.
_USERS = ("user", "customer", "reviewer", "visitor", "member", "account", "person", "reader", "listener")
_ITEMS = (
    *("item", "movie", "film", "video", "show", "anime", "track", "song", "artist", "book", "article", "game"),
    *("product", "recipe", "beer", "business", "restaurant", "hotel", "place", "course"),
)
COUNTS = frozenset({"play", "plays", "playcount", "count", "counts", "weight", "listens", "views", "quantity"})
COMMON: dict[str, tuple[frozenset[str], ...]] = {
    KEYS[0]: (frozenset({"uid", *(f"{name}id" for name in _USERS)}), frozenset(_USERS)),
    KEYS[1]: (frozenset({"iid", "isbn", "asin", "sku", *(f"{name}id" for name in _ITEMS)}), frozenset(_ITEMS)),
    RATING: (frozenset({"rating", "ratings", "score", "stars", "bookrating", "userrating", "overall"}),),
    TIMESTAMP: (frozenset({"timestamp", "ts", "date", "time", "datetime", "ratedat", "createdat", "unixreviewtime"}),),
    COUNT: (COUNTS,),
}
# The id of a table of users alone, or of items alone.
ONLY_ID = frozenset({"id"})
OPTIONS = {
    KEYS[0]: "--user-column",
    KEYS[1]: "--item-column",
    RATING: "--rating-column",
    TIMESTAMP: "--timestamp-column",
    COUNT: "--count-column",
}


def standard_names(table: Table, names: Mapping[str, str] | None) -> Table:
    """Rename the columns of a table to user_id, item_id, rating and timestamp; ``names`` maps these to the given names.

    Examples
    --------
    >>> from tuckergp.data.tables import as_table
    >>> table = as_table({"userId": [1], "item_id": [2]}, "ratings")
    >>> list(standard_names(table, {"user_id": "userId"}).columns)
    ['user_id', 'item_id']
    """
    if not names:
        return table
    _check_roles(names)
    usual_of = {theirs: usual for usual, theirs in names.items() if theirs in table.columns}
    for theirs, usual in usual_of.items():
        table = table.with_ids(theirs) if usual in KEYS else table
    replaced = set(usual_of.values()) - set(usual_of)
    columns = {usual_of.get(name, name): values for name, values in table.columns.items() if name not in replaced}
    return replace(table, columns=columns, ids=tuple(usual_of.get(name, name) for name in table.ids))


def id_names(names: Mapping[str, str] | None) -> dict[str, str]:
    """The names of the id columns alone, for attribute tables, which have no rating and no timestamp."""
    return {usual: theirs for usual, theirs in (names or {}).items() if usual in KEYS}


def named_table(data: Any, name: str, names: Mapping[str, str] | None, roles: Sequence[str] = USUAL) -> Table:
    """Read a table and give its columns the usual names.

    Parameters
    ----------
    data : any table that `as_table` reads
    name : str
        What messages call it.
    names : mapping or None
        The names of some columns; those that the table does not have are looked for as if they were not given.
    roles : sequence of str
        The usual names to look for.
    """
    data = with_index(data)
    taken = taken_names(*column_names(data, name), names, roles)
    return standard_names(as_table(data, name, ids=[taken.get(key, key) for key in KEYS]), taken)


def taken_names(
    existing: Sequence[str],
    name: str,
    names: Mapping[str, str] | None = None,
    roles: Sequence[str] = USUAL,
    without: Collection[str] = (),
    counts: bool = False,
) -> dict[str, str]:
    """The columns that hold users, items, ratings and times, by their usual names, where they have other names.

    Parameters
    ----------
    existing : sequence of str
        All columns of the table.
    name : str
        What messages call the table.
    names : mapping or None
        Names that are given.
    roles : sequence of str
        The usual names to look for.
    without : collection of str
        Columns that are used otherwise.
    counts : bool
        Whether counts may be taken where ratings are looked for.

    Examples
    --------
    >>> taken_names(["userId", "movieId", "rating"], "ratings.csv")
    {'user_id': 'userId', 'item_id': 'movieId'}
    """
    _check_roles(names or {})
    given = {usual: theirs for usual, theirs in (names or {}).items() if theirs in existing}
    free = [column for column in existing if column not in given.values() and column not in without]
    taken = dict(given)
    for usual in roles:
        if usual in given or usual in existing:
            continue
        groups = COMMON[usual] + ((COUNTS,) if usual == RATING and counts else ())
        groups += (ONLY_ID,) if usual in KEYS and len(set(KEYS) & set(roles)) == 1 else ()
        found = next((some for group in groups if (some := [c for c in free if plain(c) in group])), [])
        if len(found) > 1:
            raise _ambiguous(name, usual, found, existing)
        if found:
            taken[usual] = found[0]
    if not taken and _unnamed(existing) and len(existing) >= len(roles[:2]):
        return dict(zip(roles, existing, strict=False))
    return taken


def shown_names(names: Mapping[str, str] | None) -> dict[str, str]:
    """The names that answers have, by the usual ones: those of the tables, unless these are mere numbers.

    Examples
    --------
    >>> shown_names({"user_id": "userId", "item_id": "column_2"})
    {'user_id': 'userId'}
    """
    return {usual: theirs for usual, theirs in (names or {}).items() if not re.fullmatch(r"(column_)?\d+", theirs)}


def words(names: Mapping[str, str]) -> str:
    """Which columns were taken for what: ``userId as user_id, movieId as item_id``."""
    return ", ".join(f"{theirs} as {usual}" for usual, theirs in names.items())


def plain(name: str) -> str:
    """A name without case, spaces and signs."""
    return re.sub(r"[\W_]+", "", name).casefold()


def missing_column(name: str, usual: str, existing: Sequence[str], names: Mapping[str, str]) -> InputError:
    """The error for a table without a column that is needed, with what to write."""
    theirs = names.get(usual, usual)
    error = no_column(name, theirs, existing)
    if any(re.fullmatch(r"[-+]?\d+([.,]\d+)?", column) for column in existing):
        return InputError(f"{error} These look like values: write the names of the columns above them.")
    if len(existing) == 1 and not existing[0].isidentifier():
        return InputError(f"{error} The first line must name them all: remove what is above it, or say the delimiter.")
    known = frozenset[str]().union(*(group for groups in COMMON.values() for group in groups))
    others = {column for column in existing if column in USUAL or plain(column) in known} | set(names.values())
    free = next((column for column in existing if column not in others), "NAME")
    return InputError(f"{error} Say which it is: {_say(usual, free)}.")


def count_columns(existing: Sequence[str]) -> list[str]:
    """Columns that count something, such as plays."""
    return [column for column in existing if plain(column) in COUNTS]


def _ambiguous(name: str, usual: str, found: Sequence[str], existing: Sequence[str]) -> InputError:
    several = " or ".join(map(repr, found))
    return InputError(
        f"{name} may have {usual} in {several}; its columns are {', '.join(existing)}. "
        f"Say which it is: {_say(usual, found[0])}."
    )


def _say(usual: str, theirs: str) -> str:
    return f"columns={{{usual!r}: {theirs!r}}}, or {OPTIONS[usual]} {quote(theirs)}"


def _unnamed(existing: Sequence[str]) -> bool:
    """Whether columns are numbered, as this library does it, or pandas."""
    ours = [f"column_{k}" for k in range(1, len(existing) + 1)]
    return bool(existing) and list(existing) in (ours, [str(k) for k in range(len(existing))])


def _check_roles(names: Mapping[str, str]) -> None:
    for usual in names:
        if usual not in OPTIONS:
            raise InputError(f"columns gives other names for {', '.join(OPTIONS)}; it has {usual!r}.")
