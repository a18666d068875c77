"""Runs any algorithm: steps, progress on a terminal, callbacks, time limits, checkpoints, several chains."""

from __future__ import annotations

import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import tuckergp
from tuckergp.errors import NotConvergedWarning, SizeWarning
from tuckergp.inference.base import Algorithm, ChainSampler, Drawing, Info, Problem, Sampler
from tuckergp.model.tucker import Parameters
from tuckergp.posterior.draws import Draws, Stack, bytes_of_draw
from tuckergp.posterior.moments import merged
from tuckergp.random import stream
from tuckergp.running.chains import Task
from tuckergp.running.checkpoint import ChainRecord, Checkpoint
from tuckergp.running.control import Control
from tuckergp.running.parallel import run_in_processes, run_one_by_one, turns
from tuckergp.running.progress import progress_line
from tuckergp.running.threads import few_threads
from tuckergp.store.trees import digest

__all__ = ["Result", "ctrl_c_interrupts", "run", "sample"]

# Settings that say how long a run is, not what it draws: with a checkpoint they may be raised.
LENGTHS = ("draws", "chains")
# Bytes of draws from which on a warning tells their size before sampling.
MUCH = 1e9


@dataclass(frozen=True)
class Result:
    """The result of a run: the parameters, the figures of every step, and the algorithm's last state."""

    parameters: Parameters
    steps: list[Info]
    state: Any = None


def run(
    algorithm: Algorithm[Any], problem: Problem, seed: int, control: Control | None = None, start: Any = None
) -> Result:
    """Take the algorithm's steps until it is done, its time is up, or Ctrl-C asks for the result so far.

    Parameters
    ----------
    algorithm : Algorithm
    problem : Problem
    seed : int
        Seed of the random streams: step t draws the same numbers in every run with this seed.
    control : Control or None
        Callback, progress line and time limit; an error for its other settings, which are for samplers.
    start : state of the algorithm, or None
        The state to begin with, instead of the algorithm's own.
    """
    control = control or Control()
    control.refuse_without_draws(algorithm)
    began = time.monotonic()
    state = algorithm.init(problem, stream(seed, 0)) if start is None else start
    steps: list[Info] = []
    name = type(algorithm).__name__
    with (
        progress_line(name, algorithm.n_steps, control.progress, control.unit) as advance,
        _ctrl_c_asks() as interrupted,
        few_threads(problem),
    ):
        for t in range(1, algorithm.n_steps + 1):
            state, info = algorithm.step(problem, state, stream(seed, t))
            steps.append(info)
            advance(info)
            if control.callback is not None:
                control.callback(info)
            late = control.max_time is not None and time.monotonic() - began > control.max_time
            if info.done or late or interrupted():
                break
    return Result(algorithm.parameters(problem, state), steps, state)


def sample(
    sampler: Sampler[Any] | ChainSampler,
    problem: Problem,
    seed: int,
    control: Control | None = None,
    starts: Sequence[Any] | None = None,
) -> tuple[Draws, list[Info]]:
    """Run the sampler's chains, from ``starts`` where they are given, and keep their draws.

    Ctrl-C and ``max_time`` (seconds for all chains together) end the run early, after the current sweep, with the
    draws made so far; every chain that began has at least one. A second Ctrl-C stops at once.
    """
    control = control or Control()
    checkpoint = _checkpoint(sampler, problem, seed, control, starts)
    with nullcontext() if checkpoint is None else checkpoint.held(), _ctrl_c_asks() as interrupted:
        return _sample(sampler, problem, seed, control, starts, checkpoint, interrupted)


