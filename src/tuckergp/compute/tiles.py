"""Dense algebra of matrices of the size of a rank, built from one tile of 4 x 2 inner products.

Eight sums run along contiguous rows at once, so the compiler keeps them in vector registers: a sum of outer products
and a Cholesky factorisation are both made of this tile. Sizes are multiples of 4 (`padded`); the fill is harmless.
"""

from __future__ import annotations

import numpy as np

from tuckergp.compute.contract import Array, jit

TILE = 4


@jit
def padded(size: int) -> int:
    """Round a size up to a multiple of 4."""
    return (size + TILE - 1) // TILE * TILE


@jit
def add_products(X: Array, i: int, j: int, n: int, sign: float, out: Array) -> None:
    """Add sign times the inner products of rows i:i + 4 and j:j + 2 of X, over its first n columns, to ``out``."""
    p0, p1, p2, p3 = X[i], X[i + 1], X[i + 2], X[i + 3]
    q0, q1 = X[j], X[j + 1]
    s00 = s01 = s10 = s11 = s20 = s21 = s30 = s31 = 0.0
    for k in range(n):
        x, y = q0[k], q1[k]
        s00 += p0[k] * x
        s01 += p0[k] * y
        s10 += p1[k] * x
        s11 += p1[k] * y
        s20 += p2[k] * x
        s21 += p2[k] * y
        s30 += p3[k] * x
        s31 += p3[k] * y
    out[i, j] += sign * s00
    out[i, j + 1] += sign * s01
    out[i + 1, j] += sign * s10
    out[i + 1, j + 1] += sign * s11
    out[i + 2, j] += sign * s20
    out[i + 2, j + 1] += sign * s21
    out[i + 3, j] += sign * s30
    out[i + 3, j + 1] += sign * s31


@jit
def add_gram(Z: Array, n: int, A: Array) -> None:
    """Add Z Z' over the first n columns of Z (r, B) to A; of its upper triangle only tiles on the diagonal."""
    for i in range(0, len(A), TILE):
        for j in range(0, i + TILE, 2):
            add_products(Z, i, j, n, 1.0, A)


@jit
def factorise(A: Array) -> bool:
    """Overwrite the lower triangle of A, of padded size, with its Cholesky factor; False if not positive definite."""
    for j in range(0, len(A), TILE):
        # columns j:j + 4 less what the columns before explain
        if j > 0:
            for i in range(j, len(A), TILE):
                add_products(A, i, j, j, -1.0, A)
                add_products(A, i, j + 2, j, -1.0, A)
        # Cholesky factor of the diagonal tile
        for c in range(j, j + TILE):
            pivot = A[c, c]
            for k in range(j, c):
                pivot -= A[c, k] * A[c, k]
            if not pivot > 0.0:
                return False
            A[c, c] = np.sqrt(pivot)
            for i in range(c + 1, j + TILE):
                total = A[i, c]
                for k in range(j, c):
                    total -= A[i, k] * A[c, k]
                A[i, c] = total / A[c, c]
        # rows below: times the inverse transpose of that factor
        i0, i1, i2, i3 = 1 / A[j, j], 1 / A[j + 1, j + 1], 1 / A[j + 2, j + 2], 1 / A[j + 3, j + 3]
        l10, l20, l21 = A[j + 1, j], A[j + 2, j], A[j + 2, j + 1]
        l30, l31, l32 = A[j + 3, j], A[j + 3, j + 1], A[j + 3, j + 2]
        for i in range(j + TILE, len(A)):
            row = A[i]
            x0 = row[j] * i0
            x1 = (row[j + 1] - x0 * l10) * i1
            x2 = (row[j + 2] - x0 * l20 - x1 * l21) * i2
            x3 = (row[j + 3] - x0 * l30 - x1 * l31 - x2 * l32) * i3
            row[j], row[j + 1], row[j + 2], row[j + 3] = x0, x1, x2, x3
    return True
