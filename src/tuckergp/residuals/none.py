"""No residual: psi = Phi B and nothing else. Random Fourier, Nystrom, Cholesky or hashed features alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.linalg import Matrix
from tuckergp.priors.given import ModeGiven
from tuckergp.priors.scales import scales_given_noise
from tuckergp.priors.weights import weights_given_data
from tuckergp.random import DrawStreams, overrelaxed
from tuckergp.residuals.base import Evidence, ModeDraws, ModeState, Residual

__all__ = ["NoResidual"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class NoResidual(Residual):
    """No residual: E = 0, so psi = Phi B."""

    sd: float = 0.0

    def take(self, rows: npt.NDArray[np.integer]) -> NoResidual:
        """Some of the rows: there is nothing to choose."""
        return self

    def joined(self, other: Any) -> NoResidual:
        """More rows: there is nothing to add."""
        return self

    def update(
        self, mode: ModeState, evidence: Evidence, given: ModeGiven, rng: np.random.Generator | None
    ) -> tuple[ModeState, bool]:
        """Draw B, which all rows share, by one joint solve in n r dimensions; psi follows."""
        A, b = evidence.statistics()
        tau = given.by_feature(mode.tau)

        def draw(noise: float) -> Floats:
            return weights_given_data(given.features, A, b, tau, mode.precision, mode.B, rng, noise)

        B = overrelaxed(draw, mode.B, given.overrelaxation)
        if rng is not None:
            B, scales = scales_given_noise(given, A, b, B, mode.tau, rng)
            mode = mode._replace(tau=scales)
        return mode._replace(B=B, psi=np.asarray(given.features @ B)), False

    def kept(self, psi: Floats, own: tuple[Any, ...]) -> tuple[dict[str, Floats], dict[str, Floats]]:
        """What a draw keeps of the residual: nothing, factors follow from the weights."""
        return {}, {}

    def factors(self, features: Matrix, draws: ModeDraws, streams: DrawStreams | None) -> Floats:
        """psi at the rows of this table: Phi B in all draws."""
        return draws.mean(features)
