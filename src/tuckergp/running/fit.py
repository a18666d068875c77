"""From a design and raw targets to a fitted model: what the regressor and the recommender share.

The likelihood reads the targets. What a fitted model answers is in `tuckergp.posterior.fitted`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from inspect import signature
from math import prod
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tuckergp.errors import InputError, NotConvergedWarning
from tuckergp.inference import ALS, HMC, NUTS, SGD, SGLD, VI, Gibbs
from tuckergp.inference.base import Info, Problem
from tuckergp.inference.weights import draw_of_weights
from tuckergp.likelihoods import LIKELIHOODS, Likelihood
from tuckergp.model.cores import CoreSpec
from tuckergp.model.design import Design
from tuckergp.model.tucker import LARGEST_AUTOMATIC, Core, TuckerModel, make_core, refuse_learned
from tuckergp.posterior.draws import Draws
from tuckergp.posterior.fitted import Fit
from tuckergp.random import seed_of, stream
from tuckergp.running import loop
from tuckergp.running.checkpoint import stored_seed
from tuckergp.running.control import Control
from tuckergp.running.start import Start

__all__ = [
    "Fit",
    "Inference",
    "fit_model",
    "ranks_of",
    "resolve_inference",
    "seed_for",
]

Floats = npt.NDArray[np.float64]
Inference: TypeAlias = ALS | SGD | Gibbs | HMC | NUTS | SGLD | VI
# Samplers that, like "gibbs", take the number of draws and warm-up sweeps from the estimator.
SAMPLED = ("hmc", "nuts", "sgld")

# Prior standard deviation of f with an identity core, relative to that of the targets.
PRIOR_SCALE = 0.25
# Shape and rate of the default prior of the noise precision.
NOISE_PRIOR = (Gibbs.alpha_shape, Gibbs.alpha_rate)
# A training error this near to that of the mean says that nothing was learned.
EXPLAINS_NOTHING = 0.999


def resolve_inference(estimator: Any, named: dict[Any, Inference], noise: str) -> Inference:
    """The inference object that an estimator names or gives; an error for settings that it cannot use."""
    inference = estimator.inference
    if inference == "gibbs":
        return Gibbs(draws=estimator.draws, warmup=estimator.warmup, chains=estimator.chains, noise=noise)  # type: ignore[arg-type]
    known = (Gibbs, *(type(value) for value in named.values()))
    if not isinstance(inference, known) and not (isinstance(inference, str) and inference in named):
        names = ", ".join(map(repr, ["gibbs", *named]))
        kinds = ", ".join(kind.__name__ for kind in known)
        raise InputError(f"inference must be one of {names} or an object ({kinds}), not {inference!r}.")
    chosen: Inference = named[inference] if isinstance(inference, str) else inference
    if isinstance(inference, str) and isinstance(chosen, SGD) and not LIKELIHOODS[estimator.likelihood].has_noise:
        chosen = replace(chosen, noise=SGD().noise)  # it has none to set
    sampled = inference in SAMPLED and isinstance(chosen, HMC | NUTS | SGLD)
    lengths = ("draws", "warmup", "chains")
    defaults = {name: parameter.default for name, parameter in signature(type(estimator)).parameters.items()}
    for name in ("noise",) if sampled else (*lengths, "noise"):
        if getattr(estimator, name) != defaults[name]:
            raise InputError(f"{name} is a setting of inference='gibbs'; with {inference!r} leave it out.")
    return replace(chosen, **{name: getattr(estimator, name) for name in lengths}) if sampled else chosen


def seed_for(random_state: object, checkpoint: object) -> int:
    """The seed of a fit from ``random_state``; without one, that of the run to be continued."""
    if random_state is None and isinstance(checkpoint, str | Path):
        stored = stored_seed(checkpoint)
        if stored is not None:
            return stored
    return seed_of(random_state)


def ranks_of(rank: object, modes: int) -> list[int]:
    """The rank of each mode, from an int for all modes or a sequence with one rank per mode."""
    if isinstance(rank, bool) or not isinstance(rank, int | np.integer | Sequence):
        raise InputError(f"rank must be a whole number or one per mode, not {rank!r}.")
    ranks = list(rank) if isinstance(rank, Sequence) else [rank] * modes
    if len(ranks) != modes:
        raise InputError(f"rank has {len(ranks)} entries for {modes} modes; give one number, or one per mode.")
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
    likelihood: str = "gaussian",
    control: Control | None = None,
    start: Start | None = None,
    exposure: Floats | None = None,
) -> Fit:
    """Learn all parameters by the given inference; with a ``start``, from its values and with its likelihood.

    ``exposure`` (N,) is for counts.
    """
    control = control or Control()
    kind = LIKELIHOODS[likelihood]
    _check_combination(kind, inference)
    many = len(ranks) > 2 and prod(ranks) > LARGEST_AUTOMATIC and min(ranks) > 1
    if isinstance(inference, Gibbs) and many and isinstance(core, str) and core == "auto":
        core = "pairwise"  # products of many factors, without summands of fewer, hardly learn
    shape = make_core(core, ranks, stream(seed, 1, 0))
    if not isinstance(inference, Gibbs):
        refuse_learned(shape, f"{type(inference).__name__} is")
    observed = kind.read(y, weight, exposure) if start is None else start.likelihood
    if isinstance(inference, ALS | SGD):
        observed = observed.with_noise(inference.noise)
    model = _model(shape, observed, inference)
    problem = Problem(model, design, observed.targets(y), weight, observed.offset(len(y), exposure))
    draws, steps = _learn(inference, problem, seed, replace(control, unit=observed.scale), start)
    return Fit(draws, steps)


def _check_combination(kind: type[Likelihood], inference: Inference) -> None:
    """Raise an error for an inference that does not support the likelihood, or settings that it would ignore."""
    if inference.name not in kind.inferences:
        *others, last = map(repr, kind.inferences)
        names = f"{', '.join(others)} or {last}" if others else last
        raise InputError(f"likelihood={kind.name!r} needs inference={names}, not {type(inference).__name__}.")
    if kind.has_noise:
        return
    if not isinstance(inference, SGD) and (inference.alpha_shape, inference.alpha_rate) != NOISE_PRIOR:  # type: ignore[union-attr]
        raise InputError(
            f"alpha_shape and alpha_rate are of Gaussian noise; with likelihood={kind.name!r} leave them out."
        )
    if isinstance(inference, SGD) and inference.noise != SGD().noise:
        raise InputError(f"SGD: noise is for a Gaussian likelihood; with likelihood={kind.name!r} leave it out.")


def _model(shape: Core, likelihood: Likelihood, inference: Inference) -> TuckerModel:
    """The model with the prior scales of the inference."""
    if isinstance(inference, VI | Gibbs):
        scale = inference.scale or (1.0 if shape.learned else PRIOR_SCALE)
        sigma_u, sigma_w = shape.default_sigma_u(), shape.default_sigma_w()
        if shape.leaves_out:  # an entry that leaves modes out has fewer factors to share the scale among
            return TuckerModel(shape, likelihood, sigma_u, sigma_w * scale)
        return TuckerModel(shape, likelihood, sigma_u * scale ** (1 / shape.modes), sigma_w)
    sigma_u = shape.default_sigma_u() if inference.sigma_u is None else np.full(shape.modes, float(inference.sigma_u))
    return TuckerModel(shape, likelihood, sigma_u, inference.sigma_w or shape.default_sigma_w())


def _learn(
    inference: Inference, problem: Problem, seed: int, control: Control, start: Start | None = None
) -> tuple[Draws, list[Info]]:
    """The draws of a sampler, or the most probable point as a single draw, and the learning curve."""
    if isinstance(inference, Gibbs):
        starts = None if start is None else start.states(inference, problem, seed)
        return loop.sample(inference, problem, seed, control, starts)
    if isinstance(inference, HMC | NUTS | SGLD):
        return loop.sample(inference, problem, seed, control)
    model = problem.model
    if isinstance(inference, VI):
        result = loop.run(inference, problem, seed, control)
        spread = float(np.std(problem.y))
        if spread > 0 and result.steps[-1].figures["train_rmse"] > EXPLAINS_NOTHING * spread:
            warnings.warn(
                "VI explains nothing of the targets: it came to rest at f = 0. Use Gibbs sampling, fewer modes or "
                "another random_state.",
                NotConvergedWarning,
                stacklevel=2,
            )
        draws = inference.sample(problem, result.state, stream(seed, 3, 0))
        return Draws.of(model, draws), result.steps
    result = loop.run(inference, problem, seed, control, None if start is None else start.point(problem))
    unknowns = model.likelihood_at(result.parameters).unknowns()
    return Draws.of_point(model, draw_of_weights(problem, result.parameters, unknowns)), result.steps
