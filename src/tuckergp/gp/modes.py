"""The kernel of a GP over several modes: a variance times the product of the modes' kernels, numbers by mode.

What the Tucker model approximates: the same modes, whitening and Constant terms as in `tuckergp.model`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Self, TypeAlias

import numpy as np
import numpy.typing as npt

from tuckergp.data.tables import Table
from tuckergp.errors import InputError, NotPositiveDefinite
from tuckergp.kernels import Constant, Kernel, Scaled, Sum
from tuckergp.kernels.algebra import Pullback
from tuckergp.linalg import NEGATIVE, no_kernel
from tuckergp.model import inputs
from tuckergp.model.inputs import Modes
from tuckergp.model.mode import Mode
from tuckergp.model.whitening import whiten, whitening_of

__all__ = ["ModeKernel", "Modes", "ModesKernel", "as_modes", "blame", "learned_modes", "with_values"]

Floats: TypeAlias = npt.NDArray[np.float64]


def as_modes(modes: Modes, table: Table) -> list[Mode]:
    """The modes asked for: a kernel is one mode of all columns without a Constant, None is one mode for each column."""
    asked = inputs.as_modes(modes, table, constant=False)
    names = [mode.name for mode in asked]
    if len(set(names)) < len(names):
        raise InputError(f"The modes {names} must differ in their columns, so that their numbers have names.")
    return asked


class ModeKernel(Kernel):
    """The kernel of one mode on a table of all columns.

    Parameters
    ----------
    name : str
    columns : sequence of str
    kernel : Kernel
        With the mode's Constant term.
    whitening : dict of str to (mean, standard deviation)
    """

    columns: Sequence[str]

    def __init__(
        self, name: str, columns: Sequence[str], kernel: Kernel, whitening: dict[str, tuple[float, float]]
    ) -> None:
        self.name = name
        self.columns = columns
        self.kernel = kernel
        self.whitening = whitening

    @classmethod
    def of(cls, mode: Mode, table: Table, weight: Floats | None = None) -> ModeKernel:
        """The kernel of a mode, whitened by the rows of a table; next to an added Constant it gets a variance."""
        whitening = whitening_of(table.select(mode.columns), weight) if mode.whiten else {}
        kernel = mode.kernel
        if mode.adds_constant:
            kernel = (kernel if isinstance(kernel, Scaled) else 1.0 * kernel) + Constant()
        return cls(mode.name, mode.columns, kernel, whitening)

    def hyperparameters(self) -> dict[str, Floats]:
        """The hyperparameters of the mode's kernel."""
        return self.kernel.hyperparameters()

    def with_hyperparameters(self, values: Mapping[str, Floats]) -> Self:
        """The same mode with other numbers in its kernel."""
        return type(self)(self.name, self.columns, self.kernel.with_hyperparameters(values), self.whitening)

    def _inputs(self, table: Table) -> Table:
        return whiten(table.select(self.columns), self.whitening)

    def _gram(self, X: Table, Y: Table) -> Floats:
        return self.kernel(self._inputs(X), self._inputs(Y))

    def _diag(self, X: Table) -> Floats:
        return self.kernel.diag(self._inputs(X))

    def _pullback(self, X: Table, Y: Table) -> tuple[Floats, Pullback]:
        return self.kernel.gram_and_gradient(self._inputs(X), self._inputs(Y))


