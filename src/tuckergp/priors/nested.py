"""The regression psi = Phi B + E when rows come in groups that have weights of their own, such as user-weeks of users.

Drawing the groups' weights and the weights of features that explain the groups in turn would mix slowly, so they are
solved together. Rows of a group differ by E and by a few features; everything else differs between groups alone, so
that the large system is one of groups, not of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuckergp.linalg import Factored, Matrix
from tuckergp.priors.regression import CHEAP, Collapsed, dense

__all__ = ["NestedRegression"]

Floats = npt.NDArray[np.float64]

# Up to this many entries a matrix is kept dense.
SMALL = 1e7


class NestedRegression:
    """Solves (Phi'Phi + T) B = Phi'target + extra where one block of Phi is one-hot in groups of rows.

    With Z the rows' groups, X the features that are constant within groups and F the others, the covariance of
    Phi B + E is I + Z C Z' + F T_F^-1 F' with C = z^2 / tau_Z I + X T_X^-1 X', z the entry of the one-hot block. The
    means of the groups are all that the part with C needs; F is added by Woodbury's identity.

    Parameters
    ----------
    features : ndarray or csr_array, shape (M, n)
    blocks : sequence of slice
        Columns that share a precision.
    nested : int
        Which block is the one-hot one. Every row must belong to a group.

    Attributes
    ----------
    unknowns : int
        Size of the largest dense system.
    cheap : bool
        Whether factoring the system costs little beside a pass over the data.
    """

    def __init__(self, features: Matrix, blocks: Sequence[slice], nested: int) -> None:
        self.features = features
        self.sizes = [block.stop - block.start for block in blocks]
        self.nested = nested
        columns: Any = sparse.csc_array(features) if sparse.issparse(features) else np.asarray(features)
        onehot = sparse.csr_array(columns[:, blocks[nested]])
        onehot.eliminate_zeros()
        self.group = onehot.indices
        self.order = np.argsort(self.group, kind="stable")
        self.counts = np.bincount(self.group, minlength=onehot.shape[1]).astype(np.float64)
        self.scale = float(onehot.data[0])
        first = np.zeros(onehot.shape[1], dtype=np.intp)
        first[self.group[::-1]] = np.arange(len(self.group))[::-1]
        self.between = [
            g for g, block in enumerate(blocks) if g != nested and _same_within(columns[:, block], first[self.group])
        ]
        self.within = [g for g in range(len(blocks)) if g != nested and g not in self.between]
        self.X = [sparse.csr_array(columns[:, blocks[g]])[first] for g in self.between]
        self._columns, self._blocks = columns, blocks
        wide = sum(x.shape[1] for x in self.X)
        self.dual = wide > len(self.counts)
        self.cheap = not self.dual and wide <= CHEAP
        self.unknowns = max(min(wide, len(self.counts)), sum(self.sizes[g] for g in self.within))

    @cached_property
    def F(self) -> Floats:
        """The features that differ within groups, dense."""
        blocks = (dense(self._columns[:, self._blocks[g]]) for g in self.within)
        return np.hstack([np.zeros((len(self.group), 0)), *blocks])

    @cached_property
    def stacked(self) -> Any:
        """Features that are constant within groups side by side, dense where that is small, for the primal system."""
        stacked: Any = sparse.hstack(self.X, format="csr")
        return dense(stacked) if stacked.shape[0] * stacked.shape[1] <= SMALL else stacked

    @cached_property
    def grams(self) -> list[Floats]:
        """X X' of every block that is constant within groups, for the dual system."""
        return [dense(x @ x.T) for x in self.X]

    def solve(self, target: Floats, extra: Floats, tau: Floats, start: Floats) -> Floats:
        """Return B, shape (n, r); see `tuckergp.priors.regression.Regression.solve`."""
        precision = np.repeat(tau, self.sizes)
        # Woodbury: T^-1 e + T^-1 Phi' K^-1 (t - Phi T^-1 e)
        shrunk = extra / precision[:, None]
        dual_weights, _ = self._solve(target - np.asarray(self.features @ shrunk), tau)
        return np.asarray(shrunk + np.asarray(self.features.T @ dual_weights) / precision[:, None])

    def collapse(self, target: Floats) -> Collapsed:
        """Return the function tau -> (log det K, target' K^-1 target); see `Regression.collapse`."""

        def evaluate(tau: Floats) -> tuple[float, Floats]:
            solved, log_det = self._solve(target, tau)
            return log_det, target.T @ solved

        return evaluate

    def _solve(self, right: Floats, tau: Floats) -> tuple[Floats, float]:
        """K^-1 right and log det K, for K = I + Phi T^-1 Phi'."""
        r = right.shape[1]
        inverse, log_det = self._between(tau)
        # K_0 = I + Z C Z', N the sizes of the groups, abar = N^-1 Z'a:
        # K_0^-1 a = a + Z (N^-1 (C + N^-1)^-1 abar - abar), log |K_0| = log |N| + log |C + N^-1|
        together = np.hstack([right, self.F])
        means = self._means(together)
        whitened = together + (inverse(means) / self.counts[:, None] - means)[self.group]
        log_det += float(np.log(self.counts).sum())
        if not self.within:
            return whitened, log_det
        # K = K_0 + F T_F^-1 F', Woodbury: K^-1 a = K_0^-1 a - K_0^-1 F (T_F + F'K_0^-1 F)^-1 F'K_0^-1 a,
        # log |K| = log |K_0| + log |T_F + F'K_0^-1 F| - log |T_F|
        right, F = whitened[:, :r], whitened[:, r:]
        system = self.F.T @ F
        precision = np.repeat(tau[self.within], [self.sizes[g] for g in self.within])
        system[np.diag_indices(len(system))] += precision
        factor = Factored(system)
        log_det += factor.log_det - float(np.log(precision).sum())
        return np.asarray(right - F @ factor.solve(self.F.T @ right)), log_det

    def _between(self, tau: Floats) -> tuple[Callable[[Floats], Floats], float]:
        """The function a -> (C + N^-1)^-1 a, with N the sizes of the groups, and the log determinant of C + N^-1."""
        # C + N^-1 = D + X T_X^-1 X' with the diagonal D = z^2 / tau_Z + N^-1
        diagonal = self.scale**2 / tau[self.nested] + 1 / self.counts
        if not self.X:
            return lambda a: a / diagonal[:, None], float(np.log(diagonal).sum())
        if self.dual:
            system = np.diag(diagonal)
            for gram, g in zip(self.grams, self.between, strict=True):
                system += gram / tau[g]
            factor = Factored(system, overwrite=True)
            return factor.solve, factor.log_det
        # Woodbury: D^-1 - D^-1 X (X'D^-1 X + T_X)^-1 X'D^-1, log |X'D^-1 X + T_X| + log |D| - log |T_X|
        X, precision = self.stacked, np.repeat(tau[self.between], [self.sizes[g] for g in self.between])
        weighted = X / diagonal[:, None] if isinstance(X, np.ndarray) else sparse.diags_array(1 / diagonal) @ X
        system = dense(X.T @ weighted)
        system[np.diag_indices(len(system))] += precision
        factor = Factored(system, overwrite=True)
        return (
            lambda a: np.asarray(a / diagonal[:, None] - weighted @ factor.solve(weighted.T @ a)),
            factor.log_det + float(np.log(diagonal).sum() - np.log(precision).sum()),
        )

    def _means(self, values: Floats) -> Floats:
        """Means of rows (M, c) over each group, N^-1 Z'values."""
        starts = np.concatenate([[0], np.cumsum(self.counts)[:-1]]).astype(np.intp)
        return np.asarray(np.add.reduceat(values[self.order], starts, axis=0) / self.counts[:, None])


def _same_within(columns: Any, first: npt.NDArray[np.intp]) -> bool:
    """Whether every row equals the first row of its group."""
    rows: Any = sparse.csr_array(columns)
    return bool(abs(rows - rows[first]).sum() == 0)
