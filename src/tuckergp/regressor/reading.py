"""Reads the training data of a regressor: rows of inputs with targets, weights and exposures, or cells of a grid.

X itself is read by `tuckergp.model.inputs.ReadsTables`, which remembers its columns as scikit-learn does.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.data.grids import GridData, of_cells
from tuckergp.data.tables import Table
from tuckergp.errors import DataWarning, InputError
from tuckergp.kernels import Kernel
from tuckergp.likelihoods import LIKELIHOODS
from tuckergp.model.inputs import Modes, as_modes, exposure_of, targets_of

__all__ = ["GridCells", "Observations", "check_coordinates", "read_cells", "read_observations"]

Floats = npt.NDArray[np.float64]

# Beyond this, sums over observations leave the finite numbers.
LARGEST_WEIGHT = 1e100

# Weights of a smaller mean are rather shares, or inverse variances, than numbers of observations.
LEAST_MEAN = 0.05


class Observations(NamedTuple):
    """Rows of inputs, their targets (N,), and weights and exposures (N,) where they are given.

    ``inputs`` (N,) says which rows belong to one input, where inputs have several outputs; None: each is its own.
    """

    table: Table
    target: Floats
    weight: Floats | None
    exposure: Floats | None
    inputs: npt.NDArray[np.intp] | None = None

    @property
    def several(self) -> bool:
        """Whether inputs have several outputs."""
        return self.inputs is not None

    def take(self, rows: npt.NDArray[np.intp]) -> Observations:
        """Some of the rows."""
        weight, exposure = (None if values is None else values[rows] for values in (self.weight, self.exposure))
        inputs = None if self.inputs is None else self.inputs[rows]
        return Observations(self.table.take(rows), self.target[rows], weight, exposure, inputs)


class GridCells(NamedTuple):
    """A grid, and its cells that are not missing: inputs, values, weights and exposures."""

    grid: GridData
    table: Table
    target: Floats
    weight: Any
    exposure: Any


def read_observations(table: Table, y: Any, sample_weight: Any, exposure: Any, likelihood: str) -> Observations:
    """Read the rows with targets, weights and exposures as numbers; rows of weight 0 are left out."""
    target = targets_of(y, table)
    weight = _weights(sample_weight, table)
    exposed = exposure_of(exposure, len(table), likelihood)
    LIKELIHOODS[likelihood].check(target)
    if weight is not None and not weight.all():  # rows of weight 0 are not in the design either
        keep = np.flatnonzero(weight)
        return Observations(table, target, weight, exposed).take(keep)
    return Observations(table, target, weight, exposed)


def _weights(sample_weight: Any, table: Table) -> Floats | None:
    if sample_weight is None:
        return None
    try:
        values = np.asarray(sample_weight)
    except ValueError:  # rows of several lengths
        values = np.empty((0, 0))
    if values.ndim == 0:
        values = np.full(len(table), values)
    if values.shape != (len(table),):
        raise InputError(
            f"sample_weight must have one entry for each of the {len(table)} rows, not shape {values.shape}."
        )
    weight = Table({"sample_weight": values}, "the data", len(values)).numeric("sample_weight")
    if (weight < 0).any():
        row = int(np.argmax(weight < 0))
        raise InputError(f"sample_weight must not be negative, but row {row} holds {weight[row]:g}.")
    if weight.max() > LARGEST_WEIGHT:
        raise InputError(f"sample_weight reaches {weight.max():g}, which is too large; divide it by a number.")
    if not weight.any():
        raise InputError("sample_weight is zero everywhere; there is nothing to learn from.")
    counted = np.count_nonzero(weight)
    if weight.sum() < LEAST_MEAN * counted:
        warnings.warn(
            f"sample_weight sums to {weight.sum():.3g}, so that {counted} rows count as that many: an observation of "
            f"weight w counts as w equal ones. Divide it by its mean to keep their number.",
            DataWarning,
            stacklevel=2,
        )
    return weight


def read_cells(X: Any, sample_weight: Any, exposure: Any, modes: Modes) -> GridCells:
    """Read the cells of an xarray grid that are not missing, with the coordinates that the modes use."""
    grid = GridData.of(X)
    cells = grid.observed()
    dims = Table({name: np.zeros(1) for name in [*grid.dims, *grid.columns]}, "The grid", 1)
    named = None if isinstance(modes, Kernel) else modes  # a kernel is for all dimensions
    used = list(grid.dims) if named is None else [name for mode in as_modes(named, dims) for name in mode.columns]
    check_coordinates(grid, used)
    given = (of_cells(sample_weight, "sample_weight", grid), of_cells(exposure, "exposure", grid))
    weight, exposed = (values[cells] if np.ndim(values) else values for values in given)
    return GridCells(grid, grid.table(used, cells), grid.values.ravel()[cells], weight, exposed)


def check_coordinates(grid: GridData, names: Sequence[str]) -> None:
    """Raise an error for a grid that lacks one of these coordinates."""
    for name in names:
        if name not in grid.columns:
            raise InputError(f"The grid has no coordinate {name!r}; it has {', '.join(grid.columns)}.")
