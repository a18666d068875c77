"""Prior `weights`: psi = Phi B and nothing else, B ~ MN(0, T^-1, Lambda^-1).

Random Fourier, Nystrom, Cholesky or hashed features. All rows share B, so its conditional is one joint solve in n r
dimensions, built from the statistics of the rows, not from the observations.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, cg

from tuckergp.design import Matrix

__all__ = ["weights_given_data"]

Floats = npt.NDArray[np.float64]

# Up to this many unknowns n r the joint system is formed and factored, beyond it solved by conjugate gradients.
LARGEST_DENSE = 4_000


def weights_given_data(
    features: Matrix, A: Floats, b: Floats, alpha: float, precision: Floats, start: Floats
) -> Floats:
    """Mean of p(B | data), (n, r).

    Solves alpha sum_m phi_m phi_m' B A_m + T B Lambda = alpha sum_m phi_m b_m', with T B Lambda = ``precision`` * B
    elementwise.

    Parameters
    ----------
    features : ndarray or csr_array, shape (M, n)
    A, b : ndarray, shapes (M, r, r) and (M, r)
        Statistics of the rows.
    alpha : float
        Noise precision.
    precision : ndarray, shape (n, r)
        Prior precision of every entry of B.
    start : ndarray, shape (n, r)
        Where conjugate gradients start when n r is large.
    """
    n, r = start.shape
    target = alpha * np.asarray(features.T @ b)
    if n * r <= LARGEST_DENSE:
        system = _joint_precision(features, alpha * A)
        system[np.diag_indices(n * r)] += precision.ravel()
        factor = linalg.cho_factor(system, lower=True, overwrite_a=True)
        return np.asarray(linalg.cho_solve(factor, target.ravel())).reshape(n, r)

    def product(v: Floats) -> Floats:
        B = v.reshape(n, r)
        heard = np.einsum("mk,mkl->ml", np.asarray(features @ B), A, optimize=True)
        return (alpha * np.asarray(features.T @ heard) + precision * B).ravel()

    squares = features.power(2) if sparse.issparse(features) else features**2
    diagonal = alpha * np.asarray(squares.T @ np.einsum("mkk->mk", A)) + precision
    size = (n * r, n * r)
    solution, _ = cg(
        LinearOperator(size, matvec=product, dtype=np.float64),
        target.ravel(),
        x0=start.ravel(),
        rtol=1e-8,
        maxiter=1_000,
        M=LinearOperator(size, matvec=lambda v: v / diagonal.ravel(), dtype=np.float64),
    )
    return np.asarray(solution).reshape(n, r)


def _joint_precision(features: Matrix, A: Floats) -> Floats:
    """Sum over rows of (phi phi') kron A, shape (n r, n r), one pair of ranks at a time."""
    n, r = features.shape[1], A.shape[1]
    system = np.empty((n, r, n, r))
    for k in range(r):
        for j in range(k + 1):
            part = features.T @ (features * A[:, k, j, None])
            part = part.toarray() if sparse.issparse(part) else part
            system[:, k, :, j] = part
            system[:, j, :, k] = part  # phi phi' and A_m are symmetric
    return system.reshape(n * r, n * r)
