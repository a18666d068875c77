"""Prior `weights`: psi = Phi B and nothing else, B ~ MN(0, T^-1, Lambda^-1).

Random Fourier, Nystrom, Cholesky or hashed features. All rows share B, so its conditional is one joint solve in n r
dimensions, built from the statistics of the rows, not from the observations.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg

from tuckergp.errors import InputError
from tuckergp.linalg import Matrix, normal_given_precision
from tuckergp.random import normals

__all__ = ["joint_precision", "weights_given_data"]

Floats = npt.NDArray[np.float64]

# Up to this many unknowns n r the joint system is formed and factored, beyond it solved by conjugate gradients.
LARGEST_DENSE = 4_000
# How many rows are summed over at once: their features stay in the cache.
ROWS = 2_048
TOLERANCE, ITERATIONS = 1e-8, 2_000


def weights_given_data(
    features: Matrix,
    A: Floats,
    b: Floats,
    tau: Floats,
    precision: Floats,
    start: Floats,
    rng: np.random.Generator | None = None,
    noise: float = 1.0,
) -> Floats:
    """Mean of p(B | data), (n, r); with ``rng``, a draw, its distance from the mean times ``noise``.

    Solves sum_m phi_m phi_m' B A_m + T B Lambda = sum_m phi_m b_m'. Conjugate gradients draw by perturbing the
    right-hand side with noise whose covariance is the system itself, which is exact at convergence.

    Parameters
    ----------
    features : ndarray or csr_array, shape (M, n)
    A, b : ndarray, shapes (M, r, r) and (M, r)
        Statistics of the rows, noise precision included.
    tau : ndarray, shape (n,)
        The diagonal of T.
    precision : ndarray, shape (r, r)
        Lambda.
    start : ndarray, shape (n, r)
        Where conjugate gradients start when n r is large.
    """
    n, r = start.shape
    target = np.asarray(features.T @ b)
    if n * r <= LARGEST_DENSE:
        # column by column, as in `joint_precision`
        normal = 0.0 if rng is None else noise * rng.standard_normal(n * r)
        system = joint_precision(features, A, tau, precision)
        B = normal_given_precision(system, target.T.ravel(), normal, "the precision of the weights")
        return np.ascontiguousarray(B.reshape(r, n).T)
    if rng is not None:
        target = target + noise * _system_noise(features, A, tau, precision, rng)
    return _iterate(features, A, target, tau, precision, start)


def joint_precision(features: Matrix, A: Floats, tau: Floats, precision: Floats) -> Floats:
    """Precision of B given the data, Lambda kron T + sum_m A_m kron (phi_m phi_m'), shape (r n, r n).

    Blocks of pairs of ranks (k, j) are filled for j <= k alone.
    """
    n, r = features.shape[1], A.shape[1]
    system, each = np.zeros((r, n, r, n)), np.arange(n)
    for first in range(0, len(A), ROWS):
        phi, of_rows = features[first : first + ROWS], A[first : first + ROWS]
        for k in range(r):
            for j in range(k + 1):
                # block (k, j): sum_m A_m[k, j] phi_m phi_m' + Lambda[k, j] T
                gram = phi.T @ (phi * of_rows[:, k, j, None])
                system[k, :, j] += gram.toarray() if sparse.issparse(gram) else gram
    for k in range(r):
        for j in range(k + 1):
            system[k, each, j, each] += precision[k, j] * tau
    return system.reshape(n * r, n * r)


def _system_noise(features: Matrix, A: Floats, tau: Floats, precision: Floats, rng: np.random.Generator) -> Floats:
    """Noise (n, r) with the covariance of the system: sum of (phi phi') kron A_m, plus T kron Lambda."""
    values, vectors = np.linalg.eigh(A)  # A_m may be singular: rows with few observations
    # sum_m phi_m (A_m^1/2 n_m)' + T^1/2 N L', Lambda = L L'
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    of_rows = np.einsum("mkl,ml->mk", roots, normals(A.shape[:2], rng))
    prior = rng.standard_normal((len(tau), len(precision))) @ np.linalg.cholesky(precision).T
    noise: Floats = np.asarray(features.T @ of_rows) + np.sqrt(tau)[:, None] * prior
    return noise


def _iterate(features: Matrix, A: Floats, target: Floats, tau: Floats, precision: Floats, start: Floats) -> Floats:
    """Solve sum_m phi_m phi_m' B A_m + T B Lambda = target by conjugate gradients, preconditioned by the diagonal."""
    n, r = start.shape

    def product(v: Floats) -> Floats:
        # sum_m phi_m (A_m B'phi_m)' + T B Lambda
        B = v.reshape(n, r)
        of_rows = np.einsum("mk,mkl->ml", np.asarray(features @ B), A, optimize=True)
        return (np.asarray(features.T @ of_rows) + tau[:, None] * (B @ precision)).ravel()

    squares = features.power(2) if sparse.issparse(features) else features**2
    diagonal = np.asarray(squares.T @ np.einsum("mkk->mk", A)) + tau[:, None] * np.diag(precision)
    size = (n * r, n * r)
    solution, failed = cg(
        LinearOperator(size, matvec=product, dtype=np.float64),
        target.ravel(),
        x0=start.ravel(),
        rtol=TOLERANCE,
        maxiter=ITERATIONS,
        M=LinearOperator(size, matvec=lambda v: v / diagonal.ravel(), dtype=np.float64),
    )
    if failed:
        raise InputError(
            f"Conjugate gradients did not solve for {n} x {r} weights in {ITERATIONS} steps; use fewer features, or "
            f"an Identity term beside them."
        )
    return np.asarray(solution).reshape(n, r)
