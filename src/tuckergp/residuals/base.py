"""What every residual must offer: E of psi = Phi B + E is what the features of a mode do not explain.

A residual is one object in one file. It knows where the rows of one table lie among the training rows, draws E and the
weights B given the rows' statistics (or takes their means), and predicts E at inputs never seen. No algorithm asks
which residual it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuckergp.errors import InputError
from tuckergp.linalg import Matrix
from tuckergp.priors.given import ModeGiven
from tuckergp.random import DrawStreams, Keys, normals

__all__ = ["Evidence", "ModeDraws", "ModeState", "Residual"]

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Index = npt.NDArray[np.int32]


class Evidence(Protocol):
    """What the data say about the rows of a mode given the other modes."""

    def statistics(self) -> tuple[Floats, Floats]:
        """The statistics of all rows, A (M, r, r) and b (M, r)."""

    def solve(self, prior_shift: Floats, precision: Floats, noise: Floats) -> Floats:
        """For each row m the mean of N((P + A_m)^-1 (shift_m + b_m), (P + A_m)^-1), or with noise a draw.

        P is the prior ``precision``, shift_m = P times the prior mean.
        """

    def rows(self, features: Matrix, B: Floats, precision: Floats, rng: np.random.Generator | None) -> Floats:
        """A draw of every row under the prior N(B'phi_m, precision^-1); the mean without ``rng``."""


class ModeState(NamedTuple):
    """The unknowns of one mode.

    Attributes
    ----------
    psi : ndarray, shape (M, r)
        Factors.
    B : ndarray, shape (n, r)
        Weights of the features.
    precision : ndarray, shape (r, r)
        Lambda.
    tau : ndarray, shape (blocks,)
        Precision of each feature block relative to Lambda.
    own : tuple
        The residual's own unknowns, such as a lengthscale; empty for most.
    """

    psi: Floats
    B: Floats
    precision: Floats
    tau: Floats
    own: tuple[Any, ...] = ()


@dataclass(frozen=True)
class ModeDraws:
    """S draws of one mode, as predictions need them.

    Attributes
    ----------
    B : ndarray or RowsInPlace, shape (n, S, r)
        Weights of the features.
    covariance : ndarray, shape (S, r, r)
        Covariance of a row of E that the data say nothing about.
    rows : mapping of str to ndarray or RowsInPlace, shapes (M_train, S, ...)
        What the residual keeps of each training row.
    values : mapping of str to ndarray, shapes (S, ...)
        What is kept of the mode as a whole: ``spread`` (S, r, r), the prior covariance Lambda^-1 of the weights of a
        feature, ``tau`` (S, blocks), the precisions of blocks relative to Lambda, neither of them in old files, what is
        known of newcomers (`tuckergp.model.newcomers`), and what the residual adds.
    row_noise : ndarray or RowsInPlace, shape (groups, S), or None
        Noise precision of each group of rows relative to the shared one; None where a mode has none.
    """

    B: Any
    covariance: Floats
    rows: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Floats] = field(default_factory=dict)
    row_noise: Any = None
    _precision: Floats | None = field(default=None, repr=False, compare=False)
    _grams: dict[bytes, Floats] = field(default_factory=dict, repr=False, compare=False, init=False)

    def gram(self, weight: Floats) -> Floats:
        """sum_m weight_m psi_m psi_m' over the kept rows in each draw, (S, r, r); computed once for each weighting."""
        key = weight.tobytes()
        if key not in self._grams:
            psi = np.asarray(self.rows["psi"], dtype=np.float32).transpose(1, 0, 2)
            weighted = psi * weight.astype(np.float32)[:, None]
            self._grams[key] = (weighted.transpose(0, 2, 1) @ psi).astype(np.float64)
        return self._grams[key]

    @property
    def precision(self) -> Floats:
        """The inverse of `covariance`, computed once and passed on by `replace`."""
        if self._precision is None:
            object.__setattr__(self, "_precision", np.ascontiguousarray(np.linalg.inv(self.covariance)))
        return self._precision  # type: ignore[return-value]

    def mean(self, features: Matrix) -> Floats:
        """Phi B for some rows of features (m, n) in all draws, (m, S, r); reads only the weights of their features."""
        n, draws, r = self.B.shape
        if not sparse.issparse(features):
            B = np.asarray(self.B, dtype=np.float64).reshape(n, draws * r)
            return np.asarray(features @ B).reshape(-1, draws, r)
        used, place = np.unique(features.indices, return_inverse=True)
        B = np.asarray(self.B[used], dtype=np.float64).reshape(len(used), draws * r)
        compact = sparse.csr_array((features.data, place, features.indptr), shape=(features.shape[0], len(used)))
        return np.asarray(compact @ B).reshape(-1, draws, r)


