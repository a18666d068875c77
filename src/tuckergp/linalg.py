"""Linear algebra with clear error messages.

The one safe Cholesky factorisation: no jitter where none is needed, otherwise increasing amounts up to a bound.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse
from scipy.linalg import lapack

from tuckergp.errors import InputError, NotPositiveDefinite

__all__ = [
    "NEGATIVE",
    "Factored",
    "Matrix",
    "cholesky_in_place",
    "inverse_in_place",
    "no_kernel",
    "normal_given_precision",
    "safe_cholesky",
    "solve_lower",
]

Floats: TypeAlias = npt.NDArray[np.float64]
Matrix: TypeAlias = Floats | sparse.csr_array

JITTERS = (0.0, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6)
"""What is added to the diagonal, relative to its mean, until the factorisation succeeds."""


NEGATIVE = 1e-6
"""Negative variances beyond this share of the largest are not rounding errors."""


def safe_cholesky(K: Floats, name: str) -> Floats:
    """Lower Cholesky factor of a symmetric positive definite matrix.

    Parameters
    ----------
    K : ndarray, shape (n, n)
    name : str
        What the message calls the matrix, as in ``the Gram matrix of SE(lengthscale=1.0)``.

    Returns
    -------
    L : ndarray, shape (n, n)
        ``L @ L.T`` equals K, plus at most 1e-6 of its mean diagonal on the diagonal.

    Examples
    --------
    >>> safe_cholesky(np.array([[4.0, 2.0], [2.0, 5.0]]), "an example")
    array([[2., 0.],
           [1., 2.]])
    """
    if not np.isfinite(K).all():
        raise _not_finite(name)
    scale = float(np.mean(np.diag(K))) if len(K) else 1.0
    for jitter in JITTERS:
        shifted = K if jitter == 0 else K + jitter * scale * np.eye(len(K))
        try:
            L: Floats = linalg.cholesky(shifted, lower=True, check_finite=False)
        except linalg.LinAlgError:
            continue
        return L
    raise _indefinite(name)


class Factored:
    """The Cholesky factor of a positive definite matrix, for solves and the determinant.

    LAPACK as it is: scipy's own wrappers take longer than the algebra of the small systems that every sweep solves.

    Parameters
    ----------
    matrix : ndarray, shape (n, n)
        The lower triangle is read.
    overwrite : bool
        The memory of ``matrix`` may be used for the factor.

    Examples
    --------
    >>> factor = Factored(np.array([[4.0, 0.0], [0.0, 2.0]]))
    >>> factor.solve(np.array([[1.0], [1.0]])).ravel(), round(factor.log_det, 6)
    (array([0.25, 0.5 ]), 2.079442)
    """

    def __init__(self, matrix: Floats, overwrite: bool = False) -> None:
        self.L, failed = lapack.dpotrf(matrix, lower=1, clean=0, overwrite_a=overwrite)
        # a number of the matrix that is not finite makes its place on the diagonal so
        if failed or not np.isfinite(np.diagonal(self.L).sum()):
            raise linalg.LinAlgError("The matrix is not positive definite, or not finite.")

    def solve(self, right: Floats) -> Floats:
        """The solution of the system, in the shape of the right-hand side (n, k)."""
        solution: Floats = lapack.dpotrs(self.L, right, lower=1)[0]
        return solution

    @property
    def log_det(self) -> float:
        """The logarithm of the determinant of the matrix."""
        return 2 * float(np.log(np.diag(self.L)).sum())


def solve_lower(L: Floats, right: Floats, transposed: bool = False) -> Floats:
    """L^-1 right, or L^-T right, for a lower triangular L (n, n) and a right-hand side (n, k)."""
    # L in C order is its transpose in Fortran order, which LAPACK reads in place
    solution: Floats = lapack.dtrtrs(L.T, right, lower=0, trans=int(not transposed))[0]
    return solution


def normal_given_precision(H: Floats, right: Floats, noise: Floats | float, name: str) -> Floats:
    """The mean of N(H^-1 right, H^-1), with noise that has its covariance; also where H is singular but for rounding.

    Parameters
    ----------
    H : ndarray, shape (n, n)
        The precision, of which the lower triangle is read. It is overwritten.
    right : ndarray, shape (n,)
    noise : ndarray, shape (n,), or 0
        Independent normal numbers; 0 gives the mean.
    name : str
        What messages call H.

    Examples
    --------
    >>> normal_given_precision(np.array([[4.0, 0.0], [0.0, 2.0]]), np.array([1.0, 1.0]), 0.0, "an example")
    array([0.25, 0.5 ])
    """
    # with a unit diagonal, jitter is as small beside each unknown as beside the others
    unit = np.diag(H) ** -0.5
    H *= unit[:, None]
    H *= unit
    # H = L L': L^-T (L^-1 right + noise) has covariance L^-T L^-1 = H^-1
    L = safe_cholesky(H, name)
    whitened = linalg.solve_triangular(L, unit * right, lower=True, check_finite=False) + noise
    return np.asarray(unit * linalg.solve_triangular(L, whitened, trans="T", lower=True, check_finite=False))


def cholesky_in_place(K: Floats, name: str) -> None:
    """`safe_cholesky` without a second matrix: the factor replaces the lower triangle of K.

    Parameters
    ----------
    K : ndarray, shape (n, n), in Fortran order
        Symmetric. Above the diagonal it is left as it was, so zero it there or do not read it.
    name : str
        What the message calls the matrix.
    """
    _require_fortran(K)
    diagonal = np.diag(K).copy()
    if not all(np.isfinite(column).all() for column in K.T):
        raise _not_finite(name)
    scale = float(np.mean(diagonal)) if len(K) else 1.0
    for jitter in JITTERS:
        if jitter:  # the failed attempt spoiled the lower triangle; the upper one still holds K
            for j in range(len(K)):
                K[j:, j] = K[j, j:]
        np.fill_diagonal(K, diagonal + jitter * scale)
        if lapack.dpotrf(K, lower=1, clean=0, overwrite_a=1)[1] == 0:
            return
    raise _indefinite(name)


def inverse_in_place(L: Floats) -> None:
    """Replace a Cholesky factor, the lower triangle of an array in Fortran order, by that of the inverse (L L')^-1."""
    _require_fortran(L)
    lapack.dpotri(L, lower=1, overwrite_c=1)


def _require_fortran(K: Floats) -> None:
    if K.dtype != np.float64 or not K.flags.f_contiguous:
        raise InputError("Work in place needs float64 numbers in Fortran order; use numpy.asfortranarray.")


def _not_finite(name: str) -> InputError:
    return InputError(f"The Cholesky factor of {name} does not exist: it holds NaN or infinity; check the inputs.")


def no_kernel(kernel: object) -> NotPositiveDefinite:
    """The error for something that is not positive semi-definite on some inputs."""
    return NotPositiveDefinite(
        f"{kernel!r} is no kernel on these inputs: its Gram matrix has negative eigenvalues beyond rounding. Use "
        "another, or add a multiple of Identity() to it."
    )


def _indefinite(name: str) -> NotPositiveDefinite:
    return NotPositiveDefinite(
        f"The Cholesky factor of {name} does not exist: it is not positive definite, even with {JITTERS[-1]:g} of its "
        "mean diagonal added; remove repeated inputs, shorten the lengthscale or use fewer features."
    )
