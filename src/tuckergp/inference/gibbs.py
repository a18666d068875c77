"""Gibbs sampling: every mode's factors, their regression on the features, the core, all hyperparameters.

One step is one sweep of exact conditional draws; nothing is left to tune. The same solves as `tuckergp.inference.als`
with noise added.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.errors import InputError
from tuckergp.inference.base import Info, Problem, as_weights, check_lengths, check_positive
from tuckergp.likelihoods import Gaussian, Ordinal
from tuckergp.likelihoods.levels import draw_cuts, draw_latent, log_probability
from tuckergp.model.mode_table import ModeTable
from tuckergp.model.tucker import Parameters, Path, chain_of
from tuckergp.posterior.draws import Draw
from tuckergp.priors import hyper
from tuckergp.priors.core import core_given_factors
from tuckergp.priors.evidence import Evidence, Precision, Residuals
from tuckergp.priors.rows import factors_given_weights, weights_given_factors
from tuckergp.priors.selection import entries_given_factors
from tuckergp.priors.weights import weights_given_data
from tuckergp.random import stream
from tuckergp.residuals.line import ChainMode, draw_mode, path_of, residual_of

__all__ = ["Gibbs", "GibbsState", "ModeState"]

Floats = npt.NDArray[np.float64]

ROWS_A_STREAM = 1_024

# Weights of a block from which its precision is drawn with the weights integrated out.
WIDE = 50
# Sweeps in which scales are drawn with what they scale integrated out, where that is costly: the first ones, then every
# so many-th. In the others cheaper steps do: two interwoven ones for the lengthscale of a chain.
COLLAPSED_AT_FIRST = 20
COLLAPSED_EVERY = 5


class ModeState(NamedTuple):
    """The unknowns of one mode.

    Attributes
    ----------
    psi : ndarray, shape (M, r)
        Factors.
    B : ndarray, shape (n, r)
        Weights of the features.
    precision : ndarray, shape (r, r)
        Lambda.
    tau : ndarray, shape (blocks,)
        Precision of every feature block relative to Lambda.
    noise : ndarray, shape (groups,)
        Noise precision of every row, or group of rows, relative to the shared one; ones unless the noise is by rows.
    nu : float
        Shape of the distribution of ``noise``.
    lengthscale : float
        Of a chain; 1 without one.
    states : ndarray, shape (M, p, r)
        E and its derivatives at the knots of a chain, which predictions need and no sweep reads; empty without one.
    """

    psi: Floats
    B: Floats
    precision: Floats
    tau: Floats
    noise: Floats
    nu: float
    lengthscale: float = 1.0
    states: Floats = np.zeros((0, 0, 0))


class GibbsState(NamedTuple):
    """All unknowns: modes, core, shared noise precision, cut points of an ordinal likelihood (none otherwise)."""

    sweep: int
    modes: tuple[ModeState, ...]
    W: Floats
    alpha: float
    cuts: Floats = np.zeros(0)


@dataclass(frozen=True)
class Gibbs:
    """Gibbs sampling.

    Parameters
    ----------
    draws, warmup : int
        Sweeps of a chain after and during warm-up; those of the warm-up are not kept.
    thin : int
        Keep every so many-th draw.
    chains : int
        Independent chains from one seed.
    noise : {"shared", "rows"}
        One noise precision for all observations, or a factor for every row of every mode that has rows.
    dof : float
        Degrees of freedom of the prior of Lambda: how many rows the prior counts for.
    scale : float or None
        Prior standard deviation of f, but for its mean, relative to that of the targets. None is 0.54^D, but at
        least 0.15, for an identity core, where larger ones let factors explain noise when ratings are few, and 1 for
        others.
    tau_shape, tau_rate : float
        Gamma prior of the precision of a feature block.
    alpha_shape, alpha_rate : float
        Gamma prior of the noise precision, in units of the targets' variance.

    Examples
    --------
    >>> Gibbs(draws=100, warmup=20).n_steps
    120
    """

    draws: int = 250
    warmup: int = 50
    thin: int = 1
    chains: int = 1
    noise: Literal["shared", "rows"] = "shared"
    dof: float = 60.0
    scale: float | None = None
    tau_shape: float = 1.0
    tau_rate: float = 0.1
    alpha_shape: float = 1.0
    alpha_rate: float = 0.5

    def __post_init__(self) -> None:
        check_positive("Gibbs", **{k: v for k, v in vars(self).items() if k not in ("noise", "warmup")})
        if self.noise not in ("shared", "rows"):
            raise InputError(f"Gibbs: noise must be 'shared' or 'rows', not {self.noise!r}.")
        check_lengths(self)

    @property
    def n_steps(self) -> int:
        """Sweeps of one chain."""
        return self.warmup + self.draws

    def init(self, problem: Problem, rng: np.random.Generator) -> GibbsState:
        """Start near a draw from the prior, with the hyperparameters at their prior means."""
        model, design = problem.model, problem.design
        if not isinstance(model.likelihood, Gaussian | Ordinal) or problem.offset is not None:
            raise InputError("Gibbs is for a Gaussian or an ordinal likelihood; use HMC, NUTS, SGLD or SGD for others.")
        if self.noise == "rows" and not any(table.n_groups for table in design.modes):
            raise InputError(
                "Gibbs: noise='rows' needs a mode with rows, an Identity term that tells its inputs apart; "
                "use noise='shared'."
            )
        start = model.start(design, rng)
        psi = model.factors(start, design)
        modes = []
        for d, (mode, U, path) in enumerate(zip(design.modes, start.U, start.paths, strict=True)):
            B = U[mode.n_features - mode.features.shape[1] :]
            precision = np.eye(U.shape[1]) / model.sigma_u[d] ** 2
            tau = np.full(len(mode.blocks), self.tau_shape / self.tau_rate)
            state = ModeState(psi[d], B, precision, tau, np.ones(mode.n_groups), 10.0)
            modes.append(state if path is None else state._replace(lengthscale=path.lengthscale, states=path.states))
        if isinstance(model.likelihood, Ordinal):
            return GibbsState(0, tuple(modes), start.W, 1.0, np.array(model.likelihood.cuts))
        return GibbsState(0, tuple(modes), start.W, self.alpha_shape / self.alpha_rate)

    def step(self, problem: Problem, state: GibbsState, rng: np.random.Generator) -> tuple[GibbsState, Info]:
        """One sweep: for every mode factors, weights, precisions; then the core; then the noise."""
        model, modes, W = problem.model, list(state.modes), state.W
        ordinal = isinstance(model.likelihood, Ordinal)
        precision = self._noise_precision(problem, state)
        y, cuts = self._draw_latent(problem, state, precision, rng) if ordinal else (problem.y, state.cuts)
        for d in range(len(modes)):
            psi = [mode.psi for mode in modes]
            evidence = Evidence(problem.sorted[d], y, precision, model.core, d, psi, W)
            modes[d] = self._draw_mode(problem, modes[d], evidence, state.sweep, rng)
        psi = [mode.psi for mode in modes]
        if model.core.learned:
            W = self._draw_core(problem, psi, y, precision, W, rng)
        state = GibbsState(state.sweep + 1, tuple(modes), W, state.alpha, cuts)
        state, mean_square = self._draw_noise(problem, state, y, rng)
        if ordinal:
            f = model.contract(psi, W, problem.design.index)
            root = np.sqrt(precision.at(problem.design.index))
            fit = log_probability(problem.y.astype(np.int64), f, cuts, root)
            return state, Info(state.sweep, {"log_probability": float(fit.mean())})
        return state, Info(state.sweep, {"train_rmse": mean_square**0.5, "noise": state.alpha**-0.5})

    def _draw_core(
        self, problem: Problem, psi: list[Floats], y: Floats, precision: Precision, W: Floats, rng: np.random.Generator
    ) -> Floats:
        core, prior, index = problem.model.core, problem.model.sigma_w**-2, problem.design.index
        if core.share < 1:
            return entries_given_factors(core, psi, index, y, precision, prior, W, rng)
        return core_given_factors(core, psi, index, problem.sorted[0], y, precision, prior, W, rng)

    def _draw_latent(
        self, problem: Problem, state: GibbsState, precision: Precision, rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Cut points given f, then the latent z between them that stands for y: a Gaussian target."""
        if problem.weight is not None and not (problem.weight == 1).all():
            raise InputError("Weights are for a Gaussian likelihood; repeat the rows of an ordinal one instead.")
        f = problem.model.contract([mode.psi for mode in state.modes], state.W, problem.design.index)
        levels, root = problem.y.astype(np.int64), np.sqrt(precision.at(problem.design.index))
        cuts = draw_cuts(state.cuts, f, levels, rng, root=root) if len(state.cuts) > 1 else state.cuts
        return draw_latent(f, levels, cuts, rng.random(len(f)), root), cuts

    def _draw_mode(
        self, problem: Problem, mode: ModeState, evidence: Evidence, sweep: int, rng: np.random.Generator
    ) -> ModeState:
        d, collapsed = evidence.d, False
        table, regression = problem.design.modes[d], problem.regressions[d]
        if table.line is not None:
            last = ChainMode(mode.psi, mode.B, mode.lengthscale)
            drawn = draw_mode(table, evidence.statistics(), last, mode.tau, mode.precision, _affordable(sweep), rng)
            psi, B = drawn.psi, drawn.B
            mode = mode._replace(lengthscale=drawn.lengthscale)
        elif table.residual is None:
            A, b = evidence.statistics()
            tau = _by_feature(table, mode.tau)
            B = weights_given_data(table.features, A, b, tau, mode.precision, mode.B, rng)
            psi = np.asarray(table.features @ B)
        else:
            variance = table.residual_scale**2
            inner = mode.precision / variance
            mean = np.asarray(table.features @ mode.B)
            psi = factors_given_weights(evidence, mean, inner, _row_draws(mode.psi.shape, rng))
            mode, collapsed = self._draw_scales(problem, mode._replace(psi=psi), d, sweep, rng)
            B = weights_given_factors(regression, psi, variance * mode.tau, mode.B, mode.precision / variance, rng)
        mode = mode._replace(psi=psi, B=B)
        if table.blocks:
            tau = hyper.block_precisions(B, mode.precision, table.blocks, self.tau_shape, self.tau_rate, rng)
            mode = mode._replace(tau=tau)
        if not collapsed:
            mode = mode._replace(precision=self._draw_precision_given_weights(problem, mode, d, rng))
        if table.line is None:
            return mode
        path = path_of(table, ChainMode(mode.psi, mode.B, mode.lengthscale), mode.precision, rng)
        return mode._replace(states=path.states)

    def _draw_scales(
        self, problem: Problem, mode: ModeState, d: int, sweep: int, rng: np.random.Generator
    ) -> tuple[ModeState, bool]:
        """Tau of wide blocks, then Lambda, given the factors with the weights integrated out; False if too costly."""
        table, regression = problem.design.modes[d], problem.regressions[d]
        evaluate = regression.collapse(mode.psi) if regression.cheap or _affordable(sweep) else None
        if evaluate is None:
            return mode, False
        variance, prior = table.residual_scale**2, self._precision_prior(problem, d)

        def log_density(tau: Floats) -> float:
            log_det, spread = evaluate(variance * tau)
            return prior.log_marginal(spread / variance, table.n_rows) - 0.5 * len(spread) * log_det

        tau = mode.tau
        wide = [g for g, size in enumerate(regression.sizes) if size >= WIDE]
        turn = sweep if sweep < COLLAPSED_AT_FIRST else sweep // COLLAPSED_EVERY
        for g in wide if regression.cheap else wide[turn % max(len(wide), 1) :][:1]:
            tau = hyper.collapsed_precision(tau, g, log_density, self.tau_shape, self.tau_rate, rng)
        _, spread = evaluate(variance * tau)
        return mode._replace(tau=tau, precision=prior.draw(spread / variance, table.n_rows, rng)), True

    def _precision_prior(self, problem: Problem, d: int) -> hyper.PrecisionPrior:
        """Of Lambda: Wishart; with a learned core one scale, because W has the shape."""
        return hyper.PrecisionPrior(self.dof, float(problem.model.sigma_u[d]) ** 2, problem.model.core.learned)

    def _draw_precision_given_weights(
        self, problem: Problem, mode: ModeState, d: int, rng: np.random.Generator
    ) -> Floats:
        table = problem.design.modes[d]
        spread = (mode.B * _by_feature(table, mode.tau)[:, None]).T @ mode.B
        count = len(mode.B)
        if table.line is not None:
            E = residual_of(table, mode.psi, mode.B) / table.residual_scale
            Z = chain_of(table.line, mode.lengthscale).whiten(E)
            spread = spread + Z.T @ Z
            count += table.n_rows
        elif table.residual is not None:
            E = (mode.psi - table.features @ mode.B) / table.residual_scale
            spread = spread + E.T @ E
            count += table.n_rows
        return self._precision_prior(problem, d).draw(spread, count, rng)

    def _noise_precision(self, problem: Problem, state: GibbsState) -> Precision:
        if self.noise == "shared":
            return Precision(state.alpha, problem.weight)
        modes = zip(problem.design.modes, state.modes, strict=True)
        return Precision(state.alpha, problem.weight, [_noise_of_rows(table, mode.noise) for table, mode in modes])

    def _residuals(self, problem: Problem, state: GibbsState, y: Floats, d: int) -> Residuals:
        """Squared residuals summed by the rows of mode d."""
        psi, precision = [mode.psi for mode in state.modes], self._noise_precision(problem, state)
        return Evidence(problem.sorted[d], y, precision, problem.model.core, d, psi, state.W).residuals()

    def _draw_noise(
        self, problem: Problem, state: GibbsState, y: Floats, rng: np.random.Generator
    ) -> tuple[GibbsState, float]:
        """Noise factors, mode by mode, their shape, then the shared precision (1 if ordinal); also the mean square."""
        tables = problem.design.modes
        noisy = [d for d, table in enumerate(tables) if self.noise == "rows" and table.n_groups]
        for d in noisy or [0]:
            mode, groups, residuals = state.modes[d], tables[d].groups, self._residuals(problem, state, y, d)
            if noisy:
                sums = (np.bincount(groups, values, len(mode.noise)) for values in (residuals.weight, residuals.scaled))
                counts, squares = (np.asarray(values, dtype=np.float64) for values in sums)
                noise = hyper.row_noise(counts, state.alpha * squares, mode.nu, rng)
                mode = mode._replace(noise=noise, nu=hyper.row_noise_shape(noise, mode.nu, rng))
                state = state._replace(modes=(*state.modes[:d], mode, *state.modes[d + 1 :]))
        count = float(residuals.weight.sum())
        mean_square = float(residuals.squares.sum()) / count
        if isinstance(problem.model.likelihood, Ordinal):
            return state, mean_square
        total = float(_noise_of_rows(tables[d], mode.noise) @ residuals.scaled)
        alpha = float(rng.gamma(self.alpha_shape + count / 2) / (self.alpha_rate + total / 2))
        return state._replace(alpha=alpha), mean_square

    def parameters(self, problem: Problem, state: GibbsState) -> Parameters:
        """The weight-space form of this draw, and the paths of chains."""
        modes = list(zip(problem.design.modes, state.modes, strict=True))
        paths = tuple(None if table.line is None else Path(mode.states, mode.lengthscale) for table, mode in modes)
        return Parameters(tuple(as_weights(table, mode.psi, mode.B) for table, mode in modes), state.W, paths)

    def function(self, problem: Problem, state: GibbsState, index: npt.NDArray[np.int32]) -> Floats:
        """F of this state at some observations, shape (n,)."""
        return problem.model.contract([mode.psi for mode in state.modes], state.W, index)

    def watch(self, problem: Problem, state: GibbsState) -> dict[str, Floats]:
        """What is identified of this state: f and log p(y | f) at the problem's observations, hyperparameters.

        A weight counts observations; the log likelihood is that of one of them.
        """
        f = self.function(problem, state, problem.design.index)
        found = {"f": f, "tau": np.concatenate([mode.tau for mode in state.modes])}
        precision = self._noise_precision(replace(problem, weight=None), state).at(problem.design.index)
        if isinstance(problem.model.likelihood, Ordinal):
            fit = log_probability(problem.y.astype(np.int64), f, state.cuts, np.sqrt(precision))
            return {**found, "cuts": state.cuts, "log_likelihood": fit}
        fit = 0.5 * (np.log(precision / (2 * np.pi)) - precision * (problem.y - f) ** 2)
        return {**found, "noise": np.asarray(state.alpha**-0.5), "log_likelihood": fit}

    def draw(self, problem: Problem, state: GibbsState) -> Draw:
        """What predictions need of this state."""
        covariance, noise = [], []
        for table, mode in zip(problem.design.modes, state.modes, strict=True):
            covariance.append(np.asarray(np.linalg.inv(mode.precision) * table.residual_scale**2, dtype=np.float64))
            noise.append(mode.noise if self.noise == "rows" and table.n_groups else None)
        return Draw(self.parameters(problem, state), state.alpha, tuple(covariance), tuple(noise), state.cuts)


def _affordable(sweep: int) -> bool:
    return sweep < COLLAPSED_AT_FIRST or sweep % COLLAPSED_EVERY == 0


def _noise_of_rows(table: ModeTable, noise: Floats) -> Floats:
    """The noise factors of groups, one for every row; ones for a mode without."""
    return noise[table.groups] if table.n_groups else np.ones(table.n_rows)


def _by_feature(table: ModeTable, tau: Floats) -> Floats:
    """The block precisions, one for every feature."""
    return np.repeat(tau, [block.stop - block.start for block in table.blocks])


def _row_draws(shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Standard normal noise, a stream of its own for every 1,024 rows, so that partitions of rows can draw alone."""
    seed = int(rng.integers(2**63))
    noise = np.empty(shape)
    for block, first in enumerate(range(0, shape[0], ROWS_A_STREAM)):
        part = noise[first : first + ROWS_A_STREAM]
        stream(seed, block).standard_normal(out=part)
    return noise
