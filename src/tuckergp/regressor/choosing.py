"""Defaults of a regressor: the inference that a name stands for, and the modes where none are given.

The values that single parameters may have are declared in `tuckergp.regressor.settings`.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.gp.hyper import Values
from tuckergp.gp.learning import learn_modes
from tuckergp.inference import INFERENCES
from tuckergp.likelihoods import LIKELIHOODS
from tuckergp.model.inputs import as_modes
from tuckergp.model.mode import Mode
from tuckergp.model.tucker import Core
from tuckergp.regressor.columns import column_modes, curve_for, useful
from tuckergp.regressor.reading import Observations
from tuckergp.regressor.settings import RegressorSettings
from tuckergp.running.fit import Inference, resolve_inference
from tuckergp.running.threads import one_blas_thread

SWEEPS = 300
"""The numbers of draws and of sweeps before them, where they are not given."""

NOISE = {"alpha_shape": 0.001, "alpha_rate": 0.0005}
"""The prior of the noise precision: next to nothing, for noise may be 0.3 % of what is measured."""

__all__ = ["default_modes_of", "inference_of", "learned_modes_of", "tries_modes"]


def inference_of(settings: RegressorSettings) -> Inference:
    """The inference object that the settings ask for; a name stands for one with settings for regression."""
    # an error on few held-out counts is noisy, and the first epochs gain little
    patience = 40 if LIKELIHOODS[settings.likelihood].counts else 10
    tuned: dict[str, dict[str, Any]] = {
        "als": {"noise": 0.05, "iterations": 50},
        "sgd": {"noise": 0.05, "step_u": 0.02, "batch_size": 20, "epochs": 200, "patience": patience},
        "sgld": {"batch_size": 20, "step_size": 0.3},
    }
    for name, algorithm in INFERENCES.items():
        if "alpha_rate" in algorithm.of_noise:
            tuned[name] = {**tuned.get(name, {}), **NOISE}
    if isinstance(settings.inference, str) and "draws" in INFERENCES[settings.inference].takes:
        open_: Any = {name: SWEEPS for name in ("draws", "warmup") if getattr(settings, name) is None}
        settings = replace(settings, **open_)
    return resolve_inference(settings, LIKELIHOODS[settings.likelihood], tuned, settings.noise, ratings=False)


def tries_modes(settings: RegressorSettings, inference: Inference, several: bool = False) -> bool:
    """Whether a trial is to find out what ``modes=None`` stands for: nothing that bears on it may be given.

    Shrinkage is for some cores alone, and noise by rows for some modes, which several outputs have.
    """
    if not (inference.weighs_blocks and LIKELIHOODS[settings.likelihood].linear):
        return False
    usual, own = RegressorSettings(), asdict(inference)
    given = any(getattr(settings, name) != getattr(usual, name) for name in ("modes", "core", "hyperparameters"))
    return not (given or own["shrinkage"] or (own["noise"] == "rows" and not several))


def default_modes_of(settings: RegressorSettings, inference: Inference, table: Table) -> list[Mode]:
    """The modes asked for; without any, one for each column that can tell something."""
    if settings.modes is None:
        table = table.select(useful(table))
    curve = curve_for(inference.any_residual)
    return as_modes(settings.modes, table, default=lambda one: column_modes(one, curve))


def learned_modes_of(
    settings: RegressorSettings, modes: list[Mode], core: Core, data: Observations, seed: int
) -> tuple[list[Mode], Values | None]:
    """The modes, with ``hyperparameters="ml"`` with numbers learned for the function that the core stands for."""
    if settings.hyperparameters == "ml":
        rows = int(settings.learn_rows)
        target = LIKELIHOODS[settings.likelihood].as_numbers(data.target, data.exposure)
        summands = core.summands()
        with one_blas_thread():  # several, on busy cores, take up to twenty times as long
            learned = learn_modes(modes, data.table, target, data.weight, rows, settings.fixed, seed, summands)
        return learned.modes, learned.hyperparameters
    if len(settings.fixed):
        raise InputError("fixed names numbers that hyperparameters='ml' is not to learn; without it leave it out.")
    return modes, None
