"""A short search for the scale of a prior: a walk downhill in equal ratios, then the vertex of a parabola.

What is tried, and on which data, is not decided here.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

__all__ = ["FACTOR", "FIRST", "MOST_TRIALS", "best_scale"]

# Most probable values overfit under a prior that gives f the variance of the targets, so the walk begins below it.
FIRST, FACTOR, MOST_TRIALS = 0.5, 0.75, 6


def best_scale(
    misfit: Callable[[float], float], first: float = FIRST, factor: float = FACTOR, most: int = MOST_TRIALS
) -> float:
    """The scale with the least misfit, from at most ``most`` trials at ``first`` times powers of ``factor``.

    The walk ends when the best scale has a worse one on either side; then the parabola through the three, over
    logarithms of scales, has its vertex at the answer. A misfit that is not finite is worse than any other; if the
    first one is not, there is nothing to compare, and ``first`` is the answer.

    Examples
    --------
    >>> round(best_scale(lambda scale: math.log(scale / 0.25) ** 2), 3)
    0.25
    """
    tried = {0: misfit(first)}
    if not math.isfinite(tried[0]):
        return first
    while len(tried) < most:
        best = min(tried, key=tried.__getitem__)
        open_ends = [place for place in (best + 1, best - 1) if place not in tried]
        if not open_ends:
            break
        value = misfit(first * factor ** open_ends[0])
        tried[open_ends[0]] = value if math.isfinite(value) else math.inf
    return first * math.pow(factor, _vertex(tried, min(tried, key=tried.__getitem__)))


def _vertex(tried: dict[int, float], best: int) -> float:
    """The place of the least value of the parabola through the best place and its neighbours, if it has both."""
    left, middle, right = (tried.get(place, math.inf) for place in (best - 1, best, best + 1))
    bend = left - 2 * middle + right
    if not (math.isfinite(bend) and bend > 0):
        return float(best)
    return best + float(np.clip((left - right) / (2 * bend), -0.5, 0.5))