class Residual(ABC):
    """The residual E at the rows of one table.

    Attributes
    ----------
    sd : float
        The standard deviation that its kernel gives each row; 0 without a residual.

    Class attributes
    ----------------
    exchangeable : bool
        Whether rows are independent with the same covariance, sd^2 Lambda^-1.
    """

    sd: float
    exchangeable: ClassVar[bool] = False

    # Rows of a table

    @abstractmethod
    def take(self, rows: npt.NDArray[np.integer]) -> Self:
        """Some of the rows, in the order given."""

    def joined(self, other: Any) -> Self:
        """These rows, then those of another table of the same mode."""
        raise TypeError(f"rows of a {type(self).__name__} cannot be joined")

    # Rows learned after the fit

    def grown(self, draws: ModeDraws, keys: Keys, learned: int) -> Self:
        """The residual of rows with these keys that are added to the mode of these draws.

        The first ``learned`` of them are training rows now, after those of the draws; the others were never seen.
        """
        raise InputError(
            f"A mode whose residual is {type(self).__name__} takes in no new rows; fit again with all data."
        )

    def with_rows(self, draws: ModeDraws, psi: Floats, row_noise: Floats | None) -> ModeDraws:
        """The draws with the factors (m, S, r) and noise factors (m, S) of new training rows after the others."""
        raise InputError(
            f"A mode whose residual is {type(self).__name__} takes in no new rows; fit again with all data."
        )

    def renumbered(self, count: int) -> Self:
        """The same rows, of which the first ``count`` are the training rows, in this order."""
        raise InputError(f"Rows of a mode whose residual is {type(self).__name__} have an order of their own.")

    def fault(self, rows: int, stored: int | None) -> str | None:
        """What is wrong with the residual of ``rows`` users or items, ``stored`` of them in draws; None for nothing."""
        return "its users or items have no rows of their own"

    @property
    def groups(self) -> Index | None:
        """The training row that each row is, (M,), -1 for none, where rows may have noise factors; None otherwise."""
        return None

    @property
    def n_groups(self) -> int:
        """How many training rows there are, where rows may have noise factors; 0 otherwise."""
        return 0

    @property
    def keys(self) -> Keys:
        """Keys of the random numbers of rows never seen, (M,), where rows may have noise factors."""
        raise TypeError(f"rows of a {type(self).__name__} have no keys")

    def named(self, keys: Keys) -> Self:
        """The same rows with these keys of their random numbers, (M,)."""
        return self

    @property
    def seen(self) -> npt.NDArray[np.bool_] | None:
        """Which rows were learned from the data, (M,); None where rows are not learned one by one."""
        return None

    @property
    def undetermined(self) -> npt.NDArray[np.bool_] | None:
        """Which rows a draw does not determine, so that `factors` draws them, (M,); None for no row."""
        return None

    # Weight space: gradient methods see psi = [columns, Phi] U

    @property
    def n_columns(self) -> int:
        """How many features stand for E in weight space."""
        return 0

    def columns(self) -> sparse.csr_array | None:
        """The features that stand for E in weight space, (M, n_columns); None for none."""
        return None

    def as_columns(self, E: Floats) -> Floats:
        """The weights of the features that stand for E, from E at the rows of the training table, (n_columns, r)."""
        return np.zeros((0, E.shape[1]))

    def any_weights(self, n: int, r: int, rng: np.random.Generator) -> Floats:
        """Standard normal weights of the features that stand for E and of n others, (n_columns + n, r)."""
        return normals((self.n_columns + n, r), rng)

    def refuse_weights(self, what: str) -> None:
        """Refuse an inference that learns weights of features only, where no features stand for E."""

    # Own unknowns

    def init(self, r: int, sd: float, rng: np.random.Generator) -> tuple[Any, ...]:
        """A prior draw of the own unknowns, with entries of Lambda^-1/2 of this size."""
        return ()

    def values(self, own: tuple[Any, ...]) -> Floats | float:
        """The mean of E at the rows of any table given the own unknowns, (M, r)."""
        return 0.0

    def lengthscales(self, own: tuple[Any, ...]) -> Floats:
        """The lengthscales among the own unknowns, which convergence may be judged by."""
        return np.zeros(0)

    def variance_shares(self, own: tuple[Any, ...]) -> Floats:
        """Of a sum of parts, the share of each in the variance of E."""
        return np.zeros(0)

    def log_prior(self, own: tuple[Any, ...], sd: float) -> float:
        """Log density of E at the training rows, up to a constant, where E is one of the own unknowns."""
        return 0.0

    # Conditionals

    @abstractmethod
    def update(
        self, mode: ModeState, evidence: Evidence, given: ModeGiven, rng: np.random.Generator | None
    ) -> tuple[ModeState, bool]:
        """Draw factors, weights and own unknowns from their conditionals; take the means without ``rng``.

        Also returns whether tau of wide blocks and Lambda were drawn with them.
        """

    def whitened(self, E: Floats, own: tuple[Any, ...]) -> Floats:
        """Independent rows N(0, Lambda^-1) from E at the training rows, (k, r), for the conditional of Lambda."""
        return np.zeros((0, E.shape[1]))

    def n_whitened(self, Z: Floats) -> int:
        """How many independent rows the whitened ones stand for."""
        return len(Z)

    def finished(
        self, E: Floats, own: tuple[Any, ...], precision: Floats, rng: np.random.Generator | None
    ) -> tuple[Any, ...]:
        """Draw the own unknowns that predictions need but no sweep reads; the mean without ``rng``."""
        return own

    # Draws

    def row_seconds(self, r: int) -> float:
        """About how long a row takes in a sweep, on one core: as measured for a solve of r unknowns."""
        return 5e-7 + 2e-11 * r**3

    @property
    def n_kept(self) -> int:
        """How many rows of r numbers each draw keeps of the residual."""
        return 0

    @abstractmethod
    def kept(self, psi: Floats, own: tuple[Any, ...]) -> tuple[dict[str, Floats], dict[str, Floats]]:
        """What a draw keeps of each training row (M_train, ...), and of the mode as a whole, by name."""

    def rows_in_place(self, draws: ModeDraws) -> tuple[npt.NDArray[np.intp], Singles]:
        """Rows whose psi is stored in the draws, and these psi, (m, S, r), without a copy where they are in order."""
        _, count, r = draws.B.shape
        return np.zeros(0, dtype=np.intp), np.zeros((0, count, r), dtype=np.float32)

    @abstractmethod
    def factors(self, features: Matrix, draws: ModeDraws, streams: DrawStreams | None) -> Floats:
        """psi at the rows of this table in all draws, (M, S, r).

        What a draw does not determine of rows never seen takes its mean, or with ``streams`` is drawn, jointly for all
        rows. All predictions get it from here.
        """

    def parts(self, draws: ModeDraws, streams: DrawStreams | None) -> list[Floats]:
        """Where E is a sum of several terms of the kernel, what each of them is at the rows of this table.

        In all draws, (M, S, r) each, with the random numbers of `factors`; empty where E is one term.
        """
        return []
