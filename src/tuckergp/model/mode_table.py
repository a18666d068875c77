"""One mode as a table of M distinct inputs: their features, and the residual that the features do not explain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuckergp.features.base import hstack, vstack

__all__ = ["Index", "Line", "Matrix", "ModeTable"]

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int32]
Matrix = Floats | sparse.csr_array


@dataclass(frozen=True)
class Line:
    """Where the rows of a mode lie on the line of its chain residual, E ~ N(0, scale^2 K kron Lambda^-1).

    Attributes
    ----------
    knots : ndarray, shape (M_train,)
        The values of the training rows, sorted.
    t : ndarray, shape (M,)
        The values of the rows of this table, in their order.
    order : {1, 2, 3}
        Matern-1/2, -3/2, -5/2.
    lengthscale, scale : float
        The kernel's own; the scale is a standard deviation.
    learn : bool
        Whether the lengthscale is to be learned.
    """

    knots: Floats
    t: Floats
    order: int
    lengthscale: float
    scale: float
    learn: bool = True

    @cached_property
    def sorter(self) -> npt.NDArray[np.intp]:
        """The rows of a training table in the order of the knots."""
        return np.argsort(self.t, kind="stable")

    @cached_property
    def place(self) -> npt.NDArray[np.intp]:
        """The knot that each row is, -1 for values between and beyond them."""
        nearest = np.minimum(np.searchsorted(self.knots, self.t), len(self.knots) - 1)
        return np.where(self.knots[nearest] == self.t, nearest, -1)

    def to_rows(self, values: Floats) -> Floats:
        """Values at the knots, (M_train, ...), in the order of the rows of a training table."""
        out = np.empty_like(values)
        out[self.sorter] = values
        return out


@dataclass(frozen=True)
class ModeTable:
    """One mode at M distinct inputs: psi = features @ B + E, E = residual @ (rows) or a chain on a line, or nothing.

    Attributes
    ----------
    features : ndarray or csr_array, shape (M, n)
    residual : csr_array, shape (M, M_train), or None
        One-hot rows times the residual's scale; a zero row for an input never seen. None without a residual.
    constant : int or None
        Which column of `table` is the Constant term.
    blocks : tuple of slice
        The columns of `features` that belong to each kernel term; all of them in one block if not given.
    nested : int or None
        The block that is one-hot in groups of rows, such as the user of a user-week. Noise factors belong to groups.
    line : Line or None
        Of a chain residual; a mode has this or `residual` or neither.
    """

    features: Matrix
    residual: sparse.csr_array | None = None
    constant: int | None = None
    blocks: tuple[slice, ...] = ()
    nested: int | None = None
    line: Line | None = None

    def __post_init__(self) -> None:
        if not self.blocks and self.features.shape[1]:
            object.__setattr__(self, "blocks", (slice(0, int(self.features.shape[1])),))

    def take(self, rows: npt.NDArray[np.integer]) -> ModeTable:
        """Some of the rows, in the order given."""
        residual = None if self.residual is None else self.residual[rows]
        line = None if self.line is None else replace(self.line, t=self.line.t[rows])
        return replace(self, features=self.features[rows], residual=residual, line=line)

    def with_rows(self, rows: ModeTable, before: int) -> ModeTable:
        """The rows of another table of the same mode put before one of these."""
        order = np.insert(np.arange(self.n_rows), before, self.n_rows + np.arange(rows.n_rows))
        residual = None
        if self.residual is not None and rows.residual is not None:
            residual = sparse.csr_array(sparse.vstack([self.residual, rows.residual], format="csr"))
        return replace(self, features=vstack([self.features, rows.features]), residual=residual).take(order)

    @property
    def residual_scale(self) -> float:
        """The standard deviation that the residual's kernel gives its rows; 0 without a residual."""
        if self.line is not None:
            return self.line.scale
        return 0.0 if self.residual is None else float(self.residual.data[0])

    @property
    def n_rows(self) -> int:
        """M."""
        return int(self.features.shape[0])

    @cached_property
    def groups(self) -> Index:
        """The group of every row, (M,): the training row it is, or its column of the nested block; -1 for none."""
        if self.nested is not None:
            onehot = sparse.csr_array(sparse.csc_array(self.features)[:, self.blocks[self.nested]])
        elif self.residual is not None:
            onehot = self.residual
        else:
            return np.full(self.n_rows, -1, dtype=np.int32)
        groups = np.full(self.n_rows, -1, dtype=np.int32)
        groups[np.diff(onehot.indptr) > 0] = onehot.indices
        return groups

    @property
    def n_groups(self) -> int:
        """How many groups there are among the training rows; 0 without a residual."""
        if self.residual is None:
            return 0
        if self.nested is None:
            return int(self.residual.shape[1])
        return int(self.blocks[self.nested].stop - self.blocks[self.nested].start)

    @cached_property
    def table(self) -> Matrix:
        """Residual and features side by side: Phi of the weight-space model psi = Phi U (without a chain)."""
        if self.residual is None:
            return self.features
        return hstack([self.residual, self.features])

    @property
    def n_features(self) -> int:
        """Columns of `table`."""
        return int(self.features.shape[1]) + (0 if self.residual is None else int(self.residual.shape[1]))
