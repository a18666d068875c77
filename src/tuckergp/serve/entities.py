"""Users and items of a served model: ids from texts, titles, search and pages of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from tuckergp.data.history import Nobody
from tuckergp.data.tables import Table
from tuckergp.recommender.attributes import join, rows_by_id
from tuckergp.recommender.entities import Side
from tuckergp.recommender.questions import known_type
from tuckergp.recommender.titles import title_column
from tuckergp.serve.refusals import NotFound

__all__ = ["Entities", "Texts"]

# Up to so many ids, one that is alike is looked for where one is not known.
MOST_COMPARED = 10_000
# Ids that paths and JSON can have; others are known by their text.
SPELLED = (str, int)


class Texts:
    """What is searched of the ids that a model file has, made once per file: folds in share it."""

    def __init__(self, side: Side, table: Table | None) -> None:
        self.side, self.table = side, table

    @cached_property
    def title_column(self) -> str | None:
        """The column that says what entities are called."""
        return title_column(self.table)

    @cached_property
    def searched(self) -> list[str]:
        """Id and title of each id in small letters."""
        ids = self.side.base.values
        return [_searched(*pair) for pair in zip(ids, self.titles(ids, self.table, self.rows), strict=True)]

    @cached_property
    def by_text(self) -> dict[str, Any]:
        """Ids by their text, for those that are neither text nor integers."""
        return {str(value): value for value in self.side.base.values if type(value) not in SPELLED}

    @cached_property
    def rows(self) -> dict[Any, int]:
        """The row of each id in the attribute table."""
        return {} if self.table is None else rows_by_id(self.table, self.side.key)

    def titles(self, ids: Sequence[Any], table: Table | None, rows: Mapping[Any, int]) -> list[str | None]:
        """What some ids are called, by their rows in a table; None where nothing says so."""
        column = self.title_column
        if column is None or table is None:
            return [None] * len(ids)
        some = join(table.select([self.side.key, column]), self.side.key, ids, table.name, rows)
        return [None if title is None or title != title else str(title) for title in some[column].tolist()]


def _searched(value: Any, title: str | None) -> str:
    return f"{value}\n{title or ''}".casefold()


class Entities:
    """Users or items as they are now, those folded in included.

    Parameters
    ----------
    side : Side
    table : Table or None
        Their attributes.
    texts : Texts
        Of the ids that the file has.
    """

    def __init__(self, side: Side, table: Table | None, texts: Texts) -> None:
        self.side, self.table, self.texts = side, table, texts
        self.what = side.key.removesuffix("_id")

    def read_all(self, values: Sequence[Any]) -> list[Any]:
        """Ids of paths or bodies as the model spells them, known or not."""
        by_text, later = self.texts.by_text, self._later
        return [by_text.get(value, later.get(value, value)) if isinstance(value, str) else value
                for value in known_type(list(values), self.side)]  # fmt: skip

    @cached_property
    def _later(self) -> dict[str, Any]:
        """Ids by their text, for those that were added since and are neither text nor integers."""
        return {str(value): value for value in self.side.more if type(value) not in SPELLED}

    def read(self, value: Any) -> Any:
        """One id as the model spells it, known or not."""
        return self.read_all([value])[0]

    def known_all(self, values: Sequence[Any]) -> list[Any]:
        """Ids that must be known, as the model spells them."""
        ids = self.read_all(values)
        unknown = np.flatnonzero(self.side.numbers(ids) == self.side.unknown)
        if len(unknown):
            place = int(unknown[0])
            alike = self.side.alike(ids[place]) if len(self.side.base) <= MOST_COMPARED else None
            hint = "" if alike is None else f" Did you mean {alike!r}?"
            raise NotFound(f"The model knows no {self.what} {str(values[place])[:80]!r}.{hint}")
        return ids

    def known(self, value: Any) -> Any:
        """One id that must be known."""
        return self.known_all([value])[0]

    def titles(self, ids: Sequence[Any]) -> list[str | None]:
        """What some ids are called."""
        return self.texts.titles(ids, self.table, self._rows)

    @cached_property
    def _rows(self) -> dict[Any, int]:
        """The row of each id in the attribute table; that of the file is looked at once."""
        if self.table is None or self.table is self.texts.table:
            return self.texts.rows
        return rows_by_id(self.table, self.side.key)

    def cells(self, ids: Sequence[Any], columns: Sequence[str]) -> list[dict[str, Any]]:
        """What the attribute table has in some columns for each of some ids, None where nothing."""
        there = [] if self.table is None else [name for name in columns if name in self.table]
        nothing = dict.fromkeys(columns)
        if self.table is None or not there:
            return [nothing] * len(ids)
        rows = join(self.table.select([self.side.key, *there]), self.side.key, ids, self.table.name, self._rows)
        listed = [
            (v.astype("datetime64[us]") if v.dtype.kind == "M" else v).tolist() for v in map(rows.__getitem__, there)
        ]
        return [nothing | dict(zip(there, cells, strict=True)) for cells in zip(*listed, strict=True)]

    def described(self, ids: Sequence[Any]) -> list[dict[str, Any]]:
        """Id, title and attributes of each."""
        if self.table is None:
            return [{self.side.key: value, "title": None, "attributes": {}} for value in ids]
        rows = join(self.table, self.side.key, ids, self.table.name, self._rows)
        names = [name for name in rows.columns if name != self.side.key]
        columns = [rows[name].tolist() for name in names]
        return [
            {self.side.key: value, "title": title, "attributes": dict(zip(names, cells, strict=True))}
            for value, title, cells in zip(ids, self.titles(ids), zip(*columns, strict=True) if columns
                                           else ((),) * len(ids), strict=True)
        ]  # fmt: skip

    def page(self, text: str, offset: int, limit: int) -> tuple[int, list[Any]]:
        """How many ids there are whose id or title has this text in it, and some of them, in the order of the model."""
        if not text:
            total = int(np.count_nonzero(self.side.current))
            return total, list(islice(self._ids(), offset, offset + limit))
        found = self._found(text.casefold())
        return len(found), found[offset : offset + limit]

    def _ids(self) -> Iterable[Any]:
        """All known ids, those of the fit first."""
        yield from (value for value in self.side.base if not isinstance(value, Nobody))
        yield from (value for value in self.side.more if value not in self.side.base)

    def _found(self, text: str) -> list[Any]:
        base = self.side.base.values  # in the order of the texts, with nobody in place of those who were forgotten
        found = [base[k] for k, searched in enumerate(self.texts.searched) if text in searched]
        found = [value for value in found if not isinstance(value, Nobody)]
        later = [value for value in self.side.more if value not in self.side.base]
        pairs = zip(later, self.titles(later), strict=True)
        return [*found, *(value for value, title in pairs if text in _searched(value, title))]
