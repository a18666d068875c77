"""Draws of what the user need not tune: the precision Lambda, the block precisions tau, the noise.

All are conjugate given the factors, except the spread of the rows' noise, which is drawn by a slice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

__all__ = [
    "PrecisionPrior",
    "block_precisions",
    "collapsed_precision",
    "log_slice",
    "row_noise",
    "row_noise_shape",
    "wishart",
]

Floats = npt.NDArray[np.float64]

# Beyond, tau and 1 / tau are rounding errors beside each other
MOST_LOG_TAU = 30.0


def wishart(dof: float, inverse_scale: Floats, rng: np.random.Generator) -> Floats:
    """Draw from the Wishart of mean dof times the inverse of ``inverse_scale``, (r, r), by Bartlett's decomposition."""
    r = len(inverse_scale)
    A = np.tril(rng.standard_normal((r, r)), -1)
    A[np.diag_indices(r)] = np.sqrt(rng.chisquare(dof - np.arange(r)))
    # inverse_scale = L L', so L^-T A has the right product
    X = np.linalg.solve(np.linalg.cholesky(inverse_scale).T, A)
    draw: Floats = X @ X.T
    return draw


@dataclass(frozen=True)
class PrecisionPrior:
    """Of Lambda (r, r), for rows with covariance Lambda^-1: Wishart, or one scale times the identity.

    Attributes
    ----------
    dof : float
        How many rows the prior counts for.
    variance : float
        Of an entry of a row, a priori.
    scalar : bool
        One scale, where a learned core has the shape.
    """

    dof: float
    variance: float
    scalar: bool

    def draw(self, spread: Floats, count: int, rng: np.random.Generator) -> Floats:
        """Draw Lambda given the sum of squares of ``count`` rows, (r, r)."""
        r = len(spread)
        if self.scalar:
            shape, rate = (self.dof + count) * r / 2, (self.dof * self.variance * r + np.trace(spread)) / 2
            return np.asarray(np.eye(r) * (rng.gamma(shape) / rate))
        dof = self.dof + r - 1  # proper for any positive self.dof
        return wishart(dof + count, dof * self.variance * np.eye(r) + spread, rng)

    def log_marginal(self, spread: Floats, count: int) -> float:
        """Log density of the rows with Lambda integrated out, up to what depends on neither."""
        r = len(spread)
        if self.scalar:
            return float(-(self.dof + count) * r / 2 * np.log(self.dof * self.variance * r + np.trace(spread)))
        dof = self.dof + r - 1
        return float(-(dof + count) / 2 * np.linalg.slogdet(dof * self.variance * np.eye(r) + spread)[1])


def block_precisions(
    B: Floats, precision: Floats, blocks: Sequence[slice], shape: float, rate: float, rng: np.random.Generator
) -> Floats:
    """Draw tau_g of every block given its weights: Gamma(shape + n_g r / 2, rate + tr(B_g Lambda B_g') / 2)."""
    r = B.shape[1]
    size = ((B @ precision) * B).sum(axis=1)
    return np.array(
        [rng.gamma(shape + (block.stop - block.start) * r / 2) / (rate + size[block].sum() / 2) for block in blocks]
    )


def collapsed_precision(
    tau: Floats, block: int, log_density: Callable[[Floats], float], shape: float, rate: float, rng: np.random.Generator
) -> Floats:
    """Draw tau of one block by a slice on its logarithm, given the log density of the factors without their weights.

    Given the weights a wide block's tau could hardly move: thousands of weights hold it where it was.
    """

    def log_posterior(log_tau: float) -> float:
        if abs(log_tau) > MOST_LOG_TAU:
            return -np.inf
        proposal = tau.copy()
        proposal[block] = np.exp(log_tau)
        return log_density(proposal) + shape * log_tau - rate * float(proposal[block])

    out = tau.copy()
    out[block] = np.exp(log_slice(log_posterior, float(np.log(tau[block])), 1.0, rng))
    return out


def row_noise(counts: Floats, squares: Floats, nu: float, rng: np.random.Generator) -> Floats:
    """Draw the noise factor of every row, Gamma((nu + N_m) / 2, (nu + S_m) / 2), S_m its weighted squared residuals."""
    draw: Floats = rng.gamma((nu + counts) / 2) / ((nu + squares) / 2)
    return draw


def row_noise_shape(factors: Floats, nu: float, rng: np.random.Generator, least: float = 4.0) -> float:
    """Draw nu given factors ~ Gamma(nu / 2, nu / 2), by a slice on log nu under the prior nu ~ exponential(mean 20)."""
    total_log, total, count = float(np.log(factors).sum()), float(factors.sum()), len(factors)

    def log_density(log_nu: float) -> float:
        nu = float(np.exp(log_nu))
        if nu < least:
            return -np.inf
        half = nu / 2
        fit = count * (half * np.log(half) - gammaln(half)) + (half - 1) * total_log - half * total
        return float(fit - nu / 20 + log_nu)

    return float(np.exp(log_slice(log_density, float(np.log(nu)), 0.5, rng)))


def log_slice(log_density: Callable[[float], float], x: float, width: float, rng: np.random.Generator) -> float:
    """One slice-sampling step with stepping out and shrinkage (Neal 2003)."""
    level = log_density(x) - rng.exponential()
    left = x - width * rng.random()
    right = left + width
    for _ in range(50):
        if log_density(left) <= level:
            break
        left -= width
    for _ in range(50):
        if log_density(right) <= level:
            break
        right += width
    while True:
        proposal = left + (right - left) * rng.random()
        if log_density(proposal) > level:
            return float(proposal)
        if proposal < x:
            left = proposal
        else:
            right = proposal
