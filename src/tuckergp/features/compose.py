"""Features of composed kernels: blocks side by side for sums, products of all pairs for products, roots of scales.

`realise` follows the structure of a kernel down to its parts and chooses features for each; the features of the parts
are in the other files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np
from scipy import sparse

from tuckergp.data.columns import as_inputs
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.features.base import FeatureMap, Features, RandomState, hstack
from tuckergp.features.cholesky import Cholesky
from tuckergp.features.exact import Exact
from tuckergp.features.fourier import Fourier
from tuckergp.features.new import NewFeatures, side_by_side
from tuckergp.features.nystrom import Nystrom
from tuckergp.features.pivoted import pivoted_cholesky
from tuckergp.features.points import EXPLAINED, distinct_inputs
from tuckergp.kernels import Kernel, Product, Scaled, Sum
from tuckergp.random import mixed

__all__ = ["Concatenated", "Kronecker", "ScaledMap", "choose", "grouped", "realise", "rowwise_kronecker"]

FEW_ROWS = 2000
"""Up to here distinct inputs get Cholesky features by default, whatever their number."""

FEW_PIVOTS = 100
"""Beyond, where so many pivots explain this many of the inputs; more would cost more than random features."""

FEW_JOINT = 200
"""Up to here what features of a product leave out is correlated between inputs: each feature of the one meets all."""


def realise(
    kernel: Kernel,
    X: Any,
    features: FeatureMap | Sequence[FeatureMap | None] | None = None,
    random_state: RandomState = None,
) -> FeatureMap:
    """Fit features to any kernel, composed ones included.

    Parameters
    ----------
    kernel : Kernel
    X : Table or array, shape (n, p)
    features : FeatureMap, or a list of them, one for each term of the kernel, optional
        One map goes to every part of the kernel that it suits, or to the kernel as a whole where it suits none; the
        other parts, and None in a list, get what `choose` says. Descriptions are copied, never fitted.
    random_state : int, Generator or None

    Returns
    -------
    FeatureMap
        Fitted; its `blocks_` are the columns of each term.

    Examples
    --------
    >>> from tuckergp.kernels import SE, Identity
    >>> table = {"station": ["a", "b", "a"], "day": [0.0, 1.0, 2.0]}
    >>> features = realise(0.25 * Identity("station") + SE(1.0, "day"), table)
    >>> features.transform(table).shape, features.blocks_
    ((3, 5), [slice(0, 2, None), slice(2, 5, None)])
    """
    table, kernel = as_inputs(X), grouped(kernel)
    if features is None or isinstance(features, FeatureMap):
        spec = _plan(kernel, table, features)
    else:
        terms = kernel.terms()
        if len(features) != len(terms):
            raise InputError(f"There are {len(features)} feature maps for the {len(terms)} terms of {kernel!r}.")
        parts = [_plan(term, table, given) for term, given in zip(terms, features, strict=True)]
        spec = Concatenated(parts) if len(parts) > 1 else parts[0]
        kernel = kernel if len(parts) > 1 else terms[0]
    return spec.fit(table, kernel, random_state)


def choose(kernel: Kernel, X: Any) -> FeatureMap:
    """Choose features for a kernel that is not composed.

    Exact where there are exact ones; pivoted Cholesky for up to 2,000 distinct inputs, and for more where 100 pivots
    leave no more than a millionth of the variance unexplained, as those of a smooth kernel of one column do; otherwise
    Fourier for stationary kernels and Nystrom for others.

    Examples
    --------
    >>> from tuckergp.kernels import SE
    >>> choose(SE(1.0), np.arange(10.0)), choose(SE(1.0), np.arange(5000.0))
    (Cholesky(tolerance=1e-10), Fourier(n=100, pairs=True))
    >>> choose(SE(1.0), np.linspace(0, 10, 5000))
    Cholesky(tolerance=1e-06)
    """
    if Exact().suits(kernel):
        return Exact()
    inputs = distinct_inputs(as_inputs(X), kernel)
    if len(inputs) <= FEW_ROWS:
        return Cholesky()
    some = inputs.take(np.linspace(0, len(inputs) - 1, FEW_ROWS).astype(np.intp))
    if len(pivoted_cholesky(kernel, some, EXPLAINED, FEW_PIVOTS + 1)[1]) <= FEW_PIVOTS:
        return Cholesky(EXPLAINED)
    return Fourier() if kernel.stationary else Nystrom()


def grouped(kernel: Kernel) -> Kernel:
    """The same kernel, with the stationary factors of each product side by side.

    Together they are one stationary kernel, with far fewer features than the products of those of each; so how many
    there are does not depend on the order of the factors.

    Examples
    --------
    >>> from tuckergp.kernels import SE, Identity, Periodic
    >>> grouped(SE(5.0) * Identity("station") * Periodic(7.0))
    SE(lengthscale=5.0) * Periodic(period=7.0, lengthscale=1.0) * Identity('station')
    """
    if isinstance(kernel, Scaled):
        return Scaled(grouped(kernel.kernel), kernel.scale)
    if isinstance(kernel, Sum):
        return Sum(grouped(kernel.k1), grouped(kernel.k2))
    if not isinstance(kernel, Product) or kernel.stationary:
        return kernel
    factors = [grouped(factor) for factor in _factors(kernel)]
    stationary = [factor for factor in factors if factor.stationary]
    if len(stationary) < 2:
        return kernel
    together = reduce(Product, stationary)
    first = next(place for place, factor in enumerate(factors) if factor.stationary)
    others = [together if place == first else factor for place, factor in enumerate(factors)]
    return reduce(Product, [factor for factor in others if factor is together or not factor.stationary])


def _factors(kernel: Kernel) -> Iterator[Kernel]:
    if isinstance(kernel, Product):
        yield from _factors(kernel.k1)
        yield from _factors(kernel.k2)
    else:
        yield kernel


def _plan(kernel: Kernel, table: Table, features: FeatureMap | None) -> FeatureMap:
    """An unfitted feature map with the structure of the kernel."""
    if features is not None and not any(features.suits(inner) for inner in _parts(kernel)):
        return features.unfitted()  # for the kernel as a whole; raises in fit if that is not possible

    def follow(kernel: Kernel) -> FeatureMap:
        terms = kernel.terms()
        if len(terms) > 1:
            return Concatenated([follow(term) for term in terms])
        if isinstance(kernel, Scaled):
            return ScaledMap(follow(kernel.kernel))
        if isinstance(kernel, Product) and not kernel.stationary:
            return Kronecker(follow(kernel.k1), follow(kernel.k2))
        if features is not None and features.suits(kernel):
            return features.unfitted()
        return choose(kernel, table)

    return follow(kernel)


def _parts(kernel: Kernel) -> Iterator[Kernel]:
    """The parts that get features of their own; a product of stationary kernels is one stationary kernel."""
    if isinstance(kernel, Scaled):
        yield from _parts(kernel.kernel)
    elif isinstance(kernel, Sum) or (isinstance(kernel, Product) and not kernel.stationary):
        yield from _parts(kernel.k1)
        yield from _parts(kernel.k2)
    else:
        yield kernel


class _Composed(FeatureMap):
    def suits(self, kernel: Kernel) -> bool:
        return False


def _count(fitted: FeatureMap, *names: str) -> list[int]:
    """The number of features of parts of a map; -1 for those that it lacks."""
    return [getattr(getattr(fitted, name, None), "n_features_", -1) for name in names]


class ScaledMap(_Composed):
    """Features of a `Scaled` kernel: the square root of the scale times those of the inner kernel."""

    root_: float
    base_: FeatureMap

    def __init__(self, base: FeatureMap) -> None:
        self.base = base

    def fault(self) -> str | None:
        """It must have as many features as what it scales."""
        right = hasattr(self, "root_") and _count(self, "base_") == [self.n_features_]
        return None if right else "its features differ from what they scale"

    def _fit(self, table: Table, kernel: Kernel, rng: np.random.Generator) -> None:
        if not isinstance(kernel, Scaled):
            raise InputError(f"{kernel!r} is not a scaled kernel.")
        self.root_ = float(np.sqrt(kernel.variance()))
        self.base_ = self.base.unfitted().fit(table, kernel.kernel, rng)
        self.n_features_ = self.base_.n_features_
        self.feature_names_ = self.base_.feature_names_

    def _transform(self, table: Table) -> Features:
        return self.root_ * self.base_.transform(table)

    def _new_features(self, table: Table, joint: bool) -> NewFeatures | None:
        new = self.base_.new_features(table, joint)
        return None if new is None else new.scaled(self.root_)

    def _doubt(self, table: Table) -> str | None:
        return self.base_.doubt(table)


class Concatenated(_Composed):
    """Features of a sum: a block for each of its terms, side by side."""

    maps_: list[FeatureMap]

    def __init__(self, maps: Sequence[FeatureMap]) -> None:
        self.maps = maps

    def fault(self) -> str | None:
        """It must have the features of its terms."""
        counts = [getattr(fitted, "n_features_", -1) for fitted in getattr(self, "maps_", [])]
        return None if counts and sum(counts) == self.n_features_ else "its features differ from those of its terms"

    def _fit(self, table: Table, kernel: Kernel, rng: np.random.Generator) -> None:
        pairs = zip(self.maps, kernel.terms(), strict=True)
        self.maps_ = [spec.unfitted().fit(table, term, rng) for spec, term in pairs]
        self.n_features_ = sum(fitted.n_features_ for fitted in self.maps_)
        self.feature_names_ = [name for fitted in self.maps_ for name in fitted.feature_names_]

    @property
    def blocks_(self) -> list[slice]:
        """The columns of each term."""
        ends = np.cumsum([fitted.n_features_ for fitted in self.maps_]).tolist()
        return [slice(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)]

    def _transform(self, table: Table) -> Features:
        return hstack([fitted.transform(table) for fitted in self.maps_])

    def _new_features(self, table: Table, joint: bool) -> NewFeatures | None:
        parts = [fitted.new_features(table, joint) for fitted in self.maps_]
        return side_by_side([None if new is None else new.in_block(g) for g, new in enumerate(parts)])

    def _doubt(self, table: Table) -> str | None:
        return next(filter(None, (fitted.doubt(table) for fitted in self.maps_)), None)


class Kronecker(_Composed):
    """Features of a `Product`: in each row, every feature of the one times every feature of the other."""

    left_: FeatureMap
    right_: FeatureMap

    def __init__(self, left: FeatureMap, right: FeatureMap) -> None:
        self.left = left
        self.right = right

    def fault(self) -> str | None:
        """It must have the products of the features of its parts."""
        left, right = _count(self, "left_", "right_")
        return None if left * right == self.n_features_ else "its features differ from products of its parts"

    def _fit(self, table: Table, kernel: Kernel, rng: np.random.Generator) -> None:
        if not isinstance(kernel, Product):
            raise InputError(f"{kernel!r} is not a product of kernels.")
        self.left_ = self.left.unfitted().fit(table, kernel.k1, rng)
        self.right_ = self.right.unfitted().fit(table, kernel.k2, rng)
        self.n_features_ = self.left_.n_features_ * self.right_.n_features_

    def _transform(self, table: Table) -> Features:
        return rowwise_kronecker(self.left_.transform(table), self.right_.transform(table))

    def _new_features(self, table: Table, joint: bool) -> NewFeatures | None:
        # (k1 + c1) (k2 + c2) - k1 k2 = k1 c2 + c1 k2 + c1 c2, where c is what features leave out
        joint = joint and len(table) <= FEW_JOINT
        left, right = (fitted.new_features(table, joint) for fitted in (self.left_, self.right_))
        known = [_numbered(fitted.transform(table)) for fitted in (self.left_, self.right_)]
        return side_by_side([_product(known[0], right), _product(left, known[1]), _product(left, right)])

    def _doubt(self, table: Table) -> str | None:
        return self.left_.doubt(table) or self.right_.doubt(table)


def _numbered(features: Features) -> NewFeatures:
    """Known features as if they were new, with keys by their numbers."""
    count = features.shape[1]
    return NewFeatures(sparse.csr_array(features), np.arange(count, dtype=np.uint64), np.zeros(count, dtype=np.int64))


def _product(left: NewFeatures | None, right: NewFeatures | None) -> NewFeatures | None:
    """All products of new features of the same inputs; None where either has none."""
    if left is None or right is None:
        return None
    values = sparse.csr_array(rowwise_kronecker(left.values, right.values))
    # most pairs of columns have no row in common
    used, place = np.unique(values.indices, return_inverse=True)
    i, j = np.divmod(used, len(right.keys))
    compact = sparse.csr_array((values.data, place, values.indptr), shape=(values.shape[0], len(used)))
    return NewFeatures.of(compact, mixed(mixed(left.keys[i]) ^ right.keys[j]))


def rowwise_kronecker(A: Features, B: Features) -> Features:
    """Kronecker product of each row of A (n, p) with the same row of B (n, q), shape (n, p q); CSR if either is."""
    n, p, q = A.shape[0], A.shape[1], B.shape[1]
    if not sparse.issparse(A) and not sparse.issparse(B):
        return (np.asarray(A)[:, :, None] * np.asarray(B)[:, None, :]).reshape(n, p * q)
    a, b = sparse.csr_array(A), sparse.csr_array(B)
    in_a, in_b = np.diff(a.indptr), np.diff(b.indptr)
    # each entry of a meets all entries of b in its row: number them by (entry of a, place in b's row)
    meets = np.repeat(in_b, in_a)
    entry_a = np.repeat(np.arange(len(meets)), meets)
    place = np.arange(len(entry_a)) - np.repeat(np.cumsum(meets) - meets, meets)
    entry_b = np.repeat(b.indptr[:-1], in_a)[entry_a] + place
    columns = a.indices[entry_a].astype(np.int64) * q + b.indices[entry_b]
    indptr = np.concatenate([[0], np.cumsum(in_a.astype(np.int64) * in_b)])
    return sparse.csr_array((a.data[entry_a] * b.data[entry_b], columns, indptr), shape=(n, p * q))
