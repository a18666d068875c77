"""The No-U-Turn sampler (Hoffman and Gelman 2014) by nutpie with gradients from here; the paper used that of Stan.

Noise that is not fixed is integrated out for the trajectories and drawn from its conditional afterwards. Trajectories
run in the coordinates of `tuckergp.inference.coordinates`; draws are of U and W as of every sampler.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from queue import Empty, SimpleQueue
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tuckergp.checks import probability, setting, whole
from tuckergp.errors import InputError
from tuckergp.inference.base import Info, Problem
from tuckergp.inference.coordinates import Coordinates
from tuckergp.inference.gibbs import Gibbs
from tuckergp.inference.weights import LogJoint, WeightSampler, prior_scales, vector_of
from tuckergp.random import stream

__all__ = ["NUTS", "NUTSState", "Target"]

Floats = npt.NDArray[np.float64]

# Seconds between two checks whether to stop.
STOP_CHECK = 0.1
# What nutpie tells of a draw, and the name of the figure; lp is in units of the prior scales, without noise.
STATISTICS = {
    "n_steps": "leapfrogs",
    "diverging": "divergences",
    "depth": "depth",
    "energy": "energy",
    "logp": "lp",
    "step_size": "step_size",
    "mean_tree_accept": "acceptance",
}
# The shape of a prior so narrow that what Gibbs sampling would learn stays at the prior's mean.
SURE = 1e9


class NUTSState(NamedTuple):
    """One draw of the chain.

    Attributes
    ----------
    sweep : int
        Draws so far, those of the warm-up included.
    theta : ndarray, shape (P,)
        U_1 ... U_D, W and free unknowns, one after the other.
    alpha : float
        Noise precision; 1 for a likelihood without one.
    """

    sweep: int
    theta: Floats
    alpha: float


@dataclass(frozen=True)
class Target:
    """Log density of weights in units of their prior standard deviations; noise that is learned is integrated out.

    Under alpha ~ Gamma(a, b), with S the sum of n squares, p(y | theta) is proportional to (b + S / 2)^-(a + n / 2),
    and its gradient is that of Gaussian noise of the precision (a + n / 2) / (b + S / 2), alpha's mean given theta.
    """

    coordinates: Coordinates
    noise: float | None
    shape: float
    rate: float

    @cached_property
    def scale(self) -> Floats:
        """Prior standard deviations."""
        return prior_scales(self.coordinates.problem)[self.coordinates.free]

    @cached_property
    def _at_fixed_noise(self) -> LogJoint | None:
        if self.noise is None and self.coordinates.problem.model.likelihood.conjugate:
            return None
        return LogJoint(self.coordinates.problem, 1.0 if self.noise is None else 1 / self.noise)

    @cached_property
    def _diagonal(self) -> npt.NDArray[np.intp]:
        return np.flatnonzero(self.coordinates.power)

    def __call__(self, x: Floats) -> tuple[float, Floats]:
        """The value, up to a constant, and the gradient in x = unknowns / scale."""
        coordinates, at = self.coordinates, self._diagonal
        theta = coordinates.spread_out(self.scale * x)
        log_joint = self._at_fixed_noise
        if log_joint is not None:
            value, gradient = log_joint(theta)
            gradient = gradient[coordinates.free] * self.scale
        else:
            # -(a + n / 2) log(b + S / 2) - x'x / 2
            total, gradient = coordinates.problem.squares(theta)
            shape, rate = self.shape + coordinates.problem.count / 2, self.rate + total / 2
            gradient = gradient[coordinates.free] * self.scale
            gradient *= shape / rate
            gradient -= x
            value = -shape * math.log(rate) - 0.5 * float(x @ x)
        if at.size:
            # sum_i (r - 1 - i) log |U[i, i]|, the density of a rotated U
            power = coordinates.power[at]
            value += float(power @ np.log(np.abs(x[at])))
            gradient[at] += power / x[at]
        return value, gradient


@dataclass(frozen=True)
class NUTS(WeightSampler):
    """The No-U-Turn sampler: Hamiltonian Monte Carlo that finds the length of its trajectories itself. Needs nutpie.

    Parameters
    ----------
    draws, warmup : int
        Draws of a chain after and during warm-up. Step sizes are learned in the warm-up and then kept.
    thin : int
        Keep one of this many draws.
    chains : int
        Independent chains from one seed.
    noise : float or None
        Variance of Gaussian noise in units of the targets' variance; None draws it too.
    sigma_u, sigma_w : float or None
        Prior standard deviations of the entries of U and W. None matches moments: whatever the rank, f has the product
        of the modes' k(x, x) as prior variance, 2^D where each mode has a Constant (the default) and one further term.
        The estimators build their model from these two; `tuckergp.running.loop.sample` takes a model as it is.
    alpha_shape, alpha_rate : float
        Gamma prior of the noise precision where it is drawn.
    max_depth : int
        A trajectory has at most 2^max_depth leapfrogs.
    target : float
        Acceptance probability for which the warm-up adapts the step size.
    begin : int
        Sweeps of Gibbs sampling, of the same posterior, that a chain begins with. With 0 it begins near a draw from
        the prior, as in the paper, and may stay for long in a minor mode. For Gaussian noise alone.

    Examples
    --------
    >>> NUTS(draws=100, warmup=50).n_steps
    150
    """

    name: ClassVar[str] = "nuts"

    warmup: int = setting(300, whole(1))  # nutpie needs one step
    chains: int = setting(4, whole(1))
    max_depth: int = setting(10, whole(1, 20))
    target: float = setting(0.8, probability())
    begin: int = setting(0, whole(0))

    def start(
        self, problem: Problem, rng: np.random.Generator, stop: Callable[[], bool] = lambda: False
    ) -> tuple[Floats, float]:
        """theta and the noise precision that a chain begins with; its Gibbs sweeps end early if ``stop`` says so."""
        theta, alpha = super().start(problem, rng)
        if not self.begin:
            return theta, alpha
        if not problem.model.likelihood.conjugate:
            raise InputError("NUTS: begin takes sweeps of Gibbs sampling with Gaussian noise; leave it out.")
        shape, rate = (self.alpha_shape, self.alpha_rate) if self.noise is None else (SURE * alpha, SURE)
        gibbs = Gibbs(alpha_shape=shape, alpha_rate=rate, dof=SURE, tau_shape=SURE, tau_rate=SURE)
        state = gibbs.init(problem, rng)
        for _ in range(self.begin):
            if stop():
                break
            state, _ = gibbs.step(problem, state, rng)
        precision = problem.model.likelihood.kept(state.likelihood)["alpha"] if self.noise is None else alpha
        return vector_of(gibbs.parameters(problem, state)), float(precision)

    def chain(
        self, problem: Problem, seed: int, chain: int, stop: Callable[[], bool]
    ) -> Iterator[tuple[NUTSState, Info]]:
        """The states of one chain; figures of its trajectories are added to the `Info` when it ends."""
        rng = stream(seed, chain, 0)
        theta, alpha = self.start(problem, rng, stop)
        coordinates = Coordinates.of(problem)
        target = Target(coordinates, self.noise, self.alpha_shape, self.alpha_rate)
        run = _Run(target, coordinates.project(theta) / target.scale, self, int(rng.integers(2**63)))
        infos: list[Info] = []
        try:
            for t, x in enumerate(run.points(stop), start=1):
                rng, free = stream(seed, chain, t), target.scale * x
                alpha, figures = self.draw_noise(coordinates.problem, coordinates.spread_out(free), alpha, rng)
                infos.append(Info(t, figures))
                yield NUTSState(t, coordinates.lift(free, rng), alpha), infos[-1]
        finally:
            _add_figures(infos, run.end(), self)


def _add_figures(infos: list[Info], statistics: dict[str, npt.NDArray[Any]], sampler: NUTS) -> None:
    """Add what nutpie tells of each draw; after the warm-up also the divergences and the share at the largest depth."""
    divergences = cut_short = 0
    for info, *values in zip(infos, *(statistics[name] for name in STATISTICS), strict=False):
        told = dict(zip(STATISTICS.values(), map(float, values), strict=True))
        if info.step > sampler.warmup:
            divergences += int(told["divergences"])
            cut_short += int(told["depth"] >= sampler.max_depth)
        share = cut_short / max(info.step - sampler.warmup, 1)
        info.figures.update(told | {"divergences": float(divergences), "at_max_depth": share})


class _Run:
    """One chain of nutpie in a thread of its own, which hands over its points as they come."""

    def __init__(self, target: Target, start: Floats, sampler: NUTS, seed: int) -> None:
        self.results: SimpleQueue[Floats | Exception] = SimpleQueue()
        self.failed = False
        self.target = target
        self.count, self.steps = 0, sampler.n_steps
        try:
            nutpie, from_pyfunc = import_module("nutpie"), import_module("nutpie.compiled_pyfunc").from_pyfunc
        except ImportError as error:
            raise ImportError("NUTS needs nutpie: pip install 'tuckergp[nuts]'.") from error
        model = from_pyfunc(
            ndim=len(start),
            make_logp_fn=lambda: self._log_density,
            make_expand_fn=lambda *names: self._hand_over,
            expanded_dtypes=[np.dtype(np.float64)],
            expanded_shapes=[(1,)],
            expanded_names=["none"],
            make_initial_point_fn=lambda seed: start,
        )
        self.sampler = nutpie.sample(
            model,
            draws=sampler.draws,
            tune=sampler.warmup,
            chains=1,
            cores=1,
            seed=seed,
            progress_bar=False,
            blocking=False,
            return_raw_trace=True,
            target_accept=sampler.target,
            maxdepth=sampler.max_depth,
        )

    def _log_density(self, x: Floats) -> tuple[float, Floats]:
        """The target; an error, which would end the process, is put into the queue instead."""
        if not self.failed:
            try:
                with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                    return self.target(x)
            except Exception as error:
                self.failed = True
                self.results.put(error)
        return -math.inf, np.zeros(len(x))

    def _hand_over(self, x: Floats) -> dict[str, Floats]:
        """Called by nutpie with every draw."""
        self.results.put(np.array(x))
        return {"none": np.zeros(1)}

    def points(self, stop: Callable[[], bool]) -> Iterator[Floats]:
        """Yield the draws until all are there or ``stop`` says so; at least one."""
        while self.count < self.steps:
            try:
                point = self.results.get(timeout=STOP_CHECK)
            except Empty:
                if self.count and stop():
                    return
                continue
            if isinstance(point, Exception):
                raise point
            self.count += 1
            yield point

    def end(self) -> dict[str, npt.NDArray[Any]]:
        """Stop the thread; return the statistics of all draws, except perhaps the last, by nutpie's names."""
        trace = self.sampler.wait() if self.count == self.steps else self.sampler.abort()
        _, (statistics,) = trace.get_arrow_trace()
        return {name: pa.array(statistics.column(name)).to_numpy(zero_copy_only=False) for name in STATISTICS}
