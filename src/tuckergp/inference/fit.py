"""From a design and raw targets to a fitted model: what the regressor and the recommender share.

Targets are standardised here and predictions brought back, so that priors and noise are in units of the targets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tuckergp.design import Design
from tuckergp.errors import InputError
from tuckergp.inference import ALS, SGD, loop
from tuckergp.inference.base import Info, Problem
from tuckergp.likelihoods import Gaussian
from tuckergp.model import CoreSpec, Parameters, TuckerModel, make_core
from tuckergp.random import stream

__all__ = ["Fit", "Inference", "fit_map", "ranks_of"]

Floats = npt.NDArray[np.float64]
Inference: TypeAlias = ALS | SGD


@dataclass(frozen=True)
class Fit:
    """A model with its learned parameters, on targets (y - mean) / scale."""

    model: TuckerModel
    parameters: Parameters
    mean: float
    scale: float
    history: list[Info]

    def predict(self, design: Design) -> Floats:
        """Predictions in the units of the targets, shape (N,)."""
        return self.mean + self.scale * self.model.predict(self.parameters, design)

    def factors(self, design: Design) -> list[Floats]:
        """psi_d of every row of a design, shapes (M_d, r_d)."""
        return self.model.factors(self.parameters, design)


def ranks_of(rank: object, modes: int) -> list[int]:
    """One rank a mode from what the user gave: an int for all, or a sequence with one each."""
    if isinstance(rank, bool) or not isinstance(rank, int | np.integer | Sequence):
        raise InputError(f"rank must be a whole number or one a mode, not {rank!r}.")
    ranks = list(rank) if isinstance(rank, Sequence) else [rank] * modes
    if len(ranks) != modes:
        raise InputError(f"rank has {len(ranks)} entries for {modes} modes; give one number, or one a mode.")
    if not all(isinstance(r, int | np.integer) and not isinstance(r, bool) and r >= 1 for r in ranks):
        raise InputError(f"rank must be at least 1, not {rank!r}.")
    return [int(r) for r in ranks]


def fit_map(
    design: Design,
    y: Floats,
    weight: Floats | None,
    *,
    ranks: Sequence[int],
    core: CoreSpec,
    inference: Inference,
    seed: int,
) -> Fit:
    """Standardise the targets and find the most probable U and W by the inference given."""
    mean = float(np.average(y, weights=weight))
    spread = float(np.sqrt(np.average((y - mean) ** 2, weights=weight)))
    scale = spread if spread > 1e-12 * max(1.0, abs(mean)) else 1.0
    shape = make_core(core, ranks, stream(seed, 1, 0))
    sigma_u = shape.default_sigma_u() if inference.sigma_u is None else np.full(shape.modes, float(inference.sigma_u))
    sigma_w = shape.default_sigma_w() if inference.sigma_w is None else float(inference.sigma_w)
    model = TuckerModel(shape, Gaussian(inference.noise), sigma_u, sigma_w)
    result = loop.run(inference, Problem(model, design, (y - mean) / scale, weight), seed)
    return Fit(model, result.parameters, mean, scale, result.history)
