"""Approximate posteriors q of single unknowns, for variational inference: gammas, Lambda, Gaussian weights.

Each knows its expectations, how far it is from its prior (the divergence KL), and how to be drawn from. The conjugate
forms are those that `tuckergp.priors.hyper` draws from.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import digamma, gammaln, multigammaln

from tuckergp.priors.hyper import PrecisionPrior, wishart

__all__ = ["Gammas", "MatrixNormal", "Normal", "PrecisionBelief", "normals"]

Floats = npt.NDArray[np.float64]

LOG_2PI = float(np.log(2 * np.pi))


class Gammas(NamedTuple):
    """Independent gamma variables, of a shape and a rate each: tau of the blocks, alpha.

    Examples
    --------
    >>> Gammas(np.array([2.0]), np.array([4.0])).mean
    array([0.5])
    """

    shape: Floats
    rate: Floats

    @property
    def mean(self) -> Floats:
        """E x."""
        return self.shape / self.rate

    @property
    def mean_log(self) -> Floats:
        """E log x."""
        return np.asarray(digamma(self.shape) - np.log(self.rate))

    def divergence(self, shape: float, rate: float) -> float:
        """Sum of KL(q || Gamma(shape, rate))."""
        own = self.shape * np.log(self.rate) - gammaln(self.shape)
        prior = shape * np.log(rate) - gammaln(shape)
        return float(
            np.sum(own - prior + (self.shape - shape) * self.mean_log - self.shape + rate * self.shape / self.rate)
        )


class PrecisionBelief(NamedTuple):
    """Of Lambda (r, r): Wishart, or a scale times the identity, which is Gamma(dof r / 2, tr(inverse_scale) / 2).

    Attributes
    ----------
    dof : float
    inverse_scale : ndarray, shape (r, r)
    scalar : bool
    """

    dof: float
    inverse_scale: Floats
    scalar: bool

    @classmethod
    def of(cls, prior: PrecisionPrior, r: int) -> PrecisionBelief:
        """The prior itself."""
        dof = prior.dof if prior.scalar else prior.dof + r - 1  # as in `PrecisionPrior.draw`
        return cls(dof, dof * prior.variance * np.eye(r), prior.scalar)

    def given(self, spread: Floats, count: int) -> PrecisionBelief:
        """After ``count`` rows whose expected sum of squares is ``spread``, (r, r)."""
        return PrecisionBelief(self.dof + count, self.inverse_scale + spread, self.scalar)

    @property
    def _gamma(self) -> Gammas:
        """Of the scale."""
        r = len(self.inverse_scale)
        return Gammas(np.array([self.dof * r / 2]), np.array([np.trace(self.inverse_scale) / 2]))

    @property
    def mean(self) -> Floats:
        """E Lambda, (r, r)."""
        if self.scalar:
            return np.asarray(np.eye(len(self.inverse_scale)) * self._gamma.mean)
        return np.asarray(self.dof * np.linalg.inv(self.inverse_scale))

    @property
    def mean_log_det(self) -> float:
        """E log |Lambda|."""
        r = len(self.inverse_scale)
        if self.scalar:
            return r * float(self._gamma.mean_log[0])
        halves = (self.dof - np.arange(r)) / 2
        return float(digamma(halves).sum() + r * np.log(2.0) - np.linalg.slogdet(self.inverse_scale)[1])

    @property
    def _log_normaliser(self) -> float:
        r = len(self.inverse_scale)
        log_det = np.linalg.slogdet(self.inverse_scale)[1]
        return float(self.dof * r / 2 * np.log(2.0) + multigammaln(self.dof / 2, r) - self.dof / 2 * log_det)

    def divergence(self, prior: PrecisionBelief) -> float:
        """KL(q || prior)."""
        if self.scalar:
            mine, other = self._gamma, prior._gamma
            return mine.divergence(float(other.shape[0]), float(other.rate[0]))
        own = (self.dof - prior.dof) / 2 * self.mean_log_det - self.dof * len(self.inverse_scale) / 2
        pull = float(np.sum(prior.inverse_scale * self.mean)) / 2
        return own + pull - self._log_normaliser + prior._log_normaliser

    def draw(self, rng: np.random.Generator) -> Floats:
        """One Lambda, (r, r)."""
        if self.scalar:
            shape, rate = self._gamma
            return np.asarray(np.eye(len(self.inverse_scale)) * (rng.gamma(shape) / rate))
        return wishart(self.dof, self.inverse_scale, rng)


class Normal(NamedTuple):
    """Of a table of weights, with the covariance of all its entries, row by row.

    Attributes
    ----------
    mean : ndarray, shape (n, r)
    covariance : ndarray, shape (n r, n r)
    log_det : float
        Logarithm of the covariance's determinant.
    """

    mean: Floats
    covariance: Floats
    log_det: float

    @property
    def squares(self) -> Floats:
        """E x_j x_j' of every row, (n, r, r)."""
        n, r = self.mean.shape
        own = np.einsum("jkjl->jkl", self.covariance.reshape(n, r, n, r))
        return np.asarray(own + self.mean[:, :, None] * self.mean[:, None, :])

    @property
    def entropy(self) -> float:
        """Of q."""
        return 0.5 * (self.mean.size * (1 + LOG_2PI) + self.log_det)

    def root(self) -> Floats:
        """What standard normal numbers are multiplied by; for `deviation`."""
        return np.asarray(np.linalg.cholesky(self.covariance))

    def deviation(self, root: Floats, rng: np.random.Generator) -> Floats:
        """A draw, less the mean, (n, r)."""
        return np.asarray(root @ rng.standard_normal(self.mean.size)).reshape(self.mean.shape)


