"""Noise factors of rows: some people rate erratically, some items divide opinions.

The noise precision of an observation is alpha times the factors of its rows, each ~ Gamma(nu / 2, nu / 2) with mean 1,
nu >= 4 unknown. Rows may come in groups (the weeks of one user) that share a factor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from tuckergp.errors import InputError
from tuckergp.likelihoods.given import NoiseSettings, Observed
from tuckergp.likelihoods.precision import Precision, RowSums
from tuckergp.random import gammas, log_slice

__all__ = [
    "NU",
    "RowNoise",
    "Sums",
    "continued",
    "draw",
    "draw_factors",
    "draw_shape",
    "kept",
    "nu_of_draws",
    "precision_of",
    "start",
    "unknowns",
]

Floats = npt.NDArray[np.float64]
# Squared residuals summed by the rows of mode d, under a precision.
Sums: TypeAlias = Callable[[int, Precision], RowSums]

# nu: where it starts, its smallest value, and the mean of its exponential prior.
START, LEAST, PRIOR_MEAN = 10.0, 4.0, 20.0

NU = "row_nu"
"""The name under which draws keep nu of each mode, (S, D), where rows have noise factors."""

# How many groups tell nu where it was not kept: 1,000 tell it to about 5 %.
ENOUGH = 1_000


class RowNoise(NamedTuple):
    """Factors of the groups of rows of each mode, (groups,), none where a mode has none; and nu of each mode."""

    factors: tuple[Floats, ...] = ()
    nu: tuple[float, ...] = ()


def start(observed: Observed, settings: NoiseSettings) -> RowNoise:
    """The noise factors before the first sweep: all 1, or none if the noise is shared."""
    if not settings.rows:
        return RowNoise()
    if not any(observed.n_groups):
        raise InputError(
            "Gibbs: noise='rows' needs a mode with rows, an Identity term that tells its inputs apart; use "
            "noise='shared'."
        )
    return RowNoise(tuple(np.ones(n) for n in observed.n_groups), (START,) * len(observed.n_groups))


def continued(
    noise: RowNoise, unknowns: Mapping[str, Floats], factors: Sequence[Floats | None], rng: np.random.Generator
) -> RowNoise:
    """The noise factors with those given in their place, and nu of the draw, or drawn given them where it has none."""
    if not noise.factors:
        return noise
    values = tuple(old if given is None else given for old, given in zip(noise.factors, factors, strict=True))
    if NU in unknowns:
        return RowNoise(values, tuple(unknowns[NU].tolist()))
    nu = tuple(draw_shape(of_mode, START, rng) if len(of_mode) else START for of_mode in values)
    return RowNoise(values, nu)


def kept(noise: RowNoise) -> tuple[Floats | None, ...]:
    """What a draw keeps: the factors of each mode, None for a mode without."""
    return tuple(values if len(values) else None for values in noise.factors)


def unknowns(noise: RowNoise) -> dict[str, Floats]:
    """What a draw keeps besides: nu of each mode, (D,), where rows have noise factors."""
    return {NU: np.array(noise.nu)} if noise.factors else {}


def nu_of_draws(unknowns: Mapping[str, Floats], d: int, factors: Any, count: int) -> Floats:
    """nu of mode d in all draws, (S,), given the noise factors of groups, (m, S), of which training had ``count``.

    Draws of older versions did not keep it: there it is read off the factors, whose variance is 2 / nu.
    """
    if NU in unknowns:
        return unknowns[NU][:, d]
    some = np.asarray(factors[np.unique(np.linspace(0, count - 1, min(count, ENOUGH)).astype(np.intp))])
    variance = some.var(axis=0, dtype=np.float64, ddof=min(1, count - 1))
    return np.asarray(np.maximum(2 / np.maximum(variance, 2 / (100 * LEAST)), LEAST))


def precision_of(noise: RowNoise, alpha: float, weight: Floats | None, observed: Observed) -> Precision:
    """The noise precision of the observations."""
    if not noise.factors:
        return Precision(alpha, weight)
    return Precision(alpha, weight, [_of_rows(noise, d, observed) for d in range(len(noise.factors))])


def draw(
    noise: RowNoise, precision: Precision, observed: Observed, sums: Sums, rng: np.random.Generator
) -> tuple[RowNoise, float, float]:
    """Draw noise factors and nu, mode by mode, given f and the rest of the precision.

    Also returns the weighted sum of squared residuals, and the same times the new factors.
    """
    noisy = [d for d, factors in enumerate(noise.factors) if len(factors)]
    for d in noisy or [0]:
        row_sums = sums(d, precision)
        if noisy:
            groups, size = observed.groups[d], observed.n_groups[d]
            squares = np.bincount(groups, precision.alpha * row_sums.scaled, size).astype(np.float64)
            factors = draw_factors(observed.sizes[d], squares, noise.nu[d], rng)
            nu = draw_shape(factors, noise.nu[d], rng)
            noise = RowNoise(_replaced(noise.factors, d, factors), _replaced(noise.nu, d, nu))
            precision = precision_of(noise, precision.alpha, precision.weight, observed)
    scaled = float(_of_rows(noise, d, observed) @ row_sums.scaled) if noisy else float(row_sums.scaled.sum())
    return noise, float(row_sums.squares.sum()), scaled


def draw_factors(counts: Floats, squares: Floats, nu: float, rng: np.random.Generator) -> Floats:
    """Draw the factor of each group, Gamma((nu + N_m) / 2, (nu + S_m) / 2), S_m its weighted squared residuals."""
    return gammas((nu + counts) / 2, rng) / ((nu + squares) / 2)


def draw_shape(factors: Floats, nu: float, rng: np.random.Generator) -> float:
    """Draw nu given factors ~ Gamma(nu / 2, nu / 2), by a slice step on log nu under an exponential prior."""
    total_log, total, count = float(np.log(factors).sum()), float(factors.sum()), len(factors)

    def log_density(log_nu: float) -> float:
        nu = float(np.exp(log_nu))
        if nu < LEAST:
            return -np.inf
        half = nu / 2
        # log prod_m Gamma(a_m; nu / 2, nu / 2), the prior, and the Jacobian of the logarithm
        fit = count * (half * np.log(half) - gammaln(half)) + (half - 1) * total_log - half * total
        return float(fit - nu / PRIOR_MEAN + log_nu)

    return float(np.exp(log_slice(log_density, float(np.log(nu)), 0.5, rng)))


def _of_rows(noise: RowNoise, d: int, observed: Observed) -> Floats:
    """The factor of each row of a mode; ones for a mode without."""
    groups, factors = observed.groups[d], noise.factors[d]
    return factors[groups] if len(factors) else np.ones(len(groups))


def _replaced(values: tuple[Any, ...], d: int, value: Any) -> tuple[Any, ...]:
    return (*values[:d], value, *values[d + 1 :])
