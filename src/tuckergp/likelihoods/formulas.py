"""What an observation says about f: log density and its derivative in f.

A likelihood is all that gradient-based inference needs of the data. ``code`` and ``parameters`` name it to the
compiled kernels (`tuckergp.compute.densities`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from tuckergp.compute.ordinal import level_slopes
from tuckergp.errors import InputError

__all__ = ["Gaussian", "Likelihood", "Ordinal", "Poisson"]

Floats = npt.NDArray[np.float64]

# Beyond this logarithm of a mean count the exponential goes on as its tangent: nothing overflows.
LARGEST_LOG = 100.0
# Logarithms of distances between cut points are kept in here, so that sums of them still increase.
LEAST_GAP, LARGEST_GAP = -20.0, 10.0


class Likelihood(Protocol):
    """What every likelihood answers, elementwise for arrays y and f of one shape."""

    code: ClassVar[int]

    @property
    def parameters(self) -> Floats:
        """Numbers for the compiled kernels."""

    def log_density(self, y: Floats, f: Floats) -> Floats:
        """Log p(y | f)."""

    def score(self, y: Floats, f: Floats) -> Floats:
        """D log p(y | f) / d f."""

    def information(self, y: Floats) -> float:
        """About what an observation adds to the precision of f, given all targets: steps are made shorter by it."""


@dataclass(frozen=True)
class Gaussian:
    """y ~ N(f, noise), ``noise`` a variance.

    Examples
    --------
    >>> import numpy as np
    >>> Gaussian(noise=0.25).score(np.array([1.0]), np.array([0.5]))
    array([2.])
    """

    noise: float = 1.0
    code: ClassVar[int] = 0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.noise) and self.noise > 0):
            raise InputError(f"The noise variance must be a positive number, not {self.noise!r}.")

    @property
    def parameters(self) -> Floats:
        """The noise variance alone."""
        return np.array([self.noise])

    def log_density(self, y: Floats, f: Floats) -> Floats:
        """Log of the normal density, normaliser included."""
        density: Floats = -0.5 * ((y - f) ** 2 / self.noise + np.log(2 * np.pi * self.noise))
        return density

    def score(self, y: Floats, f: Floats) -> Floats:
        """(y - f) / noise."""
        return (y - f) / self.noise

    def information(self, y: Floats) -> float:
        """1 / noise."""
        return 1 / self.noise


@dataclass(frozen=True)
class Poisson:
    """Counts with mean exp(f), where f has the logarithms of exposure and of the mean rate added to it already.

    Examples
    --------
    >>> import numpy as np
    >>> Poisson().score(np.array([3.0]), np.log(np.array([2.0])))
    array([1.])
    """

    code: ClassVar[int] = 2

    @property
    def parameters(self) -> Floats:
        """There are none."""
        return np.zeros(0)

    def log_density(self, y: Floats, f: Floats) -> Floats:
        """Log of the Poisson probability, normaliser included; finite for every finite f."""
        near = np.minimum(f, LARGEST_LOG)
        density: Floats = y * f - np.exp(near) * (1.0 + (f - near)) - gammaln(y + 1.0)
        return density

    def score(self, y: Floats, f: Floats) -> Floats:
        """Y - exp(f)."""
        return y - self.mean(f)

    def information(self, y: Floats) -> float:
        """The mean count, which is the mean of the curvature exp(f)."""
        return max(float(np.mean(y)), 0.01)

    @staticmethod
    def mean(f: Floats) -> Floats:
        """The mean count exp(f), kept from overflowing."""
        return np.asarray(np.exp(np.minimum(f, LARGEST_LOG)))


@dataclass(frozen=True)
class Ordinal:
    """Ordered levels 0..K-1: y counts the cut points below z ~ N(f, 1), so P(y <= k | f) = Phi(c_k - f).

    The first cut point is fixed, because a constant in f says the same; the others are learned. Two levels with their
    cut point at 0 are the Bernoulli probit model. By gradients the unknowns are ``gaps``, the logarithms of the
    distances c_k - c_{k-1}.

    Attributes
    ----------
    cuts : tuple of float, length K - 1
        The cut points, increasing; in a model, where they start.

    Examples
    --------
    >>> Ordinal((0.0,)).levels
    2
    >>> Ordinal((0.0, 1.0)).with_gaps(np.log([2.0])).cuts
    (0.0, 2.0)
    """

    cuts: tuple[float, ...]
    code: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not self.cuts or not np.isfinite(self.cuts).all() or (np.diff(self.cuts) <= 0).any():
            raise InputError(f"Cut points must be finite and increasing, not {self.cuts!r}.")

    @property
    def levels(self) -> int:
        """K."""
        return len(self.cuts) + 1

    @property
    def parameters(self) -> Floats:
        """The cut points."""
        return np.array(self.cuts)

    @property
    def gaps(self) -> Floats:
        """Logarithms of the distances between cut points, shape (K - 2,)."""
        return np.asarray(np.log(np.diff(self.cuts)))

    def with_gaps(self, gaps: Floats) -> Ordinal:
        """The same first cut point, and the others at these logarithms of distances (K - 2,)."""
        distances = np.exp(np.clip(np.nan_to_num(gaps), LEAST_GAP, LARGEST_GAP))
        others = self.cuts[0] + np.cumsum(distances)
        return Ordinal((self.cuts[0], *others.tolist()))

    def log_density(self, y: Floats, f: Floats) -> Floats:
        """Log of the probability of level y; finite however improbable."""
        return self.slopes(y, f)[0]

    def score(self, y: Floats, f: Floats) -> Floats:
        """The densities of z at both ends of the level's interval, the first less the second, over its probability."""
        return self.slopes(y, f)[1]

    def information(self, y: Floats) -> float:
        """That of z: 1, and a little less of its level."""
        return 1.0

    def slopes(self, y: Floats, f: Floats, weight: Floats | None = None) -> tuple[Floats, Floats, Floats]:
        """Log densities and scores (N,), and derivatives of the weighted sum of the first in the gaps (K - 2,)."""
        weight = np.zeros(0) if weight is None else np.ascontiguousarray(weight, dtype=np.float64)
        levels = np.ascontiguousarray(y, dtype=np.float64)
        if levels.size and not (levels.min() >= 0 and levels.max() <= len(self.cuts)):
            raise InputError(f"Levels must be 0 to {len(self.cuts)}, not {levels.min():g} to {levels.max():g}.")
        cuts = np.array(self.cuts)
        logs, score, d_cuts = level_slopes(levels, np.ascontiguousarray(f, dtype=np.float64), cuts, weight)
        # a distance moves its own cut point and all above it
        onwards = np.cumsum(d_cuts[:0:-1])[::-1]
        return logs, score, np.diff(cuts) * onwards
