"""The mark for a Matern term that is kept as a field over several columns instead of becoming features."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import numpy as np

from tuckergp.checks import check, one_of, whole
from tuckergp.compute.places import coarse_to_fine
from tuckergp.data.columns import numbers
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.features.base import Floats, ResidualMap, Shapes
from tuckergp.features.line import MATERNS
from tuckergp.kernels import Kernel
from tuckergp.residuals import field as residuals
from tuckergp.residuals.places import Places

__all__ = ["Field"]

DEGREE = np.pi / 180


class Field(ResidualMap):
    """Keep a Matern term as the residual of its mode: a Gaussian process of places, linear in their number.

    Up to 1,000 places are treated exactly. Of more, each depends on its nearest neighbours among places that come
    before it in a coarse-to-fine order (Vecchia's approximation), which is exact again where ``neighbours`` is at least
    the number of places less one. `tuckergp.Mode` chooses it by itself for the first Matern term on two or more numeric
    columns, unless the mode has rows (`Rows`) or the inference works with features alone (SGD). It has no features:
    `transform` returns none.

    A kernel with one lengthscale keeps one; a kernel with a lengthscale for each column, as in
    ``Matern32([1.0, 1.0])``, learns each.

    Parameters
    ----------
    neighbours : int
        How many earlier places each of more than 1,000 training places depends on; 30 is more accurate than 15 and
        takes about four times as long. In more than three columns neighbours tell less: take 30 or more.
    predicting : int
        How many of more than 1,000 training places each new place depends on: the nearest and, in up to three columns,
        nearest ones of coarser parts.
    sphere : bool
        The columns are longitude and latitude in degrees, in this order, and places are compared by their chordal
        distance, which is valid for every smoothness; lengthscales are in degrees of a great circle.
    learn : bool
        Draw lengthscales in Gibbs sampling, under a prior centred at the kernel's; False keeps the kernel's.

    Attributes
    ----------
    columns_ : list of str
    places_ : ndarray, shape (M, p)
        Coordinates of the training inputs, coarse to fine.
    order_ : int
        1, 2 or 3: Matern-1/2, -3/2, -5/2.
    lengthscales_ : ndarray, shape (1,) or (p,)

    Examples
    --------
    >>> from tuckergp import Mode
    >>> from tuckergp.kernels import Matern32
    >>> Mode(["longitude", "latitude"], Matern32(1.0), features=Field(neighbours=30)).features
    Field(neighbours=30, predicting=100, sphere=False, learn=True)
    """

    in_weight_space: ClassVar[bool] = False
    columns_: list[str]
    places_: Floats
    order_: int
    lengthscales_: Floats

    def __init__(self, neighbours: int = 15, predicting: int = 100, sphere: bool = False, learn: bool = True) -> None:
        self.neighbours = neighbours
        self.predicting = predicting
        self.sphere = sphere
        self.learn = learn

    def suits(self, kernel: Kernel) -> bool:
        """Whether the kernel is a Matern."""
        return isinstance(kernel, MATERNS)

    def serves(self, kernel: Kernel, table: Table) -> bool:
        """Whether the kernel is a Matern of columns that tell all inputs apart; text or NaN is refused."""
        columns = kernel.reads(list(table.columns))
        if not self.suits(kernel) or not columns:
            return False
        return len(np.unique(numbers(table, columns), axis=0)) == len(table)

    def _fit(self, table: Table, kernel: Kernel, rng: np.random.Generator) -> None:
        if not isinstance(kernel, MATERNS) or not self.serves(kernel, table):
            raise InputError(
                f"{self!r} is for a Matern of numeric columns that tell all inputs of the mode apart; for {kernel!r} "
                f"leave features out or use Cholesky()."
            )
        for name, allowed in (("neighbours", whole(1)), ("predicting", whole(1)), ("sphere", one_of(True, False))):
            check(name, getattr(self, name), allowed)
        self.columns_ = kernel.reads(list(table.columns))
        one = np.size(kernel.lengthscale) == 1
        if self.sphere and not (one and len(self.columns_) == 2):
            raise InputError(
                f"Field(sphere=True) takes longitude and latitude, two columns, and a kernel with one lengthscale, not "
                f"{kernel!r} of {self.columns_}."
            )
        self.lengthscales_ = kernel.lengthscales(len(self.columns_))[: 1 if one else None].copy()
        points = self.points(table)
        if self.sphere and len(np.unique(points, axis=0)) < len(points):
            raise InputError(
                f"Some inputs of {self.columns_} are one place on the sphere; bring longitudes between -180 and 180."
            )
        vars(self).pop("_train", None)
        self.places_ = points[coarse_to_fine(points / self.lengthscales_)]
        self.order_ = round(kernel.nu + 0.5)
        self.n_features_ = 0

    def points(self, table: Table) -> Floats:
        """The coordinates of inputs, (n, p); on a sphere, three whose unit is a degree of a great circle."""
        columns = np.ascontiguousarray(numbers(table, self.columns_), dtype=np.float64)
        if not self.sphere:
            return columns
        longitude, latitude = columns.T * DEGREE
        if (np.abs(columns[:, 1]) > 90).any():
            raise InputError(f"Column {self.columns_[1]!r} of a field on a sphere has latitudes beyond 90 degrees.")
        radius = np.cos(latitude)
        along = [radius * np.cos(longitude), radius * np.sin(longitude), np.sin(latitude)]
        return np.stack(along, axis=1) / DEGREE

    def at(self, table: Table, sd: float) -> residuals.Field:
        """The residual at the rows of a table, with this standard deviation."""
        return residuals.Field(self._train, self.points(table), self.lengthscales_, sd, self.learn)

    @cached_property
    def _train(self) -> Places:
        """The training places; all tables share what is found out about them."""
        return Places(self.places_, self.order_, self.neighbours, self.predicting)

    def kept(self, r: int) -> tuple[Shapes, Shapes]:
        """The shapes of what draws keep: E at the places, and the lengthscales."""
        return {"values": (len(self.places_), r)}, {"lengthscale": self.lengthscales_.shape}

    def fault(self) -> str | None:
        """Fields have a smoothness, places with finite coordinates, and positive lengthscales for them."""
        if self.order_ not in (1, 2, 3):
            return "its fields are of another smoothness"
        places, scales = self.places_, self.lengthscales_
        if not (places.ndim == 2 and len(places) and places.shape[1] == (3 if self.sphere else len(self.columns_))):
            return "its fields have no places"
        if scales.shape not in ((1,), (places.shape[1],)) or not (scales > 0).all():
            return "its fields have no lengthscales"
        counts = (self.neighbours, self.predicting)
        right = all(type(count) is int and count > 0 for count in counts) and np.isfinite(places).all()
        return None if right else "its fields have no neighbours"

    def refusal(self, term: Kernel, mode: str) -> str:
        """The message for a term that is no Matern of columns that tell all inputs apart."""
        return (
            f"Field() is for one Matern term on columns that tell all inputs of the mode apart; {term!r} of mode "
            f"{mode!r} is not: use Cholesky(), or leave features out."
        )
