"""The kernel of a GP that is a sum over groups of modes, such as main effects and interactions of pairs.

What the Tucker model approximates where entries of its core leave modes out: `tuckergp.model.tucker.Core.summands`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self, TypeAlias

import numpy as np
import numpy.typing as npt

from tuckergp.data.tables import Table
from tuckergp.gp.modes import ModeKernel, ModesKernel
from tuckergp.kernels import Scaled
from tuckergp.kernels.algebra import Pullback
from tuckergp.model.mode import Mode
from tuckergp.model.tucker import Summand

__all__ = ["AdditiveKernel"]

Floats: TypeAlias = npt.NDArray[np.float64]


class AdditiveKernel(ModesKernel):
    """scale * sum of summands, each a weight times the product of the kernels of some of the modes.

    Parameters
    ----------
    parts : sequence of ModeKernel
    scale : float
    summands : sequence of Summand

    Examples
    --------
    >>> from tuckergp.kernels import SE
    >>> from tuckergp.data.tables import as_table
    >>> table = as_table({"a": [0.0], "b": [2.0]}, "X")
    >>> modes = [Mode("a", 2.0 * SE(1.0), constant=False), Mode("b", 3.0 * SE(1.0), constant=False)]
    >>> kernel = AdditiveKernel.summed(modes, table, [Summand(1.0, ()), Summand(1.0, (0,)), Summand(0.5, (0, 1))])
    >>> kernel.diag(table)  # 1 + 2 + 0.5 * 2 * 3
    array([6.])
    """

    summands: Sequence[Summand]

    def __init__(self, parts: Sequence[ModeKernel], scale: float = 1.0, summands: Sequence[Summand] = ()) -> None:
        super().__init__(parts, scale)
        self.summands = summands

    @classmethod
    def summed(
        cls, modes: Sequence[Mode], table: Table, summands: Sequence[Summand], weight: Floats | None = None
    ) -> AdditiveKernel:
        """The kernel of some modes, whitened by the rows of a table; each mode has a variance of its own."""
        parts = [ModeKernel.of(each, table, weight) for each in modes]
        for mode, part in zip(modes, parts, strict=True):
            if not (mode.adds_constant or isinstance(part.kernel, Scaled)):
                part.kernel = 1.0 * part.kernel
            part(table.take(np.arange(1)))  # raises if numbers or columns are wrong
        return cls(parts, 1.0, summands)

    def with_hyperparameters(self, values: Mapping[str, Floats]) -> Self:
        """The same summands with other numbers."""
        changed = super().with_hyperparameters(values)
        return type(self)(changed.parts, changed.scale, self.summands)

    def variances(self, table: Table) -> Floats:
        """The mean variance of all summands of 0, 1, 2, ... modes, without the scale, (D + 1,)."""
        parts = [mode.diag(table) for mode in self.parts]
        by_size = np.zeros(len(parts) + 1)
        for weight, modes in self.summands:
            by_size[len(modes)] += weight * np.mean(np.prod([np.ones(len(table)), *(parts[d] for d in modes)], axis=0))
        return by_size

    def _gram(self, X: Table, Y: Table) -> Floats:
        return self._sum([mode(X, Y) for mode in self.parts], (len(X), len(Y)))

    def _diag(self, X: Table) -> Floats:
        return self._sum([mode.diag(X) for mode in self.parts], (len(X),))

    def _sum(self, parts: Sequence[Floats], shape: tuple[int, ...], without: int | None = None) -> Floats:
        """The sum of the summands; ``without`` a mode, of those that have it, divided by its kernel."""
        total = np.zeros(shape)
        for weight, modes in self.summands:
            if without is None or without in modes:
                product: Floats | float = self.scale * weight
                for d in modes:
                    product = product if d == without else product * parts[d]
                total += product
        return total

    def _pullback(self, X: Table, Y: Table) -> tuple[Floats, Pullback]:
        grams, pulls = zip(*(mode.gram_and_gradient(X, Y) for mode in self.parts), strict=True)
        total = self._sum(grams, (len(X), len(Y)))

        def pull(weight: Floats) -> dict[str, Floats]:
            slopes = {"scale": np.array([np.vdot(weight, total)])}
            for d, pull_mode in enumerate(pulls):
                # a summand is linear in the kernel of each of its modes
                slopes |= self.named(d, pull_mode(weight * self._sum(grams, total.shape, without=d)))
            return slopes

        return total, pull
