"""Learned kernels for other models: type-II maximum likelihood on some of the rows, or on a grid if that is cheaper.

The process that is learned is the one that the Tucker model approximates, a product over modes or a sum of such; its
posterior is not needed, so the search is the only cost.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import floor, log10
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from tuckergp.data.standard import mean_and_std
from tuckergp.data.tables import Table
from tuckergp.errors import NotConvergedWarning
from tuckergp.features import FeatureMap
from tuckergp.gp.additive import AdditiveKernel
from tuckergp.gp.exact import evidence
from tuckergp.gp.grid import Grid, GridGP
from tuckergp.gp.hyper import Optimum, Values, learn
from tuckergp.gp.modes import ModesKernel, as_modes, learned_modes, with_values
from tuckergp.kernels import Constant, Kernel
from tuckergp.model.mode import Mode
from tuckergp.model.tucker import Summand
from tuckergp.random import stream

__all__ = ["LearnedModes", "learn_modes"]

Floats: TypeAlias = npt.NDArray[np.float64]

START_NOISE = 0.1
"""Where the search for the noise begins, as a share of the variance of the targets."""

ALL_NOISE, SHORTER = 0.9, (3.0, 10.0)
"""Where the noise is a larger share of the variance, the search begins again, with lengthscales divided by these.

