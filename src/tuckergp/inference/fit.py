"""From a design and raw targets to a fitted model: what the regressor and the recommender share.

Targets are standardised here and predictions brought back, so that priors and noise are in units of the targets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from tuckergp.design import Design
from tuckergp.errors import InputError
from tuckergp.inference import ALS, HMC, NUTS, SGD, SGLD, Gibbs, loop
from tuckergp.inference.base import Info, Problem
from tuckergp.inference.checkpoint import stored_seed
from tuckergp.inference.control import Control
from tuckergp.inference.draws import Draw, Draws
from tuckergp.inference.mixture import mixture_quantiles
from tuckergp.inference.moments import Moments, summarised
from tuckergp.inference.start import Start
from tuckergp.likelihoods import Gaussian, Ordinal
from tuckergp.model import Core, CoreSpec, TuckerModel, make_core
from tuckergp.priors.ordinal import initial_cuts, level_interval, mean_level
from tuckergp.random import seed_of, stream

__all__ = [
    "Fit",
    "Inference",
    "LikelihoodName",
    "OrdinalFit",
    "fit_model",
    "predict_with",
    "probabilities_with",
    "ranks_of",
    "resolve_inference",
    "seed_for",
]

Floats = npt.NDArray[np.float64]
Inference: TypeAlias = ALS | SGD | Gibbs | HMC | NUTS | SGLD
LikelihoodName: TypeAlias = Literal["gaussian", "ordinal", "bernoulli"]
LIKELIHOODS = get_args(LikelihoodName)
MOST_LEVELS = 100
# Names of samplers that take their lengths from the estimator, as "gibbs" does.
SAMPLED = ("hmc", "nuts", "sgld")

# Prior standard deviation of factors under an identity core, relative to the one that gives f the targets' variance,
# and the least one of f, which many modes would otherwise leave none.
PRIOR_SCALE, LEAST_SCALE = 0.54, 0.15

# Numbers held at once while quantiles are taken.
BLOCK = 4_000_000


@dataclass(frozen=True)
class Fit:
    """A model with its draws, on targets (y - mean) / scale."""

    draws: Draws
    mean: float
    scale: float
    history: list[Info]

    def only(self, draw: Draw) -> Self:
        """The same with one draw."""
        return replace(self, draws=replace(self.draws, chains=[[draw]]))

    def predict(self, design: Design) -> Floats:
        """Predictions in the units of the targets: the mean of f over the draws, shape (N,)."""
        total = np.zeros(design.n_observations)
        for f, _ in self.draws.functions(design):
            total += f
        return self.mean + self.scale * total / len(self.draws)

    def spread(self, design: Design, include_noise: bool) -> Floats:
        """Standard deviation of a new observation, or of f alone, shape (N,)."""
        self._require_draws("a standard deviation")
        total, squares, noise = (np.zeros(design.n_observations) for _ in range(3))
        for f, variance in self.draws.functions(design, stream(0)):
            total += f
            squares += f**2
            noise += variance
        n = len(self.draws)
        between = np.maximum(squares / n - (total / n) ** 2, 0.0) * n / max(n - 1, 1)
        return np.asarray(self.scale * np.sqrt(between + (noise / n if include_noise else 0.0)))

    def quantiles(self, design: Design, levels: Sequence[float], include_noise: bool) -> Floats:
        """Quantiles of a new observation, or of f alone, shape (N, len(levels))."""
        self._require_draws("quantiles")
        _check_quantiles(levels)
        block = max(1, BLOCK // len(self.draws))
        out = np.empty((design.n_observations, len(levels)))
        for first in range(0, design.n_observations, block):
            rows = np.arange(first, min(first + block, design.n_observations))
            f, variance = map(np.stack, zip(*self.draws.functions(design.take(rows), stream(0)), strict=True))
            for column, level in enumerate(levels):
                out[rows, column] = (
                    mixture_quantiles(f, np.sqrt(variance), level) if include_noise else np.quantile(f, level, axis=0)
                )
        return self.mean + self.scale * out

    def interval(self, design: Design, share: float, include_noise: bool) -> Floats:
        """Between which values a new observation, or f, is with this probability, shape (N, 2)."""
        tail = (1 - _checked_share(share)) / 2
        return self.quantiles(design, [tail, 1 - tail], include_noise)

    def moments(self) -> Moments:
        """The running moments that were asked for, in the units of the targets."""
        return summarised(self.draws.required_moments(), None, self.mean, self.scale)

    def _require_draws(self, what: str) -> None:
        if not self.draws.sampled:
            raise InputError(
                f"The most probable point says nothing of how sure it is; for {what} use inference='gibbs'."
            )


@dataclass(frozen=True)
class OrdinalFit(Fit):
    """A model of ordered levels with its draws; ``levels`` are the values of the targets, in order."""

    levels: Floats

    def probabilities(self, design: Design) -> Floats:
        """Probability of every level, mean over the draws, shape (N, K)."""
        total = np.zeros((design.n_observations, len(self.levels)))
        for probability in self.draws.probabilities(design, stream(0)):
            total += probability
        return total / len(self.draws)

    def moments(self) -> Moments:
        """The running moments that were asked for."""
        return summarised(self.draws.required_moments(), self.levels, self.mean, self.scale)

    def predict(self, design: Design) -> Floats:
        """The mean of the predicted distribution over levels, shape (N,)."""
        return mean_level(self.probabilities(design), self.levels)

    def spread(self, design: Design, include_noise: bool) -> Floats:
        """Standard deviation of a new observation, or of its mean level over the draws, shape (N,)."""
        if include_noise:
            probabilities = self.probabilities(design)
            mean = mean_level(probabilities, self.levels)
            return np.asarray(np.sqrt(np.maximum(probabilities @ self.levels**2 - mean**2, 0.0)))
        means = [mean_level(p, self.levels) for p in self.draws.probabilities(design, stream(0))]
        return np.asarray(np.std(means, axis=0, ddof=min(1, len(means) - 1)))

    def quantiles(self, design: Design, levels: Sequence[float], include_noise: bool) -> Floats:
        """The lowest level that reaches each quantile, or quantiles of the mean level, shape (N, len(levels))."""
        _check_quantiles(levels)
        if include_noise:
            reached = np.cumsum(self.probabilities(design), axis=1)[:, :, None] >= np.asarray(levels) - 1e-12
            reached[:, -1] = True
            return np.asarray(self.levels[np.argmax(reached, axis=1)])
        means = [mean_level(p, self.levels) for p in self.draws.probabilities(design, stream(0))]
        return np.asarray(np.quantile(means, levels, axis=0).T)

    def interval(self, design: Design, share: float, include_noise: bool) -> Floats:
        """The levels between which a new observation is with about this probability, shape (N, 2)."""
        if not include_noise:
            return super().interval(design, share, include_noise)
        return level_interval(self.probabilities(design), self.levels, _checked_share(share))


def _checked_share(share: float) -> float:
    if not 0 < share < 1:
        raise InputError(f"interval must be a probability between 0 and 1, not {share!r}.")
    return float(share)


def _check_quantiles(levels: Sequence[float]) -> None:
    if not all(0 < level < 1 for level in levels):
        raise InputError(f"quantiles must be between 0 and 1, not {list(levels)}.")


def predict_with(
    fit: Fit,
    design: Design,
    return_std: bool,
    quantiles: Sequence[float] | None,
    interval: float | None,
    include_noise: bool,
) -> Floats | tuple[Floats, Floats]:
    """The mean alone, or with standard deviations, quantiles or an interval as asked."""
    if return_std + (quantiles is not None) + (interval is not None) > 1:
        raise InputError("Ask for one of standard deviations, quantiles and an interval, not for several.")
    mean = fit.predict(design)
    if return_std:
        return mean, fit.spread(design, include_noise)
    if quantiles is not None:
        return mean, fit.quantiles(design, quantiles, include_noise)
    if interval is not None:
        return mean, fit.interval(design, interval, include_noise)
    return mean


def probabilities_with(fit: Fit, design: Design) -> Floats:
    """Probabilities of the levels of an ordinal model; refused for others."""
    if not isinstance(fit, OrdinalFit):
        raise InputError("Only models with likelihood='ordinal' or 'bernoulli' have probabilities of levels.")
    fit.draws.require_kept()
    return fit.probabilities(design)


def resolve_inference(estimator: Any, named: dict[Any, Inference], noise: str) -> Inference:
    """The inference that an estimator asks for by name or object; settings that it cannot use are refused."""
    inference = estimator.inference
    if estimator.likelihood not in LIKELIHOODS:
        names = ", ".join(map(repr, LIKELIHOODS))
        raise InputError(f"likelihood must be one of {names}, not {estimator.likelihood!r}.")
    if inference == "gibbs":
        return Gibbs(draws=estimator.draws, warmup=estimator.warmup, chains=estimator.chains, noise=noise)  # type: ignore[arg-type]
    known = (Gibbs, *(type(value) for value in named.values()))
    if not isinstance(inference, known) and not (isinstance(inference, str) and inference in named):
        names = ", ".join(map(repr, ["gibbs", *named]))
        kinds = ", ".join(kind.__name__ for kind in known)
        raise InputError(f"inference must be one of {names} or an object ({kinds}), not {inference!r}.")
    chosen: Inference = named[inference] if isinstance(inference, str) else inference
    sampled = inference in SAMPLED and isinstance(chosen, HMC | NUTS | SGLD)
    lengths = ("draws", "warmup", "chains")
    defaults = {name: parameter.default for name, parameter in signature(type(estimator)).parameters.items()}
    for name in ("noise",) if sampled else (*lengths, "noise"):
        if getattr(estimator, name) != defaults[name]:
            raise InputError(f"{name} is a setting of inference='gibbs'; with {inference!r} leave it out.")
    return replace(chosen, **{name: getattr(estimator, name) for name in lengths}) if sampled else chosen


def seed_for(random_state: object, checkpoint: object) -> int:
    """The seed of a fit: without a ``random_state``, that of the run to be continued."""
    if random_state is None and isinstance(checkpoint, str | Path):
        stored = stored_seed(checkpoint)
        if stored is not None:
            return stored
    return seed_of(random_state)


def ranks_of(rank: object, modes: int) -> list[int]:
    """One rank a mode from what the user gave: an int for all, or a sequence with one each."""
    if isinstance(rank, bool) or not isinstance(rank, int | np.integer | Sequence):
        raise InputError(f"rank must be a whole number or one a mode, not {rank!r}.")
    ranks = list(rank) if isinstance(rank, Sequence) else [rank] * modes
    if len(ranks) != modes:
        raise InputError(f"rank has {len(ranks)} entries for {modes} modes; give one number, or one a mode.")
    if not all(isinstance(r, int | np.integer) and not isinstance(r, bool) and r >= 1 for r in ranks):
        raise InputError(f"rank must be at least 1, not {rank!r}.")
    return [int(r) for r in ranks]


def fit_model(
    design: Design,
    y: Floats,
    weight: Floats | None,
    *,
    ranks: Sequence[int],
    core: CoreSpec | Core,
    inference: Inference,
    seed: int,
    likelihood: LikelihoodName = "gaussian",
    control: Control | None = None,
    start: Start | None = None,
) -> Fit:
    """Learn U and W by the inference given; Gaussian targets are standardised first, as they were for a ``start``."""
    control = control or Control()
    shape = make_core(core, ranks, stream(seed, 1, 0))
    if likelihood != "gaussian":
        return _fit_ordinal(design, y, weight, shape, inference, seed, likelihood, control, start)
    mean, scale = _standard(y, weight) if start is None else (start.mean, start.scale)
    target = (y - mean) / scale
    control = replace(control, unit=scale)
    if isinstance(inference, Gibbs):
        model = TuckerModel(shape, Gaussian(), _sampler_sigma_u(inference, shape), shape.default_sigma_w())
        problem = Problem(model, design, target, weight)
        starts = None if start is None else start.states(inference, problem, seed)
        draws, history = loop.sample(inference, problem, seed, control, starts)
        return Fit(draws, mean, scale, history)
    sigma_u = shape.default_sigma_u() if inference.sigma_u is None else np.full(shape.modes, float(inference.sigma_u))
    sigma_w = inference.sigma_w or shape.default_sigma_w()
    if isinstance(inference, HMC | NUTS | SGLD):
        problem = Problem(TuckerModel(shape, Gaussian(), sigma_u, sigma_w), design, target, weight)
        draws, history = loop.sample(inference, problem, seed, control)
        return Fit(draws, mean, scale, history)
    model = TuckerModel(shape, Gaussian(inference.noise), sigma_u, sigma_w)
    problem = Problem(model, design, target, weight)
    result = loop.run(inference, problem, seed, control, None if start is None else start.point(problem))
    point = Draw(result.parameters, 1 / inference.noise, (), (None,) * shape.modes)
    return Fit(Draws(model, [[point]], sampled=False), mean, scale, result.history)


def _standard(y: Floats, weight: Floats | None) -> tuple[float, float]:
    """Mean and standard deviation of targets; 1 for targets that are all the same."""
    mean = float(np.average(y, weights=weight))
    spread = float(np.sqrt(np.average((y - mean) ** 2, weights=weight)))
    return mean, spread if spread > 1e-12 * max(1.0, abs(mean)) else 1.0


def _fit_ordinal(
    design: Design,
    y: Floats,
    weight: Floats | None,
    shape: Core,
    inference: Inference,
    seed: int,
    likelihood: LikelihoodName,
    control: Control,
    start: Start | None,
) -> OrdinalFit:
    """Levels are the distinct values of the targets; Bernoulli has two, with the cut point at 0."""
    if not isinstance(inference, Gibbs):
        raise InputError(f"likelihood={likelihood!r} needs inference='gibbs', not {inference!r}.")
    levels, code = np.unique(y, return_inverse=True)
    if likelihood == "bernoulli" and not np.isin(levels, (0.0, 1.0)).all():
        raise InputError(
            f"likelihood='bernoulli' needs targets 0 and 1, but one is {levels[~np.isin(levels, (0, 1))][0]:g}."
        )
    if likelihood == "bernoulli":
        levels, code = np.array([0.0, 1.0]), y.astype(np.int64)
    if not 2 <= len(levels) <= MOST_LEVELS:
        raise InputError(
            f"likelihood='ordinal' needs from 2 to {MOST_LEVELS} different target values, not {len(levels)}; "
            f"use likelihood='gaussian'."
        )
    counts = np.bincount(code, minlength=len(levels))
    cuts = initial_cuts(counts, first=0.0 if likelihood == "bernoulli" else None)
    model = TuckerModel(
        shape, Ordinal(tuple(map(float, cuts))), _sampler_sigma_u(inference, shape), shape.default_sigma_w()
    )
    problem = Problem(model, design, code.astype(np.float64), weight)
    if control.moments_of is not None:
        control = replace(control, moments_of=replace(control.moments_of, levels=levels))
    starts = None if start is None else start.states(inference, problem, seed)
    draws, history = loop.sample(inference, problem, seed, control, starts)
    return OrdinalFit(draws, 0.0, 1.0, history, levels)


def _sampler_sigma_u(inference: Gibbs, shape: Core) -> Floats:
    scale = inference.scale or (1.0 if shape.learned else max(PRIOR_SCALE**shape.modes, LEAST_SCALE))
    return np.asarray(shape.default_sigma_u() * scale ** (1 / shape.modes))
