"""Dense algebra of matrices of the size of a rank, built from one tile of a sum of outer products.

Matrices are symmetric or upper triangular, of padded size, given by pointers (`tuckergp.compute.vectors`); of symmetric
ones the upper triangle counts, of which whole tiles are kept. A sum of outer products and a Cholesky factorisation are
both made of this tile, whose sums stay in registers while it runs over the rows of a table.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tuckergp.compute.compiled import jit
from tuckergp.compute.vectors import LANES, add_outer, add_weighted, dot, solve_four, tile_height

__all__ = ["add_gram", "factorise", "solve_lower", "solve_upper"]


@jit
def add_gram(Z: Any, n: int, A: Any, r: int) -> None:
    """Add Z'Z over the first n rows of Z (B, r) to A (r, r); of its lower triangle only tiles on the diagonal."""
    for i in range(0, r, tile_height(Z)):
        for j in range(i // LANES * LANES, r, LANES):
            add_outer(Z, r, i, j, n, 1.0, A)


@jit
def factorise(A: Any, r: int, inverse: Any, u: Any) -> bool:
    """Overwrite the upper triangle of A with U, U'U = A, and write 1 / U_kk; False if A is not positive definite.

    ``u`` (4, 4) is a work array.
    """
    for i in range(0, r, 4):
        # rows i:i + 4 less what the rows before explain
        for j in range(i // LANES * LANES, r, LANES):
            add_outer(A, r, i, j, i, -1.0, A)
        if not factorise_four(A, r, i, u):
            return False
        for a in range(4):
            inverse[i + a] = u[5 * a]
        # times the inverse transpose of that factor, which is upper triangular on the diagonal
        for j in range(i // LANES * LANES, r, LANES):
            solve_four(A, r, i, j, u)
    return True


@jit
def factorise_four(A: Any, r: int, i: int, u: Any) -> bool:
    """Write the upper Cholesky factor of A[i:i + 4, i:i + 4] to u (4, 4), but the inverses of its diagonal."""
    for a in range(4):
        row = (i + a) * r + i
        pivot = A[row + a]
        for c in range(a):
            pivot -= u[4 * c + a] * u[4 * c + a]
        if not pivot > 0.0:
            return False
        u[5 * a] = 1.0 / np.sqrt(pivot)
        for k in range(a + 1, 4):
            total = A[row + k]
            for c in range(a):
                total -= u[4 * c + a] * u[4 * c + k]
            u[4 * a + k] = total * u[5 * a]
    return True


@jit
def solve_lower(U: Any, r: int, inverse: Any, x: Any) -> None:
    """Replace x by U'^-1 x, given 1 / U_kk."""
    for i in range(0, r, LANES):
        add_weighted(U, r, x, i, i, -1.0, x)
        for k in range(i, i + LANES):
            total = x[k]
            for c in range(i, k):
                total -= U[c * r + k] * x[c]
            x[k] = total * inverse[k]


@jit
def solve_upper(U: Any, r: int, inverse: Any, x: Any) -> None:
    """Replace x by U^-1 x, given 1 / U_kk."""
    for i in range(r - LANES, -1, -LANES):
        end = i + LANES
        for k in range(end - 1, i - 1, -1):
            total = x[k] - dot(U, k * r + end, x, end, r - end)
            for c in range(k + 1, end):
                total -= U[k * r + c] * x[c]
            x[k] = total * inverse[k]