def _sample(
    sampler: Sampler[Any] | ChainSampler,
    problem: Problem,
    seed: int,
    control: Control,
    starts: Sequence[Any] | None,
    checkpoint: Checkpoint | None,
    interrupted: Callable[[], bool],
) -> tuple[Draws, list[Info]]:
    chains = range(sampler.chains)
    stored = [0] * sampler.chains if checkpoint is None else checkpoint.sweeps(sampler.chains)
    task = Task(
        sampler,
        problem,
        seed,
        checkpoint,
        control.checkpoint_minutes,
        control.moments_of,
        control.keep,
        starts,
    )
    _warn_of_size(task.most_draws * sampler.chains, problem)
    unfinished = [chain for chain in chains if stored[chain] < sampler.n_steps]
    jobs = min(control.jobs, len(unfinished))
    todo = turns(unfinished, max(jobs, 1), control.max_time)
    total = sampler.n_steps * sampler.chains
    with progress_line(type(sampler).__name__, total, control.progress, control.unit, sum(stored)) as advance:

        def report(info: Info) -> None:
            advance(info)
            if control.callback is not None:
                control.callback(info)

        if jobs > 1:
            ran = run_in_processes(task, todo, jobs, interrupted, report)
        else:
            ran = run_one_by_one(task, todo, interrupted, report)
    records = {record.chain: record for record in ran}
    records |= {chain: task.load(chain) for chain in chains if stored[chain] and chain not in records}
    draws = _assemble(task, [records[chain] for chain in sorted(records)])
    warning = draws.diagnostics().warning(share=0.25)
    if warning is not None:
        warnings.warn(warning, NotConvergedWarning, stacklevel=6)
    steps = [info for chain in sorted(records) for info in records[chain].steps]
    _warn_of_divergences(steps)
    return draws, steps


def _warn_of_size(count: int, problem: Problem) -> None:
    """Warn of the memory that the draws will take, where it is much."""
    each = bytes_of_draw(problem.design, problem.model.core)
    if count * each >= MUCH:
        warnings.warn(
            f"The draws will take {count * each / 1e9:.1f} GB of memory, and as much in a file: {count} of "
            f"{each / 1e6:.1f} MB each. keep={max(1, int(MUCH / each))} would keep 1 GB of them.",
            SizeWarning,
            stacklevel=7,
        )


def _warn_of_divergences(steps: list[Info]) -> None:
    """Warn of divergent trajectories, for samplers whose figures count them."""
    last = {info.chain: int(info.figures.get("divergences", 0)) for info in steps}
    count = sum(last.values())
    if count:
        draws = "1 trajectory" if count == 1 else f"{count} trajectories"
        warnings.warn(
            f"{draws} after the warm-up diverged, so parts of the posterior may be missing: raise target towards 1, "
            f"or warmup.",
            NotConvergedWarning,
            stacklevel=7,
        )


def _assemble(task: Task, records: list[ChainRecord]) -> Draws:
    records = [task.with_one_draw(record) for record in records]
    watched = [
        {name: np.stack([draw[name] for draw in record.watched]) for name in record.watched[0]} for record in records
    ]
    return Stack.joined(
        task.problem.model,
        [record.draws for record in records],
        traces=[values["f"] for values in watched],
        watched=watched,
        observations=task.observations.tolist(),
        targets=task.problem.model.likelihood.original(task.watched.y).tolist(),
        moments=None if task.moments_of is None else merged([record.moments for record in records]),
    )


def _checkpoint(
    sampler: Drawing[Any], problem: Problem, seed: int, control: Control, starts: Sequence[Any] | None
) -> Checkpoint | None:
    if control.checkpoint is None:
        return None
    settings = {name: value for name, value in vars(sampler).items() if name not in LENGTHS}
    # which draws are kept depends on how many there are
    kept = None if control.keep is None else (control.keep, sampler.draws, sampler.chains)
    what = (tuckergp.__version__, settings, problem, seed, control.moments_of, kept)
    whose = digest(what if starts is None else (*what, list(starts)))
    return Checkpoint(Path(control.checkpoint), whose, seed, sampler.n_steps)


_INTERRUPTS: ContextVar[bool] = ContextVar("ctrl_c_interrupts", default=False)


@contextmanager
def ctrl_c_interrupts() -> Iterator[None]:
    """Let Ctrl-C interrupt at once, also inside runs, where it otherwise asks for the result so far.

    For runs that are a part of something else, whose result is nothing by itself.
    """
    token = _INTERRUPTS.set(True)
    try:
        yield
    finally:
        _INTERRUPTS.reset(token)


@contextmanager
def _ctrl_c_asks() -> Iterator[Callable[[], bool]]:
    """Yield a function that tells whether Ctrl-C was pressed, to be asked between sweeps; a second one interrupts."""
    asked = False

    def ask(number: int, frame: Any) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    if threading.current_thread() is not threading.main_thread() or _INTERRUPTS.get():
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)