class MatrixNormal(NamedTuple):
    """Of the weights of features beside a residual: Cov of the entries (j, k), (j', k') is rows_jj' columns_kk'.

    Attributes
    ----------
    mean : ndarray, shape (n, r)
    rows : ndarray, shape (n, n)
    columns : ndarray, shape (r, r)
    """

    mean: Floats
    rows: Floats
    columns: Floats

    @property
    def squares(self) -> Floats:
        """E x_j x_j' of every row, (n, r, r)."""
        own = np.diag(self.rows)[:, None, None] * self.columns
        return np.asarray(own + self.mean[:, :, None] * self.mean[:, None, :])

    @property
    def entropy(self) -> float:
        """Of q."""
        n, r = self.mean.shape
        log_det = r * np.linalg.slogdet(self.rows)[1] + n * np.linalg.slogdet(self.columns)[1]
        return float(0.5 * (n * r * (1 + LOG_2PI) + log_det))

    def root(self) -> tuple[Floats, Floats]:
        """What standard normal numbers are multiplied by, on either side; for `deviation`."""
        return np.asarray(np.linalg.cholesky(self.rows)), np.asarray(np.linalg.cholesky(self.columns))

    def deviation(self, root: tuple[Floats, Floats], rng: np.random.Generator) -> Floats:
        """A draw, less the mean, (n, r)."""
        return np.asarray(root[0] @ rng.standard_normal(self.mean.shape) @ root[1].T)


def normals(precision: Floats, right: Floats, start: Floats, factorised: bool) -> tuple[Floats, Floats, float]:
    """Best q of M Gaussians exp(-x'precision x / 2 + right'x): means, covariances, sum of their log determinants.

    With ``factorised`` all entries are independent under q: each in turn has the mean that is best given those of the
    others, from ``start`` on, and the covariances are diagonal.

    Parameters
    ----------
    precision : ndarray, shape (M, k, k)
    right, start : ndarray, shapes (M, k)
    """
    if not factorised:
        L = np.linalg.cholesky(precision)
        inverse = np.linalg.inv(L)
        covariance = np.swapaxes(inverse, 1, 2) @ inverse
        log_det = -2 * np.log(np.diagonal(L, axis1=1, axis2=2)).sum()
        return np.einsum("mkl,ml->mk", covariance, right), covariance, float(log_det)
    mean, diagonal = start.copy(), np.diagonal(precision, axis1=1, axis2=2)
    for k in range(mean.shape[1]):
        pull = np.einsum("ml,ml->m", precision[:, k], mean) - diagonal[:, k] * mean[:, k]
        mean[:, k] = (right[:, k] - pull) / diagonal[:, k]
    covariance = np.eye(mean.shape[1]) / diagonal[:, :, None]
    return mean, covariance, -float(np.log(diagonal).sum())
