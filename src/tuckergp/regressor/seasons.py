"""Seasons of a column of numbers: periods of waves in the target that stand out of those of other periods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

from tuckergp.data.standard import mean_and_std
from tuckergp.data.tables import Table
from tuckergp.regressor.columns import is_numeric

__all__ = ["seasons_of"]

Floats = npt.NDArray[np.float64]

MOST = 5
"""How many periods one column has at most: a day, a week, a year, and strong parts of them such as half a day."""

CYCLES, VALUES = 2.5, 4
"""A season goes round at least so often in the rows, and has at least so many distinct values a cycle."""

MOST_CYCLES = 10_000
"""How often it goes round at most: an hour in a year."""

CHANCE = 1e-10
"""How often a column of white noise may seem to have a season; of ups and downs of other lengths some in 100 do."""

EXACT = 1e-16
"""What is left of a target is rounding if it is a smaller share of its variance."""

FINE, CELLS = 8, 8
"""Frequencies for each that the span can tell apart, and cells of a grid for the shortest period, at least."""

NEAR, FAR, ENOUGH = 2, 10, 4
"""A frequency is compared with others at least ``NEAR`` cycles a span away, and ``FAR`` or half of itself at most.

They are ``ENOUGH`` cycles a span at least: by fewer, what is usual is not known.
"""

MARGIN = 4
"""How many times stronger a wave has to be beside surroundings without the other waves of its season, too."""

HARMONICS = 3
"""Waves that make up a season when its period is measured, if values are so close: not every season is a sine."""

DEGREE, HALVES = 3, 2
"""What changes slowly: a polynomial of this degree, and so many half waves in the rows."""

CALENDAR = (1.0, 7.0, 365.2425)
"""Days after which dates come round."""

OF_CALENDAR, OF_STEPS = 0.25, 0.05
"""A period is one of the calendar's or a part of it, or a number of whole steps, if their cycles differ by less."""


def seasons_of(table: Table, target: Floats, whole: Table, weight: Floats | None = None) -> dict[str, list[float]]:
    """The periods of each column that has seasons, strong ones first, in the units of the column.

    They are of what trends and levels of all columns leave of the target. The rows may be a part of a ``whole`` table,
    which says how finely a column is divided.
    """
    mean, std = mean_and_std(target, weight)
    if std == 0:
        return {}
    weight = np.ones(len(target)) if weight is None else np.maximum(weight / weight.mean(), np.finfo(float).tiny)
    left = _without_effects(table, (target - mean) / std, weight)
    found = {name: _periods(name, table, whole, left, weight) for name in table.columns if is_numeric(table[name])}
    return {name: periods for name, periods in found.items() if periods}


def _without_effects(table: Table, target: Floats, weight: Floats) -> Floats:
    """What the trend over each number and the mean of each level leave of the target, one column after another."""
    for name, values in table.columns.items():
        if is_numeric(values):
            mean, std = mean_and_std(table.numeric(name), weight)
            trend = np.column_stack([np.ones(len(table)), (table.numeric(name) - mean) / (std or 1.0)])
            target = _without(trend, target, weight)
        else:
            level = np.unique(list(map(str, values.tolist())), return_inverse=True)[1]
            target = target - (np.bincount(level, weight * target) / np.bincount(level, weight))[level]
    return target


def _distinct(values: Floats) -> float:
    """The number of distinct values, of which rare ones hardly count: from the entropy of their shares of the rows.

    Those of one cell of the finest grid count as one.
    """
    cells = np.floor((values - values.min()) / np.ptp(values) * CELLS * MOST_CYCLES)
    share = np.unique(cells, return_counts=True)[1] / len(values)
    return float(np.exp(-share @ np.log(share)))


def _step(values: Floats) -> float:
    """The step of values that are whole numbers of steps apart; 0 for others."""
    gaps = np.diff(np.unique(values))
    steps = gaps / gaps.min(initial=np.inf)
    return float(gaps.min(initial=np.inf)) if np.allclose(steps, np.round(steps), rtol=1e-6) else 0.0


def _rounded(period: float, span: float, calendar: Sequence[float], step: float) -> float:
    """The period, or a part of the calendar or a number of whole steps from which the span cannot tell it apart."""
    whole = [(max(1.0, np.round(period / step)) * step, OF_STEPS)] if step else []
    parts = [(days / part, OF_CALENDAR) for days in calendar for part in range(1, HARMONICS + 1)]
    for other, alike in [*parts, *whole]:
        if abs(span / other - span / period) < alike:
            return float(other)
    return period


class _Rows(NamedTuple):
    """Rows of a column: places (N,) from 0 to 1, targets (N,), weights (N,), and how many cycles they show at most."""

    x: Floats
    target: Floats
    weight: Floats
    most: float

    def left(self, found: Sequence[float], wave: float | None = None) -> Floats:
        """What is left of targets by what changes slowly, seasons of so many cycles, and one more wave."""
        known = [np.vander(self.x, DEGREE + 1), np.cos(np.pi * np.outer(self.x, np.arange(1, HALVES + 1)))]
        known += [_waves(self.x, cycles, min(HARMONICS, int(VALUES / 2 * self.most / cycles))) for cycles in found]
        known += [] if wave is None else [_waves(self.x, wave, 1)]
        return _without(np.hstack(known), self.target, self.weight)

    def spectrum(self, left: Floats) -> tuple[Floats, Floats]:
        """Numbers of cycles, and the power of waves of each in what is left."""
        return _spectrum(self.x, self.weight * left, self.most)


