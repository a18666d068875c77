"""Shrinkage of components: Lambda = diag(lambda), one precision for each component that all modes share.

With an identity core f is a sum over components. One that the data need less gets a larger precision in every mode, and
so becomes small. Each lambda_k has a gamma prior and so a gamma conditional: given factors and weights of all modes,
Gamma(shape + sum_d n_d / 2, rate + sum_d |column k of mode d|^2 / 2), where mode d stands for n_d independent rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

__all__ = ["ComponentPrior"]

Floats = npt.NDArray[np.float64]

SHAPE = 1.0
"""Of the gamma prior of a component's precision: sizes may differ by orders of magnitude."""


@dataclass(frozen=True)
class ComponentPrior:
    """Prior of Lambda = diag(lambda), (r, r), in one mode, given what the other modes say of lambda.

    Attributes
    ----------
    shape : float
    rate : ndarray, shape (r,)
        Of the gamma distribution of each precision.
    """

    shape: float
    rate: Floats

    @classmethod
    def centred(cls, variance: float, r: int) -> ComponentPrior:
        """The prior with E lambda = 1 / variance.

        Examples
        --------
        >>> ComponentPrior.centred(0.5, 2)
        ComponentPrior(shape=1.0, rate=array([0.5, 0.5]))
        """
        return cls(SHAPE, np.full(r, SHAPE * variance))

    def given(self, others: Sequence[tuple[Floats, int]]) -> ComponentPrior:
        """The prior given scatters (r, r) of rows of other modes, and their numbers."""
        squares = sum((np.diag(scatter) for scatter, _ in others), np.zeros_like(self.rate))
        return replace(self, shape=self.shape + sum(count for _, count in others) / 2, rate=self.rate + squares / 2)

    def draw(self, scatter: Floats, count: int, rng: np.random.Generator) -> Floats:
        """Draw Lambda given the sum of squares of ``count`` rows, (r, r)."""
        # Gamma(shape + count / 2, rate_k + scatter_kk / 2)
        drawn = rng.gamma(self.shape + count / 2, size=len(self.rate)) / (self.rate + np.diag(scatter) / 2)
        return np.diag(drawn)

    def log_marginal(self, scatter: Floats, count: int) -> float:
        """Log density of ``count`` rows with Lambda integrated out, up to what does not depend on ``scatter``."""
        # the integral of a gamma density: rate^-shape
        return float(-(self.shape + count / 2) * np.log(self.rate + np.diag(scatter) / 2).sum())
