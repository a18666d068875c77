"""The training places of a field: the process there, and new places given it; few are treated exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.compute.places import Search, nearest_earlier
from tuckergp.residuals.dense import DenseProcess, NewAmongFew
from tuckergp.residuals.process import PlaceProcess
from tuckergp.residuals.vecchia import NewAmongMany, VecchiaProcess

__all__ = ["EXACT", "Places"]

Floats = npt.NDArray[np.float64]

EXACT = 1_000
"""So many places are treated exactly, which costs no more than the usual approximation and is better."""


@dataclass(frozen=True, eq=False)
class Places:
    """The training places of a field, in their order, and which of them are near to which.

    What was looked up last is kept; distances are in units of lengthscales (1,) or (p,), of which one for all columns
    changes nothing.

    Attributes
    ----------
    X : ndarray, shape (M, p)
    order : {1, 2, 3}
    neighbours : int
        How many earlier places a place depends on at most; all where there are few places.
    around : int
        How many training places a new one depends on at most.
    """

    X: Floats
    order: int
    neighbours: int
    around: int
    _found: dict[str, tuple[Floats, Any]] = field(default_factory=dict, repr=False)

    @property
    def few(self) -> bool:
        """Whether they are treated exactly."""
        return len(self.X) <= max(EXACT, self.neighbours + 1)

    def _once(self, name: str, key: Floats, make: Callable[[], Any]) -> Any:
        """What ``make`` returned for this key, if that was the last one."""
        found = self._found.get(name)
        if found is None or not np.array_equal(found[0], key):
            found = self._found[name] = (key, make())
        return found[1]

    def process(self, lengthscale: Floats, metric: Floats) -> PlaceProcess:
        """The process of unit variance; among many places, with neighbours that are nearest by ``metric``."""
        if self.few:
            dense: DenseProcess = self._once(
                "process", lengthscale, lambda: DenseProcess(self.X / lengthscale, self.order)
            )
            return dense
        unit = metric / metric[0]
        near = self._once("neighbours", unit, lambda: nearest_earlier(self.X / unit, self.neighbours))
        sparse: VecchiaProcess = self._once(
            "process",
            np.concatenate([lengthscale, metric]),
            lambda: VecchiaProcess(self.X / lengthscale, near, self.order),
        )
        return sparse

    def given(self, points: Floats, metric: Floats, joint: bool) -> NewAmongFew | NewAmongMany:
        """New places (n, p) given these; among many, those around by ``metric``, to be drawn jointly or not."""
        if self.few:
            return NewAmongFew(self.X, points, self.order)
        unit = metric / metric[0]
        search: Search = self._once("search", unit, lambda: Search(self.X / unit))
        return NewAmongMany(search, points, unit, self.order, self.around, self.neighbours, joint)

    def places_of(self, points: Floats) -> npt.NDArray[np.intp]:
        """The place that each point (n, p) is, -1 for none."""
        search: Search = self._once("own", np.ones(1), lambda: Search(self.X))
        nearest = search.nearest(points, 1)[:, 0]
        return np.where((self.X[nearest] == points).all(axis=1), nearest, -1)
