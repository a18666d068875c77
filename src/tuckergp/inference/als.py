"""MAP by alternating exact solves: each mode's factors, their regression on the features, then the core.

The same conditionals as Gibbs sampling with means instead of draws and the hyperparameters held fixed, so the log
joint never decreases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.checks import one_of, positive, setting, whole
from tuckergp.inference.base import Info, Problem, as_weights
from tuckergp.inference.cost import sweep_bytes, sweep_seconds
from tuckergp.inference.most_probable import SIGMA_U, MostProbable, SigmaU
from tuckergp.inference.resuming import ChainValues, weights_at
from tuckergp.model.design import Design
from tuckergp.model.tucker import Core, Parameters, refuse_learned
from tuckergp.priors.given import ModeGiven
from tuckergp.priors.hyper import PrecisionPrior
from tuckergp.residuals.base import ModeState
from tuckergp.statistics.core import core_given_factors
from tuckergp.statistics.evidence import NUMBERS

__all__ = ["ALS", "ALSState"]

Floats = npt.NDArray[np.float64]


class ALSState(NamedTuple):
    """The unknowns of each mode, the core, and the log joint that must not decrease."""

    iteration: int
    modes: tuple[ModeState, ...]
    W: Floats
    log_joint: float


@dataclass(frozen=True)
class ALS(MostProbable):
    """Alternating least squares.

    Parameters
    ----------
    iterations : int
        The most rounds over all modes and the core.
    noise : float
        Variance of the Gaussian noise in units of the variance of the targets.
    sigma_u, sigma_w : float or None
        Prior standard deviations of the entries of U and W. None matches moments: whatever the rank, f has the product
        of the modes' k(x, x) as prior variance, 2^D where each mode has a Constant (the default) and one further term.
        ``sigma_u="auto"`` finds it by trials on held-out training data, three to six of them, each a fit to nine
        tenths of at most about 200,000 observations (several such fits below 20,000), before the fit to all data.
        The estimators build their model from these three; `tuckergp.running.loop.run` takes a model as it is.
    tolerance : float
        Stop when a round improves the log joint by less than this for each observation.
    precision : {"float64", "float32"}
        The numbers in which products of factors are computed; "float32" takes about half the time. Sums over blocks of
        observations, and all solves, are in float64.

    Examples
    --------
    >>> ALS(iterations=10).noise
    0.5
    """

    name: ClassVar[str] = "als"
    any_residual: ClassVar[bool] = True
    for_ratings: ClassVar[bool] = True
    resumes: ClassVar[bool] = True

    iterations: int = setting(30, whole(1))
    noise: float = setting(0.5, positive())
    sigma_u: SigmaU = setting(None, SIGMA_U)
    sigma_w: float | None = setting(None, positive() | one_of(None))
    tolerance: float = setting(1e-5, positive())
    precision: Literal["float64", "float32"] = setting("float64", one_of(*NUMBERS))

    def step_seconds(self, problem: Problem) -> float:
        """About how many seconds a round takes."""
        return sweep_seconds(problem)

    def step_bytes(self, design: Design, core: Core) -> int:
        """How much memory a round needs at the least."""
        return sweep_bytes(design, core)

    @property
    def n_steps(self) -> int:
        """The most rounds."""
        return self.iterations

    def init(self, problem: Problem, rng: np.random.Generator) -> ALSState:
        """Start near a draw from the prior."""
        model, design = problem.model, problem.design
        refuse_learned(model.core, "ALS is")
        self.check_likelihood(type(model.likelihood))
        start = model.start(design, rng)
        psi = model.factors(start, design)
        modes = [
            self.mode_state(problem, d, psi[d], U[mode.residual.n_columns :], own)
            for d, (mode, U, own) in enumerate(zip(design.modes, start.U, start.own, strict=True))
        ]
        return ALSState(0, tuple(modes), start.W, -np.inf)

    def resumed(self, problem: Problem, values: ChainValues, rng: np.random.Generator) -> ALSState:
        """The state with the values of an earlier run; weights of features are their means given the factors."""
        modes = tuple(
            self.mode_state(problem, d, mode.psi, weights_at(problem, d, mode, None))
            for d, mode in enumerate(values.modes)
        )
        return ALSState(0, modes, values.W, -np.inf)

    @staticmethod
    def mode_state(problem: Problem, d: int, psi: Floats, B: Floats, own: tuple[Any, ...] = ()) -> ModeState:
        """The state of a mode with these factors and weights, and its fixed hyperparameters."""
        precision = np.eye(B.shape[1]) / float(problem.model.sigma_u[d]) ** 2
        return ModeState(psi, B, precision, np.ones(len(problem.design.modes[d].blocks)), own)

    def step(self, problem: Problem, state: ALSState, rng: np.random.Generator) -> tuple[ALSState, Info]:
        """One round: every mode, then the core."""
        model, modes, W = problem.model, list(state.modes), state.W
        likelihood, observed = model.likelihood, problem.observed
        y, precision = likelihood.fixed(observed)
        for d, table in enumerate(problem.design.modes):
            psi = [mode.psi for mode in modes]
            evidence = problem.evidence(d, y, precision, psi, W, NUMBERS[self.precision])
            prior = PrecisionPrior(1.0, float(model.sigma_u[d]) ** 2, True)
            given = ModeGiven(table.features, table.blocks, problem.regressions[d], prior)
            modes[d], _ = table.residual.update(modes[d], evidence, given, None)
        psi = [mode.psi for mode in modes]
        if model.core.learned:
            W = core_given_factors(
                model.core, psi, problem.design.index, problem.sorted[0], y, precision, model.sigma_w**-2, W
            )
        state = ALSState(state.iteration + 1, tuple(modes), W, state.log_joint)
        sums = problem.evidence(0, y, precision, psi, W).residuals()
        squares = float(sums.squares.sum()) + sums.background
        fit = 0.5 * (problem.count * np.log(precision.alpha / (2 * np.pi)) - precision.alpha * squares)
        log_joint = fit + model.log_prior(self.parameters(problem, state), problem.design)
        done = bool(log_joint - state.log_joint < self.tolerance * problem.n_observations)
        figures = {"log_joint": log_joint, "train_rmse": likelihood.mean_square(observed, sums) ** 0.5}
        return state._replace(log_joint=log_joint), Info(state.iteration, figures, done)

    def parameters(self, problem: Problem, state: ALSState) -> Parameters:
        """The weight-space form of factors and weights, and the own unknowns of residuals."""
        U, own = [], []
        for table, mode in zip(problem.design.modes, state.modes, strict=True):
            E = np.asarray(mode.psi - table.features @ mode.B)
            U.append(as_weights(table, mode.psi, mode.B))
            own.append(table.residual.finished(E, mode.own, np.eye(E.shape[1]), None))
        return Parameters(tuple(U), state.W, tuple(own))
