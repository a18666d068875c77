"""The mark for an Identity term that is kept as independent rows instead of becoming features."""

from __future__ import annotations

from copy import copy
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuckergp.data.columns import row_keys
from tuckergp.data.tables import Table
from tuckergp.features.base import ResidualMap, Shapes
from tuckergp.features.exact import Exact
from tuckergp.kernels import Identity, Kernel
from tuckergp.residuals import rows as residuals

__all__ = ["Rows"]


class Rows(ResidualMap):
    """Keep an Identity term as the residual of its mode: a free row for each input, solved row by row.

    `tuckergp.Mode` chooses it by itself for an Identity term that tells all inputs apart; elsewhere it is an error.

    Attributes
    ----------
    onehot_ : Exact
        One-hot features that tell which training row an input is.
    column_ : ndarray of int32
        The column of each training row.

    Examples
    --------
    >>> from tuckergp import Mode
    >>> Mode("user_id", Identity(), features=Rows()).features
    Rows()
    """

    in_weight_space: ClassVar[bool] = True
    onehot_: Exact
    column_: npt.NDArray[np.int32]

    def suits(self, kernel: Kernel) -> bool:
        """Whether the kernel is an Identity."""
        return isinstance(kernel, Identity)

    def serves(self, kernel: Kernel, table: Table) -> bool:
        """Whether the kernel is an Identity that tells all inputs apart."""
        return self.suits(kernel) and Exact().fit(table, kernel).n_features_ == len(table)

    def _fit(self, table: Table, kernel: Kernel, rng: np.random.Generator) -> None:
        self.onehot_ = Exact().fit(table, kernel)
        self.onehot_.feature_names_ = []  # one name for each row, which are not needed
        self.column_ = sparse.csr_array(self.onehot_.transform(table)).indices.astype(np.int32)
        self.n_features_ = 0

    def at(self, table: Table, sd: float) -> residuals.Rows:
        """The residual at the rows of a table: which training row each of them is."""
        onehot = sparse.csr_array(self.onehot_.transform(table))
        row_of = np.empty(len(self.column_), dtype=np.int32)
        row_of[self.column_] = np.arange(len(self.column_))
        place = np.full(len(table), -1, dtype=np.int32)
        place[np.diff(onehot.indptr) > 0] = row_of[onehot.indices]
        new, names = np.flatnonzero(place < 0), None
        if len(new):
            names = np.zeros(len(table), dtype=np.uint64)
            names[new] = row_keys(table.take(new).select(self.kernel_.reads(list(table.columns))))
        return residuals.Rows(place, len(self.column_), sd, self.column_, names)

    @property
    def n_groups(self) -> int:
        """How many training rows may have noise factors: all."""
        return len(self.column_)

    def kept(self, r: int) -> tuple[Shapes, Shapes]:
        """The shapes of what draws keep: the factors of the training rows."""
        return {"psi": (len(self.column_), r)}, {}

    def of_rows(self, table: Table) -> Self:
        """The same mark for other training rows, those of ``table``."""
        other = copy(self)
        other._fit(table, self.kernel_, np.random.default_rng())
        return other

    def fault(self) -> str | None:
        """Training rows must have the columns 0, 1, ..., each once."""
        if not hasattr(self, "column_") or not hasattr(self, "onehot_"):
            return "its rows are not numbered"
        column, count = np.asarray(self.column_), self.onehot_.n_features_
        if column.dtype.kind not in "iu" or column.shape != (count,):  # before anything of that size is made
            return "its rows are not numbered"
        numbered = np.zeros(count, dtype=np.bool_)
        numbered[column[(column >= 0) & (column < count)]] = True
        return None if numbered.all() else "its rows are not numbered"

    def refusal(self, term: Kernel, mode: str) -> str:
        """The message for a term that is no Identity that tells all inputs apart."""
        return (
            f"Rows() is for one Identity term that tells all inputs of the mode apart; {term!r} of mode {mode!r} is "
            f"not."
        )
