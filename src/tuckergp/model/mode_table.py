"""One mode as a table of M distinct inputs: their features, and the residual that the features do not explain."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuckergp.features.base import hstack, vstack
from tuckergp.linalg import Matrix
from tuckergp.residuals import NoResidual, Residual

__all__ = ["Index", "ModeTable"]

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int32]


@dataclass(frozen=True)
class ModeTable:
    """One mode at M distinct inputs: psi = features @ B + E.

    Attributes
    ----------
    features : ndarray or csr_array, shape (M, n)
    residual : Residual
        What is known of E at these inputs.
    constant : int or None
        Which column of `table` is the Constant term.
    blocks : tuple of slice
        The columns of `features` that belong to each kernel term; all of them in one block if not given.
    nested : int or None
        The block that is one-hot in groups of rows, such as the user of a user-week. Noise factors belong to groups.
    """

    features: Matrix
    residual: Residual = field(default_factory=NoResidual)
    constant: int | None = None
    blocks: tuple[slice, ...] = ()
    nested: int | None = None

    def __post_init__(self) -> None:
        if not self.blocks and self.features.shape[1]:
            object.__setattr__(self, "blocks", (slice(0, int(self.features.shape[1])),))

    def take(self, rows: npt.NDArray[np.integer]) -> ModeTable:
        """Some of the rows, in the order given."""
        return replace(self, features=self.features[rows], residual=self.residual.take(rows))

    def with_rows(self, rows: ModeTable, before: int) -> ModeTable:
        """The rows of another table of the same mode put before one of these."""
        order = np.insert(np.arange(self.n_rows), before, self.n_rows + np.arange(rows.n_rows))
        both = replace(
            self, features=vstack([self.features, rows.features]), residual=self.residual.joined(rows.residual)
        )
        return both.take(order)

    @property
    def n_rows(self) -> int:
        """M."""
        return int(self.features.shape[0])

    @cached_property
    def groups(self) -> Index:
        """The group of each row, (M,): the training row it is, or its column of the nested block; -1 for none."""
        groups = np.full(self.n_rows, -1, dtype=np.int32)
        if self.nested is None:
            return groups if self.residual.groups is None else self.residual.groups
        onehot = sparse.csr_array(sparse.csc_array(self.features)[:, self.blocks[self.nested]])
        groups[np.diff(onehot.indptr) > 0] = onehot.indices
        return groups

    @property
    def n_groups(self) -> int:
        """How many groups there are among the training rows; 0 where rows have no noise factors."""
        if self.nested is None or not self.residual.n_groups:
            return self.residual.n_groups
        return int(self.blocks[self.nested].stop - self.blocks[self.nested].start)

    @cached_property
    def table(self) -> Matrix:
        """Residual and features side by side: Phi of the weight-space model psi = Phi U."""
        columns = self.residual.columns()
        return self.features if columns is None else hstack([columns, self.features])

    @property
    def n_features(self) -> int:
        """Columns of `table`."""
        return int(self.features.shape[1]) + self.residual.n_columns
