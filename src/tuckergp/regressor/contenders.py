"""The models that ``modes=None`` may stand for: columns on lines, smooth or rough, or all numbers in one mode.

Which of them it is, is found by trial (`tuckergp.regressor.trial`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from types import MappingProxyType
from typing import Literal

import numpy as np
import numpy.typing as npt

from tuckergp.data.tables import Table
from tuckergp.features import Cholesky, FeatureMap, Field
from tuckergp.kernels import SE, Identity, Kernel, Linear, Matern12, Matern32, Sum
from tuckergp.model.mode import Mode
from tuckergp.model.whitening import whitening_of
from tuckergp.regressor.columns import column_modes, is_numeric, two_values, useful
from tuckergp.regressor.settings import RegressorSettings

__all__ = ["Contender", "contenders"]

Floats = npt.NDArray[np.float64]

LENGTHSCALE = 2.0
"""Where lengthscales of a field start, in standard deviations of the columns."""

MOST_ROWS = 30_000
"""Rows beyond which a field or a surface takes too long to be a default."""

MOST_COORDINATES = 4
"""Columns up to which a field may be the default: in more, few neighbours are near."""

MOST_PIVOTS, CURVE_PIVOTS = 1_500, 40
"""How many features the smooth function of all columns has at most, and the curve of one."""

PIVOT_WORK = 1.2e10
"""Multiplications of a sweep that the features of a surface may take: fewer features for many rows."""

LEARN_ROWS = 700
"""How many rows maximum likelihood uses at most."""

# Seconds of a sweep, for each row of each mode on a line, and for each place and column of a field of 15 neighbours.
LINE, PLACE = 1.6e-5, 1.5e-5

CURVES: dict[str, tuple[Kernel, float]] = {
    "lines": (Matern32(1.0), LINE),
    "rough lines": (Matern12(1.0), LINE / 2),
}
"""Of models of lines, the curve of each number, rough for steps and kinks, and the time of a sweep."""

# Multiplications per second in products of matrices.
FAST = 1.2e10

SECONDS = 30.0
"""About how long a fit takes where the number of sweeps is not given, unless they would be fewer than the least."""


@dataclass(frozen=True)
class Contender:
    """A model that may be the default.

    Attributes
    ----------
    name : str
    modes : list of Mode
    rank : int or None
        None: that of the settings.
    seconds : float
        About how long a sweep takes.
    sweeps : (int, int)
        The least and the largest number of sweeps, where it is not given.
    hyperparameters : {"fixed", "ml"}
        Whether maximum likelihood finds the numbers in the kernels.
    seasonal : bool
        Whether columns have seasons.
    """

    name: str
    modes: list[Mode]
    rank: int | None
    seconds: float
    sweeps: tuple[int, int]
    hyperparameters: Literal["fixed", "ml"] = "fixed"
    seasonal: bool = False

    def settings(self, settings: RegressorSettings) -> RegressorSettings:
        """The settings of a fit of this model, with numbers of sweeps where a name of an inference leaves them open."""
        rank = settings.rank if self.rank is None else self.rank
        chosen = replace(settings, modes=self.modes, rank=rank, hyperparameters=self.hyperparameters)
        chosen = replace(chosen, learn_rows=min(settings.learn_rows, LEARN_ROWS))
        if not isinstance(settings.inference, str):
            return chosen
        least, most = self.sweeps
        total = int(min(max(SECONDS / self.seconds, least), most))
        warmup = total // 3 if settings.warmup is None else settings.warmup
        return replace(chosen, warmup=warmup, draws=total - total // 3 if settings.draws is None else settings.draws)


def lines(table: Table, seasons: Mapping[str, Sequence[float]]) -> list[Contender]:
    """One mode per column, with a curve for each number beside its seasons."""
    made, ending = [], " with seasons" if seasons else ""
    for name, (curve, seconds) in CURVES.items():
        modes = column_modes(table, Linear() + curve, seasons)
        time = seconds * len(table) * len(modes)
        made.append(Contender(name + ending, modes, None, time, (75, 400), seasonal=bool(seasons)))
    return made


def surface(table: Table) -> Contender | None:
    """One mode of rank 1: a trend, a curve of each number, and a smooth function of all of them; levels shift it.

    Its numbers are learned by maximum likelihood. None for fewer than two columns.
    """
    numbers, levels = _kinds(table)
    if len(numbers) < 2 or len(table) > MOST_ROWS:
        return None
    curved = [name for name in numbers if not two_values(table[name])]
    pivots = int(min(MOST_PIVOTS, (PIVOT_WORK / len(table)) ** 0.5, len(table)))
    curves = [(Matern32(1.0, name), Cholesky(1e-6, CURVE_PIVOTS)) for name in curved]
    shifts = [(Identity(name), None) for name in levels]
    together = (SE([LENGTHSCALE] * len(numbers), numbers), Cholesky(max_features=pivots))
    terms: list[tuple[Kernel, FeatureMap | None]] = [(Linear(numbers), None), *curves, *shifts, together]
    kernel = reduce(Sum, [term for term, _ in terms])
    mode = Mode([*numbers, *levels], kernel, features=[features for _, features in terms], whiten=True)
    width = pivots + CURVE_PIVOTS * len(curved)
    seconds = (len(table) + width) * width**2 / FAST
    return Contender("surface", [mode], 1, seconds, (60, 150), "ml")


def field(table: Table, lengthscales: Sequence[float]) -> Contender | None:
    """Two to four numbers as places, with a lengthscale for each, beside modes of levels; None for others.

    Rough, by a Matern-1/2: a surface is there for what is smooth.
    """
    numbers, levels = _kinds(table)
    if not 2 <= len(numbers) <= MOST_COORDINATES or len(table) > MOST_ROWS:
        return None
    scales = list(lengthscales) or [LENGTHSCALE] * len(numbers)
    places = Mode(numbers, Linear() + Matern12(scales), features=Field(), whiten=True)
    modes = [places, *(Mode(name, Identity()) for name in levels)]
    return Contender("field", modes, None if levels else 1, PLACE * len(table) * (len(numbers) + 1), (45, 90))


def _kinds(table: Table) -> tuple[list[str], list[str]]:
    """The names of the columns with numbers or dates, and of all others."""
    numbers = [name for name, values in table.columns.items() if is_numeric(values)]
    return numbers, [name for name in table.columns if name not in numbers]


def contenders(
    table: Table,
    lengthscales: Sequence[float] = (),
    seasons: Mapping[str, Sequence[float]] = MappingProxyType({}),
    weight: Floats | None = None,
    several: bool = False,
    columns: Sequence[str] | None = None,
) -> dict[str, Contender]:
    """The models that are possible for a table, by name; the first is the default without a trial.

    They are of the ``columns`` that can tell something, which a part of a table may not show. ``lengthscales`` of a
    field are in standard deviations, periods of ``seasons`` in the units of the columns. For several outputs, no
    surface: it is one function, which levels shift.
    """
    some = table.select(useful(table) if columns is None else columns)
    scale = {name: std for name, (_, std) in whitening_of(some, weight).items()}
    waves = {name: [period / scale[name] for period in periods] for name, periods in seasons.items()}
    found = [
        *lines(some, {}),
        *(lines(some, waves) if waves else ()),
        None if several else surface(some),
        field(some, lengthscales),
    ]
    return {each.name: each for each in found if each is not None}
