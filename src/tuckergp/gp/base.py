"""What the reference models share as estimators: reading data, units of the targets, and checks of settings."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin

from tuckergp._inputs import ReadsTables, targets_of
from tuckergp.errors import InputError
from tuckergp.tables import Table

__all__ = ["BLOCK", "GPEstimator", "only_one"]

Floats: TypeAlias = npt.NDArray[np.float64]

BLOCK = 256
"""Rows of a large Gram matrix that are computed at a time."""


class GPEstimator(ReadsTables, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Targets are standardised inside if asked for, and predictions come back in their units."""

    noise: float
    normalize_y: bool
    y_mean_: float
    y_scale_: float

    def _read_data(self, X: Any, y: Any) -> tuple[Table, Floats]:
        """The inputs as a table and the targets in the model's units."""
        table = self._read(X, reset=True)
        target = targets_of(y, table)
        if not (np.isfinite(self.noise) and self.noise > 0):
            raise InputError(f"noise is a variance and must be positive and finite, not {self.noise}.")
        self.y_mean_, self.y_scale_ = 0.0, 1.0
        if self.normalize_y:
            self.y_mean_ = float(target.mean())
            self.y_scale_ = float(target.std()) or 1.0
        return table, (target - self.y_mean_) / self.y_scale_

    def _answer(
        self, mean: Floats, variance: Floats | None, covariance: Floats | None, noise: float | None
    ) -> Floats | tuple[Floats, Floats]:
        """Predictions in the units of the targets; a noise variance is added to both kinds of spread."""
        mean = self.y_mean_ + self.y_scale_ * mean
        if covariance is not None:
            return mean, self.y_scale_**2 * (covariance if noise is None else covariance + noise * np.eye(len(mean)))
        if variance is None:
            return mean
        variance = np.maximum(variance, 0.0) + (noise or 0.0)  # rounding may leave a little below zero
        return mean, self.y_scale_ * np.sqrt(variance)


def only_one(return_std: bool, return_cov: bool) -> None:
    """Refuse to return standard deviations and covariances at once."""
    if return_std and return_cov:
        raise InputError("Ask for return_std or for return_cov, not for both.")
