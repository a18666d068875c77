"""What every likelihood must offer: how targets are read, p(y | f), and the distribution of new targets given f.

A likelihood is one frozen object in one file. It holds what is fixed once the targets have been read (their mean and
scale, the values of levels) and where its own unknowns start; a sampler keeps their current values in a state of the
likelihood's own. Nothing else in the package asks which likelihood it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, NoReturn, Self

import numpy as np
import numpy.typing as npt

from tuckergp.errors import InputError
from tuckergp.likelihoods.given import Label, NoiseSettings, Observed, Predicted, row_of_target
from tuckergp.likelihoods.precision import Precision, RowSums
from tuckergp.likelihoods.ranked import ranked_score
from tuckergp.random import block_streams

__all__ = ["Likelihood"]

Floats = npt.NDArray[np.float64]

NO_NUMBERS = np.zeros(0)
# The probability of what is left out at each end of a distribution; it enters scores squared.
NEGLIGIBLE = 1e-4


class Likelihood(ABC):
    """p(y | f), elementwise for arrays y and f of one shape.

    Class attributes
    ----------------
    name : str
        What users call it.
    inferences : tuple of str
        Those that can learn it.
    sampler : str
        The one to recommend where draws are wanted.
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
    latent : str
        What f is called where it is not in the units of the targets.
    predicts : str
        What the mean of a recommender's observation is called.
    row_noise : bool
        Whether rows may have noise factors.
    default_noise : {"shared", "rows"}
        What recommenders take where users do not say.
    repeats : bool
        Whether weights other than 1 are allowed in Gibbs sampling.
    heavier : str or None
        The name of the same likelihood with heavier tails, for targets with outliers.
    averages : bool
        Whether the mean of several targets is a target too.
    counts, has_levels : bool
        Whether targets are counts, which may have exposures, or some of a few levels, which have probabilities.
    clicks : bool
        Whether a recommender can learn from pairs without ratings.
    all_pairs : bool
        Whether every pair of a user and an item that is not listed is an observation too, of 0. Otherwise a
        recommender adds zeros to clicks, drawn at random.
    dims : mapping of str to list of str
        Names of the dimensions of what is `watched`, where there are several numbers of a name.
    """

    name: ClassVar[str]
    inferences: ClassVar[tuple[str, ...]]
    sampler: ClassVar[str] = "gibbs"
    code: ClassVar[int] = -1
    conjugate: ClassVar[bool] = False
    has_noise: ClassVar[bool] = False
    augmented: ClassVar[bool] = True
    linear: ClassVar[bool] = False
    latent: ClassVar[str] = "latent utility"
    predicts: ClassVar[str] = "rating"
    row_noise: ClassVar[bool] = False
    default_noise: ClassVar[Literal["shared", "rows"]] = "shared"
    repeats: ClassVar[bool] = True
    heavier: ClassVar[str | None] = None
    averages: ClassVar[bool] = False
    counts: ClassVar[bool] = False
    has_levels: ClassVar[bool] = False
    clicks: ClassVar[bool] = False
    all_pairs: ClassVar[bool] = False
    dims: ClassVar[Mapping[str, list[str]]] = {}

    mean: float = 0.0
    """What f = 0 stands for, in the units in which components of f are shown."""
    scale: float = 1.0
    """What f = 1 adds to that."""

    # Targets

    @classmethod
    def check(cls, y: Floats, label: Label = row_of_target) -> None:
        """Refuse targets (N,) that the likelihood does not allow, naming the first."""

    def check_more(self, y: Floats, label: Label = row_of_target) -> None:
        """Refuse targets (N,) that a fitted model cannot be updated with, naming the first."""
        self.check(y, label)

    @classmethod
    def check_core(cls, core: Any) -> None:
        """Refuse a core of the model that the likelihood does not allow."""

    @classmethod
    def require(cls, possible: npt.NDArray[np.bool_], needed: str, y: Floats, label: Label) -> None:
        """Refuse targets (N,) unless all are possible; ``needed`` says what they must be."""
        if not possible.all():
            row = int(np.argmin(possible))
            raise InputError(f"likelihood={cls.name!r} needs {needed}, but {label(row)} holds {y[row]:g}.")

    @classmethod
    def refuse_means(cls) -> NoReturn:
        """Refuse means of several targets."""
        raise InputError(
            f"Means of ratings make no sense with likelihood={cls.name!r}; use duplicates='keep' or 'refuse'."
        )

    @classmethod
    def target_range(cls, y: Floats) -> tuple[float, float]:
        """The smallest and largest possible target, given some targets, where users do not say."""
        return float(y.min()), float(y.max())

    @classmethod
    @abstractmethod
    def read(cls, y: Floats, weight: Floats | None = None, exposure: Floats | None = None) -> Self:
        """The likelihood for these targets (N,), which are checked."""

    @abstractmethod
    def targets(self, y: Floats) -> Floats:
        """Targets as the other methods take them: standardised, or numbers of levels."""

    def original(self, targets: Floats) -> Floats:
        """The targets that `targets` was given, from what it returned."""
        return targets

    def offset(self, count: int, exposure: Floats | None) -> Floats | None:
        """What is added to f at ``count`` observations, (N,); None for nothing."""
        return None

    @property
    def levels(self) -> Floats:
        """The values of the levels, (K,); none for other targets."""
        return NO_NUMBERS

    @classmethod
    def as_numbers(cls, y: Floats, exposure: Floats | None) -> Floats:
        """Targets roughly on the scale of f, for Gaussian models that are fitted first."""
        return y

    def with_noise(self, variance: float) -> Self:
        """The same likelihood with Gaussian noise of this variance; likelihoods without such noise are unchanged."""
        return self

    # Density

    @property
    def parameters(self) -> Floats:
        """Numbers for the compiled loops."""
        return NO_NUMBERS

    @abstractmethod
    def log_density(self, y: Floats, f: Floats) -> Floats:
        """The log density log p(y | f), normalised."""

    @abstractmethod
    def score(self, y: Floats, f: Floats) -> Floats:
        """The derivative of log p(y | f) in f."""

    @abstractmethod
    def information(self, y: Floats) -> float:
        """About how much each observation adds to the precision of f, given all targets; scales gradient steps."""

    # Unknowns that gradients move

    @property
    def free(self) -> Floats:
        """The unknowns that gradients move, unconstrained, (k,)."""
        return NO_NUMBERS

    @property
    def free_scale(self) -> float:
        """About the prior standard deviation of the unknowns in `free`."""
        return 1.0

    def with_free(self, values: Floats) -> Self:
        """The likelihood at other values of the unknowns in `free`."""
        return self

    def log_prior(self, values: Floats) -> tuple[float, Floats]:
        """Log prior density of the unknowns in `free`, up to a constant, and its gradient (k,)."""
        return 0.0, NO_NUMBERS

    def slopes(self, y: Floats, f: Floats, weight: Floats | None = None) -> tuple[Floats, Floats, Floats]:
        """Log densities and scores (N,), and the derivative of the weighted sum of the former in `free` (k,)."""
        return self.log_density(y, f), self.score(y, f), NO_NUMBERS

    def most_probable(self, y: Floats, f: Floats, weight: Floats | None = None) -> Floats:
        """The most probable values of `free` given f."""
        return self.free

    # Gibbs sampling

    def start(self, observed: Observed, settings: NoiseSettings) -> Any:
        """The state of the likelihood's own unknowns before the first sweep, if Gibbs sampling is possible."""
        if "gibbs" not in self.inferences:
            raise InputError(
                f"Gibbs sampling does not support likelihood={self.name!r}; use inference="
                f"{', '.join(map(repr, self.inferences))}."
            )
        if settings.rows and not self.row_noise:
            raise InputError(f"noise='rows' has no meaning with likelihood={self.name!r}; use noise='shared'.")
        if not self.repeats and observed.weight is not None and not (observed.weight == 1).all():
            raise InputError(
                f"Gibbs sampling with likelihood={self.name!r} takes no weights but 1; repeat the rows instead."
            )
        return self.initial(observed, settings)

    def initial(self, observed: Observed, settings: NoiseSettings) -> Any:
        """The state of the likelihood's own unknowns before the first sweep."""
        raise NotImplementedError

    def draw_given_function(self, state: Any, observed: Observed, f: Floats, rng: np.random.Generator) -> Any:
        """Draw unknowns given f (N,), with everything that `augment` draws integrated out."""
        return state

    def augment(
        self, state: Any, observed: Observed, f: Callable[[], Floats], rng: np.random.Generator
    ) -> tuple[Floats, Precision]:
        """Working targets (N,) and precisions, given which y = f + Gaussian noise."""
        raise NotImplementedError

    def fixed(self, observed: Observed) -> tuple[Floats, Precision]:
        """Targets (N,) and precisions for algorithms that hold the noise fixed, where y = f + Gaussian noise."""
        return observed.y, Precision(float(self.unknowns()["alpha"]), observed.weight)

    def mean_square(self, observed: Observed, sums: RowSums) -> float:
        """The mean squared residual of all observations, from sums over the rows of a mode."""
        return float(sums.squares.sum() / observed.count)

    def draw_noise(
        self,
        state: Any,
        observed: Observed,
        precision: Precision,
        sums: Callable[[int, Precision], RowSums],
        settings: NoiseSettings,
        rng: np.random.Generator,
    ) -> tuple[Any, float]:
        """Draw the unknowns of the noise given f; also the mean squared residual, NaN where it is not known."""
        return state, float("nan")

    def log_likelihood(self, state: Any, observed: Observed, f: Floats) -> Floats:
        """log p(y | f) at each observation, (N,), with the unknowns of a state."""
        raise NotImplementedError

    def kept(self, state: Any) -> dict[str, Floats]:
        """What a draw keeps of a state, by name."""
        raise NotImplementedError

    def factors(self, state: Any) -> tuple[Floats | None, ...]:
        """The noise factors of a state, for each mode those of its groups of rows or None; () for none at all."""
        return ()

    def working(self, at: Predicted, y: Floats, rng: np.random.Generator | None) -> tuple[Floats, Floats]:
        """Working targets and precisions, (S, n), of targets y (n,) in draws that were kept; see `augment`."""
        raise InputError(f"Nothing can be folded into a model with likelihood={self.name!r}; fit again.")

    def continued(
        self,
        state: Any,
        unknowns: Mapping[str, Floats],
        factors: Sequence[Floats | None],
        rng: np.random.Generator,
    ) -> Any:
        """A new state with the unknowns and noise factors of a draw, where it has any."""
        raise NotImplementedError

    # What is kept of a point, and what is watched

    def unknowns(self) -> dict[str, Floats]:
        """What a draw keeps of the likelihood at its present values."""
        return {}

    def fault(self, unknowns: Mapping[str, Floats]) -> str | None:
        """What is wrong with the unknowns of draws, (S, ...) each; None if nothing is."""
        return None

    def watched(self, unknowns: Mapping[str, Floats]) -> dict[str, Floats]:
        """The unknowns worth monitoring, by the name they are shown by."""
        return {}

    def in_units(self, watched: Mapping[str, Floats]) -> dict[str, Floats]:
        """The `watched` unknowns in the units of the targets."""
        return dict(watched)

    def in_other_units(self, mean: float, scale: float) -> Self:
        """The same for targets mean + scale y in place of y; levels and counts have no units."""
        return self

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
    def log_densities(self, at: Predicted, y: Floats) -> Floats:
        """Log density, or probability, of observations y (n,) in the units of the targets in each draw, (S, n)."""

    @abstractmethod
    def distribution(self, at: Predicted, y: Floats) -> Floats:
        """Probability that a new observation is at most y (n,), all draws together, (n,)."""

    @abstractmethod
    def quantiles(self, at: Predicted, levels: Sequence[float]) -> Floats:
        """Quantiles of a new observation, all draws together, (n, len(levels))."""

    def sample(self, at: Predicted, rng: np.random.Generator) -> Floats:
        """A new observation from each draw, (S, n); every block of observations has its own stream."""
        out = np.empty(at.f.shape)
        for block, block_rng in block_streams(at.f.shape[1], rng):
            out[:, block] = self.sample_block(at.take(block), block_rng)
        return out

    @abstractmethod
    def sample_block(self, at: Predicted, rng: np.random.Generator) -> Floats:
        """A new observation from each draw, (S, n), for one block of observations."""

    def interval(self, at: Predicted, share: float) -> Floats:
        """The interval that holds a new observation with probability ``share``, (n, 2)."""
        tail = (1 - share) / 2
        return self.quantiles(at, [tail, 1 - tail])

    def crps(self, at: Predicted, y: Floats) -> Floats:
        """Continuous ranked probability score of observations y (n,) in the units of the targets, (n,).

        That of the mixture of all draws, from its `distribution` between two extreme quantiles.
        """
        low, high = self.quantiles(at, [NEGLIGIBLE, 1 - NEGLIGIBLE]).T
        return ranked_score(lambda x: self.distribution(at, x), low, high, y, whole=self.counts)

    def probabilities(self, at: Predicted) -> Floats:
        """Probability of each level in each draw, (S, n, K)."""
        raise InputError(f"likelihood={self.name!r} has no levels, and so no probabilities of them.")
