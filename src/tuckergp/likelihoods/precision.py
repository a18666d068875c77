"""The noise precision of observations as a product: a shared precision, weights, and factors of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuckergp.likelihoods.background import Background

__all__ = ["Precision", "RowSums"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Precision:
    """Noise precision of the observations: alpha times weight_i times the factors of the observation's rows.

    Kept as its factors, so that no array as long as the data is made.

    Attributes
    ----------
    alpha : float
    weight : ndarray, shape (N,), or None
        One for each observation; None for ones. Need not be a count of observations.
    factors : sequence of ndarray, shapes (M_d,), or None
        One for each row of each mode; None for ones.
    background : Background or None
        Further cells, all with target 0 and precision alpha times their weight; None for none.
    """

    alpha: float = 1.0
    weight: Floats | None = None
    factors: Sequence[Floats] | None = None
    background: Background | None = None

    def at(self, index: npt.NDArray[np.int32], observations: slice = slice(None)) -> Floats:
        """The precisions of some observations of a design with this ``index`` (N, D)."""
        rows = index[observations]
        precision = np.full(len(rows), self.alpha)
        if self.weight is not None:
            precision *= self.weight[observations]
        for d, factors in enumerate(self.factors or ()):
            precision *= factors[rows[:, d]]
        return precision


@dataclass(frozen=True)
class RowSums:
    """Sums of squared residuals over the observations of each row of a mode, shapes (M,).

    Attributes
    ----------
    squares : ndarray
        Of weight times squared residual.
    scaled : ndarray
        Of weight times squared residual times the noise factors of the other modes' rows.
    background : float
        The sum of weight times f^2 over all cells of the background.
    """

    squares: Floats
    scaled: Floats
    background: float = 0.0
