"""Rows on a line: E ~ N(0, scale^2 K kron Lambda^-1), K a Matern correlation of one column, or a sum of such.

A Markov process along the sorted values, so a draw is exact and linear in their number; lengthscales are drawn as
well. Here is what all lines share, and the line of one Matern; sums are in `tuckergp.residuals.line_sum`, the
processes in `tuckergp.residuals.markov`, the draws of their numbers in `tuckergp.residuals.line_draws`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from tuckergp.errors import InputError
from tuckergp.linalg import Matrix
from tuckergp.priors.given import ModeGiven
from tuckergp.random import DrawStreams, normals
from tuckergp.residuals.base import Evidence, ModeDraws, ModeState, Residual
from tuckergp.residuals.beside import weights_beside_residual
from tuckergp.residuals.line_draws import (
    LengthscalePrior,
    NumbersPrior,
    process_given_data,
    process_given_noise,
    process_given_values,
    weights_given_factors,
)
from tuckergp.residuals.markov import LineProcess, MaternProcess, log_likelihood

__all__ = ["Line", "OnLine", "Path"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class OnLine(Residual):
    """A residual E along one column: where the rows of a table lie on the line.

    Its own unknowns are the states of the process at the knots, (M, p, r), first of all, and its numbers.

    Attributes
    ----------
    knots : ndarray, shape (M_train,)
        The values of the training rows, sorted.
    t : ndarray, shape (M,)
        The values of the rows of this table, in their order.
    """

    knots: Floats
    t: Floats

    @property
    @abstractmethod
    def start(self) -> LineProcess:
        """The process on the knots with the kernel's own numbers."""

    @property
    @abstractmethod
    def prior(self) -> NumbersPrior:
        """The prior of its numbers."""

    @property
    @abstractmethod
    def learned(self) -> Sequence[int]:
        """Which of its numbers are learned."""

    @abstractmethod
    def process_of(self, own: tuple[Any, ...]) -> LineProcess:
        """The process on the knots, of unit variance, with the numbers of the own unknowns."""

    @abstractmethod
    def own(self, states: Floats, process: Any) -> tuple[Any, ...]:
        """The own unknowns."""

    @cached_property
    def sorter(self) -> npt.NDArray[np.intp]:
        """The rows of a training table in the order of the knots."""
        return np.argsort(self.t, kind="stable")

    @cached_property
    def place(self) -> npt.NDArray[np.intp]:
        """The knot that each row is, -1 for values between and beyond them."""
        nearest = np.minimum(np.searchsorted(self.knots, self.t), len(self.knots) - 1)
        return np.where(self.knots[nearest] == self.t, nearest, -1)

    @property
    def undetermined(self) -> npt.NDArray[np.bool_]:
        """Whether each row is a value between or beyond the knots."""
        return self.place < 0

    def take(self, rows: npt.NDArray[np.integer]) -> Self:
        """Some of the rows."""
        return replace(self, t=self.t[rows])

    def refuse_weights(self, what: str) -> None:
        """Refuse: a process on a line has no features."""
        raise InputError(
            f"{what} for weights of features, and a mode lies on a line; fit the design with any_residual=False."
        )

    # Own unknowns

    def init(self, r: int, sd: float, rng: np.random.Generator) -> tuple[Any, ...]:
        """A prior draw of the path at the kernel's numbers."""
        process, scale = self.start, self.sd * sd
        E = scale * process.colour(normals((len(self.knots), r), rng))
        noise = normals((*process.noise_shape, r), rng)
        return self.own(process.states_given_values(E, np.eye(r) / scale**2, noise), process)

    def values(self, own: tuple[Any, ...]) -> Floats:
        """E at the rows, (M, r): as drawn at the knots, elsewhere the mean given the states."""
        return self.states_at_rows(own)[:, 0]

    def states_at_rows(
        self, own: tuple[Any, ...], precision: Floats | None = None, rng: np.random.Generator | None = None
    ) -> Floats:
        """States at the rows of any table, (M, p, r); with ``rng`` and Lambda / scale^2 new ones are drawn jointly."""
        known = np.asarray(own[0], dtype=np.float64)
        states: Floats = known[self.place]
        new = np.flatnonzero(self.place < 0)
        if len(new):
            process, t = self.process_of(own), self.t[new]
            if rng is None or precision is None:
                states[new] = process.predict(known, t)[0]
            else:
                states[new] = process.draw_at(known, t, precision, rng.standard_normal((len(new), *known.shape[1:])))
        return states

    def log_prior(self, own: tuple[Any, ...], sd: float) -> float:
        """Log density of E at the knots given its numbers, up to a constant."""
        Z = self.process_of(own).whiten(own[0][:, 0])
        return -0.5 * float(np.vdot(Z, Z)) / (sd * self.sd) ** 2

    # Conditionals

    def update(
        self, mode: ModeState, evidence: Evidence, given: ModeGiven, rng: np.random.Generator | None
    ) -> tuple[ModeState, bool]:
        """Draw its numbers, E given data and B, then B given psi; means keep the numbers fixed.

        The numbers are drawn with E integrated out, which mixes better and costs more, where that is affordable;
        else the whitened and the centred form are interwoven (Yu and Meng 2011). Both leave the posterior invariant.
        """
        A, b = (statistic[self.sorter] for statistic in evidence.statistics())
        features = given.features[self.sorter]
        mode = weights_beside_residual(mode, features, mode.psi[self.sorter], (A, b), given, rng)
        mean = np.asarray(features @ mode.B)
        inner, prior, learned = mode.precision / self.sd**2, self.prior, self.learned
        process = self.process_of(mode.own)
        noise = None
        if rng is not None:
            if learned and given.affordable:
                process = process_given_data(process, A, b, mean, inner, prior, rng, given.searching, learned)
            noise = normals((*process.noise_shape, len(inner)), rng)
        E = process.states_given_data(A, b, mean, inner, noise)[:, 0]
        if rng is not None and learned and not given.affordable:
            process, E = process_given_noise(process, E, lambda E: log_likelihood(E, A, b, mean), prior, rng, learned)
            process = process_given_values(process, E, inner, prior, rng, learned)
        psi, tau = mean + E, self.sd**2 * mode.tau
        B = weights_given_factors(process, features, given.blocks, psi, tau, mode.B, inner, rng)
        own = self.own(mode.own[0], process)
        return mode._replace(psi=self._to_rows(psi), B=B, own=own), False

    def _to_rows(self, values: Floats) -> Floats:
        """Values at the knots, (M_train, ...), in the order of the rows of a training table."""
        out = np.empty_like(values)
        out[self.sorter] = values
        return out

    def whitened(self, E: Floats, own: tuple[Any, ...]) -> Floats:
        """C^-1 E over the scale, where K = C C'."""
        return self.process_of(own).whiten(E[self.sorter] / self.sd)

    def finished(
        self, E: Floats, own: tuple[Any, ...], precision: Floats, rng: np.random.Generator | None
    ) -> tuple[Any, ...]:
        """Draw what the states have besides E, derivatives and parts of a sum; the mean without ``rng``."""
        process = self.process_of(own)
        noise = None if rng is None else normals((*process.noise_shape, E.shape[1]), rng)
        states = process.states_given_values(E[self.sorter], precision / self.sd**2, noise)
        return self.own(states, process)

    # Draws

    @property
    def n_kept(self) -> int:
        """The rows of the states at all knots."""
        return self.start.size * len(self.knots)

    @abstractmethod
    def drawn(self, draws: ModeDraws, s: int) -> tuple[Any, ...]:
        """The own unknowns in draw s."""

    def drawn_states(self, draws: ModeDraws, streams: DrawStreams | None, s: int) -> Floats:
        """States at the rows of this table in draw s, (M, p, r), of new rows means, or with ``streams`` draws."""
        own = self.drawn(draws, s)
        if streams is None or (self.place >= 0).all():
            return self.states_at_rows(own)
        precision = np.asarray(np.linalg.inv(draws.covariance[s]), dtype=np.float64)
        return self.states_at_rows(own, precision, streams(s))

    def factors(self, features: Matrix, draws: ModeDraws, streams: DrawStreams | None) -> Floats:
        """psi at the rows of this table: Phi B, plus E given the states in each draw."""
        psi = draws.mean(features)
        for s in range(psi.shape[1]):
            psi[:, s] += self.drawn_states(draws, streams, s)[:, 0]
        return psi


