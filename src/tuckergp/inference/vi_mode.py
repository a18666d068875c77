"""Variational inference of one mode: its factors, the weights of its features, Lambda and tau.

Every update is the best q of one unknown given those of the others, in the form that `tuckergp.inference.gibbs` draws
from. `bound` is what the mode adds to the evidence lower bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuckergp.errors import InputError
from tuckergp.linalg import Matrix
from tuckergp.model.mode_table import ModeTable
from tuckergp.priors.beliefs import LOG_2PI, Gammas, MatrixNormal, Normal, PrecisionBelief, normals
from tuckergp.priors.weights import joint_precision
from tuckergp.random import normals as standard_normals
from tuckergp.statistics.expected import Factors

__all__ = ["ModeBelief", "ModePrior", "check_mode"]

Floats = npt.NDArray[np.float64]

# The most unknowns whose covariances are kept: n features of a mode with rows, n r weights of a mode without.
LARGEST = 3_000


class ModeBelief(NamedTuple):
    """q of the unknowns of one mode.

    Attributes
    ----------
    psi : ndarray, shape (M, r)
        Means of the factors.
    covariance : ndarray, shape (M, r, r)
        Of every row of the factors.
    log_det : float
        Sum of the logarithms of their determinants; 0 without a residual, where factors follow from weights.
    B : MatrixNormal or Normal
        Weights of the features, (n, r): beside a residual, or alone.
    precision : PrecisionBelief
        Lambda.
    tau : Gammas
        Precision of every feature block relative to Lambda.
    """

    psi: Floats
    covariance: Floats
    log_det: float
    B: MatrixNormal | Normal
    precision: PrecisionBelief
    tau: Gammas

    @property
    def factors(self) -> Factors:
        """First and second moments of the factors, E psi and E psi psi'."""
        return Factors(self.psi, self.covariance + self.psi[:, :, None] * self.psi[:, None, :])


