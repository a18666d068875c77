"""How a run is watched, stopped and stored: the arguments of `fit` that say nothing about the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tuckergp.checks import check, one_of, whole
from tuckergp.errors import InputError
from tuckergp.files import as_path
from tuckergp.inference.base import Info
from tuckergp.posterior.moments import MomentsOf

__all__ = ["Callback", "Control", "kept"]

Callback = Callable[[Info], None]


@dataclass(frozen=True)
class Control:
    """The run-control arguments of an estimator's `fit`.

    Attributes
    ----------
    checkpoint : path or None
        Folder to which sampling saves its chains, and from which it goes on.
    checkpoint_minutes : float
        Minutes between saves.
    max_time : float or None
        Seconds after which to stop with the draws made so far.
    callback : callable or None
        Called with the `Info` of every step.
    progress : bool or None
        Show a progress line; None shows it when standard error is a terminal.
    n_jobs : int or None
        Processes among which to share the chains, as in scikit-learn.
    moments_of : MomentsOf or None
        The inputs at which to keep running moments of predictions.
    keep : int or None
        How many draws to keep, evenly spread over all chains; None for all, 0 for the moments alone.
    unit : float
        Standard deviation of the targets, by which the progress line multiplies its figures.
    """

    checkpoint: str | Path | None = None
    checkpoint_minutes: float = 5.0
    max_time: float | None = None
    callback: Callback | None = None
    progress: bool | None = None
    n_jobs: int | None = None
    moments_of: MomentsOf | None = None
    keep: int | None = None
    unit: float = 1.0

    def __post_init__(self) -> None:
        _check_duration("checkpoint_minutes", self.checkpoint_minutes)
        if self.max_time is not None:
            _check_duration("max_time", self.max_time)
        if self.callback is not None and not callable(self.callback):
            raise InputError(f"callback must be a function of one argument or None, not {self.callback!r}.")
        if not isinstance(self.checkpoint, str | Path | None):
            raise InputError(f"checkpoint must be the path of a folder or None, not {self.checkpoint!r}.")
        if self.checkpoint is not None:
            as_path(self.checkpoint, "checkpoint")
        if self.keep is not None:
            check("keep", self.keep, whole(0))
        if self.keep == 0 and self.moments_of is None:
            raise InputError("keep=0 leaves nothing without moments_of; say where moments are wanted.")

    @property
    def jobs(self) -> int:
        """The number of processes that ``n_jobs`` stands for."""
        import joblib  # not needed to answer from a model

        try:
            return int(joblib.effective_n_jobs(self.n_jobs))
        except (TypeError, ValueError) as error:
            raise InputError(
                f"n_jobs must be None, a positive number or -1 for all cores, not {self.n_jobs!r}."
            ) from error

    def refuse_without_draws(self, inference: object) -> None:
        """Raise an error where an argument needs sampling and the inference does not sample."""
        for name in ("checkpoint", "moments_of", "keep"):
            if getattr(self, name) is not None:
                raise InputError(
                    f"{name} is an argument for samplers, such as inference='gibbs'; with {inference!r} leave it out."
                )


def kept(keep: int | None, keep_draws: bool) -> int | None:
    """How many draws to keep (None for all), from the arguments ``keep`` and ``keep_draws`` of `fit`."""
    check("keep_draws", keep_draws, one_of(True, False))
    if not keep_draws and keep:
        raise InputError(f"keep={keep} keeps draws and keep_draws=False does not; leave one of them out.")
    return keep if keep_draws else 0


def _check_duration(name: str, value: Any) -> None:
    numeric = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not (numeric and value >= 0):
        raise InputError(f"{name} must be a number from 0 on, not {value!r}.")
