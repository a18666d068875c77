"""GP regression in function space with one dense N x N array, for any Gram matrix.

The array first holds the Gram matrix, then its Cholesky factor; both are worked on in blocks of columns. Used by
`ExactGP` with the Gram matrix of a kernel, and by `FullRank` with that of features. Rasmussen and Williams (2006),
algorithm 2.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_solve, solve_triangular

from tuckergp import memory
from tuckergp.linalg import cholesky_in_place

__all__ = ["Moments", "Posterior", "blocks", "solve"]

Floats: TypeAlias = npt.NDArray[np.float64]
Columns: TypeAlias = Callable[[slice], Floats]
"""A slice of inputs to their columns of a Gram matrix, with one row for each training input."""
Part: TypeAlias = Callable[[slice, slice], Floats]
"""Slices of rows and of columns to those entries of a Gram matrix of training inputs."""

BLOCK = 256
"""Columns of a Gram matrix that are computed at a time."""


class Moments(NamedTuple):
    """Moments of f at n inputs: the mean, and the variances (n,) and covariances (n, n) if they were asked for."""

    mean: Floats
    variance: Floats | None
    covariance: Floats | None


class Posterior(NamedTuple):
    """The posterior of f for some hyperparameters.

    Attributes
    ----------
    L : ndarray, shape (N, N)
        In the lower triangle, the Cholesky factor of the Gram matrix with noise; what is above it is not read.
    alpha : ndarray, shape (N,)
        The inverse of that matrix times the targets.
    log_marginal_likelihood : float
    """

    L: Floats
    alpha: Floats
    log_marginal_likelihood: float

    def predict(self, cross: Columns, n: int, diagonal: Floats | None, gram: Floats | None) -> Moments:
        """Moments of f at n inputs from their covariances with the training inputs.

        Parameters
        ----------
        cross : callable
        n : int
        diagonal : ndarray, shape (n,), or None
            Prior variances, where posterior ones are wanted.
        gram : ndarray, shape (n, n), or None
            Prior covariances, where posterior ones are wanted.
        """
        mean = np.empty(n)
        variance = None if diagonal is None else diagonal.copy()
        explained = None if gram is None else np.empty((len(self.alpha), n))
        for columns in blocks(n):
            K = cross(columns)
            mean[columns] = K.T @ self.alpha  # alg. 2.1, line 4
            if variance is None and explained is None:
                continue
            V = solve_triangular(self.L, K, lower=True, check_finite=False)  # line 5
            if variance is not None:
                variance[columns] -= np.einsum("ij,ij->j", V, V)  # line 6
            if explained is not None:
                explained[:, columns] = V
        # K** - V'V
        covariance = None if gram is None or explained is None else gram - explained.T @ explained
        return Moments(mean, variance, covariance)


def blocks(n: int) -> list[slice]:
    """Cut n inputs into slices of at most `BLOCK`."""
    return memory.blocks(n, BLOCK)


def solve(gram: Part, noise: float | Floats, y: Floats) -> Posterior:
    """Solve for the posterior of f in one N x N array: Rasmussen and Williams (2006), algorithm 2.1.

    Parameters
    ----------
    gram : callable
        Called for entries on and below the diagonal alone.
    noise : float, or ndarray of shape (N,)
    y : ndarray, shape (N,)

    Examples
    --------
    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> solve(lambda rows, columns: K[rows, columns], 1.0, np.array([1.0, 0.0])).alpha.round(4)
    array([ 0.5333, -0.1333])
    """
    n = len(y)
    K = np.empty((n, n), order="F")
    for columns in blocks(n):
        below = gram(slice(columns.start, n), columns)
        K[columns.start :, columns] = below
        K[columns, columns.stop :] = below[columns.stop - columns.start :].T
    K[np.diag_indices(n)] += noise
    cholesky_in_place(K, "the Gram matrix with noise")  # alg. 2.1, line 2
    alpha: Floats = cho_solve((K, True), y, check_finite=False)  # line 3
    # line 7: -y'alpha / 2 - sum_i log L_ii - n / 2 log 2 pi
    evidence = -0.5 * y @ alpha - np.log(np.diag(K)).sum() - 0.5 * n * np.log(2 * np.pi)
    return Posterior(K, alpha, float(evidence))
