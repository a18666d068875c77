"""When and where something is rated: further modes that multiply tastes by a factor around 1.

`Drift` lets every user differ from week to week; `Context` lets all differ by device, place, hour. A time or a context
that is not known leaves things as they are on average.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tuckergp.data.columns import row_names
from tuckergp.data.history import TIMESTAMP
from tuckergp.data.periods import UNKNOWN, Unit, periods
from tuckergp.data.tables import Table
from tuckergp.kernels import Identity
from tuckergp.model.design import FittedMode, Mode
from tuckergp.model.mode_table import ModeTable
from tuckergp.recommender.attributes import Attributes

__all__ = ["Circumstance", "Context", "Drift"]

Ints = npt.NDArray[np.integer]

# Prior variance of the drift of a user in a period, relative to the user's average, and of what all share in a period.
DRIFT_VARIANCE = 0.04
SHARED_DRIFT = 0.2
# The same for a combination of context columns; each column has a share of it as attributes do.
CONTEXT_VARIANCE = 0.04
# What the combination of all context columns is called.
TOGETHER = "all context columns"


@dataclass(frozen=True)
class Drift:
    """Users in periods: f = sum_k u_k v_k t_k, where t is constant but for the user's drift and what all share."""

    unit: Unit
    name: ClassVar[str] = "user in period"

    def inputs(self, user: Ints, table: Table) -> Table:
        """Numbers of users and periods, a row a rating or question."""
        when = periods(table, TIMESTAMP, self.unit) if TIMESTAMP in table.columns else np.full(len(user), UNKNOWN)
        return Table({"user": user.astype(np.int64), "period": when}, table.name, len(user))

    def mode(self, rows: Table) -> Mode:
        """The mode of these inputs."""
        return Mode(list(rows.columns), DRIFT_VARIANCE * (Identity() + SHARED_DRIFT * Identity("period")))


@dataclass(frozen=True)
class Context:
    """Combinations of context columns: a factor for each, around the sum of a part for every column."""

    attributes: Attributes
    name: ClassVar[str] = "context"

    @classmethod
    def learn(cls, table: Table) -> Context:
        """Decide how to read each column."""
        return cls(Attributes.fit(TOGETHER, table))

    def inputs(self, user: Ints, table: Table) -> Table:
        """The columns read and the combination they make, a row a rating or question; what is not given is missing."""
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
    """One of them with its fitted mode, and the features of the average rating, (n,)."""

    reader: Drift | Context
    mode: FittedMode
    average: npt.NDArray[np.float64]

    def realise(self, user: Ints, table: Table) -> tuple[ModeTable, Ints]:
        """The distinct rows of the mode at some users and moments, and the row of each."""
        return self.mode.transform(self.reader.inputs(user, table))
