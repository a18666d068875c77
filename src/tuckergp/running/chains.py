"""One chain of a sampler, from the start or from where a checkpoint left it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.errors import CheckpointWarning, InputError
from tuckergp.inference.base import ChainSampler, Info, Problem, Sampler
from tuckergp.posterior import moments
from tuckergp.posterior.draws import Draws, Stack
from tuckergp.posterior.moments import MomentsOf
from tuckergp.posterior.newcomers import TrainingRows
from tuckergp.posterior.replicates import replicates
from tuckergp.random import stream
from tuckergp.running.checkpoint import ChainRecord, Checkpoint
from tuckergp.running.control import Callback
from tuckergp.running.threads import few_threads
from tuckergp.store.trees import contiguous

__all__ = ["Task", "warn_of_checkpoint"]

# The number of training observations at which f is recorded to judge convergence.
WATCHED = 100
# The name of the random streams of replicated targets, beyond the numbers of chains.
REPLICATES = 2**31
# From here on they are not chosen from a list of all.
MANY = 10_000_000


def warn_of_checkpoint(text: str) -> None:
    """Warn that a checkpoint could not be written."""
    warnings.warn(text, CheckpointWarning, stacklevel=2)


@dataclass(frozen=True)
class Task:
    """All that a process needs to run any of the chains."""

    sampler: Sampler[Any] | ChainSampler
    problem: Problem
    seed: int
    checkpoint: Checkpoint | None = None
    checkpoint_minutes: float = 5.0
    moments_of: MomentsOf | None = None
    keep: int | None = None
    starts: Sequence[Any] | None = None

    @property
    def most_draws(self) -> int:
        """The largest number of draws to keep of each chain."""
        drawn = self.sampler.draws // self.sampler.thin
        return drawn if self.keep is None else min(drawn, -(-self.keep // self.sampler.chains))

    def is_kept(self, number: int) -> bool:
        """Whether to keep draw ``number`` of a chain, counted from 1, so that those kept are evenly spread."""
        drawn, most = self.sampler.draws // self.sampler.thin, self.most_draws
        return number * most // drawn > (number - 1) * most // drawn

    @cached_property
    def observations(self) -> npt.NDArray[np.intp]:
        """The training observations, chosen at random, at which f is recorded to judge convergence."""
        rng, n = stream(self.seed, 2, 0), self.problem.n_observations
        return np.unique(rng.integers(n, size=WATCHED)) if n > MANY else np.sort(rng.permutation(n)[:WATCHED])

    @cached_property
    def watched(self) -> Problem:
        """The problem restricted to ``observations``."""
        return self.problem.take(self.observations)

    @cached_property
    def training(self) -> TrainingRows:
        """The training rows, for newcomers among the inputs at which moments are wanted."""
        return TrainingRows(self.problem.design)

    def run(
        self, chain: int, stop: Callable[[], bool], report: Callback, warn: Callable[[str], None] | None = None
    ) -> ChainRecord:
        """Run the remaining sweeps of a chain, until all are done or ``stop`` says so.

        An unfinished chain takes at least one sweep. With a checkpoint it is saved from time to time, at the end, and
        before an error of ``report`` is raised. Where that fails, as on a full disk, the chain goes on, and the next
        interval tries again; ``warn`` is told.
        """
        warn = warn or warn_of_checkpoint
        record = self.load(chain)
        if isinstance(self.sampler, ChainSampler):  # nothing to go on from
            record = self._fresh(ChainRecord(chain, draws=Stack(self.most_draws)))
        sampler = self.sampler
        last_saved = time.monotonic()
        with few_threads(self.problem), closing(self._steps(record, stop)) as steps:
            for t, (state, info) in enumerate(steps, start=len(record.steps) + 1):
                record.state = contiguous(state)
                if t > sampler.warmup and (t - sampler.warmup) % sampler.thin == 0:
                    self._keep(record, t)
                info = replace(info, chain=chain)
                record.steps.append(info)
                try:
                    report(info)
                except Exception:  # what goes wrong before leaves a record that is not whole, and is not saved
                    self._save(record, warn)
                    raise
                if stop():
                    break
                if (time.monotonic() - last_saved) / 60 >= self.checkpoint_minutes:
                    self._save(record, warn)
                    last_saved = time.monotonic()
        self._save(record, warn)
        return record

    def _steps(self, record: ChainRecord, stop: Callable[[], bool]) -> Generator[tuple[Any, Info], None, None]:
        """The remaining steps of a chain."""
        sampler, problem, seed, chain = self.sampler, self.problem, self.seed, record.chain
        if isinstance(sampler, ChainSampler):
            yield from sampler.chain(problem, seed, chain, stop)
            return
        if record.state is None:
            start = sampler.init(problem, stream(seed, chain, 0)) if self.starts is None else self.starts[chain]
            record.state = contiguous(start)
        for t in range(len(record.steps) + 1, sampler.n_steps + 1):
            yield self._step(sampler, record, t)

    def _step(self, sampler: Sampler[Any], record: ChainRecord, t: int) -> tuple[Any, Info]:
        try:
            return sampler.step(self.problem, record.state, stream(self.seed, record.chain, t))
        except (FloatingPointError, np.linalg.LinAlgError) as error:
            raise InputError(
                f"Chain {record.chain} cannot go on after {t - 1} sweeps, for its numbers are out of all proportion "
                f"({error}); look for huge weights or inputs, and fit again from the start."
            ) from error

    def _save(self, record: ChainRecord, warn: Callable[[str], None]) -> None:
        unfinished = len(record.steps) < self.sampler.n_steps
        if self.checkpoint is None or (unfinished and isinstance(self.sampler, ChainSampler)):
            return
        try:
            self.checkpoint.save(record)
        except (OSError, InputError) as error:  # the folder may be gone
            why = str(error).rstrip(".") if isinstance(error, InputError) else error.strerror or error
            warn(
                f"Chain {record.chain} cannot be saved in the checkpoint {self.checkpoint.folder}: {why}. Sampling "
                f"goes on without; what is learned is kept in memory, and the next save tries again."
            )

    def load(self, chain: int) -> ChainRecord:
        """The chain from the checkpoint, or before its first sweep where there is none."""
        record = ChainRecord(chain, draws=Stack(self.most_draws))
        return self._fresh(record if self.checkpoint is None else self.checkpoint.load(record))

    def _fresh(self, record: ChainRecord) -> ChainRecord:
        """The record with moments to add to, where they are asked for."""
        if self.moments_of is not None and not record.moments:
            record.moments = moments.start(self.moments_of)
        return record

    def with_one_draw(self, record: ChainRecord) -> ChainRecord:
        """The record, with its last state as a draw where the chain was stopped before it kept one.

        That draw is for the result only and is not stored in the checkpoint, so that the run can go on later.
        """
        if record.watched and (len(record.draws) or self.keep == 0):
            return record
        if not record.watched:
            record = replace(record, moments=deepcopy(record.moments), draws=Stack(0), watched=[])
            self._keep(record, len(record.steps))
        if self.keep != 0:
            record = replace(record, draws=Stack(1))
            record.draws.add(self.sampler.draw(self.problem, record.state))
        return record

    def _keep(self, record: ChainRecord, step: int) -> None:
        """Keep the present state, after so many steps, as a draw."""
        draw = self.sampler.draw(self.problem, record.state)
        number = len(record.watched)
        if self.moments_of is not None:
            alone = Draws.of(self.problem.model, [draw], names=np.array([[record.chain, number]]))
            if self.moments_of.has_newcomers:
                alone = self.training.with_newcomers(alone)
            moments.add_draw(record.moments, self.moments_of, alone)
        if record.draws.capacity and self.is_kept(number + 1):
            record.draws.add(draw)
        watched = self.sampler.watch(self.watched, record.state)
        rng = stream(self.seed, REPLICATES, record.chain, number)
        watched["step"] = np.array(float(step))
        watched["replicate"] = replicates(self.watched, draw, watched["f"], rng)
        record.watched.append(watched)
