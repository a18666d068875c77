"""The values of an earlier run that an algorithm may start from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.inference.base import Problem
from tuckergp.priors.regressions import weights_given_factors

__all__ = ["ChainValues", "ModeValues", "weights_at"]

Floats = npt.NDArray[np.float64]


class ModeValues(NamedTuple):
    """The values of one mode: factors (M, r), Lambda (r, r), tau (blocks,), noise factors (groups,) or None."""

    psi: Floats
    precision: Floats
    tau: Floats
    noise: Floats | None


class ChainValues(NamedTuple):
    """The values of one chain, or of a MAP estimate: modes, core and parameters of the likelihood."""

    modes: tuple[ModeValues, ...]
    W: Floats
    unknowns: dict[str, Floats]


def weights_at(problem: Problem, d: int, mode: ModeValues, rng: np.random.Generator | None) -> Floats:
    """Weights of the features of mode d given its factors: a draw, or without a generator the mean.

    The features may differ from those of the earlier run.
    """
    table, regression = problem.design.modes[d], problem.regressions[d]
    variance = table.residual.sd**2
    start = np.zeros((int(table.features.shape[1]), mode.psi.shape[1]))
    return weights_given_factors(regression, mode.psi, variance * mode.tau, start, mode.precision / variance, rng)
