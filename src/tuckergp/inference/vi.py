"""Mean-field variational inference: independent beliefs q of factors, weights, core and all hyperparameters.

Coordinate ascent (Bishop 2006, section 10.1): each q in turn is the best one given the others, so that the evidence
lower bound never decreases. The same statistics and conjugate forms as `tuckergp.inference.gibbs`, with expectations
instead of draws.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.checks import one_of, positive, setting, whole
from tuckergp.errors import InputError, NotConvergedWarning
from tuckergp.inference.algorithm import Converging, HyperPriors
from tuckergp.inference.base import Info, Problem, as_weights
from tuckergp.inference.vi_mode import ModeBelief, ModePrior, check_mode
from tuckergp.model.draw import Draw, draw_of
from tuckergp.model.tucker import Parameters, refuse_learned
from tuckergp.priors.beliefs import LOG_2PI, Gammas, Normal, PrecisionBelief, normals
from tuckergp.priors.hyper import PrecisionPrior
from tuckergp.statistics.expected import core_statistics, expected_squares, row_statistics

__all__ = ["VI", "VIState"]

Floats = npt.NDArray[np.float64]

# The draws must hold at least this many independent sets of deviations for each set to come with all its signs.
FEWEST_SETS = 8
# The most entries of a core whose covariances are kept.
LARGEST_CORE = 1_024
# A training error this near to that of the mean says that nothing was learned.
EXPLAINS_NOTHING = 0.999


class VIState(NamedTuple):
    """Beliefs of all unknowns after a number of sweeps, and the lower bound of the log evidence.

    Attributes
    ----------
    sweep : int
    modes : tuple of ModeBelief
    W : Normal
        Entries of the core, (Q, 1); none of an identity core.
    alpha : Gammas
        Noise precision.
    bound : float
    """

    sweep: int
    modes: tuple[ModeBelief, ...]
    W: Normal
    alpha: Gammas
    bound: float


@dataclass(frozen=True)
class VI(HyperPriors, Converging):
    """Mean-field variational inference for Gaussian noise.

    Parameters
    ----------
    iterations : int
        The most sweeps over all unknowns.
    tolerance : float
        Stop when a sweep raises the lower bound by less than this for every observation.
    draws : int
        Draws from q that predictions use. Draws come in sets of deviations from the means with all signs, 2^D in a
        set, or 2^(D + 1) with a learned core; with whole sets mean predictions are exactly those of q.
    factorised : bool
        Whether q makes all entries of the factors, of weights of modes without a residual, and of the core
        independent, instead of keeping the covariances within a row, a mode, the core.
    dof, scale, tau_shape, tau_rate, alpha_shape, alpha_rate
        The priors, as in `Gibbs`.

    Examples
    --------
    >>> from tuckergp import TuckerGPRegressor
    >>> X = np.random.default_rng(0).uniform(-2, 2, size=(200, 2))
    >>> y = np.sin(X[:, 0]) * np.cos(X[:, 1])
    >>> model = TuckerGPRegressor(rank=2, inference=VI(iterations=50), random_state=0).fit(X, y)
    >>> mean, std = model.predict(X, return_std=True)
    >>> bounds = [info.figures["elbo"] for info in model.fit_.steps]
    >>> bool(np.all(np.diff(bounds) > -1e-6))
    True
    """

    name: ClassVar[str] = "vi"
    for_ratings: ClassVar[bool] = True

    iterations: int = setting(200, whole(1))
    tolerance: float = setting(1e-5, positive())
    draws: int = setting(256, whole(1))
    factorised: bool = setting(False, one_of(True, False))

    @property
    def n_steps(self) -> int:
        """The most sweeps."""
        return self.iterations

    def init(self, problem: Problem, rng: np.random.Generator) -> VIState:
        """Point masses near a draw from the prior, which the first sweep replaces; hyperparameters at prior means."""
        model, design = problem.model, problem.design
        _check(problem)
        start = model.start(design, rng)
        modes = []
        for d, (prior, U) in enumerate(zip(self.priors(problem), start.U, strict=True)):
            B = U[prior.table.n_features - prior.table.features.shape[1] :]
            precision = np.eye(U.shape[1]) / model.sigma_u[d] ** 2
            modes.append(prior.start(np.asarray(prior.table.table @ U, dtype=np.float64), B, precision))
        W = Normal(start.W[:, None], np.zeros((len(start.W), len(start.W))), 0.0)
        alpha = Gammas(np.array([self.alpha_shape]), np.array([self.alpha_rate]))
        return VIState(0, tuple(modes), W, alpha, -np.inf)

    def priors(self, problem: Problem) -> tuple[ModePrior, ...]:
        """The modes of the problem with their priors."""
        model = problem.model
        return tuple(
            ModePrior(
                table,
                gram,
                PrecisionBelief.of(
                    PrecisionPrior.centred(self.dof, float(sigma) ** 2, int(r), model.core.learned), int(r)
                ),
                self.tau_shape,
                self.tau_rate,
                self.factorised,
            )
            for table, gram, sigma, r in zip(
                problem.design.modes, problem.grams, model.sigma_u, model.core.ranks, strict=True
            )
        )

    def step(self, problem: Problem, state: VIState, rng: np.random.Generator) -> tuple[VIState, Info]:
        """One sweep: every mode, then the core, then the noise."""
        core, priors = problem.model.core, self.priors(problem)
        modes, W, alpha = state.modes, state.W, float(state.alpha.mean[0])
        for d, prior in enumerate(priors):
            factors = [mode.factors for mode in modes]
            A, b = row_statistics(core, d, problem.observations[d], factors, W)
            modes = (*modes[:d], prior.update(modes[d], alpha * A, alpha * b), *modes[d + 1 :])
        if core.learned:
            # q(W) = N(H^-1 alpha right, H^-1), H = alpha gram + I / sigma_w^2
            gram, right = core_statistics(core, problem.observations[0], [mode.factors for mode in modes])
            system = alpha * gram + np.eye(len(gram)) / problem.model.sigma_w**2
            mean, covariance, log_det = normals(system[None], alpha * right[None], W.mean.T, self.factorised)
            W = Normal(mean.T, covariance[0], log_det)
        # q(alpha) = Gamma(shape + N / 2, rate + E sum (y - f)^2 / 2)
        squares = _squares(problem, modes, W)
        noise = Gammas(np.array([self.alpha_shape + problem.count / 2]), np.array([self.alpha_rate + squares / 2]))
        state = VIState(state.sweep + 1, modes, W, noise, state.bound)
        bound = self.bound(problem, state, squares)
        done = bound - state.bound < self.tolerance * len(problem.y)
        figures = {"elbo": bound, "train_rmse": _rmse(problem, state), "noise": float(noise.mean[0]) ** -0.5}
        return state._replace(bound=bound), Info(state.sweep, figures, done)

    def bound(self, problem: Problem, state: VIState, squares: float | None = None) -> float:
        """The evidence lower bound; ``squares``, the expected sum of squared residuals, may be given."""
        squares = _squares(problem, state.modes, state.W) if squares is None else squares
        alpha, model = state.alpha, problem.model
        # E log p(y | f, alpha) = (N (E log alpha - log 2 pi) - E alpha E sum (y - f)^2) / 2, less KL(q(alpha) || prior)
        total = 0.5 * (problem.count * (float(alpha.mean_log[0]) - LOG_2PI) - float(alpha.mean[0]) * squares)
        total -= alpha.divergence(self.alpha_shape, self.alpha_rate)
        if model.core.learned:
            # entropy of q(W) + E log N(W; 0, sigma_w^2)
            square = float(state.W.squares.sum()) / model.sigma_w**2
            total += state.W.entropy - 0.5 * (model.core.n_weights * (LOG_2PI + 2 * np.log(model.sigma_w)) + square)
        return float(total + sum(p.bound(q) for p, q in zip(self.priors(problem), state.modes, strict=True)))

    def parameters(self, problem: Problem, state: VIState) -> Parameters:
        """The means of all weights under q."""
        modes = zip(problem.design.modes, state.modes, strict=True)
        return Parameters(tuple(as_weights(table, q.psi, q.B.mean) for table, q in modes), state.W.mean[:, 0])

    def draws_of(self, problem: Problem, state: VIState, rng: np.random.Generator) -> list[Draw]:
        """Draws from q, with a warning if it explains nothing."""
        std = float(np.std(problem.y))
        if std > 0 and _rmse(problem, state) > EXPLAINS_NOTHING * std:
            warnings.warn(
                "VI explains nothing of the targets: it came to rest at f = 0. Use Gibbs sampling, fewer modes or "
                "another random_state.",
                NotConvergedWarning,
                stacklevel=2,
            )
        return self.sample(problem, state, rng)

    def sample(self, problem: Problem, state: VIState, rng: np.random.Generator) -> list[Draw]:
        """Draws from q, as predictions need them."""
        draws = self._signed(problem, state, rng)
        return [next(draws) for _ in range(self.draws)]

    def _signed(self, problem: Problem, state: VIState, rng: np.random.Generator) -> Iterator[Draw]:
        """Endless draws: independent deviations from the means, each set of them with all signs in turn.

        f is linear in every mode and in the core, so the deviations of a set cancel in the mean of f. With so many
        modes that few sets would be left, deviations have no signs.
        """
        learned, modes = problem.model.core.learned, list(zip(self.priors(problem), state.modes, strict=True))
        tables, means = problem.design.modes, state.W.mean[:, 0]
        roots, root = [prior.roots(q) for prior, q in modes], state.W.root() if learned else np.zeros((0, 0))
        while True:
            away = [prior.deviation(q, root_d, rng) for (prior, q), root_d in zip(modes, roots, strict=True)]
            W = state.W.deviation(root, rng)[:, 0]
            several = FEWEST_SETS * 2 ** (len(away) + learned) <= self.draws
            for signs in product((1.0, -1.0) if several else (1.0,), repeat=len(away) + learned):
                psi = [q.psi + s * each[0] for (_, q), s, each in zip(modes, signs, away, strict=False)]
                B = [q.B.mean + s * each[1] for (_, q), s, each in zip(modes, signs, away, strict=False)]
                spread = [np.asarray(np.linalg.inv(q.precision.draw(rng))) for _, q in modes]
                tau = [rng.standard_gamma(q.tau.shape) / q.tau.rate for _, q in modes]
                alpha = np.asarray(rng.gamma(state.alpha.shape[0]) / state.alpha.rate[0])
                yield draw_of(tables, psi, B, spread, tau, (), means + signs[-1] * W, {"alpha": alpha})


def _rmse(problem: Problem, state: VIState) -> float:
    """The training error of the means under q."""
    f = problem.model.contract([mode.psi for mode in state.modes], state.W.mean[:, 0], problem.design.index)
    return float(np.sqrt(np.average((problem.y - f) ** 2, weights=problem.weight)))


def _squares(problem: Problem, modes: tuple[ModeBelief, ...], W: Normal) -> float:
    """The expected sum of weighted squared residuals under q."""
    factors = [mode.factors for mode in modes]
    return expected_squares(problem.model.core, problem.observations[0], factors, W, problem.y, problem.weight)


def _check(problem: Problem) -> None:
    """Refuse problems whose expectations have no exact form, or are too large."""
    core = problem.model.core
    likelihood = problem.model.likelihood
    if not likelihood.conjugate or problem.offset is not None:
        raise InputError(f"VI is for a Gaussian likelihood, not for {likelihood.name!r}; use Gibbs or NUTS.")
    refuse_learned(core, "VI is")
    if (core.coords < 0).any():
        raise InputError(
            "VI is for cores whose entries have a component of every mode, not for core='pairwise' or Entries that "
            "leave modes out; use Gibbs, or core='superdiagonal'."
        )
    if core.learned and prod(map(int, core.ranks)) > LARGEST_CORE:
        raise InputError(
            f"VI keeps the covariances of all pairs of entries of a core, and ranks {tuple(map(int, core.ranks))} make "
            f"more than {LARGEST_CORE:,} entries; lower the rank, or use core='identity' or Gibbs."
        )
    for table, r in zip(problem.design.modes, core.ranks, strict=True):
        check_mode(table, int(r))