From lengthscales that are too long for what changes fast, it ends where all is noise.
"""

DIGITS = 6
"""Significant digits of learned numbers: more would depend on the machine."""

CG_STEPS = 100
"""What a solve with missing cells is taken to cost, in products with the Gram matrix."""


@dataclass(frozen=True)
class LearnedModes:
    """The result of maximum likelihood.

    Attributes
    ----------
    modes : list of Mode
        With the learned numbers in their kernels and the variance of f divided among them: their product is the kernel
        of the process. Where that is a sum, all kernels have one more factor, with which f has the learned variance.
    hyperparameters : dict of str to ndarray
        The same numbers by name, with ``scale`` and ``noise`` as shares of the variance of the targets.
    log_marginal_likelihood : float
        Of the standardised targets of the rows that were used.
    """

    modes: list[Mode]
    hyperparameters: Values
    log_marginal_likelihood: float


def learn_modes(
    modes: Sequence[Mode],
    table: Table,
    y: Floats,
    weight: Floats | None = None,
    rows: int = 2000,
    fixed: Sequence[str] = (),
    seed: int = 0,
    summands: Sequence[Summand] = (),
) -> LearnedModes:
    """Learn the numbers in the kernels of modes.

    Parameters
    ----------
    modes : sequence of Mode
        Their numbers are where the search starts.
    table : Table, N rows
    y : ndarray, shape (N,)
    weight : ndarray, shape (N,), or None
        An observation of weight w counts as w equal ones.
    rows : int
        The most rows to use, chosen at random; more where they are a grid on which that is as cheap.
    fixed : sequence of str
        Names of numbers that are not learned: whole (``day__period``), or only the end (``period``) for all of them.
    seed : int
    summands : sequence of Summand
        The kernel of f, as `tuckergp.model.tucker.Core.summands` has it; none for the product of all modes.

    Examples
    --------
    >>> from tuckergp.kernels import SE
    >>> from tuckergp.data.tables import as_table
    >>> x = np.linspace(0, 10, 50)
    >>> learned = learn_modes([Mode("x", SE(1.0), constant=False)], as_table({"x": x}, "X"), np.sin(x))
    >>> bool(1.5 < learned.hyperparameters["lengthscale"][0] < 3.0)
    True
    """
    kernel = _kernel(as_modes(modes, table), table, weight, summands)
    mean, std = mean_and_std(y, weight)
    start = kernel.hyperparameters() | {"noise": np.array([START_NOISE])}
    if not std:  # targets that are all the same say nothing
        learn(lambda values: (0.0, {}), start, fixed=[*fixed, *start])  # checks the names and the numbers
        return LearnedModes(list(modes), start, 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        on_grid = weight is None and not isinstance(kernel, AdditiveKernel) and _cheap_grid(Grid.of(modes, table), rows)

        def learned_from(kernel: ModesKernel) -> Optimum:
            if on_grid:
                return _learned_on_grid(learned_modes(modes, kernel), table, y, fixed)
            return _learned_on_rows(kernel, table, (y - mean) / std, weight, rows, fixed, seed)

        learned = learned_from(kernel)
        if learned.values["noise"][0] > ALL_NOISE:
            others = [learned_from(_shorter(kernel, factor, fixed)) for factor in SHORTER]
            learned = max([learned, *others], key=lambda one: one.log_marginal_likelihood)
    if not learned.converged:
        warnings.warn(
            "Type-II maximum likelihood stopped before it converged; start from other numbers in the kernels, or see "
            "what ExactGP(modes, restarts=3) finds.",
            NotConvergedWarning,
            stacklevel=3,
        )
    values = {n: v if np.array_equal(v, start[n]) else _rounded(v) for n, v in learned.values.items()}
    kernel = with_values(kernel, values)
    scaled = _scaled(modes, kernel, table) if isinstance(kernel, AdditiveKernel) else _balanced(modes, kernel, table)
    return LearnedModes(scaled, values, learned.log_marginal_likelihood)


def _kernel(
    modes: Sequence[Mode], table: Table, weight: Floats | None, summands: Sequence[Summand]
) -> ModesKernel | AdditiveKernel:
    if not summands or summands == [Summand(1.0, tuple(range(len(modes))))]:
        return ModesKernel.of(modes, table, 1.0, weight)
    return AdditiveKernel.summed(modes, table, summands, weight)


def _cheap_grid(grid: Grid, rows: int) -> bool:
    """Whether the rows are most cells of a grid, each once, that costs less than ``rows`` rows."""
    sizes, n = np.array([len(axis) for axis in grid.axes], dtype=np.float64), len(grid.codes[0])
    cells = float(np.prod(sizes))
    full = n == cells
    if len(sizes) < 2 or n > cells or n < cells / 2 or (n <= rows and not full):
        return False
    cost = 10 * (sizes**3).sum() + (1 if full else CG_STEPS) * cells * sizes.sum()
    shape = tuple(map(len, grid.axes))
    return bool(cost <= 2 * float(rows) ** 3 and len(np.unique(np.ravel_multi_index(grid.codes, shape))) == n)


def _learned_on_grid(modes: Sequence[Mode], table: Table, y: Floats, fixed: Sequence[str]) -> Optimum:
    learned = GridGP(modes, noise=START_NOISE, fixed=fixed).fit(table, y).learned_
    assert learned is not None  # learn=True
    return learned


def _learned_on_rows(
    kernel: ModesKernel, table: Table, y: Floats, weight: Floats | None, rows: int, fixed: Sequence[str], seed: int
) -> Optimum:
    if len(table) > rows:
        chosen = np.sort(stream(seed, 1, 2).choice(len(table), rows, replace=False))
        table, y = table.take(chosen), y[chosen]
        weight = None if weight is None else weight[chosen]
    start = kernel.hyperparameters() | {"noise": np.array([START_NOISE])}
    return learn(lambda values: evidence(kernel, values, table, y, weight), start, fixed)


def _shorter(kernel: ModesKernel, factor: float, fixed: Sequence[str]) -> ModesKernel:
    """The kernel with shorter lengthscales, but for those that are not learned."""
    lengths = {
        name: numbers / factor
        for name, numbers in kernel.hyperparameters().items()
        if name.rpartition("__")[2] == "lengthscale" and not {name, "lengthscale"} & set(fixed)
    }
    return kernel.with_hyperparameters(lengths)


def _rounded(numbers: Floats) -> Floats:
    return np.array([round(x, DIGITS - 1 - floor(log10(abs(x)))) for x in numbers.tolist()])


def _balanced(modes: Sequence[Mode], kernel: ModesKernel, table: Table) -> list[Mode]:
    """The modes with learned numbers, and factors in front of each that divide the variance of f equally."""
    variances = np.array([float(mode.diag(table).mean()) or 1.0 for mode in kernel.parts])
    share = float(kernel.scale * variances.prod()) ** (1 / len(variances))
    return _with_factors(learned_modes(modes, kernel), [share / variance for variance in variances.tolist()])


def _scaled(modes: Sequence[Mode], kernel: AdditiveKernel, table: Table) -> list[Mode]:
    """The modes with learned numbers and the same factor s in front of each, with which f varies as was learned."""
    # summands of n modes have variance c_n s^n; that of the intercept is the same for all s
    c = kernel.variances(table)[1:]
    size = np.arange(1, len(c) + 1)
    log_s = brentq(lambda x: np.log(c @ np.exp(size * x)) - np.log(kernel.scale * c.sum()), -30.0, 30.0)
    return _with_factors(learned_modes(modes, kernel), [float(np.exp(log_s))] * len(modes))


def _with_factors(modes: Sequence[Mode], factors: Sequence[float]) -> list[Mode]:
    """The modes with a factor in front of each of their kernels, the Constant that they add included."""
    scaled = []
    for mode, factor in zip(modes, factors, strict=True):
        kernel, features = _times(factor, mode.kernel), mode.features
        if mode.adds_constant:
            kernel = kernel + _times(factor, Constant())
            features = features if features is None or isinstance(features, FeatureMap) else [*features, None]
        scaled.append(replace(mode, kernel=kernel, features=features))
    return scaled


def _times(scale: float, kernel: Kernel) -> Kernel:
    kernel, variance = kernel.unscaled()
    return float(_rounded(np.array([scale * variance]))[0]) * kernel
