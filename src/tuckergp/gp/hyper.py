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

__all__ = ["Learned", "Objective", "Values", "learn"]

Floats: TypeAlias = npt.NDArray[np.float64]
Values: TypeAlias = dict[str, Floats]
Objective: TypeAlias = Callable[[Values], tuple[float, Values]]
"""Hyperparameters to the log marginal likelihood and its derivatives in their logarithms."""

REACH = 1e5
"""How many times larger or smaller than where it starts a hyperparameter may become."""

SMALLEST_NOISE = 1e-8
"""The least noise variance, as a share of the variance of the targets."""


@dataclass(frozen=True)
class Learned:
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
) -> Learned:
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
    names = [name for name in start if not _is_fixed(name, fixed)]
    unknown = [name for name in fixed if not any(_is_fixed(known, [name]) for known in start)]
    if unknown:
        raise InputError(f"fixed names {unknown[0]!r}, but the hyperparameters are: {', '.join(start)}.")
    for name, values in start.items():
        if not (np.isfinite(values).all() and (values > 0).all()):
            raise InputError(f"The hyperparameter {name!r} must be positive and finite, not {values}.")
    ends = np.cumsum([len(start[name]) for name in names], dtype=int)[:-1]

    def unpack(theta: Floats) -> Values:
        values = np.split(np.exp(theta), ends) if names else []
        return dict(start) | dict(zip(names, values, strict=True))

    def loss(theta: Floats) -> tuple[float, Floats]:
        try:
            value, slopes = objective(unpack(theta))
        except InputError:  # no Cholesky factor at this theta; the search goes elsewhere
            return np.inf, np.zeros_like(theta)
        return -value, -np.concatenate([slopes[name] for name in names])

    def search(x0: Floats) -> OptimizeResult:
        # L-BFGS-B takes a first step as long as the gradient: with the largest slope scaled to 1, no hyperparameter
        # changes by more than a factor e in it
        first = loss(x0)
        unit = max(1.0, float(np.abs(first[1]).max()))

        def scaled(theta: Floats) -> tuple[float, Floats]:
            value, slope = first if np.array_equal(theta, x0) else loss(theta)
            return value / unit, slope / unit

        result = minimize(
            scaled, x0, jac=True, method="L-BFGS-B", bounds=Bounds(least, most), options={"maxiter": max_iter}
        )
        result.fun *= unit
        return result

    if not names:
        return Learned(dict(start), objective(dict(start))[0], 0, 1, True)
    centre = np.log(np.concatenate([start[name] for name in names]))
    least, most = centre - np.log(REACH), centre + np.log(REACH)
    if "noise" in names:
        place = int(sum(len(start[name]) for name in names[: names.index("noise")]))
        least[place] = min(max(least[place], np.log(SMALLEST_NOISE)), centre[place])
    rng = stream(seed, 0)
    starts = [centre, *(centre + rng.uniform(-1, 1, len(centre)) * np.log(10) for _ in range(restarts))]
    runs = [search(np.clip(x0, least, most)) for x0 in starts]
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
    return Learned(
        values=unpack(np.asarray(best.x)),
        log_marginal_likelihood=-float(best.fun),
        iterations=int(best.nit),
        evaluations=sum(int(run.nfev) for run in runs),
        converged=bool(best.success),
    )


def _is_fixed(name: str, fixed: Collection[str]) -> bool:
    return name in fixed or name.rpartition("__")[2] in fixed
