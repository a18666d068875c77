"""Gibbs sampling: every mode's factors, their regression on the features, the core, all hyperparameters.

One step is one sweep of draws that leave the exact conditionals as they are; nothing needs tuning. The same solves as
`tuckergp.inference.als` with noise added; weights that all rows share, and the core, are overrelaxed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.checks import number, one_of, setting, whole
from tuckergp.compute.contract import FULL
from tuckergp.errors import InputError
from tuckergp.inference.algorithm import HyperPriors, Sampled
from tuckergp.inference.base import Info, Problem, as_weights
from tuckergp.inference.cost import sweep_bytes, sweep_seconds
from tuckergp.inference.resuming import ChainValues, weights_at
from tuckergp.likelihoods.given import NoiseSettings
from tuckergp.likelihoods.precision import Precision, RowSums
from tuckergp.model.cores import CoreSpec
from tuckergp.model.design import Design
from tuckergp.model.draw import Draw, draw_of
from tuckergp.model.mode_table import ModeTable
from tuckergp.model.tucker import Core, Parameters, TuckerModel, costly_full_core, make_core
from tuckergp.priors import hyper
from tuckergp.priors.given import ModeGiven, SharedNoise
from tuckergp.priors.hyper import PrecisionPrior
from tuckergp.priors.orbit import scale_against_core, scale_against_mode, stretches
from tuckergp.priors.shrinkage import ComponentPrior
from tuckergp.residuals.base import ModeState
from tuckergp.statistics.core import core_given_factors
from tuckergp.statistics.evidence import NUMBERS, Evidence
from tuckergp.statistics.selection import entries_given_factors

__all__ = ["Gibbs", "GibbsState"]

Floats = npt.NDArray[np.float64]


class GibbsState(NamedTuple):
    """All unknowns: modes, core, and those of the likelihood, which has its own state."""

    sweep: int
    modes: tuple[ModeState, ...]
    W: Floats
    likelihood: Any


@dataclass(frozen=True)
class Gibbs(HyperPriors, Sampled):
    """Gibbs sampling.

    Parameters
    ----------
    draws, warmup : int
        Sweeps of a chain after and during warm-up; those of the warm-up are not kept.
    thin : int
        Keep one of this many draws.
    chains : int
        Independent chains from one seed.
    noise : {"shared", "rows"}
        One noise precision for all observations, or a factor for every row of every mode that has rows.
    dof : float
        How many rows the prior of Lambda counts for.
    scale : float or None
        Prior standard deviation of f relative to that of the targets, whatever the rank; feature blocks, such as a
        constant, come on top. None is 0.25 for an identity core of two or more modes, where larger ones let factors
        explain noise, and 1 otherwise. With `shrinkage` f has no prior standard deviation, and its prior median grows
        with the rank.
    tau_shape, tau_rate : float
        Gamma prior of the precision of a feature block.
    alpha_shape, alpha_rate : float
        Gamma prior of the noise precision, in units of the targets' variance.
    overrelaxation : float
        From 0 to below 1: how far weights that all rows of a mode share, and the core, go to the other side of their
        conditional mean. 0 draws them independently of where they are.
    shrinkage : bool
        Learn the size of each component of an identity core, by one precision per component that all modes share: a
        component that is not needed becomes small. ``dof`` has no meaning then.
    precision : {"float64", "float32"}
        The numbers in which products of factors are computed; "float32" takes about half the time. Sums over blocks of
        observations, and all solves, are in float64.

    Examples
    --------
    >>> Gibbs(draws=100, warmup=20).n_steps
    120
    """

    name: ClassVar[str] = "gibbs"
    takes: ClassVar[tuple[str, ...]] = ("draws", "warmup", "chains", "noise")
    any_residual: ClassVar[bool] = True
    for_ratings: ClassVar[bool] = True
    weighs_blocks: ClassVar[bool] = True
    resumes: ClassVar[bool] = True

    draws: int = setting(250, whole(1))
    warmup: int = setting(50, whole(0))
    noise: Literal["shared", "rows"] = setting("shared", one_of("shared", "rows"))
    overrelaxation: float = setting(0.8, number("a number from 0 to below 1", lambda value: 0 <= value < 1))
    shrinkage: bool = setting(False, one_of(True, False))
    precision: Literal["float64", "float32"] = setting("float64", one_of(*NUMBERS))

    @property
    def noise_settings(self) -> NoiseSettings:
        """The settings of the noise for the likelihood."""
        return NoiseSettings(self.noise == "rows", self.alpha_shape, self.alpha_rate)

    def core(self, spec: CoreSpec | Core, ranks: Sequence[int], rng: np.random.Generator, n: int = 0) -> Core:
        """The core that the user asked for; ``"auto"`` is pairwise where drawing a full core of many modes costs much.

        Products of many factors, without summands of fewer, hardly learn.
        """
        auto = isinstance(spec, str) and spec == "auto"
        if self.shrinkage:
            return _shrinkable(make_core("identity" if auto else spec, ranks, rng))
        if auto and len(ranks) == 1 and ranks[0] == 1:
            return make_core("identity", ranks)  # a core of one number is the scale of the mode once more
        many = len(ranks) > 2 and min(ranks) > 1 and costly_full_core(prod(ranks), n)
        return make_core("pairwise" if many and auto else spec, ranks, rng)

    def step_seconds(self, problem: Problem) -> float:
        """About how many seconds a sweep takes."""
        return sweep_seconds(problem)

    def step_bytes(self, design: Design, core: Core) -> int:
        """How much memory a sweep needs at the least."""
        return sweep_bytes(design, core)

    def block_prior(self) -> tuple[float, float]:
        """Shape and rate of the prior of tau."""
        return self.tau_shape, self.tau_rate

    def resumed(self, problem: Problem, values: ChainValues, rng: np.random.Generator) -> GibbsState:
        """The state with the values of an earlier run; weights of features are drawn given the factors."""
        modes = [
            ModeState(mode.psi, weights_at(problem, d, mode, rng), mode.precision, mode.tau)
            for d, mode in enumerate(values.modes)
        ]
        likelihood = problem.model.likelihood
        fresh: Any = likelihood.start(problem.observed, self.noise_settings)
        own = likelihood.continued(fresh, values.unknowns, [mode.noise for mode in values.modes], rng)
        return GibbsState(0, tuple(modes), values.W, own)

    def init(self, problem: Problem, rng: np.random.Generator) -> GibbsState:
        """Start near a draw from the prior, with tau, Lambda^-1 and the noise at their prior means."""
        model, design = problem.model, problem.design
        likelihood = model.likelihood.start(problem.observed, self.noise_settings)
        start = model.start(design, rng)
        psi = model.factors(start, design)
        modes = []
        for d, (mode, U, own) in enumerate(zip(design.modes, start.U, start.own, strict=True)):
            precision = np.eye(U.shape[1]) / model.sigma_u[d] ** 2
            tau = np.full(len(mode.blocks), self.tau_shape / self.tau_rate)
            modes.append(ModeState(psi[d], U[mode.residual.n_columns :], precision, tau, own))
        return GibbsState(0, tuple(modes), start.W, likelihood)

    def step(self, problem: Problem, state: GibbsState, rng: np.random.Generator) -> tuple[GibbsState, Info]:
        """One sweep: unknowns of the likelihood, then each mode's factors, weights, precisions, the core, the noise.

        After a full core, what f does not tell of it and the weights is drawn along the orbit of f.
        """
        model, observed, modes, W = problem.model, problem.observed, list(state.modes), state.W
        likelihood, unknowns = model.likelihood, state.likelihood
        if likelihood.augmented:
            f = self.function(problem, state, observed.index)
            unknowns = likelihood.draw_given_function(unknowns, observed, f, rng)
        y, precision = likelihood.augment(unknowns, observed, lambda: f, rng)
        for d in range(len(modes)):
            psi = [mode.psi for mode in modes]
            evidence = problem.evidence(d, y, precision, psi, W, NUMBERS[self.precision])
            prior = self._prior_given_others(problem, modes, d)
            modes[d] = self._draw_mode(problem, modes[d], evidence, prior, state.sweep, rng)
            if self.shrinkage:  # Lambda is that of all modes
                modes = [mode._replace(precision=modes[d].precision) for mode in modes]
        psi = [mode.psi for mode in modes]
        if model.core.learned:
            W = self._draw_core(problem, psi, y, precision, W, rng)
        if model.core.kind == FULL:
            modes, W = self._draw_along_orbit(problem, modes, W, rng)
            psi = [mode.psi for mode in modes]

        def sums(d: int, precision: Precision) -> RowSums:
            return problem.evidence(d, y, precision, psi, W, NUMBERS[self.precision]).residuals()

        unknowns, mean_square = likelihood.draw_noise(unknowns, observed, precision, sums, self.noise_settings, rng)
        state = GibbsState(state.sweep + 1, tuple(modes), W, unknowns)

        def log_likelihood() -> Floats:
            return likelihood.log_likelihood(unknowns, observed, self.function(problem, state, observed.index))

        return state, Info(state.sweep, likelihood.figures(mean_square, log_likelihood, likelihood.kept(unknowns)))

    def _draw_core(
        self, problem: Problem, psi: list[Floats], y: Floats, precision: Precision, W: Floats, rng: np.random.Generator
    ) -> Floats:
        core, prior, index = problem.model.core, problem.model.sigma_w**-2, problem.design.index
        if core.share < 1:
            return entries_given_factors(core, psi, index, y, precision, prior, W, rng)
        data = problem.sorted[0]
        return core_given_factors(core, psi, index, data, y, precision, prior, W, rng, self.overrelaxation)

    def _draw_along_orbit(
        self, problem: Problem, modes: list[ModeState], W: Floats, rng: np.random.Generator
    ) -> tuple[list[ModeState], Floats]:
        """Draw how the weights of modes without residual and a full core share shape and scale; f stays as it is."""
        tables, sd, modes = problem.design.modes, problem.model.sigma_w, list(modes)
        alone = [d for d, table in enumerate(tables) if table.blocks and not table.residual.sd]
        core = problem.model.core.dense(W) / sd
        for d in alone:
            mode, unfolded = modes[d], np.moveaxis(core, d, 0)
            by_feature = _by_feature(tables[d], mode)
            # Lambda is one scale times the identity
            spread = mode.precision[0, 0] * (mode.B * by_feature[:, None]).T @ mode.B
            M, inverse = stretches(spread, unfolded.reshape(len(unfolded), -1), len(mode.B), rng)
            core = np.moveaxis(np.tensordot(inverse, core, axes=(1, d)), 0, d)
            c = scale_against_core(mode.tau, core, self.tau_shape, self.tau_rate, rng)
            modes[d] = mode._replace(psi=c * mode.psi @ M, B=c * mode.B @ M, tau=mode.tau / c**2)
            core = core / c
        for d, e in pairwise(alone):
            ours, its = modes[d], modes[e]
            c = scale_against_mode(ours.tau, its.tau, self.tau_shape, self.tau_rate, rng)
            modes[d] = ours._replace(psi=c * ours.psi, B=c * ours.B, tau=ours.tau / c**2)
            modes[e] = its._replace(psi=its.psi / c, B=its.B / c, tau=its.tau * c**2)
        return modes, np.ravel(core) * sd

    def _draw_mode(
        self,
        problem: Problem,
        mode: ModeState,
        evidence: Evidence,
        prior: PrecisionPrior | ComponentPrior,
        sweep: int,
        rng: np.random.Generator,
    ) -> ModeState:
        """Draw factors and weights by the residual, then tau given weights, Lambda given both, and the own unknowns."""
        d, table = evidence.d, problem.design.modes[evidence.d]
        given = ModeGiven(
            table.features,
            table.blocks,
            problem.regressions[d],
            prior,
            self.tau_shape,
            self.tau_rate,
            sweep,
            self.overrelaxation,
            self._shared_noise(problem, evidence),
            self.warmup,
        )
        mode, collapsed = table.residual.update(mode, evidence, given, rng)
        if table.blocks:
            tau = hyper.block_precisions(mode.B, mode.precision, table.blocks, self.tau_shape, self.tau_rate, rng)
            mode = mode._replace(tau=tau)
        if collapsed and not mode.own:
            return mode
        E = np.asarray(mode.psi - table.features @ mode.B)
        if not collapsed:
            # B ~ MN(0, T^-1, Lambda^-1) and whitened rows of E ~ N(0, Lambda^-1): n and k more degrees of freedom
            mode = mode._replace(precision=prior.draw(*_scatter(table, mode, E), rng))
        return mode._replace(own=table.residual.finished(E, mode.own, mode.precision, rng))

    def _shared_noise(self, problem: Problem, evidence: Evidence) -> SharedNoise | None:
        """The noise, where one mode of rank 1 is all there is of f and the likelihood draws its precision last."""
        core, precision = problem.model.core, evidence.precision
        alone = core.modes == 1 and int(core.ranks[0]) == 1 and not core.learned
        if not alone or not problem.model.likelihood.conjugate or precision.factors or precision.background:
            return None
        squares = evidence.y**2 if precision.weight is None else precision.weight * evidence.y**2
        return SharedNoise(precision.alpha, self.alpha_shape, self.alpha_rate, problem.count, float(squares.sum()))

    def _prior_given_others(
        self, problem: Problem, modes: Sequence[ModeState], d: int
    ) -> PrecisionPrior | ComponentPrior:
        """The prior of Lambda of a mode, with shrinkage given what the other modes say of it."""
        if not self.shrinkage:
            return self.precision_prior(problem.model, d)
        model, tables = problem.model, problem.design.modes
        others = [(tables[e], mode) for e, mode in enumerate(modes) if e != d]
        told = [_scatter(table, mode, np.asarray(mode.psi - table.features @ mode.B)) for table, mode in others]
        return ComponentPrior.centred(float(model.sigma_u[d]) ** 2, int(model.core.ranks[d])).given(told)

    def precision_prior(self, model: TuckerModel, d: int) -> hyper.PrecisionPrior:
        """The prior of Lambda of a mode: Wishart; with a learned core one scale, because W has the correlations."""
        r, variance = int(model.core.ranks[d]), float(model.sigma_u[d]) ** 2
        return hyper.PrecisionPrior.centred(self.dof, variance, r, model.core.learned)

    def parameters(self, problem: Problem, state: GibbsState) -> Parameters:
        """The weight-space form of this draw, and the own unknowns of residuals."""
        modes = list(zip(problem.design.modes, state.modes, strict=True))
        U = tuple(as_weights(table, mode.psi, mode.B) for table, mode in modes)
        return Parameters(U, state.W, tuple(mode.own for mode in state.modes))

    def function(self, problem: Problem, state: GibbsState, index: npt.NDArray[np.int32]) -> Floats:
        """f of this state at some observations, shape (n,)."""
        return problem.model.contract(problem.factors(state.modes), state.W, index)

    def watch(self, problem: Problem, state: GibbsState) -> dict[str, Floats]:
        """Identified quantities of this state: f and log p(y | f) at the problem's observations, hyperparameters.

        A weight counts observations; the log likelihood is that of one of them.
        """
        likelihood = problem.model.likelihood
        f = self.function(problem, state, problem.design.index)
        pairs = list(zip(problem.design.modes, state.modes, strict=True))
        return {
            "f": f,
            "tau": np.concatenate([mode.tau for mode in state.modes]),
            "lengthscale": np.concatenate([table.residual.lengthscales(mode.own) for table, mode in pairs]),
            "share": np.concatenate([table.residual.variance_shares(mode.own) for table, mode in pairs]),
            **likelihood.watched(likelihood.kept(state.likelihood)),
            "log_likelihood": likelihood.log_likelihood(state.likelihood, problem.observed, f),
        }

    def draw(self, problem: Problem, state: GibbsState) -> Draw:
        """What predictions need of this state."""
        tables, likelihood = problem.design.modes, problem.model.likelihood
        psi, B, _, tau, own = zip(*state.modes, strict=True)
        spread = [np.asarray(np.linalg.inv(mode.precision), dtype=np.float64) for mode in state.modes]
        unknowns, factors = likelihood.kept(state.likelihood), likelihood.factors(state.likelihood)
        return draw_of(tables, psi, B, spread, tau, own, state.W, unknowns, factors)


def _by_feature(table: ModeTable, mode: ModeState) -> Floats:
    """The precisions of the blocks of a mode, one for each feature."""
    return np.repeat(mode.tau, [block.stop - block.start for block in table.blocks])


def _scatter(table: ModeTable, mode: ModeState, E: Floats) -> tuple[Floats, int]:
    """The scatter (r, r) of rows N(0, Lambda^-1) that weights and residual E of a mode stand for, and their number."""
    tau = _by_feature(table, mode)
    Z = table.residual.whitened(E, mode.own)
    return (mode.B * tau[:, None]).T @ mode.B + Z.T @ Z, len(mode.B) + table.residual.n_whitened(Z)


def _shrinkable(core: Core) -> Core:
    """The core, if its components are summands of f of several modes; an error for others."""
    if core.learned or core.modes < 2:
        raise InputError("Gibbs(shrinkage=True) is for core='identity' of two or more modes; leave it out.")
    return core