class Path(NamedTuple):
    """The own unknowns of a line: the states of the process at the knots, (M, p, r), and its lengthscale."""

    states: Floats
    lengthscale: float


@dataclass(frozen=True)
class Line(OnLine):
    """A line with one Matern kernel.

    Attributes
    ----------
    order : {1, 2, 3}
        Matern-1/2, -3/2, -5/2.
    lengthscale, sd : float
        The kernel's own; ``sd`` is a standard deviation.
    learn : bool
        Whether the lengthscale is to be learned.
    """

    order: int
    lengthscale: float
    sd: float
    learn: bool = True

    @property
    def start(self) -> MaternProcess:
        """The process at the kernel's lengthscale."""
        return self.process(self.lengthscale)

    def process(self, lengthscale: float) -> MaternProcess:
        """The process on the knots, of unit variance."""
        return MaternProcess(self.knots, self.order, lengthscale)

    @property
    def prior(self) -> LengthscalePrior:
        """That of the lengthscale."""
        return LengthscalePrior(self.lengthscale)

    @property
    def learned(self) -> tuple[int, ...]:
        """The lengthscale, or nothing."""
        return (0,) if self.learn else ()

    def process_of(self, own: tuple[Any, ...]) -> MaternProcess:
        """The process of a path."""
        return self.process(float(Path(*own).lengthscale))

    def own(self, states: Floats, process: MaternProcess) -> Path:
        """States and lengthscale."""
        return Path(states, process.lengthscale)

    def lengthscales(self, own: tuple[Any, ...]) -> Floats:
        """The lengthscale of the path."""
        return np.array([Path(*own).lengthscale])

    def row_seconds(self, r: int) -> float:
        """As measured: filters of states of order r numbers, some of them for the lengthscale."""
        return 1.2e-5 + 4e-9 * (self.order * r) ** 3

    def kept(self, psi: Floats, own: tuple[Any, ...]) -> tuple[dict[str, Floats], dict[str, Floats]]:
        """The states at the knots and the lengthscale."""
        path = Path(*own)
        return {"states": path.states}, {"lengthscale": np.asarray(path.lengthscale)}

    def drawn(self, draws: ModeDraws, s: int) -> Path:
        """The path of a draw."""
        return Path(np.asarray(draws.rows["states"][:, s]), float(draws.values["lengthscale"][s]))
