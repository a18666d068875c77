"""What the reference models have in common as estimators: reading data, units of the targets, checks of settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin

from tuckergp.checks import RANDOM_STATE, Allowed, check, list_of, number, one_of, positive, text, whole
from tuckergp.data.standard import mean_and_std
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.gp.dense import Moments
from tuckergp.gp.hyper import Objective, Optimum, Values, learn
from tuckergp.kernels import Kernel
from tuckergp.model.inputs import ReadsTables, targets_of
from tuckergp.random import seed_of

__all__ = ["GPEstimator", "LearningGP", "check_asked"]

Floats: TypeAlias = npt.NDArray[np.float64]

VARIANCE = number("a positive variance", lambda value: value > 0)
YES_OR_NO = one_of(True, False)

# What the settings may be; each model has some of them. Modes are checked where they are read.
SETTINGS: dict[str, Allowed] = {
    "scale": VARIANCE,
    "noise": VARIANCE,
    "learn": YES_OR_NO,
    "fixed": list_of("a list of names", text("a name")),
    "restarts": whole(0),
    "max_iter": whole(1),
    "learn_rows": whole(2) | one_of(None),
    "space": one_of("auto", "primal", "dual"),
    "tolerance": positive(),
    "max_cg": whole(1),
    "normalize_y": YES_OR_NO,
    "random_state": RANDOM_STATE,
}


class GPEstimator(ReadsTables, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator that standardises the targets if asked to, and predicts in their units."""

    scale: float
    noise: float
    normalize_y: bool
    y_mean_: float
    y_scale_: float

    def _read_data(self, X: Any, y: Any) -> tuple[Table, Floats]:
        """The inputs as a table and the targets in the model's units."""
        for name, value in self.get_params(deep=False).items():
            if name in SETTINGS:
                check(name, value, SETTINGS[name])
        table = self._read(X, reset=True)
        target = targets_of(y, table)
        self.y_mean_, self.y_scale_ = 0.0, 1.0
        if self.normalize_y:
            self.y_mean_, std = mean_and_std(target)
            self.y_scale_ = std or 1.0
        return table, (target - self.y_mean_) / self.y_scale_

    def _answer(self, moments: Moments, noise: float) -> Floats | tuple[Floats, Floats]:
        """Moments of f in the units of the targets, with a noise variance added to variances or covariances."""
        mean = self.y_mean_ + self.y_scale_ * moments.mean
        if moments.covariance is not None:
            return mean, self.y_scale_**2 * (moments.covariance + noise * np.eye(len(mean)))
        if moments.variance is None:
            return mean
        # rounding may leave a variance a little below zero
        return mean, self.y_scale_ * np.sqrt(np.maximum(moments.variance, 0.0) + noise)


class LearningGP(GPEstimator):
    """A model whose kernel has hyperparameters, learned by type-II maximum likelihood."""

    learn: bool
    fixed: Sequence[str]
    restarts: int
    max_iter: int
    random_state: int | np.random.Generator | None
    hyperparameters_: Values
    learned_: Optimum | None
    n_iter_: int

    def _learn(self, objective: Objective, kernel: Kernel) -> Values:
        """The hyperparameters of the kernel and the noise, as given or as learned; they are remembered."""
        values: Values = kernel.hyperparameters() | {"noise": np.array([float(self.noise)])}
        self.learned_, self.n_iter_ = None, 0
        if self.learn:
            seed = seed_of(self.random_state)
            self.learned_ = learn(objective, values, self.fixed, self.restarts, self.max_iter, seed)
            values, self.n_iter_ = self.learned_.values, self.learned_.iterations
        self.hyperparameters_ = values
        return values

    @property
    def _noise(self) -> float:
        return float(self.hyperparameters_["noise"][0])


def check_asked(return_std: bool, return_cov: bool, include_noise: bool) -> None:
    """Refuse options of a prediction that are no truth values, and standard deviations and covariances at once."""
    asked = {"return_std": return_std, "return_cov": return_cov, "include_noise": include_noise}
    for name, value in asked.items():
        check(name, value, YES_OR_NO)
    if return_std and return_cov:
        raise InputError("Ask for return_std or for return_cov, not for both.")
