"""What a likelihood is given: the training data, settings of the noise, and f of draws where targets are predicted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from tuckergp.scratch import counts

__all__ = ["Label", "NoiseSettings", "Observed", "Predicted", "row_of_target"]

Floats = npt.NDArray[np.float64]
# The words for a row of the targets, by its number.
Label: TypeAlias = Callable[[int], str]


def row_of_target(row: int) -> str:
    """The words for a row of targets that come from no table."""
    return f"row {row} of the target"


@dataclass(frozen=True)
class Observed:
    """The training data as a likelihood sees them.

    Attributes
    ----------
    y : ndarray, shape (N,)
        Targets, as `Likelihood.targets` gives them.
    weight : ndarray, shape (N,), or None
        How many equal observations each stands for; None for ones.
    offset : ndarray, shape (N,), or None
        Known, and added to f.
    index : ndarray of int32, shape (N, D)
        The rows of each observation.
    groups : tuple of ndarray of int32, shapes (M_d,)
        The group of each row, whose noise factor it has; -1 for none.
    n_groups : tuple of int
    derived : dict
        What a likelihood computes from the data once, by names of its own.
    """

    y: Floats
    weight: Floats | None
    offset: Floats | None
    index: npt.NDArray[np.int32]
    groups: tuple[npt.NDArray[np.int32], ...]
    n_groups: tuple[int, ...]
    derived: dict[str, Any] = field(default_factory=dict, compare=False)

    @cached_property
    def count(self) -> float:
        """The sum of the weights of all observations."""
        return float(len(self.y) if self.weight is None else self.weight.sum())

    @cached_property
    def sizes(self) -> tuple[Floats, ...]:
        """The sum of the weights of the observations of each group of rows of each mode, (groups,)."""
        return tuple(
            self._size(d, groups, n) if n else np.zeros(0)
            for d, (groups, n) in enumerate(zip(self.groups, self.n_groups, strict=True))
        )

    def _size(self, d: int, groups: npt.NDArray[np.int32], n: int) -> Floats:
        if self.weight is not None:
            return np.bincount(groups[self.index[:, d]], self.weight, n).astype(np.float64)
        rows = counts(self.index[:, d], len(groups))
        known = groups >= 0
        return np.bincount(groups[known], rows[known], n).astype(np.float64)


class NoiseSettings(NamedTuple):
    """Settings of a sampler for the noise: factors for each row or not, and the gamma prior of its precision."""

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
    zeros : ndarray, shape (n,), or None
        Weights of the zeros that a background has in the cells of the observations; None for none.
    """

    f: Floats
    unknowns: Mapping[str, Floats]
    factors: Floats | None = None
    exposure: Floats | None = None
    zeros: Floats | None = None

    def take(self, observations: slice) -> Predicted:
        """The same draws at some of the observations."""
        factors = None if self.factors is None else self.factors[:, observations]
        exposure = None if self.exposure is None else self.exposure[observations]
        return Predicted(self.f[:, observations], self.unknowns, factors, exposure)