class ModesKernel(Kernel):
    """scale * k_1 * ... * k_D; a number of mode d is called ``<columns>__<name in the kernel>``.

    Parameters
    ----------
    parts : sequence of ModeKernel
    scale : float

    Examples
    --------
    >>> from tuckergp.kernels import SE
    >>> from tuckergp.data.tables import as_table
    >>> table = as_table({"a": [0.0, 1.0], "b": [0.0, 2.0]}, "X")
    >>> modes = [Mode("a", SE(1.0), constant=False), Mode("b", SE(2.0), constant=False)]
    >>> ModesKernel.of(modes, table, 1.0).hyperparameters()
    {'scale': array([1.]), 'a__lengthscale': array([1.]), 'b__lengthscale': array([2.])}
    """

    learned = ("scale",)

    def __init__(self, parts: Sequence[ModeKernel], scale: float = 1.0) -> None:
        self.parts = parts
        self.scale = scale

    @classmethod
    def of(cls, modes: Sequence[Mode], table: Table, scale: float, weight: Floats | None = None) -> ModesKernel:
        """The product of the kernels of modes, whitened by the rows of a table; their variances go to the front."""
        parts = [ModeKernel.of(each, table, weight) for each in modes]
        for mode in parts:
            mode(table.take(np.arange(1)))  # raises if numbers or columns are wrong
            mode.kernel, variance = mode.kernel.unscaled()
            scale *= variance
        return cls(parts, scale)

    def named(self, d: int, numbers: Mapping[str, Floats]) -> dict[str, Floats]:
        """The numbers of mode d, named as those of the whole; one mode alone needs no prefix."""
        before = "" if len(self.parts) == 1 else f"{self.parts[d].name}__"
        return {f"{before}{name}": values for name, values in numbers.items()}

    def hyperparameters(self) -> dict[str, Floats]:
        """The scale and the numbers of all modes."""
        numbers = super().hyperparameters()
        for d, mode in enumerate(self.parts):
            numbers |= self.named(d, mode.hyperparameters())
        return numbers

    def with_hyperparameters(self, values: Mapping[str, Floats]) -> Self:
        """The same modes with other numbers."""
        parts = []
        for d, mode in enumerate(self.parts):
            numbers = mode.hyperparameters()
            names = zip(numbers, self.named(d, numbers), strict=True)
            parts.append(mode.with_hyperparameters({name: values[whole] for name, whole in names if whole in values}))
        return type(self)(parts, float(values["scale"][0]) if "scale" in values else self.scale)

    def _gram(self, X: Table, Y: Table) -> Floats:
        K = self.parts[0](X, Y)
        for mode in self.parts[1:]:
            K *= mode(X, Y)
        K *= self.scale
        return K

    def _diag(self, X: Table) -> Floats:
        diagonal: Floats = self.scale * np.prod([mode.diag(X) for mode in self.parts], axis=0)
        return diagonal

    def _pullback(self, X: Table, Y: Table) -> tuple[Floats, Pullback]:
        grams, pulls = zip(*(mode.gram_and_gradient(X, Y) for mode in self.parts), strict=True)

        def pull(weight: Floats) -> dict[str, Floats]:
            slopes: dict[str, Floats] = {}
            for d, pull_mode in enumerate(pulls):
                # d/dtheta of scale K_1 * ... * K_D: the weight of dK_d is weight * scale * prod_{e != d} K_e
                others = self.scale * weight
                for e, K in enumerate(grams):
                    if e != d:
                        others *= K
                if d == 0:
                    slopes["scale"] = np.array([np.vdot(others, grams[0])])
                slopes |= self.named(d, pull_mode(others))
            return slopes

        product = self.scale * grams[0]
        for K in grams[1:]:
            product *= K
        return product, pull


FEW_ROWS = 200
"""How many inputs are used to find out which mode's kernel is not positive semi-definite."""


def blame(parts: Sequence[ModeKernel], inputs: Sequence[Table], error: NotPositiveDefinite) -> NotPositiveDefinite:
    """The same error, with the mode whose kernel is to blame if one is; ``inputs`` are those of each mode."""
    for mode, table in zip(parts, inputs, strict=True):
        rows = np.unique(np.linspace(0, len(table) - 1, FEW_ROWS).astype(np.intp))
        values = np.linalg.eigvalsh(mode(table.take(rows)))
        if values[0] < -NEGATIVE * np.abs(values).max():
            return NotPositiveDefinite(f"Mode {mode.name!r}: {no_kernel(mode.kernel)}")
    return error


def with_values(kernel: ModesKernel, values: Mapping[str, Floats]) -> ModesKernel:
    """The kernel for some hyperparameters of a model, which have the noise among them."""
    return kernel.with_hyperparameters({name: v for name, v in values.items() if name != "noise"})


def learned_modes(modes: Sequence[Mode], kernel: ModesKernel) -> list[Mode]:
    """The modes with the numbers of a fitted kernel, for other models; its scale is not among them."""
    learned = []
    for mode, fitted in zip(modes, kernel.parts, strict=True):
        # the mode adds its Constant by itself
        without = fitted.kernel.k1 if mode.adds_constant and isinstance(fitted.kernel, Sum) else fitted.kernel
        learned.append(replace(mode, kernel=without))
    return learned
