"""Pivoted Cholesky factorisation of a kernel at some inputs: few pivots where it is smooth, no jitter if singular."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dpstrf

from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.features.base import Floats
from tuckergp.kernels import Kernel
from tuckergp.linalg import NEGATIVE, no_kernel

__all__ = ["pivoted_cholesky"]

GRAM_ROWS = 2000
"""Up to here the whole Gram matrix (32 MB) goes to LAPACK; beyond, columns are computed as they are needed."""


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
