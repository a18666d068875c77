"""The learned parameters: many draws of a sampler, or one MAP estimate, stacked in arrays.

Arrays of rows are float32 with the draws on their second axis: row x draws x rank. One row in all draws is one
contiguous range, so that a prediction is a gather and a product, and arrays are written to and memory-mapped from files
as they are. A draw takes 4 bytes for each number of the training rows (psi, or the states of a process), of the weights
of features and of noise factors, and 8 for each entry of W and of the r_d x r_d covariances of new rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tuckergp.compute.keyed import keyed_gammas
from tuckergp.errors import InputError
from tuckergp.likelihoods.given import Predicted
from tuckergp.likelihoods.row_noise import nu_of_draws
from tuckergp.model.design import Design
from tuckergp.model.draw import Draw, ModeDraw
from tuckergp.model.mode_table import ModeTable
from tuckergp.model.newcomers import Newcomers
from tuckergp.model.tucker import Core, TuckerModel
from tuckergp.posterior.diagnostics import Diagnostics, summarise
from tuckergp.random import DrawStreams
from tuckergp.residuals.base import ModeDraws
from tuckergp.residuals.grown import count_in_place

if TYPE_CHECKING:
    from tuckergp.posterior.moments import Running

__all__ = ["PREDICTION_SEED", "Draws", "Stack", "bytes_of_draw", "map_draws"]

Floats = npt.NDArray[np.float64]

# Seed of the stream from which predictions draw rows that training did not have: the same in every call.
PREDICTION_SEED = 0


def _arrays(by_row: Callable[..., Any], by_draw: Callable[..., Any], *modes: ModeDraws | ModeDraw) -> tuple[Any, ...]:
    """The arrays of a mode, made of those of one or several: those of rows by ``by_row``, others by ``by_draw``."""
    first = modes[0]
    return (
        by_row(*(mode.B for mode in modes)),
        by_draw(*(mode.covariance for mode in modes)),
        {name: by_row(*(mode.rows[name] for mode in modes)) for name in first.rows},
        {name: by_draw(*(mode.values[name] for mode in modes)) for name in first.values},
        None if first.row_noise is None else by_row(*(mode.row_noise for mode in modes)),
    )


def _some(modes: Sequence[ModeDraws], which: Any) -> tuple[ModeDraws, ...]:
    """Some of the draws of all modes."""
    return tuple(ModeDraws(*_arrays(lambda a: a[:, which], lambda a: a[which], mode)) for mode in modes)


@dataclass(frozen=True)
class Draws:
    """All draws kept, chain after chain.

    Attributes
    ----------
    model : TuckerModel
    modes : tuple of ModeDraws
    W : ndarray, shape (S, Q)
        The learned entries of the core.
    unknowns : mapping of str to ndarray, shapes (S, ...)
        The parameters of the likelihood, such as the noise precision.
    sampled : bool
        False for a single MAP estimate, which has no uncertainty.
    lengths : tuple of int
        How many draws each chain has.
    traces : sequence of ndarray, shapes (draws, observations)
        f at some of the training observations, chain by chain: what convergence is judged by.
    watched : sequence of mapping of str to ndarray
        What else was watched, chain by chain: noise, precisions of blocks, log likelihoods, one row for each draw.
    observations : sequence of int
        The training observations that were watched.
    targets : sequence of float
        Their targets; none in models of earlier versions.
    moments : mapping of str to Running, or None
        Running moments of predictions, where they were asked for.
    names : ndarray of int64, shape (S, 2)
        Chain and number of each draw, which name its random numbers; a selection keeps them. Counted if not given.
    """

    model: TuckerModel
    modes: tuple[ModeDraws, ...]
    W: Floats
    unknowns: Mapping[str, Floats]
    sampled: bool
    lengths: tuple[int, ...]
    traces: Sequence[Floats] = ()
    watched: Sequence[Mapping[str, Floats]] = ()
    observations: Sequence[int] = ()
    moments: Mapping[str, Running] | None = None
    names: Any = None
    targets: Sequence[float] = ()

    def __post_init__(self) -> None:
        if self.names is None:
            counted = [(chain, number) for chain, length in enumerate(self.lengths) for number in range(length)]
            object.__setattr__(self, "names", np.array(counted, dtype=np.int64).reshape(-1, 2))

    @classmethod
    def of_point(cls, model: TuckerModel, draw: Draw) -> Draws:
        """A MAP estimate as a single draw."""
        return cls.of(model, [draw], sampled=False, dtype="f8")

    @classmethod
    def of(
        cls, model: TuckerModel, draws: Sequence[Draw], sampled: bool = True, dtype: str = "f4", **more: Any
    ) -> Draws:
        """Draws of one chain."""
        stack = Stack(len(draws), dtype=dtype)
        for draw in draws:
            stack.add(draw)
        return stack.joined(model, [stack], sampled=sampled, **more)

    def diagnostics(self) -> Diagnostics:
        """R-hat and effective sample sizes of f at some of the training observations."""
        if not self.sampled:
            raise InputError("A MAP estimate has no draws to diagnose; use inference='gibbs'.")
        if not self.traces:
            raise InputError("Draws from a variational posterior are independent; judge it by elbo in fit_.steps.")
        shortest = min(len(trace) for trace in self.traces)
        return summarise(np.stack([trace[:shortest] for trace in self.traces]))

    def require_kept(self) -> None:
        """Refuse predictions where only moments were kept."""
        if not len(self):
            raise InputError("The draws were not kept: read moments_, or fit again without keep=0 or keep_draws=False.")

    def required_moments(self) -> Mapping[str, Running]:
        """The running moments; refused where none were asked for."""
        if self.moments is None:
            raise InputError("No moments were kept; call fit with moments_of.")
        return self.moments

    def __len__(self) -> int:
        return len(self.W)

    @property
    def size(self) -> int:
        """Bytes of all arrays."""
        arrays: list[npt.NDArray[Any]] = [self.W, *self.unknowns.values()]
        for mode in self.modes:
            arrays += [mode.B, mode.covariance, *mode.rows.values(), *mode.values.values()]
            arrays += [] if mode.row_noise is None else [mode.row_noise]
        return sum(array.nbytes for array in arrays)

    def only(self, s: int) -> Draws:
        """One of the draws, as views."""
        return self._selected(slice(s, s + 1) if s >= 0 else slice(s, s + 1 or None), (1,))

    def thinned(self, most: int) -> Draws:
        """At most ``most`` of the draws, evenly spread."""
        if len(self) <= most:
            return self
        chosen = np.linspace(0, len(self) - 1, most).round().astype(int)
        return self._selected(chosen, (most,))

    def last_of_chains(self) -> Draws:
        """The last draw of each chain."""
        ends = np.cumsum([length for length in self.lengths if length]) - 1
        return self._selected(ends, (1,) * len(ends))

    def _selected(self, which: Any, lengths: tuple[int, ...]) -> Draws:
        modes, names = _some(self.modes, which), self.names[which]
        unknowns = {name: values[which] for name, values in self.unknowns.items()}
        return replace(self, modes=modes, W=self.W[which], unknowns=unknowns, lengths=lengths, names=names)

    # Predictions

    def streams(self, rng: np.random.Generator) -> DrawStreams:
        """The stream of each draw, named by its chain and number, so that a draw can be used alone."""
        return DrawStreams(int(rng.integers(2**63)), self.names)

    def factors(self, d: int, table: ModeTable, streams: DrawStreams | None = None) -> Floats:
        """psi of the rows of a table of mode d in all draws, (M, S, r)."""
        own = None if streams is None else streams.of_mode(d)
        psi = table.residual.factors(table.features, self.modes[d], own)
        values, rows = self.modes[d].values, table.newcomers
        newcomers = Newcomers.of(values) if len(rows) else None
        if newcomers is not None:
            few, keys = table.take(rows), None if own is None else own.keys
            psi[rows] = newcomers.factors(few.features_besides_set, few.residual.keys, keys)
        if own is not None and table.new_unlearned is not None and "tau" in values:
            psi = psi + table.new_unlearned.factors(values["spread"], values["tau"], own.keys)
        return psi if table.more is None else np.concatenate([psi, self.factors(d, table.more, streams)])

    def predicted(
        self,
        design: Design,
        rng: np.random.Generator | None = None,
        exposure: Floats | None = None,
        noise: bool = True,
    ) -> Predicted:
        """f at all observations in all draws, and with ``noise`` the noise factors there.

        Rows that training did not have get the mean of E or, for uncertainty, with ``rng`` a draw of it.
        """
        self.require_kept()
        design = design.compact()
        streams = None if rng is None else self.streams(rng)
        psi = [self.factors(d, table, streams) for d, table in enumerate(design.modes)]
        f = self.model.contract_draws(psi, self.W, design.index)
        return Predicted(f, self.unknowns, self.noise_factors(design, streams) if noise else None, exposure)

    def noise_factors(self, design: Design, streams: DrawStreams | None = None) -> Floats | None:
        """Products of the noise factors of the observations' rows, (S, N); None where all are 1."""
        product = None
        for d, (table, mode) in enumerate(zip(design.modes, self.modes, strict=True)):
            if mode.row_noise is not None:
                factors = self.row_factors(d, table, streams)[design.index[:, d]]
                product = factors if product is None else product * factors
        return None if product is None else product.T

    def row_factors(self, d: int, table: ModeTable, streams: DrawStreams | None = None) -> Floats:
        """The noise factors of the rows of a table of mode d in all draws, (M, S), where the mode has some.

        Groups that training did not have get the mean factor, 1, or with ``streams`` a draw from the prior
        Gamma(nu / 2, nu / 2) with nu of each draw: nothing else is known of them, and no other group is read.
        """
        factors = self.modes[d].row_noise
        at_rows = np.ones((table.n_rows, len(self)))
        seen = table.groups >= 0
        at_rows[seen] = factors[table.groups[seen]]
        new = np.flatnonzero(~seen)
        if streams is not None and len(new):
            half = self.nu(d) / 2
            # numbers of their own: those of mode d draw the factors psi of the same rows
            keys = streams.of_mode(len(self.modes) + d).keys
            at_rows[new] = keyed_gammas(table.group_keys[new], keys, half)[:, :, 0] / half
        return at_rows

    def nu(self, d: int) -> Floats:
        """nu of the noise factors of mode d in all draws, (S,)."""
        factors = self.modes[d].row_noise
        return nu_of_draws(self.unknowns, d, factors, count_in_place(factors))


