"""Rows on a line: E ~ N(0, scale^2 K kron Lambda^-1), K a Matern correlation of one column.

A Markov process along the sorted values, so a draw is exact and linear in their number; the lengthscale is drawn as
well. The process itself is in `tuckergp.residuals.markov`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.errors import InputError
from tuckergp.linalg import Matrix
from tuckergp.priors.given import ModeGiven
from tuckergp.priors.regression import Regression, dense
from tuckergp.priors.regressions import weights_given_factors as regress
from tuckergp.random import DrawStreams, log_slice, normals
from tuckergp.residuals.base import Evidence, ModeDraws, ModeState, Residual
from tuckergp.residuals.beside import weights_beside_residual
from tuckergp.residuals.markov import MaternProcess, independent_ranks, log_likelihood

__all__ = [
    "LengthscalePrior",
    "Line",
    "Path",
    "lengthscale_given_data",
    "lengthscale_given_noise",
    "lengthscale_given_values",
    "weights_given_factors",
]

Floats = npt.NDArray[np.float64]

SLICE_WIDTH = 0.5


def weights_given_factors(
    process: MaternProcess,
    features: Matrix,
    blocks: Sequence[slice],
    psi: Floats,
    tau: Floats,
    start: Floats,
    precision: Floats | None = None,
    rng: np.random.Generator | None = None,
) -> Floats:
    """Mean of p(B | psi), (n, r), where E of psi = Phi B + E is the process; with ``rng``, a draw.

    Generalised least squares: with K = C C', C^-1 psi = C^-1 Phi B + C^-1 E has independent rows, so it is a regression
    of `tuckergp.priors.regressions`, whose parameters these are. Whitening costs O(M n) and makes the features dense;
    ``blocks`` are the columns of them that share a precision ``tau`` (blocks,).
    """
    return regress(Regression(process.whiten(dense(features)), blocks), process.whiten(psi), tau, start, precision, rng)


class LengthscalePrior(NamedTuple):
    """log lengthscale ~ N(log centre, spread^2): by default 95% within a factor of 19 of the centre.

    Attributes
    ----------
    centre : float
        The kernel's own lengthscale, the user's starting value.
    spread : float
        Standard deviation of the logarithm.
    """

    centre: float
    spread: float = 1.5

    def log_density(self, log_lengthscale: float) -> float:
        """Log density of the logarithm of a lengthscale, up to a constant."""
        return -0.5 * ((log_lengthscale - float(np.log(self.centre))) / self.spread) ** 2


def lengthscale_given_data(
    process: MaternProcess,
    A: Floats,
    b: Floats,
    mean: Floats,
    precision: Floats,
    prior: LengthscalePrior,
    rng: np.random.Generator,
    anywhere: bool = False,
) -> MaternProcess:
    """Draw the lengthscale with E integrated out; the states must be drawn next, with the new process returned.

    Mixes best by far and costs most, some six forward filters; `lengthscale_given_values` and `lengthscale_given_noise`
    take O(M r) per step. Parameters are those of `MaternProcess.states_given_data`. With ``anywhere`` it is first drawn
    from a grid over all lengthscales that the knots can tell apart: a step of the slice does not find a short one,
    such as that of a season, from a long one, such as that of a trend, across the valley between them.
    """
    _, A_scaled, b_scaled = independent_ranks(A, b, mean, precision)

    def log_density(x: float) -> float:
        value = process.at(float(np.exp(x))).evidence_of(A_scaled, b_scaled) + prior.log_density(x)
        return -np.inf if np.isnan(value) else value

    x = float(np.log(process.lengthscale))
    if anywhere:
        grid = np.append(process.log_range, x)
        density = np.array([log_density(float(each)) for each in grid])
        x = float(grid[np.argmax(density + rng.gumbel(size=len(grid)))])
    return process.at(float(np.exp(log_slice(log_density, x, SLICE_WIDTH, rng))))


def lengthscale_given_values(
    process: MaternProcess, E: Floats, precision: Floats, prior: LengthscalePrior, rng: np.random.Generator
) -> MaternProcess:
    """Draw the lengthscale given E (M, r), its centred form, which needs no data. Returns the new process."""
    scaled = E @ np.asarray(np.linalg.cholesky(precision))

    def log_density(x: float) -> float:
        # -(r log |K| + |C^-1 E L|^2) / 2, K = C C', Lambda = L L'
        other = process.at(float(np.exp(x)))
        fit = -0.5 * (E.shape[1] * other.log_determinant + (other.whiten(scaled) ** 2).sum())
        return float(fit) + prior.log_density(x)

    x = log_slice(log_density, float(np.log(process.lengthscale)), SLICE_WIDTH, rng)
    return process.at(float(np.exp(x)))


def lengthscale_given_noise(
    process: MaternProcess,
    E: Floats,
    log_likelihood: Callable[[Floats], float],
    prior: LengthscalePrior,
    rng: np.random.Generator,
) -> tuple[MaternProcess, Floats]:
    """Draw the lengthscale given Z of E = colour(Z), its whitened form: E moves with it, and is compared with the data.

    Returns the new process and the new E (M, r). Alternate with `lengthscale_given_values` (interweaving, Yu and Meng
    2011): this one moves freely where the data say little about E, the other where they say much.

    Parameters
    ----------
    log_likelihood : callable
        log p(data | E) up to a constant, E (M, r).
    """
    Z = process.whiten(E)

    def log_density(x: float) -> float:
        return log_likelihood(process.at(float(np.exp(x))).colour(Z)) + prior.log_density(x)

    x = log_slice(log_density, float(np.log(process.lengthscale)), SLICE_WIDTH, rng)
    moved = process.at(float(np.exp(x)))
    return moved, moved.colour(Z)


class Path(NamedTuple):
    """The own unknowns of a line: the states of the process at the knots, (M, p, r), and its lengthscale."""

    states: Floats
    lengthscale: float


@dataclass(frozen=True)
class Line(Residual):
    """A residual E along one column: where the rows of a table lie on the line, and the Matern kernel.

    Attributes
    ----------
    knots : ndarray, shape (M_train,)
        The values of the training rows, sorted.
    t : ndarray, shape (M,)
        The values of the rows of this table, in their order.
    order : {1, 2, 3}
        Matern-1/2, -3/2, -5/2.
    lengthscale, sd : float
        The kernel's own; ``sd`` is a standard deviation.
    learn : bool
        Whether the lengthscale is to be learned.
    """

    knots: Floats
    t: Floats
    order: int
    lengthscale: float
    sd: float
    learn: bool = True

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

    def process(self, lengthscale: float) -> MaternProcess:
        """The process on the knots, of unit variance."""
        return MaternProcess(self.knots, self.order, lengthscale)

    def take(self, rows: npt.NDArray[np.integer]) -> Line:
        """Some of the rows."""
        return replace(self, t=self.t[rows])

    def refuse_weights(self, what: str) -> None:
        """Refuse: a process on a line has no features."""
        raise InputError(
            f"{what} for weights of features, and a mode lies on a line; fit the design with any_residual=False."
        )

    # Own unknowns

    def init(self, r: int, sd: float, rng: np.random.Generator) -> Path:
        """A prior draw of the path at the kernel's lengthscale."""
        process, scale = self.process(self.lengthscale), self.sd * sd
        E = scale * process.colour(normals((len(self.knots), r), rng))
        noise = normals((*process.noise_shape, r), rng)
        return Path(process.states_given_values(E, np.eye(r) / scale**2, noise), self.lengthscale)

    def values(self, own: tuple[Any, ...]) -> Floats:
        """E at the rows, (M, r): as drawn at the knots, elsewhere the mean given the states."""
        return self._at_rows(Path(*own))

    def lengthscales(self, own: tuple[Any, ...]) -> Floats:
        """The lengthscale of the path."""
        return np.array([Path(*own).lengthscale])

    def _at_rows(self, path: Path, precision: Floats | None = None, rng: np.random.Generator | None = None) -> Floats:
        """E at the rows of any table, (M, r); with ``rng`` and Lambda / scale^2 new values are drawn jointly."""
        states = np.asarray(path.states, dtype=np.float64)
        E: Floats = states[self.place, 0]
        new = np.flatnonzero(self.place < 0)
        if len(new):
            process, t = self.process(float(path.lengthscale)), self.t[new]
            if rng is None or precision is None:
                E[new] = process.predict(states, t)[0]
            else:
                E[new] = process.draw_at(states, t, precision, rng.standard_normal((len(new), *states.shape[1:])))
        return E

    def log_prior(self, own: tuple[Any, ...], sd: float) -> float:
        """Log density of E at the knots given the lengthscale, up to a constant."""
        path = Path(*own)
        Z = self.process(path.lengthscale).whiten(path.states[:, 0])
        return -0.5 * float(np.vdot(Z, Z)) / (sd * self.sd) ** 2

    # Conditionals

    def update(
        self, mode: ModeState, evidence: Evidence, given: ModeGiven, rng: np.random.Generator | None
    ) -> tuple[ModeState, bool]:
        """Draw the lengthscale, E given data and B, then B given psi; means keep the lengthscale fixed.

        The lengthscale is drawn with E integrated out, which mixes better and costs more, where that is affordable;
        else the whitened and the centred form are interwoven (Yu and Meng 2011). Both leave the posterior invariant.
        """
        A, b = (statistic[self.sorter] for statistic in evidence.statistics())
        features = given.features[self.sorter]
        mode = weights_beside_residual(mode, features, mode.psi[self.sorter], (A, b), given, rng)
        mean = np.asarray(features @ mode.B)
        inner, prior = mode.precision / self.sd**2, LengthscalePrior(self.lengthscale)
        process = self.process(Path(*mode.own).lengthscale)
        noise = None
        if rng is not None:
            if self.learn and given.affordable:
                process = lengthscale_given_data(process, A, b, mean, inner, prior, rng, given.searching)
            noise = normals((*process.noise_shape, len(inner)), rng)
        E = process.states_given_data(A, b, mean, inner, noise)[:, 0]
        if rng is not None and self.learn and not given.affordable:
            process, E = lengthscale_given_noise(process, E, lambda E: log_likelihood(E, A, b, mean), prior, rng)
            process = lengthscale_given_values(process, E, inner, prior, rng)
        psi, tau = mean + E, self.sd**2 * mode.tau
        B = weights_given_factors(process, features, given.blocks, psi, tau, mode.B, inner, rng)
        own = Path(Path(*mode.own).states, process.lengthscale)
        return mode._replace(psi=self._to_rows(psi), B=B, own=own), False

    def _to_rows(self, values: Floats) -> Floats:
        """Values at the knots, (M_train, ...), in the order of the rows of a training table."""
        out = np.empty_like(values)
        out[self.sorter] = values
        return out

    def whitened(self, E: Floats, own: tuple[Any, ...]) -> Floats:
        """C^-1 E over the scale, where K = C C'."""
        return self.process(Path(*own).lengthscale).whiten(E[self.sorter] / self.sd)

    def finished(
        self, E: Floats, own: tuple[Any, ...], precision: Floats, rng: np.random.Generator | None
    ) -> tuple[Any, ...]:
        """Draw the derivatives that the states of a Matern-3/2 or -5/2 have besides E; the mean without ``rng``."""
        process = self.process(Path(*own).lengthscale)
        noise = None if rng is None else normals((*process.noise_shape, E.shape[1]), rng)
        states = process.states_given_values(E[self.sorter], precision / self.sd**2, noise)
        return Path(states, process.lengthscale)

    # Draws

    def row_seconds(self, r: int) -> float:
        """As measured: filters of states of order r numbers, some of them for the lengthscale."""
        return 1.2e-5 + 4e-9 * (self.order * r) ** 3

    @property
    def n_kept(self) -> int:
        """The rows of the states at all knots."""
        return self.order * len(self.knots)

    def kept(self, psi: Floats, own: tuple[Any, ...]) -> tuple[dict[str, Floats], dict[str, Floats]]:
        """The states at the knots and the lengthscale."""
        path = Path(*own)
        return {"states": path.states}, {"lengthscale": np.asarray(path.lengthscale)}

    def factors(self, features: Matrix, draws: ModeDraws, streams: DrawStreams | None) -> Floats:
        """psi at the rows of this table: Phi B, plus E given the states in each draw."""
        psi = draws.mean(features)
        states = draws.rows["states"]
        for s, lengthscale in enumerate(draws.values["lengthscale"]):
            path = Path(np.asarray(states[:, s]), float(lengthscale))
            if streams is None or (self.place >= 0).all():
                psi[:, s] += self._at_rows(path)
            else:
                precision = np.asarray(np.linalg.inv(draws.covariance[s]), dtype=np.float64)
                psi[:, s] += self._at_rows(path, precision, streams(s))
        return psi
