"""From a design and raw targets to a fitted model: what the regressor and the recommender share.

Gaussian targets are standardised here, so that priors and noise are in units of the targets. What a fitted model
answers is in `tuckergp.posterior.fitted`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from inspect import signature
from math import prod
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from tuckergp.errors import InputError, NotConvergedWarning
from tuckergp.inference import ALS, HMC, NUTS, SGD, SGLD, VI, Gibbs
from tuckergp.inference.base import Info, Problem
from tuckergp.inference.weights import cuts_of
from tuckergp.likelihoods import Gaussian, Likelihood, Ordinal, Poisson
from tuckergp.likelihoods.levels import initial_cuts
from tuckergp.model.cores import CoreSpec
from tuckergp.model.design import Design
from tuckergp.model.tucker import LARGEST_AUTOMATIC, Core, TuckerModel, make_core, refuse_learned
from tuckergp.posterior.draws import Draw, Draws
from tuckergp.posterior.fitted import CountFit, Fit, OrdinalFit, predict_with, probabilities_with
from tuckergp.random import seed_of, stream
from tuckergp.running import loop
from tuckergp.running.checkpoint import stored_seed
from tuckergp.running.control import Control
from tuckergp.running.start import Start

__all__ = [
    "CountFit",
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
Inference: TypeAlias = ALS | SGD | Gibbs | HMC | NUTS | SGLD | VI
LikelihoodName: TypeAlias = Literal["gaussian", "ordinal", "bernoulli", "poisson"]
LIKELIHOODS = get_args(LikelihoodName)
MOST_LEVELS = 100
# Names of samplers that take their lengths from the estimator, as "gibbs" does.
SAMPLED = ("hmc", "nuts", "sgld")

# Prior standard deviation of factors under an identity core, relative to the one that gives f the targets' variance,
# and the least one of f, which many modes would otherwise leave none.
PRIOR_SCALE, LEAST_SCALE = 0.54, 0.15
# Of the noise precision, unless the user says otherwise: shape and rate.
NOISE_PRIOR = (Gibbs.alpha_shape, Gibbs.alpha_rate)
# A training error this near to that of the mean says that nothing was learned.
EXPLAINS_NOTHING = 0.999


def resolve_inference(
    estimator: Any, named: dict[Any, Inference], noise: str, likelihoods: Sequence[str] = LIKELIHOODS
) -> Inference:
    """The inference that an estimator asks for by name or object; settings that it cannot use are refused."""
    inference = estimator.inference
    if estimator.likelihood not in likelihoods:
        names = ", ".join(map(repr, likelihoods))
        raise InputError(f"likelihood must be one of {names}, not {estimator.likelihood!r}.")
    if inference == "gibbs":
        return Gibbs(draws=estimator.draws, warmup=estimator.warmup, chains=estimator.chains, noise=noise)  # type: ignore[arg-type]
    known = (Gibbs, *(type(value) for value in named.values()))
    if not isinstance(inference, known) and not (isinstance(inference, str) and inference in named):
        names = ", ".join(map(repr, ["gibbs", *named]))
        kinds = ", ".join(kind.__name__ for kind in known)
        raise InputError(f"inference must be one of {names} or an object ({kinds}), not {inference!r}.")
    chosen: Inference = named[inference] if isinstance(inference, str) else inference
    if isinstance(inference, str) and isinstance(chosen, SGD) and estimator.likelihood != "gaussian":
        chosen = replace(chosen, noise=SGD().noise)  # it has none to set
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
    exposure: Floats | None = None,
) -> Fit:
    """Learn U and W by the inference given; Gaussian targets are standardised first, as they were for a ``start``.

    ``exposure`` (N,) is that of counts.
    """
    control = control or Control()
    _check_combination(likelihood, inference)
    many = len(ranks) > 2 and prod(ranks) > LARGEST_AUTOMATIC and min(ranks) > 1
    if isinstance(inference, Gibbs) and many and isinstance(core, str) and core == "auto":
        core = "pairwise"  # products of many factors, without summands of fewer, hardly learn
    shape = make_core(core, ranks, stream(seed, 1, 0))
    if not isinstance(inference, Gibbs):
        refuse_learned(shape, f"{type(inference).__name__} is")
    if likelihood == "poisson":
        return _fit_counts(design, y, weight, exposure, shape, inference, seed, control)
    if likelihood != "gaussian":
        return _fit_levels(design, y, weight, shape, inference, seed, likelihood, control, start)
    mean, scale = _standard(y, weight) if start is None else (start.mean, start.scale)
    noise = inference.noise if isinstance(inference, ALS | SGD) else 1.0
    problem = Problem(_model(shape, Gaussian(noise), inference), design, (y - mean) / scale, weight)
    draws, history = _learn(inference, problem, seed, replace(control, unit=scale), start)
    return Fit(draws, mean, scale, history)


def _check_combination(likelihood: LikelihoodName, inference: Inference) -> None:
    """Refuse an inference that has no way with a likelihood, and settings that it would not look at."""
    if likelihood == "gaussian":
        return
    if likelihood == "poisson" and isinstance(inference, ALS | VI | Gibbs):
        raise InputError(
            f"likelihood='poisson' has no exact conditionals, which {type(inference).__name__} needs; use "
            f"inference='hmc', 'nuts', 'sgld' or 'sgd'."
        )
    if isinstance(inference, ALS | VI):
        raise InputError(
            f"likelihood={likelihood!r} needs inference='gibbs', 'hmc', 'nuts', 'sgld' or 'sgd', not {inference!r}."
        )
    if not isinstance(inference, SGD) and (inference.alpha_shape, inference.alpha_rate) != NOISE_PRIOR:
        raise InputError(
            f"alpha_shape and alpha_rate are of Gaussian noise; with likelihood={likelihood!r} leave them out."
        )
    if isinstance(inference, SGD) and inference.noise != SGD().noise:
        raise InputError(f"SGD: noise is for a Gaussian likelihood; with likelihood={likelihood!r} leave it out.")


def _model(shape: Core, likelihood: Likelihood, inference: Inference) -> TuckerModel:
    """The model with the prior scales of the inference."""
    if isinstance(inference, VI | Gibbs):
        scale = inference.scale or (1.0 if shape.learned else max(PRIOR_SCALE**shape.modes, LEAST_SCALE))
        sigma_u, sigma_w = shape.default_sigma_u(), shape.default_sigma_w()
        if shape.leaves_out:  # an entry that leaves modes out has fewer factors to share the scale among
            return TuckerModel(shape, likelihood, sigma_u, sigma_w * scale)
        return TuckerModel(shape, likelihood, sigma_u * scale ** (1 / shape.modes), sigma_w)
    sigma_u = shape.default_sigma_u() if inference.sigma_u is None else np.full(shape.modes, float(inference.sigma_u))
    return TuckerModel(shape, likelihood, sigma_u, inference.sigma_w or shape.default_sigma_w())


def _learn(
    inference: Inference, problem: Problem, seed: int, control: Control, start: Start | None = None
) -> tuple[Draws, list[Info]]:
    """The draws of a sampler, or the most probable point as a single one; and the learning curve."""
    if isinstance(inference, Gibbs):
        starts = None if start is None else start.states(inference, problem, seed)
        return loop.sample(inference, problem, seed, control, starts)
    if isinstance(inference, HMC | NUTS | SGLD):
        return loop.sample(inference, problem, seed, control)
    model = problem.model
    if isinstance(inference, VI):
        result = loop.run(inference, problem, seed, control)
        spread = float(np.std(problem.y))
        if spread > 0 and result.history[-1].figures["train_rmse"] > EXPLAINS_NOTHING * spread:
            warnings.warn(
                "VI explains nothing of the targets: it came to rest at f = 0. Use Gibbs sampling, fewer modes or "
                "another random_state.",
                NotConvergedWarning,
                stacklevel=2,
            )
        draws = inference.sample(problem, result.state, stream(seed, 3, 0))
        return Draws(model, [draws], sampled=True), result.history
    result = loop.run(inference, problem, seed, control, None if start is None else start.point(problem))
    alpha = 1 / model.likelihood.noise if isinstance(model.likelihood, Gaussian) else 1.0
    cuts = cuts_of(model, result.parameters)
    point = Draw(replace(result.parameters, gaps=np.zeros(0)), alpha, (), (None,) * model.core.modes, cuts)
    return Draws(model, [[point]], sampled=False), result.history


def _standard(y: Floats, weight: Floats | None) -> tuple[float, float]:
    """Mean and standard deviation of targets; 1 for targets that are all the same."""
    mean = float(np.average(y, weights=weight))
    spread = float(np.sqrt(np.average((y - mean) ** 2, weights=weight)))
    return mean, spread if spread > 1e-12 * max(1.0, abs(mean)) else 1.0


def _fit_levels(
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
    model = _model(shape, Ordinal(tuple(map(float, cuts))), inference)
    if control.moments_of is not None:
        control = replace(control, moments_of=replace(control.moments_of, levels=levels))
    draws, history = _learn(inference, Problem(model, design, code.astype(np.float64), weight), seed, control, start)
    return OrdinalFit(draws, 0.0, 1.0, history, levels)


def _fit_counts(
    design: Design,
    y: Floats,
    weight: Floats | None,
    exposure: Floats | None,
    shape: Core,
    inference: Inference,
    seed: int,
    control: Control,
) -> CountFit:
    """The logarithm of the mean rate is added to f, and that of the exposure; counts are not standardised."""
    exposure = np.ones(len(y)) if exposure is None else exposure
    each = np.ones(len(y)) if weight is None else weight
    # half a count more, so that counts which are all 0 have a rate
    log_rate = float(np.log((each @ y + 0.5) / (each @ exposure)))
    if control.moments_of is not None:
        control = replace(control, moments_of=replace(control.moments_of, log_rate=log_rate))
    problem = Problem(_model(shape, Poisson(), inference), design, y, weight, log_rate + np.log(exposure))
    draws, history = _learn(inference, problem, seed, control)
    return CountFit(draws, log_rate, 1.0, history)
