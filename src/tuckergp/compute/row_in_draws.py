"""One row given its observations in each of many draws, where its noise may have a factor of its own."""

from __future__ import annotations

import numpy as np

from tuckergp.compute.compiled import jit
from tuckergp.compute.contract import Array
from tuckergp.compute.triangular import cholesky, solve_lower, solve_upper


@jit
def row_in_draws(
    z: Array, y: Array, w: Array, mine: Array, mean: Array, inner: Array, noise: Array,
    gammas: Array, nu: Array, factor: Array, psi: Array,
) -> bool:  # fmt: skip
    """Write one row given its observations in each draw, (S, r); False where a precision is not positive definite.

    Given its noise factor a, the conditional has precision C = P + a sum w z z' and mean C^-1 (P mean + a sum w z y);
    standard normal ``noise`` makes it a draw. Given the row, a ~ Gamma((nu + k) / 2, (nu + sum w (y - z'psi)^2) / 2).
    The two are drawn in turn, K times; the sums over observations are made once.

    Parameters
    ----------
    z, y, w : ndarray, shapes (n, S, r), (n, S), (n, S)
        What multiplies psi in each observation, targets, precisions without the row's own factor.
    mine : ndarray of int, shape (k,)
        The observations of this row.
    mean, psi : ndarray, shapes (S, r)
    inner : ndarray, shape (S, r, r)
        P.
    noise : ndarray, shape (S, K, r)
    gammas : ndarray, shape (S, K) or (S, 0)
        Gamma variables of shape (nu + k) / 2 and rate 1; none to leave the factor as it is.
    nu, factor : ndarray, shape (S,)
        ``factor`` is where a starts, and is overwritten.
    """
    draws, r = mean.shape
    A, C = np.empty((r, r)), np.empty((r, r))
    b, shift, x = np.empty(r), np.empty(r), np.empty(r)
    for s in range(draws):
        squares = 0.0
        for k in range(r):
            b[k] = shift[k] = 0.0
            for j in range(r):
                A[k, j] = 0.0
                shift[k] += inner[s, k, j] * mean[s, j]
        for i in mine:
            squares += w[i, s] * y[i, s] * y[i, s]
            for k in range(r):
                scaled = w[i, s] * z[i, s, k]
                b[k] += scaled * y[i, s]
                for j in range(k + 1):
                    A[k, j] += scaled * z[i, s, j]
        for turn in range(noise.shape[1]):
            a = factor[s]
            for k in range(r):
                x[k] = shift[k] + a * b[k]
                for j in range(k + 1):
                    C[k, j] = inner[s, k, j] + a * A[k, j]
            if not cholesky(C):
                return False
            solve_lower(C, x)
            for k in range(r):
                x[k] += noise[s, turn, k]
            solve_upper(C, x)
            if gammas.shape[1]:
                # sum w (y - z'psi)^2 = sum w y^2 - 2 psi'b + psi'A psi
                left = squares
                for k in range(r):
                    product = 0.5 * A[k, k] * x[k] - b[k]
                    for j in range(k):
                        product += A[k, j] * x[j]
                    left += 2.0 * x[k] * product
                factor[s] = gammas[s, turn] / (0.5 * (nu[s] + max(left, 0.0)))
        for k in range(r):
            psi[s, k] = x[k]
    return True
