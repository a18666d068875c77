"""From observations to a fitted regressor: choosing defaults, building the design, fitting the model."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from tuckergp.data.tables import Table
from tuckergp.gp.hyper import Values
from tuckergp.likelihoods import LIKELIHOODS
from tuckergp.model.design import Design
from tuckergp.model.fitted_mode import FittedMode
from tuckergp.posterior.moments import Moments, MomentsOf
from tuckergp.random import stream
from tuckergp.regressor.choice import Choice
from tuckergp.regressor.choosing import default_modes_of, inference_of, learned_modes_of, tries_modes
from tuckergp.regressor.contenders import contenders
from tuckergp.regressor.reading import Observations
from tuckergp.regressor.settings import RegressorSettings
from tuckergp.running.checkpoint import store_choice, stored_choice
from tuckergp.running.control import Control
from tuckergp.running.fit import Fit, fit_model, ranks_of, seed_for
from tuckergp.running.progress import say
from tuckergp.running.threads import one_blas_thread
from tuckergp.store.trees import digest

__all__ = ["FittedRegressor", "Trial", "fit_modes", "learn"]

# A function that finds what modes=None stands for, given settings, observations, a seed, and seconds for the answer.
Trial: TypeAlias = Callable[[RegressorSettings, Observations, int, float | None], Choice | None]


@dataclass(frozen=True)
class FittedRegressor:
    """A fitted regressor: modes, draws and learned hyperparameters.

    Attributes
    ----------
    modes : tuple of FittedMode
    fit : Fit
        Model and draws.
    likelihood : str
    hyperparameters : dict of str to ndarray, or None
        Numbers in kernels, learned by maximum likelihood.
    moments : Moments or None
        Moments of chosen predictions, computed while sampling.
    choice : Choice or None
        What a trial found the modes to be.
    """

    modes: tuple[FittedMode, ...]
    fit: Fit
    likelihood: str
    hyperparameters: Values | None = None
    moments: Moments | None = None
    choice: Choice | None = None

    def design(self, table: Table) -> Design:
        """The design of the inputs to predict."""
        return Design.transform(self.modes, table)


def learn(
    settings: RegressorSettings,
    data: Observations,
    control: Control,
    moments_of: Table | None,
    keep: int | None,
    choose: Trial = lambda *_: None,
) -> FittedRegressor:
    """Fit a regressor to observations; ``keep`` is the number of draws to keep, None for all.

    ``choose`` decides what ``modes=None`` means where that is open.
    """
    began = time.monotonic()
    inference = inference_of(settings)
    seed = seed_for(settings.random_state, control.checkpoint)
    if not tries_modes(settings, inference, data.several):
        return fit_modes(settings, data, control, seed, moments_of, keep)
    choice = _chosen(settings, data, control, seed, choose)
    found: dict[str, Any] = {} if choice is None else {"lengthscales": choice.lengthscales, "seasons": choice.seasons}
    models = contenders(data.table, weight=data.weight, several=data.several, **found)
    model = next(iter(models.values())) if choice is None else models[choice.modes]
    if choice is not None:
        say(f"modes: {choice}", control.progress)
        heavier = LIKELIHOODS[settings.likelihood].heavier
        settings = replace(settings, likelihood=heavier) if choice.heavy_tails and heavier else settings
    if control.max_time is not None:
        control = replace(control, max_time=max(0.0, control.max_time - (time.monotonic() - began)))
    fitted = fit_modes(model.settings(settings), data, control, seed, moments_of, keep)
    return replace(fitted, choice=choice)


def _chosen(
    settings: RegressorSettings, data: Observations, control: Control, seed: int, choose: Trial
) -> Choice | None:
    """The outcome of the trial, or of that of the run that is continued."""
    folder = control.checkpoint
    whose = "" if folder is None else digest((data.table.columns, data.target, data.weight, seed))
    known = stored_choice(folder, whose)
    if known is not None:
        return None if known["choice"] is None else Choice(**known["choice"])
    with one_blas_thread():  # its runs are of few rows
        # at most half of the time is for the trial
        choice = choose(settings, data, seed, None if control.max_time is None else control.max_time / 2)
    store_choice(folder, whose, None if choice is None else asdict(choice))
    return choice


def fit_modes(
    settings: RegressorSettings,
    data: Observations,
    control: Control,
    seed: int,
    moments_of: Table | None = None,
    keep: int | None = None,
) -> FittedRegressor:
    """Fit a regressor with the modes of the settings, or those that columns have by themselves."""
    inference = inference_of(settings)
    modes = default_modes_of(settings, inference, data.table)
    ranks = ranks_of(settings.rank, len(modes))
    core = inference.core(settings.core, ranks, stream(seed, 1, 0), len(data.target))
    modes, hyperparameters = learned_modes_of(settings, modes, core, data, seed)
    design, fitted_modes = Design.fit(modes, data.table, data.weight, stream(seed, 1, 1), inference.any_residual)
    if moments_of is not None:
        control = replace(control, moments_of=MomentsOf(Design.transform(fitted_modes, moments_of)))
    fit = fit_model(
        design,
        data.target,
        data.weight,
        ranks=ranks,
        core=core,
        inference=inference,
        seed=seed,
        likelihood=settings.likelihood,
        control=replace(control, keep=keep),
        exposure=data.exposure,
    )
    draws = replace(fit.draws, observations=data.numbers[np.array(fit.draws.observations, dtype=np.intp)].tolist())
    fit = replace(fit, draws=draws)
    moments = None if moments_of is None else fit.moments()
    return FittedRegressor(fitted_modes, fit, settings.likelihood, hyperparameters, moments)
