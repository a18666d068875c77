"""One draw of all unknowns: what predictions need of a state of any algorithm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from tuckergp.model.mode_table import ModeTable

__all__ = ["Draw", "ModeDraw", "draw_of"]

Floats = npt.NDArray[Any]


@dataclass(frozen=True)
class ModeDraw:
    """One draw of the unknowns of one mode; `tuckergp.residuals.base.ModeDraws` holds many of them.

    Attributes
    ----------
    B : ndarray, shape (n, r)
    covariance : ndarray, shape (r, r)
        Covariance of a row of E that the data say nothing about: Lambda^-1 times the residual's variance.
    rows, values : mapping of str to ndarray
        What the residual keeps of each training row, and what is kept of the mode as a whole: ``spread`` (r, r), the
        prior covariance Lambda^-1 of the weights of a feature, ``tau`` (blocks,), the precisions of blocks relative to
        Lambda, and what the residual adds.
    row_noise : ndarray, shape (groups,), or None
    """

    B: Floats
    covariance: Floats
    rows: Mapping[str, Floats]
    values: Mapping[str, Floats]
    row_noise: Floats | None = None


@dataclass(frozen=True)
class Draw:
    """One draw: the modes, the learned entries of W, and the unknowns of the likelihood by name."""

    modes: tuple[ModeDraw, ...]
    W: Floats
    unknowns: Mapping[str, Floats]


def draw_of(
    tables: Sequence[ModeTable],
    psi: Sequence[Floats],
    B: Sequence[Floats],
    spread: Sequence[Floats],
    tau: Sequence[Floats],
    own: Sequence[tuple[Any, ...]],
    W: Floats,
    unknowns: Mapping[str, Floats],
    factors: Sequence[Floats | None] = (),
) -> Draw:
    """Make a draw of the factors psi of the training tables, weights, Lambda^-1, precisions of blocks and the rest.

    ``own`` and ``factors`` (noise factors) have an entry for each mode, or none at all.
    """
    modes = []
    for d, table in enumerate(tables):
        rows, values = table.residual.kept(psi[d], own[d] if own else ())
        values = {**values, "spread": spread[d], "tau": tau[d]}
        covariance = spread[d] * table.residual.sd**2
        modes.append(ModeDraw(B[d], covariance, rows, values, factors[d] if factors else None))
    return Draw(tuple(modes), W, dict(unknowns))
