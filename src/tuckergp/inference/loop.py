"""Drives any algorithm: steps, progress on a terminal, callbacks, time limits, several chains."""

from __future__ import annotations

import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from tuckergp.errors import NotConvergedWarning
from tuckergp.inference.base import Algorithm, Info, Problem
from tuckergp.inference.draws import Draw, Draws, compact
from tuckergp.inference.gibbs import Gibbs
from tuckergp.model import Parameters
from tuckergp.random import stream

__all__ = ["Result", "run", "sample"]

Callback = Callable[[Info], None]
Floats = npt.NDArray[np.float64]

# At so many observations predictions are watched for convergence.
WATCHED = 100

# Multiply-adds of one pass over the data from which several threads share it.
SHARED_WORK = 1e7


@dataclass(frozen=True)
class Result:
    """What a run leaves: the parameters, and the figures of every step."""

    parameters: Parameters
    history: list[Info]


def run(
    algorithm: Algorithm[Any],
    problem: Problem,
    seed: int,
    callback: Callback | None = None,
    progress: bool | None = None,
) -> Result:
    """Take the algorithm's steps until it is done.

    Parameters
    ----------
    algorithm : Algorithm
    problem : Problem
    seed : int
        Names the random streams: step t of this seed draws the same numbers in every run.
    callback : callable or None
        Called with the `Info` of every step.
    progress : bool or None
        Show a progress line; None shows it when standard error is a terminal.
    """
    state = algorithm.init(problem, stream(seed, 0))
    history: list[Info] = []
    with _progress_line(type(algorithm).__name__, algorithm.n_steps, progress) as advance, few_threads(problem):
        for t in range(1, algorithm.n_steps + 1):
            state, info = algorithm.step(problem, state, stream(seed, t))
            history.append(info)
            advance(info)
            if callback is not None:
                callback(info)
            if info.done:
                break
    return Result(algorithm.parameters(problem, state), history)


def sample(
    sampler: Gibbs,
    problem: Problem,
    seed: int,
    callback: Callback | None = None,
    progress: bool | None = None,
    max_time: float | None = None,
) -> tuple[Draws, list[Info]]:
    """Run the sampler's chains and keep their draws.

    Ctrl-C and ``max_time`` (seconds for all chains together) end the run early, after the sweep under way, with the
    draws there are; one draw at least is kept of every chain that began. A second Ctrl-C stops at once.
    """
    began = time.monotonic()
    watched = problem.design.take(_watched(len(problem.y), seed))
    chains: list[list[Draw]] = []
    traces: list[Floats] = []
    history: list[Info] = []
    with (
        _progress_line("Gibbs", sampler.n_steps * sampler.chains, progress) as advance,
        few_threads(problem),
        _ctrl_c_asks() as interrupted,
    ):
        for chain in range(sampler.chains):
            until = None if max_time is None else began + max_time * (chain + 1) / sampler.chains
            kept: list[Draw] = []
            trace: list[Floats] = []
            state = sampler.init(problem, stream(seed, chain, 0))
            for t in range(1, sampler.n_steps + 1):
                state, info = sampler.step(problem, state, stream(seed, chain, t))
                last = interrupted() or t == sampler.n_steps or (until is not None and time.monotonic() > until)
                due = t > sampler.warmup and (t - sampler.warmup) % sampler.thin == 0
                if due or (last and not kept):
                    kept.append(compact(sampler.draw(problem, state)))
                    trace.append(sampler.function(problem, state, watched.index))
                history.append(info)
                advance(info)
                if callback is not None:
                    callback(info)
                if last:
                    break
            chains.append(kept)
            traces.append(np.stack(trace))
            if interrupted():
                break
    draws = Draws(problem.model, chains, sampled=True, traces=traces)
    warning = draws.diagnostics().warning(share=0.25)
    if warning is not None:
        warnings.warn(warning, NotConvergedWarning, stacklevel=4)
    return draws, history


@contextmanager
def _ctrl_c_asks() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C into a question that is answered between sweeps, never in the middle of compiled code."""
    asked = False

    def ask(number: int, frame: Any) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)


def _watched(observations: int, seed: int) -> npt.NDArray[np.intp]:
    """Some observations, spread at random, at which predictions are watched for convergence."""
    return np.sort(stream(seed, 2, 0).permutation(observations)[:WATCHED])


@contextmanager
def few_threads(problem: Problem) -> Iterator[None]:
    """Use one thread where a pass over the data is too short to share, and one for BLAS in any case.

    Starting threads costs more than they bring on small problems; those of BLAS, which wait by spinning, most of all
    on a busy machine.
    """
    before = numba.get_num_threads()
    work = len(problem.y) * float(max(problem.model.core.ranks)) ** 2
    with threadpool_limits(limits=1, user_api="blas"):
        try:
            numba.set_num_threads(1 if work < SHARED_WORK else before)
            yield
        finally:
            numba.set_num_threads(before)


@contextmanager
def _progress_line(name: str, total: int, show: bool | None) -> Iterator[Callback]:
    if not (sys.stderr.isatty() if show is None else show):
        yield lambda info: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn(name),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[figures]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        began = time.monotonic()
        task = bar.add_task(name, total=total, figures="")

        def advance(info: Info) -> None:
            done = int(bar.tasks[0].completed) + 1
            figures = [f"{done / max(time.monotonic() - began, 1e-9):.1f} a second"]
            figures += [f"{key} {value:.4f}" for key, value in info.figures.items()]
            bar.update(task, advance=1, figures="  ".join(figures))

        yield advance
