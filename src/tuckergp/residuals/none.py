"""No residual: psi = Phi B and nothing else. Random Fourier, Nystrom, Cholesky or hashed features alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.linalg import Matrix
from tuckergp.priors.given import ModeGiven
from tuckergp.priors.weights import weights_given_data
from tuckergp.random import DrawStreams
from tuckergp.residuals.base import Evidence, ModeDraws, ModeState, Residual

__all__ = ["NoResidual"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class NoResidual(Residual):
    """E = 0."""

    sd: float = 0.0

    def take(self, rows: npt.NDArray[np.integer]) -> NoResidual:
        """The same."""
        return self

    def joined(self, other: Any) -> NoResidual:
        """The same."""
        return self

    def update(
        self, mode: ModeState, evidence: Evidence, given: ModeGiven, rng: np.random.Generator | None
    ) -> tuple[ModeState, bool]:
        """All rows share B, so its conditional is one joint solve in n r dimensions."""
        A, b = evidence.statistics()
        tau = given.by_feature(mode.tau)
        B = weights_given_data(given.features, A, b, tau, mode.precision, mode.B, rng)
        return mode._replace(B=B, psi=np.asarray(given.features @ B)), False

    def kept(self, psi: Floats, own: tuple[Any, ...]) -> tuple[dict[str, Floats], dict[str, Floats]]:
        """Nothing: factors follow from the weights."""
        return {}, {}

    def factors(self, features: Matrix, draws: ModeDraws, streams: DrawStreams | None) -> Floats:
        """Phi B."""
        return draws.mean(features)
