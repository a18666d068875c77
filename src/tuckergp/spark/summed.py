"""Users without a row each: sums of products of their features and factors are all that their prior asks for.

With Phi'Phi = V S V', the rows S^1/2 V' of features and (S^-1/2 V' Phi'psi; R) of factors, R'R what is left of psi'psi,
have the same sums of products as those of all users: a few rows that stand for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.errors import InputError
from tuckergp.model.mode_table import ModeTable
from tuckergp.priors.given import ModeGiven
from tuckergp.priors.regression import LARGEST_DENSE
from tuckergp.priors.regressions import weights_given_factors
from tuckergp.priors.scales import scales_given_factors
from tuckergp.random import normals_of_rows
from tuckergp.residuals import Rows
from tuckergp.residuals.base import ModeState
from tuckergp.spark.shards import Features

__all__ = ["Basis", "Drawn", "SummedRows", "summed"]

Floats = npt.NDArray[np.float64]
# Eigenvalues below this share of the largest are rounding errors.
ZERO = 1e-12


class Drawn(NamedTuple):
    """What the factors of all users were drawn from, and can be again: the numbers of a `Request`.

    Attributes
    ----------
    items : ndarray, shape (M, r)
    B : ndarray, shape (n, r)
    precision : ndarray, shape (r, r)
    alpha : ndarray, shape ()
    seed : ndarray, shape (2,)
        Its upper and its lower 32 bits; -1 for means.
    hot : ndarray, shape (h, r)
        Factors of users whose ratings are in several shards.
    """

    items: Floats
    B: Floats
    precision: Floats
    alpha: Floats
    seed: Floats
    hot: Floats


class Basis(NamedTuple):
    """V (n, k) and the square roots of S (k,)."""

    V: Floats
    root: Floats

    @classmethod
    def of(cls, gram: Floats) -> Basis:
        """From Phi'Phi (n, n)."""
        S, V = np.linalg.eigh(gram)
        kept = ZERO * max(S[-1:].sum(), 0.0) < S
        return cls(np.ascontiguousarray(V[:, kept]), np.sqrt(S[kept]))

    @property
    def features(self) -> Floats:
        """The rows S^1/2 V', (k, n)."""
        return self.root[:, None] * self.V.T

    def projected(self, cross: Floats) -> Floats:
        """S^-1/2 V' Phi'x, (k, r), from Phi'x (n, r)."""
        return self.V.T @ cross / self.root[:, None]

    def rows(self, cross: Floats, gram: Floats) -> Floats:
        """The rows of factors, (k + r, r), from Phi'psi (n, r) and psi'psi (r, r)."""
        explained = self.projected(cross)
        left, Q = np.linalg.eigh(gram - explained.T @ explained)
        return np.vstack([explained, np.sqrt(np.maximum(left, 0.0))[:, None] * Q.T])


@dataclass(frozen=True)
class SummedRows(Rows):
    """Rows that stand for those of all users.

    Attributes
    ----------
    users : int
        How many users there are.
    basis : Basis
    numbers : int
        How many numbers a draw keeps: those of `Drawn`.
    """

    users: int = 0
    basis: Any = None
    numbers: int = 0

    def update(
        self, mode: ModeState, evidence: Any, given: ModeGiven, rng: np.random.Generator | None
    ) -> tuple[ModeState, bool]:
        """Draw all users where they are; scales and B given sums of products. See `Rows.update`."""
        variance = self.sd**2
        cross, gram, drawn = evidence.users(mode.B, mode.precision / variance, rng)
        psi = self.basis.rows(cross, gram)
        evidence.workers.stands_for(psi)
        mode, collapsed, noise = mode._replace(psi=psi, own=tuple(drawn)), False, None
        if rng is not None:
            scales = scales_given_factors(given, psi, mode.tau, variance, rng, self.users)
            if scales is not None:
                mode, collapsed = mode._replace(tau=scales[0], precision=scales[1]), True
            # Phi'N of N that `weights_given_factors` would draw for all users
            noise = np.zeros_like(psi)
            noise[: len(self.basis.root)] = self.basis.projected(evidence.workers.noise(rng, psi.shape[1]))
        precision = mode.precision / variance
        B = weights_given_factors(given.regression, psi, variance * mode.tau, mode.B, precision, rng, noise)
        return mode._replace(B=B), collapsed

    def any_weights(self, n: int, r: int, rng: np.random.Generator) -> Floats:
        """Those that a row for each user would leave to features; zeros for E, which no draw starts from."""
        seed = int(rng.integers(2**63))
        return np.vstack([np.zeros((self.n_columns, r)), normals_of_rows(self.users, self.users + n, r, seed)])

    def n_whitened(self, Z: Floats) -> int:
        """All users."""
        return self.users

    @property
    def n_kept(self) -> int:
        """Rows of r numbers of four bytes that a draw keeps, about."""
        return self.numbers

    def kept(self, psi: Floats, own: tuple[Any, ...]) -> tuple[dict[str, Floats], dict[str, Floats]]:
        """No rows; what they can be drawn from again."""
        return {}, dict(zip(Drawn._fields, own, strict=True))


def summed(table: ModeTable, users: Features, rank: int, items: int) -> ModeTable:
    """The table of few rows that stand for those of all users."""
    n = int(table.features.shape[1])
    if n > LARGEST_DENSE:
        raise InputError(
            f"Users have {n:,} features, and tuckergp.spark takes {LARGEST_DENSE:,}; leave columns of many values out "
            f"with attributes=, or fit locally."
        )
    basis = Basis.of(users.gram)
    rows = len(basis.root) + rank
    features = np.vstack([basis.features, np.zeros((rank, n))])
    place = np.arange(rows, dtype=np.int32)
    residual = SummedRows(place, rows, table.residual.sd, users=users.users, basis=basis, numbers=2 * items)
    return replace(table, features=features).with_residual(residual)
