"""The continuous ranked probability score: over levels, or where only the distribution function F is known.

It is the integral of F(x)^2 below the observation and of (1 - F(x))^2 above it. Both are monotone, so that a piece of
the integral is wrong by at most half its width times the change of the integrand in it: the piece for which this is
largest is halved, again and again. F is evaluated a fixed number of times, whatever it looks like.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

__all__ = ["levels_score", "ranked_score"]

Floats = npt.NDArray[np.float64]

# How often F is evaluated for each observation.
EVALUATIONS = 64


def ranked_score(
    distribution: Callable[[Floats], Floats], low: Floats, high: Floats, y: Floats, whole: bool = False
) -> Floats:
    """The continuous ranked probability score of each observation, in its own units, shape (n,).

    Parameters
    ----------
    distribution : callable
        F: takes a value for each observation (n,), and gives the probability of at most that value, (n,).
    low, high : ndarray, shape (n,)
        Between them is all but a negligible part of each distribution.
    y : ndarray, shape (n,)
        The observations.
    whole : bool
        Whether the distributions are of whole numbers; then few of them are summed without error.

    Examples
    --------
    >>> from scipy.special import ndtr
    >>> ranked_score(ndtr, np.array([-6.0]), np.array([6.0]), np.zeros(1)).round(3)
    array([0.234])
    """
    # ends of pieces in columns; the observation is one, so that the integrand is smooth within each piece
    x = np.sort(np.stack([low, y, high], axis=1), axis=1)
    F = np.stack([distribution(column) for column in x.T], axis=1)
    rows, unit = np.arange(len(y)), float(whole)
    for _ in range(EVALUATIONS - x.shape[1]):
        left, right, width = _pieces(x, F, y)
        worst = np.argmax(np.where(width > unit, width * np.abs(right - left), 0.0), axis=1)
        middle = x[rows, worst] + 0.5 * width[rows, worst]
        if whole:
            middle = np.rint(middle)
        x, F = _inserted(x, worst, middle), _inserted(F, worst, distribution(middle))
    return _integral(x, F, y, unit)


def levels_score(probabilities: Floats, levels: Floats, y: Floats) -> Floats:
    """The continuous ranked probability score of distributions (n, K) over increasing levels, (n,).

    It is E|X - y| - E|X - X'| / 2 with X and X' independent. Of the second term each gap between two levels has the
    share 2 P(X below) P(X above).
    """
    away = (probabilities * np.abs(levels - y[:, None])).sum(axis=1)
    below = np.cumsum(probabilities, axis=1)[:, :-1]
    return np.asarray(away - (below * (1 - below)) @ np.diff(levels))


def _integral(x: Floats, F: Floats, y: Floats, unit: float) -> Floats:
    """The integral over all pieces: the trapezoidal rule with the first term of Euler and Maclaurin's series.

    Of whole numbers (``unit`` 1) a piece is the sum from its left end to the last number before its right end.
    """
    left, right, width = _pieces(x, F, y)
    # F' at the ends of pieces: the slopes on both sides, that of the shorter side counting more
    slope = np.divide(np.diff(F, axis=1), width, out=np.zeros_like(width), where=width > 0)
    shares = width[:, :-1] + width[:, 1:]
    shares = np.divide(width[:, :-1], shares, out=np.zeros_like(shares), where=shares > 0)
    inner = slope[:, :-1] + shares * (slope[:, 1:] - slope[:, :-1])
    density = np.pad(inner, ((0, 0), (1, 1)))
    # d/dx F^2 = 2 F F', d/dx (1 - F)^2 = -2 (1 - F) F'
    rise = np.diff(2 * F * density, axis=1) - np.where(x[:, 1:] <= y[:, None], 0.0, 2 * np.diff(density, axis=1))
    sums = 0.5 * width * (left + right) + 0.5 * np.minimum(width, unit) * (left - right)
    sums -= np.maximum(width**2 - unit, 0.0) / 12 * rise
    return np.asarray(np.clip(sums, width * np.minimum(left, right), width * np.maximum(left, right)).sum(axis=1))


def _pieces(x: Floats, F: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    """The integrand at the left and right end of each piece, and the widths, (n, pieces)."""
    below = x[:, 1:] <= y[:, None]
    left, right = (np.where(below, ends, 1 - ends) ** 2 for ends in (F[:, :-1], F[:, 1:]))
    return left, right, np.diff(x, axis=1)


def _inserted(columns: Floats, after: npt.NDArray[np.intp], values: Floats) -> Floats:
    """Columns (n, k) with a further value in each row, after the column given, (n, k + 1)."""
    place = np.arange(columns.shape[1] + 1)
    out = np.take_along_axis(columns, place - (place > after[:, None]), axis=1)
    out[np.arange(len(columns)), after + 1] = values
    return out
