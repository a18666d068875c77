"""What algorithms that arrive at a MAP estimate have in common: a fixed noise, fixed prior scales, one draw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from tuckergp.checks import one_of, positive
from tuckergp.errors import InputError
from tuckergp.inference.algorithm import Converging, Inference, model_of_weight_scales
from tuckergp.inference.base import Algorithm, Problem
from tuckergp.inference.scale_search import best_scale
from tuckergp.inference.weights import draw_of_weights
from tuckergp.likelihoods import Likelihood
from tuckergp.model.draw import Draw
from tuckergp.model.tucker import Core, TuckerModel

__all__ = ["SIGMA_U", "MostProbable", "SigmaU"]

SigmaU: TypeAlias = float | Literal["auto"] | None
SIGMA_U = positive() | one_of("auto", None)

# sigma_u relative to the one that gives f the variance of the ratings, and noise: around what did best on held-out
# parts of MovieLens 100K's training data, with W = I and with W learned.
SCALES, NOISES = (0.8, 0.64, 0.5, 0.36, 0.2), (1.0, 0.75)


class MostProbable(Converging, Algorithm[Any]):
    """Settings and answers that they share; a subclass has the three fields, where it likes among its own."""

    of_noise: ClassVar[tuple[str, ...]] = ("noise",)
    point: ClassVar[bool] = True

    noise: float
    sigma_u: SigmaU
    sigma_w: float | None

    def model(self, core: Core, likelihood: Likelihood) -> TuckerModel:
        """The model with the noise and the prior scales of the settings."""
        if isinstance(self.sigma_u, str):
            raise InputError(f"{self._label('sigma_u')}='auto' is for estimators; give a number here.")
        return model_of_weight_scales(core, likelihood.with_noise(self.noise), self.sigma_u, self.sigma_w)

    def settled(self, core: Core, misfit: Callable[[Inference], float]) -> Inference:
        """With the prior scale of U that serves held-out observations best, if it is left open."""
        if self.sigma_u != "auto":
            return self
        unit = float(core.default_sigma_u()[0])
        return self._with_sigma_u(unit * best_scale(lambda scale: misfit(self._with_sigma_u(unit * scale))))

    def settled_as(self, model: TuckerModel) -> Inference:
        """With the prior scale of U of a model fitted before, if it is left open."""
        return self._with_sigma_u(float(model.sigma_u[0])) if self.sigma_u == "auto" else self

    def _with_sigma_u(self, value: float) -> Inference:
        changes: dict[str, Any] = {"sigma_u": value}
        return replace(self, **changes)

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
