"""The mark for an Identity term that is kept as independent rows instead of becoming features."""

from __future__ import annotations

from copy import copy
from typing import ClassVar, Self

import numpy as np
from scipy import sparse

from tuckergp.data.tables import Table
from tuckergp.features.base import ResidualMap
from tuckergp.features.exact import Exact
from tuckergp.kernels import Identity, Kernel
from tuckergp.residuals import rows as residuals

__all__ = ["Rows"]


class Rows(ResidualMap):
    """Keep an Identity term as the residual of its mode: a free row for each input, solved row by row.

    `tuckergp.Mode` chooses it by itself for an Identity term that tells all inputs apart; naming it insists on that.

    Attributes
    ----------
    onehot_ : Exact
        Tells which training row an input is.

    Examples
    --------
    >>> from tuckergp import Mode
    >>> Mode("user_id", Identity(), features=Rows()).features
    Rows()
    """

    in_weight_space: ClassVar[bool] = True
    onehot_: Exact

    def suits(self, kernel: Kernel) -> bool:
        """Whether the kernel is an Identity."""
        return isinstance(kernel, Identity)

    def serves(self, kernel: Kernel, table: Table) -> bool:
        """Whether the kernel is an Identity that tells all inputs apart."""
        return self.suits(kernel) and Exact().fit(table, kernel).n_features_ == len(table)

    def _fit(self, table: Table, kernel: Kernel, rng: np.random.Generator) -> None:
        self.onehot_ = Exact().fit(table, kernel)
        self.n_features_ = 0

    def at(self, table: Table, scale: float) -> residuals.Rows:
        """Which training row each row of a table is."""
        return residuals.Rows.of_onehot(sparse.csr_array(self.onehot_.transform(table)), scale)

    def with_rows(self, table: Table) -> Self:
        """The same training rows, and one more for each row of ``table``, none of which it knows."""
        more = copy(self)
        more.onehot_ = self.onehot_.with_rows(table)
        return more

    def refusal(self, term: Kernel, mode: str) -> str:
        """The term is no Identity that tells all inputs apart."""
        return (
            f"Rows() is for one Identity term that tells all inputs of the mode apart; {term!r} of mode {mode!r} is "
            f"not."
        )
