"""The mark for several terms of one column that are kept as one process on a line, such as a trend and weather."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.features.base import Floats, ResidualMap, Shapes
from tuckergp.features.line import Line, order_of
from tuckergp.kernels import Kernel
from tuckergp.residuals import line_sum as residuals
from tuckergp.residuals.markov_sum import WHITE

__all__ = ["LineSum"]


class LineSum(ResidualMap):
    """Keep a sum of terms of one column as the residual of its mode: exact, and linear in the number of inputs.

    `tuckergp.Mode` makes it where `Line` would keep one of several Matern terms of a column. Gibbs sampling draws the
    lengthscale of each, and the share that each has of the variance. An Identity of the column, beside a Matern that is
    marked by `Line`, is a part in which inputs differ independently.

    Parameters
    ----------
    parts : sequence of Line
        One for each term.

    Attributes
    ----------
    column_ : str
    knots_ : ndarray, shape (M,)
        The values, sorted, each once.
    orders_ : tuple of int
        Of each part 1, 2 or 3: Matern-1/2, -3/2, -5/2, or 0 for an Identity.
    lengthscales_ : ndarray
        Of the Matern parts.
    shares_ : ndarray, shape (parts,)
        Of the variance of the kernel.

    Examples
    --------
    >>> from tuckergp.kernels import Matern12, Matern32
    >>> kernel = Matern32(100.0) + 0.25 * Matern12(2.0)
    >>> line = LineSum([Line(), Line()]).fit(np.arange(20.0), kernel)
    >>> line.orders_, line.lengthscales_, line.shares_
    ((2, 1), array([100.,   2.]), array([0.8, 0.2]))
    """

    in_weight_space: ClassVar[bool] = False
    column_: str
    knots_: Floats
    orders_: tuple[int, ...]
    lengthscales_: Floats
    shares_: Floats

    def __init__(self, parts: Sequence[Line]) -> None:
        self.parts = parts

    def suits(self, kernel: Kernel) -> bool:
        """No kernel that is no sum."""
        return False

    def serves(self, kernel: Kernel, table: Table) -> bool:
        """Whether the kernel is a sum, one term for each part, that lines can have."""
        terms = [term.unscaled()[0] for term in kernel.terms()]
        lead = next((term for term in terms if Line().serves(term, table)), None)
        if lead is None or len(terms) != len(self.parts) or len(terms) < 2:
            return False
        return all(Line().joins(lead, term, table) for term in terms)

    def _fit(self, table: Table, kernel: Kernel, rng: np.random.Generator) -> None:
        if not self.serves(kernel, table):
            raise InputError(f"{self!r} is for so many Matern terms of one numeric column, not for {kernel!r}.")
        terms, variances = zip(*(term.unscaled() for term in kernel.terms()), strict=True)
        self.column_ = terms[0].reads(list(table.columns))[0]
        self.knots_ = np.sort(self.values(table))
        self.orders_ = tuple(map(order_of, terms))
        self.lengthscales_ = np.array([term.lengthscales(1)[0] for term in terms if order_of(term) != WHITE])
        self.shares_ = np.array(variances) / sum(variances)
        self.n_features_ = 0

    def values(self, table: Table) -> Floats:
        """The values of inputs on the line, shape (n,)."""
        return table.numeric(self.column_)

    def at(self, table: Table, sd: float) -> residuals.LineSum:
        """The residual at the rows of a table, with this standard deviation."""
        learn = tuple(part.learn for part in self.parts)
        knots, t = self.knots_, self.values(table)
        return residuals.LineSum(knots, t, self.orders_, self.lengthscales_, self.shares_, sd, learn)

    def kept(self, r: int) -> tuple[Shapes, Shapes]:
        """The shapes of what draws keep: states at the knots, lengthscales, and shares."""
        size = sum(max(order, 1) for order in self.orders_)
        return {"states": (len(self.knots_), size, r)}, {
            "lengthscale": self.lengthscales_.shape,
            "share": self.shares_.shape,
        }

    def fault(self) -> str | None:
        """Parts have orders from 0 to 3, lengthscales unless they are white, and shares; knots increase."""
        materns = [order for order in self.orders_ if order != WHITE]
        if not materns or not all(type(order) is int and 0 <= order <= 3 for order in self.orders_):
            return "its chains are of another order"
        if len(self.parts) != len(self.orders_) or self.shares_.shape != (len(self.orders_),):
            return "its chains have other parts"
        if self.lengthscales_.shape != (len(materns),) or not (self.lengthscales_ > 0).all():
            return "its chains have no lengthscales"
        if not (self.shares_ > 0).all() or not np.isclose(self.shares_.sum(), 1.0):
            return "its chains have no shares"
        ordered = self.knots_.ndim == 1 and len(self.knots_) and (np.diff(self.knots_) > 0).all()
        return None if ordered else "its chains are not in order"

    def refusal(self, term: Kernel, mode: str) -> str:
        """The message for a term that cannot be part of a line."""
        return Line().refusal(term, mode)
