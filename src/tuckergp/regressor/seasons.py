"""Seasons of a column of numbers: periods of waves in the target that stand out of those of other periods."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

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
"""How often a column of white noise may seem to have a season; of ups and downs of other lengths some in 1,000 do."""

FINE, CELLS = 8, 8
"""Frequencies for each that the span can tell apart, and cells of a grid for the shortest period, at least."""

NEAR, FAR = 2, 10
"""A frequency is compared with others at least ``NEAR`` cycles a span away, and ``FAR`` or half of itself at most."""

HARMONICS = 3
"""Waves that make up a season when its period is measured: not every season is a sine."""

CALENDAR = (1.0, 7.0, 365.2425)
"""Days after which dates come round."""

OF_CALENDAR, OF_STEPS = 0.25, 0.05
"""A period is one of the calendar's, or a number of whole steps, if their cycles in the span differ by less."""


def seasons_of(table: Table, target: Floats, whole: Table) -> dict[str, list[float]]:
    """The periods of each column that has seasons, the strongest first, in the units of the column.

    The rows may be a part of a ``whole`` table, which says how finely a column is divided.
    """
    found: dict[str, list[float]] = {}
    for name in table.columns:
        if is_numeric(table[name]):
            all_values, calendar = whole.numeric(name), CALENDAR if table[name].dtype.kind == "M" else ()
            most = min(_divided(all_values) / VALUES, MOST_CYCLES)
            periods = _periods(table.numeric(name), target, most)
            rounded = [_rounded(period, float(np.ptp(all_values)), calendar, _step(all_values)) for period in periods]
            found |= {name: rounded} if rounded else {}
    return found


def _divided(values: Floats) -> float:
    """How many values share the rows evenly that are as uncertain as these: rare ones do not count."""
    share = np.unique(values, return_counts=True)[1] / len(values)
    return float(np.exp(-share @ np.log(share)))


def _step(values: Floats) -> float:
    """The step of values that are whole numbers of steps apart; 0 for others."""
    gaps = np.diff(np.unique(values))
    steps = gaps / gaps.min(initial=np.inf)
    return float(gaps.min(initial=np.inf)) if np.allclose(steps, np.round(steps), rtol=1e-6) else 0.0


def _rounded(period: float, span: float, calendar: Sequence[float], step: float) -> float:
    """The period, or that of the calendar or the number of whole steps from which the span cannot tell it apart."""
    whole = [(max(1.0, np.round(period / step)) * step, OF_STEPS)] if step else []
    for other, alike in [*((days, OF_CALENDAR) for days in calendar), *whole]:
        if abs(span / other - span / period) < alike:
            return float(other)
    return period


def _periods(values: Floats, target: Floats, most: float) -> list[float]:
    """Periods of up to ``most`` cycles in the span of the values."""
    span = float(np.ptp(values))
    if most <= CYCLES or span == 0:
        return []
    x = (values - values.min()) / span
    slow = np.column_stack([x, *(np.cos(np.pi * k * x) for k in range(int(2 * CYCLES)))])
    found: list[float] = []
    while len(found) < MOST:
        new = _strongest(x, _beside(slow, x, found), target, most, found)
        if new is None:
            break
        multiples = [cycles for cycles in found if abs(cycles - new * min(round(cycles / new), HARMONICS)) < 0.5]
        others = [cycles for cycles in found if cycles not in multiples]
        if multiples:  # waves of one season, whose period they tell together
            new = _exactly(new, x, _beside(slow, x, others), target)
        found = [*others, *(new * round(cycles / new) for cycles in multiples), new]
    return [span / cycles for cycles in found]


def _beside(slow: Floats, x: Floats, found: list[float]) -> Floats:
    """What is known: what changes slowly, and the waves of seasons that were found."""
    return np.column_stack([slow, *(_waves(x, cycles) for cycles in found)])


def _strongest(x: Floats, known: Floats, target: Floats, most: float, found: list[float]) -> float | None:
    """The number of cycles of the strongest wave, None where none stands out of its surroundings.

    They are without itself: between rows that begin and end somewhere, a strong wave shows at other numbers, too.
    """
    cycles, power = _spectrum(x, _without(known, target), most)
    new = np.ones(len(cycles), dtype=bool)
    for other in found:  # what is left of its waves is no other season
        new &= np.abs(cycles - other * np.clip(np.round(cycles / other), 1, 2 * HARMONICS)) > NEAR
    cycles, power = cycles[new], power[new]
    for strength in (power, power / _usual(cycles, power)) if len(power) else ():
        top = int(strength.argmax())
        exactly = _exactly(float(cycles[top]), x, known, target)
        _, others = _spectrum(x, _without(np.column_stack([known, _waves(x, exactly, 1)]), target), most)
        if power[top] > _usual(cycles, others[new])[top] * np.log(most / CHANCE):
            return exactly
    return None


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
    enough = count > 2 * FINE
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


def _exactly(cycles: float, x: Floats, known: Floats, target: Floats) -> float:
    """The number of cycles whose waves, beside what is known, leave the least squares."""

    def left(other: float) -> float:
        rest = _without(np.column_stack([known, _waves(x, other)]), target)
        return float(rest @ rest)

    return float(minimize_scalar(left, bounds=(cycles - 0.5, cycles + 0.5), method="bounded").x)


def _waves(x: Floats, cycles: float, harmonics: int = HARMONICS) -> Floats:
    angles = 2 * np.pi * cycles * np.outer(x, np.arange(1, harmonics + 1))
    return np.hstack([np.cos(angles), np.sin(angles)])


def _without(known: Floats, target: Floats) -> Floats:
    """What least squares leave of the target."""
    rest: Floats = target - known @ np.linalg.lstsq(known, target, rcond=None)[0]
    return rest
