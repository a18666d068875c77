"""Ordered levels: y counts the cut points below z ~ N(f, 1), so that P(y <= k | f) = Phi(c_k - f).

Two levels with their cut point at 0 are the Bernoulli probit model. The formulas and draws are in
`tuckergp.likelihoods.levels`; given z the model is Gaussian, and the noise of rows may have factors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from tuckergp.compute.ordinal import level_slopes
from tuckergp.errors import InputError
from tuckergp.likelihoods import row_noise
from tuckergp.likelihoods.given import Label, NoiseSettings, Observed, Predicted, row_of_target
from tuckergp.likelihoods.levels import (
    CutPrior,
    draw_cuts,
    draw_latent,
    initial_cuts,
    level_probabilities,
    log_probability,
)
from tuckergp.likelihoods.of_levels import OfLevels
from tuckergp.likelihoods.precision import Precision
from tuckergp.likelihoods.row_noise import RowNoise, Sums
from tuckergp.random import uniforms

__all__ = ["Bernoulli", "Ordinal", "OrdinalState"]

Floats = npt.NDArray[np.float64]

MOST_LEVELS = 100
# Bounds of the logarithms of distances between cut points, so that their sums still increase in floating point.
LEAST_GAP, LARGEST_GAP = -20.0, 10.0


class OrdinalState(NamedTuple):
    """The cut points (K - 1,), and the noise factors of rows where they have some."""

    cuts: Floats
    rows: RowNoise


@dataclass(frozen=True)
class Ordinal(OfLevels):
    """Ordered levels 0..K-1 by a probit.

    The first cut point is fixed, because a constant in f says the same; the others are learned. For gradients the
    unknowns are the logarithms of the distances c_k - c_{k-1}.

    Attributes
    ----------
    cuts : tuple of float, length K - 1
        The cut points, increasing; in a model, where they start.
    values : tuple of float, length K
        The targets that the levels stand for; 0 to K - 1 if not given.

    Examples
    --------
    >>> Ordinal((0.0,)).n_levels
    2
    >>> Ordinal((0.0, 1.0)).with_free(np.log([2.0])).cuts
    (0.0, 2.0)
    """

    cuts: tuple[float, ...]
    values: tuple[float, ...] = ()

    name: ClassVar[str] = "ordinal"
    inferences: ClassVar[tuple[str, ...]] = ("gibbs", "hmc", "nuts", "sgld", "sgd")
    code: ClassVar[int] = 1
    row_noise: ClassVar[bool] = True
    default_noise: ClassVar[Literal["shared", "rows"]] = "rows"
    repeats: ClassVar[bool] = False
    dims: ClassVar[Mapping[str, list[str]]] = {"cuts": ["cut"]}

    def __post_init__(self) -> None:
        if not self.cuts or not np.isfinite(self.cuts).all() or (np.diff(self.cuts) <= 0).any():
            raise InputError(f"Cut points must be finite and increasing, not {self.cuts!r}.")
        if not self.values:
            object.__setattr__(self, "values", tuple(map(float, range(len(self.cuts) + 1))))

    @property
    def n_levels(self) -> int:
        """The number of levels, K."""
        return len(self.cuts) + 1

    @property
    def levels(self) -> Floats:
        """The values of the levels, (K,)."""
        return np.array(self.values)

    # Targets

    def check_more(self, y: Floats, label: Label = row_of_target) -> None:
        """Refuse targets that are none of the levels."""
        strange = ~np.isin(y, self.values)
        if strange.any():
            row, known = int(np.argmax(strange)), ", ".join(f"{level:g}" for level in self.values)
            raise InputError(
                f"{label(row)} holds {y[row]:g}, which is none of the levels that were learned: {known}; correct it, "
                f"or fit again."
            )

    @classmethod
    def read(cls, y: Floats, weight: Floats | None = None, exposure: Floats | None = None) -> Self:
        """The likelihood whose levels are the distinct targets, in order."""
        levels, code = np.unique(y, return_inverse=True)
        if not 2 <= len(levels) <= MOST_LEVELS:
            raise InputError(
                f"likelihood='ordinal' needs from 2 to {MOST_LEVELS} different target values, not {len(levels)}; "
                f"use likelihood='gaussian'."
            )
        cuts = initial_cuts(np.bincount(code, minlength=len(levels)))
        return cls(tuple(map(float, cuts)), tuple(map(float, levels)))

    def targets(self, y: Floats) -> Floats:
        """Targets as numbers of levels, 0 to K - 1."""
        if not np.isin(y, self.values).all():
            self.refuse_means()
        return np.searchsorted(self.values, y).astype(np.float64)

    def original(self, targets: Floats) -> Floats:
        """The values of the levels."""
        return self.levels[targets.astype(np.intp)]

    # Density

    @property
    def parameters(self) -> Floats:
        """The cut points."""
        return np.array(self.cuts)

    def log_density(self, y: Floats, f: Floats) -> Floats:
        """Log of the probability of level y; finite however improbable."""
        return self.slopes(y, f)[0]

    def score(self, y: Floats, f: Floats) -> Floats:
        """The density of z at the lower end of the level's interval less that at the upper, over its probability."""
        return self.slopes(y, f)[1]

    def information(self, y: Floats) -> float:
        """The information of z, which is 1; that of its level is a little less."""
        return 1.0

    # Gaps: logarithms of the distances between cut points

    @property
    def free(self) -> Floats:
        """Logarithms of the distances between cut points, shape (K - 2,)."""
        return np.asarray(np.log(np.diff(self.cuts)))

    @property
    def free_scale(self) -> float:
        """Prior standard deviation of the logarithm of a distance."""
        return CutPrior().gap_sd

    def with_free(self, values: Floats) -> Self:
        """The same first cut point, and the others at these logarithms of distances (K - 2,)."""
        distances = np.exp(np.clip(np.nan_to_num(values), LEAST_GAP, LARGEST_GAP))
        others = self.cuts[0] + np.cumsum(distances)
        return replace(self, cuts=(self.cuts[0], *others.tolist()))

    def log_prior(self, values: Floats) -> tuple[float, Floats]:
        """Log prior density of the logarithms of distances, up to a constant, and its gradient."""
        return CutPrior().log_gaps(values)

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

    def most_probable(self, y: Floats, f: Floats, weight: Floats | None = None) -> Floats:
        """The most probable gaps (K - 2,) given f, from the present ones on; some ten passes over f.

        The density is that of the logarithms of distances, log-concave in the cut points.
        """
        if not len(self.free):
            return self.free

        def minus_log_density(gaps: Floats) -> tuple[float, Floats]:
            logs, _, slopes = self.with_free(gaps).slopes(y, f, weight)
            log_prior, prior_slopes = self.log_prior(gaps)
            return -float(np.sum(logs if weight is None else weight * logs)) - log_prior, -slopes - prior_slopes

        bounds = [(LEAST_GAP, LARGEST_GAP)] * (self.n_levels - 2)
        from scipy.optimize import minimize  # a quarter of a second to load

        result = minimize(minus_log_density, self.free, jac=True, method="L-BFGS-B", bounds=bounds)
        return np.asarray(result.x, dtype=np.float64)

    # Gibbs sampling

    def initial(self, observed: Observed, settings: NoiseSettings) -> OrdinalState:
        """The state before the first sweep: the cut points of this object."""
        return OrdinalState(np.array(self.cuts), row_noise.start(observed, settings))

    def draw_given_function(
        self, state: OrdinalState, observed: Observed, f: Floats, rng: np.random.Generator
    ) -> OrdinalState:
        """Draw the cut points with z integrated out: given z they could hardly move (Cowles 1996)."""
        if len(state.cuts) == 1:
            return state
        levels, root = observed.y.astype(np.int64), self._root(state, observed)
        return state._replace(cuts=draw_cuts(state.cuts, f, levels, rng, root=root))

    def augment(
        self, state: OrdinalState, observed: Observed, f: Callable[[], Floats], rng: np.random.Generator
    ) -> tuple[Floats, Precision]:
        """Draw z between the cut points around each level: the working targets."""
        precision = row_noise.precision_of(state.rows, 1.0, None, observed)
        levels, root = observed.y.astype(np.int64), np.sqrt(precision.at(observed.index))
        return draw_latent(f(), levels, state.cuts, uniforms(levels.shape, rng), root), precision

    def draw_noise(
        self,
        state: OrdinalState,
        observed: Observed,
        precision: Precision,
        sums: Sums,
        settings: NoiseSettings,
        rng: np.random.Generator,
    ) -> tuple[OrdinalState, float]:
        """Draw the noise factors of rows; the shared precision is 1."""
        rows, squares, _ = row_noise.draw(state.rows, precision, observed, sums, rng)
        return state._replace(rows=rows), squares / observed.count

    def _root(self, state: OrdinalState, observed: Observed) -> Floats:
        """The root of the noise precision of each observation, (N,)."""
        return np.sqrt(row_noise.precision_of(state.rows, 1.0, None, observed).at(observed.index))

    def log_likelihood(self, state: OrdinalState, observed: Observed, f: Floats) -> Floats:
        """Log probability of the level of each observation."""
        return log_probability(observed.y.astype(np.int64), f, state.cuts, self._root(state, observed))

    def kept(self, state: OrdinalState) -> dict[str, Floats]:
        """The cut points, ``cuts``, and nu of the noise factors."""
        return {"cuts": state.cuts, **row_noise.unknowns(state.rows)}

    def factors(self, state: OrdinalState) -> tuple[Floats | None, ...]:
        """The noise factors of rows."""
        return row_noise.kept(state.rows)

    def working(self, at: Predicted, y: Floats, rng: np.random.Generator | None) -> tuple[Floats, Floats]:
        """Draw z between the cut points around each level in each draw: the working targets."""
        if rng is None:
            raise InputError("A MAP estimate of an ordinal model takes in no ratings; use inference='gibbs'.")
        precision, levels = np.ones_like(at.f) if at.factors is None else at.factors, y.astype(np.int64)
        each = zip(at.f, at.unknowns["cuts"], uniforms(at.f.T.shape, rng).T, np.sqrt(precision), strict=True)
        return np.stack([draw_latent(f, levels, cuts, u, root) for f, cuts, u, root in each]), precision

    def continued(
        self,
        state: OrdinalState,
        unknowns: Mapping[str, Floats],
        factors: Sequence[Floats | None],
        rng: np.random.Generator,
    ) -> OrdinalState:
        """A state with these cut points and noise factors."""
        rows = row_noise.continued(state.rows, unknowns, factors, rng)
        return OrdinalState(np.array(unknowns["cuts"]), rows)

    def unknowns(self) -> dict[str, Floats]:
        """The cut points, ``cuts``."""
        return {"cuts": np.array(self.cuts)}

    def fault(self, unknowns: Mapping[str, Floats]) -> str | None:
        """Cut points that are not in order."""
        return "cuts are not in order" if (np.diff(unknowns["cuts"]) < 0).any() else None

    def watched(self, unknowns: Mapping[str, Floats]) -> dict[str, Floats]:
        """The cut points."""
        return {"cuts": unknowns["cuts"]}

    # Predictions

    def probabilities(self, at: Predicted) -> Floats:
        """The probability of each level in each draw, (S, n, K)."""
        roots = np.ones_like(at.f) if at.factors is None else np.sqrt(at.factors)
        each = zip(at.f, at.unknowns["cuts"], roots, strict=True)
        return np.stack([level_probabilities(f, cuts, root) for f, cuts, root in each])


@dataclass(frozen=True)
class Bernoulli(Ordinal):
    """Targets 0 and 1 by a probit: P(y = 1 | f) = Phi(f)."""

    name: ClassVar[str] = "bernoulli"
    predicts: ClassVar[str] = "probability"
    # the factors psi already say how decided a row is
    default_noise: ClassVar[Literal["shared", "rows"]] = "shared"
    clicks: ClassVar[bool] = True

    @classmethod
    def check(cls, y: Floats, label: Label = row_of_target) -> None:
        """Refuse targets other than 0 and 1."""
        cls.require(np.isin(y, (0.0, 1.0)), "targets 0 and 1", y, label)

    @classmethod
    def read(cls, y: Floats, weight: Floats | None = None, exposure: Floats | None = None) -> Self:
        """The likelihood with its cut point at 0."""
        cls.check(y)
        return cls((0.0,), (0.0, 1.0))
