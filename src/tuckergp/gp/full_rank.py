"""`FullRank`: the weight-space model without the Tucker step, the paper's full-rank model, in closed form.

y = Phi w + noise, w ~ N(0, scale I), where a row of Phi is the Kronecker product of the modes' features (P of them).
The posterior is conjugate: a P x P system where P <= N (primal), the N x N system of the Gram matrix otherwise (dual).
"""

from __future__ import annotations

from functools import reduce
from typing import Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_solve, solve_triangular
from sklearn.utils.validation import check_is_fitted

from tuckergp.features.compose import rowwise_kronecker
from tuckergp.gp.base import GPEstimator, check_asked
from tuckergp.gp.dense import Moments, Posterior, blocks, solve
from tuckergp.gp.modes import Modes, as_modes
from tuckergp.linalg import Matrix, cholesky_in_place
from tuckergp.model.design import Design
from tuckergp.random import seed_of, stream

__all__ = ["FullRank"]

Floats: TypeAlias = npt.NDArray[np.float64]


class Primal(NamedTuple):
    """The posterior of the weights, N(mean, noise (L L')^-1).

    Attributes
    ----------
    L : ndarray, shape (P, P)
        In the lower triangle, the Cholesky factor of Phi'Phi + noise / scale.
    mean : ndarray, shape (P,)
    log_marginal_likelihood : float
    """

    L: Floats
    mean: Floats
    log_marginal_likelihood: float


class FullRank(GPEstimator):
    """Bayesian linear regression on the Kronecker products of the modes' features.

    With exact features (Cholesky, on the observed values) it is the Gaussian process; with random features it
    is what the Tucker model replaces by a low rank.

    Parameters
    ----------
    modes : Kernel, list of Mode, or None
        As in `ExactGP`, with the feature maps of `TuckerGPRegressor`; a Matern on a line gets features here.
    scale : float
        Prior variance of a weight.
    noise : float
        Variance of the noise; with ``normalize_y``, as a share of the variance of y.
    space : {"auto", "primal", "dual"}
        Solve for P weights or for N values; ``"auto"`` takes the smaller.
    normalize_y : bool
        Standardise the targets inside.
    random_state : int, Generator or None
        For random features.

    Attributes
    ----------
    modes_ : tuple of FittedMode
    n_weights_ : int
        P, the product of the numbers of features.
    space_ : {"primal", "dual"}
    log_marginal_likelihood_ : float
        Of the standardised targets.
    n_features_in_ : int

    Examples
    --------
    >>> from tuckergp import Mode
    >>> from tuckergp.kernels import SE
    >>> X = np.stack(np.meshgrid(np.arange(5.0), np.arange(4.0)), axis=-1).reshape(-1, 2)
    >>> y = np.sin(X[:, 0]) * X[:, 1]
    >>> model = FullRank([Mode("x0", SE(1.0)), Mode("x1", SE(2.0))], noise=0.01).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    """

    def __init__(
        self,
        modes: Modes = None,
        scale: float = 1.0,
        noise: float = 0.1,
        space: Literal["auto", "primal", "dual"] = "auto",
        normalize_y: bool = True,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.modes = modes
        self.scale = scale
        self.noise = noise
        self.space = space
        self.normalize_y = normalize_y
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the posterior of the weights.

        Parameters
        ----------
        X : array of shape (N, p), data frame, or path to a CSV or Parquet file
        y : array of shape (N,)
        """
        table, target = self._read_data(X, y)
        modes = as_modes(self.modes, table)
        design, self.modes_ = Design.fit(
            modes, table, None, stream(seed_of(self.random_state), 1, 1), any_residual=False
        )
        self.shape_ = tuple(mode.n_features for mode in design.modes)
        self.n_weights_ = int(np.prod(self.shape_, dtype=np.float64))
        smaller: Literal["primal", "dual"] = "primal" if self.n_weights_ <= len(table) else "dual"
        self.space_ = smaller if self.space == "auto" else self.space
        self._design = design
        self._posterior: Primal | Posterior
        if self.space_ == "primal":
            self._posterior = _solve_primal(design, target, self.noise / self.scale, self.noise)
        else:
            self._posterior = solve(
                lambda rows, columns: self.scale * _gram(design, design, rows, columns), self.noise, target
            )
        self.log_marginal_likelihood_ = self._posterior.log_marginal_likelihood
        return self

    def predict(
        self, X: Any, return_std: bool = False, return_cov: bool = False, include_noise: bool = True
    ) -> Floats | tuple[Floats, Floats]:
        """Predict the targets at inputs X.

        Parameters
        ----------
        X : as in `fit`
        return_std, return_cov : bool
            Also return standard deviations, shape (n,), or the covariance matrix, shape (n, n).
        include_noise : bool
            Those of new observations; False for those of f.
        """
        check_is_fitted(self)
        check_asked(return_std, return_cov, include_noise)
        design = Design.transform(self.modes_, self._read(X, reset=False))
        if isinstance(self._posterior, Primal):
            moments = _predict_primal(self._posterior, design, self.noise, return_std, return_cov)
        else:
            n, everything = design.n_observations, slice(0, design.n_observations)
            seen = slice(0, self._design.n_observations)
            moments = self._posterior.predict(
                lambda columns: self.scale * _gram(self._design, design, seen, columns),
                n,
                self.scale * _squared_lengths(design) if return_std else None,
                self.scale * _gram(design, design, everything, everything) if return_cov else None,
            )
        return self._answer(moments, self.noise if include_noise else 0.0)

    def weights(self) -> Floats:
        """The posterior mean of the weights as a tensor, shape (n_1, ..., n_D), for standardised targets."""
        check_is_fitted(self)
        if isinstance(self._posterior, Primal):
            return self._posterior.mean.reshape(self.shape_)
        total = np.zeros(self.n_weights_)
        for rows in blocks(self._design.n_observations):
            total += _features(self._design, rows).T @ self._posterior.alpha[rows]
        return self.scale * total.reshape(self.shape_)


def _features(design: Design, rows: slice) -> Floats:
    """The features Phi of some observations, shape (n, P)."""
    of_modes: list[Matrix] = [mode.table[design.index[rows, d]] for d, mode in enumerate(design.modes)]
    return _dense(reduce(rowwise_kronecker, of_modes))


def _gram(left: Design, right: Design, rows: slice, columns: slice) -> Floats:
    """Phi Phi' between some observations of one design and of another, as a product over modes, without Phi."""
    K = np.ones((rows.stop - rows.start, columns.stop - columns.start))
    for d, (mine, other) in enumerate(zip(left.modes, right.modes, strict=True)):
        used, place = np.unique(right.index[columns, d], return_inverse=True)
        K *= _dense(mine.table @ other.table[used].T)[np.ix_(left.index[rows, d], place)]
    return K


def _squared_lengths(design: Design) -> Floats:
    """The squared length |phi|^2 of the features of every observation, shape (N,)."""
    lengths = np.ones(design.n_observations)
    for d, mode in enumerate(design.modes):
        lengths *= np.asarray((mode.table * mode.table).sum(axis=1), dtype=np.float64).ravel()[design.index[:, d]]
    return lengths


def _dense(matrix: Any) -> Floats:
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix)


