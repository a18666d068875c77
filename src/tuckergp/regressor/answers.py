"""What a fitted regressor answers: predictions and their certainty, samples, the summands of f, grids.

A base class of `TuckerGPRegressor`, so that learning and answering are two files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from tuckergp.data.grids import GridData, asked_grid, of_cells
from tuckergp.errors import InputError
from tuckergp.model.design import Design, FittedMode, Mode
from tuckergp.model.inputs import ReadsTables, exposure_of
from tuckergp.posterior.export import as_inference_data, block_names
from tuckergp.posterior.fitted import Fit, predict_with
from tuckergp.posterior.samples import covariance, samples
from tuckergp.random import seed_of
from tuckergp.regressor import component_plots
from tuckergp.regressor.component_plots import Colour
from tuckergp.regressor.components import Components, components_of
from tuckergp.store.model_file import Storable

__all__ = ["RegressorAnswers"]

Floats = npt.NDArray[np.float64]


def _has_levels(estimator: Any) -> bool:
    if estimator.likelihood not in ("ordinal", "bernoulli"):
        raise AttributeError("Only models with likelihood='ordinal' or 'bernoulli' have probabilities of levels.")
    return True


class RegressorAnswers(Storable, ReadsTables, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Questions to a fitted regressor."""

    modes_: tuple[FittedMode, ...]
    fit_: Fit
    grid_: GridData | None = None

    @property
    def learned_modes_(self) -> list[Mode]:
        """The modes that were used, with the numbers in their kernels given or learned."""
        return [fitted.mode for fitted in self.modes_]

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        return_cov: bool = False,
        quantiles: Sequence[float] | None = None,
        include_noise: bool = True,
        interval: float | None = None,
        exposure: Any = None,
    ) -> Any:
        """Predict the targets at inputs X.

        Parameters
        ----------
        X : as in `fit`
        return_std : bool
            Also return standard deviations; needs a sampler, such as ``inference="gibbs"``.
        return_cov : bool
            Also return the covariance matrix, shape (N, N), instead of standard deviations.
        quantiles : sequence of float or None
            Also return these quantiles, shape (N, len(quantiles)), instead of standard deviations.
        include_noise : bool
            Standard deviations, covariances, quantiles and intervals of new observations; False for those of f, or of
            the mean level or count.
        interval : float or None
            Also return an interval that holds a new observation with this probability, shape (N, 2). Between levels of
            an ordinal model: as near to it as whole levels allow, and about right on average. Between counts: with this
            probability at least.
        exposure : number, array of shape (N,), or None
            Of counts (``likelihood="poisson"``): the time, area or population that each is to be of; None is 1.

        Returns
        -------
        ndarray, shape (N,), or a pair of it and the standard deviations, covariances, quantiles or interval
        """
        check_is_fitted(self)
        if return_cov and (return_std or quantiles is not None or interval is not None):
            raise InputError(
                "Ask for one of standard deviations, covariances, quantiles and an interval, not for several."
            )
        design = self._inputs(X)
        fit = self._exposed(exposure, design)
        if return_cov:
            return fit.predict(design), covariance(fit, design, include_noise)
        return predict_with(fit, design, return_std, quantiles, interval, include_noise)

    def score(self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None) -> float:
        """R^2 of the predictions at inputs X, shape (N, p), of targets y (N,); ``exposure`` is that of counts."""
        return float(r2_score(y, self.predict(X, exposure=exposure), sample_weight=sample_weight))

    @available_if(_has_levels)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Probability of every level (``fit_.levels``) at inputs X, shape (N, K); for ordinal and Bernoulli models."""
        check_is_fitted(self)
        return self.fit_.probabilities(self._inputs(X))

    def sample_y(
        self, X: Any, n_samples: int = 1, random_state: Any = 0, include_noise: bool = True, exposure: Any = None
    ) -> Floats:
        """Draw from the joint distribution of the targets at inputs X.

        Parameters
        ----------
        X : as in `fit`
        n_samples : int
            Each is f of one posterior draw at all inputs; beyond the number of draws, draws are used again.
        random_state : int, Generator or None
        include_noise : bool
            New observations; False for f itself, or the mean level or count.
        exposure : as in `predict`

        Returns
        -------
        ndarray, shape (N, n_samples)
        """
        check_is_fitted(self)
        design = self._inputs(X)
        return samples(self._exposed(exposure, design), design, n_samples, include_noise, seed_of(random_state))

    def components(self, X: Any, draw: int = -1, top: int | None = None) -> Components:
        """The summands of f at inputs X for one draw: W_ij psi_1i psi_2j with two modes, the largest first.

        Summands of different draws have nothing to do with one another, so their averages mean nothing.

        Parameters
        ----------
        X : as in `fit`
        draw : int
            Number of the draw, all chains in a row; -1 is the last.
        top : int or None
            Keep this many and add up the others.

        Returns
        -------
        Components
            ``values`` (N, Q) in the units of the targets (of the latent f in ordinal models, of log rates in those of
            counts), ``coords`` (Q, D); ``total()`` is f of that draw.

        Examples
        --------
        >>> from tuckergp import TuckerGPRegressor
        >>> X = np.random.default_rng(0).uniform(-2, 2, size=(100, 2))
        >>> model = TuckerGPRegressor(rank=2, inference="als", random_state=0).fit(X, np.sin(X[:, 0]) * X[:, 1])
        >>> parts = model.components(X)
        >>> parts.values.shape, bool(np.allclose(parts.total(), model.predict(X)))
        ((100, 4), True)
        """
        check_is_fitted(self)
        return components_of(self.fit_, self._inputs(X), draw, top)

    def plot_components(
        self,
        X: Any,
        draw: int = -1,
        top: int = 4,
        columns: str | Sequence[str] | None = None,
        colour: Colour = "percentile",
        extent: Sequence[float] | None = None,
        axes: Any = None,
    ) -> npt.NDArray[Any]:
        """Draw the largest summands of f for one draw, a panel each (extra ``plot``).

        Parameters
        ----------
        X : as in `fit`
        draw : int
            Number of the draw; -1 is the last.
        top : int
            How many summands, at most.
        columns : str or sequence of str, or None
            Draw over two columns (maps) or one (lines). None: the first two numeric columns, or the one that there is.
        colour : {"percentile", "uniform"}
            Colour values by their percentile, which shows differences everywhere, or evenly. Red is high, blue is low,
            with the same colours in all panels.
        extent : sequence of float or None
            Bounds of a part to draw and to colour: ``(left, right, bottom, top)``; over one column ``(left, right)``.
        axes : matplotlib Axes, or an array of them, or None
            Where to draw.

        Returns
        -------
        ndarray of matplotlib Axes
        """
        check_is_fitted(self)
        if top is None:
            raise InputError("top must be a whole number from 1 on, not None.")
        table = self._read(X, reset=False)
        parts = components_of(self.fit_, Design.transform(self.modes_, table), draw, top)
        return component_plots.plot(parts, table, columns, colour, extent, axes)

    def predict_grid(
        self,
        like: Any = None,
        return_std: bool = False,
        include_noise: bool = True,
        keep_observed: bool = False,
        exposure: Any = None,
    ) -> Any:
        """Predict every cell of a grid, those that were missing included (extra ``grid``).

        Parameters
        ----------
        like : xarray DataArray or Dataset, dict of coordinates, or None
            The grid to predict. None: the one of `fit`. A dict replaces coordinates of that one, such as
            ``{"day": [1, 2, 3]}``; a dimension's other coordinates have to be given with it if the model reads them.
        return_std : bool
            Also return standard deviations; needs a sampler, such as ``inference="gibbs"``.
        include_noise : bool
            Those of new observations; False for those of f.
        keep_observed : bool
            Leave cells that are there as they are, with standard deviation 0, and fill in missing ones alone.
        exposure : number, array of the shape of the grid, or None
            Of counts, as in `predict`.

        Returns
        -------
        xarray.DataArray with the dimensions, coordinates and attributes of the grid, or an xarray.Dataset of such with
        ``mean`` and ``std``
        """
        check_is_fitted(self)
        grid = asked_grid(self.grid_, like)
        missing = [name for name in self._names if name not in grid.columns]
        if missing:
            raise InputError(f"The grid has no coordinate {missing[0]!r}; it has {', '.join(grid.columns)}.")
        mean = self.predict(
            grid.table(self._names),
            return_std=return_std,
            include_noise=include_noise,
            exposure=of_cells(exposure, "exposure", grid),
        )
        mean, std = mean if return_std else (mean, None)
        if keep_observed:
            there = np.flatnonzero(~np.isnan(grid.values.ravel()))
            mean[there] = grid.values.ravel()[there]
            if std is not None:
                std[there] = 0.0
        return grid.to_xarray(mean) if std is None else grid.to_dataset(mean=mean, std=std)

    def inference_data(self) -> Any:
        """The draws of what is identified, for ArviZ's plots and summaries (extra ``arviz``).

        Returns
        -------
        arviz.InferenceData, or xarray.DataTree from ArviZ 1.0 on
            Group ``posterior``: ``f`` at up to 100 training observations, ``noise`` (its standard deviation), ``tau``
            (the precision of every feature block), ``cuts`` of ordered levels. Group ``log_likelihood``: ``y`` at the
            same observations. Dimensions chain and draw first; in the units of the targets.
        """
        check_is_fitted(self)
        fit = self.fit_
        return as_inference_data(fit.draws, fit.mean, fit.scale, block_names(self.modes_))

    def _exposed(self, exposure: Any, design: Design) -> Fit:
        """What was learned, to be asked about these exposures."""
        found = exposure_of(exposure, design.n_observations, self.likelihood)
        return self.fit_ if found is None else self.fit_.exposed(found)

    def _inputs(self, X: Any) -> Design:
        return Design.transform(self.modes_, self._read(X, reset=False))
