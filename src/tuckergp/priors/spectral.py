"""The regression psi = Phi B + E when one block of features is wide, as who-rated-what is, and the others are narrow.

The wide block is decomposed once. After that a change of precisions costs no more than a product with its M x k basis.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuckergp.compute.products import product
from tuckergp.linalg import Factored, Matrix
from tuckergp.priors.regression import Collapsed, dense

__all__ = ["SpectralRegression"]

Floats = npt.NDArray[np.float64]

# Eigenvalues below this share of the largest are rounding errors
RELATIVE_ZERO = 1e-9


class SpectralRegression:
    """Solves (Phi'Phi + T) B = Phi'target + extra for any diagonal T.

    In the dual: the covariance of Phi B + E is K = I + Q S Q' / tau_w + X T_X^-1 X', with Q S Q' the decomposition of
    the wide block and X the narrow blocks, which are added by Woodbury's identity.

    Parameters
    ----------
    features : ndarray or csr_array, shape (M, n)
    blocks : sequence of slice
        Columns that share a precision.
    """

    cheap = True

    def __init__(self, features: Matrix, blocks: Sequence[slice]) -> None:
        self.features = features
        self.sizes = [block.stop - block.start for block in blocks]
        self.wide = int(np.argmax(self.sizes))
        columns: Any = sparse.csc_array(features) if sparse.issparse(features) else np.asarray(features)
        self.Q, self.S = _decompose(columns[:, blocks[self.wide]])
        self.narrow = [g for g in range(len(blocks)) if g != self.wide]
        narrow = [dense(columns[:, blocks[g]]) for g in self.narrow]
        self.X = np.hstack([np.zeros((features.shape[0], 0)), *narrow])
        self.QX = self.Q.T @ self.X
        self.XX = self.X.T @ self.X

    def solve(self, target: Floats, extra: Floats, tau: Floats, start: Floats) -> Floats:
        """Return B, shape (n, r); see `tuckergp.priors.regression.Regression.solve`."""
        # Woodbury: T^-1 e + T^-1 Phi' K^-1 (t - Phi T^-1 e)
        precision = np.repeat(tau, self.sizes)[:, None]
        shrunk = extra / precision
        right = target - np.asarray(self.features @ shrunk)
        Qt = product(self.Q.T, right)
        shrink = self._shrink(tau[self.wide])
        if self.narrow:
            # K^-1 a = K_0^-1 (a - X w), w = (T_X + X'K_0^-1 X)^-1 X'K_0^-1 a
            factor = self._factor(self._narrow_gram(shrink), tau)
            weights = factor.solve(self.X.T @ right - self.QX.T @ (shrink * Qt))
            right = right - self.X @ weights
            Qt = Qt - self.QX @ weights
        # K_0^-1 a = a - Q diag(S / (S + tau_w)) Q'a
        dual_weights = right - product(self.Q, shrink * Qt)
        return np.asarray(shrunk + np.asarray(self.features.T @ dual_weights) / precision)

    def collapse(self, target: Floats) -> Collapsed:
        """Return the function tau -> (log det K, target' K^-1 target); see `Regression.collapse`."""
        Qt, Xt, tt = product(self.Q.T, target), self.X.T @ target, target.T @ target

        @lru_cache(maxsize=1)  # the precisions of narrow blocks are tried one by one with the same tau_w
        def of_wide(tau_w: float) -> tuple[float, Floats, Floats, Floats]:
            shrink = self._shrink(tau_w)
            # log |K_0| = sum log(1 + S / tau_w), t'K_0^-1 t = t't - t'Q diag(S / (S + tau_w)) Q't
            log_det, quadratic = float(np.log1p(self.S / tau_w).sum()), tt - Qt.T @ (shrink * Qt)
            # c = X'K_0^-1 t
            return log_det, quadratic, Xt - self.QX.T @ (shrink * Qt), self._narrow_gram(shrink)

        def evaluate(tau: Floats) -> tuple[float, Floats]:
            log_det, quadratic, cross, gram = of_wide(float(tau[self.wide]))
            if self.narrow:
                # t'K^-1 t = t'K_0^-1 t - c'(T_X + X'K_0^-1 X)^-1 c,
                # log |K| = log |K_0| + log |T_X + X'K_0^-1 X| - log |T_X|
                factor = self._factor(gram, tau)
                quadratic = quadratic - cross.T @ factor.solve(cross)
                log_det += factor.log_det - float(np.log(self._narrow_tau(tau)).sum())
            return log_det, quadratic

        return evaluate

    def _shrink(self, tau_w: float) -> Floats:
        """I - K_0^-1 in the basis Q, K_0 = I + Q S Q' / tau_w, as a column."""
        return (self.S / (self.S + tau_w))[:, None]

    def _narrow_gram(self, shrink: Floats) -> Floats:
        """X'K_0^-1 X = X'X - X'Q diag(S / (S + tau_w)) Q'X."""
        weighted = np.sqrt(shrink) * self.QX
        return self.XX - weighted.T @ weighted  # of a matrix with itself, BLAS computes one half

    def _factor(self, gram: Floats, tau: Floats) -> Factored:
        """The Cholesky factor of T_X + X'K_0^-1 X."""
        system = gram.copy()
        system[np.diag_indices(len(system))] += self._narrow_tau(tau)
        return Factored(system)

    def _narrow_tau(self, tau: Floats) -> Floats:
        return np.repeat(tau[self.narrow], [self.sizes[g] for g in self.narrow])


def _decompose(block: Any) -> tuple[Floats, Floats]:
    """Q (M, k) with orthonormal columns and S (k,) > 0 such that block block' = Q diag(S) Q'."""
    rows, columns = block.shape
    if rows <= columns:
        S, Q = np.linalg.eigh(dense(block @ block.T))
        keep = RELATIVE_ZERO * max(S[-1], 0.0) < S
        return np.ascontiguousarray(Q[:, keep]), S[keep]
    # block'block = V S V', so Q = block V S^-1/2
    S, V = np.linalg.eigh(dense(block.T @ block))
    keep = RELATIVE_ZERO * max(S[-1], 0.0) < S
    return np.asarray(block @ (V[:, keep] / np.sqrt(S[keep]))), S[keep]
