"""Linear algebra that may fail, made to fail with a sentence.

The one safe Cholesky factorisation: no jitter where none is needed, a bounded ladder of it otherwise.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import linalg

from tuckergp.errors import InputError

__all__ = ["safe_cholesky"]

Floats: TypeAlias = npt.NDArray[np.float64]

JITTERS = (0.0, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6)
"""What is added to the diagonal, relative to its mean, until the factorisation succeeds."""


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
        raise InputError(f"The Cholesky factor of {name} does not exist: it holds NaN or infinity; check the inputs.")
    scale = float(np.mean(np.diag(K))) if len(K) else 1.0
    for jitter in JITTERS:
        shifted = K if jitter == 0 else K + jitter * scale * np.eye(len(K))
        try:
            L: Floats = linalg.cholesky(shifted, lower=True, check_finite=False)
        except linalg.LinAlgError:
            continue
        return L
    raise InputError(
        f"The Cholesky factor of {name} does not exist: it is not positive definite, even with {JITTERS[-1]:g} of its "
        "mean diagonal added; remove repeated inputs, shorten the lengthscale or use fewer features."
    )
