"""Small matrices of any size: Cholesky factors and triangular solves in place, copies."""

from __future__ import annotations

import numpy as np

from tuckergp.compute.compiled import jit
from tuckergp.compute.contract import Array

__all__ = ["cholesky", "copy", "solve_lower", "solve_upper"]


@jit
def copy(matrix: Array, out: Array) -> None:
    """Write a matrix to ``out``; an assignment of arrays would compile a message for unequal shapes, for seconds."""
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            out[i, j] = matrix[i, j]


@jit
def cholesky(A: Array) -> bool:
    """Overwrite the lower triangle of A with its Cholesky factor; False if A is not positive definite."""
    r = len(A)
    for j in range(r):
        pivot = A[j, j]
        for k in range(j):
            pivot -= A[j, k] * A[j, k]
        if not pivot > 0.0:
            return False
        pivot = np.sqrt(pivot)
        A[j, j] = pivot
        for i in range(j + 1, r):
            total = A[i, j]
            for k in range(j):
                total -= A[i, k] * A[j, k]
            A[i, j] = total / pivot
    return True


@jit
def solve_lower(L: Array, x: Array) -> None:
    """Replace x by L^-1 x, L lower triangular."""
    for i in range(len(L)):
        total = x[i]
        for k in range(i):
            total -= L[i, k] * x[k]
        x[i] = total / L[i, i]


@jit
def solve_upper(L: Array, x: Array) -> None:
    """Replace x by L'^-1 x, L lower triangular."""
    for i in range(len(L) - 1, -1, -1):
        x[i] /= L[i, i]
        for k in range(i):
            x[k] -= L[i, k] * x[i]
