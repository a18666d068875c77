"""Whether features are too few for their kernel, judged at some of the training inputs."""

from __future__ import annotations

import numpy as np

from tuckergp.data.tables import Table
from tuckergp.features.base import FeatureMap, Floats
from tuckergp.features.pivoted import pivoted_cholesky
from tuckergp.features.points import distinct_inputs, through
from tuckergp.kernels import Kernel

__all__ = ["degrees_of_freedom", "too_few_points"]

LARGEST_LOSS = 0.1
"""The share of the variance at training inputs beyond which features are too few."""

INSPECTED = 500
"""The most inputs at which that is judged."""


def too_few_points(features: FeatureMap, table: Table, points: Table, L: Floats, number: str) -> str | None:
    """A sentence about points that leave out more than a tenth of the variance at inputs like these; else None."""
    inputs = _inspected(table, features.kernel_)
    variance = float(features.kernel_.diag(inputs).sum())
    missing = variance - float((through(features.kernel_, inputs, points, L) ** 2).sum())
    if missing <= LARGEST_LOSS * variance:
        return None
    return (
        f"{features!r} leaves out {missing / variance:.0%} of the variance of {features.kernel_!r} at the training "
        f"inputs; raise {number}, or the lengthscale if it has one."
    )


def degrees_of_freedom(kernel: Kernel, table: Table, most: int) -> int:
    """How many pivots explain a kernel at inputs like these but for a tenth of its variance; at most ``most``."""
    pivots, _ = pivoted_cholesky(kernel, _inspected(table, kernel), LARGEST_LOSS, most)
    return len(pivots)


def _inspected(table: Table, kernel: Kernel) -> Table:
    """The distinct inputs of a kernel, or some of them, evenly spread over their order."""
    inputs = distinct_inputs(table, kernel)
    if len(inputs) <= INSPECTED:
        return inputs
    return inputs.take(np.linspace(0, len(inputs) - 1, INSPECTED).astype(np.intp))