def _solve_primal(design: Design, y: Floats, ridge: float, noise: float) -> Primal:
    n, p = design.n_observations, int(np.prod([mode.n_features for mode in design.modes]))
    # A = Phi'Phi + ridge I, mean = A^-1 Phi'y
    A, b = np.zeros((p, p), order="F"), np.zeros(p)
    for rows in blocks(n):
        phi = _features(design, rows)
        A += (phi.T @ phi).T  # symmetric; in Fortran order
        b += phi.T @ y[rows]
    A[np.diag_indices(p)] += ridge
    cholesky_in_place(A, "the precision of the weights")
    mean: Floats = cho_solve((A, True), b, check_finite=False)
    misfit = sum(float(np.sum((y[rows] - _features(design, rows) @ mean) ** 2)) for rows in blocks(n))
    # |K + noise I| = noise^N |A| / ridge^P, y'(K + noise I)^-1 y = (|y - Phi mean|^2 + ridge |mean|^2) / noise
    log_determinant = n * np.log(noise) - p * np.log(ridge) + 2 * np.log(np.diag(A)).sum()
    cost = (misfit + ridge * mean @ mean) / noise
    return Primal(A, mean, float(-0.5 * (cost + log_determinant + n * np.log(2 * np.pi))))


def _predict_primal(posterior: Primal, design: Design, noise: float, std: bool, cov: bool) -> Moments:
    n = design.n_observations
    mean, variance = np.empty(n), np.empty(n)
    halves = np.empty((len(posterior.mean), n)) if cov else None
    for rows in blocks(n):
        phi = _features(design, rows)
        mean[rows] = phi @ posterior.mean
        if std or cov:
            # noise phi'A^-1 phi = noise |L^-1 phi|^2
            V = solve_triangular(posterior.L, phi.T, lower=True, check_finite=False)
            variance[rows] = noise * np.einsum("ij,ij->j", V, V)
            if halves is not None:
                halves[:, rows] = V
    covariance = None if halves is None else noise * (halves.T @ halves)
    return Moments(mean, variance if std else None, covariance)
