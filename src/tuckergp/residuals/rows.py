"""Independent rows: psi_m ~ N(Phi_m B, Lambda^-1) around what the features explain.

The identity kernel plus side information: PMF and the paper's collaborative filtering model. Rows are solved one by
one; B given psi is a regression on the M rows that needs no pass over the observations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuckergp.compute.keyed import keyed_normals
from tuckergp.linalg import Matrix
from tuckergp.priors.given import ModeGiven
from tuckergp.priors.regressions import weights_given_factors
from tuckergp.priors.scales import scales_given_factors
from tuckergp.random import DrawStreams, Keys
from tuckergp.residuals.base import Evidence, Index, ModeDraws, ModeState, Residual, Singles
from tuckergp.residuals.grown import grown, rows_in_place

__all__ = ["Rows"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Rows(Residual):
    """A free row for each training input.

    Attributes
    ----------
    place : ndarray of int32, shape (M,)
        The training row that each row is, -1 for an input never seen.
    n_train : int
    sd : float
    column : ndarray of int32, shape (n_train,), or None
        Which of the features that stand for E in weight space each training row has; None for their order.
    names : ndarray of uint64, shape (M,), or None
        Keys of the random numbers of rows never seen; None where all are seen, or share their numbers.
    """

    place: Index
    n_train: int
    sd: float = 1.0
    column: Index | None = None
    names: Keys | None = None

    exchangeable: ClassVar[bool] = True

    @classmethod
    def of(cls, count: int, sd: float = 1.0) -> Rows:
        """The residual of this many training inputs, in their order."""
        return cls(np.arange(count, dtype=np.int32), count, sd)

    def take(self, rows: npt.NDArray[np.integer]) -> Rows:
        """Some of the rows."""
        return replace(self, place=self.place[rows], names=None if self.names is None else self.names[rows])

    def joined(self, other: Any) -> Rows:
        """These rows, then others of the same training rows."""
        names = np.concatenate([self.keys, other.keys])
        return replace(self, place=np.concatenate([self.place, other.place]), names=names)

    def grown(self, draws: ModeDraws, keys: Keys, learned: int) -> Rows:
        """The first ``learned`` rows are numbered after those of the draws."""
        place = np.full(len(keys), -1, dtype=np.int32)
        before = len(draws.rows["psi"])
        place[:learned] = before + np.arange(learned)
        return Rows(place, before + learned, self.sd, names=keys)

    def with_rows(self, draws: ModeDraws, psi: Floats, row_noise: Floats | None) -> ModeDraws:
        """The draws with more rows; the arrays that are there already are not copied."""
        before = draws.row_noise
        noise = before if row_noise is None else grown(before, row_noise.astype(before.dtype))
        old = draws.rows["psi"]
        return replace(draws, rows={**draws.rows, "psi": grown(old, psi.astype(old.dtype))}, row_noise=noise)

    def renumbered(self, count: int) -> Rows:
        """The first ``count`` rows are the training rows, in this order."""
        place = np.full(len(self.place), -1, dtype=np.int32)
        place[:count] = np.arange(count)
        return Rows(place, count, self.sd, names=self.keys)

    def fault(self, rows: int, stored: int | None) -> str | None:
        """Places must be numbers of rows that draws have, and keys one for each row."""
        place, names = self.place, self.names
        if stored is not None and self.n_train != stored:
            return "its users or items have other rows than its draws"
        if place.dtype != np.int32 or place.shape != (rows,):
            return "the rows of its users or items have no numbers"
        if rows and not (place.min() >= -1 and place.max() < self.n_train):
            return "its users or items have rows outside"
        named = names is None or (names.dtype == np.uint64 and names.shape == (rows,))
        return None if named else "its rows have no names"

    @property
    def keys(self) -> Keys:
        """Keys of the rows' random numbers, (M,)."""
        return np.zeros(len(self.place), dtype=np.uint64) if self.names is None else self.names

    def named(self, keys: Keys) -> Rows:
        """The same rows with other keys of their random numbers."""
        return replace(self, names=keys)

    @property
    def groups(self) -> Index:
        """The training row that each row is."""
        return self.place

    @property
    def n_groups(self) -> int:
        """How many training rows there are."""
        return self.n_train

    @property
    def seen(self) -> npt.NDArray[np.bool_]:
        """Whether the row is a training row."""
        return self.place >= 0

    @property
    def undetermined(self) -> npt.NDArray[np.bool_]:
        """Whether the row was never seen."""
        return self.place < 0

    # Weight space

    @property
    def n_columns(self) -> int:
        """How many features stand for E: one for each training row."""
        return self.n_train

    def columns(self) -> sparse.csr_array:
        """One-hot rows times the scale; a zero row for an input never seen."""
        indptr = np.concatenate([[0], np.cumsum(self.seen)])
        indices = self.place[self.seen] if self.column is None else self.column[self.place[self.seen]]
        return sparse.csr_array(
            (np.full(len(indices), self.sd), indices, indptr), shape=(len(self.place), self.n_train)
        )

    def as_columns(self, E: Floats) -> Floats:
        """Weights of the one-hot features: E / sd, in the order of the columns."""
        out = np.empty((self.n_train, E.shape[1]))
        out[self.place if self.column is None else self.column[self.place]] = E / self.sd
        return out

    # Conditionals

    def update(
        self, mode: ModeState, evidence: Evidence, given: ModeGiven, rng: np.random.Generator | None
    ) -> tuple[ModeState, bool]:
        """Draw psi given B, row by row; scales given psi with B integrated out; B given psi."""
        # psi_m ~ N(B'phi_m, sd^2 Lambda^-1) a priori
        variance = self.sd**2
        psi = evidence.rows(given.features, mode.B, mode.precision / variance, rng)
        mode, collapsed = mode._replace(psi=psi), False
        if rng is not None:
            scales = scales_given_factors(given, psi, mode.tau, variance, rng)
            if scales is not None:
                mode, collapsed = mode._replace(tau=scales[0], precision=scales[1]), True
        B = weights_given_factors(given.regression, psi, variance * mode.tau, mode.B, mode.precision / variance, rng)
        return mode._replace(B=B), collapsed

    def whitened(self, E: Floats, own: tuple[Any, ...]) -> Floats:
        """E / sd, whose rows are N(0, Lambda^-1)."""
        return E / self.sd

    # Draws

    @property
    def n_kept(self) -> int:
        """How many rows each draw keeps: one for each training row."""
        return self.n_train

    def kept(self, psi: Floats, own: tuple[Any, ...]) -> tuple[dict[str, Floats], dict[str, Floats]]:
        """The factors psi of the training rows, including what the features explain: predictions read nothing else."""
        kept = np.empty((self.n_train, psi.shape[1]))
        kept[self.place] = psi
        return {"psi": kept}, {}

    def rows_in_place(self, draws: ModeDraws) -> tuple[npt.NDArray[np.intp], Singles]:
        """The rows of this table that are training rows, and their psi in the draws."""
        rows, kept = np.flatnonzero(self.seen), rows_in_place(draws.rows["psi"])
        place = self.place[rows]
        in_order = len(place) == len(kept) and (place == np.arange(len(place))).all()
        return rows, kept if in_order else draws.rows["psi"][place]

    def factors(self, features: Matrix, draws: ModeDraws, streams: DrawStreams | None) -> Floats:
        """psi as kept of the training rows; for rows never seen Phi B, plus a draw of E with ``streams``."""
        kept, seen = draws.rows["psi"], self.seen
        if seen.all():
            return np.asarray(kept[self.place], dtype=np.float64)
        out = np.empty((len(self.place), *kept.shape[1:]))
        out[seen] = kept[self.place[seen]]
        new = np.flatnonzero(~seen)
        psi = draws.mean(features[new])
        if streams is not None:
            noise = keyed_normals(self.keys[new], streams.keys, kept.shape[2])
            psi += np.einsum("msk,sjk->msj", noise, np.linalg.cholesky(draws.covariance))
        out[new] = psi
        return out
