"""The interface of all kernels, and how they are composed: sums, products and scales.

The formulas themselves are in the other files. Import all kernels from `tuckergp.kernels`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from tuckergp.data.columns import ARRAY, as_inputs, numbers
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.params import Parametrised

__all__ = ["Kernel", "Product", "Pullback", "Scaled", "Sum"]

Floats: TypeAlias = npt.NDArray[np.float64]
Pullback: TypeAlias = Callable[[Floats], dict[str, Floats]]
"""A function of weights (n, m) that gives the derivatives of sum(weight * k) in the logarithms of hyperparameters."""


class Kernel(Parametrised):
    """A positive semi-definite function of two inputs of a mode.

    Inputs are a `Table` or an array of shape (n, p) or (n,). A kernel that names columns needs a table; one that names
    none reads them all.

    Examples
    --------
    >>> from tuckergp.kernels import Identity, Linear
    >>> kernel = 0.25 * Identity("user_id") + Linear("age")
    >>> kernel
    0.25 * Identity('user_id') + Linear('age')
    >>> kernel({"user_id": ["ann", "bob"], "age": [2.0, 3.0]})
    array([[4.25, 6.  ],
           [6.  , 9.25]])
    """

    columns: str | Sequence[str] | None = None
    learned: ClassVar[tuple[str, ...]] = ()
    """Which parameters are positive numbers that maximum likelihood can learn."""

    __array_ufunc__ = None  # so that np.float64(0.25) * kernel asks the kernel

    def __call__(self, X: Any, Y: Any = None) -> Floats:
        """Gram matrix between the rows of X and of Y (X again where None), shape (n, m)."""
        left = as_inputs(X)
        return self._gram(left, left if Y is None else as_inputs(Y))

    def diag(self, X: Any) -> Floats:
        """k(x, x) for each row of X, shape (n,), without the Gram matrix."""
        return self._diag(as_inputs(X))

    def _gram(self, X: Table, Y: Table) -> Floats:
        raise NotImplementedError

    def _diag(self, X: Table) -> Floats:
        return np.ones(len(X))

    def hyperparameters(self) -> dict[str, Floats]:
        """The positive numbers of this kernel and its parts under the names of `get_params`, shapes (1,) or (p,)."""
        numbers = {name: np.atleast_1d(np.asarray(getattr(self, name), dtype=np.float64)) for name in self.learned}
        return numbers | {
            f"{name}__{inner}": values
            for name, kernel in self.get_params(deep=False).items()
            if isinstance(kernel, Kernel)
            for inner, values in kernel.hyperparameters().items()
        }

    def with_hyperparameters(self, values: Mapping[str, Floats]) -> Self:
        """A copy of this kernel with some of its numbers replaced."""
        plain = {name: float(v[0]) if len(v) == 1 else [float(x) for x in v] for name, v in values.items()}
        return copy.deepcopy(self).set_params(**plain)

    def gradient(self, weight: Floats, X: Any, Y: Any = None) -> dict[str, Floats]:
        """Derivatives of sum(weight * k(X, Y)) in the logarithms of the hyperparameters.

        Parameters
        ----------
        weight : ndarray, shape (n, m)
        X, Y : Table or array
            As in a call. Only arrays of shape (n, m) are made, so a large Gram matrix can be done in blocks of rows.

        Returns
        -------
        dict of str to ndarray
            The names and shapes of `hyperparameters`.

        Examples
        --------
        >>> from tuckergp.kernels import SE
        >>> (2.0 * SE(1.0)).gradient(np.ones((1, 1)), [0.0], [1.0])["scale"].round(4)
        array([1.2131])
        """
        return self.gram_and_gradient(X, Y)[1](weight)

    def gram_and_gradient(self, X: Any, Y: Any = None) -> tuple[Floats, Pullback]:
        """The Gram matrix, and a function of weights that is `gradient`; the two share distances and exponentials."""
        left = as_inputs(X)
        return self._pullback(left, left if Y is None else as_inputs(Y))

    def _pullback(self, X: Table, Y: Table) -> tuple[Floats, Pullback]:
        return self._gram(X, Y), lambda weight: {}

    def reads(self, names: Sequence[str]) -> list[str]:
        """Which of the columns of a table this kernel depends on."""
        if self.columns is None or len(self.columns) == 0:
            return list(names)
        return [self.columns] if isinstance(self.columns, str) else list(self.columns)

    def select(self, table: Table) -> Table:
        """The columns of a table that this kernel reads, at least one."""
        if self.columns and table.name == ARRAY:
            raise InputError(f"{self!r} names columns, so it needs a table with those columns, not an array.")
        names = self.reads(list(table.columns))
        if not names:
            raise InputError(f"{self!r} needs at least one column, but {table.name} has none.")
        return table.select(names)

    def _numbers(self, table: Table) -> Floats:
        selected = self.select(table)
        return numbers(selected, list(selected.columns))

    def terms(self) -> list[Kernel]:
        """The summands, flat; a scale in front of a sum goes to each of them."""
        return [self]

    def leaves(self) -> list[Kernel]:
        """The formulas that the kernel is composed of, without sums, products and scales.

        Examples
        --------
        >>> from tuckergp.kernels import SE, Constant, Linear
        >>> (0.5 * SE(1.0) * Linear() + Constant()).leaves()
        [SE(lengthscale=1.0), Linear(), Constant()]
        """
        return [self]

    def unscaled(self) -> tuple[Kernel, float]:
        """The kernel without the number in front of it, and that number; 1 where there is none.

        Examples
        --------
        >>> from tuckergp.kernels import SE
        >>> (0.25 * SE(1.0)).unscaled()
        (SE(lengthscale=1.0), 0.25)
        """
        return self, 1.0

    @property
    def stationary(self) -> bool:
        """Whether the kernel depends on x - x' alone and knows its spectrum."""
        return False

    def frequencies(self, n: int, names: Sequence[str], rng: np.random.Generator) -> Floats:
        """Draw from the normalised spectrum over all columns of a table, zero on those not read, shape (n, p)."""
        raise InputError(f"{self!r} is not stationary, so it has no spectrum; use Cholesky or Nystrom features.")

    def __add__(self, other: Kernel) -> Kernel:
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: object) -> Kernel:
        if isinstance(other, Kernel):
            return Product(self, other)
        return Scaled(self, float(other)) if isinstance(other, int | float | np.number) else NotImplemented

    __rmul__ = __mul__


