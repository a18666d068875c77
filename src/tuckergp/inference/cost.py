"""What a sweep of Gibbs sampling, or a round of alternating least squares, costs, estimated from the design.

Seconds come from counts of multiplications, and from times on one core of an ordinary machine: right within a factor
of about two. Bytes are the least that is needed.
"""

from __future__ import annotations

from tuckergp.compute.contract import FULL, IDENTITY
from tuckergp.inference.base import Problem
from tuckergp.model.design import Design
from tuckergp.model.mode_table import ModeTable
from tuckergp.model.tucker import Core
from tuckergp.priors.weights import LARGEST_DENSE

__all__ = ["state_bytes", "sweep_bytes", "sweep_seconds"]

# Multiplications per second, in products of matrices and in loops over what lies far apart.
FAST, SLOW = 1.2e10, 1e9
# Seconds that an observation takes in each mode, whatever the core; and where z is a product of factors, which are
# multiplied in tiles.
OBSERVATION, FETCHED, TILED = 1e-6, 5e-8, 2.5e10
# Steps of conjugate gradients for weights of many features.
STEPS = 100
# Products with the features of each mode beside rows that are learned one by one.
PRODUCTS = 6
# Narrow matrices are multiplied more slowly, as if they had so many columns more.
NARROW = 20


def sweep_seconds(problem: Problem) -> float:
    """Seconds of one core that all modes and the core take once."""
    design, core, n = problem.design, problem.model.core, problem.design.n_observations
    modes = sum(_mode(table, int(r)) for table, r in zip(design.modes, core.ranks, strict=True))
    return float(modes + core.modes * n * _observation(core) + _core(core, n))


def state_bytes(design: Design, core: Core) -> int:
    """Bytes of the factors of all rows, the weights of all features and their precisions."""
    modes = zip(design.modes, core.ranks.tolist(), strict=True)
    numbers = sum((table.n_rows + int(table.features.shape[1]) + r) * r for table, r in modes)
    return int(8 * (numbers + core.n_weights))


def sweep_bytes(design: Design, core: Core) -> int:
    """Bytes of the state, and of the statistics A of the mode that needs most of them."""
    modes = zip(design.modes, core.ranks.tolist(), strict=True)
    # rows that are learned one by one need theirs only in turn
    stored = (8 * table.n_rows * r * r for table, r in modes if not table.residual.sd > 0)
    return state_bytes(design, core) + max(stored, default=0)


def _observation(core: Core) -> float:
    """Of z z' of one observation in one mode."""
    r = int(max(core.ranks))
    if core.kind == IDENTITY or (core.modes == 2 and not core.leaves_out):
        return FETCHED + r * (r + 1) / TILED
    return OBSERVATION + 2 * max(core.n_weights, r) / SLOW  # two factors for each entry of the core


def _mode(table: ModeTable, r: int) -> float:
    """Of the solves of one mode: r x r for each row, or n r x n r for weights that all rows share."""
    rows, n = table.n_rows, int(table.features.shape[1])
    if table.residual.sd > 0:  # rows are learned one by one
        return rows * (table.residual.row_seconds(r) + PRODUCTS * min(rows, n) * r / FAST)
    if n * r > LARGEST_DENSE:
        return STEPS * 2 * rows * r * (n + r) / SLOW
    return (rows * n * (n + NARROW) * r * (r + 1) / 2 + (n * r) ** 3 / 3) / FAST


def _core(core: Core, n: int) -> float:
    """Of the solve for the entries of the core."""
    entries = core.n_weights
    if core.kind == FULL and core.modes == 2:  # by the statistics of rows
        return n * entries / FAST
    return entries**2 * (n + entries / 3) / FAST
