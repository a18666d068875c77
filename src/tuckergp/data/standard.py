"""Mean and standard deviation of numbers of any size, small and large ones included."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tuckergp.scratch import empty

__all__ = ["mean_and_std"]

Floats = npt.NDArray[np.float64]

# Numbers that differ by a smaller share of their mean are equal but for rounding.
ROUNDING = 1e-14


def mean_and_std(values: Floats, weight: Floats | None = None) -> tuple[float, float]:
    """The (weighted) mean and standard deviation of numbers (N,); 0 where all are the same but for rounding.

    What counts is how numbers differ beside their size, so that units do not matter.

    Examples
    --------
    >>> mean_and_std(np.array([1.0, 3.0])), mean_and_std(np.array([1e-200, 3e-200]))
    ((2.0, 1.0), (2e-200, 1e-200))
    >>> mean_and_std(np.array([0.1, 0.1, 0.1]))[1]
    0.0
    """
    # in units of a power of two, which changes no digit, squares are neither 0 nor infinite
    size = int(np.frexp(max(values.max(initial=0.0), -values.min(initial=0.0)))[1])
    units = np.ldexp(values, -size, out=empty(values.shape))
    mean = float(np.average(units, weights=weight))
    np.subtract(units, mean, out=units)
    std = float(np.sqrt(np.average(np.square(units, out=units), weights=weight)))
    return float(np.ldexp(mean, size)), float(np.ldexp(std, size)) if std > ROUNDING * abs(mean) else 0.0
