"""Ratings in scratch files, which are sorted there as well: a piece at a time is in memory."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tuckergp.data.history import History, SortedHistory
from tuckergp.data.tables import Table
from tuckergp.scratch import counts, empty, in_files

__all__ = ["FiledHistory"]

# Ratings that are sorted at a time.
ROWS = 2**20


@dataclass(frozen=True)
class FiledHistory(History):
    """A `History` without times and contexts whose arrays are scratch files.

    Attributes
    ----------
    folder : Path
        For more of them; where it is gone, ratings are sorted in memory.
    """

    folder: Path = Path()

    def sorted(self) -> SortedHistory:
        """The same ratings sorted by user, in files."""
        return self._sorted

    @cached_property
    def _sorted(self) -> SortedHistory:
        user, n = self.codes[0], len(self)
        starts = np.concatenate([[0], np.cumsum(counts(user, len(self.ids[0])))])
        with in_files(self.folder) if self.folder.is_dir() else nullcontext():
            item, rating = empty(n, np.int32), empty(n)
            place = empty(n, np.min_scalar_type(-n))
        free = starts[:-1].copy()
        for first in range(0, n, ROWS):
            mine = np.asarray(user[first : first + ROWS])
            order = np.argsort(mine, kind="stable")
            distinct, begin, size = np.unique(mine[order], return_index=True, return_counts=True)
            to = np.repeat(free[distinct] - begin, size) + np.arange(len(mine))
            free[distinct] += size
            item[to], rating[to], place[to] = self.codes[1][first + order], self.rating[first + order], first + order
        return SortedHistory(self.ids, starts, item, rating, Table({}, self.occasion.name, n), place, self.clicks)

    def items_of(self, users: npt.NDArray[np.integer]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.intp]]:
        """Numbers of the items that some users rated, and where those of each user begin."""
        return self._sorted.items_of(users)

    def of_users(self, users: npt.NDArray[np.integer]) -> History:
        """The ratings of some users, one user after the other, with only their ids."""
        return self._sorted.of_users(users)

    @cached_property
    def ratings_per_item(self) -> npt.NDArray[np.intp]:
        """The number of ratings of each item, shape (n_items,)."""
        return counts(self.codes[1], len(self.ids[1]))
