"""Type-II maximum likelihood: named positive hyperparameters, learned on the log scale by L-BFGS from several starts.

The models define what is maximised; this module has only names, bounds, starts and the search.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import Bounds, OptimizeResult, minimize

from tuckergp.errors import InputError, NotConvergedWarning
from tuckergp.random import stream

__all__ = ["Objective", "Optimum", "Values", "learn"]

Floats: TypeAlias = npt.NDArray[np.float64]
Values: TypeAlias = dict[str, Floats]
Objective: TypeAlias = Callable[[Values], tuple[float, Values]]
"""Hyperparameters to the log marginal likelihood and its derivatives in their logarithms."""

REACH = 1e5
"""How many times larger or smaller than where it starts a hyperparameter may become."""

SMALLEST_NOISE = 1e-8
"""The least noise variance, as a share of the variance of the targets."""


@dataclass(frozen=True)
class Optimum:
    """The hyperparameters that the best of all searches ended with.

    Attributes
    ----------
    values : dict of str to ndarray
    log_marginal_likelihood : float
    iterations, evaluations : int
        Steps of the best search, and calls of the objective in all of them.
    converged : bool
    """

    values: Values
    log_marginal_likelihood: float
    iterations: int
    evaluations: int
    converged: bool


def learn(
    objective: Objective,
    start: Mapping[str, Floats],
    fixed: Collection[str] = (),
    restarts: int = 0,
    max_iter: int = 100,
    seed: int = 0,
) -> Optimum:
    """Maximise a log marginal likelihood from ``start``, and ``restarts`` times from random points around it.

    Parameters
    ----------
    objective : callable
    start : dict of str to ndarray
        Positive.
    fixed : collection of str
        Names that are not learned: whole (``day__period``), or only the end, for all of that name (``period``).
    restarts, max_iter, seed : int
        A new start multiplies or divides every number by up to 10, uniformly on the log scale.

    Examples
    --------
    >>> def bowl(values):
    ...     x = np.log(values["x"] / 2.0)
    ...     return float(-(x @ x)), {"x": -2 * x}
    >>> learn(bowl, {"x": np.array([1.0])}).values["x"].round(4)
    array([2.])
    """
    _check(start, fixed)
    space = _LogSpace(objective, dict(start), [name for name in start if not _is_fixed(name, fixed)])
    if not space.names:
        return Optimum(dict(start), objective(dict(start))[0], 0, 1, True)
    centre, least, most = space.bounds()
    rng = stream(seed, 0)
    starts = [centre, *(centre + rng.uniform(-1, 1, len(centre)) * np.log(10) for _ in range(restarts))]
    runs = [space.search(np.clip(x0, least, most), Bounds(least, most), max_iter) for x0 in starts]
    best = min(runs, key=lambda run: float(run.fun))
    if not np.isfinite(best.fun):
        objective(dict(start))  # says what is wrong
        raise InputError("The log marginal likelihood is not finite; start from other hyperparameters.")
    if not best.success:
        warnings.warn(
            f"Type-II maximum likelihood stopped before it converged ({best.message}); raise max_iter={max_iter}, or "
            "start from other hyperparameters.",
            NotConvergedWarning,
            stacklevel=4,
        )
    return Optimum(
        values=space.values(np.asarray(best.x)),
        log_marginal_likelihood=-float(best.fun),
        iterations=int(best.nit),
        evaluations=sum(int(run.nfev) for run in runs),
        converged=bool(best.success),
    )


@dataclass(frozen=True)
class _LogSpace:
    """The hyperparameters that are learned, as a vector theta of logarithms; the others keep their start."""

    objective: Objective
    start: Values
    names: list[str]

    def values(self, theta: Floats) -> Values:
        """All hyperparameters."""
        ends = np.cumsum([len(self.start[name]) for name in self.names], dtype=int)[:-1]
        return self.start | dict(zip(self.names, np.split(np.exp(theta), ends), strict=True))

    def bounds(self) -> tuple[Floats, Floats, Floats]:
        """theta of the start, the least and the largest that it may become."""
        centre = np.log(np.concatenate([self.start[name] for name in self.names]))
        least, most = centre - np.log(REACH), centre + np.log(REACH)
        if "noise" in self.names:
            place = int(sum(len(self.start[name]) for name in self.names[: self.names.index("noise")]))
            least[place] = min(max(least[place], np.log(SMALLEST_NOISE)), centre[place])
        return centre, least, most

    def loss(self, theta: Floats) -> tuple[float, Floats]:
        """Minus the log marginal likelihood, and its gradient."""
        try:
            value, slopes = self.objective(self.values(theta))
        except InputError:  # no Cholesky factor at this theta; the search goes elsewhere
            return np.inf, np.zeros_like(theta)
        return -value, -np.concatenate([slopes[name] for name in self.names])

    def search(self, x0: Floats, bounds: Bounds, max_iter: int) -> OptimizeResult:
        """Minimise the loss from one start."""
        # L-BFGS-B takes a first step as long as the gradient: with the largest slope scaled to 1, no hyperparameter
        # changes by more than a factor e in it
        first = self.loss(x0)
        unit = max(1.0, float(np.abs(first[1]).max()))

        def scaled(theta: Floats) -> tuple[float, Floats]:
            value, slope = first if np.array_equal(theta, x0) else self.loss(theta)
            return value / unit, slope / unit

        result = minimize(scaled, x0, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": max_iter})
        result.fun *= unit
        return result


def _check(start: Mapping[str, Floats], fixed: Collection[str]) -> None:
    """Refuse names of no hyperparameter, and hyperparameters that are not positive."""
    unknown = [name for name in fixed if not any(_is_fixed(known, [name]) for known in start)]
    if unknown:
        raise InputError(f"fixed names {unknown[0]!r}, but the hyperparameters are: {', '.join(start)}.")
    for name, values in start.items():
        if not (np.isfinite(values).all() and (values > 0).all()):
            raise InputError(f"The hyperparameter {name!r} must be positive and finite, not {values}.")


def _is_fixed(name: str, fixed: Collection[str]) -> bool:
    return name in fixed or name.rpartition("__")[2] in fixed
