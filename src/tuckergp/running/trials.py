"""Trials before a fit: an algorithm learns from most of the observations and is judged by the held-out rest.

They serve settings that an algorithm leaves open (`tuckergp.inference.algorithm.Inference.settled`). Only the
observations of the fit itself are seen.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.errors import DivergenceError
from tuckergp.inference import Inference
from tuckergp.inference.base import Problem
from tuckergp.inference.scale_search import MOST_TRIALS
from tuckergp.model.tucker import Core
from tuckergp.random import stream
from tuckergp.running import loop
from tuckergp.running.control import Control

__all__ = ["ENOUGH", "LEAST", "MOST", "PARTS", "parts", "settle"]

# One of so many parts is held out; several in turn, until about so many observations were.
PARTS, ENOUGH = 10, 2_000
# With fewer observations there are no trials; with more, some rows of the first mode stand for all.
LEAST, MOST = 500, 200_000
# The share of a time limit that all trials together may take.
TIME_SHARE = 0.5

Ints = npt.NDArray[np.intp]


def settle(
    inference: Inference, core: Core, pose: Callable[[Inference], Problem], seed: int, control: Control
) -> tuple[Inference, Control]:
    """Let an algorithm find the settings that it leaves open by trials; also, the control with the time that is left.

    ``pose`` makes the problem of the fit, with the model that an algorithm asks for.
    """
    began = time.monotonic()

    def misfit(candidate: Inference) -> float:
        problem = pose(candidate)
        if problem.n_observations < LEAST:
            return math.inf
        chosen = parts(problem, seed)
        limit = None if control.max_time is None else TIME_SHARE * control.max_time / (MOST_TRIALS * len(chosen))
        silent = replace(control, max_time=limit, callback=None, progress=False)
        total = 0.0
        for learn, held in chosen:
            if math.isfinite(total):  # otherwise the candidate has lost already
                total += _misfit(candidate, problem.take(learn), problem.take(held), seed, silent)
        return total / len(chosen)

    settled = inference.settled(core, misfit)
    if control.max_time is not None:
        control = replace(control, max_time=max(0.0, control.max_time - (time.monotonic() - began)))
    return settled, control


def parts(problem: Problem, seed: int) -> list[tuple[Ints, Ints]]:
    """The observations to learn from and the held-out ones, at random: one pair, or several where a tenth is little.

    Of many observations about `MOST` are used, all those of some rows of the first mode, so that each row has as many
    as in the fit.
    """
    rng = stream(seed, 1, 3)
    chosen = np.arange(len(problem.y))
    if len(chosen) > MOST:
        rows = rng.random(problem.design.modes[0].n_rows) < MOST / len(chosen)
        chosen = np.flatnonzero(rows[problem.design.index[:, 0]])
    part = (PARTS * rng.random(len(chosen))).astype(int)
    count = min(PARTS, math.ceil(PARTS * ENOUGH / len(chosen)))
    return [(chosen[part != held], chosen[part == held]) for held in range(count)]


def _misfit(algorithm: Any, learn: Problem, held: Problem, seed: int, control: Control) -> float:
    """Minus the mean log density of held-out targets; infinite where it diverged or its time was too short."""
    try:
        with loop.ctrl_c_interrupts():  # a trial that was stopped early tells nothing
            result = loop.run(algorithm, learn, seed, control)
    except DivergenceError:
        return math.inf
    if len(result.steps) < algorithm.n_steps and not result.steps[-1].done:
        return math.inf
    f = held.with_offset(learn.model.predict(result.parameters, held.design))
    density = learn.model.likelihood_at(result.parameters).log_density(held.y, f)
    return -float(np.average(density, weights=held.weight))
