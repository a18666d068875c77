"""What is held fixed while one mode is drawn: its features, its priors, and the number of the sweep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuckergp.linalg import Matrix
from tuckergp.priors.hyper import PrecisionPrior
from tuckergp.priors.regressions import AnyRegression
from tuckergp.priors.shrinkage import ComponentPrior

__all__ = ["ModeGiven", "SharedNoise"]

Floats = npt.NDArray[np.float64]

# Where it is costly to draw scales with the weights integrated out, that is done in the first sweeps and then in every
# COLLAPSED_EVERY-th one; the other sweeps take cheaper steps.
COLLAPSED_AT_FIRST = 20
COLLAPSED_EVERY = 5


@dataclass(frozen=True)
class SharedNoise:
    """The noise of observations that one mode of rank 1 explains, f = psi: their precisions are alpha times weights.

    Attributes
    ----------
    alpha : float
    shape, rate : float
        Gamma prior of alpha.
    count : float
        How many observations there are.
    squares : float
        Weighted sum of their squares.
    """

    alpha: float
    shape: float
    rate: float
    count: float
    squares: float


@dataclass(frozen=True)
class ModeGiven:
    """What is held fixed while a mode is drawn.

    Attributes
    ----------
    features : ndarray or csr_array, shape (M, n)
    blocks : sequence of slice
    regression : AnyRegression
        Of factors on features.
    prior : PrecisionPrior or ComponentPrior
        Of Lambda.
    tau_shape, tau_rate : float
        Gamma prior of the precision of a block.
    sweep : int
    overrelaxation : float
        Of draws of weights that all rows share, see `tuckergp.random.overrelaxed`.
    noise : SharedNoise or None
        Where the mode is all there is of f, and a residual may draw its own unknowns with the noise integrated out.
    warmup : int
        Sweeps whose draws are not kept.
    """

    features: Matrix
    blocks: Sequence[slice]
    regression: AnyRegression
    prior: PrecisionPrior | ComponentPrior
    tau_shape: float = 1.0
    tau_rate: float = 0.1
    sweep: int = 0
    overrelaxation: float = 0.0
    noise: SharedNoise | None = None
    warmup: int = COLLAPSED_AT_FIRST

    @property
    def warming(self) -> bool:
        """Whether the draws of this sweep are not kept."""
        return self.sweep < self.warmup

    @property
    def starting(self) -> bool:
        """Whether this is one of the first sweeps, in which draws may be rough."""
        return self.warming and self.sweep < COLLAPSED_AT_FIRST

    @property
    def searching(self) -> bool:
        """Whether numbers may be looked for anywhere, because nothing was learned yet: in some of the first sweeps."""
        return self.starting and self.sweep & (self.sweep - 1) == 0

    @property
    def affordable(self) -> bool:
        """Whether costly draws are due in this sweep."""
        return self.starting or self.sweep % COLLAPSED_EVERY == 0

    @property
    def turn(self) -> int:
        """How often costly draws were due before this sweep."""
        return self.sweep if self.sweep < COLLAPSED_AT_FIRST else self.sweep // COLLAPSED_EVERY

    def by_feature(self, tau: Floats) -> Floats:
        """The block precisions, one for each feature."""
        return np.repeat(tau, [block.stop - block.start for block in self.blocks])
