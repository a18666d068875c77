"""Weights of features drawn beside the residual of their mode, given what the data say about both."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tuckergp.linalg import Matrix
from tuckergp.priors.given import ModeGiven
from tuckergp.priors.weights import weights_given_data
from tuckergp.residuals.base import ModeState

__all__ = ["weights_beside_residual"]

Floats = npt.NDArray[np.float64]

FEW_WEIGHTS = 200
"""Up to this many weights are drawn so, by one solve."""


def weights_beside_residual(
    mode: ModeState,
    features: Matrix,
    psi: Floats,
    statistics: tuple[Floats, Floats],
    given: ModeGiven,
    rng: np.random.Generator | None,
) -> ModeState:
    """Draw B given the data and E, where there are few weights; without ``rng`` they stay.

    Draws of B given psi see the data through psi alone, so that they crawl where the data say little about E.

    Parameters
    ----------
    mode : ModeState
    features, psi, statistics
        The features (M, n), factors (M, r), and statistics A (M, r, r) and b (M, r) of the rows, in one order.
    """
    if rng is None or not 0 < mode.B.size <= FEW_WEIGHTS:
        return mode
    A, b = statistics
    rest = b - np.einsum("mkl,ml->mk", A, psi - features @ mode.B)
    B = weights_given_data(features, A, rest, given.by_feature(mode.tau), mode.precision, mode.B, rng)
    return mode._replace(B=B)
