"""Products of a tall matrix with a narrow one, shared among threads in parts that do not depend on their number."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tuckergp.compute.threads import run_ranges

__all__ = ["product"]

Floats = npt.NDArray[np.float64]

# Rows of the result that one thread computes at a time.
ROWS = 1_024


def product(X: Floats, Y: Floats) -> Floats:
    """X @ Y, (m, r), by ranges of rows of X."""
    # as the transpose of Y'X', which BLAS multiplies up to twice as fast where Y is narrow
    transposed = np.empty((Y.shape[1], len(X)))

    def part(first: int, last: int) -> None:
        for begin in range(first, last, ROWS):
            rows = slice(begin, min(begin + ROWS, last))
            transposed[:, rows] = Y.T @ X[rows].T

    run_ranges(part, np.append(np.arange(0, len(X), ROWS), len(X)))
    return np.ascontiguousarray(transposed.T)
