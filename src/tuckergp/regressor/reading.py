"""Reads the training data of a regressor: rows of inputs with targets, weights and exposures, or cells of a grid.

X itself is read by `tuckergp.model.inputs.ReadsTables`, which remembers its columns as scikit-learn does.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.data.grids import GridData, of_cells
from tuckergp.data.tables import Table, distinct_rows
from tuckergp.errors import DataWarning, InputError
from tuckergp.kernels import Kernel
from tuckergp.likelihoods import LIKELIHOODS
from tuckergp.model.inputs import Modes, as_modes, exposure_of, targets_of

__all__ = [
    "GridCells",
    "Observations",
    "check_coordinates",
    "observations_of",
    "read_cells",
    "read_observations",
    "read_weights",
]

Floats = npt.NDArray[np.float64]

# Beyond this, sums over observations leave the finite numbers.
LARGEST_WEIGHT = 1e100

# Weights of a smaller mean are rather shares, or inverse variances, than numbers of observations.
LEAST_MEAN = 0.05


class Observations(NamedTuple):
    """Rows of inputs, their targets (N,), and weights and exposures (N,) where they are given.

    ``numbers`` (N,) are their places among the entries of y, row by row; of K ``outputs`` each input has up to K.
    """

    table: Table
    target: Floats
    weight: Floats | None
    exposure: Floats | None
    numbers: npt.NDArray[np.intp]
    outputs: int = 1

    @property
    def several(self) -> bool:
        """Whether inputs have several outputs."""
        return self.outputs > 1

    @property
    def inputs(self) -> npt.NDArray[np.intp]:
        """The row of X of each observation."""
        return self.numbers // self.outputs

    def take(self, rows: npt.NDArray[np.intp]) -> Observations:
        """Some of the rows."""
        weight, exposure = (None if values is None else values[rows] for values in (self.weight, self.exposure))
        labels = np.arange(len(self.table)) if self.table.numbers is None else self.table.numbers
        columns = self.table.take(rows).columns
        table = replace(self.table, columns=columns, n_rows=len(rows), numbers=labels[rows])
        return Observations(table, self.target[rows], weight, exposure, self.numbers[rows], self.outputs)

    def merged(self) -> Observations:
        """Equal observations as one of their total weight, sorted, where there are weights or equal ones.

        A row of weight 2 and two equal rows then give the same draws: sums in another order differ in the last digit,
        and chains that start so close are apart after some dozens of sweeps.
        """
        if self.weight is None and len(np.unique(self.target)) == len(self.target):
            return self
        given = (self.target, *(() if self.exposure is None else (self.exposure,)), *self.table.columns.values())
        columns = {str(k): values for k, values in enumerate(given)}
        first, code = distinct_rows(Table(columns, self.table.name, len(self.target)), list(columns))
        if self.weight is None and len(first) == len(code):
            return self
        return self.take(first)._replace(weight=np.bincount(code, self.weight).astype(np.float64))


class GridCells(NamedTuple):
    """A grid, and its cells that are not missing: inputs, values, weights and exposures."""

    grid: GridData
    table: Table
    target: Floats
    weight: Any
    exposure: Any


def read_observations(table: Table, y: Any, sample_weight: Any, exposure: Any, likelihood: str) -> Observations:
    """Read the rows with targets, weights and exposures as numbers."""
    weight, exposed = read_weights(sample_weight, table), exposure_of(exposure, len(table), likelihood)
    return observations_of(table, targets_of(y, table), weight, exposed, likelihood)


def observations_of(
    table: Table, target: Floats, weight: Floats | None, exposure: Floats | None, likelihood: str
) -> Observations:
    """The observations to learn from: rows of weight 0 are left out, and equal ones are one."""
    LIKELIHOODS[likelihood].check(target)
    if weight is not None:
        _announce_shares(weight)
    data = Observations(table, target, weight, exposure, np.arange(len(table)))
    if weight is not None and not weight.all():  # rows of weight 0 are not in the design either
        data = data.take(np.flatnonzero(weight))
    return data.merged() if LIKELIHOODS[likelihood].repeats else data


def read_weights(sample_weight: Any, table: Table) -> Floats | None:
    """Weights (N,) as numbers; None where none are given."""
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
    return weight


def _announce_shares(weight: Floats) -> None:
    """Warn of weights that are rather shares than numbers of observations."""
    counted = np.count_nonzero(weight)
    if weight.sum() < LEAST_MEAN * counted:
        warnings.warn(
            f"sample_weight sums to {weight.sum():.3g}, so that {counted} rows count as that many: an observation of "
            f"weight w counts as w equal ones. Divide it by its mean to keep their number.",
            DataWarning,
            stacklevel=3,
        )


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
