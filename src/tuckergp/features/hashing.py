"""Feature hashing (Weinberger et al., 2009): many features become n, and inner products stay unbiased.

Feature i goes to bucket h(i) with sign xi(i), as in the paper's appendix; the variance of an inner product is O(1/n).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from tuckergp.data.columns import Encoder, Kind, column_kind
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.features.base import FeatureMap, Features, hstack
from tuckergp.features.exact import Exact
from tuckergp.kernels import Constant, Cosine, Identity, Kernel, Linear

__all__ = ["Hashing", "hash_columns", "murmur"]


class Hashing(FeatureMap):
    """Exact features hashed by their names, so that inputs never seen have features too.

    Parameters
    ----------
    n : int
        Number of features.
    base : FeatureMap, optional
        Hash the columns of these features instead, for kernels without exact ones.

    Examples
    --------
    >>> from tuckergp.kernels import Identity
    >>> features = Hashing(n=16).fit({"user_id": ["ann", "bob"]}, Identity(), random_state=0)
    >>> features.gram({"user_id": ["carl"]})
    array([[1.]])
    """

    seed_: int
    base_: FeatureMap
    kinds_: dict[str, Kind]

    def __init__(self, n: int = 1024, base: FeatureMap | None = None) -> None:
        self.n = n
        self.base = base

    def suits(self, kernel: Kernel) -> bool:
        """Whether the kernel is Identity or Linear, or suits the base."""
        if self.base is not None:
            return self.base.suits(kernel)
        return isinstance(kernel, Identity | Linear) and not isinstance(kernel, Cosine)

    def _fit(self, table: Table, kernel: Kernel, rng: np.random.Generator) -> None:
        if self.n < 1:
            raise InputError(f"{self!r} must have at least one feature.")
        self.seed_ = int(rng.integers(2**31))
        if self.base is not None:
            self.base_ = self.base.unfitted().fit(table, kernel, rng)
        elif isinstance(kernel, Linear) and not isinstance(kernel, Cosine):
            # the kind is learned once: a later table without any "|" must not turn bags into categories
            self.kinds_ = {name: column_kind(values) for name, values in kernel.select(table).columns.items()}
        elif not isinstance(kernel, Identity | Constant):
            raise InputError(
                f"{kernel!r} has no exact features to hash; give a base, as in Hashing(n, base=Fourier())."
            )
        self.n_features_ = self.n

    def fault(self) -> str | None:
        """It must have what its kernel or its base needs."""
        plain = isinstance(self.kernel_, Identity | Constant)
        needed = ("seed_", *(("base_",) if self.base is not None else () if plain else ("kinds_",)))
        there = all(getattr(self, name, {}) != {} for name in needed)
        if self.n < 1 or self.n_features_ != self.n or not there:
            return "its hashed features lack something"
        return None if 0 <= self.seed_ < 2**32 else "its hashed features have no seed"

    def _transform(self, table: Table) -> Features:
        if self.base is not None:
            return hash_columns(self.base_.transform(table), self.n, self.seed_)
        # exact features with the levels of this table; the name of a level decides its bucket
        if isinstance(self.kernel_, Linear):
            encoders = [Encoder.learn(name, table, kind=kind) for name, kind in self.kinds_.items()]
            exact = hstack([encoder.transform(table) for encoder in encoders])
            names = [name for encoder in encoders for name in encoder.feature_names]
        else:
            local = Exact().fit(table, self.kernel_) if len(table) else None
            exact = local.transform(table) if local else sparse.csr_array((0, 0))
            names = local.feature_names_ if local else []
        hashes = [murmur(name.encode(), self.seed_) for name in names]
        return sparse.csr_array(sparse.csr_array(exact) @ _projection(np.array(hashes, dtype=np.int64), self.n))


def hash_columns(matrix: Features, n: int, seed: int) -> Features:
    """Hash the columns of any feature matrix.

    Parameters
    ----------
    matrix : ndarray or sparse array, shape (n_rows, n_features)
    n : int
        Number of hashed features.
    seed : int
        Chooses the hash function.

    Returns
    -------
    ndarray or csr_array, shape (n_rows, n)
        Dense if ``matrix`` is dense, else sparse.

    Examples
    --------
    >>> hash_columns(np.ones((5, 3000)), n=64, seed=0).shape
    (5, 64)
    """
    columns = np.arange(matrix.shape[1], dtype=np.int32)
    projection = _projection(np.asarray(murmur(columns, seed), dtype=np.int64), n)
    if sparse.issparse(matrix):
        return sparse.csr_array(matrix @ projection)
    return np.asarray(matrix @ projection)


def _projection(hashes: np.typing.NDArray[np.int64], n: int) -> sparse.csr_array:
    """The matrix with xi(i) at (i, h(i)), shape (len(hashes), n); sign and bucket take different bits."""
    signs = 1.0 - 2.0 * (hashes & 1)
    rows = np.arange(len(hashes) + 1)
    return sparse.csr_array((signs, (hashes >> 1) % n, rows), shape=(len(hashes), n))


def murmur(value: Any, seed: int) -> Any:
    """MurmurHash3 of bytes, or of each number of an array of int32, as numbers from 0 on."""
    from sklearn.utils import murmurhash3_32  # a second to load, and seldom needed

    return murmurhash3_32(value, seed=seed, positive=True)
