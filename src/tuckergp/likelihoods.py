"""What an observation says about f: log density and its derivative in f.

A likelihood is all that gradient-based inference needs of the data. ``code`` and ``parameters`` name it to the
compiled kernels (`tuckergp.compute.sgd.score`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from tuckergp.errors import InputError

__all__ = ["Gaussian", "Likelihood", "Ordinal"]

Floats = npt.NDArray[np.float64]


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


@dataclass(frozen=True)
class Ordinal:
    """Ordered levels 0..K-1: y counts the cut points below z ~ N(f, 1), so P(y <= k | f) = Phi(c_k - f).

    The first cut point is fixed, because a constant in f says the same; the others are learned by sampling. Two levels
    with their cut point at 0 are the Bernoulli probit model.

    Attributes
    ----------
    cuts : tuple of float, length K - 1
        Where the cut points start, increasing.

    Examples
    --------
    >>> Ordinal((0.0,)).levels
    2
    """

    cuts: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.cuts or not np.isfinite(self.cuts).all() or (np.diff(self.cuts) <= 0).any():
            raise InputError(f"Cut points must be finite and increasing, not {self.cuts!r}.")

    @property
    def levels(self) -> int:
        """K."""
        return len(self.cuts) + 1
