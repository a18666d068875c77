"""Nystrom features (Williams and Seeger, 2001): any kernel through n points, phi(x) = k(x, points) L^-T.

Never larger than the kernel: k minus its approximation is positive semi-definite, and zero at the points.
"""

from __future__ import annotations

import numpy as np

from tuckergp.data.columns import numbers
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.features.base import FeatureMap, Features, Floats
from tuckergp.features.doubt import too_few_points
from tuckergp.features.new import NewFeatures
from tuckergp.features.pivoted import pivoted_cholesky
from tuckergp.features.points import distinct_inputs, fault_of_points, left_out, through
from tuckergp.kernels import Constant, Identity, Kernel, Linear
from tuckergp.linalg import safe_cholesky

__all__ = ["Nystrom"]

ROWS_PER_CENTRE = 100
"""k-means uses no more than this many inputs for each of its centres."""


class Nystrom(FeatureMap):
    """Nystrom features through n points; through all distinct inputs where there are no more than n.

    Parameters
    ----------
    n : int
        Number of points.
    points : {"kmeans", "random", "greedy"}
        Centres of clusters (numeric columns only), distinct inputs at random, or the pivots of `Cholesky`.

    Attributes
    ----------
    points_ : Table
        The points, n_features_ rows.

    Examples
    --------
    >>> from tuckergp.kernels import SE
    >>> X = np.random.default_rng(0).uniform(size=(500, 2))
    >>> features = Nystrom(n=40).fit(X, SE(0.5), random_state=0)
    >>> bool(np.abs(features.gram(X) - SE(0.5)(X)).max() < 0.02)
    True
    """

    points_: Table
    L_: Floats

    def __init__(self, n: int = 100, points: str = "kmeans") -> None:
        self.n = n
        self.points = points

    def suits(self, kernel: Kernel) -> bool:
        """Whether the kernel has no exact features."""
        return not isinstance(kernel, Identity | Constant | Linear)

    def _fit(self, table: Table, kernel: Kernel, rng: np.random.Generator) -> None:
        if self.n < 1:
            raise InputError(f"{self!r} must have at least one point.")
        if self.points not in ("kmeans", "random", "greedy"):
            raise InputError(f"The points of Nystrom features must be kmeans, random or greedy; got {self.points!r}.")
        inputs = distinct_inputs(table, kernel)
        if self.points == "greedy":
            self.points_, self.L_ = pivoted_cholesky(kernel, inputs, 0.0, self.n)
        else:
            if len(inputs) <= self.n:
                self.points_ = inputs
            elif self.points == "random":
                self.points_ = inputs.take(rng.choice(len(inputs), self.n, replace=False))
            else:
                self.points_ = _centres(inputs, self.n, rng)
            self.L_ = safe_cholesky(kernel(self.points_), f"the Gram matrix of {kernel!r} at the Nystrom points")
        self.n_features_ = len(self.L_)

    def fault(self) -> str | None:
        """It must have a root with as many rows as there are points."""
        return fault_of_points(self, getattr(self, "points_", None), getattr(self, "L_", None))

    def _transform(self, table: Table) -> Features:
        return through(self.kernel_, table, self.points_, self.L_)

    def _new_features(self, table: Table, joint: bool) -> NewFeatures | None:
        return left_out(self.kernel_, table, self.points_, self.L_, joint)

    def _doubt(self, table: Table) -> str | None:
        return too_few_points(self, table, self.points_, self.L_, "n")


def _centres(inputs: Table, n: int, rng: np.random.Generator) -> Table:
    """Centres of k-means on standardised columns."""
    names = list(inputs.columns)
    x = numbers(inputs, names)
    x = x[rng.choice(len(x), min(len(x), ROWS_PER_CENTRE * n), replace=False)]
    scale = np.where(np.ptp(x, axis=0) > 0, x.std(axis=0), 1.0)
    from sklearn.cluster import KMeans  # half a second to import, and seldom needed

    clusters = KMeans(n, n_init=1, random_state=int(rng.integers(2**31))).fit(x / scale)
    centres = clusters.cluster_centers_ * scale
    return Table({name: centres[:, j] for j, name in enumerate(names)}, inputs.name, n)
