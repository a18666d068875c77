"""From a design and raw targets to a fitted model: what the regressor and the recommender share.

The likelihood reads the targets. What a fitted model answers is in `tuckergp.posterior.fitted`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.checks import Allowed, one_of
from tuckergp.errors import InputError, TimeWarning
from tuckergp.inference import INFERENCES, Inference
from tuckergp.inference.algorithm import Sampled
from tuckergp.inference.base import Info, Problem
from tuckergp.likelihoods import LIKELIHOODS, Likelihood
from tuckergp.memory import refuse_beyond_memory
from tuckergp.model.cores import CoreSpec
from tuckergp.model.design import Design
from tuckergp.model.tucker import Core
from tuckergp.posterior.draws import Draws
from tuckergp.posterior.fitted import Fit
from tuckergp.posterior.newcomers import TrainingRows
from tuckergp.random import seed_of, stream
from tuckergp.running import loop
from tuckergp.running.checkpoint import stored_seed
from tuckergp.running.control import Control
from tuckergp.running.start import Start
from tuckergp.running.trials import settle

__all__ = [
    "Fit",
    "Inference",
    "allowed_inferences",
    "fit_model",
    "learn_problem",
    "ranks_of",
    "resolve_inference",
    "seed_for",
]

Floats = npt.NDArray[np.float64]

# Seconds from which a fit is announced.
LONG = 600.0


def allowed_inferences(*, ratings: bool) -> Allowed:
    """What an estimator takes as ``inference``: names and objects of the registry; for ratings, those made for them."""
    kinds = _available(ratings)
    words = (*(repr(kind.name) for kind in kinds), f"an object ({', '.join(kind.__name__ for kind in kinds)})")

    def is_inference(value: Any) -> bool:
        kind = INFERENCES.get(value) if isinstance(value, str) else type(value)
        return kind in _available(ratings)

    return Allowed(words, is_inference)


def _available(ratings: bool) -> list[type[Inference]]:
    return [kind for kind in INFERENCES.values() if kind.for_ratings or not ratings]


def resolve_inference(
    estimator: Any, kind: type[Likelihood], tuned: Mapping[str, Mapping[str, Any]], noise: str, *, ratings: bool
) -> Inference:
    """The inference object that an estimator names or gives, for a likelihood; an error for settings it cannot use.

    ``tuned`` has the settings that a name stands for, where they are not the algorithm's own defaults. ``ratings`` says
    whether the estimator is for ratings.
    """
    inference = estimator.inference
    named = isinstance(inference, str)
    algorithm = INFERENCES[inference] if named else type(inference)
    taken = algorithm.takes if named else ()
    defaults = {name: parameter.default for name, parameter in signature(type(estimator)).parameters.items()}
    for name in ("draws", "warmup", "chains", "noise"):
        if name not in taken and getattr(estimator, name) != defaults[name]:
            raise InputError(_misplaced(name, getattr(estimator, name), inference, algorithm, ratings))
    if not named:
        return inference  # type: ignore[no-any-return]
    settings = {name: getattr(estimator, name) for name in taken} | ({"noise": noise} if "noise" in taken else {})
    for name, value in tuned.get(inference, {}).items():
        if kind.has_noise or name not in algorithm.of_noise:
            settings[name] = value
    return algorithm(**settings)


def _misplaced(name: str, value: Any, inference: object, kind: type[Inference], ratings: bool) -> str:
    """A sentence about a setting of an estimator that its inference does not take from it."""
    if name in kind.takes:
        return f"{name} is a setting of the object here; give inference={kind.__name__}({name}={value!r}) instead."
    names = one_of(*(each.name for each in _available(ratings) if name in each.takes))
    return f"{name} is a setting of inference={names}; with {inference!r} leave it out."


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
    most = int(max(ranks))
    what = f"rank={most} needs matrices of {most:,} x {most:,} numbers,"
    refuse_beyond_memory(8 * most**2, what, "take a lower rank")
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
    likelihood: str | Likelihood = "gaussian",
    control: Control | None = None,
    start: Start | None = None,
    exposure: Floats | None = None,
) -> Fit:
    """Learn all parameters by the given inference; with a ``start``, from its values and with its likelihood.

    ``likelihood`` is a name, or one that has read the targets. ``exposure`` (N,) is for counts.
    """
    control = control or Control()
    kind = LIKELIHOODS[likelihood] if isinstance(likelihood, str) else type(likelihood)
    inference.check_likelihood(kind)
    shape = inference.core(core, ranks, stream(seed, 1, 0), len(y))
    kind.check_core(shape)
    what = f"A step of {type(inference).__name__} with rank {max(ranks)} needs"
    remedy = "take a lower rank, fewer features or modes, or fewer rows"
    refuse_beyond_memory(inference.step_bytes(design, shape), what, remedy)
    likelihood_read = kind.read(y, weight, exposure) if isinstance(likelihood, str) else likelihood
    if start is not None:
        likelihood_read = start.likelihood

    def pose(asked: Inference) -> Problem:
        model = asked.model(shape, likelihood_read)
        observed = model.likelihood
        return Problem(model, design, observed.targets(y), weight, observed.offset(len(y), exposure))

    inference, control = settle(inference, shape, pose, seed, control)
    problem = pose(inference)
    if control.max_time is None:
        _announce(inference, problem, control)
    draws, steps = learn_problem(inference, problem, seed, replace(control, unit=problem.model.likelihood.scale), start)
    return Fit(TrainingRows(design).with_newcomers(draws), steps)


def _announce(inference: Any, problem: Problem, control: Control) -> None:
    """Warn of a fit that will take long."""
    chains = inference.chains if isinstance(inference, Sampled) else 1
    step = inference.step_seconds(problem)
    seconds = step * inference.n_steps * chains / min(chains, control.jobs)
    if seconds > LONG:
        named = f"{seconds / 3600:.1f} hours" if seconds > 2 * 3600 else f"{seconds / 60:.0f} minutes"
        warnings.warn(
            f"This fit will take about {named}: {inference.n_steps} steps of {step:.2g} s for each of {chains} chains. "
            f"Fewer draws, a lower rank, fewer features or modes make it shorter; fit(max_time=seconds) stops it with "
            f"the result so far, and progress=True shows the time left.",
            TimeWarning,
            stacklevel=4,
        )


def learn_problem(
    inference: Any, problem: Problem, seed: int, control: Control, start: Start | None
) -> tuple[Draws, list[Info]]:
    """The draws of a sampler, or those of where another algorithm arrives, and the learning curve."""
    if isinstance(inference, Sampled):
        chains = range(inference.chains)
        starts = None if start is None else [start.state(chain, inference, problem, seed) for chain in chains]
        return loop.sample(inference, problem, seed, control, starts)  # type: ignore[arg-type]
    begin = None if start is None else start.state(0, inference, problem, seed)
    result = loop.run(inference, problem, seed, control, begin)
    draws = inference.draws_of(problem, result.state, stream(seed, 3, 0))
    if inference.point:
        return Draws.of_point(problem.model, *draws), result.steps
    return Draws.of(problem.model, draws), result.steps
