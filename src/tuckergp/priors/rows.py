"""Prior `rows`: psi_m ~ N(Phi_m B, Lambda^-1), independent rows around what the features explain.

The identity kernel plus side information, so PMF and the paper's collaborative filtering model. Rows are solved one by
one; B given psi is a regression on the M rows that never touches the observations.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, cg

from tuckergp.design import Matrix
from tuckergp.priors.evidence import Evidence

__all__ = ["factors_given_weights", "weights_given_factors"]

Floats = npt.NDArray[np.float64]

# Up to this many features the regression of psi on Phi is solved by Cholesky, beyond it by conjugate gradients.
LARGEST_DENSE = 3_000


def factors_given_weights(evidence: Evidence, mean: Floats, precision: Floats, noise: Floats | None = None) -> Floats:
    """Mean of p(psi | data, B), (M, r); with standard normal ``noise`` (M, r), a draw from it.

    Parameters
    ----------
    evidence : Evidence
    mean : ndarray, shape (M, r)
        Phi B.
    precision : ndarray, shape (r, r)
        Lambda, the precision of the rows of E.
    """
    return evidence.solve(mean @ precision, precision, np.zeros_like(mean) if noise is None else noise)


def weights_given_factors(features: Matrix, psi: Floats, ratio: Floats, start: Floats) -> Floats:
    """Mean of p(B | psi), (n, r): minimises |psi - Phi B|^2 + sum_j ratio_j |B_j|^2.

    Parameters
    ----------
    features : ndarray or csr_array, shape (M, n)
    psi : ndarray, shape (M, r)
    ratio : ndarray, shape (n,)
        Prior precision of each row of B relative to that of the rows of E.
    start : ndarray, shape (n, r)
        Where conjugate gradients start when n is large.
    """
    n = features.shape[1]
    if n == 0:
        return start
    target = np.asarray(features.T @ psi)
    if n <= LARGEST_DENSE:
        gram = features.T @ features
        gram = gram.toarray() if sparse.issparse(gram) else np.array(gram)
        gram[np.diag_indices(n)] += ratio
        return np.asarray(linalg.cho_solve(linalg.cho_factor(gram, lower=True, overwrite_a=True), target))
    operator = LinearOperator((n, n), matvec=lambda v: features.T @ (features @ v) + ratio * v, dtype=np.float64)
    columns = [cg(operator, target[:, k], x0=start[:, k], rtol=1e-8, maxiter=1_000)[0] for k in range(psi.shape[1])]
    return np.stack(columns, axis=1)
