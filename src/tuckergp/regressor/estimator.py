"""`TuckerGPRegressor`: the Tucker GP as a scikit-learn estimator.

A thin layer: it reads inputs and targets, builds the design, calls the inference, and keeps what was learned. What a
fitted one answers is in `tuckergp.regressor.answers`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from tuckergp.data.grids import GridData, is_grid, of_cells
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.gp.learning import learn_modes
from tuckergp.inference import ALS, HMC, NUTS, SGD, SGLD, VI
from tuckergp.likelihoods import LIKELIHOODS
from tuckergp.model.cores import CoreSpec
from tuckergp.model.design import Design, Mode
from tuckergp.model.inputs import default_modes, exposure_of, targets_of
from tuckergp.posterior.moments import MomentsOf
from tuckergp.random import stream
from tuckergp.regressor.answers import RegressorAnswers
from tuckergp.running.control import Callback, Control
from tuckergp.running.fit import (
    Inference,
    LikelihoodName,
    fit_model,
    ranks_of,
    resolve_inference,
    seed_for,
)

__all__ = ["TuckerGPRegressor"]

Floats = npt.NDArray[np.float64]


class TuckerGPRegressor(RegressorAnswers):
    """Gaussian-process regression with a product kernel and a low-rank Tucker weight tensor.

    Parameters
    ----------
    modes : list of Mode or None
        The arguments of f. None: one mode a column, SE on whitened numbers, Identity on anything else.
    rank : int or sequence of int
        Rank of the core in every mode, or one a mode.
    inference : {"gibbs", "als", "sgd", "vi", "hmc", "nuts", "sgld"} or Gibbs, ALS, SGD, VI, HMC, NUTS, SGLD
        How U and W are learned: Gibbs sampling, which has nothing to tune and knows how sure it is; the most probable
        point (``"als"``, ``"sgd"``); a mean-field approximation of the posterior (``"vi"``); or other samplers, with
        prior scales fixed (``"hmc"``, ``"nuts"``, ``"sgld"`` by mini-batches). A name stands for that method with its
        settings for regression.
    likelihood : {"gaussian", "ordinal", "bernoulli", "poisson"}
        Ordinal: the distinct targets are ordered levels with learned distances; Bernoulli: targets are 0 and 1. Both
        are probit models, and predictions are means of the distribution over levels; not by ``"als"`` or ``"vi"``.
        Poisson: targets are counts with mean ``exposure * exp(f)``; by ``"hmc"``, ``"nuts"``, ``"sgld"`` or ``"sgd"``.
    core : {"auto", "identity", "full", "superdiagonal", "cp", "pairwise"} or one of tuckergp.cores
        ``"auto"``: full while it has at most 4,096 entries; beyond, with three modes or more, pairwise by ``"gibbs"``,
        and else the identity. ``"superdiagonal"`` (or ``"cp"``): a learned weight a component, a CP decomposition.
        ``"pairwise"``: an intercept, a main effect of every mode and interactions of every two modes.
        `tuckergp.cores.Random` and `tuckergp.cores.Entries`: entries at random or given places.
        `tuckergp.cores.Learned`: which entries are there is learned, by ``"gibbs"``.
    noise : {"shared", "rows"}
        One noise variance, or a factor for every row of every mode with an Identity term; for ``"gibbs"``.
    hyperparameters : {"fixed", "ml"}
        ``"fixed"``: lengthscales, periods and variances are those in the kernels, but for lengthscales of chains, which
        ``"gibbs"`` draws. ``"ml"``: they are learned first, by type-II maximum likelihood of the Gaussian process with
        the same kernels, starting from those given; chains then start from what was found.
    learn_rows : int
        The most rows that ``"ml"`` looks at, chosen at random; a step of its search takes O(learn_rows^3). Rows on a
        grid are all used where that is cheaper.
    fixed : sequence of str
        Names of numbers that ``"ml"`` leaves as they are: ``"period"`` for all of that name, ``"day__period"`` for one.
    draws, warmup, chains : int
        Draws of each chain and sweeps before them; for ``"gibbs"``, ``"hmc"``, ``"nuts"`` and ``"sgld"``.
    n_jobs : int or None
        Processes among which to share the chains; None is 1 (unless in a `joblib.parallel_config`), -1 all cores.
        Draws do not depend on it.
    random_state : int, Generator or None

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        When X has column names.
    modes_ : tuple of FittedMode
    learned_modes_ : list of Mode
        The modes that were used: those given, or with ``hyperparameters="ml"`` the same with learned numbers in their
        kernels.
    hyperparameters_ : dict of str to ndarray
        After ``hyperparameters="ml"``: the learned numbers by name, with ``scale`` and ``noise`` as shares of the
        variance of y.
    fit_ : Fit
        Model, parameters and learning curve.
    grid_ : GridData or None
        The grid that it was fitted to, if it was one.
    moments_ : Moments
        ``mean`` and ``std`` of predictions, after ``fit(..., moments_of=...)``.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(200, 2))
    >>> y = np.sin(X[:, 0]) * np.cos(X[:, 1]) + 0.05 * rng.standard_normal(200)
    >>> TuckerGPRegressor(rank=3, random_state=0).fit(X, y).score(X, y) > 0.95
    True

    Moments of chosen predictions alone, from whatever can be drawn in ten seconds:

    >>> lean = TuckerGPRegressor(rank=3, random_state=0)
    >>> lean = lean.fit(X, y, moments_of=X[:10], keep_draws=False, max_time=10)
    >>> lean.moments_.mean.shape, lean.moments_.std.shape
    ((10,), (10,))

    Counts, of which twice as many are expected where there was twice the time to count:

    >>> hours = rng.choice([1.0, 2.0], size=200)
    >>> counts = rng.poisson(hours * np.exp(1.0 + X[:, 0]))
    >>> calls = TuckerGPRegressor(rank=2, likelihood="poisson", inference="sgd", random_state=0)
    >>> calls = calls.fit(X, counts, exposure=hours)
    >>> once, twice = calls.predict(X), calls.predict(X, exposure=2.0)
    >>> bool(np.allclose(twice, 2 * once))
    True
    """

    def __init__(
        self,
        modes: Sequence[Mode] | None = None,
        rank: int | Sequence[int] = 5,
        inference: Literal["gibbs", "als", "sgd", "vi", "hmc", "nuts", "sgld"] | Inference = "gibbs",
        likelihood: LikelihoodName = "gaussian",
        core: CoreSpec = "auto",
        noise: Literal["shared", "rows"] = "shared",
        hyperparameters: Literal["fixed", "ml"] = "fixed",
        learn_rows: int = 2000,
        fixed: Sequence[str] = (),
        draws: int = 300,
        warmup: int = 300,
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
        keep_draws: bool = True,
    ) -> Self:
        """Learn f from inputs and targets.

        Parameters
        ----------
        X : array of shape (N, p), data frame, path to a CSV or Parquet file, or xarray DataArray
            A DataArray without y is a grid of targets: every cell is an observation, NaN one that is missing, and the
            coordinates are the columns. Without ``modes`` every dimension is a mode.
        y : array of shape (N,), or None for a grid
        sample_weight : array of shape (N,), or of that of the grid, or None
            An observation of weight w counts as w equal ones.
        exposure : number, array of shape (N,), or of that of the grid, or None
            For ``likelihood="poisson"``: the time, area or population that a count is of, positive; None is 1.
        checkpoint : path or None
            A folder that sampling writes what it has to every ``checkpoint_minutes``, and at the end. If it holds a
            run of the same data and settings, that run goes on where it stopped.
        checkpoint_minutes : float
        max_time : float or None
            Seconds of learning after which to stop with what there is.
        callback : callable or None
            Called after every step (sweep, round, epoch) with its `Info`: ``step``, ``chain`` and ``figures``.
        progress : bool or None
            Show a progress line; None shows it when standard error is a terminal.
        moments_of : as X, or None
            Where to keep running means and standard deviations of predictions while sampling: ``moments_``. Those of
            counts are for an exposure of 1.
        keep_draws : bool
            False keeps the moments alone, so that memory does not grow with the draws; `predict` is then refused.
        """
        inference = self._resolve_inference()
        self.__dict__.pop("grid_", None)
        if y is None and is_grid(X):
            X, y, sample_weight, exposure = self._read_grid(X, sample_weight, exposure)
        table = self._read(X, reset=True)
        target = targets_of(y, table)
        weight = _weights(sample_weight, table)
        exposed = exposure_of(exposure, len(table), self.likelihood)
        LIKELIHOODS[self.likelihood].check(target)
        if weight is not None and not weight.all():  # weight 0 is as good as not there, in the design too
            keep = np.flatnonzero(weight)
            table, target, weight = table.take(keep), target[keep], weight[keep]
            exposed = None if exposed is None else exposed[keep]
        seed = seed_for(self.random_state, checkpoint)
        modes = self._learn_modes(table, LIKELIHOODS[self.likelihood].as_numbers(target, exposed), weight, seed)
        design, self.modes_ = Design.fit(modes, table, weight, stream(seed, 1, 1), inference.any_residual)
        self.__dict__.pop("moments_", None)
        control = Control(
            checkpoint=checkpoint,
            checkpoint_minutes=checkpoint_minutes,
            max_time=max_time,
            callback=callback,
            progress=progress,
            n_jobs=self.n_jobs,
            moments_of=None
            if moments_of is None
            else MomentsOf(Design.transform(self.modes_, self._read(moments_of, reset=False))),
            keep_draws=keep_draws,
        )
        self.fit_ = fit_model(
            design,
            target,
            weight,
            ranks=ranks_of(self.rank, len(modes)),
            core=self.core,
            inference=inference,
            seed=seed,
            likelihood=self.likelihood,
            control=control,
            exposure=exposed,
        )
        if moments_of is not None:
            self.moments_ = self.fit_.moments()
        return self

    def _read_grid(self, X: Any, sample_weight: Any, exposure: Any) -> tuple[Table, Floats, Any, Any]:
        """The cells of a grid that are there, their values, weights and exposures; the grid is remembered."""
        grid = GridData.of(X)
        cells = grid.observed()
        used = grid.dims if self.modes is None else [name for mode in self.modes for name in mode.columns]
        unknown = [name for name in used if name not in grid.columns]
        if unknown:
            raise InputError(f"The grid has no coordinate {unknown[0]!r}; it has {', '.join(grid.columns)}.")
        weight = of_cells(sample_weight, "sample_weight", grid)
        exposed = of_cells(exposure, "exposure", grid)
        self.grid_ = grid
        found = [values[cells] if np.ndim(values) else values for values in (weight, exposed)]
        return grid.table(used, cells), grid.values.ravel()[cells], *found

    def _learn_modes(self, table: Table, target: Floats, weight: Floats | None, seed: int) -> list[Mode]:
        """The modes as given, or with the numbers in their kernels learned by maximum likelihood."""
        modes = list(self.modes) if self.modes is not None else default_modes(table)
        self.__dict__.pop("hyperparameters_", None)
        if self.hyperparameters == "ml":
            rows = self.learn_rows
            if isinstance(rows, bool) or not isinstance(rows, int | np.integer) or rows < 2:
                raise InputError(f"learn_rows must be a whole number from 2 on, not {rows!r}.")
            found = learn_modes(modes, table, target, weight, int(rows), self.fixed, seed)
            modes, self.hyperparameters_ = found.modes, found.hyperparameters
        elif self.hyperparameters != "fixed":
            raise InputError(f"hyperparameters must be 'fixed' or 'ml', not {self.hyperparameters!r}.")
        elif len(self.fixed):
            raise InputError("fixed names numbers that hyperparameters='ml' is not to learn; without it leave it out.")
        return modes

    def _resolve_inference(self) -> Inference:
        # few counts that are held out say little of an epoch, and the first epochs gain little
        patience = 40 if getattr(LIKELIHOODS.get(self.likelihood), "counts", False) else 10
        named: dict[Any, Inference] = {
            "als": ALS(noise=0.05, iterations=50),
            "sgd": SGD(noise=0.05, step_u=0.02, batch_size=20, epochs=200, patience=patience),
            "vi": VI(),
            "hmc": HMC(),
            "nuts": NUTS(),
            "sgld": SGLD(batch_size=20, step_size=0.3),
        }
        return resolve_inference(self, named, noise=self.noise)


def _weights(sample_weight: Any, table: Table) -> Floats | None:
    if sample_weight is None:
        return None
    values = np.asarray(sample_weight)
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
    if not weight.any():
        raise InputError("sample_weight is zero everywhere; there is nothing to learn from.")
    return weight
