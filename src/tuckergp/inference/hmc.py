"""Hamiltonian Monte Carlo on the log joint of U and W: the sampler of the paper's appendix, misprints corrected.

One step is one trajectory of leapfrogs that is accepted or rejected, then a draw of the noise. A leapfrog costs a pass
over all observations. `docs/paper.md` lists where the printed algorithm differs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.checks import one_of, positive, probability, setting, whole
from tuckergp.inference.adaptation import DualAverage, Variances, averaged, window_ends, with_acceptance, with_point
from tuckergp.inference.base import Info, Problem
from tuckergp.inference.weights import LogJoint, WeightSampler, prior_scales

__all__ = ["HMC", "HMCState", "leapfrogs"]

Floats = npt.NDArray[np.float64]
LogDensity = Callable[[Floats], tuple[float, Floats]]

# A trajectory whose energy rises by more than this has diverged.
DIVERGED = 1000.0


class HMCState(NamedTuple):
    """The unknowns, and what the warm-up has learned.

    Attributes
    ----------
    sweep : int
        Trajectories so far.
    theta : ndarray, shape (P,)
        U_1 ... U_D, W and free unknowns, one after the other.
    alpha : float
        Noise precision; 1 for a likelihood without one.
    scale : ndarray, shape (P,)
        Relative step size of every entry: a diagonal mass matrix, its power -1/2.
    tuner : DualAverage
        The step size that multiplies them.
    variances : Variances
        Of theta, in the present window of the warm-up.
    divergences : int
        Trajectories after the warm-up that diverged.
    """

    sweep: int
    theta: Floats
    alpha: float
    scale: Floats
    tuner: DualAverage
    variances: Variances
    divergences: int = 0


def leapfrogs(
    log_density: LogDensity, theta: Floats, momentum: Floats, steps: Floats, count: int
) -> tuple[Floats, Floats, float]:
    """Follow Hamilton's equations by ``count`` leapfrogs (Neal 2011), each entry with its own step size.

    Every gradient is taken at the present point. With the momentum reversed the trajectory leads back to the start.

    Returns
    -------
    theta, momentum : ndarray, shapes (P,)
        Where the trajectory ends; it ends early where the density is not finite.
    value : float
        The log density there.

    Examples
    --------
    >>> import numpy as np
    >>> normal = lambda x: (-0.5 * float(x @ x), -x)
    >>> x, p, _ = leapfrogs(normal, np.ones(1), np.zeros(1), np.array([0.01]), 100)
    >>> bool(abs(x @ x + p @ p - 1) < 1e-4)
    True
    """
    value, gradient = log_density(theta)
    for _ in range(count):
        # p += eps / 2 grad; theta += eps p; p += eps / 2 grad
        momentum = momentum + 0.5 * steps * gradient
        theta = theta + steps * momentum
        value, gradient = log_density(theta)
        if not (math.isfinite(value) and np.isfinite(gradient).all()):
            return theta, momentum, -math.inf
        momentum = momentum + 0.5 * steps * gradient
    return theta, momentum, value


@dataclass(frozen=True)
class HMC(WeightSampler):
    """Hamiltonian Monte Carlo.

    Parameters
    ----------
    draws, warmup : int
        Trajectories of a chain after and during warm-up. Step sizes are learned in the warm-up and then kept.
    thin : int
        Keep one of this many draws.
    chains : int
        Independent chains from one seed.
    noise : float or None
        Variance of Gaussian noise in units of the targets' variance; None draws it from its conditional.
    sigma_u, sigma_w : float or None
        Prior standard deviations of the entries of U and W. None matches moments: whatever the rank, f has the product
        of the modes' k(x, x) as prior variance, 2^D where each mode has a Constant (the default) and one further term.
        The estimators build their model from these two; `tuckergp.running.loop.sample` takes a model as it is.
    alpha_shape, alpha_rate : float
        Gamma prior of the noise precision where it is drawn.
    leapfrogs : int
        The most leapfrogs of a trajectory, L; their number is drawn from 1 to L, so that trajectories do not keep
        returning to where they start.
    step_size : float
        Step size to begin with, relative to the prior standard deviation of each U_d and of W.
    target : float
        Acceptance probability for which the warm-up adapts the step size. It is met on average while steps are tried
        out; the step that is kept, their average, is shorter and accepted more often. See Hoffman and Gelman (2014).
    mass : {"diagonal", "blocks"}
        A relative step size for every entry, or one for each U_d and one for W as in the paper; from the standard
        deviations met in the warm-up.

    Examples
    --------
    >>> HMC(draws=100, warmup=50, leapfrogs=20).n_steps
    150
    """

    name: ClassVar[str] = "hmc"

    leapfrogs: int = setting(20, whole(1))
    step_size: float = setting(0.01, positive())
    target: float = setting(0.8, probability())
    mass: Literal["diagonal", "blocks"] = setting("diagonal", one_of("diagonal", "blocks"))

    def init(self, problem: Problem, rng: np.random.Generator) -> HMCState:
        """Start near a draw from the prior, as in the paper, with steps in proportion to the prior's scales."""
        theta, alpha = self.start(problem, rng)
        return HMCState(0, theta, alpha, prior_scales(problem), averaged(self.step_size), Variances.empty(len(theta)))

    def step_sizes(self, state: HMCState) -> Floats:
        """The step size of every entry: the one under trial in the warm-up, the average of its trials afterwards."""
        return self.mean_step_size(state) * state.scale

    def mean_step_size(self, state: HMCState) -> float:
        """The step size that multiplies the relative ones."""
        return math.exp(state.tuner.log_step if state.sweep < self.warmup else state.tuner.log_average)

    def step(self, problem: Problem, state: HMCState, rng: np.random.Generator) -> tuple[HMCState, Info]:
        """One trajectory, accepted or rejected; then the noise; in the warm-up, the adaptation of the step sizes."""
        log_joint = LogJoint(problem, state.alpha)
        count = int(rng.integers(1, self.leapfrogs + 1))
        momentum = rng.standard_normal(len(state.theta))
        # -H = log p(theta) - p'p / 2
        start = log_joint(state.theta)[0]
        before = start - 0.5 * float(momentum @ momentum)
        with np.errstate(over="ignore", invalid="ignore"):
            theta, momentum, value = leapfrogs(log_joint, state.theta, momentum, self.step_sizes(state), count)
            change = value - 0.5 * float(momentum @ momentum) - before
        diverged = not change > -DIVERGED
        # Metropolis: accept with probability min(1, exp(-H after + H before))
        probability = 0.0 if diverged else math.exp(min(change, 0.0))
        if rng.random() >= probability:
            theta, change, value = state.theta, 0.0, start
        alpha, figures = self.draw_noise(problem, theta, state.alpha, rng)
        step_size = self.mean_step_size(state)
        warm = state.sweep < self.warmup
        divergences = state.divergences + (diverged and not warm)
        state = state._replace(sweep=state.sweep + 1, theta=theta, alpha=alpha, divergences=divergences)
        if warm:
            state = self._adapted(problem, state, probability)
        figures |= {"acceptance": probability, "divergences": float(divergences), "leapfrogs": float(count)}
        figures |= {"energy": -before - change, "lp": value, "step_size": step_size}
        return state, Info(state.sweep, figures)

    def _adapted(self, problem: Problem, state: HMCState, probability: float) -> HMCState:
        """The state with its step size adapted, and at the end of a window with new relative step sizes."""
        state = state._replace(tuner=with_acceptance(state.tuner, probability, self.target))
        first, ends = window_ends(self.warmup)
        if not (ends and first < state.sweep <= ends[-1]):
            return state
        variances = with_point(state.variances, state.theta)
        if state.sweep not in ends or not variances.squares.any():
            return state._replace(variances=variances)
        scale = variances.scales(problem.weight_blocks, self.mass == "diagonal")
        # about the same distance per step as before, for the tuner to go on from
        ratio = float(np.exp(np.mean(np.log(state.scale) - np.log(scale))))
        step = ratio * math.exp(state.tuner.log_average)
        return state._replace(scale=scale, tuner=averaged(step), variances=Variances.empty(len(scale)))
