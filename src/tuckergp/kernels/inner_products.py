"""Kernels that are inner products of what columns hold: equal values, a constant, attributes, attributes of length one.

Their features are exact (`tuckergp.features.Exact`), and they have no numbers to learn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuckergp.data.columns import Encoder, joint_codes
from tuckergp.data.tables import Table
from tuckergp.kernels.algebra import Kernel

__all__ = ["Constant", "Cosine", "Identity", "Linear"]

Floats: TypeAlias = npt.NDArray[np.float64]


class _Named(Kernel):
    """A kernel whose only parameters are the names of columns."""

    columns: Sequence[str]

    def __init__(self, *columns: str | Sequence[str]) -> None:
        one_list = len(columns) == 1 and not isinstance(columns[0], str)
        self.columns = tuple(columns[0] if one_list else columns)  # type: ignore[arg-type]

    def __sklearn_clone__(self) -> Self:
        return type(self)(*self.columns)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.columns))})"


class Identity(_Named):
    """One where two rows are equal, zero elsewhere; missing equals missing.

    Parameters
    ----------
    *columns : str, or one list of str
        The columns that must agree; none for all.

    Examples
    --------
    >>> Identity()(["ann", "bob"], ["bob"])
    array([[0.],
           [1.]])
    """

    def _gram(self, X: Table, Y: Table) -> Floats:
        x, y = joint_codes(self.select(X), self.select(Y))
        return np.asarray(x[:, None] == y, dtype=np.float64)


class Constant(Kernel):
    """One everywhere: a mean that all inputs share.

    Examples
    --------
    >>> Constant()([1.0, 2.0])
    array([[1., 1.],
           [1., 1.]])
    """

    def reads(self, names: Sequence[str]) -> list[str]:
        """No columns: a constant depends on none."""
        return []

    def _gram(self, X: Table, Y: Table) -> Floats:
        return np.ones((len(X), len(Y)))


class Linear(_Named):
    """Inner product of attributes: side information without a transformation.

    Numbers and dates multiply. Text and bool columns count one where they agree, missing being a value of its own.
    Columns with several values in a cell (collections, or text such as ``Action|Comedy``) count the values in common.

    Parameters
    ----------
    *columns : str, or one list of str
        None for all.

    Examples
    --------
    >>> Linear("genres")({"genres": ["Action|Comedy", "Comedy|Drama"]})
    array([[2., 1.],
           [1., 2.]])
    """

    def _gram(self, X: Table, Y: Table) -> Floats:
        x, y = self.select(X), self.select(Y)
        K = np.zeros((len(x), len(y)))
        for name in x.columns:
            encoder = Encoder.learn(name, x, y)
            product = encoder.transform(x) @ encoder.transform(y).T
            K += product.toarray() if sparse.issparse(product) else product
        return K

    def _diag(self, X: Table) -> Floats:
        x = self.select(X)
        diagonal = np.zeros(len(x))
        for name in x.columns:
            phi = Encoder.learn(name, x).transform(x)
            diagonal += np.asarray((phi * phi).sum(axis=1, dtype=np.float64))
        return diagonal


class Cosine(Linear):
    """Linear divided by the lengths of both inputs: the cosine similarity of their attributes.

    One on the diagonal; zero for an input that has nothing. Made for sets of very different sizes, such as the items
    that users rated.

    Parameters
    ----------
    *columns : str, or one list of str
        None for all.

    Examples
    --------
    >>> Cosine("genres")({"genres": ["Action|Comedy", "Comedy|Drama"]}).round(3)
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    def _gram(self, X: Table, Y: Table) -> Floats:
        lengths = np.sqrt(np.outer(super()._diag(X), super()._diag(Y)))
        return np.divide(super()._gram(X, Y), lengths, out=np.zeros_like(lengths), where=lengths > 0)

    def _diag(self, X: Table) -> Floats:
        return (super()._diag(X) > 0).astype(np.float64)
