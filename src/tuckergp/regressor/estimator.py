"""`TuckerGPRegressor`: the Tucker GP as a scikit-learn estimator.

The class holds parameters and fitted attributes. Its methods read X and leave everything else to `learning`, which
makes a `FittedRegressor` from observations, and to `answering`, `components` and `plots`, which use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self, overload

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from tuckergp.checks import check, whole
from tuckergp.data.grids import GridData, asked_grid, is_grid, of_cells
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.likelihoods import LIKELIHOODS
from tuckergp.model.cores import CoreSpec
from tuckergp.model.design import Design
from tuckergp.model.inputs import Modes, ReadsTables
from tuckergp.model.mode import Mode
from tuckergp.params import inner_params, with_inner
from tuckergp.posterior.export import as_inference_data, block_names, watched_of
from tuckergp.random import seed_of
from tuckergp.regressor import answering, partial_dependence, plots
from tuckergp.regressor.choice import Choice
from tuckergp.regressor.choosing import inference_of
from tuckergp.regressor.column_report import ColumnReport, column_report
from tuckergp.regressor.components import Components, components_of
from tuckergp.regressor.decomposition import Decomposition, decomposition_of
from tuckergp.regressor.learning import FittedRegressor, learn
from tuckergp.regressor.outputs import ONE_OUTPUT, OneOutput, Outputs, read_outputs
from tuckergp.regressor.partial_dependence import PartialDependence
from tuckergp.regressor.plots import Colour
from tuckergp.regressor.reading import check_coordinates, read_cells
from tuckergp.regressor.settings import RegressorSettings
from tuckergp.regressor.trial import choose
from tuckergp.regressor.watched_outputs import by_output
from tuckergp.running.control import Callback, Control, kept
from tuckergp.running.fit import Inference
from tuckergp.store.checks import check_fit, check_modes
from tuckergp.store.model_file import Storable
from tuckergp.store.schema import declared
from tuckergp.store.typed import check_fields

__all__ = ["TuckerGPRegressor"]

Floats = npt.NDArray[np.float64]


def _has_levels(estimator: Any) -> bool:
    likelihood = LIKELIHOODS.get(str(estimator.likelihood))
    if likelihood is None or not likelihood.has_levels:
        raise AttributeError(f"likelihood={estimator.likelihood!r} has no levels, and so no probabilities of them.")
    return True


class TuckerGPRegressor(Storable, ReadsTables, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Gaussian-process regression with a product kernel and a low-rank Tucker weight tensor.

    Parameters
    ----------
    modes : list of Mode, Mode, Kernel or None
        The arguments of f. None: by ``"gibbs"``, what does best in a short trial on held-out rows, see ``choice_``;
        else one mode per column that is not constant. By ``"gibbs"`` and ``"als"`` standardised numbers and dates lie
        on a line, Linear + Matern-3/2 (``"gibbs"`` draws its lengthscale); by others they have features of a squared
        exponential. A column of two numbers has Linear, anything else Identity. In the list, the name or number of a
        column stands for that mode. A kernel is one mode of all columns.
    rank : int or sequence of int
        Rank of the core in every mode, or one rank per mode.
    inference : {"gibbs", "als", "sgd", "vi", "hmc", "nuts", "sgld"} or Gibbs, ALS, SGD, VI, HMC, NUTS, SGLD
        How U and W are learned: Gibbs sampling, which needs no tuning and gives uncertainty; the MAP estimate
        (``"als"``, ``"sgd"``); a mean-field approximation of the posterior (``"vi"``); or other samplers, with fixed
        prior scales (``"hmc"``, ``"nuts"``, and ``"sgld"`` with mini-batches). A name stands for that method with its
        settings for regression.
    likelihood : {"gaussian", "student", "ordinal", "bernoulli", "poisson", "negative_binomial"}
        Student: noise with heavy tails, for targets with outliers; by ``"gibbs"``. Ordinal: the distinct targets are
        ordered levels with learned distances; Bernoulli: targets are 0 and 1. Both are probit models, and predictions
        are means of the distribution over levels; not by ``"als"`` or ``"vi"``. Poisson: targets are counts with mean
        ``exposure * exp(f)``; by ``"hmc"``, ``"nuts"``, ``"sgld"`` or ``"sgd"``. Negative binomial: counts with a
        larger variance; by ``"gibbs"``, ``"hmc"``, ``"nuts"`` or ``"sgld"``.
    core : {"auto", "identity", "full", "superdiagonal", "cp", "pairwise"} or one of tuckergp.cores
        ``"auto"`` by ``"gibbs"``: full, but pairwise where drawing a full core of three or more modes would take
        most of the time (more than 128 entries and a quarter of a second per sweep). By others: full up to 4,096
        entries, otherwise the identity. ``"superdiagonal"`` (or ``"cp"``): one learned weight per component, a CP
        decomposition. ``"pairwise"``: an intercept, a main effect of each mode and interactions of each pair of modes.
        `tuckergp.cores.Random` and `tuckergp.cores.Entries`: entries at random or given places.
        `tuckergp.cores.Learned`: it is learned which entries are non-zero, by ``"gibbs"``.
    noise : {"shared", "rows"}
        One noise variance, or a factor for every row of every mode with an Identity term; for ``"gibbs"``.
    hyperparameters : {"fixed", "ml"}
        ``"fixed"``: lengthscales, periods and variances are those in the kernels; only lengthscales of lines and
        fields are drawn by ``"gibbs"``. ``"ml"``: they are learned first, by type-II maximum likelihood of the Gaussian
        process with the same kernels, their product or what the core makes of them (a sum over pairs of modes),
        starting from the values given; lengthscales of lines and fields are then drawn from the learned ones on.
    learn_rows : int
        The largest number of rows that ``"ml"`` uses, chosen at random; a step of its search takes O(learn_rows^3).
        Rows on a grid are all used where that is cheaper.
    fixed : sequence of str
        Numbers that ``"ml"`` does not learn: ``"period"`` for all of that name, ``"day__period"`` for one of them.
    draws, warmup, chains : int
        Draws per chain, sweeps before them, and chains; for ``"gibbs"``, ``"hmc"``, ``"nuts"`` and ``"sgld"``. None:
        300 of either; after a trial, as many as take about half a minute.
    n_jobs : int or None
        Processes that run the chains; None is 1 (unless in a `joblib.parallel_config`), -1 all cores. Draws do not
        depend on it.
    random_state : int, Generator or None

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        When X has column names.
    column_kinds_ : dict of str to str
        What each column of X held, in a word: numbers, dates, text.
    column_values_ : dict of str to list
        Usual values of each column that is used, in their order: all where they are few, else some hundred of them.
    choice_ : Choice or None
        What a trial found ``modes=None`` to be: ``"lines"``, ``"rough lines"``, ``"surface"`` (one mode: a trend, a
        curve of each number, a smooth function of all) or ``"field"``, with the scores; and whether noise has heavy
        tails, Student's in place of Gaussian noise. None without a trial.
    features_ : ColumnReport
        How each column is used, or why not; ``print(reg.features_)``.
    modes_ : tuple of FittedMode
    learned_modes_ : list of Mode
        The modes that were used: those given, or with ``hyperparameters="ml"`` the same with learned numbers in their
        kernels.
    hyperparameters_ : dict of str to ndarray
        After ``hyperparameters="ml"``: the learned numbers by name, with ``scale`` and ``noise`` as shares of the
        variance of y.
    fit_ : Fit
        Model, parameters and learning curve.
    outputs_ : Outputs or None
        With several outputs: their ``names``, ``means`` and ``scales``.
    grid_ : GridData or None
        The grid that the model was fitted to, if any.
    moments_ : Moments
        Posterior mean and standard deviation of predictions, after ``fit(..., moments_of=...)``.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(120, 2))
    >>> y = np.sin(X[:, 0]) * np.cos(X[:, 1]) + 0.05 * rng.standard_normal(120)
    >>> TuckerGPRegressor(rank=3, random_state=0).fit(X, y).score(X, y) > 0.95
    True

    Moments of chosen predictions alone, from whatever can be drawn in ten seconds:

    >>> lean = TuckerGPRegressor(rank=2, draws=40, warmup=20, random_state=0)
    >>> lean = lean.fit(X, y, moments_of=X[:10], keep_draws=False, max_time=10)
    >>> lean.moments_.mean.shape, lean.moments_.std.shape
    ((10,), (10,))

    Counts, with an exposure of one or two hours each:

    >>> hours = rng.choice([1.0, 2.0], size=120)
    >>> counts = rng.poisson(hours * np.exp(1.0 + X[:, 0]))
    >>> calls = TuckerGPRegressor(rank=2, likelihood="poisson", inference="sgd", random_state=0)
    >>> calls = calls.fit(X, counts, exposure=hours)
    >>> once, twice = calls.predict(X), calls.predict(X, exposure=2.0)
    >>> bool(np.allclose(twice, 2 * once))
    True
    """

    grid_: GridData | None = None
    choice_: Choice | None = None
    outputs_: Outputs | None = None

    def __init__(
        self,
        modes: Modes = None,
        rank: int | Sequence[int] = 5,
        inference: str | Inference = "gibbs",
        likelihood: str = "gaussian",
        core: CoreSpec = "auto",
        noise: Literal["shared", "rows"] = "shared",
        hyperparameters: Literal["fixed", "ml"] = "fixed",
        learn_rows: int = 2000,
        fixed: Sequence[str] = (),
        draws: int | None = None,
        warmup: int | None = None,
        chains: int = 1,
        n_jobs: int | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.modes = modes
        self.rank = rank
        self.inference = inference
        self.likelihood = likelihood
        self.core = core
        self.noise = noise
        self.hyperparameters = hyperparameters
        self.learn_rows = learn_rows
        self.fixed = fixed
        self.draws = draws
        self.warmup = warmup
        self.chains = chains
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        exposure: Any = None,
        checkpoint: str | Path | None = None,
        checkpoint_minutes: float = 5.0,
        max_time: float | None = None,
        callback: Callback | None = None,
        progress: bool | None = None,
        moments_of: Any = None,
        keep: int | None = None,
        keep_draws: bool = True,
    ) -> Self:
        """Learn f from inputs and targets.

        Parameters
        ----------
        X : array of shape (N, p), data frame, path to a CSV or Parquet file, or xarray DataArray
            A DataArray without y is a grid of targets: every cell is an observation, NaN one that is missing, and the
            coordinates are the columns. Without ``modes`` every dimension is a mode.
        y : array of shape (N,) or (N, K), table of K columns, or None for a grid
            K outputs are rows of one more mode, so that they share factors; NaN is an output that is missing at an
            input. Each is standardised by itself, and by ``"gibbs"`` has noise of its own, as by ``noise="rows"``.
            Answers then have one column per output.
        sample_weight : array of shape (N,), or of that of the grid, or None
            An observation of weight w counts as w equal ones.
        exposure : number, array of shape (N,), or of that of the grid, or None
            For counts: the time, area or population in which each was counted, positive; None is 1.
        checkpoint : path or None
            A folder to which sampling saves its chains every ``checkpoint_minutes`` and at the end. If it holds a run
            with the same data and settings, that run is continued.
        checkpoint_minutes : float
        max_time : float or None
            Seconds of learning after which to stop with the result so far.
        callback : callable or None
            Called after every step (sweep, round, epoch) with an object that has ``step``, ``chain`` and ``figures``.
        progress : bool or None
            Show a progress line; None shows it when standard error is a terminal.
        moments_of : as X, or None
            Inputs at which to compute posterior means and standard deviations of predictions while sampling, in
            ``moments_``. Those of counts are for an exposure of 1.
        keep : int or None
            How many draws to keep, evenly spread, as many of each chain (rounded up); None keeps all. Fewer take less
            memory and smaller files; all of them still count for convergence and moments. 0 keeps only the moments,
            and `predict` is then refused.
        keep_draws : bool
            False means ``keep=0``.
        """
        settings = RegressorSettings.of(self)
        control = Control(checkpoint, checkpoint_minutes, max_time, callback, progress, self.n_jobs)
        self.__dict__.pop("grid_", None)
        if y is None and is_grid(X):
            self.grid_, X, y, sample_weight, exposure = read_cells(X, sample_weight, exposure, self.modes)
        self.__dict__.pop("outputs_", None)
        table = self._read(X, reset=True)
        outputs, data = read_outputs(table, y, sample_weight, exposure, self.likelihood)
        asked = None if moments_of is None else outputs.inputs(self._read(moments_of, reset=False))
        fitted = learn(outputs.settings(settings, table), data, control, asked, kept(keep, keep_draws), choose)
        if isinstance(outputs, Outputs):
            self.outputs_ = outputs
        return self._keep(replace(fitted, moments=outputs.moments(fitted.moments)))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; with ``deep`` also those inside, as in ``modes__0__kernel__lengthscale``."""
        params: dict[str, Any] = super().get_params(deep=False)
        inside = {name: inner_params(value) for name, value in params.items()} if deep else {}
        return params | {f"{outer}__{name}": value for outer, own in inside.items() for name, value in own.items()}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by the names that `get_params` gives; objects that they are inside of are copied.

        ``inference__noise`` and the like turn the name of an inference into the object that it stands for.
        """
        super().set_params(**{name: value for name, value in params.items() if "__" not in name})
        for name, value in params.items():
            outer, _, inner = name.partition("__")
            if not inner:
                continue
            if outer == "inference" and isinstance(self.inference, str):
                self.inference = inference_of(RegressorSettings.of(self))
                usual = RegressorSettings()
                for moved in self.inference.takes:
                    setattr(self, moved, getattr(usual, moved))
            setattr(self, outer, with_inner(getattr(self, outer, None), inner, value))
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @property
    def learned_modes_(self) -> list[Mode]:
        """The modes that were used, with given or learned numbers in their kernels."""
        return [fitted.mode for fitted in self.modes_]

    @property
    def features_(self) -> ColumnReport:
        """How each column is used, or why not."""
        check_is_fitted(self)
        return column_report(self._names, self.column_kinds_, self.column_values_, self.modes_)

    @overload
    def predict(
        self, X: Any, *, include_noise: bool = ..., exposure: Any = ..., output: str | int | None = ...
    ) -> Floats: ...

    @overload
    def predict(
        self,
        X: Any,
        return_std: Literal[True],
        *,
        include_noise: bool = ...,
        exposure: Any = ...,
        output: str | int | None = ...,
    ) -> tuple[Floats, Floats]: ...

    @overload
    def predict(
        self,
        X: Any,
        return_std: bool = ...,
        return_cov: bool = ...,
        quantiles: Sequence[float] | float | None = ...,
        include_noise: bool = ...,
        interval: float | None = ...,
        exposure: Any = ...,
        output: str | int | None = ...,
    ) -> Any: ...

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        return_cov: bool = False,
        quantiles: Sequence[float] | float | None = None,
        include_noise: bool = True,
        interval: float | None = None,
        exposure: Any = None,
        output: str | int | None = None,
    ) -> Any:
        """Predict the targets at inputs X.

        Parameters
        ----------
        X : as in `fit`
        return_std : bool
            Also return standard deviations; needs a sampler, such as ``inference="gibbs"``.
        return_cov : bool
            Also return the covariance matrix, shape (N, N), and nothing else.
        quantiles : sequence of float, float or None
            Also return these quantiles, shape (N, len(quantiles)); (N, 1) for a number.
        include_noise : bool
            Standard deviations, covariances, quantiles and intervals of new observations; False for those of f, or of
            the mean level or count.
        interval : float or None
            Also return an interval that holds a new observation with this probability, shape (N, 2). For levels, as
            close to it as whole levels allow, and of three or more about right on average. For counts, with at least
            this probability.
        exposure : number, array of shape (N,), or None
            For counts: the time, area or population of each; None is 1.
        output : str, int or None
            The name or number of one of several outputs, of which alone the answer is; None for all.

        Returns
        -------
        ndarray, shape (N,), or a tuple of it and what else was asked for
            Standard deviations first, then quantiles, then the interval. With K outputs, K is the second axis of all,
            but for covariances, (N, N, K).
        """
        outputs = self._outputs if output is None else self._outputs.chosen(output)
        fitted, table = outputs.in_units(self._fitted), outputs.inputs(self._read(X, reset=False))
        asked = answering.Asked(return_std, quantiles, interval, include_noise)
        found = answering.predict(fitted, table, return_cov, asked, outputs.exposure(exposure))
        return outputs.covariances(found) if return_cov else outputs.answers(found, return_std)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, exposure: Any = None) -> float:
        """R^2 of the predictions at inputs X for targets y (N,), or of all cells of an xarray grid that have a value.

        ``exposure`` is for counts.
        """
        if y is None and is_grid(X):
            _, X, y, sample_weight, exposure = read_cells(X, sample_weight, exposure, self.modes)
        return self._outputs.score(y, self.predict(X, exposure=exposure), sample_weight)

    def log_predictive_density(self, X: Any, y: Any, exposure: Any = None) -> Floats:
        """Log density, or probability for levels and counts, of targets y at inputs X: that of the mixture of draws.

        Parameters
        ----------
        X : as in `fit`
        y : array-like, shape (N,)
        exposure : as in `predict`

        Returns
        -------
        ndarray, shape (N,)
            Its mean compares models; that of a new observation, with its noise.
        """
        fitted, table, outputs = self._fitted, self._read(X, reset=False), self._outputs
        target, exposed = outputs.targets(y, table), outputs.exposure(exposure)
        return outputs.log_density(answering.log_density(fitted, outputs.inputs(table), target, exposed), y)

    @available_if(_has_levels)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Probability of every level (``fit_.levels``) at inputs X, shape (N, K); for ordinal and Bernoulli models."""
        return self._outputs.shaped(self._fitted.fit.probabilities(self._inputs(X)))

    def sample_y(
        self, X: Any, n_samples: int = 1, random_state: Any = 0, include_noise: bool = True, exposure: Any = None
    ) -> Floats:
        """Draw from the joint distribution of the targets at inputs X.

        Parameters
        ----------
        X : as in `fit`
        n_samples : int
            Each sample uses one posterior draw at all inputs; beyond the number of draws, draws are used again.
        random_state : int, Generator or None
        include_noise : bool
            Draw new observations; False draws f itself, or the mean level or count.
        exposure : as in `predict`

        Returns
        -------
        ndarray, shape (N, n_samples), or (N, K, n_samples) with K outputs
        """
        fitted, table, exposed = self._fitted, self._rows(X), self._outputs.exposure(exposure)
        return self._outputs.values(
            answering.sample(fitted, table, n_samples, include_noise, exposed, seed_of(random_state))
        )

    def components(self, X: Any, draw: int = -1, top: int | None = None, output: str | int | None = None) -> Components:
        """The summands of f at inputs X for one draw: W_ij psi_1i psi_2j with two modes, the largest first.

        Summands are not identified: those of different draws do not correspond, so do not average them.

        Parameters
        ----------
        X : as in `fit`
        draw : int
            Number of the draw, counted over all chains; -1 is the last.
        top : int or None
            Return this many and the sum of the others.
        output : str, int or None
            The name or number of the output, where there are several.

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
        fitted, _, rows = self._one(X, output)
        return components_of(fitted.fit, fitted.design(rows), draw, top)

    def decompose(self, X: Any, interval: float = 0.9, output: str | int | None = None) -> Decomposition:
        """f at inputs X as a level and a sum over the terms of the kernels, such as trend, season and rest.

        With several modes also their interactions. Unlike `components`, the terms are identified, and means are over
        all draws.

        Parameters
        ----------
        X : as in `fit`
        interval : float
            The probability of the bands.
        output : str, int or None
            The name or number of the output, where there are several; what it has by itself is in the level.

        Returns
        -------
        Decomposition
            ``terms``, ``mean``, ``std``, ``lower``, ``upper``, ``level``; ``total()`` is the posterior mean of f;
            ``plot()`` draws the terms with their bands.

        Examples
        --------
        >>> from tuckergp import Mode, TuckerGPRegressor
        >>> from tuckergp.kernels import SE, Linear
        >>> t = np.arange(60.0)
        >>> mode = Mode("t", Linear() + SE(5.0))
        >>> model = TuckerGPRegressor([mode], rank=1, draws=30, warmup=30, random_state=0)
        >>> parts = model.fit({"t": t}, 0.1 * t + np.sin(t / 4)).decompose({"t": t})
        >>> sorted(parts.terms)
        ['Linear(t)', 'SE(t)']
        >>> bool(np.allclose(parts.total(), model.predict({"t": t})))
        True
        """
        fitted, table, rows = self._one(X, output)
        return decomposition_of(fitted.fit, fitted.modes, fitted.design(rows), table, interval)

    def partial_dependence(
        self, X: Any, column: str | int, values: Any = None, interval: float = 0.9, output: str | int | None = None
    ) -> PartialDependence:
        """Predictions as a function of one column, averaged over inputs X, with a band from the draws.

        Parameters
        ----------
        X : as in `fit`
            Inputs over whose other columns predictions are averaged, such as the training data; up to 200 of them are
            used, evenly spread.
        column : str or int
            The name of a column, or its number.
        values : array-like or None
            Values of the column. None: all where X has at most 40, else 40 between its 5 % and 95 % quantiles.
        interval : float
            The probability of the band: of the average of the means of observations, without their noise.
        output : str, int or None
            The name or number of the output, where there are several.

        Returns
        -------
        PartialDependence
            ``values``, ``mean``, ``std``, ``lower`` and ``upper``, in the units of the targets.

        Examples
        --------
        >>> from tuckergp import TuckerGPRegressor
        >>> X = np.random.default_rng(0).uniform(-2, 2, size=(100, 2))
        >>> model = TuckerGPRegressor(rank=2, inference="als", random_state=0).fit(X, X[:, 0] + X[:, 1] ** 2)
        >>> at_0, at_1 = model.partial_dependence(X, 1, values=[0.0, 1.0]).mean
        >>> bool(abs(at_1 - at_0 - 1) < 0.3)
        True
        """
        fitted, _, rows = self._one(X, output)
        return partial_dependence.partial_dependence(fitted, rows, self._named(column), values, interval)

    def plot_partial_dependence(
        self,
        X: Any,
        columns: Sequence[str | int] | str | int | None = None,
        interval: float = 0.9,
        axes: Any = None,
        output: str | int | None = None,
    ) -> npt.NDArray[Any]:
        """Plot `partial_dependence` on several columns, one panel each (extra ``plot``).

        Parameters
        ----------
        X : as in `fit`
        columns : sequence of str or int, or one, or None
            Names or numbers of columns; None: all that the model uses.
        interval : float
            The probability of the bands.
        axes : matplotlib Axes, or an array of them, or None
            Where to draw.
        output : str, int or None
            The name or number of the output, where there are several.

        Returns
        -------
        ndarray of matplotlib Axes
        """
        asked = self._used if columns is None else [columns] if isinstance(columns, str | int) else columns
        found = [self.partial_dependence(X, column, interval=interval, output=output) for column in asked]
        return partial_dependence.plot(found, axes)

    def plot_components(
        self,
        X: Any,
        draw: int = -1,
        top: int = 4,
        columns: str | Sequence[str] | None = None,
        colour: Colour = "percentile",
        extent: Sequence[float] | None = None,
        axes: Any = None,
        output: str | int | None = None,
    ) -> npt.NDArray[Any]:
        """Plot the largest summands of f for one draw, one panel each (extra ``plot``).

        Parameters
        ----------
        X : as in `fit`
        draw : int
            Number of the draw; -1 is the last.
        top : int
            How many summands, at most.
        columns : str or sequence of str, or None
            Plot over two columns (maps) or one (lines). None: the first two numeric columns, or the only one.
        colour : {"percentile", "uniform"}
            Colour values by their percentile, which shows differences everywhere, or linearly. Red is high, blue is
            low, with the same colours in all panels.
        extent : sequence of float or None
            Bounds of the region to plot: ``(left, right, bottom, top)``; over one column ``(left, right)``.
        axes : matplotlib Axes, or an array of them, or None
            Where to draw.
        output : str, int or None
            The name or number of the output, where there are several.

        Returns
        -------
        ndarray of matplotlib Axes
        """
        fitted, table, rows = self._one(X, output)
        check("top", top, whole(1))
        parts = components_of(fitted.fit, fitted.design(rows), draw, top)
        return plots.plot(parts, table, columns, colour, extent, axes)

    def predict_grid(
        self,
        like: Any = None,
        return_std: bool = False,
        include_noise: bool = True,
        keep_observed: bool = False,
        exposure: Any = None,
        quantiles: Sequence[float] | float | None = None,
        interval: float | None = None,
    ) -> Any:
        """Predict every cell of a grid, including those that were missing (extra ``grid``).

        Parameters
        ----------
        like : xarray DataArray or Dataset, dict of coordinates, or None
            The grid to predict. None: the one of `fit`. A dict replaces coordinates of that one, such as
            ``{"day": [1, 2, 3]}``; a dimension's other coordinates have to be given with it if the model reads them.
        return_std : bool
            Also return standard deviations; needs a sampler, such as ``inference="gibbs"``.
        include_noise : bool
            Standard deviations of new observations; False for those of f.
        keep_observed : bool
            Keep the values of observed cells, with standard deviation 0, and fill in only the missing ones. With
            several outputs, observed values are the variables of a Dataset ``like`` that have their names.
        exposure : number, array of the shape of the grid, or None
            For counts, as in `predict`.
        quantiles : sequence of float, float or None
            Also return these quantiles, with a dimension ``quantile`` of their own, the last.
        interval : float or None
            Also return an interval that holds a new observation with this probability: ``lower`` and ``upper``.

        Returns
        -------
        xarray.DataArray with the dimensions, coordinates and attributes of the grid, or an xarray.Dataset of such with
        ``mean`` and what else was asked for: ``std``, ``quantiles``, ``lower`` and ``upper``. Several outputs are one
        more dimension, called ``outputs_.column``, with their names
        """
        check_is_fitted(self)
        grid, outputs = asked_grid(self.grid_, like), self._outputs
        check_coordinates(grid, self._used)
        asked = answering.Asked(return_std, quantiles, interval, include_noise)
        exposed = of_cells(exposure, "exposure", grid)
        found: Any = self.predict(grid.table(self._used), exposure=exposed, **asked._asdict())
        parts = [outputs.flat(part) for part in (found if isinstance(found, tuple) else (found,))]
        return answering.on_grid(parts, outputs.on_grid(grid, like), asked, keep_observed)

    def inference_data(self) -> Any:
        """The draws of identifiable quantities, for ArviZ's plots and summaries (extra ``arviz``).

        Returns
        -------
        arviz.InferenceData, or xarray.DataTree from ArviZ 1.0 on
            Group ``posterior``: ``f`` at up to 100 training observations, ``tau`` (the precision of each feature
            block), and of the likelihood ``noise`` (its standard deviation, or the scale of Student's t), ``nu``,
            ``cuts`` or ``dispersion``. Group ``log_likelihood``: ``y`` at the same observations. Groups
            ``posterior_predictive`` and ``observed_data``: replicated and observed ``y`` there, for ``arviz.plot_ppc``.
            Group ``sample_stats``: figures of each step, of HMC and NUTS also ``energy`` and ``diverging``. Chain and
            draw are the first dimensions; values are in the units of the targets. With several outputs there is a
            variable of each: ``f_NAME``, ``noise_NAME`` (if all draws were kept), and ``NAME`` in place of ``y``.
        """
        fitted = self._fitted
        watched = watched_of(fitted.fit.draws, block_names(self.modes_), fitted.fit.steps)
        return as_inference_data(watched if self.outputs_ is None else by_output(watched, self.outputs_, fitted))

    def _inputs(self, X: Any) -> Design:
        """The design of the inputs to predict."""
        return self._fitted.design(self._rows(X))

    def _named(self, column: str | int) -> str:
        """The name of a column that the model uses, which may be given by its number."""
        name = self._names[column] if isinstance(column, int) and 0 <= column < len(self._names) else str(column)
        if name not in self._used:
            raise InputError(f"The model uses no column {column!r}; it uses {', '.join(self._used)}.")
        return name

    def _rows(self, X: Any) -> Table:
        """The rows to predict: the inputs, once for each output."""
        return self._outputs.inputs(self._read(X, reset=False))

    def _one(self, X: Any, output: str | int | None) -> tuple[FittedRegressor, Table, Table]:
        """The model of one output in its units, the inputs, and the rows of the model that they are."""
        fitted, chosen = self._fitted, self._outputs.chosen(output)
        table = self._read(X, reset=False)
        return chosen.in_units(fitted), table, chosen.inputs(table)

    @property
    def _outputs(self) -> OneOutput:
        """How inputs and answers are read where there are several outputs."""
        return ONE_OUTPUT if self.outputs_ is None else self.outputs_

    @property
    def _modes(self) -> list[Mode]:
        """The modes of the inputs that were fitted, or are about to be."""
        return self._outputs.of_inputs(super()._modes)

    def _check_parts(self) -> None:
        RegressorSettings.of(self)
        check_fields(self, {name: hint for name, hint in declared(TuckerGPRegressor).items() if name.endswith("_")})
        check_modes(self.modes_)
        check_fit(self.fit_, self.modes_)

    def _keep(self, fitted: FittedRegressor) -> Self:
        """Set the fitted attributes, which users and model files know, from what was learned."""
        self.modes_, self.fit_, self.choice_ = fitted.modes, fitted.fit, fitted.choice
        self.__dict__.pop("_read_modes", None)  # those that were fitted may use fewer columns
        for name, value in (("hyperparameters_", fitted.hyperparameters), ("moments_", fitted.moments)):
            self.__dict__.pop(name, None)
            if value is not None:
                setattr(self, name, value)
        return self

    @property
    def _fitted(self) -> FittedRegressor:
        """The fitted attributes as the object that the functions of `answering` take."""
        check_is_fitted(self)
        return FittedRegressor(self.modes_, self.fit_, self.likelihood)
