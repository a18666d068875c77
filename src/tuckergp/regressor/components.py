"""The summands of f, the paper's additive components: in one draw, f is a sum over the entries of the core W.

Each summand is an entry of W times one factor per mode; with two modes f(x) = mean + sum_ij W_ij psi_1i(x) psi_2j(x).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.checks import check, one_of, whole
from tuckergp.compute.contract import FULL, IDENTITY, SPARSE
from tuckergp.errors import InputError
from tuckergp.memory import blocks
from tuckergp.model.cores import places
from tuckergp.model.design import Design
from tuckergp.model.tucker import Core
from tuckergp.posterior.draws import Draws
from tuckergp.running.fit import Fit

__all__ = ["Components", "components_of"]

Floats = npt.NDArray[np.float64]

BLOCK = 2_000_000
"""How many numbers are computed at once."""


@dataclass(frozen=True, repr=False)
class Components:
    """The summands of f at N inputs for one draw, the largest first.

    Attributes
    ----------
    values : ndarray, shape (N, Q)
        One column per summand, in the units of the targets.
    coords : ndarray of int, shape (Q, D)
        The entry of the core W of each summand: ``(i, j)`` for W_ij psi_1i psi_2j; -1 for a mode that it leaves out.
    sizes : ndarray, shape (Q,)
        Standard deviation of each summand over the inputs, by which they are ordered.
    mean : float
        What is added to the summands: the mean of the training targets.
    rest : ndarray, shape (N,)
        The sum of the summands that were left out; zeros unless some were.
    ranks : tuple of int
        The shape of W.

    Examples
    --------
    >>> values, coords = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[0, 1], [1, 0]])
    >>> parts = Components(values, coords, values.std(axis=0), 10.0, np.zeros(2), (2, 2))
    >>> parts.total()
    array([13., 17.])
    >>> parts
    Components of 2 inputs: mean 10, W[0, 1] (sd 1), W[1, 0] (sd 1)
    """

    values: Floats
    coords: npt.NDArray[np.int64]
    sizes: Floats
    mean: float
    rest: Floats
    ranks: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.coords)

    @property
    def labels(self) -> list[str]:
        """``W[0, 1]`` and so on; ``-`` for a mode that a summand leaves out."""
        return [f"W[{', '.join('-' if k < 0 else str(k) for k in place)}]" for place in self.coords.tolist()]

    def total(self) -> Floats:
        """f of the draw: mean, summands and the sum of those left out, shape (N,)."""
        return np.asarray(self.mean + self.values.sum(axis=1) + self.rest)

    def tensor(self) -> Floats:
        """The summands in the places of W, shape (N, r_1, ..., r_D); zero where W has no entry or it was left out.

        If some summands leave modes out, every axis but the first is longer by one; its last place is for them.
        """
        out = np.zeros((len(self.values), *(r + int((self.coords < 0).any()) for r in self.ranks)))
        out[(slice(None), *self.coords.T)] = self.values
        return out

    def __repr__(self) -> str:
        shown = [f"{label} (sd {size:.3g})" for label, size in zip(self.labels, self.sizes, strict=True)]
        more = [f"{len(shown) - 6} more"] if len(shown) > 6 else []
        return f"Components of {len(self.values)} inputs: mean {self.mean:.4g}, {', '.join([*shown[:6], *more])}"


def components_of(fit: Fit, design: Design, draw: int, top: int | None) -> Components:
    """The summands of f at the observations of a design in one draw, counted over all chains.

    Rows that training did not have get their posterior mean, as in predictions.
    """
    chosen = _draw(fit, draw)
    check("top", top, whole(1) | one_of(None))
    model = fit.draws.model
    core, psi = model.core, [chosen.factors(d, table)[:, 0] for d, table in enumerate(design.modes)]
    coords = _coords(core)
    w = np.ones(len(coords)) if core.kind == IDENTITY else chosen.W[0]
    sizes = _sizes(psi, design, coords, w)
    order = np.argsort(-sizes, kind="stable")
    kept, others = (order, order[:0]) if top is None else (order[:top], order[top:])
    values = np.empty((design.n_observations, len(kept)))
    rest = np.zeros(design.n_observations)
    for rows in blocks(design.n_observations, BLOCK // len(coords)):
        values[rows] = _products(psi, design, coords[kept], w[kept], rows)
        if len(others):
            rest[rows] = _products(psi, design, coords[others], w[others], rows).sum(axis=1)
    ranks = tuple(map(int, core.ranks))
    return Components(fit.scale * values, coords[kept], fit.scale * sizes[kept], fit.mean, fit.scale * rest, ranks)


def _draw(fit: Fit, number: Any) -> Draws:
    fit.draws.require_kept()
    if isinstance(number, bool) or not isinstance(number, int | np.integer):
        raise InputError(f"draw must be the number of a draw, such as 0 or -1, not {number!r}.")
    n = len(fit.draws)
    if not -n <= number < n:
        raise InputError(f"There are {n} draws, so draw must be from {-n} to {n - 1}, not {number}.")
    return fit.draws.only(int(number) % n)


def _coords(core: Core) -> npt.NDArray[np.int64]:
    """The places of the entries of W in the order of its weights, shape (Q, D)."""
    if core.kind == SPARSE:
        return core.coords
    return places("full" if core.kind == FULL else "superdiagonal", core.ranks.tolist())


def _products(psi: list[Floats], design: Design, coords: npt.NDArray[np.int64], w: Floats, rows: slice) -> Floats:
    """W_q psi_1q ... psi_Dq at some observations, shape (n, Q)."""
    out = np.tile(w, (rows.stop - rows.start, 1))
    for d, factors in enumerate(psi):
        present = coords[:, d] >= 0
        out[:, present] *= factors[design.index[rows, d]][:, coords[present, d]]
    return out


def _sizes(psi: list[Floats], design: Design, coords: npt.NDArray[np.int64], w: Floats) -> Floats:
    """Standard deviations over the observations, shape (Q,)."""
    n = design.n_observations
    total, squares = np.zeros(len(coords)), np.zeros(len(coords))
    for rows in blocks(n, BLOCK // len(coords)):
        summands = _products(psi, design, coords, w, rows)
        total += summands.sum(axis=0)
        squares += (summands**2).sum(axis=0)
    return np.asarray(np.sqrt(np.maximum(squares / n - (total / n) ** 2, 0.0)))
