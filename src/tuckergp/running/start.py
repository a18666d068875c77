"""Where a run goes on from: the last values of another one, carried over to a problem that may be larger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.inference.als import ALSState
from tuckergp.inference.base import Problem
from tuckergp.inference.gibbs import Gibbs, GibbsState, ModeState
from tuckergp.priors.hyper import row_noise_shape
from tuckergp.priors.rows import weights_given_factors
from tuckergp.random import stream

__all__ = ["ModeValues", "Start", "Values"]

Floats = npt.NDArray[np.float64]

# The shape of the rows' noise before its first draw, as in `Gibbs`.
NU = 10.0


class ModeValues(NamedTuple):
    """Of one mode with rows: factors (M, r), Lambda (r, r), tau (blocks,), noise factors (groups,)."""

    psi: Floats
    precision: Floats
    tau: Floats
    noise: Floats


class Values(NamedTuple):
    """Of one chain, or of a most probable point."""

    modes: tuple[ModeValues, ...]
    W: Floats
    alpha: float
    cuts: Floats


@dataclass(frozen=True)
class Start:
    """Values of every chain, on targets (y - mean) / scale."""

    mean: float
    scale: float
    chains: Sequence[Values]

    def states(self, sampler: Gibbs, problem: Problem, seed: int) -> list[GibbsState]:
        """A state for every chain of a sampler; chains beyond those there were begin where others do.

        Weights of features are drawn given the factors, so that other features than before are no trouble.
        """
        return [
            self._state(self.chains[chain % len(self.chains)], sampler, problem, stream(seed, chain, 0))
            for chain in range(sampler.chains)
        ]

    def _state(self, values: Values, sampler: Gibbs, problem: Problem, rng: np.random.Generator) -> GibbsState:
        modes = []
        for d, mode in enumerate(values.modes):
            B = _weights(problem, d, mode, rng)
            nu = row_noise_shape(mode.noise, NU, rng) if sampler.noise == "rows" and len(mode.noise) else NU
            modes.append(ModeState(mode.psi, B, mode.precision, mode.tau, mode.noise, nu))
        return GibbsState(0, tuple(modes), values.W, values.alpha, values.cuts)

    def point(self, problem: Problem) -> ALSState:
        """The state of alternating least squares."""
        values = self.chains[0]
        B = tuple(_weights(problem, d, mode, None) for d, mode in enumerate(values.modes))
        return ALSState(0, tuple(mode.psi for mode in values.modes), B, values.W, -np.inf)


def _weights(problem: Problem, d: int, mode: ModeValues, rng: np.random.Generator | None) -> Floats:
    table, regression = problem.design.modes[d], problem.regressions[d]
    variance = table.residual_scale**2
    start = np.zeros((int(table.features.shape[1]), mode.psi.shape[1]))
    return weights_given_factors(regression, mode.psi, variance * mode.tau, start, mode.precision / variance, rng)
