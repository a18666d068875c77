"""Standardising the numeric columns of a mode by the mean and standard deviation of its training inputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tuckergp.data.standard import mean_and_std
from tuckergp.data.tables import Table

__all__ = ["whiten", "whitening_of"]

Floats = npt.NDArray[np.float64]


def whitening_of(inputs: Table, weight: Floats | None = None) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation of every numeric column; a constant column keeps its scale."""
    whitening = {}
    for column, values in inputs.columns.items():
        if values.dtype.kind in "fiubM":
            mean, std = mean_and_std(inputs.numeric(column), weight)
            whitening[column] = (mean, std or 1.0)
    return whitening


def whiten(inputs: Table, whitening: dict[str, tuple[float, float]]) -> Table:
    """The same columns, standardised by their mean and standard deviation where they have one in ``whitening``."""
    if not whitening:
        return inputs
    columns = dict(inputs.columns)
    for column, (mean, std) in whitening.items():
        columns[column] = (inputs.numeric(column) - mean) / std
    return replace(inputs, columns=columns)
