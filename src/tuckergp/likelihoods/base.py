"""What every likelihood answers: how targets are read, what they say about f, what f says about new ones.

A likelihood is one frozen object in one file. It holds what is fixed once the targets have been read (their mean and
scale, the values of levels) and where its own unknowns start; a sampler keeps their current values in a state of the
likelihood's own. Nothing else in the package asks which likelihood it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from tuckergp.errors import InputError
from tuckergp.likelihoods.precision import Precision, RowSums

__all__ = ["Likelihood", "NoiseSettings", "Observed", "Predicted"]

Floats = npt.NDArray[np.float64]

NO_NUMBERS = np.zeros(0)


@dataclass(frozen=True)
class Observed:
    """The training data as a likelihood sees them.

    Attributes
    ----------
    y : ndarray, shape (N,)
        Targets, as `Likelihood.targets` gives them.
    weight : ndarray, shape (N,), or None
    offset : ndarray, shape (N,), or None
        Known, and added to f.
    index : ndarray of int32, shape (N, D)
        The rows of each observation.
    groups : tuple of ndarray of int32, shapes (M_d,)
        The group of each row, whose noise factor it has; -1 for none.
    n_groups : tuple of int
    """

    y: Floats
    weight: Floats | None
    offset: Floats | None
    index: npt.NDArray[np.int32]
    groups: tuple[npt.NDArray[np.int32], ...]
    n_groups: tuple[int, ...]


class NoiseSettings(NamedTuple):
    """What a sampler was told of the noise: factors for each row or not, and the gamma prior of its precision."""

    rows: bool = False
    shape: float = 1.0
    rate: float = 0.5


@dataclass(frozen=True)
class Predicted:
    """f of S draws at n observations, and the likelihood's unknowns in these draws.

    Attributes
    ----------
    f : ndarray, shape (S, n)
    unknowns : mapping of str to ndarray, shapes (S, ...)
        As `Likelihood.kept` names them.
    factors : ndarray, shape (S, n), or None
        Products of the noise factors of the observations' rows; None for ones.
    exposure : ndarray, shape (n,), or None
        Of counts; None for ones.
    """

    f: Floats
    unknowns: Mapping[str, Floats]
    factors: Floats | None = None
    exposure: Floats | None = None


class Likelihood(ABC):
    """p(y | f), elementwise for arrays y and f of one shape.

    Class attributes
    ----------------
    name : str
        What users call it.
    inferences : tuple of str
        Those that can learn it.
    code : int
        Its number in compiled loops (`tuckergp.compute.densities`); -1 for none.
    conjugate : bool
        Whether the data enter through squared residuals alone, with a noise precision whose conditional is gamma.
    has_noise : bool
        Whether there is a noise precision with a prior to set.
    augmented : bool
        Whether Gibbs sampling draws something for each observation given f before the model is Gaussian.
    linear : bool
        Whether the mean of an observation is linear in f.
    row_noise : bool
        Whether rows may have noise factors, and have them by default.
    repeats : bool
        Whether weights other than 1 are allowed in Gibbs sampling.
    """

    name: ClassVar[str]
    inferences: ClassVar[tuple[str, ...]]
    code: ClassVar[int] = -1
    conjugate: ClassVar[bool] = False
    has_noise: ClassVar[bool] = False
    augmented: ClassVar[bool] = True
    linear: ClassVar[bool] = False
    row_noise: ClassVar[bool] = False
    repeats: ClassVar[bool] = True
    counts: ClassVar[bool] = False
    sampler: ClassVar[str] = "gibbs"

    mean: float = 0.0
    """What f = 0 stands for, in the units in which components of f are shown."""
    scale: float = 1.0
    """What f = 1 adds to that."""

    # Targets

    @classmethod
    def check(cls, y: Floats) -> None:
        """Refuse targets (N,) that make no sense, naming the first row."""

    @classmethod
    @abstractmethod
    def read(cls, y: Floats, weight: Floats | None = None, exposure: Floats | None = None) -> Self:
        """The likelihood of these targets (N,), which are refused where they make no sense."""

    @abstractmethod
    def targets(self, y: Floats) -> Floats:
        """Targets as the other methods take them: standardised, or numbers of levels."""

    def offset(self, count: int, exposure: Floats | None) -> Floats | None:
        """What is added to f at so many observations, (N,); None for nothing."""
        return None

    @classmethod
    def as_numbers(cls, y: Floats, exposure: Floats | None) -> Floats:
        """Targets on the scale of f, roughly, for what fits Gaussian models first."""
        return y

    def with_noise(self, variance: float) -> Self:
        """The same with Gaussian noise of this variance, in units of the targets' variance; others as they are."""
        return self

    # Density

    @property
    def parameters(self) -> Floats:
        """Numbers for the compiled loops."""
        return NO_NUMBERS

    @abstractmethod
    def log_density(self, y: Floats, f: Floats) -> Floats:
        """Log p(y | f), normalised."""

    @abstractmethod
    def score(self, y: Floats, f: Floats) -> Floats:
        """The derivative of log p(y | f) in f."""

    @abstractmethod
    def information(self, y: Floats) -> float:
        """About what an observation adds to the precision of f, given all targets: steps are made shorter by it."""

    # Unknowns that gradients move

    @property
    def free(self) -> Floats:
        """The unknowns that gradients move, unconstrained, (k,)."""
        return NO_NUMBERS

    @property
    def free_scale(self) -> float:
        """Their prior standard deviation, about."""
        return 1.0

    def with_free(self, values: Floats) -> Self:
        """The likelihood at other values of them."""
        return self

    def log_prior(self, values: Floats) -> tuple[float, Floats]:
        """Log density of them, up to a constant, and its gradient (k,)."""
        return 0.0, NO_NUMBERS

    def slopes(self, y: Floats, f: Floats, weight: Floats | None = None) -> tuple[Floats, Floats, Floats]:
        """Log densities and scores (N,), and the derivative of the weighted sum of the former in `free` (k,)."""
        return self.log_density(y, f), self.score(y, f), NO_NUMBERS

    def most_probable(self, y: Floats, f: Floats, weight: Floats | None = None) -> Floats:
        """The most probable values of `free` given f."""
        return self.free

    # Gibbs sampling

    def start(self, observed: Observed, settings: NoiseSettings) -> Any:
        """The state of the likelihood's own unknowns before the first sweep; refused where there is no way."""
        raise InputError(
            f"Gibbs sampling has no way with likelihood={self.name!r}; use inference="
            f"{', '.join(map(repr, self.inferences))}."
        )

    def draw_given_function(self, state: Any, observed: Observed, f: Floats, rng: np.random.Generator) -> Any:
        """Unknowns that are drawn with all that `augment` draws integrated out, given f (N,)."""
        return state

    def augment(
        self, state: Any, observed: Observed, f: Callable[[], Floats], rng: np.random.Generator
    ) -> tuple[Floats, Precision]:
        """Working targets (N,) and precisions, given which y = f + Gaussian noise."""
        raise NotImplementedError

    def draw_noise(
        self,
        state: Any,
        observed: Observed,
        precision: Precision,
        sums: Callable[[int, Precision], RowSums],
        settings: NoiseSettings,
        rng: np.random.Generator,
    ) -> tuple[Any, float]:
        """Unknowns of the noise given f, after all else; also the mean squared residual."""
        raise NotImplementedError

    def log_likelihood(self, state: Any, observed: Observed, f: Floats) -> Floats:
        """Log p(y | f) at each observation, (N,), with the unknowns of a state."""
        raise NotImplementedError

    def kept(self, state: Any) -> dict[str, Floats]:
        """What a draw keeps of a state, by name."""
        raise NotImplementedError

    def factors(self, state: Any) -> tuple[Floats | None, ...]:
        """The noise factors of a state, for each mode those of its groups of rows or None."""
        raise NotImplementedError

    def working(self, at: Predicted, y: Floats, rng: np.random.Generator | None) -> tuple[Floats, Floats]:
        """`augment` for targets y (n,) in draws that were kept: working targets and precisions, (S, n)."""
        raise InputError(f"Nothing can be folded into a model with likelihood={self.name!r}; fit again.")

    def continued(
        self,
        state: Any,
        unknowns: Mapping[str, Floats],
        factors: Sequence[Floats | None],
        rng: np.random.Generator,
    ) -> Any:
        """A fresh state with the unknowns and noise factors of a draw in it, where it has such."""
        raise NotImplementedError

    # What is kept of a point, and what is watched

    def unknowns(self) -> dict[str, Floats]:
        """What a draw keeps of the likelihood at its present values."""
        return {}

    def watched(self, unknowns: Mapping[str, Floats]) -> dict[str, Floats]:
        """What of that is worth watching, by the name it is shown by."""
        return {}

    def figures(self, mean_square: float, log_likelihood: Callable[[], Floats], unknowns: Mapping[str, Floats]) -> Any:
        """Figures of a sweep for progress and learning curves."""
        return {"log_probability": float(log_likelihood().mean())}

    # Predictions: for each draw, shapes (S, n)

    @abstractmethod
    def means(self, at: Predicted) -> Floats:
        """Mean of an observation in the units of the targets, (S, n)."""

    @abstractmethod
    def variances(self, at: Predicted) -> Floats:
        """Variance of an observation in the units of the targets, (S, n)."""

    @abstractmethod
    def quantiles(self, at: Predicted, levels: Sequence[float]) -> Floats:
        """Quantiles of a new observation, all draws together, (n, len(levels))."""

    @abstractmethod
    def sample(self, at: Predicted, rng: np.random.Generator) -> Floats:
        """A new observation of each draw, (S, n)."""

    def interval(self, at: Predicted, share: float) -> Floats:
        """Between which values a new observation is with this probability, (n, 2)."""
        tail = (1 - share) / 2
        return self.quantiles(at, [tail, 1 - tail])

    def probabilities(self, at: Predicted) -> Floats:
        """Probability of each level in each draw, (S, n, K)."""
        raise InputError("Only models with likelihood='ordinal' or 'bernoulli' have probabilities of levels.")
