"""What likelihoods of numbers share: targets are standardised, and have noise of precision alpha a_m b_m' ... around f.

Priors and noise are in units of the targets' standard deviation. The noise factors a_m, b_m' of rows are optional.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from tuckergp.data.standard import mean_and_std
from tuckergp.errors import InputError
from tuckergp.likelihoods import row_noise
from tuckergp.likelihoods.base import Likelihood
from tuckergp.likelihoods.given import NoiseSettings, Observed, Predicted
from tuckergp.likelihoods.precision import Precision
from tuckergp.likelihoods.row_noise import Sums
from tuckergp.scratch import empty

__all__ = ["Standardised"]

Floats = npt.NDArray[np.float64]

# Beyond this the squares of targets, and below its inverse those of their differences, are no numbers any more.
LARGEST = 1e150


@dataclass(frozen=True)
class Standardised(Likelihood):
    """Numbers with noise around f. States have ``alpha`` and ``rows``.

    Attributes
    ----------
    noise : float
        1 / alpha, in units of the targets' variance.
    mean, scale : float
        Of the targets.
    """

    noise: float = 1.0
    mean: float = 0.0
    scale: float = 1.0

    has_noise: ClassVar[bool] = True
    linear: ClassVar[bool] = True
    row_noise: ClassVar[bool] = True
    default_noise: ClassVar[Literal["shared", "rows"]] = "rows"
    averages: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not (np.isfinite(self.noise) and self.noise > 0):
            raise InputError(f"The noise variance must be a positive number, not {self.noise!r}.")

    # Targets

    @classmethod
    def read(cls, y: Floats, weight: Floats | None = None, exposure: Floats | None = None) -> Self:
        """The likelihood with the mean and the standard deviation of the targets; 1 where all targets are the same."""
        top = max(y.max(initial=0.0), -y.min(initial=0.0))
        mean, std = mean_and_std(y, weight)
        scale = std or 1.0
        if top > LARGEST or scale < 1 / LARGEST:
            size, remedy = ("large", "divide") if top > LARGEST else ("small", "multiply")
            raise InputError(f"The targets reach {top:g}, which is too {size}; {remedy} them by a number.")
        return cls(mean=mean, scale=scale)

    def targets(self, y: Floats) -> Floats:
        """The standardised targets."""
        y = np.asarray(y)
        shifted = np.subtract(y, self.mean, out=empty(y.shape))
        return np.asarray(np.divide(shifted, self.scale, out=shifted))

    def original(self, targets: Floats) -> Floats:
        """The targets in their own units."""
        return np.asarray(self.mean + self.scale * targets)

    def fault(self, unknowns: Mapping[str, Floats]) -> str | None:
        """A noise precision that is not positive."""
        return None if (unknowns["alpha"] > 0).all() else "alpha is not positive"

    # Gibbs sampling

    def draw_noise(
        self,
        state: Any,
        observed: Observed,
        precision: Precision,
        sums: Sums,
        settings: NoiseSettings,
        rng: np.random.Generator,
    ) -> tuple[Any, float]:
        """Draw factors of rows, then alpha ~ Gamma(shape + N / 2, rate + S / 2), S the scaled sum of squares."""
        rows, squares, scaled = row_noise.draw(state.rows, precision, observed, sums, rng)
        alpha = float(rng.gamma(settings.shape + observed.count / 2) / (settings.rate + scaled / 2))
        return state._replace(alpha=alpha, rows=rows), squares / observed.count

    def factors(self, state: Any) -> tuple[Floats | None, ...]:
        """The noise factors of rows."""
        return row_noise.kept(state.rows)

    def in_units(self, watched: Mapping[str, Floats]) -> dict[str, Floats]:
        """The noise times the standard deviation of the targets."""
        return {**watched, "noise": self.scale * watched["noise"]}

    def in_other_units(self, mean: float, scale: float) -> Self:
        """The same for targets mean + scale y in place of y."""
        return replace(self, mean=mean + scale * self.mean, scale=scale * self.scale)

    # Predictions

    def means(self, at: Predicted) -> Floats:
        """The function in the units of the targets."""
        return self.mean + self.scale * at.f

    def precisions(self, at: Predicted) -> Floats:
        """The noise precision of each draw, in units of the standardised targets, (S, n)."""
        alpha = at.unknowns["alpha"][:, None]
        return np.asarray(np.broadcast_to(alpha if at.factors is None else alpha * at.factors, at.f.shape))
