"""A line with a sum of kernels of one column, such as a slow trend and fast weather: one residual, E = sum_p E_p.

The states of its parts are stacked, so that a draw is exact and linear in the number of rows, and their lengthscales
and shares of the variance are drawn as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.random import DrawStreams
from tuckergp.residuals.base import ModeDraws
from tuckergp.residuals.line import OnLine
from tuckergp.residuals.line_draws import LengthscalePrior
from tuckergp.residuals.markov_sum import WHITE, MaternSum

__all__ = ["LineSum", "Paths", "SumPrior"]

Floats = npt.NDArray[np.float64]

SPREAD = 1.5


class SumPrior(NamedTuple):
    """Priors of the numbers of a sum: of lengthscales those of single lines, of shares a logistic normal one.

    The logarithms of the shares, less their mean, are normal around those of the kernel. Lengthscales stay in the order
    of the kernel's, so that what is slow there and what is fast do not change places.

    Attributes
    ----------
    lengthscales : tuple of LengthscalePrior
    share : tuple of float
        The kernel's.
    """

    lengthscales: tuple[LengthscalePrior, ...]
    share: tuple[float, ...]

    def log_density(self, *numbers: float) -> float:
        """Log density of the numbers of a `MaternSum`, up to a constant."""
        count = len(self.lengthscales)
        for i, j in combinations(range(count), 2):
            if (self.lengthscales[i].centre - self.lengthscales[j].centre) * (numbers[i] - numbers[j]) < 0:
                return -np.inf
        lengths = sum(prior.log_density(x) for prior, x in zip(self.lengthscales, numbers, strict=False))
        away = np.append(numbers[count:], 0.0) - np.log(self.share)
        return lengths - 0.5 * float(((away - away.mean()) ** 2).sum()) / SPREAD**2


class Paths(NamedTuple):
    """The own unknowns of a sum: states at the knots, (M, p, r), lengthscales, and shares of the variance."""

    states: Floats
    lengthscale: Floats
    share: Floats


@dataclass(frozen=True)
class LineSum(OnLine):
    """A line with several kernels.

    Attributes
    ----------
    orders : tuple of {0, 1, 2, 3}
        Of each part: Matern-1/2, -3/2, -5/2, or 0 for rows that differ independently.
    lengthscale : ndarray
        The kernels' own, of the Matern parts.
    share : ndarray, shape (parts,)
        Of the variance, as in the kernel.
    sd : float
        A standard deviation, that of the sum.
    learn : tuple of bool
        Of each part, whether its lengthscale is to be learned. Shares are, unless none is.
    """

    orders: tuple[int, ...]
    lengthscale: Floats
    share: Floats
    sd: float
    learn: tuple[bool, ...]

    @property
    def start(self) -> MaternSum:
        """The process at the kernel's lengthscales and shares."""
        return self._process(self.lengthscale, self.share)

    def _process(self, lengthscales: Floats, shares: Floats) -> MaternSum:
        return MaternSum(self.knots, self.orders, self._roughest, lengthscales, shares)

    @property
    def _materns(self) -> list[int]:
        return [part for part, order in enumerate(self.orders) if order != WHITE]

    @property
    def _roughest(self) -> int:
        """The part of the lowest order, of those of one order that with the shortest of the kernel's lengthscales."""
        lengths = dict(zip(self._materns, self.lengthscale.tolist(), strict=True))
        return min(range(len(self.orders)), key=lambda part: (self.orders[part], lengths.get(part, 0.0)))

    @property
    def prior(self) -> SumPrior:
        """That of lengthscales and shares."""
        return SumPrior(tuple(map(LengthscalePrior, self.lengthscale.tolist())), tuple(self.share.tolist()))

    @property
    def learned(self) -> tuple[int, ...]:
        """Lengthscales of parts that learn them, and shares."""
        lengths = [number for number, part in enumerate(self._materns) if self.learn[part]]
        first = len(self.lengthscale)
        return (*lengths, *range(first, first + len(self.orders) - 1)) if any(self.learn) else ()

    def process_of(self, own: tuple[Any, ...]) -> MaternSum:
        """The process of paths."""
        paths = Paths(*own)
        return self._process(paths.lengthscale, paths.share)

    def own(self, states: Floats, process: MaternSum) -> Paths:
        """States, lengthscales and shares."""
        return Paths(states, process.lengthscales, process.shares)

    def lengthscales(self, own: tuple[Any, ...]) -> Floats:
        """Those of the Matern parts."""
        return Paths(*own).lengthscale

    def variance_shares(self, own: tuple[Any, ...]) -> Floats:
        """Of each part."""
        return Paths(*own).share

    def row_seconds(self, r: int) -> float:
        """As for a line of one kernel with states of the same size, and more where more numbers are drawn."""
        return (1 + len(self.learned)) / 2 * (1.2e-5 + 4e-9 * (self.start.size * r) ** 3)

    def kept(self, psi: Floats, own: tuple[Any, ...]) -> tuple[dict[str, Floats], dict[str, Floats]]:
        """The states at the knots, the lengthscales, and the shares."""
        paths = Paths(*own)
        return {"states": paths.states}, {"lengthscale": paths.lengthscale, "share": paths.share}

    def drawn(self, draws: ModeDraws, s: int) -> Paths:
        """The paths of a draw."""
        return Paths(np.asarray(draws.rows["states"][:, s]), draws.values["lengthscale"][s], draws.values["share"][s])

    def parts(self, draws: ModeDraws, streams: DrawStreams | None) -> list[Floats]:
        """E_p at the rows of this table in all draws, (M, S, r) for each part."""
        split = self.start.parts
        each = [split(self.drawn_states(draws, streams, s)) for s in range(len(draws.covariance))]
        return [np.stack([parts[part] for parts in each], axis=1) for part in range(len(self.orders))]
