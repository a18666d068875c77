"""Convergence of chains: R-hat, and the effective sample size (ESS), the number of independent draws they are worth.

Rank-normalised split R-hat, bulk and tail ESS of Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021). Use them on
identifiable quantities (predictions, noise), never on raw U or W, and on a few hundred of them: the worst of very many
exceeds a limit by chance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from tuckergp.errors import InputError

__all__ = ["ERROR_LIMIT", "Diagnostics", "ess_bulk", "ess_tail", "rhat", "summarise"]

Floats = npt.NDArray[np.float64]

ERROR_LIMIT = 0.2
"""The largest Monte Carlo error of a mean, in posterior standard deviations, that raises no warning."""

LEAST_DRAWS = 4
ENTRIES_AT_ONCE = 2**22


@dataclass(frozen=True)
class Diagnostics:
    """R-hat and effective sample sizes of each quantity, and a warning where they are poor.

    Attributes
    ----------
    rhat, ess_bulk, ess_tail : ndarray
        One entry per quantity. NaN where they are not defined: for a quantity that never varies or has a draw that is
        not finite, and with fewer than four draws per chain.
    chains, draws : int
        The number of chains, and of draws per chain.
    not_finite : int
        The number of quantities with a draw that is not finite.
    """

    rhat: Floats
    ess_bulk: Floats
    ess_tail: Floats
    chains: int
    draws: int
    not_finite: int = 0

    @property
    def worst_rhat(self) -> float:
        """The largest R-hat of any quantity; NaN if there is none."""
        return float(np.fmax.reduce(self.rhat, axis=None, initial=np.nan))

    @property
    def lowest_ess(self) -> float:
        """The smallest bulk or tail ESS of any quantity; NaN if there is none."""
        return float(np.fmin.reduce(np.fmin(self.ess_bulk, self.ess_tail), axis=None, initial=np.nan))

    @property
    def mean_error(self) -> Floats:
        """The Monte Carlo error of the mean of each quantity, in posterior standard deviations: ESS^-1/2."""
        return np.asarray(1.0 / np.sqrt(self.ess_bulk))

    def warning(self, share: float = 0.0) -> str | None:
        """One sentence with the remedy if the means should not be trusted yet, else None.

        The Monte Carlo error of a ``share`` of the quantities may be above the limit without a warning: by chance, or
        because of rare rows. Chains that disagree have a large error.
        """
        if self.rhat.size == 0:
            return None
        if self.not_finite:
            return (
                f"{self.not_finite} of {self.rhat.size} quantities have draws that are not finite, so the sampler "
                "diverged; check the scale of the inputs or take smaller steps."
            )
        if self.draws < LEAST_DRAWS:
            return f"draws={self.draws} per chain is too few to judge convergence; raise it."
        if np.isnan(self.worst_rhat):
            return "No quantity varies over the draws, so the chains are stuck; try another start or smaller steps."
        error = float(np.nanquantile(self.mean_error, 1.0 - share, method="lower"))
        if error <= ERROR_LIMIT:
            return None
        return (
            f"Predictions may still move by {error:.0%} of their posterior standard deviation, for the draws are worth "
            f"{1 / error**2:.0f} independent ones (R-hat reaches {self.worst_rhat:.2f}); raise draws to about "
            f"{self._draws_needed(error)}, and warmup with them."
        )

    def _draws_needed(self, error: float) -> int:
        """Draws per chain that would bring a Monte Carlo error to its limit, rounded up to two digits."""
        needed = self.draws * (error / ERROR_LIMIT) ** 2
        unit = 10.0 ** max(int(np.log10(needed)) - 1, 0)
        return int(np.ceil(needed / unit) * unit)


def summarise(draws: npt.ArrayLike) -> Diagnostics:
    """Compute R-hat and effective sample sizes of each quantity from its draws.

    Parameters
    ----------
    draws : array_like, shape (chains, draws, ...)
        The trailing axes are the quantities.

    Examples
    --------
    >>> import numpy as np
    >>> summary = summarise(np.random.default_rng(0).standard_normal((4, 250, 10)))
    >>> summary.worst_rhat < 1.05, summary.lowest_ess > 100, summary.warning()
    (True, True, None)
    """
    values = _checked(draws)
    finite = np.isfinite(values).all(axis=(0, 1))
    return Diagnostics(
        rhat(values),
        ess_bulk(values),
        ess_tail(values),
        chains=values.shape[0],
        draws=values.shape[1],
        not_finite=int(np.sum(~finite)),
    )


def rhat(draws: npt.ArrayLike) -> Floats:
    """Rank-normalised split R-hat, the larger of bulk and folded, of draws (chains, draws, ...); shape (...)."""
    return _by_quantity(draws, lambda x: _rhat(_split(x)))


def ess_bulk(draws: npt.ArrayLike) -> Floats:
    """Effective sample size for the centre of the distribution, of draws (chains, draws, ...); shape (...)."""
    return _by_quantity(draws, lambda x: _ess(_normal_scores(_split(x))))


def ess_tail(draws: npt.ArrayLike) -> Floats:
    """Effective sample size of the 5 % or 95 % quantile, the smaller, of draws (chains, draws, ...); shape (...)."""
    return _by_quantity(draws, _ess_tail)


def _checked(draws: npt.ArrayLike) -> Floats:
    values = np.asarray(draws, dtype=np.float64)
    if values.ndim < 2:
        raise InputError(f"Draws must have axes (chains, draws, quantities), not shape {values.shape}.")
    return values


def _by_quantity(draws: npt.ArrayLike, diagnose: Callable[[Floats], Floats]) -> Floats:
    """Apply a diagnostic of (quantities, chains, draws) to blocks of quantities; NaN where it is not defined."""
    values = _checked(draws)
    chains, length = values.shape[:2]
    flat = values.reshape(chains, length, int(np.prod(values.shape[2:])))
    result = np.full(flat.shape[2], np.nan)
    if length >= LEAST_DRAWS and chains > 0:
        block = max(1, ENTRIES_AT_ONCE // (chains * length))
        for first in range(0, flat.shape[2], block):
            quantities = np.ascontiguousarray(np.moveaxis(flat[:, :, first : first + block], 2, 0))
            varies = np.isfinite(quantities).all(axis=(1, 2)) & ~_constant(quantities)
            if varies.any():
                result[first + np.flatnonzero(varies)] = diagnose(quantities[varies])
    return result.reshape(values.shape[2:])


def _constant(x: Floats) -> npt.NDArray[np.bool_]:
    """Which quantities of (quantities, chains, draws) do not vary beyond rounding."""
    with np.errstate(invalid="ignore"):
        spread, size = np.ptp(x, axis=(1, 2)), np.abs(x).max(axis=(1, 2), initial=0.0)
        constant: npt.NDArray[np.bool_] = spread <= 1e-13 * size
    return constant


def _split(x: Floats) -> Floats:
    """Split every chain into halves, without the middle draw of an odd number: (quantities, 2 chains, draws // 2)."""
    half = x.shape[2] // 2
    return np.concatenate([x[:, :, :half], x[:, :, -half:]], axis=1)


def _normal_scores(x: Floats) -> Floats:
    """Normal quantiles of the ranks over all chains, ties averaged (Blom's offset 3/8)."""
    from scipy.stats import rankdata  # half a second to load

    ranks = rankdata(x.reshape(len(x), -1), axis=1)
    scores: Floats = ndtri((ranks - 0.375) / (ranks.shape[1] + 0.25)).reshape(x.shape)
    return scores


def _rhat(x: Floats) -> Floats:
    folded = np.abs(x - np.median(x, axis=(1, 2), keepdims=True))
    return np.fmax(_plain_rhat(_normal_scores(x)), _plain_rhat(_normal_scores(folded)))


def _plain_rhat(x: Floats) -> Floats:
    """Gelman and Rubin's statistic; infinite where every chain is stuck at a value of its own."""
    n = x.shape[2]
    within = x.var(axis=2, ddof=1).mean(axis=1)
    between = x.mean(axis=2).var(axis=1, ddof=1)
    # ranks of stuck chains differ by rounding alone
    within[within < 1e-20] = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        value: Floats = np.sqrt((n - 1) / n + between / within)
    return value


def _ess_tail(x: Floats) -> Floats:
    edges = np.quantile(x, [0.05, 0.95], axis=(1, 2))
    low, high = (_ess(_split((x <= edge[:, None, None]).astype(np.float64))) for edge in edges)
    return np.fmin(low, high)


def _ess(x: Floats) -> Floats:
    """Effective sample size of the mean of (quantities, chains, draws), truncated by Geyer's monotone sequence."""
    _, chains, n = x.shape
    covariance = _autocovariance(x).mean(axis=1)
    within = covariance[:, 0] * n / (n - 1)
    variance = covariance[:, 0] + (x.mean(axis=2).var(axis=1, ddof=1) if chains > 1 else 0.0)
    moves = ~_constant(x)
    rho = 1.0 - (within[:, None] - covariance) / np.where(moves, variance, 1.0)[:, None]
    rho[:, 0] = 1.0
    # Sums of neighbouring lags are positive and decrease for a reversible chain; stop at the first that is not, and
    # never use the last few lags
    last = max(0, (n - 3) // 2)
    pairs = rho[:, 0 : 2 * last + 2 : 2] + rho[:, 1 : 2 * last + 2 : 2]
    stop = np.where((pairs <= 0).any(axis=1), np.argmax(pairs <= 0, axis=1), last)
    kept = np.arange(last + 1) < stop[:, None]
    total = np.where(kept, np.minimum.accumulate(pairs, axis=1), 0.0).sum(axis=1)
    # the even lag after the last kept pair lowers the variance of the estimate (Vehtari et al., section 3.2)
    each = np.arange(len(x))
    extra = rho[each, 2 * stop]
    extra = np.where(pairs[each, stop] >= 0, extra, np.maximum(extra, 0.0))  # at the last lag as ArviZ has it
    size = chains * n
    tau = np.maximum(-1.0 + 2.0 * total + extra, 1.0 / np.log10(size))
    return np.where(moves, size / tau, np.nan)


def _autocovariance(x: Floats) -> Floats:
    """Autocovariance at every lag along the last axis, divided by its length."""
    from scipy.fft import irfft, next_fast_len, rfft  # not needed to answer from a model

    n = x.shape[-1]
    padded = next_fast_len(2 * n, real=True)
    spectrum = rfft(x - x.mean(axis=-1, keepdims=True), n=padded, axis=-1)
    covariance: Floats = irfft(np.abs(spectrum) ** 2, n=padded, axis=-1)[..., :n] / n
    return covariance
