"""Rows at places in two or more dimensions: E ~ N(0, sd^2 K kron Lambda^-1), K a Matern correlation of their distances.

Few places are treated exactly, and by Vecchia's approximation a draw is linear in the number of many; lengthscales are
drawn as well. The process itself is in `tuckergp.residuals.places`, the draws of lengthscales are in
`tuckergp.residuals.lengthscales`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.errors import InputError
from tuckergp.linalg import Matrix
from tuckergp.priors.given import ModeGiven
from tuckergp.priors.regression import Regression, dense
from tuckergp.priors.regressions import weights_given_factors
from tuckergp.random import DrawStreams, normals
from tuckergp.residuals import lengthscales
from tuckergp.residuals.base import Evidence, ModeDraws, ModeState, Residual
from tuckergp.residuals.beside import weights_beside_residual
from tuckergp.residuals.dense import NewAmongFew
from tuckergp.residuals.places import Places
from tuckergp.residuals.start import searched
from tuckergp.residuals.vecchia import NewAmongMany

__all__ = ["Field", "Surface"]

Floats = npt.NDArray[np.float64]

LAST_SEARCH = 64
"""Neighbours are looked up again, at the lengthscales of the time, after 1, 2, 4, ... sweeps up to this many."""


class Surface(NamedTuple):
    """The own unknowns of a field: E at the training places, (M, r), its lengthscales, and those of its neighbours."""

    values: Floats
    lengthscale: Floats
    metric: Floats


@dataclass(frozen=True)
class Field(Residual):
    """A residual E of places: where the rows of a table lie, and the Matern kernel.

    Attributes
    ----------
    train : Places
        The training rows, coarse to fine.
    points : ndarray, shape (M, p)
        Coordinates of the rows of this table.
    lengthscale : ndarray, shape (1,) or (p,)
        The kernel's own.
    sd : float
    learn : bool
        Whether the lengthscales are to be learned.
    """

    train: Places
    points: Floats
    lengthscale: Floats
    sd: float
    learn: bool = True

    @cached_property
    def place(self) -> npt.NDArray[np.intp]:
        """The training place that each row is, -1 for others."""
        return self.train.places_of(self.points)

    @property
    def undetermined(self) -> npt.NDArray[np.bool_]:
        """Whether each row is no training place."""
        return self.place < 0

    def take(self, rows: npt.NDArray[np.integer]) -> Field:
        """Some of the rows."""
        taken = replace(self, points=self.points[rows])
        vars(taken)["place"] = self.place[rows]
        return taken

    def refuse_weights(self, what: str) -> None:
        """Refuse: a field has no features."""
        raise InputError(
            f"{what} for weights of features, and a mode is a field; fit the design with any_residual=False."
        )

    # Own unknowns

    def init(self, r: int, sd: float, rng: np.random.Generator) -> Surface:
        """A prior draw at the kernel's lengthscales."""
        process = self.train.process(self.lengthscale, self.lengthscale)
        E = self.sd * sd * process.colour(normals((self.n_kept, r), rng))
        return Surface(E, self.lengthscale, self.lengthscale)

    def values(self, own: tuple[Any, ...]) -> Floats:
        """E at the rows, (M, r): as drawn at training places, elsewhere the mean given those."""
        surface = Surface(*own)
        known = np.asarray(surface.values, dtype=np.float64)
        return self._at_rows(known, surface.lengthscale, surface.metric)

    def lengthscales(self, own: tuple[Any, ...]) -> Floats:
        """Those of the surface."""
        return Surface(*own).lengthscale

    def log_prior(self, own: tuple[Any, ...], sd: float) -> float:
        """Log density of E at the training places given the lengthscales, up to a constant."""
        surface = Surface(*own)
        Z = self.train.process(surface.lengthscale, surface.metric).whiten(surface.values)
        return -0.5 * float(np.vdot(Z, Z)) / (sd * self.sd) ** 2

    # Conditionals

    def update(
        self, mode: ModeState, evidence: Evidence, given: ModeGiven, rng: np.random.Generator | None
    ) -> tuple[ModeState, bool]:
        """Draw lengthscales and Lambda, E given data and B, then B given psi; means keep lengthscales fixed."""
        surface, features = Surface(*mode.own), given.features[self._sorter]
        A, b = evidence.statistics()
        statistics = A[self._sorter], b[self._sorter]
        mode = weights_beside_residual(mode, features, mode.psi[self._sorter], statistics, given, rng)
        mean, variance = np.asarray(features @ mode.B), self.sd**2
        metric = surface.lengthscale if rng is not None and _due(given) else surface.metric
        state = lengthscales.FieldState(
            self.train, surface.lengthscale, metric, mode.precision, self.sd, self.lengthscale
        )
        weights = lengthscales.scatter_of(mode.B, given.by_feature(mode.tau))
        if rng is not None and self.learn:
            if given.noise is not None and given.sweep == 0 and given.warming:
                state = searched(state, lengthscales.Responses.of(statistics, mean, given.noise), weights, given)
            state, statistics = lengthscales.before_values(state, statistics, mean, weights, given, rng)
        noise = None if rng is None else normals((len(mean), 2, mean.shape[1]), rng).transpose(1, 0, 2)
        E = state.process.values_given_data(*statistics, mean, state.precision / variance, noise)
        if rng is not None and self.learn and given.noise is None:
            state, E = lengthscales.given_values(state, E, statistics, mean, weights, given, rng)
        psi, white = mean + E, state.process.whiten
        B = weights_given_factors(
            Regression(white(dense(features)), given.blocks),
            white(psi),
            variance * mode.tau,
            mode.B,
            state.precision / variance,
            rng,
        )
        own = Surface(surface.values, state.lengthscale, state.metric)
        return mode._replace(psi=psi[self.place], B=B, precision=state.precision, own=own), False

    @cached_property
    def _sorter(self) -> npt.NDArray[np.intp]:
        """The rows of a training table in the order of the places."""
        return np.argsort(self.place, kind="stable")

    def whitened(self, E: Floats, own: tuple[Any, ...]) -> Floats:
        """R E over the scale, where K^-1 = R'R."""
        surface = Surface(*own)
        return self.train.process(surface.lengthscale, surface.metric).whiten(E[self._sorter] / self.sd)

    def finished(
        self, E: Floats, own: tuple[Any, ...], precision: Floats, rng: np.random.Generator | None
    ) -> tuple[Any, ...]:
        """E in the order of the places."""
        return Surface(*own)._replace(values=E[self._sorter])

    # Draws

    def row_seconds(self, r: int) -> float:
        """As measured with 15 neighbours, or a dense factor of up to 1,000 places; most of it for lengthscales."""
        return 1e-4 * r

    @property
    def n_kept(self) -> int:
        """One row for each training place."""
        return len(self.train.X)

    def kept(self, psi: Floats, own: tuple[Any, ...]) -> tuple[dict[str, Floats], dict[str, Floats]]:
        """E at the training places, and the lengthscales."""
        surface = Surface(*own)
        return {"values": surface.values}, {"lengthscale": surface.lengthscale}

    def factors(self, features: Matrix, draws: ModeDraws, streams: DrawStreams | None) -> Floats:
        """psi at the rows of this table: Phi B, plus E given that at the training places in each draw."""
        psi, values, lengthscales = draws.mean(features), draws.rows["values"], draws.values["lengthscale"]
        # any places will do, so all draws share those that are near by their usual lengthscales
        metric = np.exp(np.log(lengthscales).mean(axis=0))
        for s, lengthscale in enumerate(lengthscales):
            known = np.asarray(values[:, s], dtype=np.float64)
            if streams is None or not self.undetermined.any():
                psi[:, s] += self._at_rows(known, lengthscale, metric)
            else:
                root = np.linalg.cholesky(draws.covariance[s])
                psi[:, s] += self._at_rows(known, lengthscale, metric, root, streams(s))
        return psi

    def _at_rows(
        self,
        known: Floats,
        lengthscale: Floats,
        metric: Floats,
        root: Floats | None = None,
        rng: np.random.Generator | None = None,
    ) -> Floats:
        """E at the rows of any table given that at the training places, (M, r).

        With ``rng`` new places are drawn jointly, ``root`` (r, r) being that of the covariance of a place.
        """
        E: Floats = known[self.place]
        new = np.flatnonzero(self.undetermined)
        if len(new):
            noise = None if rng is None or root is None else rng.standard_normal(E[new].shape) @ root.T
            E[new] = self._given(metric, joint=noise is not None).values(lengthscale, known, noise)
        return E

    def _given(self, metric: Floats, joint: bool) -> NewAmongFew | NewAmongMany:
        """The new rows given the training places; what was looked up last is kept."""
        key = (metric.tobytes(), joint)
        if key not in self._found:
            self._found.clear()
            self._found[key] = self.train.given(self.points[self.undetermined], metric, joint)
        return self._found[key]

    @cached_property
    def _found(self) -> dict[tuple[bytes, bool], NewAmongFew | NewAmongMany]:
        return {}


def _due(given: ModeGiven) -> bool:
    return given.warming and 0 < given.sweep <= LAST_SEARCH and given.sweep & (given.sweep - 1) == 0
