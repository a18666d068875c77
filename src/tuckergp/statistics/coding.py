"""Values of which few are distinct, such as ratings and their weights, as codes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tuckergp.scratch import empty

__all__ = ["coded"]

Floats = npt.NDArray[np.float64]

# The most distinct rows that codes of a byte tell apart; how many rows are looked at first, and then together.
MOST, FIRST, CHUNK = 256, 1024, 2**14


def coded(*columns: Floats) -> tuple[npt.NDArray[np.uint8], list[Floats]] | None:
    """A code of each row, and by code the values of the columns; None if there may be more than 256 distinct rows.

    Examples
    --------
    >>> coded(np.array([4.5, 3.0, 4.5]), np.ones(3))
    (array([1, 0, 1], dtype=uint8), [array([3. , 4.5]), array([1., 1.])])
    """
    n = len(columns[0])
    starts = [0, *range(FIRST, n, CHUNK)]
    parts = [slice(start, stop) for start, stop in zip(starts, [*starts[1:], n], strict=True)]
    levels = [np.zeros(0) for _ in columns]
    for part in parts:
        levels = [_with(known, column[part]) for known, column in zip(levels, columns, strict=True)]
        if np.prod([len(known) for known in levels]) > MOST:
            return None
    shape = tuple(len(known) for known in levels)
    codes = empty(n, np.uint8)
    for part in parts:
        places = [np.searchsorted(known, column[part]) for known, column in zip(levels, columns, strict=True)]
        codes[part] = np.ravel_multi_index(places, shape)
    return codes, [np.ascontiguousarray(values.ravel()) for values in np.meshgrid(*levels, indexing="ij")]


def _with(levels: Floats, values: Floats) -> Floats:
    """Sorted distinct values, these among them."""
    new = values[~np.isin(values, levels)]
    return np.union1d(levels, new) if len(new) else levels