@dataclass(frozen=True)
class ModePrior:
    """One mode of the model, with its priors; updates of its `ModeBelief`.

    Attributes
    ----------
    table : ModeTable
    gram : ndarray, shape (n, n)
        Phi'Phi of its features.
    precision : PrecisionBelief
        Prior of Lambda.
    tau_shape, tau_rate : float
        Gamma prior of tau.
    factorised : bool
        Whether all entries of the factors, or of the weights without a residual, are independent under q.
    """

    table: ModeTable
    gram: Floats
    precision: PrecisionBelief
    tau_shape: float
    tau_rate: float
    factorised: bool = False

    @property
    def has_rows(self) -> bool:
        """Whether factors have a residual beside the features."""
        return self.table.residual.n_columns > 0

    @cached_property
    def sizes(self) -> npt.NDArray[np.int64]:
        """How many features every block has."""
        return np.array([block.stop - block.start for block in self.table.blocks], dtype=np.int64)

    def start(self, psi: Floats, B: Floats, precision: Floats) -> ModeBelief:
        """Point masses at these factors and weights, with Lambda and tau at their prior means."""
        (rows, r), n = psi.shape, len(B)
        tau = np.full(len(self.sizes), self.tau_shape), np.full(len(self.sizes), self.tau_rate)
        belief: MatrixNormal | Normal = Normal(B, np.zeros((n * r, n * r)), 0.0)
        if self.has_rows:
            belief = MatrixNormal(B, np.zeros((n, n)), _inverse(precision))
        return ModeBelief(psi, np.zeros((rows, r, r)), 0.0, belief, self.precision, Gammas(*tau))

    def update(self, q: ModeBelief, A: Floats, b: Floats) -> ModeBelief:
        """Factors and weights given the expected statistics of the rows, noise included, then Lambda, then tau."""
        q = self._update_rows(q, A, b) if self.has_rows else self._update_weights(q, A, b)
        count = len(q.B.mean) + (len(q.psi) if self.has_rows else 0)
        # q(Lambda): dof + n + M, inverse scale + sum_j tau_j E b_j b_j' + E E'E / sd^2
        scatter = np.tensordot(np.repeat(q.tau.mean, self.sizes), q.B.squares, axes=1)
        if self.has_rows:
            scatter = scatter + self._residual_squares(q) / self.table.residual.sd**2
        q = q._replace(precision=self.precision.given(scatter, count))
        # q(tau_g) = Gamma(shape + n_g r / 2, rate + sum_{j in g} E b_j'Lambda b_j / 2)
        half = np.add.reduceat(self._weight_squares(q), np.cumsum(self.sizes) - self.sizes) / 2
        shape = self.tau_shape + self.sizes * q.psi.shape[1] / 2
        return q._replace(tau=Gammas(shape, self.tau_rate + half)) if len(self.sizes) else q

    def _update_rows(self, q: ModeBelief, A: Floats, b: Floats) -> ModeBelief:
        variance, features = self.table.residual.sd**2, self.table.features
        # q(psi_m): precision Lambda / sd^2 + A_m, mean precision^-1 (Lambda B'phi_m / sd^2 + b_m)
        prior_precision = q.precision.mean / variance
        right = np.asarray(features @ q.B.mean) @ prior_precision + b
        psi, covariance, log_det = normals(prior_precision + A, right, q.psi, self.factorised)
        # q(B) = MN(V Phi'psi / sd^2, V, Lambda^-1), V = (Phi'Phi / sd^2 + T)^-1
        system = self.gram / variance + np.diag(np.repeat(q.tau.mean, self.sizes))
        rows = _inverse(system)
        B = rows @ np.asarray(features.T @ psi) / variance
        belief = MatrixNormal(B, rows, _inverse(q.precision.mean))
        return q._replace(psi=psi, covariance=covariance, log_det=log_det, B=belief)

    def _update_weights(self, q: ModeBelief, A: Floats, b: Floats) -> ModeBelief:
        features, (n, r) = self.table.features, q.B.mean.shape
        # q(B): precision sum_m (phi_m phi_m') kron A_m + T kron Lambda, right-hand side sum_m phi_m b_m'
        lower = np.tril(joint_precision(features, A, np.repeat(q.tau.mean, self.sizes), q.precision.mean))
        whole = lower + np.tril(lower, -1).T
        system = whole.reshape(r, n, r, n).transpose(1, 0, 3, 2).reshape(n * r, n * r)
        right = np.asarray(features.T @ b).reshape(1, -1)
        mean, covariance, log_det = normals(system[None], right, q.B.mean.reshape(1, -1), self.factorised)
        B = Normal(mean.reshape(n, r), covariance[0], log_det)
        covariance = _covariance_of_rows(features, B.covariance.reshape(n, r, n, r))
        return q._replace(psi=np.asarray(features @ B.mean), covariance=covariance, B=B)

    def _residual_squares(self, q: ModeBelief) -> Floats:
        """The expectation of E'E, the residual's squares, (r, r)."""
        if not isinstance(q.B, MatrixNormal):
            raise TypeError("weights beside a residual are matrix normal")
        # (E psi - Phi E B)'(E psi - Phi E B) + sum_m Cov psi_m + tr(Phi'Phi V) Lambda^-1
        E = q.psi - np.asarray(self.table.features @ q.B.mean)
        return np.asarray(E.T @ E + q.covariance.sum(axis=0) + np.sum(self.gram * q.B.rows) * q.B.columns)

    def _weight_squares(self, q: ModeBelief) -> Floats:
        """The expectation of b_j' Lambda b_j of every feature, (n,)."""
        return np.asarray(np.tensordot(q.B.squares, q.precision.mean, axes=2))

    def bound(self, q: ModeBelief) -> float:
        """What the mode adds to the evidence lower bound."""
        (rows, r), n, log_det = q.psi.shape, len(q.B.mean), q.precision.mean_log_det
        # E log p(B | Lambda, tau) + entropy: n E log |Lambda| + r sum_g n_g E log tau_g - sum_j tau_j E b_j'Lambda b_j
        weights = n * (log_det - r * LOG_2PI) + r * float(self.sizes @ q.tau.mean_log)
        weights -= float(np.repeat(q.tau.mean, self.sizes) @ self._weight_squares(q))
        total = 0.5 * weights + q.B.entropy
        if self.has_rows:
            variance = self.table.residual.sd**2
            # E log p(psi | B, Lambda) + entropy: M E log |Lambda| - tr(E Lambda E E'E) / sd^2
            residual = rows * (log_det - r * (LOG_2PI + np.log(variance)))
            residual -= float(np.sum(q.precision.mean * self._residual_squares(q))) / variance
            total += 0.5 * (residual + rows * r * (1 + LOG_2PI) + q.log_det)
        # less KL of tau and of Lambda
        total -= q.tau.divergence(self.tau_shape, self.tau_rate)
        return float(total - q.precision.divergence(self.precision))

    def roots(self, q: ModeBelief) -> tuple[Any, Floats | None]:
        """Cholesky factors of the covariances, for `deviation`: of the weights, and of the rows."""
        return q.B.root(), np.asarray(np.linalg.cholesky(q.covariance)) if self.has_rows else None

    def deviation(
        self, q: ModeBelief, roots: tuple[Any, Floats | None], rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """A draw of factors (M, r) and weights (n, r), less their means."""
        B = q.B.deviation(roots[0], rng)
        if roots[1] is None:
            return np.asarray(self.table.features @ B), B
        return np.einsum("mkl,ml->mk", roots[1], standard_normals(q.psi.shape, rng)), B


def check_mode(table: ModeTable, r: int) -> None:
    """Refuse a mode whose q would need another form, or too much memory."""
    n = int(table.features.shape[1])
    table.residual.refuse_weights("VI is")
    if table.residual.n_columns and not table.residual.exchangeable:
        raise InputError(f"VI does not support a mode with {type(table.residual).__name__}; use Gibbs or ALS.")
    if (n if table.residual.n_columns else n * r) > LARGEST:
        what = f"{n:,} features" if table.residual.n_columns else f"{n:,} features times rank {r}"
        raise InputError(
            f"VI keeps the covariances of all weights of a mode, and {what} are more than {LARGEST:,}; use fewer "
            f"features, or Gibbs."
        )


def _inverse(matrix: Floats) -> Floats:
    """The inverse of a positive definite matrix, symmetric to the last bit."""
    root = np.linalg.inv(np.linalg.cholesky(matrix))
    return np.asarray(root.T @ root)


def _covariance_of_rows(features: Matrix, covariance: Floats) -> Floats:
    """Cov of phi_m'B for every row, (M, r, r), from that of B, (n, r, n, r)."""
    r = covariance.shape[1]
    out = np.empty((features.shape[0], r, r))
    for k in range(r):
        for j in range(k + 1):
            # phi_m' Cov(B[:, k], B[:, j]) phi_m
            half = np.asarray(features @ covariance[:, k, :, j])
            product = features.multiply(half) if sparse.issparse(features) else features * half
            out[:, k, j] = out[:, j, k] = np.asarray(product.sum(axis=1)).ravel()
    return out
