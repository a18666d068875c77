"""Data sets as people see them: their tables and other numbers, one after the other."""

from __future__ import annotations

from dataclasses import fields

from tuckergp.data.tables import Table
from tuckergp.showing import Shown

__all__ = ["DataSet"]


class DataSet(Shown):
    """A base class of data sets, which are dataclasses: its text has the first rows of each table."""

    def __str__(self) -> str:
        shown = {each.name: getattr(self, each.name) for each in fields(self) if each.repr}  # type: ignore[arg-type]
        tables = [f"\n{name} = {value}" for name, value in shown.items() if isinstance(value, Table)]
        others = [f"{name} = {value}" for name, value in shown.items() if isinstance(value, float)]
        return "\n".join([type(self).__name__, *others, *tables])
