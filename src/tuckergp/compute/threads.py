"""Ranges of independent work divided among threads.

Compiled functions release the interpreter's lock and take a range; Python threads take ranges as they become free. That
compiles several times faster than numba's own parallel loops, and threads that wait do not spin. It also survives a
fork, after which numba's loops on GNU OpenMP end the process, and calls from several threads: none of its threads
outlives a call. So nothing here uses ``parallel=True``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["run_ranges"]


def run_ranges(
    kernel: Callable[..., Any], bounds: Sequence[int] | npt.NDArray[np.integer[Any]], *arguments: Any
) -> list[Any]:
    """Call ``kernel(first, last, *arguments)`` for the ranges between ``bounds`` and return the results.

    Uses as many threads as numba is set to; on one thread all ranges are one call. Calls write to separate places, so
    neither their number nor their order matters.
    """
    if len(bounds) <= 2:
        return [kernel(int(bounds[0]), int(bounds[-1]), *arguments)] if bounds[0] < bounds[-1] else []
    ranges = [(int(first), int(last)) for first, last in pairwise(bounds) if first < last]
    threads = min(_threads(), len(ranges)) if len(ranges) > 1 else 1
    if threads <= 1:
        return [kernel(int(bounds[0]), int(bounds[-1]), *arguments)] if ranges else []
    first, last = ranges[0]
    done = [kernel(first, last, *arguments)]  # compiles here, not in every thread at once
    with ThreadPoolExecutor(threads) as pool:
        return done + list(pool.map(lambda bounds: kernel(*bounds, *arguments), ranges[1:]))


def _threads() -> int:
    import numba  # which short answers do not need

    return int(numba.get_num_threads())
