"""Features through some inputs, the points, phi(x) = k(x, points) L^-T: what Cholesky and Nystrom features share."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from tuckergp.data.columns import distinct, row_keys
from tuckergp.data.tables import Table
from tuckergp.features.base import FeatureMap, Floats
from tuckergp.features.new import NewFeatures
from tuckergp.kernels import Kernel

__all__ = ["EXPLAINED", "distinct_inputs", "fault_of_points", "left_out", "through"]

EXPLAINED = 1e-6
"""Less than this share of k(x, x) is taken for a rounding error of the features."""

LARGEST_JOINT = 4_000_000
"""The most entries of the factors of covariances of what features leave out: 2,000 inputs jointly, more in groups."""


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


def fault_of_points(fitted: FeatureMap, points: Table | None, L: Floats | None) -> str | None:
    """What is wrong with the points and the root of a feature map of a file that was edited; None for nothing."""
    n, columns = fitted.n_features_, () if points is None else points.columns
    if L is None or L.shape != (n, n) or points is None or len(points) != n or not (np.diag(L) > 0).all():
        return "its features do not fit to their points"
    known = set(fitted.kernel_.reads(list(columns))) <= set(columns)
    return None if known else "its features lack a column"
