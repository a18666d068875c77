"""The mark for a Matern term that is kept as a process on a line instead of becoming features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tuckergp.data.columns import numbers
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.features.base import Floats, ResidualMap, Shapes
from tuckergp.kernels import Identity, Kernel, Matern12, Matern32, Matern52
from tuckergp.residuals import line as residuals
from tuckergp.residuals.markov_sum import WHITE

if TYPE_CHECKING:
    from tuckergp.features.line_sum import LineSum

__all__ = ["Line"]

MATERNS = (Matern12, Matern32, Matern52)


def order_of(kernel: Kernel) -> int:
    """The order of a Matern, nu + 1/2, or that of white noise."""
    return round(kernel.nu + 0.5) if isinstance(kernel, MATERNS) else WHITE


class Line(ResidualMap):
    """Keep a Matern term as the residual of its mode: exact, and linear in the number of inputs.

    A Matern process of one column, with its derivatives, is a Markov process along the sorted values, so it needs no
    features. `tuckergp.Mode` chooses it by itself for Matern terms on one numeric column whose values tell all inputs
    of the mode apart, unless the mode has rows (`Rows`) or the inference works with features alone (SGD). Several
    Matern terms of that column are one line (`LineSum`); beside a term that the user marks, an Identity of the column
    as well. If the user names it where it is not possible, that is an error. It has no features: `transform` returns
    none.

    Parameters
    ----------
    learn : bool
        Draw the lengthscale in Gibbs sampling, under a prior centred at the kernel's; False keeps the kernel's.
        Shares of several terms are kept where none of them learns.

    Attributes
    ----------
    column_ : str
    knots_ : ndarray, shape (M,)
        The values, sorted, each once.
    order_ : int
        1, 2 or 3: Matern-1/2, -3/2, -5/2.
    lengthscale_ : float

    Examples
    --------
    >>> from tuckergp import Mode
    >>> Mode("day", Matern12(2.0), features=Line()).features
    Line(learn=True)
    """

    in_weight_space: ClassVar[bool] = False
    column_: str
    knots_: Floats
    order_: int
    lengthscale_: float

    def __init__(self, learn: bool = True) -> None:
        self.learn = learn

    def suits(self, kernel: Kernel) -> bool:
        """Whether the kernel is a Matern."""
        return isinstance(kernel, MATERNS)

    def serves(self, kernel: Kernel, table: Table) -> bool:
        """Whether the kernel is a Matern of one column in which all inputs differ; text or NaN is refused."""
        columns = kernel.reads(list(table.columns))
        if not self.suits(kernel) or len(columns) != 1:
            return False
        return len(np.unique(numbers(table, columns))) == len(table)

    def joins(self, kernel: Kernel, other: Kernel, table: Table) -> bool:
        """Whether another term is a Matern or an Identity of the same column."""
        names = list(table.columns)
        return isinstance(other, (*MATERNS, Identity)) and other.reads(names) == kernel.reads(names)

    def summed(self, parts: Sequence[Line]) -> LineSum:
        """The mark of a line with several terms."""
        from tuckergp.features.line_sum import LineSum  # which needs this module

        return LineSum([part.unfitted() for part in parts])

    def _fit(self, table: Table, kernel: Kernel, rng: np.random.Generator) -> None:
        if not isinstance(kernel, MATERNS) or not self.serves(kernel, table):
            raise InputError(
                f"{self!r} is for a Matern of one numeric column in which all inputs of the mode differ; for "
                f"{kernel!r} leave features out or use Cholesky()."
            )
        self.column_ = kernel.reads(list(table.columns))[0]
        self.knots_ = np.sort(self.values(table))
        self.order_ = order_of(kernel)
        self.lengthscale_ = float(kernel.lengthscales(1)[0])
        self.n_features_ = 0

    def values(self, table: Table) -> Floats:
        """The values of inputs on the line, shape (n,)."""
        return table.numeric(self.column_)

    def at(self, table: Table, sd: float) -> residuals.Line:
        """The residual at the rows of a table, with this standard deviation."""
        return residuals.Line(self.knots_, self.values(table), self.order_, self.lengthscale_, sd, self.learn)

    def kept(self, r: int) -> tuple[Shapes, Shapes]:
        """The shapes of what draws keep: states at the knots, and the lengthscale."""
        return {"states": (len(self.knots_), self.order_, r)}, {"lengthscale": ()}

    def fault(self) -> str | None:
        """Matern processes have an order of 1, 2 or 3, and knots that increase."""
        if self.order_ not in (1, 2, 3):
            return "its chains are of another order"
        ordered = self.knots_.ndim == 1 and len(self.knots_) and (np.diff(self.knots_) > 0).all()
        return None if ordered and self.lengthscale_ > 0 else "its chains are not in order"

    def refusal(self, term: Kernel, mode: str) -> str:
        """The message for a term that is no Matern of one column that tells all inputs apart."""
        return (
            f"Line() is for Matern terms on one column that tells all inputs of the mode apart; {term!r} of mode "
            f"{mode!r} is none: use Cholesky(), or leave features out."
        )
