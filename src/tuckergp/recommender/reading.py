"""Reads the user's tables: they get the usual column names, and ratings become a `History`.

Ids, files and data frames are read in `tuckergp.data`; the use of attributes is decided in
`tuckergp.recommender.decisions`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tuckergp.data.frames import with_index
from tuckergp.data.history import KEYS, RATING, TIMESTAMP, History
from tuckergp.data.names import (
    COUNT,
    USUAL,
    count_columns,
    id_names,
    missing_column,
    named_table,
    standard_names,
    taken_names,
)
from tuckergp.data.periods import times
from tuckergp.data.tables import Table, as_table, column_names
from tuckergp.errors import DataWarning, InputError
from tuckergp.likelihoods import LIKELIHOODS
from tuckergp.likelihoods.given import Label
from tuckergp.likelihoods.standardised import LARGEST
from tuckergp.recommender.layout import SIDES, Layout
from tuckergp.recommender.settings import LIKELIHOOD, RecommenderSettings

__all__ = [
    "AttributeTables",
    "Given",
    "attribute_tables",
    "pairs_table",
    "rating_label",
    "ratings_table",
    "read_history",
]

AttributeTables: TypeAlias = tuple[Table | None, Table | None]


class Given(NamedTuple):
    """The tables given to `fit`, `fold_in` and `partial_fit`: ratings, and attributes of users and of items."""

    ratings: Any
    users: Any = None
    items: Any = None


def ratings_table(ratings: Any, settings: RecommenderSettings) -> tuple[Table, dict[str, str], RecommenderSettings]:
    """The columns of ratings that are needed to learn from them, by their usual names, and the names that they had.

    Also the settings with the likelihood that ``"auto"`` means for this table.
    """
    ratings = with_index(ratings)
    existing, name = column_names(ratings, "ratings")
    given = settings.columns or {}
    kind = settings.kind
    roles = USUAL[: 3 if settings.time is None else 4]
    taken = taken_names(existing, name, given, roles, settings.contexts, kind.counts)
    rated = RATING in taken or RATING in existing
    settings = settings.decided(rated)
    if settings.kind.all_pairs:  # every row is a choice, whatever its rating
        kind, rated = settings.kind, True
        roles = tuple(COUNT if role == RATING else role for role in roles)
        taken = taken_names(existing, name, given, roles, settings.contexts)
    renamed = existing if isinstance(ratings, Table) else ()  # evaluation gives a table of its own the usual names
    for usual in dict.fromkeys((*KEYS, *given)):
        if given.get(usual, usual) not in existing and usual not in (renamed if usual in given else taken):
            raise missing_column(name, usual, existing, given)
    if not rated and not kind.clicks:
        raise _no_ratings(name, existing)
    names = {usual: taken.get(usual, usual) for usual in roles}
    table = as_table(ratings, "ratings", settings.contexts, list(names.values()), [names[key] for key in KEYS])
    table = _with_times(standard_names(table, taken), settings)
    if kind.all_pairs:
        table = table.select(name for name in table.columns if name != RATING)
    return table, taken, settings


def _with_times(table: Table, settings: RecommenderSettings) -> Table:
    """Ratings with times where they can be read; if not, and if it was not asked for them, they are left out."""
    if settings.time != "auto" or TIMESTAMP not in table or TIMESTAMP in settings.contexts:
        return table
    try:
        read = {TIMESTAMP: times(table, TIMESTAMP)}
    except InputError as error:
        warnings.warn(f"{error} The times are left out: time='auto' means None here.", DataWarning, stacklevel=2)
        read = {}
    others = {name: values for name, values in table.columns.items() if name != TIMESTAMP}
    return replace(table, columns={**others, **read})


def _no_ratings(name: str, existing: Sequence[str]) -> InputError:
    """The error for a table without ratings and a likelihood that needs them."""
    able = " or ".join(repr(name) for name, kind in LIKELIHOODS.items() if kind.clicks)
    counts = count_columns(existing)
    if counts:
        counting = " or ".join(repr(n) for n, kind in LIKELIHOODS.items() if kind.counts and LIKELIHOOD.holds(n))
        return InputError(
            f"{name} has no column {RATING!r}, and {counts[0]!r} holds counts, which are no ratings: learn from them "
            f"with likelihood={counting}, or from the pairs alone, as clicks, with likelihood={able}."
        )
    error = missing_column(name, RATING, existing, {})
    return InputError(f"{error} For clicks, which have no ratings, use likelihood={able}.")


def attribute_tables(given: Given, settings: RecommenderSettings, names: Mapping[str, str] | None) -> AttributeTables:
    """The attribute tables of users and items, with the usual names of ids; None without side information."""
    read = [
        None if source is None or not settings.side_information else named_table(source, name, id_names(names), [key])
        for source, name, key in zip((given.users, given.items), SIDES, KEYS, strict=True)
    ]
    return read[0], read[1]


def pairs_table(pairs: Any, names: Mapping[str, str] | None, layout: Layout, warn: bool = True) -> Table:
    """Read pairs to predict, by the usual names; with ``warn``, warn of unknown ids."""
    table = layout.aligned(named_table(pairs, "pairs", names))
    if warn:
        for side in layout.sides:
            side.warn_of_unknown(table)
    return table


def read_history(table: Table, settings: RecommenderSettings) -> History:
    """Read ratings, or clicks, as numbers; times are kept where given and where drift is not ruled out."""
    clicks = RATING not in table.columns
    if clicks and settings.rating_scale is not None:
        raise InputError("rating_scale is for ratings, and there are clicks alone; leave it out.")
    timed = settings.time is not None and TIMESTAMP in table.columns
    occasion = [*([TIMESTAMP] if timed else []), *settings.contexts]
    history = History.read(table, occasion, clicks, settings.rating_scale, settings.duplicates)
    if not clicks:
        kind, ratings = settings.kind, table.numeric(RATING)
        large = np.abs(ratings) > LARGEST
        if large.any():
            row = int(np.argmax(large))
            raise InputError(
                f"{rating_label(table)(row)} is {ratings[row]:g}, which is too large; divide the ratings by a number."
            )
        kind.check(ratings, rating_label(table))
        if settings.duplicates == "mean" and not kind.averages and not np.isin(history.rating, ratings).all():
            kind.refuse_means()
    return history.together()


def rating_label(table: Table) -> Label:
    """A function that names a row of the table of ratings in messages."""
    return lambda row: f"{table.name} column {RATING!r} at {table.row_label(row)}"
