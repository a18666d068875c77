"""Cholesky features: rows of L, where L L' is the Gram matrix of the distinct inputs (the paper's choice on grids).

Pivoted, so that a smooth kernel needs few columns and a singular one needs no jitter; extended to new inputs through
the pivots, phi(x) = k(x, pivots) L^-T.
"""

from __future__ import annotations

import numpy as np

from tuckergp.data.tables import Table
from tuckergp.features.base import FeatureMap, Features, Floats
from tuckergp.features.doubt import too_few_points
from tuckergp.features.new import NewFeatures
from tuckergp.features.pivoted import pivoted_cholesky
from tuckergp.features.points import distinct_inputs, fault_of_points, left_out, through
from tuckergp.kernels import Constant, Identity, Kernel, Linear

__all__ = ["Cholesky"]


class Cholesky(FeatureMap):
    """Pivoted Cholesky features, exact where they run to full rank.

    Parameters
    ----------
    tolerance : float
        Stop when no input has more than this share of the largest variance left unexplained.
    max_features : int, optional
        The most features.

    Attributes
    ----------
    pivots_ : Table
        The inputs that were chosen, n_features_ rows.

    Examples
    --------
    >>> from tuckergp.kernels import SE
    >>> x = np.linspace(0, 1, 5000)
    >>> features = Cholesky(tolerance=1e-6).fit(x, SE(0.5))
    >>> features.transform(x).shape[1] < 12
    True
    """

    pivots_: Table
    L_: Floats

    def __init__(self, tolerance: float = 1e-10, max_features: int | None = None) -> None:
        self.tolerance = tolerance
        self.max_features = max_features

    def suits(self, kernel: Kernel) -> bool:
        """Whether the kernel has no exact features."""
        return not isinstance(kernel, Identity | Constant | Linear)

    def _fit(self, table: Table, kernel: Kernel, rng: np.random.Generator) -> None:
        pivots, L = pivoted_cholesky(kernel, distinct_inputs(table, kernel), self.tolerance, self.max_features)
        self.pivots_, self.L_ = pivots, L
        self.n_features_ = len(L)

    def _transform(self, table: Table) -> Features:
        return through(self.kernel_, table, self.pivots_, self.L_)

    def fault(self) -> str | None:
        """It must have a root with as many rows as there are points."""
        return fault_of_points(self, getattr(self, "pivots_", None), getattr(self, "L_", None))

    def _new_features(self, table: Table, joint: bool) -> NewFeatures | None:
        return left_out(self.kernel_, table, self.pivots_, self.L_, joint)

    def _doubt(self, table: Table) -> str | None:
        return too_few_points(self, table, self.pivots_, self.L_, "max_features")
