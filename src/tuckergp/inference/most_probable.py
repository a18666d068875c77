"""What algorithms that arrive at a MAP estimate have in common: a fixed noise, fixed prior scales, one draw."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tuckergp.inference.algorithm import Converging, model_of_weight_scales
from tuckergp.inference.base import Algorithm, Problem
from tuckergp.inference.weights import draw_of_weights
from tuckergp.likelihoods import Likelihood
from tuckergp.model.draw import Draw
from tuckergp.model.tucker import Core, TuckerModel

__all__ = ["MostProbable"]

# sigma_u relative to the one that gives f the variance of the ratings, and noise: around what did best on held-out
# parts of MovieLens 100K's training data, with W = I and with W learned.
SCALES, NOISES = (0.8, 0.64, 0.5, 0.36, 0.2), (1.0, 0.75)


class MostProbable(Converging, Algorithm[Any]):
    """Settings and answers that they share; a subclass has the three fields, where it likes among its own."""

    of_noise: ClassVar[tuple[str, ...]] = ("noise",)
    point: ClassVar[bool] = True

    noise: float
    sigma_u: float | None
    sigma_w: float | None

    def model(self, core: Core, likelihood: Likelihood) -> TuckerModel:
        """The model with the noise and the prior scales of the settings."""
        return model_of_weight_scales(core, likelihood.with_noise(self.noise), self.sigma_u, self.sigma_w)

    def draws_of(self, problem: Problem, state: Any, rng: np.random.Generator) -> list[Draw]:
        """The point."""
        parameters = self.parameters(problem, state)
        return [draw_of_weights(problem, parameters, problem.model.likelihood_at(parameters).unknowns())]

    def grid(self, unit: float, learned: bool, ranges: bool) -> dict[str, Any]:
        """Prior scales around the unit, and noise."""
        if ranges:
            return {"sigma_u": (_rounded(0.1 * unit), _rounded(unit), "log"), "noise": (0.5, 1.0)}
        return {"sigma_u": [_rounded(scale * unit) for scale in SCALES], "noise": list(NOISES)}


def _rounded(value: float) -> float:
    return float(f"{value:.2g}")
