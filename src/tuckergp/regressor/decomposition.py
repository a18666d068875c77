"""f as a sum over the terms of its kernels: trend, season and rest, their interactions, each with a band.

The factors of a mode are a sum of what each term of its kernel contributes. f is linear in each mode (with a constant,
where the core leaves modes out), so it is a sum over products of one term per mode. The constant terms together are the
level; a term of one mode with the constants of the others is a main effect; other products are interactions. None of
them changes when factors are rotated, so that means over draws are meaningful.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tuckergp.checks import check, probability
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.kernels import Constant, Kernel
from tuckergp.memory import blocks
from tuckergp.model.design import Design
from tuckergp.model.fitted_mode import FittedMode
from tuckergp.model.mode_table import ModeTable
from tuckergp.posterior.draws import PREDICTION_SEED, Draws
from tuckergp.posterior.fitted import Fit
from tuckergp.random import DrawStreams, stream
from tuckergp.regressor.plots import plot_bands
from tuckergp.showing import Shown

__all__ = ["Decomposition", "decomposition_of"]

Floats = npt.NDArray[np.float64]

# The most products of terms, and how many numbers are computed at once.
MOST_TERMS, BLOCK = 200, 4_000_000
# What is left of the factors beside features and residual: the variance that features leave out at new inputs.
LEFT = "left out"


@dataclass(frozen=True, repr=False)
class Decomposition(Shown):
    """f at N inputs as a level and a sum of Q terms, the largest first.

    Attributes
    ----------
    terms : tuple of str
        Such as ``Linear(day)``, or ``Periodic(day) x Identity(place)`` for an interaction.
    mean : ndarray, shape (N, Q)
        Posterior means, in the units of the targets (of the latent f, or of log rates, where the likelihood has them).
    std, lower, upper : ndarray, shape (N, Q), or None
        Posterior standard deviations and the bounds of the intervals; None for a MAP estimate.
    level, level_std : float
        The constant part of f.
    table : Table
        The inputs.
    """

    terms: tuple[str, ...]
    mean: Floats
    std: Floats | None
    lower: Floats | None
    upper: Floats | None
    level: float
    level_std: float
    table: Table

    def total(self) -> Floats:
        """The posterior mean of f, shape (N,): the level and all terms."""
        return np.asarray(self.level + self.mean.sum(axis=1))

    def __str__(self) -> str:
        width = max(map(len, ("level", *self.terms)))
        lines = [f"{'term':<{width}}  {'sd over inputs':>14}  {'mean band sd':>12}"]
        lines.append(f"{'level':<{width}}  {self.level:14.4g}  {self.level_std:12.4g}")
        for q, term in enumerate(self.terms):
            band = "" if self.std is None else f"{self.std[:, q].mean():12.4g}"
            lines.append(f"{term:<{width}}  {self.mean[:, q].std():14.4g}  {band}".rstrip())
        return "\n".join(lines)

    def plot(self, column: str | None = None, top: int = 6, axes: Any = None) -> npt.NDArray[Any]:
        """Plot the largest terms over a column, one panel each, with their bands (extra ``plot``); returns the axes."""
        band = None if self.lower is None or self.upper is None else (self.lower[:, :top], self.upper[:, :top])
        return plot_bands(self.terms[:top], self.mean[:, :top], band, self.table, column, axes)


def decomposition_of(
    fit: Fit, modes: tuple[FittedMode, ...], design: Design, table: Table, interval: float
) -> Decomposition:
    """The terms of f at the observations of a design, whose inputs are the rows of a table.

    Modes of other columns than those of the table are the same at all observations, and belong to the level.
    """
    check("interval", interval, probability())
    draws = fit.draws
    draws.require_kept()
    design = design.compact()
    each = _terms(modes, design, table, draws, None)
    drawn = each
    if draws.sampled and any(own.undetermined.any() for own in design.modes):  # as uncertain as in `predict`
        drawn = _terms(modes, design, table, draws, draws.streams(stream(PREDICTION_SEED)))
    count = prod(len(names) for names, _ in each)
    if count > MOST_TERMS:
        raise InputError(f"f is a sum of {count} products of kernel terms; decompose shows at most {MOST_TERMS}.")
    chosen = list(product(*(range(len(names)) for names, _ in each)))[1:]
    n, Q, S = design.n_observations, len(chosen), len(draws)
    mean, std, lower, upper = (np.zeros((n, Q)) for _ in range(4))
    level = np.zeros(S)
    tails = [(1 - interval) / 2, (1 + interval) / 2]
    for rows in blocks(n, BLOCK // (count * S)):
        parts = _products([tables for _, tables in each], draws, design.index[rows])
        level = fit.mean + fit.scale * parts[(0,) * len(each)][:, 0]
        spread = parts if drawn is each else _products([tables for _, tables in drawn], draws, design.index[rows])
        for q, place in enumerate(chosen):
            mean[rows, q] = fit.scale * parts[place].mean(axis=0)
            values = fit.scale * spread[place]
            std[rows, q] = values.std(axis=0, ddof=int(S > 1))
            lower[rows, q], upper[rows, q] = np.quantile(values, tails, axis=0)
    names = [" x ".join(own[0][k] for own, k in zip(each, place, strict=True) if k) for place in chosen]
    order = [int(q) for q in np.argsort(-mean.std(axis=0), kind="stable") if mean[:, q].any() or std[:, q].any()]
    level_std = float(level.std(ddof=1)) if S > 1 else 0.0
    made = Decomposition(
        tuple(names[q] for q in order), mean[:, order], None, None, None, float(level.mean()), level_std, table
    )
    if not draws.sampled:
        return made
    return replace(made, std=std[:, order], lower=lower[:, order], upper=upper[:, order])


Terms: TypeAlias = tuple[list[str], list[Floats]]


def _terms(
    modes: tuple[FittedMode, ...], design: Design, table: Table, draws: Draws, streams: DrawStreams | None
) -> list[Terms]:
    """Names and factors of the terms of each mode; a mode of no column of the table is a constant."""
    return [
        _terms_of(mode, design.modes[d], d, draws, streams)
        if any(name in table for name in mode.mode.columns)
        else (["constant"], [draws.factors(d, design.modes[d], streams)])
        for d, mode in enumerate(modes)
    ]


def _terms_of(mode: FittedMode, table: ModeTable, d: int, draws: Draws, streams: DrawStreams | None) -> Terms:
    """Names and factors (M, S, r) of the constant, which comes first, and of each other term; some may be 0.

    What a draw does not determine has its mean, or with ``streams`` is drawn.
    """
    own, names = draws.modes[d], ["constant"]
    factors = draws.factors(d, table, streams)
    rest = factors - own.mean(table.features)
    terms = [np.zeros_like(factors)]
    for block in mode.blocks:
        part = replace(own, B=own.B[block.columns]).mean(table.features[:, block.columns])
        kernel, _ = block.kernel.unscaled()
        if isinstance(kernel, Constant):
            terms[0] += part
        else:
            names.append(_name(kernel, mode, names))
            terms.append(part)
    if mode.residual is None:
        return [*names, LEFT], [*terms, rest]
    parts = table.residual.parts(own, None if streams is None else streams.of_mode(d))
    kernels = mode.residual.kernel_.terms() if parts else [mode.residual.kernel_]
    for kernel in kernels:
        names.append(_name(kernel.unscaled()[0], mode, names))
    # all that is left of the factors is in the first
    return names, [*terms, rest - sum(parts[1:]), *parts[1:]]


def _name(kernel: Kernel, mode: FittedMode, taken: list[str]) -> str:
    """The kernel's class and its columns; with a number where that is taken."""
    name = f"{type(kernel.unscaled()[0]).__name__}({', '.join(map(str, kernel.reads(mode.mode.columns)))})"
    same = sum(one == name or one.startswith(f"{name} ") for one in taken)
    return f"{name} {same + 1}" if same else name


def _products(terms: list[list[Floats]], draws: Draws, index: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
    """What each product of terms adds to f, one axis per mode, then (S, n).

    f of the constants plus one term of some modes, and then differences from the constants, mode by mode.
    """
    base = [own[0] for own in terms]
    shape = tuple(map(len, terms))
    out = np.empty((*shape, len(draws), len(index)))
    for place in np.ndindex(shape):
        psi = [own[k] + first if k else first for own, k, first in zip(terms, place, base, strict=True)]
        out[place] = draws.model.contract_draws(psi, draws.W, index)
    for d in range(len(terms)):
        along = np.moveaxis(out, d, 0)
        along[1:] -= along[:1]
    return out
