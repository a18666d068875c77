"""Warm starts: the last values of an earlier run as the start of another, on a problem that may be larger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.inference.als import ALS, ALSState
from tuckergp.inference.base import Problem
from tuckergp.inference.gibbs import Gibbs, GibbsState
from tuckergp.likelihoods import Likelihood
from tuckergp.priors.regressions import weights_given_factors
from tuckergp.random import stream
from tuckergp.residuals.base import ModeState

__all__ = ["ChainValues", "ModeValues", "Start"]

Floats = npt.NDArray[np.float64]


class ModeValues(NamedTuple):
    """The values of one mode: factors (M, r), Lambda (r, r), tau (blocks,), noise factors (groups,) or None."""

    psi: Floats
    precision: Floats
    tau: Floats
    noise: Floats | None


class ChainValues(NamedTuple):
    """The values of one chain, or of a most probable point: modes, core and parameters of the likelihood."""

    modes: tuple[ModeValues, ...]
    W: Floats
    unknowns: dict[str, Floats]


@dataclass(frozen=True)
class Start:
    """The values of each chain, and the likelihood that they were learned with."""

    likelihood: Likelihood
    chains: Sequence[ChainValues]

    def states(self, sampler: Gibbs, problem: Problem, seed: int) -> list[GibbsState]:
        """The first state of each chain of a sampler; with more chains than before, some begin with equal values.

        Weights of features are drawn given the factors, so that the features may differ from those before.
        """
        return [
            self._state(self.chains[chain % len(self.chains)], sampler, problem, stream(seed, chain, 0))
            for chain in range(sampler.chains)
        ]

    def _state(self, values: ChainValues, sampler: Gibbs, problem: Problem, rng: np.random.Generator) -> GibbsState:
        modes = [
            ModeState(mode.psi, _weights(problem, d, mode, rng), mode.precision, mode.tau)
            for d, mode in enumerate(values.modes)
        ]
        likelihood = problem.model.likelihood
        fresh: Any = likelihood.start(problem.observed, sampler.noise_settings)
        own = likelihood.continued(fresh, values.unknowns, [mode.noise for mode in values.modes], rng)
        return GibbsState(0, tuple(modes), values.W, own)

    def point(self, problem: Problem) -> ALSState:
        """The first state of alternating least squares."""
        values = self.chains[0]
        modes = tuple(
            ALS.mode_state(problem, d, mode.psi, _weights(problem, d, mode, None))
            for d, mode in enumerate(values.modes)
        )
        return ALSState(0, modes, values.W, -np.inf)


def _weights(problem: Problem, d: int, mode: ModeValues, rng: np.random.Generator | None) -> Floats:
    table, regression = problem.design.modes[d], problem.regressions[d]
    variance = table.residual.sd**2
    start = np.zeros((int(table.features.shape[1]), mode.psi.shape[1]))
    return weights_given_factors(regression, mode.psi, variance * mode.tau, start, mode.precision / variance, rng)
