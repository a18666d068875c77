"""Approximate posteriors q of single unknowns, for variational inference: gammas, Lambda, Gaussian weights.

Each gives its expectations, its Kullback-Leibler divergence from the prior, and draws. The conjugate forms are those
that `tuckergp.priors.hyper` draws from. Expectations and entropies: Bishop (2006), appendix B.
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
        """The expectation E x."""
        return self.shape / self.rate

    @property
    def mean_log(self) -> Floats:
        """The expectation E log x."""
        return np.asarray(digamma(self.shape) - np.log(self.rate))

    def divergence(self, shape: float, rate: float) -> float:
        """Sum of KL(q || Gamma(shape, rate))."""
        # q = Gamma(a, b), prior Gamma(a', b'): log (b^a / Gamma(a)) of q less that of the prior,
        # + (a - a') E log x - (b - b') E x
        of_q = self.shape * np.log(self.rate) - gammaln(self.shape)
        of_prior = shape * np.log(rate) - gammaln(shape)
        return float(
            np.sum(of_q - of_prior + (self.shape - shape) * self.mean_log - self.shape + rate * self.shape / self.rate)
        )


class PrecisionBelief(NamedTuple):
    """q of Lambda (r, r): Wishart, or a scale times the identity, the scale Gamma(dof r / 2, tr(inverse_scale) / 2).

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
        """The prior as a belief, before any rows."""
        return cls(prior.degrees, prior.square * np.eye(r), prior.scalar)

    def given(self, scatter: Floats, count: int) -> PrecisionBelief:
        """The belief after ``count`` rows whose expected sum of squares is ``scatter``, (r, r)."""
        return PrecisionBelief(self.dof + count, self.inverse_scale + scatter, self.scalar)

    @property
    def _gamma(self) -> Gammas:
        """q of the scale, where Lambda is a scale times the identity."""
        r = len(self.inverse_scale)
        return Gammas(np.array([self.dof * r / 2]), np.array([np.trace(self.inverse_scale) / 2]))

    @property
    def mean(self) -> Floats:
        """The expectation E Lambda, (r, r)."""
        if self.scalar:
            return np.asarray(np.eye(len(self.inverse_scale)) * self._gamma.mean)
        return np.asarray(self.dof * np.linalg.inv(self.inverse_scale))

    @property
    def mean_log_det(self) -> float:
        """The expectation E log |Lambda|."""
        r = len(self.inverse_scale)
        if self.scalar:
            return r * float(self._gamma.mean_log[0])
        # sum_i digamma((dof - i) / 2) + r log 2 - log |inverse_scale|, i = 0, ..., r - 1
        halves = (self.dof - np.arange(r)) / 2
        return float(digamma(halves).sum() + r * np.log(2.0) - np.linalg.slogdet(self.inverse_scale)[1])

    @property
    def _log_normaliser(self) -> float:
        """Log of 2^(dof r / 2) Gamma_r(dof / 2) |inverse_scale|^(-dof / 2), the Wishart's."""
        r = len(self.inverse_scale)
        log_det = np.linalg.slogdet(self.inverse_scale)[1]
        return float(self.dof * r / 2 * np.log(2.0) + multigammaln(self.dof / 2, r) - self.dof / 2 * log_det)

    def divergence(self, prior: PrecisionBelief) -> float:
        """The divergence KL(q || prior)."""
        if self.scalar:
            of_prior = prior._gamma
            return self._gamma.divergence(float(of_prior.shape[0]), float(of_prior.rate[0]))
        # (dof - dof') / 2 E log |Lambda| - tr(S E Lambda) / 2 + tr(S' E Lambda) / 2, S the inverse scale, S E Lambda =
        # dof I; less the log normaliser of q, plus that of the prior
        log_ratio = (self.dof - prior.dof) / 2 * self.mean_log_det - self.dof * len(self.inverse_scale) / 2
        log_ratio += float(np.sum(prior.inverse_scale * self.mean)) / 2
        return log_ratio - self._log_normaliser + prior._log_normaliser

    def draw(self, rng: np.random.Generator) -> Floats:
        """Draw Lambda, (r, r)."""
        if self.scalar:
            shape, rate = self._gamma
            return np.asarray(np.eye(len(self.inverse_scale)) * (rng.gamma(shape) / rate))
        return wishart(self.dof, self.inverse_scale, rng)


class Normal(NamedTuple):
    """q of a table of weights, Gaussian with a covariance of all its entries, which are ordered row by row.

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
        # Cov(x_j) + E x_j E x_j'
        covariances = np.einsum("jkjl->jkl", self.covariance.reshape(n, r, n, r))
        return np.asarray(covariances + self.mean[:, :, None] * self.mean[:, None, :])

    @property
    def entropy(self) -> float:
        """The entropy of q."""
        return 0.5 * (self.mean.size * (1 + LOG_2PI) + self.log_det)

    def root(self) -> Floats:
        """The Cholesky factor of the covariance, for `deviation`."""
        return np.asarray(np.linalg.cholesky(self.covariance))

    def deviation(self, root: Floats, rng: np.random.Generator) -> Floats:
        """A draw, less the mean, (n, r)."""
        return np.asarray(root @ rng.standard_normal(self.mean.size)).reshape(self.mean.shape)


class MatrixNormal(NamedTuple):
    """q of the weights of features beside a residual: Cov of the entries (j, k), (j', k') is rows_jj' columns_kk'.

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
        # Cov(x_j) + E x_j E x_j'
        covariances = np.diag(self.rows)[:, None, None] * self.columns
        return np.asarray(covariances + self.mean[:, :, None] * self.mean[:, None, :])

    @property
    def entropy(self) -> float:
        """The entropy of q."""
        n, r = self.mean.shape
        # log |rows kron columns|
        log_det = r * np.linalg.slogdet(self.rows)[1] + n * np.linalg.slogdet(self.columns)[1]
        return float(0.5 * (n * r * (1 + LOG_2PI) + log_det))

    def root(self) -> tuple[Floats, Floats]:
        """The Cholesky factors of both covariances, for `deviation`."""
        return np.asarray(np.linalg.cholesky(self.rows)), np.asarray(np.linalg.cholesky(self.columns))

    def deviation(self, root: tuple[Floats, Floats], rng: np.random.Generator) -> Floats:
        """A draw, less the mean, (n, r)."""
        # rows = L L', columns = M M': L N M' for standard normal N
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
        # precision = L L': covariance L^-T L^-1, mean covariance right
        L = np.linalg.cholesky(precision)
        inverse = np.linalg.inv(L)
        covariance = np.swapaxes(inverse, 1, 2) @ inverse
        log_det = -2 * np.log(np.diagonal(L, axis1=1, axis2=2)).sum()
        return np.einsum("mkl,ml->mk", covariance, right), covariance, float(log_det)
    # mean-field (Bishop 2006, 10.1.2): mean_k = (right_k - sum_{l != k} P_kl mean_l) / P_kk, variance 1 / P_kk
    mean, diagonal = start.copy(), np.diagonal(precision, axis1=1, axis2=2)
    for k in range(mean.shape[1]):
        from_others = np.einsum("ml,ml->m", precision[:, k], mean) - diagonal[:, k] * mean[:, k]
        mean[:, k] = (right[:, k] - from_others) / diagonal[:, k]
    covariance = np.eye(mean.shape[1]) / diagonal[:, :, None]
    return mean, covariance, -float(np.log(diagonal).sum())
