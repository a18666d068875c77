"""Gibbs sampling: every mode's factors, their regression on the features, the core, all hyperparameters.

One step is one sweep of exact conditional draws; nothing is left to tune. The same solves as `tuckergp.inference.als`
with noise added.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.design import ModeTable
from tuckergp.errors import InputError
from tuckergp.inference.base import Info, Problem, as_residual_order, as_weights, check_positive
from tuckergp.inference.draws import Draw
from tuckergp.likelihoods import Ordinal
from tuckergp.model import Parameters, Path, chain_of
from tuckergp.priors import hyper
from tuckergp.priors.chain import ChainMode, draw_mode, path_of, residual_of
from tuckergp.priors.core import core_given_factors
from tuckergp.priors.evidence import Evidence
from tuckergp.priors.ordinal import draw_cuts, draw_latent, log_probability
from tuckergp.priors.rows import factors_given_weights, weights_given_factors
from tuckergp.priors.weights import weights_given_data
from tuckergp.random import stream

__all__ = ["Gibbs", "GibbsState", "ModeState"]

Floats = npt.NDArray[np.float64]

ROWS_A_STREAM = 1_024

# Sweeps in which the lengthscale of a chain is drawn with the chain integrated out: the first ones, then every so
# many-th. The others interweave two cheaper steps.
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
    noise : ndarray, shape (M,)
        Noise precision of every row relative to the shared one; ones unless the noise is by rows.
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
        Prior standard deviation of f, but for its mean, relative to that of the targets. None is 1/4 for an identity
        core, where larger ones let factors explain noise when ratings are few, and 1 for others.
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
        if not isinstance(self.warmup, int) or self.warmup < 0:
            raise InputError(f"Gibbs: warmup must be a whole number from 0 on, not {self.warmup!r}.")
        for name in ("draws", "thin", "chains"):
            if not isinstance(getattr(self, name), int | np.integer):
                raise InputError(f"Gibbs: {name} must be a whole number, not {getattr(self, name)!r}.")
        if self.thin > self.draws:
            raise InputError(f"Gibbs: thin={self.thin} would keep none of {self.draws} draws; lower it.")

    @property
    def n_steps(self) -> int:
        """Sweeps of one chain."""
        return self.warmup + self.draws

    def init(self, problem: Problem, rng: np.random.Generator) -> GibbsState:
        """Start near a draw from the prior, with the hyperparameters at their prior means."""
        model, design = problem.model, problem.design
        start = model.start(design, rng)
        psi = model.factors(start, design)
        modes = []
        for d, (mode, U, path) in enumerate(zip(design.modes, start.U, start.paths, strict=True)):
            B = U[mode.n_features - mode.features.shape[1] :]
            precision = np.eye(U.shape[1]) / model.sigma_u[d] ** 2
            tau = np.full(len(mode.blocks), self.tau_shape / self.tau_rate)
            state = ModeState(psi[d], B, precision, tau, np.ones(mode.n_rows), 10.0)
            modes.append(state if path is None else state._replace(lengthscale=path.lengthscale, states=path.states))
        if isinstance(model.likelihood, Ordinal):
            if self.noise == "rows":
                raise InputError("Gibbs: noise='rows' is for a Gaussian likelihood; an ordinal one has noise='shared'.")
            return GibbsState(0, tuple(modes), start.W, 1.0, np.array(model.likelihood.cuts))
        return GibbsState(0, tuple(modes), start.W, self.alpha_shape / self.alpha_rate)

    def step(self, problem: Problem, state: GibbsState, rng: np.random.Generator) -> tuple[GibbsState, Info]:
        """One sweep: for every mode factors, weights, precisions; then the core; then the noise."""
        model, modes, W = problem.model, list(state.modes), state.W
        ordinal = isinstance(model.likelihood, Ordinal)
        y, cuts = self._draw_latent(problem, state, rng) if ordinal else (problem.y, state.cuts)
        precision = self._noise_precision(problem, state)
        for d in range(len(modes)):
            psi = [mode.psi for mode in modes]
            evidence = Evidence(problem.sorted[d], y, precision, model.core, d, psi, W)
            collapse = state.sweep < COLLAPSED_AT_FIRST or state.sweep % COLLAPSED_EVERY == 0
            modes[d] = self._draw_mode(problem, modes[d], evidence, collapse, rng)
        psi = [mode.psi for mode in modes]
        if model.core.learned:
            W = core_given_factors(
                model.core, psi, problem.design.index, problem.sorted[0], y, precision, model.sigma_w**-2, W, rng
            )
        state = GibbsState(state.sweep + 1, tuple(modes), W, state.alpha, cuts)
        f = model.contract(psi, W, problem.design.index)
        if ordinal:
            fit = log_probability(problem.y.astype(np.int64), f, cuts)
            return state, Info(state.sweep, {"log_probability": float(np.average(fit, weights=problem.weight))})
        residuals = problem.y - f
        state = self._draw_noise(problem, state, residuals, rng)
        rmse = float(np.sqrt(np.average(residuals**2, weights=problem.weight)))
        return state, Info(state.sweep, {"train_rmse": rmse, "noise": state.alpha**-0.5})

    def _draw_latent(self, problem: Problem, state: GibbsState, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Cut points given f, then the latent z between them that stands for y: a Gaussian target of noise 1."""
        if problem.weight is not None and not (problem.weight == 1).all():
            raise InputError("Weights are for a Gaussian likelihood; repeat the rows of an ordinal one instead.")
        f = problem.model.contract([mode.psi for mode in state.modes], state.W, problem.design.index)
        levels = problem.y.astype(np.int64)
        cuts = draw_cuts(state.cuts, f, levels, rng) if len(state.cuts) > 1 else state.cuts
        return draw_latent(f, levels, cuts, rng.random(len(f))), cuts

    def _draw_mode(
        self, problem: Problem, mode: ModeState, evidence: Evidence, collapse: bool, rng: np.random.Generator
    ) -> ModeState:
        d = evidence.d
        table, regression = problem.design.modes[d], problem.regressions[d]
        if table.line is not None:
            last = ChainMode(mode.psi, mode.B, mode.lengthscale)
            drawn = draw_mode(table, evidence.statistics(), last, mode.tau, mode.precision, collapse, rng)
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
            B = weights_given_factors(regression, psi, variance * mode.tau, mode.B, inner, rng)
        mode = mode._replace(psi=psi, B=B)
        if table.blocks:
            tau = hyper.block_precisions(B, mode.precision, table.blocks, self.tau_shape, self.tau_rate, rng)
            mode = mode._replace(tau=tau)
        mode = mode._replace(precision=self._draw_precision(problem, mode, d, rng))
        if table.line is None:
            return mode
        path = path_of(table, ChainMode(mode.psi, mode.B, mode.lengthscale), mode.precision, rng)
        return mode._replace(states=path.states)

    def _draw_precision(self, problem: Problem, mode: ModeState, d: int, rng: np.random.Generator) -> Floats:
        """Lambda given factors and weights: Wishart; with a learned core one scale, because W has the shape."""
        table, model = problem.design.modes[d], problem.model
        r = mode.B.shape[1]
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
        variance = float(model.sigma_u[d]) ** 2
        if model.core.learned:
            shape, rate = (self.dof + count) * r / 2, (self.dof * variance * r + np.trace(spread)) / 2
            return np.asarray(np.eye(r) * (rng.gamma(shape) / rate))
        dof = self.dof + r - 1  # proper for any positive self.dof
        return hyper.wishart(dof + count, dof * variance * np.eye(r) + spread, rng)

    def _noise_precision(self, problem: Problem, state: GibbsState) -> Floats:
        precision = np.full(len(problem.y), state.alpha)
        if problem.weight is not None:
            precision *= problem.weight
        if self.noise == "rows":
            for d, mode in enumerate(state.modes):
                precision *= mode.noise[problem.design.index[:, d]]
        return precision

    def _draw_noise(
        self, problem: Problem, state: GibbsState, residuals: Floats, rng: np.random.Generator
    ) -> GibbsState:
        """Noise factors of the rows, mode by mode, their shape, then the shared precision."""
        index = problem.design.index
        if self.noise == "rows":
            for d, (mode, table) in enumerate(zip(state.modes, problem.design.modes, strict=True)):
                if table.residual is None:
                    continue
                rows = index[:, d]
                squares = self._noise_precision(problem, state) * residuals**2 / mode.noise[rows]
                total = np.bincount(rows, weights=squares, minlength=table.n_rows).astype(np.float64)
                counts = np.bincount(rows, weights=problem.weight, minlength=table.n_rows).astype(np.float64)
                noise = hyper.row_noise(counts, total, mode.nu, rng)
                mode = mode._replace(noise=noise, nu=hyper.row_noise_shape(noise, mode.nu, rng))
                state = state._replace(modes=(*state.modes[:d], mode, *state.modes[d + 1 :]))
        squares = self._noise_precision(problem, state._replace(alpha=1.0)) * residuals**2
        count = len(residuals) if problem.weight is None else float(problem.weight.sum())
        shape = self.alpha_shape + count / 2
        return state._replace(alpha=float(rng.gamma(shape) / (self.alpha_rate + squares.sum() / 2)))

    def parameters(self, problem: Problem, state: GibbsState) -> Parameters:
        """The weight-space form of this draw, and the paths of chains."""
        modes = list(zip(problem.design.modes, state.modes, strict=True))
        paths = tuple(None if table.line is None else Path(mode.states, mode.lengthscale) for table, mode in modes)
        return Parameters(tuple(as_weights(table, mode.psi, mode.B) for table, mode in modes), state.W, paths)

    def function(self, problem: Problem, state: GibbsState, index: npt.NDArray[np.int32]) -> Floats:
        """F of this state at some observations, shape (n,)."""
        return problem.model.contract([mode.psi for mode in state.modes], state.W, index)

    def draw(self, problem: Problem, state: GibbsState) -> Draw:
        """What predictions need of this state."""
        covariance, noise = [], []
        for table, mode in zip(problem.design.modes, state.modes, strict=True):
            covariance.append(np.asarray(np.linalg.inv(mode.precision) * table.residual_scale**2, dtype=np.float64))
            by_rows = self.noise == "rows" and table.residual is not None
            noise.append(as_residual_order(table, mode.noise) if by_rows else None)
        return Draw(self.parameters(problem, state), state.alpha, tuple(covariance), tuple(noise), state.cuts)


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
