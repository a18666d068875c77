"""xarray grids as tables and back: a cell is an observation, NaN a cell that is missing, coordinates are columns.

xarray is imported only when a grid is made; a grid that is given shows that it is imported already.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from tuckergp.data.tables import Table, show_cell
from tuckergp.errors import InputError

__all__ = ["Coordinate", "GridData", "asked_grid", "is_grid", "of_cells"]

Floats: TypeAlias = npt.NDArray[np.float64]
Cells: TypeAlias = npt.NDArray[np.intp]


def is_grid(X: Any) -> bool:
    """Whether X is an xarray DataArray or Dataset, without loading xarray."""
    xarray: Any = sys.modules.get("xarray")
    return xarray is not None and isinstance(X, xarray.DataArray | xarray.Dataset)


@dataclass(frozen=True)
class Coordinate:
    """Values along some dimensions of a grid, flat."""

    dims: tuple[str, ...]
    values: npt.NDArray[Any]
    attrs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class GridData:
    """A grid without xarray: its dimensions, coordinates and values.

    Attributes
    ----------
    dims : tuple of str
    coords : dict of str to Coordinate
        Of dimensions, and others; a dimension without one is numbered from 0.
    values : ndarray, shape of the grid
        NaN for missing cells.
    name : str or None
    attrs : dict
    """

    dims: tuple[str, ...]
    coords: dict[str, Coordinate]
    values: npt.NDArray[Any]
    name: str | None = None
    attrs: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.dims) != self.values.ndim:
            raise InputError(f"A grid of {self.values.ndim} dimensions needs a name for each, not {self.dims}.")
        sizes = dict(zip(self.dims, self.values.shape, strict=True))
        for name, c in self.coords.items():
            if len(c.values) != np.prod([sizes[dim] for dim in c.dims], dtype=int):
                raise InputError(f"There are {len(c.values)} values of {name!r}, which runs along {', '.join(c.dims)}.")

    @classmethod
    def of(cls, grid: Any) -> Self:
        """Read a DataArray."""
        if not hasattr(grid, "dims") or not hasattr(grid, "values") or callable(grid.values):
            names = ", ".join(map(repr, getattr(grid, "data_vars", [])))
            raise InputError(f"A Dataset has several variables ({names}); give one of them, as in data['name'].")
        for dim, index in grid.indexes.items():
            if getattr(index, "nlevels", 1) > 1:
                raise InputError(f"Dimension {dim!r} of the grid has an index of several levels; unstack it first.")
        if grid.dtype.kind not in "fiub":
            raise InputError(f"The grid must hold numbers, not {grid.dtype}.")
        if grid.size == 0:
            raise InputError(f"The grid of shape {grid.shape} has no cells.")
        coords = {
            str(name): Coordinate(tuple(map(str, c.dims)), np.asarray(c.values).ravel(), dict(c.attrs))
            for name, c in grid.coords.items()
        }
        values = np.array(grid.values, dtype=np.float64)
        name = None if grid.name is None else str(grid.name)
        return cls(tuple(map(str, grid.dims)), coords, values, name, dict(grid.attrs))

    @property
    def columns(self) -> list[str]:
        """The names of the columns of a table of cells: dimensions first, then other coordinates."""
        return [*self.dims, *(name for name in self.coords if name not in self.dims)]

    def table(self, columns: Sequence[str] | None = None, cells: Cells | None = None) -> Table:
        """Some columns (all if None; unknown names are ignored) of some cells, in the order of memory."""
        shape = self.values.shape
        cells = np.arange(self.values.size) if cells is None else cells
        places = dict(zip(self.dims, np.unravel_index(cells, shape), strict=True))
        sizes = dict(zip(self.dims, shape, strict=True))
        data = {}
        for name in self.columns:
            if columns is not None and name not in columns:
                continue
            coordinate = self.coords.get(name)
            if coordinate is None:
                data[name] = places[name].astype(np.int64)
            elif not coordinate.dims:
                data[name] = np.repeat(_as_column(coordinate.values), len(cells))
            else:
                lengths = tuple(sizes[dim] for dim in coordinate.dims)
                place = np.ravel_multi_index(tuple(places[dim] for dim in coordinate.dims), lengths)
                data[name] = _as_column(coordinate.values)[place]
        return Table(data, "the grid", len(cells))

    def observed(self) -> Cells:
        """Flat numbers of the observed cells; refuses infinite values, and a grid without any."""
        flat = self.values.ravel()
        if np.isinf(flat).any():
            cell = int(np.argmax(np.isinf(flat)))
            raise InputError(f"The grid is infinite at {self.label(cell)}; make such cells NaN to leave them out.")
        cells = np.flatnonzero(~np.isnan(flat))
        if not len(cells):
            raise InputError(f"All {flat.size} cells of the grid are missing (NaN); there is nothing to learn from.")
        return cells

    def label(self, cell: int) -> str:
        """A cell in words: ``station='b', day=3``."""
        row = self.table(self.dims, np.array([cell]))
        return ", ".join(f"{dim}={_show(row[dim][0])}" for dim in self.dims)

    def with_coords(self, changed: Mapping[str, Any]) -> GridData:
        """The same dimensions with other coordinates and no values."""
        unknown = [name for name in changed if name not in self.columns]
        if unknown:
            raise InputError(f"like names {unknown[0]!r}, but the coordinates are {', '.join(self.columns)}.")
        moved = {name for name in changed if name in self.dims}
        # other coordinates along dimensions that have new values are not known any more
        coords = {name: c for name, c in self.coords.items() if not moved & set(c.dims)}
        for name, value in changed.items():
            old = self.coords.get(name, Coordinate((name,), np.zeros(0)))
            coords[name] = replace(old, values=np.atleast_1d(np.asarray(value)).ravel())
        shape = zip(self.dims, self.values.shape, strict=True)
        sizes = [len(coords[dim].values) if dim in moved else size for dim, size in shape]
        return replace(self, coords=coords, values=np.full(sizes, np.nan))

    def to_xarray(self, values: Floats) -> Any:
        """Values of all cells, flat, as a DataArray with these dimensions, coordinates, name and attributes."""
        xarray = _xarray()
        sizes = dict(zip(self.dims, self.values.shape, strict=True))
        coords = {
            name: xarray.Variable(c.dims, c.values.reshape([sizes[dim] for dim in c.dims]), c.attrs)
            for name, c in self.coords.items()
        }
        return xarray.DataArray(
            values.reshape(self.values.shape), dims=self.dims, coords=coords, name=self.name, attrs=self.attrs
        )

    def to_dataset(self, levels: Floats | None = None, **variables: Floats) -> Any:
        """Several values of all cells as a Dataset; those with a column for each of some quantiles get a dimension."""
        xarray = _xarray()
        arrays = {}
        for name, values in variables.items():
            each = [self.to_xarray(column) for column in (values[:, None] if values.ndim == 1 else values).T]
            joined = each[0] if values.ndim == 1 else xarray.concat(each, xarray.Variable("quantile", levels))
            arrays[name] = joined.transpose(*self.dims, ...).rename(name)
        return xarray.Dataset(arrays, attrs=self.attrs)


def asked_grid(own: GridData | None, like: Any) -> GridData:
    """The grid to predict: that of the model, an xarray one, or that of the model with other coordinates (a dict)."""
    if is_grid(like):
        return GridData.of(like if hasattr(like, "dtype") else _blank(like))
    if own is None:
        raise InputError("This model was not fitted to a grid: name the grid to predict, an xarray one, in like.")
    if like is None:
        return own
    if not isinstance(like, Mapping):
        raise InputError(f"like must be an xarray grid or a dict of coordinates, not {type(like).__name__}.")
    return own.with_coords({str(name): value for name, value in like.items()})


def _xarray() -> Any:
    try:
        return import_module("xarray")
    except ImportError as error:
        raise ImportError("Grids need xarray: pip install 'tuckergp[grid]'.") from error


def _blank(dataset: Any) -> Any:
    """The dimensions and coordinates of a Dataset, without values."""
    sizes = dict(dataset.sizes)
    return _xarray().DataArray(np.full(list(sizes.values()), np.nan), dims=list(sizes), coords=dataset.coords)


def _as_column(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Values as a column of a table: numbers and dates as they are, durations in days, anything else as objects."""
    if values.dtype.kind == "m":
        return values.astype("timedelta64[us]").astype(np.float64) / 86_400e6
    return values if values.dtype.kind in "fiubMO" else values.astype(object)


def _show(value: Any) -> str:
    return str(value.astype("datetime64[s]")) if isinstance(value, np.datetime64) else show_cell(value)


def of_cells(values: Any, name: str, grid: GridData) -> Any:
    """Flatten values of the shape of a grid; None and a single number stay as they are."""
    if not np.ndim(values):
        return values
    if np.shape(values) != grid.values.shape:
        raise InputError(f"{name} must have the shape {grid.values.shape} of the grid, not {np.shape(values)}.")
    return np.asarray(values).ravel()
