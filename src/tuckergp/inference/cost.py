"""What a sweep of Gibbs sampling, or a round of alternating least squares, costs, estimated from the design.

From counts of multiplications, and from times on one core of an ordinary machine: right within a factor of about two.
"""

from __future__ import annotations

from tuckergp.compute.contract import FULL
from tuckergp.inference.base import Problem
from tuckergp.model.mode_table import ModeTable
from tuckergp.model.tucker import Core
from tuckergp.priors.weights import LARGEST_DENSE

__all__ = ["sweep_seconds"]

# Multiplications per second, in products of matrices and in loops over what lies far apart.
FAST, SLOW = 1.2e10, 1e9
# Seconds that an observation takes in each mode, whatever the core.
OBSERVATION = 1e-6
# Steps of conjugate gradients for weights of many features.
STEPS = 100
# Narrow matrices are multiplied more slowly, as if they had so many columns more.
NARROW = 20


def sweep_seconds(problem: Problem) -> float:
    """Seconds of one core that all modes and the core take once."""
    design, core, n = problem.design, problem.model.core, problem.design.n_observations
    modes = sum(_mode(table, int(r)) for table, r in zip(design.modes, core.ranks, strict=True))
    # z of each observation in each mode: two factors for each entry of the core
    passes = core.modes * n * (OBSERVATION + 2 * max(core.n_weights, int(core.ranks[0])) / SLOW)
    return float(modes + passes + _core(core, n))


def _mode(table: ModeTable, r: int) -> float:
    """Of the solves of one mode: r x r for each row, or n r x n r for weights that all rows share."""
    rows, n = table.n_rows, int(table.features.shape[1])
    if table.residual.sd > 0:  # rows are learned one by one
        return rows * table.residual.row_seconds(r)
    if n * r > LARGEST_DENSE:
        return STEPS * 2 * rows * r * (n + r) / SLOW
    return (rows * n * (n + NARROW) * r * (r + 1) / 2 + (n * r) ** 3 / 3) / FAST


def _core(core: Core, n: int) -> float:
    """Of the solve for the entries of the core."""
    entries = core.n_weights
    if core.kind == FULL and core.modes == 2:  # by the statistics of rows
        return n * entries / FAST
    return entries**2 * (n + entries / 3) / FAST
