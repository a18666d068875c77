"""Reads the user's tables: they get the usual column names, and ratings become a `History`.

Ids, files and data frames are read in `tuckergp.data`; the use of attributes is decided in
`tuckergp.recommender.decisions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tuckergp.data.history import KEYS, RATING, TIMESTAMP, History, id_names, standard_names
from tuckergp.data.tables import Table, as_table
from tuckergp.errors import InputError
from tuckergp.likelihoods import LIKELIHOODS
from tuckergp.likelihoods.base import Label
from tuckergp.recommender.layout import SIDES, Layout
from tuckergp.recommender.settings import RecommenderSettings

__all__ = ["Attributes", "Given", "attribute_tables", "pairs_table", "rating_label", "ratings_table", "read_history"]

Attributes: TypeAlias = tuple[Table | None, Table | None]


class Given(NamedTuple):
    """The tables given to `fit`, `fold_in` and `partial_fit`: ratings, and attributes of users and of items."""

    ratings: Any
    users: Any = None
    items: Any = None


def ratings_table(ratings: Any, settings: RecommenderSettings) -> Table:
    """The columns of ratings that are needed to learn from them, by their usual names."""
    names = settings.columns or {}
    wanted = [*KEYS, RATING, TIMESTAMP, *names.values()]
    table = as_table(ratings, "ratings", settings.contexts, wanted, [names.get(key, key) for key in KEYS])
    renamed = standard_names(table, names)
    for usual in dict.fromkeys((*KEYS, *names)):
        if usual not in renamed.columns:
            table[names.get(usual, usual)]  # says that there is none
    return renamed


def attribute_tables(given: Given, settings: RecommenderSettings) -> Attributes:
    """The attribute tables of users and items, with the usual names of ids; None without side information."""
    read = [
        None
        if source is None or not settings.side_information
        else standard_names(as_table(source, name), id_names(settings.columns))
        for source, name in zip((given.users, given.items), SIDES, strict=True)
    ]
    return read[0], read[1]


def pairs_table(pairs: Any, names: Mapping[str, str] | None, layout: Layout) -> Table:
    """Read pairs to predict, by the usual names; warn of ids that cannot have the type of the known ones."""
    table = layout.aligned(standard_names(as_table(pairs, "pairs"), names))
    for side in layout.sides:
        side.warn_of_other_types(table)
    return table


def read_history(table: Table, settings: RecommenderSettings) -> History:
    """Read ratings, or clicks, as numbers; times are kept where given and where drift is not ruled out."""
    clicks = _are_clicks(table, settings)
    if clicks and settings.rating_scale is not None:
        raise InputError("rating_scale is for ratings, and there are clicks alone; leave it out.")
    timed = settings.time is not None and TIMESTAMP in table.columns
    occasion = [*([TIMESTAMP] if timed else []), *settings.contexts]
    history = History.read(table, occasion, clicks, settings.rating_scale, settings.duplicates)
    if not clicks:
        kind, ratings = LIKELIHOODS[settings.likelihood], table.numeric(RATING)
        kind.check(ratings, rating_label(table))
        if settings.duplicates == "mean" and not kind.averages and not np.isin(history.rating, ratings).all():
            kind.refuse_means()
    return history


def rating_label(table: Table) -> Label:
    """A function that names a row of the table of ratings in messages."""
    return lambda row: f"{table.name} column {RATING!r} at {table.row_label(row)}"


def _are_clicks(table: Table, settings: RecommenderSettings) -> bool:
    """Whether a table has clicks, pairs without ratings; an error where the likelihood cannot learn from them."""
    if RATING in table.columns:
        return False
    if not LIKELIHOODS[settings.likelihood].clicks:
        listed = ", ".join(map(str, table.columns)) or "none"
        able = " or ".join(repr(name) for name, kind in LIKELIHOODS.items() if kind.clicks)
        raise InputError(
            f"{table.name} has no column {(settings.columns or {}).get(RATING, RATING)!r}; its columns are {listed}. "
            f"For clicks, which have no ratings, use likelihood={able}."
        )
    return True
