"""Blocks: the features of one term of a mode's kernel, as columns among the features of the mode."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from tuckergp.data.tables import Table
from tuckergp.features import FeatureMap
from tuckergp.kernels import Cosine, Kernel
from tuckergp.linalg import Matrix

__all__ = ["Block"]

# The most numbers in the averages that replace missing features, over all rows of a table.
LARGEST_AVERAGES = 50_000_000


@dataclass(frozen=True)
class Block:
    """The features of one kernel term.

    Attributes
    ----------
    kernel : Kernel
    columns : slice
        Within the mode's features.
    map : FeatureMap
        Fitted.
    average : csr_array, shape (1, n), or None
        The mean of the training rows, each counted as often as it has features (so that the mean set of raters is that
        of the item of a mean rating), for inputs that have none of these features where every training row has some.
        Zeros would be far from all training rows: such features have length one and add to the mean of the factors.
        None for the set of a mode, of which more is known (`tuckergp.model.newcomers`), but in old files.
    """

    kernel: Kernel
    columns: slice
    map: FeatureMap
    average: sparse.csr_array | None = None

    @classmethod
    def of(cls, kernel: Kernel, start: int, fitted: FeatureMap, rows: Table) -> Block:
        """The block of a fitted map whose features begin at a column."""
        columns = slice(start, start + fitted.n_features_)
        if not isinstance(kernel.unscaled()[0], Cosine):
            return cls(kernel, columns, fitted)
        features = sparse.csr_array(fitted.transform(rows))
        counts = np.diff(features.indptr).astype(np.float64)
        if not (counts > 0).all():
            return cls(kernel, columns, fitted)
        mean = np.asarray(features.T @ (counts / counts.sum()))
        return cls(kernel, columns, fitted, sparse.csr_array(mean.reshape(1, -1)))

    def features(self, rows: Table) -> Matrix:
        """The features of inputs; the average for inputs that have none."""
        features = self.map.transform(rows)
        if self.average is None:
            return features
        features = sparse.csr_array(features)
        empty = np.flatnonzero(np.diff(features.indptr) == 0)
        if not len(empty):
            return features
        average = _largest(self.average, max(1, LARGEST_AVERAGES // len(empty)))
        place = sparse.csr_array(
            (np.ones(len(empty)), (empty, np.zeros(len(empty), dtype=np.intp))), shape=(features.shape[0], 1)
        )
        return sparse.csr_array(features + place @ average)


def _largest(row: sparse.csr_array, most: int) -> sparse.csr_array:
    """The ``most`` largest entries of a row, scaled so that the sum stays the same."""
    if row.nnz <= most:
        return row
    kept = np.argsort(-row.data, kind="stable")[:most]
    data = row.data[kept] * (row.data.sum() / row.data[kept].sum())
    return sparse.csr_array((data, (np.zeros(most, dtype=np.intp), row.indices[kept])), shape=row.shape)
