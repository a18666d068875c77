"""Cholesky features: rows of L, where L L' is the Gram matrix of the distinct inputs (the paper's choice on grids).

Pivoted, so that a smooth kernel needs few columns and a singular one needs no jitter; extended to new inputs through
the pivots, phi(x) = k(x, pivots) L^-T.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from tuckergp.data.columns import distinct, row_keys
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.features.base import FeatureMap, Features, Floats
from tuckergp.features.new import NewFeatures
from tuckergp.kernels import Constant, Identity, Kernel, Linear
from tuckergp.linalg import NEGATIVE, no_kernel

__all__ = ["Cholesky", "pivoted_cholesky"]

GRAM_ROWS = 2000
"""Up to here the whole Gram matrix (32 MB) goes to LAPACK; beyond, columns are computed as they are needed."""

EXPLAINED = 1e-6
"""Less than this share of k(x, x) is taken for a rounding error of the features."""

LARGEST_LOSS = 0.1
"""The share of the variance at training inputs beyond which features are too few."""

INSPECTED = 500
"""At how many inputs that is judged at the most."""

LARGEST_JOINT = 4_000_000
"""The most entries of the factors of covariances of what features leave out: 2,000 inputs jointly, more in groups."""


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
        return too_few(self, table, self.pivots_, self.L_, "max_features")


def distinct_inputs(table: Table, kernel: Kernel) -> Table:
    """The distinct rows of the columns that a kernel reads."""
    selected = table.select(kernel.reads(list(table.columns)))
    first, _ = distinct(selected)
    return selected.take(first)


def through(kernel: Kernel, table: Table, points: Table, L: Floats) -> Floats:
    """phi(x) = k(x, points) L^-T, with L L' = k(points, points); shape (n, n_points)."""
    if len(L) == 0:
        return np.zeros((len(table), 0))
    phi: Floats = solve_triangular(L, kernel(points, table), lower=True, check_finite=False)
    return np.ascontiguousarray(phi.T)


def left_out(kernel: Kernel, table: Table, points: Table, L: Floats, joint: bool) -> NewFeatures | None:
    """What `through` leaves out of the kernel at some inputs: roots of k(x, x') - phi(x)'phi(x').

    Jointly for up to 2,000 distinct inputs. More are taken in groups that lie near the same points, smaller the more
    there are, and correlations between groups are left out; so are all of them without ``joint``.
    """
    selected = table.select(kernel.reads(list(table.columns)))
    first, code = distinct(selected)
    inputs = selected.take(first)
    phi, variance = through(kernel, inputs, points, L), kernel.diag(inputs)
    missing = variance - (phi**2).sum(axis=1)
    rows = np.flatnonzero(missing > EXPLAINED * variance)
    size = LARGEST_JOINT // max(len(rows), 1)
    if joint and size > 1:
        # inputs near the same points become neighbours; k(x, points) = phi(x) L'
        rows = rows[np.argsort(np.argmax(phi[rows] @ L.T, axis=1), kind="stable")] if len(L) else rows
        groups = np.split(rows, range(size, len(rows), size))
        parts = [_root(kernel(inputs.take(group)) - phi[group] @ phi[group].T) for group in groups]
        named = np.concatenate([group[pivots] for group, (_, pivots) in zip(groups, parts, strict=True)])
        root = sparse.csr_array(sparse.block_diag([root for root, _ in parts], format="csr"))
    else:
        root, named = sparse.csr_array(sparse.diags_array(np.sqrt(missing[rows]))), rows
    new = NewFeatures.of(root, row_keys(inputs.take(named)))
    return None if new is None else new.put(rows, len(inputs)).take(code)


def _root(C: Floats) -> tuple[Floats, npt.NDArray[np.intp]]:
    """R (m, k) with R R' = C (m, m), positive semi-definite but for rounding errors, and the pivots (k,) of it."""
    factor, order, rank, _ = dpstrf(C, tol=EXPLAINED * float(C.diagonal().max(initial=0.0)), lower=1)
    root = np.empty((len(C), rank))
    root[order - 1] = np.tril(factor)[:, :rank]
    return root, order[:rank].astype(np.intp) - 1


