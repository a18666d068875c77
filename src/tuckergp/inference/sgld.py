"""Stochastic gradient Langevin dynamics: gradient steps on mini-batches with noise added, of decreasing length.

One step here is one pass over the data in random batches, then a draw of the noise. Nothing is rejected, so draws are
of the posterior only as far as steps are short (Welling and Teh, 2011).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.checks import number, one_of, positive, setting, whole
from tuckergp.errors import DivergenceError, InputError
from tuckergp.inference.base import Info, Problem
from tuckergp.inference.weights import LogJoint, WeightSampler, prior_scales

__all__ = ["SGLD", "SGLDState"]

Floats = npt.NDArray[np.float64]

# Decay of the running mean square of gradients, and the smallest mean square of an entry as a share of their mean.
MEMORY, FLOOR = 0.99, 0.1
DECAY = number("0, or above 0.5 and at most 1", lambda value: value == 0 or 0.5 < value <= 1)


class SGLDState(NamedTuple):
    """The unknowns, and the running figures that set the step sizes.

    Attributes
    ----------
    sweep, updates : int
        Passes over the data and updates so far.
    theta : ndarray, shape (P,)
        U_1 ... U_D, W and free unknowns, one after the other.
    alpha : float
        Noise precision; 1 for a likelihood without one.
    squares : ndarray, shape (P,)
        Running mean square of the gradients, in units of the prior's scales; kept as it is after the warm-up.
    """

    sweep: int
    updates: int
    theta: Floats
    alpha: float
    squares: Floats


@dataclass(frozen=True)
class SGLD(WeightSampler):
    """Stochastic gradient Langevin dynamics.

    Update t moves theta by e_t / 2 G (gradient of the log joint, from the batch) + N(0, e_t G), where
    e_t = step_size (1 + t / delay)^-decay / (1 + N alpha), alpha the noise precision: more data, shorter steps. For
    levels alpha is 1, for counts the mean count.

    Parameters
    ----------
    draws, warmup : int
        Passes over the data after and during warm-up, of each chain; a draw is taken after each.
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
    batch_size : int
    step_size : float
        The first step relative to 1 / (1 + N alpha), about the share of the prior variance that data leave to a weight.
        Shorter ones have less bias and take longer.
    decay : float
        How fast steps shrink, above 0.5 and up to 1; 0 keeps them as they are, and their bias with them.
    delay : float
        Number of updates after which steps begin to shrink noticeably.
    precondition : bool
        Let the warm-up choose the diagonal G: the prior's variances over the root mean square of the gradients. It is
        fixed afterwards, so the draws need no correction. False: the prior's variances.

    Examples
    --------
    >>> round(SGLD(step_size=0.01, decay=1.0, delay=100.0).step_at(100), 6)
    0.005
    """

    name: ClassVar[str] = "sgld"

    batch_size: int = setting(100, whole(1))
    step_size: float = setting(0.1, positive())
    decay: float = setting(0.55, DECAY)
    delay: float = setting(1000.0, positive())
    precondition: bool = setting(False, one_of(True, False))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.precondition and self.warmup == 0:
            raise InputError("SGLD: precondition=True needs a warm-up to learn from; raise warmup.")

    def step_at(self, update: int) -> float:
        """The relative step size of an update, counted from 0."""
        return float(self.step_size * (1 + update / self.delay) ** -self.decay)

    def init(self, problem: Problem, rng: np.random.Generator) -> SGLDState:
        """Start near a draw from the prior."""
        theta, alpha = self.start(problem, rng)
        return SGLDState(0, 0, theta, alpha, np.zeros(len(theta)))

    def step(self, problem: Problem, state: SGLDState, rng: np.random.Generator) -> tuple[SGLDState, Info]:
        """One pass over the data, then the noise."""
        log_joint, prior = LogJoint(problem, state.alpha), prior_scales(problem)
        unit = 1 / (1 + len(problem.y) * log_joint.model.likelihood.information(problem.y))
        order = rng.permutation(len(problem.y))
        # batches of about the same size, as an unbiased gradient needs them
        batches = np.array_split(order, -(-len(order) // self.batch_size))
        theta, squares, learning = state.theta, state.squares, self.precondition and state.sweep < self.warmup
        for update, batch in enumerate(batches, start=state.updates):
            with np.errstate(over="ignore", invalid="ignore"):
                gradient = prior * log_joint.of_batch(theta, batch)[1]
            if learning:
                squares = MEMORY * squares + (1 - MEMORY) * gradient**2
            step = unit * self.step_at(update) * self._conditioner(squares)
            theta = theta + prior * (0.5 * step * gradient + np.sqrt(step) * rng.standard_normal(len(theta)))
            if not np.isfinite(theta).all():
                raise DivergenceError(
                    f"SGLD diverged in pass {state.sweep + 1}: lower step_size={self.step_size:g}, or raise "
                    f"batch_size={self.batch_size}."
                )
        alpha, figures = self.draw_noise(problem, theta, state.alpha, rng)
        state = SGLDState(state.sweep + 1, state.updates + len(batches), theta, alpha, squares)
        return state, Info(state.sweep, figures)

    def _conditioner(self, squares: Floats) -> Floats:
        """G relative to the prior variances: the mean size of all gradients over that of each, at most 1 / FLOOR."""
        if not self.precondition:
            return np.ones(len(squares))
        root = np.sqrt(squares)
        mean = float(root.mean())
        return mean / np.maximum(root, FLOOR * mean)