class _Pair(Kernel):
    """Two kernels on the same rows."""

    def __init__(self, k1: Kernel, k2: Kernel) -> None:
        self.k1 = k1
        self.k2 = k2

    def reads(self, names: Sequence[str]) -> list[str]:
        """The columns that either of the two depends on."""
        return list(dict.fromkeys(self.k1.reads(names) + self.k2.reads(names)))

    def leaves(self) -> list[Kernel]:
        """The formulas of both."""
        return self.k1.leaves() + self.k2.leaves()


class Sum(_Pair):
    """k1 + k2: inputs are similar if they are similar under one kernel or the other.

    Parameters
    ----------
    k1, k2 : Kernel

    Examples
    --------
    >>> from tuckergp.kernels import SE, Constant
    >>> (SE(1.0) + 2.0 * Constant()).terms()
    [SE(lengthscale=1.0), 2.0 * Constant()]
    """

    def _gram(self, X: Table, Y: Table) -> Floats:
        return self.k1(X, Y) + self.k2(X, Y)

    def _diag(self, X: Table) -> Floats:
        return self.k1.diag(X) + self.k2.diag(X)

    def _pullback(self, X: Table, Y: Table) -> tuple[Floats, Pullback]:
        (K1, pull1), (K2, pull2) = self.k1.gram_and_gradient(X, Y), self.k2.gram_and_gradient(X, Y)
        return K1 + K2, lambda weight: _inner("k1", pull1(weight)) | _inner("k2", pull2(weight))

    def terms(self) -> list[Kernel]:
        """The summands of both, flat."""
        return self.k1.terms() + self.k2.terms()

    def __repr__(self) -> str:
        return f"{self.k1!r} + {_bracketed(self.k2, Sum)}"