def too_few(features: FeatureMap, table: Table, points: Table, L: Floats, number: str) -> str | None:
    """A sentence about points that leave out more than a tenth of the variance at inputs like these; else None."""
    inputs = spread_out(distinct_inputs(table, features.kernel_))
    variance = float(features.kernel_.diag(inputs).sum())
    missing = variance - float((through(features.kernel_, inputs, points, L) ** 2).sum())
    if missing <= LARGEST_LOSS * variance:
        return None
    return (
        f"{features!r} leaves out {missing / variance:.0%} of the variance of {features.kernel_!r} at the training "
        f"inputs; raise {number}, or the lengthscale if it has one."
    )


def spread_out(inputs: Table) -> Table:
    """At most some of the inputs, evenly spread over their order."""
    if len(inputs) <= INSPECTED:
        return inputs
    return inputs.take(np.linspace(0, len(inputs) - 1, INSPECTED).astype(np.intp))


def fault_of_points(fitted: FeatureMap, points: Table | None, L: Floats | None) -> str | None:
    """What is wrong with the points and the root of a feature map of a file that was edited; None for nothing."""
    n, columns = fitted.n_features_, () if points is None else points.columns
    if L is None or L.shape != (n, n) or points is None or len(points) != n or not (np.diag(L) > 0).all():
        return "its features do not fit to their points"
    known = set(fitted.kernel_.reads(list(columns))) <= set(columns)
    return None if known else "its features lack a column"


def pivoted_cholesky(
    kernel: Kernel, table: Table, tolerance: float, max_features: int | None = None
) -> tuple[Table, Floats]:
    """Pivoted Cholesky factorisation: each pivot is the input whose variance is least explained by those before.

    Returns
    -------
    pivots : Table, k rows
    L : ndarray, shape (k, k)
        Lower triangular, L L' = k(pivots, pivots).
    """
    if not (np.isfinite(tolerance) and tolerance >= 0):
        raise InputError(f"The tolerance of Cholesky features must be zero or more and finite; got {tolerance}.")
    if max_features is not None and max_features < 1:
        raise InputError(f"The max_features of Cholesky features must be at least 1; got {max_features}.")
    diagonal = kernel.diag(table)
    if diagonal.min() < 0:
        raise no_kernel(kernel)
    # below n eps the residuals are rounding errors, whatever was asked for
    stop = max(tolerance, len(table) * np.finfo(np.float64).eps) * float(diagonal.max())
    most = min(len(table), max_features or len(table))
    if len(table) <= GRAM_ROWS:
        chosen, L = _pivot_gram(kernel, kernel(table), stop, most)
    else:
        chosen, L = _pivot_columns(kernel, table, diagonal, stop, most)
    return table.take(chosen), L


def _pivot_gram(kernel: Kernel, K: Floats, stop: float, most: int) -> tuple[npt.NDArray[np.intp], Floats]:
    factor, order, rank, _ = dpstrf(K, tol=stop, lower=1)
    if rank < len(K):  # of a positive semi-definite matrix nothing is left once the diagonal is explained
        left = order[rank:] - 1
        below = factor[rank:, :rank]
        most_left = np.abs(K[np.ix_(left, left)] - below @ below.T).max()
        if most_left > max(2 * stop, NEGATIVE * float(np.diag(K).max())):
            raise no_kernel(kernel)
    k = min(int(rank), most)  # the factors of lower rank are nested
    return order[:k].astype(np.intp) - 1, np.tril(factor[:k, :k])


def _pivot_columns(
    kernel: Kernel, table: Table, diagonal: Floats, stop: float, most: int
) -> tuple[npt.NDArray[np.intp], Floats]:
    residual = diagonal.copy()
    factor = np.empty((len(table), min(most, 64)), order="F")
    chosen: list[int] = []
    while len(chosen) < most:
        pivot, k = int(np.argmax(residual)), len(chosen)
        if residual[pivot] <= stop:
            break
        if k == factor.shape[1]:
            factor = np.asfortranarray(np.hstack([factor, np.empty_like(factor)]))
        # column k of L: (k(x, pivot) - L[x, :k] L[pivot, :k]') / sqrt(residual variance of the pivot)
        column = kernel(table, table.take(np.array([pivot])))[:, 0] - factor[:, :k] @ factor[pivot, :k]
        factor[:, k] = column / np.sqrt(residual[pivot])
        residual -= factor[:, k] ** 2
        if residual.min() < -NEGATIVE * float(diagonal.max()):
            raise no_kernel(kernel)
        chosen.append(pivot)
        residual[chosen] = 0.0  # exactly, so that rounding never chooses a pivot twice
    rows = np.array(chosen, dtype=np.intp)
    return rows, np.tril(factor[rows, : len(rows)])
