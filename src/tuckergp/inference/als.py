"""MAP by alternating exact solves: each mode's factors, their regression on the features, then the core.

The same conditionals as Gibbs sampling with means instead of draws and the hyperparameters held fixed, so the log
joint never decreases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.errors import InputError
from tuckergp.inference.base import Info, Problem, as_weights, check_positive, replaced
from tuckergp.likelihoods import Gaussian
from tuckergp.model.tucker import Parameters, refuse_learned
from tuckergp.priors.core import core_given_factors
from tuckergp.priors.evidence import Evidence, Precision
from tuckergp.priors.rows import factors_given_weights, weights_given_factors
from tuckergp.priors.weights import weights_given_data
from tuckergp.residuals.line import ChainMode, mean_mode, path_of

__all__ = ["ALS", "ALSState"]

Floats = npt.NDArray[np.float64]


class ALSState(NamedTuple):
    """Factors psi_d and weights B_d of every mode, the core, and the log joint that must not decrease."""

    iteration: int
    psi: tuple[Floats, ...]
    B: tuple[Floats, ...]
    W: Floats
    log_joint: float


@dataclass(frozen=True)
class ALS:
    """Alternating least squares.

    Parameters
    ----------
    iterations : int
        Rounds over all modes and the core, at the most.
    noise : float
        Variance of the Gaussian noise in units of the variance of the targets.
    sigma_u, sigma_w : float or None
        Prior standard deviations of the entries of U and W; None matches moments so that f has prior variance 1.
        The estimators build their model from these three; `tuckergp.running.loop.run` takes a model as it is.
    tolerance : float
        Stop when a round improves the log joint by less than this share of an observation's.

    Examples
    --------
    >>> ALS(iterations=10).noise
    0.5
    """

    iterations: int = 30
    noise: float = 0.5
    sigma_u: float | None = None
    sigma_w: float | None = None
    tolerance: float = 1e-5

    def __post_init__(self) -> None:
        check_positive("ALS", **vars(self))

    @property
    def n_steps(self) -> int:
        """Rounds, at the most."""
        return self.iterations

    def init(self, problem: Problem, rng: np.random.Generator) -> ALSState:
        """Start near a draw from the prior."""
        model, design = problem.model, problem.design
        refuse_learned(model.core, "ALS is")
        start = model.start(design, rng)
        B = tuple(U[mode.n_features - mode.features.shape[1] :] for U, mode in zip(start.U, design.modes, strict=True))
        return ALSState(0, tuple(model.factors(start, design)), B, start.W, -np.inf)

    def step(self, problem: Problem, state: ALSState, rng: np.random.Generator) -> tuple[ALSState, Info]:
        """One round: every mode, then the core."""
        model, precision = problem.model, _precision(problem)
        for d in range(len(problem.design.modes)):
            state = self._update_mode(problem, state, precision, d)
        if model.core.learned:
            W = core_given_factors(
                model.core, state.psi, problem.design.index, problem.sorted[0],
                problem.y, precision, model.sigma_w**-2, state.W,
            )  # fmt: skip
            state = state._replace(W=W)
        f = model.contract(state.psi, state.W, problem.design.index)
        density = model.likelihood.log_density(problem.y, f)
        fit = float(np.sum(density if problem.weight is None else problem.weight * density))
        log_joint = fit + model.log_prior(self.parameters(problem, state), problem.design)
        done = log_joint - state.log_joint < self.tolerance * len(problem.y)
        state = state._replace(iteration=state.iteration + 1, log_joint=log_joint)
        rmse = float(np.sqrt(np.average((problem.y - f) ** 2, weights=problem.weight)))
        return state, Info(state.iteration, {"log_joint": log_joint, "train_rmse": rmse}, done)

    def _update_mode(self, problem: Problem, state: ALSState, precision: Precision, d: int) -> ALSState:
        model, mode, B = problem.model, problem.design.modes[d], state.B[d]
        n, r = B.shape
        prior = float(model.sigma_u[d]) ** -2 * np.eye(r)
        evidence = Evidence(problem.sorted[d], problem.y, precision, model.core, d, state.psi, state.W)
        if mode.line is not None:
            last = ChainMode(state.psi[d], B, mode.line.lengthscale)
            psi, B, _ = mean_mode(mode, evidence.statistics(), last, np.ones(len(mode.blocks)), prior)
        elif mode.residual is None:
            A, b = evidence.statistics()
            B = weights_given_data(mode.features, A, b, np.ones(n), prior, B)
            psi = np.asarray(mode.features @ B)
        else:
            variance = mode.residual_scale**2
            psi = factors_given_weights(evidence, np.asarray(mode.features @ B), prior / variance)
            B = weights_given_factors(problem.regressions[d], psi, np.full(len(mode.blocks), variance), B)
        return state._replace(psi=replaced(state.psi, d, psi), B=replaced(state.B, d, B))

    def parameters(self, problem: Problem, state: ALSState) -> Parameters:
        """The weight-space form of factors and weights, and the paths of chains."""
        modes = list(zip(problem.design.modes, state.psi, state.B, strict=True))
        paths = tuple(
            path_of(mode, ChainMode(psi, B, mode.line.lengthscale), np.eye(B.shape[1])) if mode.line else None
            for mode, psi, B in modes
        )
        return Parameters(tuple(as_weights(mode, psi, B) for mode, psi, B in modes), state.W, paths)


def _precision(problem: Problem) -> Precision:
    """Noise precision of every observation."""
    likelihood = problem.model.likelihood
    if not isinstance(likelihood, Gaussian):
        raise InputError("ALS is for a Gaussian likelihood; for an ordinal one use Gibbs, for any other NUTS or SGD.")
    return Precision(1 / likelihood.noise, problem.weight)
