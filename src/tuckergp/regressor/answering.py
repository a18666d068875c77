"""Predictions of a fitted regressor, with their uncertainty: of rows, joint samples, and whole grids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.checks import check, one_of
from tuckergp.data.grids import GridData
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.likelihoods import LIKELIHOODS
from tuckergp.model.design import Design
from tuckergp.model.inputs import exposure_of, targets_of
from tuckergp.posterior.fitted import Fit, predict_with
from tuckergp.posterior.samples import covariance, samples
from tuckergp.regressor.learning import FittedRegressor

__all__ = ["Asked", "log_density", "on_grid", "predict", "sample"]

Floats = npt.NDArray[np.float64]


class Asked(NamedTuple):
    """What is asked for beside the mean, as in `TuckerGPRegressor.predict`."""

    return_std: bool = False
    quantiles: Sequence[float] | float | None = None
    interval: float | None = None
    include_noise: bool = True


def predict(fitted: FittedRegressor, table: Table, return_cov: bool, asked: Asked, exposure: Any = None) -> Any:
    """Predictions at inputs and their uncertainty, as `TuckerGPRegressor.predict` describes."""
    check("return_cov", return_cov, one_of(True, False))
    if return_cov and (asked.return_std or asked.quantiles is not None or asked.interval is not None):
        raise InputError("return_cov=True returns nothing beside covariances; ask for the rest in another call.")
    design = fitted.design(table)
    fit = _exposed(fitted, exposure, design)
    if return_cov:
        return fit.predict(design), covariance(fit, design, asked.include_noise)
    return predict_with(fit, design, **asked._asdict())


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


def on_grid(found: list[Floats], grid: GridData, asked: Asked, keep_observed: bool) -> Any:
    """Predictions of all cells of a grid, the mean and what else was asked for, as xarray objects."""
    if keep_observed:  # known for certain
        observed = np.flatnonzero(~np.isnan(grid.values.ravel()))
        for place, values in enumerate(found):
            at = grid.values.ravel()[observed]
            certain = 0.0 if asked.return_std and place == 1 else at if values.ndim == 1 else at[:, None]
            values[observed] = certain
    if len(found) == 1:
        return grid.to_xarray(found[0])
    parts = {"mean": found.pop(0)} | ({"std": found.pop(0)} if asked.return_std else {})
    levels = None
    if asked.quantiles is not None:
        levels, parts["quantiles"] = np.atleast_1d(asked.quantiles), found.pop(0)
    if asked.interval is not None:
        parts["lower"], parts["upper"] = found.pop(0).T
    return grid.to_dataset(levels, **parts)


def log_density(fitted: FittedRegressor, table: Table, y: Any, exposure: Any) -> Floats:
    """The log predictive density of targets at inputs, shape (N,)."""
    design, target = fitted.design(table), targets_of(y, table)
    LIKELIHOODS[fitted.likelihood].check(target)
    return _exposed(fitted, exposure, design).log_density(design, target)
