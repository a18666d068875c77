"""The regression psi = Phi B + E when one block of features is wide, as who-rated-what is, and the others are narrow.

The wide block is decomposed once. After that a change of precisions costs no more than a product with its M x k basis.
"""

from __future__ import annotations

from collections.abc import Sequence
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
        self._last: tuple[float, Floats, Floats] | None = None

    def solve(self, target: Floats, extra: Floats, tau: Floats, start: Floats) -> Floats:
        """Return B, shape (n, r); see `tuckergp.priors.regression.Regression.solve`."""
        # Woodbury: T^-1 e + T^-1 Phi' K^-1 (t - Phi T^-1 e)
        precision = np.repeat(tau, self.sizes)[:, None]
        shrunk = extra / precision
        right = target - np.asarray(self.features @ shrunk)
        Qt = product(self.Q.T, right)
        shrink, gram = self._of_wide(float(tau[self.wide]))
        if self.narrow:
            # K^-1 a = K_0^-1 (a - X w), w = (T_X + X'K_0^-1 X)^-1 X'K_0^-1 a
            weights = self._factor(gram, tau).solve(self.X.T @ right - self.QX.T @ (shrink * Qt))
            right = right - self.X @ weights
            Qt = Qt - self.QX @ weights
        # K_0^-1 a = a - Q diag(S / (S + tau_w)) Q'a
        dual_weights = right - product(self.Q, shrink * Qt)
        return np.asarray(shrunk + np.asarray(self.features.T @ dual_weights) / precision)

    def collapse(self, target: Floats) -> Collapsed:
        """Return the function tau -> (log det K, target' K^-1 target); see `Regression.collapse`."""
        Qt, Xt, tt = product(self.Q.T, target), self.X.T @ target, target.T @ target

        def evaluate(tau: Floats) -> tuple[float, Floats]:
            shrink, gram = self._of_wide(float(tau[self.wide]))
            # log |K_0| = sum log(1 + S / tau_w), t'K_0^-1 t = t't - t'Q diag(S / (S + tau_w)) Q't
            log_det = float(np.log1p(self.S / tau[self.wide]).sum())
            quadratic = tt - Qt.T @ (shrink * Qt)
            if self.narrow:
                # with c = X'K_0^-1 t: t'K^-1 t = t'K_0^-1 t - c'(T_X + X'K_0^-1 X)^-1 c,
                # log |K| = log |K_0| + log |T_X + X'K_0^-1 X| - log |T_X|
                cross, factor = Xt - self.QX.T @ (shrink * Qt), self._factor(gram, tau)
                quadratic = quadratic - cross.T @ factor.solve(cross)
                log_det += factor.log_det - float(np.log(self._narrow_tau(tau)).sum())
            return log_det, quadratic

        return evaluate

    def _of_wide(self, tau_w: float) -> tuple[Floats, Floats]:
        """I - K_0^-1 in the basis Q, as a column, and X'K_0^-1 X, for K_0 = I + Q S Q' / tau_w; the last are kept.

        Precisions of narrow blocks are tried with one tau_w, and each sweep begins with that of the sweep before.
        """
        last = self._last  # read once: another thread may renew it meanwhile
        if last is None or last[0] != tau_w:
            shrink = (self.S / (self.S + tau_w))[:, None]
            # X'X - X'Q diag(S / (S + tau_w)) Q'X; of a matrix with itself, BLAS computes one half
            weighted = np.sqrt(shrink) * self.QX
            last = self._last = tau_w, shrink, self.XX - weighted.T @ weighted
        return last[1:]

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
