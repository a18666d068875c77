"""Likelihoods that observe every pair of a user and an item, chosen or not, at the cost of the chosen ones.

The chosen pairs are ones with weight a_u w(count), all others zeros with weight a_u w0 c_j, in a Gaussian
pseudo-likelihood: y ~ N(f, 1 / (alpha temper w)). Nothing is drawn at random, and the zeros cost no more than the rows
of users and items (`tuckergp.likelihoods.background`). A posterior of a pseudo-likelihood says how far the data
determine f; it is as wide as ``temper`` makes it, not as wide as a model of how choices arise would be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from tuckergp.checks import Checked, number, one_of, positive, setting
from tuckergp.compute.contract import FULL
from tuckergp.errors import InputError
from tuckergp.likelihoods.background import Background
from tuckergp.likelihoods.base import Likelihood
from tuckergp.likelihoods.given import Label, NoiseSettings, Observed, Predicted, row_of_target
from tuckergp.likelihoods.precision import Precision, RowSums
from tuckergp.likelihoods.row_noise import Sums

__all__ = ["AllPairs", "AllPairsState", "Counting"]

Floats = npt.NDArray[np.float64]
Counting = Literal["none", "log", "linear"]

# The zeros of an item weigh at most this share of its ones.
LARGEST_SHARE = 0.95
USER, ITEM = 0, 1
# Cores that are drawn from their whole system.
LARGEST_CORE = 3_000
BETWEEN = number("a number between 0 and 1", lambda value: 0 < value < 1)
POWER = number("a number above 0, at most 1", lambda value: 0 < value <= 1)
SHARE = number("a number from 0 to 1", lambda value: 0 <= value <= 1)
# Usual values of settings that are left open.
SETTLED: dict[str, Any] = {"zeros": 0.3, "popularity": 0.0, "counting": "log", "temper": 0.1, "activity": 0.0}
# The link before choices decided it: a probability of a half at f = 1/2.
SLOPE, INTERCEPT = 8.0, -4.0


class AllPairsState(NamedTuple):
    """The noise precision."""

    alpha: float


class Cells(NamedTuple):
    """Choices as a regression beside a background of zeros; ``pairs`` is the number of all pairs.

    A chosen cell counts with weight w - w0 on top of its zero, and with the target w / (w - w0), so that A and b are
    those of weight w and target 1. That adds w w0 / (w - w0) to its squared residual: ``surplus`` is the sum. All of
    this times the weight of the user.
    """

    target: Floats
    weight: Floats
    background: Background
    surplus: float
    pairs: float


@dataclass(frozen=True)
class AllPairs(Likelihood, Checked):
    """Choices among all items: chosen pairs are ones, all other pairs are zeros of less weight.

    Its settings are described in `tuckergp.likelihoods.clicks.Clicks`. ``"auto"`` values are chosen by
    `TuckerRecommender` on held-out choices.
    """

    inferences: ClassVar[tuple[str, ...]] = ("gibbs", "als")
    has_noise: ClassVar[bool] = True
    augmented: ClassVar[bool] = False
    latent: ClassVar[str] = "tendency to choose"
    predicts: ClassVar[str] = "probability of a choice"
    clicks: ClassVar[bool] = True
    all_pairs: ClassVar[bool] = True

    zeros: float | Literal["auto"] = setting("auto", BETWEEN | one_of("auto"))
    popularity: float | Literal["auto"] = setting("auto", SHARE | one_of("auto"))
    counting: Counting | Literal["auto"] = setting("auto", one_of("none", "log", "linear", "auto"))
    temper: float | Literal["auto"] = setting("auto", POWER | one_of("auto"))
    activity: float | Literal["auto"] = setting("auto", SHARE | one_of("auto"))
    slope: float = setting(SLOPE, positive())
    intercept: float = setting(INTERCEPT, number())
    typical: float = setting(1.0, positive())
    usual: float = setting(1.0, positive())
    noise: float = setting(1.0, positive())

    def _label(self, name: str) -> str:
        return f"{type(self).__name__}: {name}"

    @property
    def open(self) -> list[str]:
        """The settings that are left to be chosen."""
        return [name for name in SETTLED if getattr(self, name) == "auto"]

    def settled(self) -> Self:
        """With usual values for the settings that are left open."""
        return replace(self, **{name: SETTLED[name] for name in self.open})

    @classmethod
    def check_core(cls, core: Any) -> None:
        """Refuse cores for which sums over all pairs are no products of sums."""
        if core.learned and not (core.modes == 2 and core.kind == FULL and core.n_weights <= LARGEST_CORE):
            raise InputError(
                f"likelihood={cls.name!r} needs core='identity' or, without time and context and up to rank "
                f"{int(LARGEST_CORE**0.5)}, core='full'."
            )

    # Targets

    @classmethod
    def check(cls, y: Floats, label: Label = row_of_target) -> None:
        """Refuse counts that are not positive."""
        cls.require(y > 0, "counts above 0", y, label)

    @classmethod
    def target_range(cls, y: Floats) -> tuple[float, float]:
        """Probabilities."""
        return 0.0, 1.0

    @classmethod
    def read(cls, y: Floats, weight: Floats | None = None, exposure: Floats | None = None) -> Self:
        """The likelihood with the median of the counts, which are 1 for plain choices, and usual settings."""
        return cls().reading(y).settled()

    def reading(self, y: Floats, choices: Floats | None = None) -> Self:
        """The same settings for these counts, and for users who made so many ``choices`` each."""
        read = replace(self, typical=float(np.median(y)))
        return read if choices is None else replace(read, usual=float(np.exp(np.log(np.maximum(choices, 1)).mean())))

    def targets(self, y: Floats) -> Floats:
        """The counts themselves."""
        return y

    def with_noise(self, variance: float) -> Self:
        """The same likelihood with this noise variance."""
        return replace(self, noise=variance)

    def weights(self, count: Floats) -> Floats:
        """The weights w of chosen pairs with these counts."""
        if self.counting == "none":
            return np.ones_like(count)
        relative = count / self.typical
        return np.asarray(1 + (np.log1p(relative) if self.counting == "log" else relative))

    def weights_of_zeros(self, chosen: Floats) -> Floats:
        """The weights w0 c_j of the zeros of items that were chosen so often, (items,)."""
        tilt = np.maximum(chosen, 1.0) ** self._number("popularity")
        return np.asarray(np.minimum(self._number("zeros") * tilt / tilt.mean(), LARGEST_SHARE))

    def weights_of_users(self, choices: Floats) -> Floats:
        """The weights a_u of all pairs of users with so many choices, (users,)."""
        return np.asarray((np.maximum(choices, 1.0) / self.usual) ** -self._number("activity"))

    def _number(self, name: str) -> float:
        value = getattr(self, name)
        if value == "auto":
            raise InputError(f"{self._label(name)}='auto' is for TuckerRecommender; give a number here.")
        return float(value)

    def cells(self, observed: Observed) -> Cells:
        """The choices as a regression beside a background of zeros."""
        known = observed.derived.get("cells")
        if known is None:
            rows = tuple(len(groups) for groups in observed.groups)
            user, item = observed.index[:, USER], observed.index[:, ITEM]
            of_users = self.weights_of_users(np.bincount(user, minlength=rows[USER]).astype(np.float64))
            zeros = self.weights_of_zeros(np.bincount(item, minlength=rows[ITEM]).astype(np.float64))
            background = Background.of(observed.index, rows, of_users, zeros, ITEM)
            target, weight = self.beside_zeros(observed.y, zeros[item])
            surplus = float(np.sum(target * zeros[item] * of_users[user]))
            known = Cells(target, weight * of_users[user], background, surplus, float(rows[USER] * rows[ITEM]))
            observed.derived["cells"] = known
        return known

    def beside_zeros(self, count: Floats, zeros: Floats) -> tuple[Floats, Floats]:
        """Working targets and weights of chosen pairs whose cells have zeros of these weights besides."""
        weight = self.weights(count)
        return weight / (weight - zeros), weight - zeros

    # Gibbs sampling and alternating least squares

    def initial(self, observed: Observed, settings: NoiseSettings) -> AllPairsState:
        """The state before the first sweep: the precision at its prior mean."""
        return AllPairsState(settings.shape / settings.rate)

    def augment(
        self, state: AllPairsState, observed: Observed, f: Callable[[], Floats], rng: np.random.Generator
    ) -> tuple[Floats, Precision]:
        """The choices beside a background of zeros."""
        return self._beside(observed, state.alpha)

    def fixed(self, observed: Observed) -> tuple[Floats, Precision]:
        """The choices beside a background of zeros, with the fixed noise."""
        return self._beside(observed, 1 / self.noise)

    def _beside(self, observed: Observed, alpha: float) -> tuple[Floats, Precision]:
        cells = self.cells(observed)
        return cells.target, Precision(self._number("temper") * alpha, cells.weight, background=cells.background)

    def mean_square(self, observed: Observed, sums: RowSums) -> float:
        """The weighted mean squared residual of all pairs, chosen or not."""
        cells = self.cells(observed)
        return float(sums.squares.sum() - cells.surplus + sums.background) / cells.pairs

    def draw_noise(
        self,
        state: AllPairsState,
        observed: Observed,
        precision: Precision,
        sums: Sums,
        settings: NoiseSettings,
        rng: np.random.Generator,
    ) -> tuple[AllPairsState, float]:
        """Draw alpha ~ Gamma(shape + t N / 2, rate + t S / 2), N pairs, S their weighted squares, t the temper."""
        square = self.mean_square(observed, sums(USER, precision))
        pairs = self._number("temper") * self.cells(observed).pairs
        alpha = float(rng.gamma(settings.shape + pairs / 2) / (settings.rate + pairs * square / 2))
        return AllPairsState(alpha), square

    def kept(self, state: AllPairsState) -> dict[str, Floats]:
        """The noise precision, ``alpha``."""
        return {"alpha": np.asarray(state.alpha)}

    def working(self, at: Predicted, y: Floats, rng: np.random.Generator | None) -> tuple[Floats, Floats]:
        """Working targets and precisions of choices beside the zeros of their cells."""
        target, weight = self.beside_zeros(y, np.zeros_like(y) if at.zeros is None else at.zeros)
        precision = self._number("temper") * at.unknowns["alpha"][:, None] * weight
        return np.broadcast_to(target, at.f.shape), precision

    def continued(
        self,
        state: AllPairsState,
        unknowns: Mapping[str, Floats],
        factors: Sequence[Floats | None],
        rng: np.random.Generator,
    ) -> AllPairsState:
        """A state with this alpha."""
        return AllPairsState(float(unknowns["alpha"]))

    def unknowns(self) -> dict[str, Floats]:
        """The noise precision, ``alpha``."""
        return {"alpha": np.asarray(1 / self.noise)}

    def watched(self, unknowns: Mapping[str, Floats]) -> dict[str, Floats]:
        """The standard deviation of the noise."""
        return {"noise": np.asarray(unknowns["alpha"] ** -0.5)}

    def figures(self, mean_square: float, log_likelihood: Callable[[], Floats], unknowns: Mapping[str, Floats]) -> Any:
        """Root mean square error over all pairs, and noise."""
        return {"train_rmse": mean_square**0.5, "noise": float(unknowns["alpha"]) ** -0.5}
