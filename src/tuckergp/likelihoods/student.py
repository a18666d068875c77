"""Student's t noise: heavy tails, so that a few outliers hardly influence f.

y = f + e, e ~ N(0, 1 / (alpha a_m b_m' ... lambda_i)), lambda_i ~ Gamma(nu / 2, nu / 2): given its own lambda each
observation is Gaussian, and with it integrated out e is Student's t with nu degrees of freedom, whose precision has
factors of rows as Gaussian noise has. A priori nu - 2 ~ Gamma(2, 0.1), mean 20: the variance exists, and so does its
prior mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from tuckergp.errors import InputError
from tuckergp.likelihoods import row_noise
from tuckergp.likelihoods.given import NoiseSettings, Observed, Predicted
from tuckergp.likelihoods.mixture import mixture_quantiles, student_t
from tuckergp.likelihoods.precision import Precision
from tuckergp.likelihoods.row_noise import RowNoise
from tuckergp.likelihoods.standardised import Standardised
from tuckergp.random import gammas, log_slice

__all__ = ["Student", "StudentState", "draw_nu"]

Floats = npt.NDArray[np.float64]

# nu is above LEAST; nu - LEAST ~ Gamma(SHAPE, RATE) a priori.
LEAST, SHAPE, RATE = 2.0, 2.0, 0.1
SLICE_WIDTH = 1.0


class StudentState(NamedTuple):
    """The shared precision, the degrees of freedom, and the factors of rows where they have some."""

    alpha: float
    nu: float
    rows: RowNoise


@dataclass(frozen=True)
class Student(Standardised):
    """y = f + e, e / sqrt(noise) Student's t with ``nu`` degrees of freedom, above 2.

    Attributes
    ----------
    noise : float
        Squared scale of the noise, in units of the targets' variance; its variance is nu / (nu - 2) times that.
    mean, scale : float
        Of the targets.
    nu : float

    Examples
    --------
    >>> import numpy as np
    >>> Student(noise=1.0, nu=3.0).score(np.array([1.0, 10.0]), np.zeros(2)).round(3)
    array([1.   , 0.388])
    """

    nu: float = 10.0

    name: ClassVar[str] = "student"
    inferences: ClassVar[tuple[str, ...]] = ("gibbs",)
    repeats: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (np.isfinite(self.nu) and self.nu > LEAST):
            raise InputError(f"The degrees of freedom must be a number above {LEAST:g}, not {self.nu!r}.")

    @classmethod
    def read(cls, y: Floats, weight: Floats | None = None, exposure: Floats | None = None) -> Self:
        """With mean and standard deviation of the targets, those far off moved to three deviations from most."""
        centre = np.median(y)
        # 1.4826 times the median distance is the standard deviation of normal targets
        reach = 3 * 1.4826 * np.median(np.abs(y - centre))
        return super().read(np.clip(y, centre - reach, centre + reach) if reach > 0 else y, weight, exposure)

    # Density

    def log_density(self, y: Floats, f: Floats) -> Floats:
        """Log of Student's t density, normaliser included."""
        return log_t(y - f, 1 / self.noise, self.nu)

    def score(self, y: Floats, f: Floats) -> Floats:
        """The derivative of the log density in f, (nu + 1) (y - f) / (nu noise + (y - f)^2)."""
        return (self.nu + 1) * (y - f) / (self.nu * self.noise + (y - f) ** 2)

    def information(self, y: Floats) -> float:
        """The precision that each observation adds, (nu + 1) / (nu + 3) / noise."""
        return (self.nu + 1) / (self.nu + 3) / self.noise

    # Gibbs sampling

    def initial(self, observed: Observed, settings: NoiseSettings) -> StudentState:
        """The state before the first sweep: the precision at its prior mean, the degrees of freedom of this object."""
        return StudentState(settings.shape / settings.rate, self.nu, row_noise.start(observed, settings))

    def draw_given_function(
        self, state: StudentState, observed: Observed, f: Floats, rng: np.random.Generator
    ) -> StudentState:
        """Draw the degrees of freedom with all lambda integrated out: given lambda they could hardly move."""
        return state._replace(nu=draw_nu(self._squares(state, observed, f), state.nu, rng))

    def augment(
        self, state: StudentState, observed: Observed, f: Callable[[], Floats], rng: np.random.Generator
    ) -> tuple[Floats, Precision]:
        """The targets, with weights lambda ~ Gamma((nu + 1) / 2, (nu + scaled squared residual) / 2) drawn."""
        squares = self._squares(state, observed, f())
        weight = gammas(np.full(len(squares), (state.nu + 1) / 2), rng) / ((state.nu + squares) / 2)
        return observed.y, row_noise.precision_of(state.rows, state.alpha, weight, observed)

    def _squares(self, state: StudentState, observed: Observed, f: Floats) -> Floats:
        """Squared residuals times their precision without lambda, (N,)."""
        precision = row_noise.precision_of(state.rows, state.alpha, None, observed).at(observed.index)
        return precision * (observed.y - f) ** 2

    def log_likelihood(self, state: StudentState, observed: Observed, f: Floats) -> Floats:
        """Log of the t density at each observation, lambda integrated out."""
        precision = row_noise.precision_of(state.rows, state.alpha, None, observed).at(observed.index)
        return log_t(observed.y - f, precision, state.nu)

    def kept(self, state: StudentState) -> dict[str, Floats]:
        """The noise precision ``alpha``, the degrees of freedom ``nu``, and nu of the noise factors."""
        return {"alpha": np.asarray(state.alpha), "nu": np.asarray(state.nu), **row_noise.unknowns(state.rows)}

    def working(self, at: Predicted, y: Floats, rng: np.random.Generator | None) -> tuple[Floats, Floats]:
        """The targets, with precisions in which lambda is drawn, or its mean."""
        precision, nu = self.precisions(at), at.unknowns["nu"][:, None]
        shape, rate = np.broadcast_to((nu + 1) / 2, at.f.shape), (nu + precision * (y - at.f) ** 2) / 2
        weight = (shape if rng is None else gammas(shape.T, rng).T) / rate
        return np.broadcast_to(y, at.f.shape), precision * weight

    def continued(
        self,
        state: StudentState,
        unknowns: Mapping[str, Floats],
        factors: Sequence[Floats | None],
        rng: np.random.Generator,
    ) -> StudentState:
        """A state with these alpha, nu and noise factors."""
        rows = row_noise.continued(state.rows, unknowns, factors, rng)
        return StudentState(float(unknowns["alpha"]), float(unknowns["nu"]), rows)

    def unknowns(self) -> dict[str, Floats]:
        """The noise precision ``alpha`` and the degrees of freedom ``nu``."""
        return {"alpha": np.asarray(1 / self.noise), "nu": np.asarray(self.nu)}

    def fault(self, unknowns: Mapping[str, Floats]) -> str | None:
        """A noise precision that is not positive, or too few degrees of freedom."""
        return super().fault(unknowns) or (None if (unknowns["nu"] > LEAST).all() else f"nu is not above {LEAST:g}")

    def watched(self, unknowns: Mapping[str, Floats]) -> dict[str, Floats]:
        """The scale of the noise, and the degrees of freedom."""
        return {"noise": np.asarray(unknowns["alpha"] ** -0.5), "nu": unknowns["nu"]}

    def figures(self, mean_square: float, log_likelihood: Callable[[], Floats], unknowns: Mapping[str, Floats]) -> Any:
        """Mean log density, noise and degrees of freedom."""
        shown = {name: float(value) for name, value in self.watched(unknowns).items()}
        return {"log_probability": float(log_likelihood().mean()), **shown}

    # Predictions

    def variances(self, at: Predicted) -> Floats:
        """The variance of each observation, nu / (nu - 2) / precision, in the units of the targets."""
        nu = at.unknowns["nu"][:, None]
        return np.asarray(self.scale**2 * nu / (nu - LEAST) / self.precisions(at))

    def log_densities(self, at: Predicted, y: Floats) -> Floats:
        """Of t distributions."""
        draws = zip(self.targets(y) - at.f, self.precisions(at), at.unknowns["nu"].tolist(), strict=True)
        return np.asarray(np.stack([log_t(*draw) for draw in draws]) - np.log(self.scale))

    def distribution(self, at: Predicted, y: Floats) -> Floats:
        """Of a mixture of t distributions, one for each draw."""
        z = np.sqrt(self.precisions(at)) * (self.targets(y) - at.f)
        return np.asarray(student_t(at.unknowns["nu"]).distribution(z).mean(axis=0))

    def quantiles(self, at: Predicted, levels: Sequence[float]) -> Floats:
        """Quantiles of a mixture of t distributions, one for each draw."""
        sd, standard = self.precisions(at) ** -0.5, student_t(at.unknowns["nu"])
        quantiles = np.stack([mixture_quantiles(at.f, sd, level, standard) for level in levels], axis=1)
        return self.mean + self.scale * quantiles

    def sample_block(self, at: Predicted, rng: np.random.Generator) -> Floats:
        """A new observation from each draw: f plus noise."""
        noise = rng.standard_t(at.unknowns["nu"][:, None], at.f.shape) / np.sqrt(self.precisions(at))
        return self.mean + self.scale * (at.f + noise)


def log_t(residual: Floats, precision: Floats | float, nu: float) -> Floats:
    """Log density of Student's t with nu degrees of freedom and scale precision^-1/2."""
    constant = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(np.pi * nu)
    return np.asarray(constant + 0.5 * np.log(precision) - (nu + 1) / 2 * np.log1p(precision * residual**2 / nu))


def draw_nu(squares: Floats, nu: float, rng: np.random.Generator) -> float:
    """Draw nu given squared residuals in units of their squared scales (N,), by a slice step on log(nu - 2)."""

    def log_density(x: float) -> float:
        beyond = float(np.exp(x))
        nu = LEAST + beyond
        constant = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(nu)
        fit = len(squares) * constant - (nu + 1) / 2 * np.log1p(squares / nu).sum()
        # the prior of nu - 2, and the Jacobian of its logarithm
        return float(fit + SHAPE * x - RATE * beyond)

    return LEAST + float(np.exp(log_slice(log_density, float(np.log(nu - LEAST)), SLICE_WIDTH, rng)))