@dataclass
class Stack:
    """The draws of one chain while it runs, in arrays allocated once for all of them.

    Attributes
    ----------
    capacity : int
        How many there may be.
    count : int
        How many there are.
    dtype : str
        Precision of the arrays of rows: single for many draws, double for a MAP estimate.
    """

    capacity: int
    count: int = 0
    modes: tuple[ModeDraws, ...] = ()
    W: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    unknowns: dict[str, Floats] = field(default_factory=dict)
    dtype: str = "f4"

    def __len__(self) -> int:
        return self.count

    def add(self, draw: Draw) -> None:
        """Put one more draw into the arrays."""
        if not self.count:
            self._allocate(draw)
        s = self.count
        for mode, own in zip(self.modes, draw.modes, strict=True):
            mode.B[:, s] = own.B
            mode.covariance[s] = own.covariance
            for name, values in own.rows.items():
                mode.rows[name][:, s] = values
            for name, values in own.values.items():
                mode.values[name][s] = values
            if mode.row_noise is not None:
                mode.row_noise[:, s] = own.row_noise
        self.W[s] = draw.W
        for name, values in draw.unknowns.items():
            self.unknowns[name][s] = values
        self.count += 1

    def _allocate(self, draw: Draw) -> None:
        S = self.capacity

        def by_row(values: Floats) -> npt.NDArray[Any]:
            try:
                return np.empty((len(values), S, *values.shape[1:]), dtype=self.dtype)
            except MemoryError:
                raise InputError(
                    f"There is no memory for {S:,} draws; keep fewer of them (keep=), or draw fewer."
                ) from None

        def by_draw(values: Floats) -> Floats:
            return np.empty((S, *np.shape(values)))

        self.modes = tuple(ModeDraws(*_arrays(by_row, by_draw, own)) for own in draw.modes)
        self.W = by_draw(draw.W)
        self.unknowns = {name: by_draw(values) for name, values in draw.unknowns.items()}

    def part(self, first: int, last: int) -> Stack:
        """Some of the draws, as views."""
        cut = slice(first, last)
        unknowns = {name: values[cut] for name, values in self.unknowns.items()}
        return Stack(last - first, last - first, _some(self.modes, cut), self.W[cut], unknowns)

    def extend(self, other: Stack) -> None:
        """Append the draws of another stack."""
        if not self.count and other.count:
            self._allocate(other.at(0))
        for s in range(other.count):
            self.add(other.at(s))

    def at(self, s: int) -> Draw:
        """One of the draws."""
        modes = tuple(ModeDraw(*_arrays(lambda a: a[:, s], lambda a: a[s], mode)) for mode in self.modes)
        return Draw(modes, self.W[s], {name: values[s] for name, values in self.unknowns.items()})

    @staticmethod
    def joined(model: TuckerModel, stacks: Sequence[Stack], sampled: bool = True, **more: Any) -> Draws:
        """Join the draws of all chains; a single full stack is used without a copy."""
        lengths = tuple(len(stack) for stack in stacks)
        kept = [stack.part(0, len(stack)) for stack in stacks if len(stack)]
        if not kept:
            return Draws(model, (), np.zeros((0, 0)), {}, sampled, lengths, **more)
        whole = kept[0]
        modes, W, unknowns = whole.modes, whole.W, whole.unknowns
        if len(kept) > 1 or lengths[0] < stacks[0].capacity:
            modes = tuple(
                ModeDraws(*_arrays(lambda *a: np.concatenate(a, axis=1), lambda *a: np.concatenate(a), *chains))
                for chains in zip(*(stack.modes for stack in kept), strict=True)
            )
            W = np.concatenate([stack.W for stack in kept])
            unknowns = {k: np.concatenate([stack.unknowns[k] for stack in kept]) for k in unknowns}
        return Draws(model, modes, W, unknowns, sampled, lengths, **more)


def bytes_of_draw(design: Design, core: Core) -> int:
    """Bytes of one draw of a model, with noise factors of all groups of rows."""
    total = 8 * core.n_weights
    for mode, r in zip(design.modes, core.ranks.tolist(), strict=True):
        total += 4 * (int(mode.features.shape[1]) * r + mode.residual.n_kept * r + mode.n_groups)
        total += 8 * (2 * r * r + len(mode.blocks))  # the covariances of rows and of weights, tau
        if mode.set_block is not None:
            members = mode.blocks[mode.set_block]
            k = int(mode.features.shape[1]) - (members.stop - members.start)
            total += 8 * sum(prod(shape) for shape in Newcomers.shapes(k, r).values())
    return total


def map_draws(draws: Draws, change: Callable[[int, ModeDraws], ModeDraws]) -> Draws:
    """The draws with ``change(d, draws of mode d)`` in place of those of each mode d."""
    return replace(draws, modes=tuple(change(d, mode) for d, mode in enumerate(draws.modes)))
