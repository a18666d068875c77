"""Features that training did not have: what a kernel has at new inputs, and fitted features leave out.

Levels never seen, and the variance that pivots or Nystrom points do not explain. The data say nothing about the weights
of such features, so in each posterior draw they have a draw from their prior (`tuckergp.residuals.base.ModeDraws`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuckergp.compute.keyed import keyed_normals
from tuckergp.linalg import Matrix
from tuckergp.random import Keys, mixed

__all__ = ["NewFeatures", "side_by_side", "stacked"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class NewFeatures:
    """Features of some inputs that training did not have; with those it had, their inner products are the kernel.

    Attributes
    ----------
    values : csr_array, shape (M, q)
    keys : ndarray of uint64, shape (q,)
        What names the random numbers of their weights, so that a level has the same ones in every answer.
    block : ndarray of int64, shape (q,)
        The block of the mode's features, and so the prior of the weights, that each belongs to.
    """

    values: sparse.csr_array
    keys: Keys
    block: npt.NDArray[np.int64]

    @classmethod
    def of(cls, values: Matrix, keys: Keys) -> NewFeatures | None:
        """Features of the first block; None where there are none."""
        values = sparse.csr_array(values)
        return cls(values, keys, np.zeros(len(keys), dtype=np.int64)) if values.nnz else None

    @property
    def variance(self) -> Floats:
        """What they add to k(x, x) in each block, shape (blocks, M); blocks up to the last that has any."""
        squares = self.values.power(2)
        of_block = [squares[:, np.flatnonzero(self.block == g)].sum(axis=1) for g in range(self.block.max() + 1)]
        return np.asarray(of_block, dtype=np.float64)

    def take(self, rows: npt.NDArray[np.integer]) -> NewFeatures:
        """Those of some of the inputs."""
        return replace(self, values=self.values[rows])

    def only(self, g: int, rows: npt.NDArray[np.bool_]) -> NewFeatures | None:
        """Those of block g that some of the inputs have, ``rows`` (M,); None where they have none."""
        columns = np.flatnonzero(self.block == g)
        values = sparse.csr_array(sparse.diags_array(rows.astype(np.float64)) @ self.values[:, columns])
        values.eliminate_zeros()
        if not values.nnz:
            return None
        used = np.unique(values.indices)  # without those of other inputs, which else would add up
        return NewFeatures(sparse.csr_array(values[:, used]), self.keys[columns[used]], self.block[columns[used]])

    def scaled(self, root: float) -> NewFeatures:
        """Those of the kernel times the square of ``root``."""
        return replace(self, values=self.values * root)

    def factors(self, spread: Floats, tau: Floats, draws: Keys) -> Floats:
        """What they add to the factors psi in draws with these keys, (M, S, r): their weights are drawn from the prior.

        Weights of a feature in block g of draw s are N(0, spread_s / tau_sg), spread (S, r, r) and tau (S, blocks).
        """
        (count, _), S, r = self.values.shape, len(spread), spread.shape[1]
        used, place = np.unique(self.values.indices, return_inverse=True)
        values = sparse.csr_array((self.values.data, place, self.values.indptr), shape=(count, len(used)))
        normals = keyed_normals(self.keys[used], draws, r) / np.sqrt(tau.T[self.block[used]])[:, :, None]
        weights = np.einsum("qsk,sjk->qsj", normals, np.linalg.cholesky(spread))
        return np.asarray(values @ weights.reshape(len(used), S * r)).reshape(count, S, r)

    def put(self, rows: npt.NDArray[np.integer], count: int) -> NewFeatures:
        """The same for ``count`` inputs, of which these are ``rows``; the others have none."""
        place = sparse.csr_array((np.ones(len(rows)), (rows, np.arange(len(rows)))), shape=(count, len(rows)))
        return replace(self, values=sparse.csr_array(place @ self.values))

    def in_block(self, g: int) -> NewFeatures:
        """The same features as part of block g, with random numbers of their own there."""
        block = np.full(len(self.keys), g, dtype=np.int64)
        return NewFeatures(self.values, mixed(self.keys ^ mixed(block.astype(np.uint64))), block)


def side_by_side(parts: Sequence[NewFeatures | None]) -> NewFeatures | None:
    """All new features of the same inputs; None where there are none."""
    given = [part for part in parts if part is not None]
    if not given:
        return None
    values = sparse.csr_array(sparse.hstack([part.values for part in given], format="csr"))
    keys, block = (np.concatenate([getattr(part, name) for part in given]) for name in ("keys", "block"))
    return NewFeatures(values, keys, block)


def stacked(parts: Sequence[tuple[NewFeatures | None, int]]) -> NewFeatures | None:
    """New features of inputs one after the other, each part with its number of inputs."""
    ends = np.cumsum([count for _, count in parts])
    placed = [
        None if new is None else new.put(np.arange(end - count, end), int(ends[-1]))
        for (new, count), end in zip(parts, ends.tolist(), strict=True)
    ]
    return side_by_side(placed)
