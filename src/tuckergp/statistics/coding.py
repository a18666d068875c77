"""Values of which few are distinct, such as ratings, as codes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tuckergp.scratch import empty

__all__ = ["coded"]

Floats = npt.NDArray[np.float64]

# The most distinct values that codes of a byte tell apart, and how many values are looked at together.
MOST, CHUNK = 256, 2**14


def coded(values: Floats) -> tuple[npt.NDArray[np.uint8], Floats] | None:
    """Which of the distinct values each is, and these in order; None if there are more than 256.

    Examples
    --------
    >>> coded(np.array([4.5, 3.0, 4.5]))
    (array([1, 0, 1], dtype=uint8), array([3. , 4.5]))
    """
    parts = [slice(first, first + CHUNK) for first in range(0, len(values), CHUNK)]
    levels = np.zeros(0)
    for part in parts:
        new = values[part][~np.isin(values[part], levels)]
        if len(new):
            levels = np.union1d(levels, new)
        if len(levels) > MOST:
            return None
    codes = empty(len(values), np.uint8)
    for part in parts:
        codes[part] = np.searchsorted(levels, values[part])
    return codes, levels
