"""Inputs and targets of the regressors: X of any kind as a table, y as numbers, and modes where none are named."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils.validation import column_or_1d, validate_data

from tuckergp.data.grids import GridData, is_grid
from tuckergp.data.tables import Table, as_table, require_finite
from tuckergp.errors import InputError
from tuckergp.kernels import SE, Identity, Kernel
from tuckergp.likelihoods import LIKELIHOODS
from tuckergp.model.kinds import as_dates, check_kinds, kinds_of, plain, reads_levels, values_of, warn_of_levels
from tuckergp.model.mode import Mode

__all__ = ["Modes", "ReadsTables", "as_modes", "default_modes", "exposure_of", "targets_of"]

Floats = npt.NDArray[np.float64]
Modes: TypeAlias = Kernel | Mode | Sequence[Mode | str | int] | None


class ReadsTables:
    """A base of estimators that reads X and remembers its columns, or checks that they are the same."""

    modes: Modes
    modes_: Any
    feature_names_in_: npt.NDArray[Any]
    n_features_in_: int
    column_kinds_: Mapping[str, str] = {}  # models of earlier versions have none
    column_values_: Mapping[str, list[Any]] = {}

    def _read(self, X: Any, reset: bool) -> Table:
        """X as a table whose columns have names, remembering or checking them as scikit-learn does."""
        with plain_errors():
            lazy = hasattr(X, "collect_schema") and hasattr(X, "collect")  # a frame of polars
            table = plain(self._table(X.collect() if lazy else X, reset))
        if len(table) == 0:
            raise InputError("X has no rows; there is nothing to learn from or to predict.")
        if reset:
            table = as_dates(table, [name for name in _without_mode(self.modes, table) if _holds_dates(table[name])])
        modes = as_modes(self.modes, table) if reset else self._modes
        used = list(dict.fromkeys(name for mode in modes for name in mode.columns))
        levels = {name for mode in modes if reads_levels(mode.kernel) for name in mode.columns}
        if reset:
            self._read_modes = modes
            table = as_dates(table, [name for name in used if name not in levels and _may_be_dates(table[name])])
            self.column_kinds_, self.column_values_ = kinds_of(table), values_of(table.select(used))
        else:
            table = as_dates(table, [name for name in used if self.column_kinds_.get(name) == "dates"])
            check_kinds(table, [name for name in used if name not in levels], self.column_kinds_)
            warn_of_levels(table, sorted(levels), self.column_kinds_)
        for column in used:
            if table[column].dtype.kind in "fiub":
                require_finite(table[column].astype(np.float64), table, column)
        return table

    def _table(self, X: Any, reset: bool) -> Table:
        if not reset and is_grid(X) and hasattr(self, "feature_names_in_"):
            X = GridData.of(X).table()
        if isinstance(X, Table | Mapping | str | Path) and not sparse.issparse(X):  # one sparse format is a mapping
            table = as_table(X, "X")
            if reset:
                self.feature_names_in_ = np.array(list(table.columns), dtype=object)
                self.n_features_in_ = len(table.columns)
            return table.select(self._names if reset else self._used)
        if hasattr(X, "columns"):
            return self._frame(X, reset)
        # an array after a data frame has its columns in the same order, and may hold text
        named = not reset and hasattr(self, "feature_names_in_")
        if named and isinstance(X, list | tuple):
            X = np.array(X, dtype=object)
        kept = None if named and getattr(getattr(X, "dtype", None), "kind", "f") == "O" else np.float64
        array = validate_data(self, X, dtype=kept, ensure_all_finite=False, reset=reset)
        columns = {name: array[:, j] if kept else array[:, j].tolist() for j, name in enumerate(self._names)}
        return as_table(columns, "X")

    def _frame(self, X: Any, reset: bool) -> Table:
        """A data frame as a table; columns that no mode uses may be missing."""
        try:
            validate_data(self, X, skip_check_array=True, reset=reset)
        except ValueError:
            there = {str(name) for name in X.columns}
            if reset or set(self._used) == set(self._names) or not there.issuperset(self._used):
                raise
            return as_table(X, "X", columns=self._used)
        table = as_table(X, "X")
        if not reset and not hasattr(self, "feature_names_in_") and not set(self._used) <= set(table.columns):
            table = Table(dict(zip(self._names, table.columns.values(), strict=True)), "X", len(table))
        return table

    @property
    def _names(self) -> list[str]:
        """The names of the columns; those of an array are numbered."""
        if hasattr(self, "feature_names_in_"):
            return [str(name) for name in self.feature_names_in_]
        return [f"x{j}" for j in range(self.n_features_in_)]

    @property
    def _modes(self) -> list[Mode]:
        """The modes that were fitted, or are about to be."""
        fitted = getattr(self, "_read_modes", None) or self.modes_
        return [getattr(mode, "mode", mode) for mode in fitted]

    @property
    def _used(self) -> list[str]:
        """The columns that the fitted modes use."""
        return list(dict.fromkeys(str(name) for mode in self._modes for name in mode.columns))


@contextmanager
def plain_errors() -> Iterator[None]:
    """What scikit-learn refuses, as an `InputError` with its text, but for a dump of the array."""
    try:
        yield
    except InputError:
        raise
    except ValueError as error:
        text = str(error)
        if "\narray=" in text:
            text = f"{text.splitlines()[0].rstrip(':')}. {text.splitlines()[-1]}"
        elif "could not convert string" in text:
            text = f"{text}; give columns with text in a data frame or a dict."
        raise InputError(text) from None


def _without_mode(modes: Modes, table: Table) -> list[str]:
    """The columns whose kernel is not given."""
    if isinstance(modes, Kernel):
        return []
    entries = [] if modes is None else [modes] if isinstance(modes, Mode | str | int) else list(modes)
    given = {str(name) for entry in entries if isinstance(entry, Mode) for name in entry.columns}
    return [name for name in table.columns if name not in given]


def _holds_dates(values: npt.NDArray[Any]) -> bool:
    """Whether a column holds dates in text alone, such as 2000-12-31."""
    texts = [value for value in values if value is not None] if values.dtype.kind == "O" else []
    return bool(texts) and all(isinstance(text, str) and text[4:5] == "-" and _is_date(text) for text in texts)


def _is_date(text: str) -> bool:
    try:
        return bool(datetime.datetime.fromisoformat(text))
    except ValueError:
        return False


def _may_be_dates(values: npt.NDArray[Any]) -> bool:
    """Whether a column begins with a date in text."""
    return values.dtype.kind == "O" and isinstance(values[0], str) and _is_date(values[0])


def default_modes(table: Table) -> list[Mode]:
    """One mode for each column: SE on whitened numbers and dates, Identity on anything else."""
    return [
        Mode(column, SE(1.0), whiten=True) if values.dtype.kind in "fiubM" else Mode(column, Identity())
        for column, values in table.columns.items()
    ]


def as_modes(
    modes: Modes, table: Table, constant: bool = True, default: Callable[[Table], list[Mode]] = default_modes
) -> list[Mode]:
    """The modes asked for, with the names of their columns.

    A kernel is one mode of all columns, with a ``constant`` or without; a name or number of a column is the mode that
    ``default`` gives it; None is one mode for each column.
    """
    if isinstance(modes, Kernel):
        return [Mode(list(table.columns), modes, constant=constant)]
    asked = list(table.columns) if modes is None else [modes] if isinstance(modes, Mode | str | int) else list(modes)
    if not asked or not all(isinstance(entry, Mode | str | int | np.integer) for entry in asked):
        raise InputError(f"modes must be a kernel, a list of Mode with at least one entry, or None, not {modes!r}.")
    return [
        replace(entry, columns=tuple(_name(column, table) for column in entry.columns))
        if isinstance(entry, Mode)
        else default(table.select([_name(entry, table)]))[0]
        for entry in asked
    ]


def _name(column: str | int, table: Table) -> str:
    """The name of a column, which may be given by its number."""
    names = list(table.columns)
    if isinstance(column, str) or str(column) in names:
        return str(column)
    if not 0 <= column < len(names):
        raise InputError(f"A mode asks for column {column}, but {table.name} has columns 0 to {len(names) - 1}.")
    return names[column]


def targets_of(y: Any, table: Table) -> Floats:
    """The targets of the rows of a table as finite numbers, shape (N,)."""
    if y is None:
        raise InputError("This estimator requires y to be passed, but the target y is None.")
    try:
        values = column_or_1d(y, warn=True)
    except ValueError as error:
        raise InputError(f"The target y cannot be used: {str(error).splitlines()[0].rstrip('.')}.") from None
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
