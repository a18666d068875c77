"""Drift over time and context of ratings, as further modes that multiply tastes by a factor around 1.

`Drift` lets each user differ from week to week; `Context` lets all users differ by device, place, hour. For an unknown
time or context the average is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tuckergp.data.columns import row_names
from tuckergp.data.history import TIMESTAMP
from tuckergp.data.periods import UNKNOWN, Unit, period_name, periods
from tuckergp.data.tables import Table
from tuckergp.kernels import Identity
from tuckergp.model.fitted_mode import FittedMode
from tuckergp.model.mode import Mode
from tuckergp.model.mode_table import ModeTable
from tuckergp.recommender.attributes import Attributes

__all__ = ["Circumstance", "Context", "Drift"]

Ints = npt.NDArray[np.integer]

# Prior variances of a user's drift in a period, relative to the user's average, and of the drift that all users share.
DRIFT_VARIANCE = 0.04
SHARED_DRIFT = 0.2
# The prior variance of a combination of context columns; single columns have shares of it, as attributes do.
CONTEXT_VARIANCE = 0.04
# The name of the column that combines all context columns.
TOGETHER = "all context columns"


@dataclass(frozen=True)
class Drift:
    """Users who drift over periods: f = sum_k u_k v_k t_k, where t is constant plus own and shared drift."""

    unit: Unit
    name: ClassVar[str] = "time"

    def inputs(self, user: Ints, table: Table) -> Table:
        """Numbers of users and periods, one row per rating or request."""
        when = periods(table, TIMESTAMP, self.unit) if TIMESTAMP in table.columns else np.full(len(user), UNKNOWN)
        return Table({"user": user.astype(np.int64), "period": when}, table.name, len(user))

    def when(self, table: Table) -> str:
        """The period of the first row in words; empty where it is not given."""
        (number,) = self.inputs(np.zeros(1, dtype=np.intp), table.take(np.zeros(1, dtype=np.intp)))["period"].tolist()
        return "" if number == UNKNOWN else period_name(number, self.unit)

    def mode(self, rows: Table) -> Mode:
        """The mode of these inputs."""
        return Mode(list(rows.columns), DRIFT_VARIANCE * (Identity() + SHARED_DRIFT * Identity("period")))


@dataclass(frozen=True)
class Context:
    """Context columns: each combination of values has a factor, around a sum of one part per column."""

    attributes: Attributes
    name: ClassVar[str] = "context"

    @classmethod
    def learn(cls, table: Table) -> Context:
        """Decide how to read each column."""
        return cls(Attributes.fit(TOGETHER, table))

    def inputs(self, user: Ints, table: Table) -> Table:
        """The encoded columns and their combination, one row per rating or request; missing where not given."""
        given = {
            name: table[name] if name in table.columns else np.full(len(user), None, dtype=object)
            for name in (attribute.column for attribute in self.attributes.used)
        }
        together = np.array(row_names(Table(given, table.name, len(user))), dtype=object)
        return self.attributes.encode(Table({self.attributes.key: together, **given}, table.name, len(user)))

    def mode(self, rows: Table) -> Mode:
        """The mode of these inputs."""
        return Mode(list(rows.columns), CONTEXT_VARIANCE * self.attributes.kernel(rows))


@dataclass(frozen=True)
class Circumstance:
    """Drift or context with its fitted mode, and the features of the average rating, (n,)."""

    reader: Drift | Context
    mode: FittedMode
    average: npt.NDArray[np.float64]

    def realise(self, user: Ints, table: Table) -> tuple[ModeTable, Ints]:
        """The distinct rows of the mode for some users and times, and the row of each."""
        return self.mode.transform(self.reader.inputs(user, table), joint=False)