def _periods(name: str, table: Table, whole: Table, target: Floats, weight: Floats) -> list[float]:
    """The periods of one column in its units."""
    values, all_values = table.numeric(name), whole.numeric(name)
    span, whole_span = float(np.ptp(values)), float(np.ptp(all_values))
    most = 0.0 if span == 0 else min(_distinct(all_values) / VALUES, MOST_CYCLES)
    if most <= CYCLES:
        return []
    calendar, step = CALENDAR if table[name].dtype.kind == "M" else (), _step(all_values)
    cycles = _cycles(_Rows((values - values.min()) / span, target, weight, most))
    return [_rounded(span / each, whole_span, calendar, step) for each in cycles]


def _cycles(rows: _Rows) -> list[float]:
    """How often each season goes round in the rows."""
    found: list[float] = []
    while len(found) < MOST:
        new = _strongest(rows, found)
        if new is None:
            break
        multiples = [cycles for cycles in found if abs(cycles - new * min(round(cycles / new), HARMONICS)) < 0.5]
        others = [cycles for cycles in found if cycles not in multiples]
        if multiples:  # waves of one season, whose period they tell together
            new = _exactly(rows, others, new)
        found = [*others, *(new * round(cycles / new) for cycles in multiples), new]
    return found


def _strongest(rows: _Rows, found: list[float]) -> float | None:
    """The number of cycles of the strongest wave, None where none stands out of its surroundings.

    They are without itself: between rows that begin and end somewhere, a strong wave shows at other numbers, too. Or
    they are without its whole season, whose other waves may be strong: that takes more of what goes up and down slowly.
    """
    left = rows.left(found)
    if np.average(left**2, weights=rows.weight) < EXACT:
        return None
    cycles, power = rows.spectrum(left)
    new = _is_new(cycles, found)
    cycles, power = cycles[new], power[new]
    for strength in (power, power / _usual(cycles, power)) if len(power) else ():
        exactly = _exactly(rows, found, float(cycles[strength.argmax()]))
        if not (CYCLES <= exactly <= rows.most and _is_new(np.array([exactly]), found).all()):
            continue  # the edge of a wave that is no new season
        others = ((1, rows.left(found, exactly)), (MARGIN, rows.left([*found, exactly])))
        usual = [margin * _usual(cycles, rows.spectrum(other)[1][new]) for margin, other in others]
        stands_out = np.min(usual, axis=0)[np.abs(cycles - exactly).argmin()] * np.log(rows.most / CHANCE)
        if abs((rows.weight * left) @ np.exp(2j * np.pi * exactly * rows.x)) ** 2 > stands_out:
            return exactly
    return None


def _is_new(cycles: Floats, found: Sequence[float]) -> npt.NDArray[np.bool_]:
    """Whether these numbers of cycles are not those of waves of seasons that were found."""
    new = np.ones(len(cycles), dtype=bool)
    for other in found:
        new &= np.abs(cycles - other * np.clip(np.round(cycles / other), 1, 2 * HARMONICS)) > NEAR
    return new


def _usual(cycles: Floats, power: Floats) -> Floats:
    """The mean power at each number of cycles if it were no season, from a power law of its surroundings.

    Of noise, power is exponentially distributed, and the mean of its logarithm is Euler's constant below that of the
    mean. What goes up and down slowly has more power at fewer cycles, and never less.
    """
    width = np.maximum(FAR, cycles / 2)
    ends = [np.searchsorted(cycles, cycles + far) for far in (-width, -NEAR, NEAR, width)]
    x, y = np.log(cycles), np.log(power)
    sums = np.pad(np.cumsum([np.ones_like(x), x, y, x * x, x * y], axis=1), ((0, 0), (1, 0)))
    count, sx, sy, sxx, sxy = sums[:, ends[1]] - sums[:, ends[0]] + sums[:, ends[3]] - sums[:, ends[2]]
    enough = count > ENOUGH * FINE
    count, spread = np.maximum(count, 1), np.where(enough, count * sxx - sx**2, 1.0)
    slope = np.minimum((count * sxy - sx * sy) / spread, 0.0)
    return np.where(enough, np.exp((sy - slope * sx) / count + slope * x + np.euler_gamma), np.inf)


def _spectrum(x: Floats, rest: Floats, most: float) -> tuple[Floats, Floats]:
    """Numbers of cycles, and the power of waves of each, of rows put into the cells of a grid."""
    cells = 2 ** int(np.ceil(np.log2(CELLS * most)))
    summed = np.bincount(np.minimum((x * cells).astype(np.intp), cells - 1), rest, cells)
    power = np.abs(np.fft.rfft(summed, FINE * cells)) ** 2
    cycles = np.arange(len(power)) / FINE
    kept = (cycles >= CYCLES) & (cycles <= most)
    return cycles[kept], np.maximum(power[kept], np.finfo(float).tiny)


def _exactly(rows: _Rows, found: Sequence[float], cycles: float) -> float:
    """The number of cycles near this one that leaves the least squares beside seasons that were found."""

    def squares(other: float) -> float:
        return float(np.average(rows.left([*found, other]) ** 2, weights=rows.weight))

    near = cycles + np.arange(-FINE, FINE + 1) / FINE  # the lobe of the wave, which what changes slowly may shift
    best = near[int(np.argmin([squares(other) for other in near]))]
    return float(minimize_scalar(squares, bounds=(best - 1 / FINE, best + 1 / FINE), method="bounded").x)


def _waves(x: Floats, cycles: float, harmonics: int) -> Floats:
    angles = 2 * np.pi * cycles * np.outer(x, np.arange(1, harmonics + 1))
    return np.hstack([np.cos(angles), np.sin(angles)])


def _without(known: Floats, target: Floats, weight: Floats) -> Floats:
    """What weighted least squares leave of the target."""
    root = np.sqrt(weight)
    rest: Floats = target - known @ np.linalg.lstsq(root[:, None] * known, root * target, rcond=None)[0]
    return rest
