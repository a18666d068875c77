"""What samplers of the weights U and W have in common: the log joint of one vector, the noise, and draws.

HMC, NUTS and SGLD move all weights together, so the unknowns are laid one after the other in a vector theta:
U_1 ... U_D, then the learned entries of W, then the free unknowns of the likelihood. Prior scales are the model's and
stay fixed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from tuckergp.checks import one_of, positive, setting
from tuckergp.errors import InputError
from tuckergp.inference.algorithm import Sampled, model_of_weight_scales
from tuckergp.inference.base import Problem
from tuckergp.likelihoods import Likelihood
from tuckergp.model.draw import Draw, draw_of
from tuckergp.model.tucker import Core, Parameters, TuckerModel, pack, refuse_learned, refuse_residuals

__all__ = [
    "LogJoint",
    "WeightSampler",
    "WeightState",
    "draw_of_weights",
    "per_entry",
    "prior_scales",
    "vector_of",
]

Floats = npt.NDArray[np.float64]


class WeightState(Protocol):
    """What the states of all samplers of weights have."""

    @property
    def theta(self) -> Floats:
        """U_1 ... U_D, W and free unknowns, one after the other."""

    @property
    def alpha(self) -> float:
        """Noise precision; 1 for a likelihood without one."""


def n_free(problem: Problem) -> int:
    """How many unknowns of the likelihood gradients move."""
    return len(problem.model.likelihood.free)


def per_entry(blocks: Sequence[slice], values: Sequence[float] | Floats) -> Floats:
    """One value for each block, repeated for all its entries."""
    return np.repeat(np.asarray(values, dtype=np.float64), [block.stop - block.start for block in blocks])


def prior_scales(problem: Problem) -> Floats:
    """Prior standard deviation of every entry of theta."""
    model = problem.model
    scales = [*model.sigma_u, *([model.sigma_w] if model.core.learned else [])]
    scales += [model.likelihood.free_scale] if n_free(problem) else []
    return per_entry(problem.weight_blocks, scales)


def vector_of(parameters: Parameters) -> Floats:
    """The vector theta of parameters."""
    return pack([*parameters.U, parameters.W, parameters.free])[0]


def parameters_of(problem: Problem, theta: Floats) -> Parameters:
    """The parameters of theta, as views of it."""
    core, blocks = problem.model.core, problem.weight_blocks
    U = tuple(theta[block].reshape(-1, r) for block, r in zip(blocks, core.ranks, strict=False))
    W = theta[blocks[len(U)]] if core.learned else np.zeros(0)
    return Parameters(U, W, free=theta[blocks[-1]] if n_free(problem) else np.zeros(0))


def model_at(problem: Problem, alpha: float) -> TuckerModel:
    """The model with Gaussian noise of this precision; models without Gaussian noise as they are."""
    return replace(problem.model, likelihood=problem.model.likelihood.with_noise(1 / alpha))


@dataclass(frozen=True)
class LogJoint:
    """log p(y, U, W) as a function of theta at one noise precision."""

    problem: Problem
    alpha: float

    @cached_property
    def model(self) -> TuckerModel:
        """The model with this noise."""
        return model_at(self.problem, self.alpha)

    @cached_property
    def precision(self) -> Floats:
        """The prior precision of every entry of theta."""
        return prior_scales(self.problem) ** -2

    def __call__(self, theta: Floats) -> tuple[float, Floats]:
        """The value, up to a constant, and the gradient."""
        if not self.model.likelihood.conjugate:
            return self.of_batch(theta, None)
        total, gradient = self.problem.squares(theta)
        # (N log(alpha / 2 pi) - alpha sum (y - f)^2 - theta'S^-2 theta) / 2, S the prior standard deviations
        shrinkage = self.precision * theta
        value = 0.5 * (self._normaliser - self.alpha * total - float(shrinkage @ theta))
        gradient *= self.alpha
        gradient -= shrinkage
        return value, gradient

    @cached_property
    def _normaliser(self) -> float:
        return self.problem.count * math.log(self.alpha / (2 * math.pi))

    def of_batch(self, theta: Floats, batch: npt.NDArray[np.intp] | None) -> tuple[float, Floats]:
        """The log joint and its gradient from a batch, each observation counted N / m times; unbiased if random."""
        problem = self.problem if batch is None else self.problem.take(batch)
        weight = problem.weight
        if batch is not None:
            share = len(self.problem.y) / len(batch)
            weight = np.full(len(batch), share) if weight is None else share * weight
        parameters = parameters_of(self.problem, theta)
        value, gradient = self.model.log_joint_and_gradient(
            parameters, problem.design, problem.y, weight, problem.offset
        )
        return value, vector_of(gradient)


@dataclass(frozen=True)
class WeightSampler(Sampled):
    """Settings and answers that samplers of the weights share; see `HMC` for what they mean."""

    of_noise: ClassVar[tuple[str, ...]] = ("alpha_shape", "alpha_rate")

    noise: float | None = setting(None, positive() | one_of(None))
    sigma_u: float | None = setting(None, positive() | one_of(None))
    sigma_w: float | None = setting(None, positive() | one_of(None))
    alpha_shape: float = setting(1.0, positive())
    alpha_rate: float = setting(0.5, positive())

    def model(self, core: Core, likelihood: Likelihood) -> TuckerModel:
        """The model with the prior scales of the settings; the noise is drawn, or fixed by the sampler itself."""
        return model_of_weight_scales(core, likelihood, self.sigma_u, self.sigma_w)

    def start(self, problem: Problem, rng: np.random.Generator) -> tuple[Floats, float]:
        """theta near a draw from the prior, and the noise precision to begin with."""
        refuse_residuals(problem.design, f"{type(self).__name__} is")
        refuse_learned(problem.model.core, f"{type(self).__name__} is")
        if not problem.model.likelihood.conjugate:
            if self.noise is not None:
                raise InputError(f"{type(self).__name__}: noise is for a Gaussian likelihood; leave it out.")
            return vector_of(problem.model.start(problem.design, rng)), 1.0
        alpha = self.alpha_shape / self.alpha_rate if self.noise is None else 1 / self.noise
        return vector_of(problem.model.start(problem.design, rng)), alpha

    def draw_noise(
        self, problem: Problem, theta: Floats, alpha: float, rng: np.random.Generator
    ) -> tuple[float, dict[str, float]]:
        """Draw the noise precision from its gamma conditional, unless it is fixed; and figures of the fit."""
        likelihood, count = problem.model.likelihood_at(parameters_of(problem, theta)), problem.count
        if not likelihood.conjugate:
            f = problem.with_offset(self._f(problem, theta, problem.design.index))
            return alpha, {"log_probability": float(likelihood.log_density(problem.y, f).mean())}
        total = problem.squares(theta)[0]
        if self.noise is None:
            # Gamma(shape + N / 2, rate + sum (y - f)^2 / 2)
            alpha = float(rng.gamma(self.alpha_shape + count / 2) / (self.alpha_rate + total / 2))
        return alpha, {"train_rmse": (total / count) ** 0.5, "noise": alpha**-0.5}

    def parameters(self, problem: Problem, state: WeightState) -> Parameters:
        """U, W and free unknowns of this state."""
        return parameters_of(problem, state.theta)

    def function(self, problem: Problem, state: WeightState, index: npt.NDArray[np.int32]) -> Floats:
        """f of this state at some observations, shape (n,)."""
        return self._f(problem, state.theta, index)

    def _f(self, problem: Problem, theta: Floats, index: npt.NDArray[np.int32]) -> Floats:
        parameters = parameters_of(problem, theta)
        return problem.model.contract(problem.model.factors(parameters, problem.design), parameters.W, index)

    def watch(self, problem: Problem, state: WeightState) -> dict[str, Floats]:
        """Identified quantities of this state: f and log p(y | f) at the observations, noise or cut points."""
        f, likelihood = self.function(problem, state, problem.design.index), self._likelihood(problem, state)
        density = likelihood.log_density(problem.y, problem.with_offset(f))
        return {"f": f, "log_likelihood": density, **likelihood.watched(likelihood.unknowns())}

    def _likelihood(self, problem: Problem, state: WeightState) -> Likelihood:
        return model_at(problem, state.alpha).likelihood_at(parameters_of(problem, state.theta))

    def draw(self, problem: Problem, state: WeightState) -> Draw:
        """What predictions need of this state; rows never seen have the prior."""
        return draw_of_weights(problem, self.parameters(problem, state), self._likelihood(problem, state).unknowns())


def draw_of_weights(problem: Problem, parameters: Parameters, unknowns: Mapping[str, Floats]) -> Draw:
    """What predictions need of weights; rows never seen have the prior of the model."""
    model, tables = problem.model, problem.design.modes
    spread = [np.eye(int(r)) * float(sigma) ** 2 for r, sigma in zip(model.core.ranks, model.sigma_u, strict=True)]
    tau = [np.ones(len(table.blocks)) for table in tables]
    B = [U[table.residual.n_columns :] for table, U in zip(tables, parameters.U, strict=True)]
    psi = model.factors(parameters, problem.design)
    return draw_of(tables, psi, B, spread, tau, parameters.own, parameters.W, unknowns)
