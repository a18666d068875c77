"""Predictions of a fitted regressor, with their uncertainty: of rows, joint samples, and whole grids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.checks import check, one_of
from tuckergp.data.grids import GridData, of_cells
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.model.design import Design
from tuckergp.model.inputs import exposure_of
from tuckergp.posterior.fitted import Fit, predict_with
from tuckergp.posterior.samples import covariance, samples
from tuckergp.regressor.learning import FittedRegressor
from tuckergp.regressor.reading import check_coordinates

__all__ = ["predict", "predict_grid", "sample"]

Floats = npt.NDArray[np.float64]


def predict(
    fitted: FittedRegressor,
    table: Table,
    return_std: bool = False,
    return_cov: bool = False,
    quantiles: Sequence[float] | float | None = None,
    include_noise: bool = True,
    interval: float | None = None,
    exposure: Any = None,
) -> Any:
    """Predictions at inputs and their uncertainty, as `TuckerGPRegressor.predict` describes."""
    check("return_cov", return_cov, one_of(True, False))
    if return_cov and (return_std or quantiles is not None or interval is not None):
        raise InputError("return_cov=True returns nothing beside covariances; ask for the rest in another call.")
    design = fitted.design(table)
    fit = _exposed(fitted, exposure, design)
    if return_cov:
        return fit.predict(design), covariance(fit, design, include_noise)
    return predict_with(fit, design, return_std, quantiles, interval, include_noise)


def sample(
    fitted: FittedRegressor, table: Table, n_samples: int, include_noise: bool, exposure: Any, seed: int
) -> Floats:
    """Joint draws of targets at inputs, shape (N, n_samples)."""
    check("include_noise", include_noise, one_of(True, False))
    design = fitted.design(table)
    return samples(_exposed(fitted, exposure, design), design, n_samples, include_noise, seed)


def _exposed(fitted: FittedRegressor, exposure: Any, design: Design) -> Fit:
    """The fit, to predict counts with these exposures."""
    exposures = exposure_of(exposure, design.n_observations, fitted.likelihood)
    return fitted.fit if exposures is None else fitted.fit.exposed(exposures)


def predict_grid(
    fitted: FittedRegressor,
    grid: GridData,
    names: Sequence[str],
    return_std: bool,
    include_noise: bool,
    keep_observed: bool,
    exposure: Any,
) -> Any:
    """Predictions of all cells of a grid as xarray objects; ``names`` are the coordinates that the model reads."""
    check_coordinates(grid, names)
    exposed = of_cells(exposure, "exposure", grid)
    predicted = predict(fitted, grid.table(names), return_std=return_std, include_noise=include_noise, exposure=exposed)
    mean, std = predicted if return_std else (predicted, None)
    if keep_observed:
        observed = np.flatnonzero(~np.isnan(grid.values.ravel()))
        mean[observed] = grid.values.ravel()[observed]
        if std is not None:
            std[observed] = 0.0
    return grid.to_xarray(mean) if std is None else grid.to_dataset(mean=mean, std=std)
