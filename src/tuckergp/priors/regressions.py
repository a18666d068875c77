"""Weights B given factors psi: the cheapest regression of psi on Phi, and its mean or a draw from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tuckergp.linalg import Matrix, solve_lower
from tuckergp.priors.nested import NestedRegression
from tuckergp.priors.regression import LARGEST_DENSE, Regression
from tuckergp.priors.spectral import SpectralRegression
from tuckergp.random import normals

__all__ = ["AnyRegression", "regression_of", "weights_given_factors"]

Floats = npt.NDArray[np.float64]
AnyRegression: TypeAlias = Regression | NestedRegression | SpectralRegression

# The largest block that is decomposed once and for all, and how narrow the others must be for it to pay.
LARGEST_SPECTRUM = 4_000
NARROW = 300


def regression_of(features: Matrix, blocks: Sequence[slice], nested: int | None = None) -> AnyRegression:
    """The regression of a mode's factors on its features (M, n), by the cheapest exact route.

    ``nested`` is the block that is one-hot in groups of rows, if there is one.
    """
    sizes = sorted(block.stop - block.start for block in blocks)
    if nested is not None:
        grouped = NestedRegression(features, blocks, nested)
        if grouped.unknowns <= LARGEST_DENSE:
            return grouped
    elif sizes and NARROW < min(sizes[-1], features.shape[0]) <= LARGEST_SPECTRUM and sum(sizes[:-1]) <= NARROW:
        return SpectralRegression(features, blocks)
    return Regression(features, blocks)


def weights_given_factors(
    regression: AnyRegression,
    psi: Floats,
    tau: Floats,
    start: Floats,
    precision: Floats | None = None,
    rng: np.random.Generator | None = None,
    noise: Floats | None = None,
) -> Floats:
    """Mean of p(B | psi), (n, r): minimises |psi - Phi B|^2 + sum_g tau_g |B_g|^2; with ``rng``, a draw.

    The draw is the same solve with a perturbed right-hand side: adding the noise of E to psi, and the prior's to the
    rest, gives the solution the covariance (Phi'Phi + T)^-1 kron Lambda^-1.

    Parameters
    ----------
    regression : AnyRegression
        Of this mode's features.
    psi : ndarray, shape (M, r)
    tau : ndarray, shape (blocks,)
        The diagonal of T, one number for each block: precision of rows of B relative to that of the rows of E.
    start : ndarray, shape (n, r)
        Where conjugate gradients start when the system is large.
    precision : ndarray, shape (r, r)
        Lambda; needed for a draw.
    noise : ndarray, shape (M, r), or None
        Standard normal numbers for the rows of psi; None draws them.
    """
    extra = np.zeros_like(start)
    if rng is not None and precision is not None:
        # right-hand side Phi'(psi + N_1) + T^1/2 N_2, rows of N_1 and N_2 ~ N(0, Lambda^-1): its covariance is
        # (Phi'Phi + T) kron Lambda^-1, that of the solution (Phi'Phi + T)^-1 kron Lambda^-1
        L = np.asarray(np.linalg.cholesky(precision), dtype=np.float64)
        psi = psi + coloured(L, normals(psi.shape, rng) if noise is None else noise)
        extra = np.sqrt(np.repeat(tau, regression.sizes))[:, None] * coloured(L, normals(start.shape, rng))
    return regression.solve(psi, extra, tau, start)


def coloured(L: Floats, noise: Floats) -> Floats:
    """Rows with covariance (L L')^-1 from standard normal ones, shape (M, r): n becomes L^-T n."""
    return solve_lower(L, noise.T, transposed=True).T
