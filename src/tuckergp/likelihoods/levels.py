"""Ordinal probit: levels 0..K-1 with P(y <= k | f) = Phi(s (c_k - f)), and draws of the K - 1 cut points c.

Equivalently z ~ N(f, 1 / s^2) and y counts the cut points below z, so that given z the model is Gaussian. The root s of
the noise precision is 1, except for rows with a noise factor of their own. The cut points are
drawn with z integrated out (Cowles 1996): given z they could hardly move. Bernoulli probit is K = 2 with its one cut
point fixed at 0. A constant in f and the cut points say the same thing twice unless one is fixed.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, polygamma

from tuckergp.compute import ordinal as compute
from tuckergp.errors import DivergenceError, InputError
from tuckergp.random import log_slice

__all__ = [
    "CutPrior",
    "draw_cuts",
    "draw_latent",
    "initial_cuts",
    "level_interval",
    "level_probabilities",
    "log_probability",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.integer]

# A level is rare if it has less than this share of the observations of an average level
RARE = 0.1
MANY_LEVELS = 7


@dataclass(frozen=True)
class CutPrior:
    """Cut points a priori: spacings c_k - c_{k-1} ~ Gamma(shape, rate), c_0 ~ N(0, first_sd^2) unless fixed.

    The default says that cut points are of the order of the noise apart. With shape >= 1 the conditional of every cut
    point is log-concave, and with shape > 1 levels that nobody used do not collapse.
    """

    shape: float = 2.0
    rate: float = 1.0
    first_sd: float = 5.0

    def __post_init__(self) -> None:
        if not (self.shape > 1 and self.rate > 0 and self.first_sd > 0):
            raise InputError(f"CutPrior: shape must be above 1, rate and first_sd above 0, not {self!r}.")

    def draw(self, levels: int, rng: np.random.Generator, first: float | None = None) -> Floats:
        """Draw the K - 1 cut points of K levels, the first given or drawn."""
        start = rng.normal(0.0, self.first_sd) if first is None else first
        spacings = rng.gamma(self.shape, 1.0 / self.rate, levels - 2)
        return start + np.concatenate([[0.0], np.cumsum(spacings)])

    def log_first(self, cut: float) -> float:
        """Log density of c_0, up to a constant."""
        return -0.5 * (cut / self.first_sd) ** 2

    def log_spacing(self, spacing: float) -> float:
        """Log density of one spacing, up to a constant."""
        return float((self.shape - 1.0) * np.log(spacing) - self.rate * spacing) if spacing > 0 else -np.inf

    @property
    def gap_sd(self) -> float:
        """Standard deviation of the logarithm of a spacing."""
        return float(np.sqrt(polygamma(1, self.shape)))

    def log_gaps(self, gaps: Floats) -> tuple[float, Floats]:
        """Log density of the logarithms of spacings (K - 2,), up to a constant, and its gradient."""
        # Gamma(shape, rate) of exp(g), times exp(g) for the change to g: shape g - rate exp(g)
        spacings = np.exp(gaps)
        value = float(self.shape * gaps.sum() - self.rate * spacings.sum())
        return value, self.shape - self.rate * spacings


def initial_cuts(counts: npt.ArrayLike, first: float | None = None) -> Floats:
    """Cut points (K - 1,) that give f = 0 the shares of ``counts`` (K,); shifted so that the first is ``first``.

    Half an observation is added to each level, so that levels that nobody used do no harm.

    Examples
    --------
    >>> initial_cuts([50, 50], first=0.0)
    array([0.])
    """
    smooth = np.asarray(counts, dtype=np.float64) + 0.5
    if smooth.ndim != 1 or len(smooth) < 2:
        raise InputError(f"An ordinal likelihood needs counts of at least two levels, not shape {smooth.shape}.")
    # c_k = Phi^-1(share of levels 0..k)
    below = np.cumsum(smooth)
    above = np.cumsum(smooth[::-1])[::-1]
    # the smaller tail keeps its digits
    cuts: Floats = np.where(
        below[:-1] < above[1:], ndtri(below[:-1] / below[-1]), -ndtri(above[1:] / above[0])
    )  # fmt: skip
    return cuts if first is None else cuts - cuts[0] + first


def draw_latent(f: Floats, y: Ints, cuts: Floats, uniforms: Floats, root: Floats | None = None) -> Floats:
    """Draw z ~ N(f, 1 / root^2) between the cut points around level y; all (N,), one uniform of [0, 1) each."""
    lower, upper = _ends(y, cuts)
    f, uniforms, root = _floats(f, len(lower)), _floats(uniforms, len(lower)), _roots(root, len(lower))
    # s z ~ N(s f, 1) between s c_{y-1} and s c_y
    z: Floats = compute.truncated_normals(root * f, root * lower, root * upper, uniforms)
    # dividing by the root may round across a cut point
    return np.clip(z / root, lower, upper)


def draw_cuts(
    cuts: Floats,
    f: Floats,
    y: Ints,
    rng: np.random.Generator,
    fixed_first: bool = True,
    prior: CutPrior | None = None,
    root: Floats | None = None,
) -> Floats:
    """One sweep of slice steps over the cut points given f, with the latent z integrated out (Cowles 1996).

    It takes some 10 passes over f.

    Parameters
    ----------
    cuts : ndarray, shape (K - 1,)
        Increasing.
    f : ndarray, shape (N,)
    y : ndarray of int, shape (N,)
        Levels 0..K-1.
    rng : numpy.random.Generator
    fixed_first : bool
        Leave the first cut point where it is.
    prior : CutPrior or None
        None for the default.
    root : ndarray, shape (N,), or None
        Root of the noise precision; None for ones.

    Returns
    -------
    ndarray, shape (K - 1,)
    """
    prior = CutPrior() if prior is None else prior
    cuts = _checked_cuts(cuts).copy()
    levels = len(cuts) + 1
    y = _checked_levels(y, levels)
    grouped, start = compute.by_level(_floats(f, len(y)), y, levels)
    roots, _ = compute.by_level(_roots(root, len(y)), y, levels)
    if not np.isfinite(grouped.sum()):
        raise DivergenceError("f is not finite, so no cut points can be drawn; standardise the inputs.")
    counts = np.diff(start)
    spread = float(np.sqrt(1.0 + grouped.var())) if len(grouped) else 1.0
    groups = [(grouped[a:b], roots[a:b]) for a, b in pairwise(start)]
    for first, last in _blocks(counts, int(fixed_first)):
        _shift(cuts, first, last, groups, _slice_width(counts, first, last, spread), prior, rng)
    return cuts


def _blocks(counts: Ints, first: int) -> list[tuple[int, int]]:
    """The runs (first, last) of cut points that a sweep shifts: each alone, then some together.

    Cut points with only rare levels between them hold each other in place, so every run of them is shifted together;
    of many cut points also every three. Depends on the counts (K,) alone, as an exact sampler must.
    """
    cuts = range(first, len(counts) - 1)
    blocks = [(k, k) for k in cuts]
    rare = counts < RARE * counts.sum() / len(counts)
    for k in cuts[:-1]:
        last = k
        while last + 1 < len(counts) - 1 and rare[last + 1]:
            last += 1
        if last > k:
            blocks.append((k, last))
    if len(counts) >= MANY_LEVELS:
        blocks += [(k, min(k + 2, cuts[-1])) for k in cuts[::3] if k < cuts[-1]]
    return blocks


def _shift(
    cuts: Floats,
    first: int,
    last: int,
    groups: list[tuple[Floats, Floats]],
    width: float,
    prior: CutPrior,
    rng: np.random.Generator,
) -> None:
    """Shift cut points first..last in place by a slice step; only the levels next to them matter."""
    below = cuts[first - 1] if first > 0 else -np.inf
    above = cuts[last + 1] if last + 1 < len(cuts) else np.inf
    block = cuts[first : last + 1].copy()

    def log_density(shift: float) -> float:
        low, high = block[0] + shift, block[-1] + shift
        if not below < low <= high < above:
            return -np.inf
        log_prior = prior.log_spacing(low - below) if first > 0 else prior.log_first(low)
        if last + 1 < len(cuts):
            log_prior += prior.log_spacing(above - high)
        # + sum over the levels k next to them of sum_i log(Phi(s_i (c_k - f_i)) - Phi(s_i (c_{k-1} - f_i)))
        ends = [below, *(block + shift), above]
        return log_prior + sum(
            compute.total_log_mass(*group, *interval)
            for group, interval in zip(groups[first : last + 2], pairwise(ends), strict=True)
        )

    cuts[first : last + 1] = block + log_slice(log_density, 0.0, width, rng)


def _slice_width(counts: Ints, first: int, last: int, spread: float) -> float:
    """About three posterior standard deviations of the shift of cut points first..last given their neighbours.

    From counts (K,) and ``spread``, the deviation of f + noise, and not from the cut points: so the step is exact.
    """
    # Fisher information of a shift c: (n phi(c) / spread)^2 (1 / n_below + 1 / n_above)
    n = counts + 0.5
    density = float(np.exp(-0.5 * initial_cuts(counts)[first] ** 2) / np.sqrt(2.0 * np.pi))
    below, above = float(n[first]), float(n[last + 1])
    return 3.0 * spread * float(np.sqrt(below * above / (below + above))) / (float(n.sum()) * density)


def level_probabilities(f: Floats, cuts: Floats, root: Floats | None = None) -> Floats:
    """Probabilities of all levels, P(y = k | f), shape (N, K)."""
    f = _floats(f)
    probabilities: Floats = compute.level_masses(f, _roots(root, len(f)), _checked_cuts(cuts))
    return probabilities


def log_probability(y: Ints, f: Floats, cuts: Floats, root: Floats | None = None) -> Floats:
    """Log P(y | f) of every observation, shape (N,); finite however improbable."""
    lower, upper = _ends(y, cuts)
    f, root = _floats(f, len(lower)), _roots(root, len(lower))
    logs: Floats = compute.log_masses(root * f, root * lower, root * upper)
    return logs


def level_interval(probabilities: Floats, values: npt.ArrayLike, share: float) -> Floats:
    """First and last of a run of levels that holds about ``share`` of the probability (N, K), shape (N, 2).

    Of each length the most probable run; of the lengths the one whose probability is closest to ``share``, with
    probabilities of missing compared by their square roots. A run that holds at least ``share`` would hold much more
    when levels are few; these hold more for some predictions, less for others, and about ``share`` on average. That is
    not to be had of two levels, where probabilities are compared as they are: by roots one level alone would stand for
    90 % from a probability of 60 % on.

    Examples
    --------
    >>> level_interval(np.array([[0.1, 0.5, 0.35, 0.05]]), [1, 2, 3, 4], 0.9)
    array([[2., 3.]])
    """
    levels = np.asarray(values, dtype=np.float64)
    below = np.cumsum(np.pad(np.asarray(probabilities, dtype=np.float64), ((0, 0), (1, 0))), axis=1)
    rows, n_levels = np.arange(len(below)), len(levels)
    best, closest = np.zeros((len(below), 2), dtype=np.intp), np.full(len(below), np.inf)
    power = 0.5 if n_levels > 2 else 1.0
    for length in range(1, n_levels + 1):
        mass = below[:, length:] - below[:, :-length]
        first = np.argmax(mass, axis=1)
        missing = np.clip(1 - mass[rows, first], 0.0, 1.0)
        distance = np.abs(missing**power - (1 - share) ** power)
        better = distance < closest
        closest[better] = distance[better]
        best[better] = np.stack([first, first + length - 1], axis=1)[better]
    return np.asarray(levels[best])


def _ends(y: Ints, cuts: Floats) -> tuple[Floats, Floats]:
    """Lower and upper end of the interval of every observation."""
    cuts = _checked_cuts(cuts)
    y = _checked_levels(y, len(cuts) + 1)
    return np.concatenate([[-np.inf], cuts])[y], np.concatenate([cuts, [np.inf]])[y]


def _floats(values: npt.ArrayLike, length: int | None = None) -> Floats:
    """Values as a contiguous array of this length, as the compiled kernels need it; they do not check lengths."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.ndim != 1 or (length is not None and len(array) != length):
        raise InputError(
            f"Expected {'N' if length is None else length} numbers, one for each observation, not {array.shape}."
        )
    return array


def _roots(root: Floats | None, length: int) -> Floats:
    return np.ones(length) if root is None else _floats(root, length)


def _checked_cuts(cuts: npt.ArrayLike) -> Floats:
    values = np.ascontiguousarray(cuts, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all() or not (np.diff(values) > 0).all():
        raise InputError(f"Cut points must be finite and increase, not {cuts!r}.")
    return values


def _checked_levels(y: npt.ArrayLike, levels: int) -> npt.NDArray[np.int64]:
    values = np.asarray(y)
    if values.ndim != 1:
        raise InputError(f"Levels must be one for each observation, not an array of shape {values.shape}.")
    if values.dtype.kind not in "iu":
        raise InputError(f"Levels must be whole numbers, not {values.dtype}; code them as 0 to {levels - 1}.")
    if values.size and (values.min() < 0 or values.max() >= levels):
        raise InputError(f"Levels must be 0 to {levels - 1}, not {values.min()} to {values.max()}.")
    return np.ascontiguousarray(values, dtype=np.int64)
