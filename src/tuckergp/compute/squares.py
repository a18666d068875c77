"""The sum of squared residuals and its derivatives, with the core multiplied once per row, not once per observation.

One mode, a, is folded: T_m = W x_a psi_a(m) for each of its rows. Row m then has a core of its own without the axis a,
so an observation costs r^(D-1) instead of r^D; for two modes T_m is a vector, and it costs r. Observations come sorted
by their row of mode a: those of row m are ``ptr[m]:ptr[m + 1]``.
"""

from __future__ import annotations

import numpy as np

from tuckergp.compute.compiled import jit
from tuckergp.compute.contract import FULL, Array, add_core_gradient, all_others, locate


@jit
def of_pairs(
    ptr: Array, other: Array, y: Array, weight: Array, T: Array, psi: Array, d_T: Array, d_psi: Array
) -> float:
    """Sum of w e^2 for e = y - T_m'psi_j; write the derivatives of -1/2 of it in T (M_a, r) and psi (M_b, r).

    ``other`` (N, 1) are the rows of the other mode; ``weight`` may be empty, for ones.
    """
    r = T.shape[1]
    total = 0.0
    d_psi[:] = 0.0
    for m in range(ptr.size - 1):
        for k in range(r):
            d_T[m, k] = 0.0
        for i in range(ptr[m], ptr[m + 1]):
            j = other[i, 0]
            f = 0.0
            for k in range(r):
                f += T[m, k] * psi[j, k]
            e = y[i] - f
            g = e * weight[i] if weight.size else e
            total += g * e
            for k in range(r):
                d_T[m, k] += g * psi[j, k]
                d_psi[j, k] += g * T[m, k]
    return total


@jit
def of_rows(
    ptr: Array, other: Array, y: Array, weight: Array,
    T: Array, ranks: Array, psi: Array, start: Array, d_T: Array, d_psi: Array,
) -> float:  # fmt: skip
    """`of_pairs` for any number of other modes, whose factors lie flat in ``psi`` as in `tuckergp.compute.contract`.

    ``T`` and ``d_T`` have shape (M_a, product of the other ranks), ``other`` (N, D - 1).
    """
    modes = ranks.size
    size = T.shape[1]
    at = np.empty(modes, dtype=np.int64)
    z = np.empty(ranks.sum())
    work = np.empty(2 * size + modes)
    coords = np.empty((0, modes), dtype=np.int64)
    total = 0.0
    d_psi[:] = 0.0
    d_T[:] = 0.0
    for m in range(ptr.size - 1):
        for i in range(ptr[m], ptr[m + 1]):
            locate(other, i, start, ranks, at)
            e = y[i] - all_others(FULL, T[m], coords, ranks, psi, at, z, work)
            g = e * weight[i] if weight.size else e
            total += g * e
            offset = 0
            for d in range(modes):
                for k in range(ranks[d]):
                    d_psi[at[d] + k] += g * z[offset + k]
                offset += ranks[d]
            add_core_gradient(FULL, coords, ranks, psi, at, g, d_T[m], work)
    return total
