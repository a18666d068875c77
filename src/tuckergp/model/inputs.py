"""Inputs and targets of the regressors: X of any kind as a table, y as numbers, and modes where none are named."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils.validation import column_or_1d, validate_data

from tuckergp.data.grids import GridData, is_grid
from tuckergp.data.tables import Table, as_table, require_finite
from tuckergp.errors import InputError
from tuckergp.kernels import SE, Identity
from tuckergp.likelihoods import LIKELIHOODS
from tuckergp.model.design import Mode

__all__ = ["ReadsTables", "default_modes", "exposure_of", "targets_of"]

Floats = npt.NDArray[np.float64]


class ReadsTables:
    """A base of estimators that reads X and remembers its columns, or checks that they are the same."""

    feature_names_in_: npt.NDArray[Any]
    n_features_in_: int

    def _read(self, X: Any, reset: bool) -> Table:
        """X as a table whose columns have names, remembering or checking them as scikit-learn does."""
        if not reset and is_grid(X) and hasattr(self, "feature_names_in_"):
            X = GridData.of(X).table()
        if isinstance(X, Table | Mapping | str | Path) and not sparse.issparse(X):  # one sparse format is a mapping
            table = as_table(X, "X")
            if reset:
                self.feature_names_in_ = np.array(list(table.columns), dtype=object)
                self.n_features_in_ = len(table.columns)
            table = table.select(self._names)
        elif hasattr(X, "columns"):
            validate_data(self, X, skip_check_array=True, reset=reset)
            table = as_table(X, "X")
        else:
            array = validate_data(self, X, dtype=np.float64, ensure_all_finite=False, reset=reset)
            table = Table({f"x{j}": array[:, j] for j in range(array.shape[1])}, "X", len(array))
        if len(table) == 0:
            raise InputError("X has no rows; there is nothing to learn from or to predict.")
        for column, values in table.columns.items():
            if values.dtype.kind in "fiub":
                require_finite(values.astype(np.float64), table, column)
        return table

    @property
    def _names(self) -> list[str]:
        """The names of the columns; those of an array are numbered."""
        if hasattr(self, "feature_names_in_"):
            return [str(name) for name in self.feature_names_in_]
        return [f"x{j}" for j in range(self.n_features_in_)]


def default_modes(table: Table) -> list[Mode]:
    """One mode for each column: SE on whitened numbers and dates, Identity on anything else."""
    return [
        Mode(column, SE(1.0), whiten=True) if values.dtype.kind in "fiubM" else Mode(column, Identity())
        for column, values in table.columns.items()
    ]


def targets_of(y: Any, table: Table) -> Floats:
    """The targets of the rows of a table as finite numbers, shape (N,)."""
    if y is None:
        raise InputError("This estimator requires y to be passed, but the target y is None.")
    values = column_or_1d(y, warn=True)
    if len(values) != len(table):
        raise InputError(f"X has {len(table)} rows but y has {len(values)}.")
    return Table({"y": np.asarray(values)}, "the target", len(values)).numeric("y")


def exposure_of(exposure: Any, n: int, likelihood: str) -> Floats | None:
    """The exposure of n counts as positive numbers, shape (n,); one number is for all, None for ones."""
    if exposure is None:
        return None
    if not LIKELIHOODS[likelihood].counts:
        raise InputError(f"exposure is for counts; with likelihood={likelihood!r} leave it out.")
    values = np.asarray(exposure)
    values = np.full(n, values) if values.ndim == 0 else values
    if values.shape != (n,):
        raise InputError(f"exposure must be one number, or one for each of the {n} rows, not shape {values.shape}.")
    exposures = Table({"exposure": values}, "the data", n).numeric("exposure")
    if (exposures <= 0).any():
        row = int(np.argmax(exposures <= 0))
        raise InputError(f"exposure must be positive, but row {row} holds {exposures[row]:g}; leave such rows out.")
    return exposures
