"""Features that reproduce a kernel exactly: unit vectors for Identity, a one for Constant, attributes for Linear.

The paper's "identity features" and side information. Everything that is not a finite inner product is elsewhere.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from tuckergp.data.columns import Encoder, distinct, joint_codes, keys_of, row_keys, row_names
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.features.base import FeatureMap, Features, hstack
from tuckergp.features.new import NewFeatures
from tuckergp.kernels import Constant, Cosine, Identity, Kernel, Linear

__all__ = ["Exact"]


class Exact(FeatureMap):
    """One-hot rows for Identity, ones for Constant, attributes for Linear, those divided by their length for Cosine.

    An Identity row or a Linear level that was not seen in `fit` has zeros, so that only the other terms count for its
    mean; `new_features` has a feature for it, whose weight has its prior.
    Numeric columns of Linear are taken as they are: standardise them outside.

    Attributes
    ----------
    feature_names_ : list of str
        Such as ``user_id=ann``, ``age``, ``genres=Action``.

    Examples
    --------
    >>> table = {"age": [30.0, 40.0], "genres": ["Action|Comedy", "Comedy"]}
    >>> features = Exact().fit(table, Linear())
    >>> features.feature_names_
    ['age', 'genres=Action', 'genres=Comedy']
    >>> features.transform(table).toarray()
    array([[30.,  1.,  1.],
           [40.,  0.,  1.]])
    """

    feature_names_: list[str]
    rows_: Table
    encoders_: list[Encoder]

    def suits(self, kernel: Kernel) -> bool:
        """Whether the kernel is Identity, Constant, Linear or Cosine."""
        return isinstance(kernel, Identity | Constant | Linear)

    def _fit(self, table: Table, kernel: Kernel, rng: np.random.Generator) -> None:
        if isinstance(kernel, Identity):
            selected = kernel.select(table)
            first, _ = distinct(selected)
            self.rows_ = selected.take(first)
            self.feature_names_ = row_names(self.rows_)
        elif isinstance(kernel, Linear):
            selected = kernel.select(table)
            self.encoders_ = [Encoder.learn(name, selected) for name in selected.columns]
            self.feature_names_ = [name for encoder in self.encoders_ for name in encoder.feature_names]
        elif isinstance(kernel, Constant):
            self.feature_names_ = ["constant"]
        else:
            raise InputError(
                f"{kernel!r} has no exact finite features; use Cholesky, Fourier or Nystrom, or realise for sums."
            )
        self.n_features_ = len(self.feature_names_)

    def fault(self) -> str | None:
        """It must have what its kernel needs, in as many features."""
        if isinstance(self.kernel_, Constant):
            count = 1
        elif isinstance(self.kernel_, Linear):
            count = sum(len(encoder.feature_names) for encoder in getattr(self, "encoders_", ()))
        else:
            rows = getattr(self, "rows_", None)
            count = len(rows) if rows is not None and rows.columns else -1
        return None if count == self.n_features_ else "its features do not fit to their kernel"

    def _transform(self, table: Table) -> Features:
        if isinstance(self.kernel_, Constant):
            return np.ones((len(table), 1))
        selected = self.kernel_.select(table)
        if isinstance(self.kernel_, Linear):
            features = hstack([encoder.transform(selected) for encoder in self.encoders_])
            return _unit_rows(features) if isinstance(self.kernel_, Cosine) else features
        return _one_hot(self.rows_, selected)

    def _new_features(self, table: Table, joint: bool) -> NewFeatures | None:
        if isinstance(self.kernel_, Constant):
            return None
        selected = self.kernel_.select(table)
        if isinstance(self.kernel_, Identity):
            new = np.flatnonzero(np.diff(_one_hot(self.rows_, selected).indptr) == 0)
            rows = selected.take(new)
            first, code = distinct(rows)
            levels = NewFeatures.of(sparse.eye_array(len(first), format="csr")[code], row_keys(rows.take(first)))
            return None if levels is None else levels.put(new, len(table))
        values, names = zip(*(encoder.new_levels(selected) for encoder in self.encoders_), strict=True)
        features = hstack(values)
        if isinstance(self.kernel_, Cosine):  # known features have length one already
            nothing = np.diff(sparse.csr_array(self._transform(table)).indptr) == 0
            features = _unit_rows(sparse.csr_array(sparse.diags_array(nothing.astype(np.float64)) @ features))
        return NewFeatures.of(features, keys_of([name for some in names for name in some]))


def _unit_rows(features: Features) -> Features:
    """Divide rows by their lengths; zero rows stay zero."""
    lengths = np.sqrt(np.asarray((features * features).sum(axis=1), dtype=np.float64)).ravel()
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    if sparse.issparse(features):
        return sparse.csr_array(sparse.diags_array(scale) @ features)
    return np.asarray(features) * scale[:, None]


def _one_hot(rows: Table, table: Table) -> sparse.csr_array:
    """Unit vectors e_i where a row of the table equals rows[i], zeros where it equals none, shape (n, len(rows))."""
    known, asked = joint_codes(rows, table)
    position = np.full(max(known.max(initial=0), asked.max(initial=0)) + 1, -1)
    position[known] = np.arange(len(rows))
    index = position[asked]
    known_rows = index >= 0
    indptr = np.concatenate([[0], np.cumsum(known_rows)])
    return sparse.csr_array((np.ones(indptr[-1]), index[known_rows], indptr), shape=(len(table), len(rows)))
