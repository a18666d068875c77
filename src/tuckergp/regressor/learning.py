"""From observations to a fitted regressor: choosing defaults, building the design, fitting the model."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tuckergp.data.tables import Table
from tuckergp.gp.hyper import Values
from tuckergp.model.design import Design
from tuckergp.model.fitted_mode import FittedMode
from tuckergp.posterior.moments import Moments, MomentsOf
from tuckergp.random import stream
from tuckergp.regressor.choosing import default_modes_of, inference_of, learned_modes_of
from tuckergp.regressor.reading import Observations
from tuckergp.regressor.settings import RegressorSettings
from tuckergp.running.control import Control
from tuckergp.running.fit import Fit, fit_model, ranks_of, seed_for

__all__ = ["FittedRegressor", "learn"]


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
    """

    modes: tuple[FittedMode, ...]
    fit: Fit
    likelihood: str
    hyperparameters: Values | None = None
    moments: Moments | None = None

    def design(self, table: Table) -> Design:
        """The design of the inputs to predict."""
        return Design.transform(self.modes, table)


def learn(
    settings: RegressorSettings, data: Observations, control: Control, moments_of: Table | None, keep: int | None
) -> FittedRegressor:
    """Fit a regressor to observations; ``keep`` is the number of draws to keep, None for all."""
    inference = inference_of(settings)
    seed = seed_for(settings.random_state, control.checkpoint)
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
    moments = None if moments_of is None else fit.moments()
    return FittedRegressor(fitted_modes, fit, settings.likelihood, hyperparameters, moments)
