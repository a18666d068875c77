"""What every inference algorithm is given and what it must offer.

An algorithm is one file: a configuration object with `init` and `step` on an explicit state, no loop over steps, no
printing, no data loading. `tuckergp.running.loop` drives any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from tuckergp.inference.squares import Squares, squares_of
from tuckergp.likelihoods.given import Observed
from tuckergp.likelihoods.precision import Precision
from tuckergp.model.design import Design
from tuckergp.model.draw import Draw
from tuckergp.model.mode_table import ModeTable
from tuckergp.model.tucker import Parameters, TuckerModel
from tuckergp.priors.regression import dense
from tuckergp.priors.regressions import AnyRegression, regression_of
from tuckergp.statistics.evidence import Evidence, Number, Sorted, sort_by_row
from tuckergp.statistics.expected import ModeObservations, observations_of

__all__ = [
    "Algorithm",
    "ChainSampler",
    "Drawing",
    "Info",
    "Problem",
    "Sampler",
    "as_weights",
]

Floats = npt.NDArray[np.float64]
State = TypeVar("State")
State_contra = TypeVar("State_contra", contravariant=True)


@dataclass(frozen=True)
class Problem:
    """The model and the data it is to explain: targets y (N,), one positive weight each (None: all 1).

    ``offset`` (N,) is known and added to f before the likelihood sees it, such as logarithms of exposures (None: 0).
    """

    model: TuckerModel
    design: Design
    y: Floats
    weight: Floats | None = None
    offset: Floats | None = None

    @cached_property
    def sorted(self) -> tuple[Sorted, ...]:
        """The observations by their row of every mode."""
        return tuple(sort_by_row(self.design, d) for d in range(len(self.design.modes)))

    @property
    def n_observations(self) -> int:
        """The number of observations, N."""
        return len(self.y)

    def evidence(
        self,
        d: int,
        y: Floats,
        precision: Precision,
        psi: Sequence[Floats],
        W: Floats,
        number: type[Number] = np.float64,
    ) -> Evidence:
        """What the data, with working targets y and their precision, say about mode d given the others."""
        return Evidence(self.sorted[d], y, precision, self.model.core, d, psi, W, number)

    @cached_property
    def regressions(self) -> tuple[AnyRegression, ...]:
        """The regression of factors on features of every mode."""
        return tuple(regression_of(mode.features, mode.blocks, mode.nested) for mode in self.design.modes)

    @cached_property
    def observed(self) -> Observed:
        """The observations as the likelihood sees them."""
        modes = self.design.modes
        groups, n_groups = tuple(mode.groups for mode in modes), tuple(mode.n_groups for mode in modes)
        return Observed(self.y, self.weight, self.offset, self.design.index, groups, n_groups)

    @cached_property
    def observations(self) -> tuple[ModeObservations, ...]:
        """The observations by the rows of every mode, for expected statistics."""
        return tuple(observations_of(self.design, d, self.y, self.weight) for d in range(len(self.design.modes)))

    @cached_property
    def grams(self) -> tuple[Floats, ...]:
        """Phi'Phi of the features of every mode, shapes (n_d, n_d)."""
        return tuple(dense(mode.features.T @ mode.features) for mode in self.design.modes)

    @cached_property
    def squares(self) -> Squares:
        """Squared residuals as a function of all weights."""
        return squares_of(self.model.core, self.design, self.y, self.weight)

    @cached_property
    def weight_blocks(self) -> list[slice]:
        """Where each U_d, W if it is learned, and free unknowns of the likelihood if any, lie in one vector."""
        core, free = self.model.core, len(self.model.likelihood.free)
        sizes = [mode.n_features * int(r) for mode, r in zip(self.design.modes, core.ranks, strict=True)]
        sizes += [core.n_weights] if core.learned else []
        sizes += [free] if free else []
        return [slice(a, b) for a, b in pairwise(accumulate(sizes, initial=0))]

    def factors(self, modes: Sequence[Any]) -> list[Floats]:
        """The factors of each mode at the rows that the index of the design counts, from the states of the modes."""
        return [mode.psi for mode in modes]

    @cached_property
    def count(self) -> float:
        """The sum of the weights of all observations."""
        return float(len(self.y) if self.weight is None else self.weight.sum())

    def take(self, observations: npt.NDArray[Any]) -> Problem:
        """The same problem with some of the observations."""
        weight, offset = (None if values is None else values[observations] for values in (self.weight, self.offset))
        return Problem(self.model, self.design.take(observations), self.y[observations], weight, offset)

    def with_model(self, model: TuckerModel) -> Problem:
        """The same data for another model of the same modes."""
        other = replace(self, model=model)
        other.__dict__.update(sorted=self.sorted, regressions=self.regressions)  # these do not depend on the model
        return other

    def with_offset(self, f: Floats) -> Floats:
        """f plus the offset at all observations, (N,), as the likelihood takes it."""
        return f if self.offset is None else f + self.offset


@dataclass(frozen=True)
class Info:
    """A report of one step: its number, named figures for progress and learning curves, and whether to stop.

    ``chain`` is the number of its chain, from 0.
    """

    step: int
    figures: dict[str, float] = field(default_factory=dict)
    done: bool = False
    chain: int = 0


class Algorithm(Protocol[State]):
    """The protocol behind every value of an estimator's ``inference``."""

    @property
    def n_steps(self) -> int:
        """The most steps to take."""

    def init(self, problem: Problem, rng: np.random.Generator) -> State:
        """The state before the first step."""

    def step(self, problem: Problem, state: State, rng: np.random.Generator) -> tuple[State, Info]:
        """One step; the old state may be reused for the new one."""

    def parameters(self, problem: Problem, state: State) -> Parameters:
        """The unknowns that the state stands for."""


class Drawing(Protocol[State_contra]):
    """What `tuckergp.running.loop.sample` asks of everything that draws from the posterior.

    Settings are the fields of a dataclass. A step must not depend on ``draws`` or ``chains``, so that a stored run
    can be made longer.
    """

    @property
    def n_steps(self) -> int:
        """Steps of a chain, warm-up included."""

    @property
    def draws(self) -> int:
        """Steps of a chain after the warm-up."""

    @property
    def warmup(self) -> int:
        """Steps of a chain that are discarded."""

    @property
    def thin(self) -> int:
        """Keep one of this many draws."""

    @property
    def chains(self) -> int:
        """Independent chains from one seed."""

    def draw(self, problem: Problem, state: State_contra) -> Draw:
        """What predictions need of this state."""

    def watch(self, problem: Problem, state: State_contra) -> dict[str, Floats]:
        """Identified quantities of this state at the problem's observations: at least ``f`` and ``log_likelihood``."""

    def function(self, problem: Problem, state: State_contra, index: npt.NDArray[np.int32]) -> Floats:
        """f of this state at some observations, shape (n,)."""


class Sampler(Algorithm[State], Drawing[State], Protocol[State]):
    """An algorithm whose steps are draws from the posterior."""


@runtime_checkable
class ChainSampler(Drawing[Any], Protocol):
    """A sampler by a library with its own loop: it gives whole chains, and cannot continue from a state."""

    def chain(self, problem: Problem, seed: int, chain: int, stop: Callable[[], bool]) -> Iterator[tuple[Any, Info]]:
        """The states of one chain, each with its report; ends soon after ``stop`` says so.

        Figures that are known at the end alone are added to those given before.
        """


def as_weights(mode: ModeTable, psi: Floats, B: Floats) -> Floats:
    """U with psi = table @ U: the weights that stand for E = psi - features @ B, stacked on B."""
    return np.vstack([mode.residual.as_columns(psi - mode.features @ B), B])
