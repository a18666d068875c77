"""Gaussian noise: y ~ N(f, 1 / (alpha a_m b_m' ...)), alpha shared, with a noise factor for each row if asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from tuckergp.likelihoods import row_noise
from tuckergp.likelihoods.given import NoiseSettings, Observed, Predicted
from tuckergp.likelihoods.mixture import NORMAL, mixture_quantiles
from tuckergp.likelihoods.precision import Precision
from tuckergp.likelihoods.row_noise import RowNoise
from tuckergp.likelihoods.standardised import Standardised

__all__ = ["Gaussian", "GaussianState"]

Floats = npt.NDArray[np.float64]


class GaussianState(NamedTuple):
    """The shared precision, and the factors of rows where they have some."""

    alpha: float
    rows: RowNoise


@dataclass(frozen=True)
class Gaussian(Standardised):
    """y ~ N(f, noise), ``noise`` a variance.

    Examples
    --------
    >>> import numpy as np
    >>> Gaussian(noise=0.25).score(np.array([1.0]), np.array([0.5]))
    array([2.])
    """

    name: ClassVar[str] = "gaussian"
    inferences: ClassVar[tuple[str, ...]] = ("gibbs", "als", "sgd", "vi", "hmc", "nuts", "sgld")
    code: ClassVar[int] = 0
    conjugate: ClassVar[bool] = True
    heavier: ClassVar[str | None] = "student"
    augmented: ClassVar[bool] = False

    def with_noise(self, variance: float) -> Self:
        """The same likelihood with this noise variance."""
        return replace(self, noise=variance)

    # Density

    @property
    def parameters(self) -> Floats:
        """The noise variance alone."""
        return np.array([self.noise])

    def log_density(self, y: Floats, f: Floats) -> Floats:
        """Log of the normal density, normaliser included."""
        density: Floats = -0.5 * ((y - f) ** 2 / self.noise + np.log(2 * np.pi * self.noise))
        return density

    def score(self, y: Floats, f: Floats) -> Floats:
        """The derivative of the log density in f, (y - f) / noise."""
        return (y - f) / self.noise

    def information(self, y: Floats) -> float:
        """The precision that each observation adds, 1 / noise."""
        return 1 / self.noise

    # Gibbs sampling

    def initial(self, observed: Observed, settings: NoiseSettings) -> GaussianState:
        """The state before the first sweep: the precision at its prior mean."""
        return GaussianState(settings.shape / settings.rate, row_noise.start(observed, settings))

    def augment(
        self, state: GaussianState, observed: Observed, f: Callable[[], Floats], rng: np.random.Generator
    ) -> tuple[Floats, Precision]:
        """The targets themselves, with the noise precision."""
        return observed.y, row_noise.precision_of(state.rows, state.alpha, observed.weight, observed)

    def log_likelihood(self, state: GaussianState, observed: Observed, f: Floats) -> Floats:
        """log N(y; f, 1 / precision) at each observation."""
        precision = row_noise.precision_of(state.rows, state.alpha, None, observed).at(observed.index)
        fit: Floats = 0.5 * (np.log(precision / (2 * np.pi)) - precision * (observed.y - f) ** 2)
        return fit

    def kept(self, state: GaussianState) -> dict[str, Floats]:
        """The noise precision, ``alpha``, and nu of the noise factors."""
        return {"alpha": np.asarray(state.alpha), **row_noise.unknowns(state.rows)}

    def working(self, at: Predicted, y: Floats, rng: np.random.Generator | None) -> tuple[Floats, Floats]:
        """The targets themselves, with the noise precisions of the draws."""
        return np.broadcast_to(y, at.f.shape), self.precisions(at)

    def continued(
        self,
        state: GaussianState,
        unknowns: Mapping[str, Floats],
        factors: Sequence[Floats | None],
        rng: np.random.Generator,
    ) -> GaussianState:
        """A state with these alpha and noise factors."""
        rows = row_noise.continued(state.rows, unknowns, factors, rng)
        return GaussianState(float(unknowns["alpha"]), rows)

    def unknowns(self) -> dict[str, Floats]:
        """The noise precision, ``alpha``."""
        return {"alpha": np.asarray(1 / self.noise)}

    def watched(self, unknowns: Mapping[str, Floats]) -> dict[str, Floats]:
        """The standard deviation of the noise."""
        return {"noise": np.asarray(unknowns["alpha"] ** -0.5)}

    def figures(self, mean_square: float, log_likelihood: Callable[[], Floats], unknowns: Mapping[str, Floats]) -> Any:
        """Root mean square error and noise."""
        return {"train_rmse": mean_square**0.5, "noise": float(unknowns["alpha"]) ** -0.5}

    # Predictions

    def variances(self, at: Predicted) -> Floats:
        """The variance of each observation, 1 / precision, in the units of the targets."""
        return np.asarray(self.scale**2 / self.precisions(at))

    def log_densities(self, at: Predicted, y: Floats) -> Floats:
        """Of normal distributions."""
        precision = self.precisions(at)
        squares = precision * (self.targets(y) - at.f) ** 2
        return np.asarray(0.5 * (np.log(precision / (2 * np.pi)) - squares) - np.log(self.scale))

    def distribution(self, at: Predicted, y: Floats) -> Floats:
        """Of a mixture of normals, one for each draw."""
        z = np.sqrt(self.precisions(at)) * (self.targets(y) - at.f)
        return np.asarray(NORMAL.distribution(z).mean(axis=0))

    def quantiles(self, at: Predicted, levels: Sequence[float]) -> Floats:
        """Quantiles of a mixture of normals, one for each draw."""
        sd = self.precisions(at) ** -0.5
        quantiles = np.stack([mixture_quantiles(at.f, sd, level) for level in levels], axis=1)
        return self.mean + self.scale * quantiles

    def sample_block(self, at: Predicted, rng: np.random.Generator) -> Floats:
        """A new observation from each draw: f plus noise."""
        noise = rng.standard_normal(at.f.shape) / np.sqrt(self.precisions(at))
        return self.mean + self.scale * (at.f + noise)
