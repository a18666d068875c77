"""A sum of Matern processes on a line, white noise among them, as one Markov process: their states are stacked.

The state has the value of the sum first, so that all that `tuckergp.residuals.markov` does with one process holds for a
sum. Next come the other numbers of one of the parts, the roughest, then the whole states of the others: the value of
that part is what the others leave of the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from tuckergp.errors import InputError
from tuckergp.residuals.markov import LineProcess, Stacked

__all__ = ["WHITE", "MaternSum"]

Floats = npt.NDArray[np.float64]

WHITE = 0
"""The order of white noise: rows that differ independently."""

FORGETTING = 1e300
"""The rate of a Matern-1/2 that is white noise: whatever the gap, nothing is left, but a repeated value is the same."""


@dataclass(frozen=True, eq=False)
class MaternSum(LineProcess):
    """A sum of independent processes on the distinct values of one column, each with a share of the unit variance.

    Its numbers are the logarithms of the lengthscales, then those of the shares relative to the last.

    Parameters
    ----------
    t : ndarray, shape (M,)
        Increasing, all different; spaced at will.
    orders : tuple of {0, 1, 2, 3}
        Of each part: nu + 1/2 of a Matern, or 0 for white noise.
    lead : int
        The part whose value is not in the state, best the roughest.
    lengthscales : ndarray
        Of the Matern parts, in their order.
    shares : ndarray, shape (parts,)
        Positive, with sum 1.

    Examples
    --------
    >>> t = np.array([0.0, 1.0, 3.0])
    >>> process = MaternSum(t, (1, 1), 0, np.array([2.0, 20.0]), np.array([0.25, 0.75]))
    >>> K = process.colour(np.eye(3)) @ process.colour(np.eye(3)).T
    >>> np.allclose(K[0], 0.25 * np.exp([0.0, -0.5, -1.5]) + 0.75 * np.exp([0.0, -0.05, -0.15]))
    True
    """

    orders: tuple[int, ...]
    lead: int
    lengthscales: Floats
    shares: Floats

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.lengthscales) != sum(order != WHITE for order in self.orders) or (self.lengthscales <= 0).any():
            raise InputError("MaternSum: lengthscales must be positive, one for each Matern.")
        if len(self.shares) != len(self.orders) or (self.shares <= 0).any():
            raise InputError("MaternSum: shares must be positive, one for each part.")

    @property
    def size(self) -> int:
        """The sum of the orders; white noise has one number."""
        return sum(max(order, 1) for order in self.orders)

    @property
    def _stacking(self) -> list[int]:
        """The parts in the order in which their states are stacked."""
        return [self.lead, *(part for part in range(len(self.orders)) if part != self.lead)]

    @cached_property
    def stacked(self) -> Stacked:
        """The parts, that with the lead first."""
        rates, scales = np.full(len(self.orders), FORGETTING), np.sqrt(self.shares)
        orders = np.array(self.orders)
        rates[orders != WHITE] = np.sqrt(2 * orders[orders != WHITE] - 1) / self.lengthscales
        stacking = self._stacking
        return np.maximum(orders, 1)[stacking], rates[stacking], scales[stacking]

    def parts(self, states: Floats) -> list[Floats]:
        """The value of each part, (n, r), from states (n, p, r) of the sum; they add up to its value."""
        parts, first = [states[:, 0]] * len(self.orders), 0
        for part in self._stacking:
            if part != self.lead:
                parts[part] = states[:, first]
                parts[self.lead] = parts[self.lead] - parts[part]
            first += max(self.orders[part], 1)
        return parts

    @property
    def n_lengthscales(self) -> int:
        """One for each Matern."""
        return len(self.lengthscales)

    @property
    def numbers(self) -> tuple[float, ...]:
        """Logarithms of the lengthscales, then of all shares but the last relative to it."""
        return (*np.log(self.lengthscales).tolist(), *np.log(self.shares[:-1] / self.shares[-1]).tolist())

    def candidates(self, j: int, rng: np.random.Generator) -> list[tuple[float, ...]]:
        """Numbers to look at for a start: those of any lengthscale j, with the present shares and with any share.

        A part that has taken what another should explain gives it back by a shorter lengthscale and a smaller share
        together.
        """
        part = [part for part, order in enumerate(self.orders) if order != WHITE][j]
        others = np.arange(len(self.orders)) != part
        found = super().candidates(j, rng)
        for numbers, share in zip(found.copy(), rng.random(len(found)), strict=True):
            shares = np.where(others, self.shares * (1 - share) / self.shares[others].sum(), share)
            ratios = np.log(shares[:-1] / shares[-1])
            found.append((*numbers[: self.n_lengthscales], *ratios.tolist()))
        return found

    def with_numbers(self, numbers: Sequence[float]) -> Self:
        """Return the same rows with other numbers; cheap, because the rows are not checked again."""
        count = self.n_lengthscales
        weights = np.exp(np.append(numbers[count:], 0.0) - max(0.0, *numbers[count:]))
        return self._changed(lengthscales=np.exp(np.array(numbers[:count])), shares=weights / weights.sum())