class Product(_Pair):
    """k1 * k2: inputs are similar if they are similar under both kernels.

    Parameters
    ----------
    k1, k2 : Kernel

    Examples
    --------
    >>> from tuckergp.kernels import SE, Periodic
    >>> SE(5.0) * (Periodic(1.0) + SE(1.0))
    SE(lengthscale=5.0) * (Periodic(period=1.0, lengthscale=1.0) + SE(lengthscale=1.0))
    """

    def _gram(self, X: Table, Y: Table) -> Floats:
        return self.k1(X, Y) * self.k2(X, Y)

    def _diag(self, X: Table) -> Floats:
        return self.k1.diag(X) * self.k2.diag(X)

    def _pullback(self, X: Table, Y: Table) -> tuple[Floats, Pullback]:
        (K1, pull1), (K2, pull2) = self.k1.gram_and_gradient(X, Y), self.k2.gram_and_gradient(X, Y)
        return K1 * K2, lambda weight: _inner("k1", pull1(weight * K2)) | _inner("k2", pull2(weight * K1))

    @property
    def stationary(self) -> bool:
        """Whether both kernels are stationary."""
        return self.k1.stationary and self.k2.stationary

    def frequencies(self, n: int, names: Sequence[str], rng: np.random.Generator) -> Floats:
        """Draw from the convolution of the two spectra: sums of independent frequencies, shape (n, p)."""
        return self.k1.frequencies(n, names, rng) + self.k2.frequencies(n, names, rng)

    def __repr__(self) -> str:
        return f"{_bracketed(self.k1, Sum)} * {_bracketed(self.k2, Sum, Product, Scaled)}"


class Scaled(Kernel):
    """scale * kernel; the scale is a variance.

    Parameters
    ----------
    kernel : Kernel
    scale : float
        Positive.

    Examples
    --------
    >>> from tuckergp.kernels import SE
    >>> (0.25 * SE(1.0)).diag([1.0, 2.0])
    array([0.25, 0.25])
    """

    learned = ("scale",)

    def __init__(self, kernel: Kernel, scale: float = 1.0) -> None:
        self.kernel = kernel
        self.scale = scale

    def variance(self) -> float:
        """The scale, after a check that it is positive and finite."""
        scale = float(self.scale)
        if not (np.isfinite(scale) and scale > 0):
            raise InputError(f"The scale of a kernel must be positive and finite; {self!r} has {scale}.")
        return scale

    def _gram(self, X: Table, Y: Table) -> Floats:
        return self.variance() * self.kernel(X, Y)

    def _diag(self, X: Table) -> Floats:
        return self.variance() * self.kernel.diag(X)

    def _pullback(self, X: Table, Y: Table) -> tuple[Floats, Pullback]:
        scale = self.variance()
        K, inner = self.kernel.gram_and_gradient(X, Y)

        def pull(weight: Floats) -> dict[str, Floats]:
            slopes = _inner("kernel", {name: scale * slope for name, slope in inner(weight).items()})
            return {"scale": np.array([scale * np.vdot(weight, K)])} | slopes

        return scale * K, pull

    def reads(self, names: Sequence[str]) -> list[str]:
        """The columns that the inner kernel depends on."""
        return self.kernel.reads(names)

    def terms(self) -> list[Kernel]:
        """The summands of the inner kernel, each scaled; scales of scales multiply."""
        inner = ((t.kernel, t.scale) if isinstance(t, Scaled) else (t, 1.0) for t in self.kernel.terms())
        return [Scaled(kernel, self.scale * scale) for kernel, scale in inner]

    def leaves(self) -> list[Kernel]:
        """The formulas of the inner kernel."""
        return self.kernel.leaves()

    def unscaled(self) -> tuple[Kernel, float]:
        """The innermost kernel, and the product of all scales in front of it."""
        kernel, scale = self.kernel.unscaled()
        return kernel, self.variance() * scale

    @property
    def stationary(self) -> bool:
        """Whether the inner kernel is stationary."""
        return self.kernel.stationary

    def frequencies(self, n: int, names: Sequence[str], rng: np.random.Generator) -> Floats:
        """Draw from the normalised spectrum, which a scale does not change, shape (n, p)."""
        return self.kernel.frequencies(n, names, rng)

    def __repr__(self) -> str:
        return f"{float(self.scale)!r} * {_bracketed(self.kernel, Sum, Product, Scaled)}"


def _inner(name: str, slopes: dict[str, Floats]) -> dict[str, Floats]:
    """Slopes of an inner kernel under the names that they have in the whole kernel."""
    return {f"{name}__{inner}": values for inner, values in slopes.items()}


def _bracketed(kernel: Kernel, *types: type[Kernel]) -> str:
    """The repr of a kernel, in brackets where it would otherwise be evaluated in another order."""
    return f"({kernel!r})" if isinstance(kernel, types) else repr(kernel)
