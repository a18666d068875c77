"""Likelihoods in compiled loops, by the codes of `tuckergp.likelihoods`: scores and misfits."""

from __future__ import annotations

import math

import numpy as np

from tuckergp.compute.compiled import jit
from tuckergp.compute.contract import Array
from tuckergp.compute.ordinal import end_densities, log_mass

GAUSSIAN, ORDINAL, POISSON = 0, 1, 2
# As in `tuckergp.likelihoods`.
LARGEST_LOG = 100.0


@jit
def ends(cuts: Array, y: float) -> tuple[float, float]:
    """The cut points around level y."""
    k = int(y)
    return (cuts[k - 1] if k > 0 else -np.inf), (cuts[k] if k < cuts.size else np.inf)


@jit
def score(likelihood: int, parameters: Array, y: float, f: float) -> float:
    """The derivative d log p(y | f) / d f."""
    if likelihood == GAUSSIAN:
        return (y - f) / float(parameters[0])
    if likelihood == POISSON:
        return y - math.exp(min(f, LARGEST_LOG))
    lower, upper = ends(parameters, y)
    return end_densities(f, lower, upper)[2]


@jit
def misfit(likelihood: int, parameters: Array, y: float, f: float) -> float:
    """The squared residual of a Gaussian likelihood, minus the log density of others."""
    if likelihood == GAUSSIAN:
        return (y - f) ** 2
    if likelihood == POISSON:
        near = min(f, LARGEST_LOG)
        return math.exp(near) * (1.0 + (f - near)) + math.lgamma(y + 1.0) - y * f
    lower, upper = ends(parameters, y)
    return -log_mass(f, lower, upper)
