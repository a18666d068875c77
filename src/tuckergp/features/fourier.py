"""Random Fourier features (Rahimi and Recht, 2007) for stationary kernels: frequencies drawn from the spectrum.

Unbiased, with variance O(1/n); the paper's cosines with random phases, or sine and cosine pairs, which vary less.
"""

from __future__ import annotations

import numpy as np

from tuckergp.data.columns import numbers
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.features.base import FeatureMap, Features, Floats
from tuckergp.features.doubt import degrees_of_freedom
from tuckergp.kernels import Kernel

__all__ = ["Fourier"]

FEATURES_PER_PIVOT = 10
"""How many random features a degree of freedom needs; `docs/kernels-and-features.md` has what fewer do."""


class Fourier(FeatureMap):
    """Random Fourier features: sines and cosines of random frequencies.

    Parameters
    ----------
    n : int
        Number of features; even for pairs.
    pairs : bool
        True: n / 2 frequencies v, sqrt(2/n) (cos v'x, sin v'x), so that phi(x)'phi(x) is exact.
        False: n frequencies, sqrt(2/n) cos(v'x + b) with b uniform, as in the paper.

    Attributes
    ----------
    frequencies_ : ndarray, shape (n / 2 or n, p)

    Examples
    --------
    >>> from tuckergp.kernels import SE
    >>> features = Fourier(n=2000).fit([0.0, 1.0], SE(1.0), random_state=0)
    >>> features.gram([0.0], [1.0]).round(1)
    array([[0.6]])
    """

    columns_: list[str]
    variance_: float
    frequencies_: Floats
    phases_: Floats | None

    def __init__(self, n: int = 100, pairs: bool = True) -> None:
        self.n = n
        self.pairs = pairs

    def suits(self, kernel: Kernel) -> bool:
        """Whether the kernel is stationary."""
        return kernel.stationary

    def _fit(self, table: Table, kernel: Kernel, rng: np.random.Generator) -> None:
        if self.n < 1 or (self.pairs and self.n % 2):
            raise InputError(f"{self!r} must have a positive {'even ' if self.pairs else ''}number of features.")
        if not kernel.stationary:
            raise InputError(f"{kernel!r} is not stationary, so it has no Fourier features; use Cholesky or Nystrom.")
        self.columns_ = kernel.reads(list(table.columns))
        # the spectrum is normalised; the variance of a stationary kernel is the same everywhere
        self.variance_ = float(kernel.diag(table.take(np.array([0])))[0])
        self.frequencies_ = kernel.frequencies(self.n // 2 if self.pairs else self.n, self.columns_, rng)
        self.phases_ = None if self.pairs else rng.uniform(0, 2 * np.pi, self.n)
        self.n_features_ = self.n

    def fault(self) -> str | None:
        """It must have as many frequencies and phases as features."""
        learned = [getattr(self, name, None) for name in ("columns_", "variance_", "frequencies_")]
        if any(part is None for part in learned) or self.n < 1 or self.n_features_ != self.n or self.variance_ < 0:
            return "its waves lack something"
        count, phases = (self.n // 2, None) if self.pairs else (self.n, (self.n,))
        found = None if self.phases_ is None else self.phases_.shape
        right = self.frequencies_.shape == (count, len(self.columns_)) and found == phases
        return None if right else "its waves have other shapes"

    def _transform(self, table: Table) -> Features:
        # sqrt(2 variance / n) (cos V x, sin V x), or sqrt(2 variance / n) cos(V x + b)
        angle = numbers(table, self.columns_) @ self.frequencies_.T
        waves = np.hstack([np.cos(angle), np.sin(angle)]) if self.phases_ is None else np.cos(angle + self.phases_)
        phi: Floats = np.sqrt(2 * self.variance_ / self.n) * waves
        return phi

    def _doubt(self, table: Table) -> str | None:
        most = self.n // FEATURES_PER_PIVOT + 1
        if degrees_of_freedom(self.kernel_, table, most) < most:
            return None
        return (
            f"{self!r} has too few random features for {self.kernel_!r}, whose functions have {most} or more "
            f"degrees of freedom over the training inputs: intervals will be too narrow. Raise n or the lengthscale, "
            f"or use Nystrom or Cholesky features."
        )
