"""A start for a field that is all there is of f: lengthscales and noise at the mode of their posterior on some places.

Slice steps from far away take many evaluations of the density of all places, each of which factors them; a search on
some places costs next to nothing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from tuckergp.priors.given import ModeGiven
from tuckergp.residuals.lengthscales import FieldState, Responses
from tuckergp.residuals.places import Places

__all__ = ["searched"]

Floats = npt.NDArray[np.float64]

SOME = 300
"""Places among which is searched."""

FACTORS = (0.3, 1.0, 3.0)
"""Searches begin at so many times the lengthscales of the kernel."""

NOISE = 0.1
"""The variance of the noise at which they begin, relative to that of the field."""

FARTHEST = 5.0
"""Logarithms stay within this distance of where they begin."""

STEPS = 40
"""The most steps of a search."""


def searched(state: FieldState, responses: Responses, weights: Floats, given: ModeGiven) -> FieldState:
    """The state with the lengthscales and Lambda of the highest posterior density that was found."""
    # the order is coarse to fine, so every k-th place is one of all sizes of gaps
    some = np.arange(0, len(responses.y), max(1, len(responses.y) // SOME))
    share = len(some) / len(responses.y)
    few = replace(
        responses,
        y=responses.y[some],
        a=responses.a[some],
        within=share * responses.within,
        noise=replace(responses.noise, count=share * responses.noise.count),
    )
    places = Places(state.places.X[some], state.places.order, len(some), len(some))

    def at(x: Floats) -> FieldState:
        return replace(state, places=places, lengthscale=np.exp(x[:-1]))

    def loss(x: Floats) -> float:
        density = few.log_density(at(x), float(x[-1]), weights, given) + at(x).log_prior
        return -density if np.isfinite(density) else np.inf

    best, least = np.append(np.log(state.lengthscale), 0.0), np.inf
    for factor in FACTORS:
        x = np.append(np.log(factor * state.centre), -np.log(NOISE))
        bounds = [(each - FARTHEST, each + FARTHEST) for each in x]
        found = minimize(loss, x, method="L-BFGS-B", bounds=bounds, options={"maxiter": STEPS})
        if found.fun < least:
            best, least = found.x, found.fun
    lengthscale = np.exp(best[:-1])
    precision = responses.noise.alpha * state.sd**2 / np.exp(best[-1])
    return replace(state, lengthscale=lengthscale, metric=lengthscale, precision=np.full((1, 1), precision))
