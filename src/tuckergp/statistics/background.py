"""What the cells of a background, all with target 0, say about the rows of one mode: sums of z z' over all of them.

The weight of a cell is a product over its occasion and its row of the crossed mode, so sums over cells are products of
sums: G = sum_p v_p x_p x_p' over occasions, S = sum_j c_j psi_j psi_j' over rows of the crossed mode. They cost
O(rows r^2), whatever the number of cells.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tuckergp.compute import rows as compute
from tuckergp.compute.contract import IDENTITY
from tuckergp.compute.threads import run_ranges
from tuckergp.likelihoods.background import Background
from tuckergp.model.tucker import Core

__all__ = ["NO_BACKGROUND", "background_squares", "background_statistics"]

Floats = npt.NDArray[np.float64]

NO_BACKGROUND = compute.Background(np.zeros(0), np.zeros((0, 0)), np.zeros((0, 0, 0)))
# Rows whose sums a thread makes at a time.
ROWS = 256


def background_statistics(
    background: Background, alpha: float, core: Core, d: int, psi: Sequence[Floats], W: Floats
) -> compute.Background:
    """What a background with noise precision alpha adds to A_m of each row of mode d; it adds nothing to b_m.

    The core has two modes, or is the identity. Where circumstances make a row's sum its own, O(M r^2) numbers.
    """
    crossed = background.crossed
    if d == crossed:
        gram = _over_occasions(background, core, psi, W)
        return compute.Background(alpha * background.across, gram, NO_BACKGROUND.rows)
    across = _gram(_contracted(core, psi, W, d) if core.modes == 2 else psi[crossed], background.across)
    if core.modes == 2:
        return compute.Background(alpha * background.of_rows(d), across, NO_BACKGROUND.rows)
    # A_m = S * sum over the occasions p of row m of v_p x_p x_p', * elementwise, x_p the product of the other modes
    x = _products(background, psi, {d, crossed})
    ptr, order = background.by_row[d]
    rows = np.empty((len(ptr) - 1, x.shape[1], x.shape[1]))
    bounds = np.append(np.arange(0, len(rows), ROWS), len(rows))
    run_ranges(compute.outer_products, bounds, ptr, order, x, background.weight, rows)
    rows *= alpha * across
    return compute.Background(NO_BACKGROUND.share, NO_BACKGROUND.gram, rows)


def background_squares(background: Background, core: Core, psi: Sequence[Floats], W: Floats) -> float:
    """The sum of weight times f^2 over all cells."""
    across = _gram(psi[background.crossed], background.across)
    return float(np.sum(_over_occasions(background, core, psi, W) * across))


def _over_occasions(background: Background, core: Core, psi: Sequence[Floats], W: Floats) -> Floats:
    """G = sum_p v_p z_p z_p' over the occasions, z what multiplies the factors of the crossed mode, (r, r)."""
    crossed = background.crossed
    if core.modes == 2:
        return _gram(_contracted(core, psi, W, crossed), background.of_rows(1 - crossed))
    return _gram(_products(background, psi, {crossed}), background.weight)


def _contracted(core: Core, psi: Sequence[Floats], W: Floats, d: int) -> Floats:
    """The factors of the other of two modes, times the core: z of each of its rows."""
    if core.kind == IDENTITY:
        return psi[1 - d]
    dense = core.dense(W)
    return psi[1 - d] @ (dense.T if d == 0 else dense)


def _products(background: Background, psi: Sequence[Floats], without: set[int]) -> Floats:
    """Products over modes of the factors of each occasion, (P, r)."""
    modes = [e for e in range(len(psi)) if e not in without]
    x = psi[modes[0]][background.index[:, modes[0]]]
    for e in modes[1:]:
        x = x * psi[e][background.index[:, e]]
    return np.ascontiguousarray(x)


def _gram(x: Floats, weight: Floats) -> Floats:
    """sum_m weight_m x_m x_m', (r, r)."""
    return np.asarray((x * weight[:, None]).T @ x)
