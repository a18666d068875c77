"""Mean and standard deviation over draws of the products of pairs of rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tuckergp.compute.contract import Array, jit
from tuckergp.compute.threads import share

__all__ = ["pair_moments"]

Floats = npt.NDArray[np.float64]

# Pairs that one call works on.
PAIRS = 16_384


def pair_moments(
    Q: npt.NDArray[np.floating],
    V: npt.NDArray[np.floating],
    rows: npt.NDArray[np.integer],
    items: npt.NDArray[np.integer],
) -> tuple[Floats, Floats]:
    """Mean and standard deviation over draws s of q_is . v_js for pairs (i, j), shapes (N,).

    Sums in float64, on as many threads as numba is set to use. The deviation has S - 1 in its denominator, and is 0
    for a single draw.

    Parameters
    ----------
    Q : ndarray, shape (n, S, r)
    V : ndarray, shape (m, S, r)
    rows, items : ndarray of int, shape (N,)

    Examples
    --------
    >>> Q, V = np.ones((1, 2, 1)), np.array([[[1.0], [3.0]]])
    >>> mean, std = pair_moments(Q, V, np.array([0]), np.array([0]))
    >>> float(mean[0]), round(float(std[0]), 4)
    (2.0, 1.4142)
    """
    Q, V = np.ascontiguousarray(Q), np.ascontiguousarray(V)
    mean, std = np.empty(len(rows)), np.empty(len(rows))
    share(moments_between, np.append(np.arange(0, len(rows), PAIRS), len(rows)), Q, V, rows, items, mean, std)
    return mean, std


@jit
def moments_between(
    first: int, last: int, Q: Array, V: Array, rows: Array, items: Array, mean: Array, std: Array
) -> None:
    """The moments of some pairs."""
    draws, r = Q.shape[1], Q.shape[2]
    f = np.empty(draws)
    for pair in range(first, last):
        q, v = Q[rows[pair]], V[items[pair]]
        total = 0.0
        for s in range(draws):
            value = 0.0
            for c in range(r):
                value += np.float64(q[s, c]) * np.float64(v[s, c])
            f[s] = value
            total += value
        centre = total / draws
        squares = 0.0
        for s in range(draws):
            squares += (f[s] - centre) ** 2
        mean[pair], std[pair] = centre, np.sqrt(squares / max(draws - 1, 1))
