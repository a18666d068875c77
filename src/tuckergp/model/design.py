"""From tables to a design: D modes as tables of distinct rows, and the row numbers of every observation.

A `Mode` says which columns go together and which kernel compares them; `Design.fit` fits it to the training inputs
(`tuckergp.model.fitted_mode`) and finds the distinct ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.data.tables import Table, distinct_rows
from tuckergp.errors import InputError
from tuckergp.model.fitted_mode import FittedMode
from tuckergp.model.mode import Mode
from tuckergp.model.mode_table import Index, ModeTable
from tuckergp.model.whitening import whiten, whitening_of

__all__ = ["Design"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Design:
    """Modes as tables of distinct rows, and which row of each mode every observation uses.

    Attributes
    ----------
    modes : tuple of ModeTable, length D
    index : ndarray of int32, shape (N, D)

    Examples
    --------
    >>> from tuckergp.kernels import Identity, Linear
    >>> from tuckergp.data.tables import as_table
    >>> table = as_table({"user": ["ann", "bob", "ann"], "x": [1.0, 2.0, 1.0]}, "data")
    >>> design, fitted = Design.fit([Mode("user", Identity()), Mode("x", Linear())], table)
    >>> design.index
    array([[0, 0],
           [1, 1],
           [0, 0]], dtype=int32)
    """

    modes: tuple[ModeTable, ...]
    index: Index

    @property
    def n_observations(self) -> int:
        """The number of observations, N."""
        return len(self.index)

    @classmethod
    def fit(
        cls,
        modes: Sequence[Mode],
        table: Table,
        weight: Floats | None = None,
        random_state: int | np.random.Generator | None = None,
        any_residual: bool = True,
    ) -> tuple[Design, tuple[FittedMode, ...]]:
        """Fit every mode to the columns of one table that has one row for each observation.

        Whitening uses the (weighted) mean and standard deviation over observations. ``any_residual=False`` is for
        inference in weight space (SGD): a Matern on a line or of places becomes features.
        """
        if not modes:
            raise InputError("A design needs at least one mode.")
        if len(table) == 0:
            raise InputError(f"{table.name} is empty; there is nothing to learn from.")
        rng = np.random.default_rng(random_state)
        fitted, tables, codes = [], [], []
        for mode in modes:
            inputs = table.select(mode.columns)
            whitening = whitening_of(inputs, weight) if mode.whiten else {}
            inputs = whiten(inputs, whitening)
            first, code = distinct_rows(inputs, mode.columns)
            fitted_mode, mode_table = FittedMode.fit(mode, inputs.take(first), whitening, rng, any_residual)
            fitted.append(fitted_mode)
            tables.append(mode_table)
            codes.append(code)
        return cls(tuple(tables), _stack(codes)), tuple(fitted)

    @classmethod
    def of_entities(
        cls,
        modes: Sequence[Mode],
        tables: Sequence[Table],
        codes: Sequence[npt.NDArray[Any]],
        random_state: int | np.random.Generator | None = None,
        any_residual: bool = True,
        set_column: str | None = None,
    ) -> tuple[Design, tuple[FittedMode, ...]]:
        """Fit every mode to its own table of distinct inputs; ``codes[d]`` are the observations' rows in table d.

        ``set_column`` of some tables may hold sets that are not known of newcomers.
        """
        rng = np.random.default_rng(random_state)
        fitted, mode_tables = [], []
        for mode, table in zip(modes, tables, strict=True):
            whitening = whitening_of(table.select(mode.columns), None) if mode.whiten else {}
            inputs = whiten(table, whitening)
            fitted_mode, mode_table = FittedMode.fit(mode, inputs, whitening, rng, any_residual, set_column)
            fitted.append(fitted_mode)
            mode_tables.append(mode_table)
        return cls(tuple(mode_tables), _stack(codes)), tuple(fitted)

    @classmethod
    def transform(cls, fitted: Sequence[FittedMode], table: Table) -> Design:
        """The design of new inputs, with the feature maps of fitted modes."""
        pairs = [mode.transform(table) for mode in fitted]
        return cls(tuple(mode_table for mode_table, _ in pairs), _stack([code for _, code in pairs]))

    def take(self, observations: npt.NDArray[Any]) -> Design:
        """The same modes with some of the observations."""
        return replace(self, index=np.ascontiguousarray(self.index[observations]))

    def compact(self) -> Design:
        """The same observations with only the rows they use, where those are few or not stored as one array."""
        modes, index = list(self.modes), self.index
        for d, table in enumerate(modes):
            if len(index) < table.n_rows or table.more is not None:
                rows, place = np.unique(index[:, d], return_inverse=True)
                modes[d] = table.take(rows)
                index = index.copy() if index is self.index else index
                index[:, d] = place
        return Design(tuple(modes), index)


def _stack(codes: Sequence[npt.NDArray[Any]]) -> Index:
    base = codes[0].base
    if isinstance(base, np.ndarray) and _are_columns(codes, base):
        return base
    return np.ascontiguousarray(np.stack([np.asarray(code) for code in codes], axis=1), dtype=np.int32)


def _are_columns(codes: Sequence[npt.NDArray[Any]], base: npt.NDArray[Any]) -> bool:
    """Whether the codes are the columns of an array that lies in memory as a stack of them would."""
    if base.dtype != np.int32 or base.ndim != 2 or base.shape[1] != len(codes) or not base.flags.c_contiguous:
        return False
    return all(
        isinstance(code, np.ndarray) and code.__array_interface__ == base[:, d].__array_interface__
        for d, code in enumerate(codes)
    )
