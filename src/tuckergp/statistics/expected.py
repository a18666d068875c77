"""Expected statistics of the rows of a mode when the other modes are uncertain: E A_m and E b_m.

A and b are sums over observations of products of the modes' factors, which are independent under q. So their
expectations are the same sums with E psi and E psi psi' in the place of psi and psi psi': exact for every core, and for
two modes a product with the sparse matrix of the observations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuckergp.compute.contract import IDENTITY, SPARSE
from tuckergp.model.design import Design
from tuckergp.model.tucker import Core
from tuckergp.priors.beliefs import Normal

__all__ = ["Factors", "ModeObservations", "core_statistics", "expected_squares", "observations_of", "row_statistics"]

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.integer]

# The most numbers in memory at once while sums run over observations.
BLOCK = 4_000_000


class Factors(NamedTuple):
    """First and second moments of the factors of one mode: E psi_m (M, r) and E psi_m psi_m' (M, r, r)."""

    mean: Floats
    square: Floats


@dataclass(frozen=True)
class ModeObservations:
    """The observations sorted by the rows of one mode and, together, of all other modes.

    Attributes
    ----------
    others : tuple of int
        The other modes.
    cases : ndarray of int, shape (C, D - 1)
        Their rows together: those of the other mode if there is one, else those of every observation.
    weight, target : csc_array, shapes (M, C)
        Sums of weights, and of weight times target, of the observations of each row in each case.
    """

    others: tuple[int, ...]
    cases: Numbers
    weight: sparse.csc_array
    target: sparse.csc_array

    def sums(self, factors: Sequence[Factors], elementwise: bool) -> tuple[Floats, Floats]:
        """Sums by rows of weight times the product of E psi psi', and of weight times target times that of E psi.

        Products are of the other modes: elementwise, (M, r^2) and (M, r), or of all entries with all, in the order of
        the modes, (M, product of r_e^2) and (M, product of r_e).
        """
        squares = [factors[e].square.reshape(len(factors[e].square), -1) for e in self.others]
        means = [factors[e].mean for e in self.others]
        return self._sum(self.weight, squares, elementwise), self._sum(self.target, means, elementwise)

    def _sum(self, matrix: sparse.csc_array, tables: list[Floats], elementwise: bool) -> Floats:
        widths = [table.shape[1] for table in tables]
        width = max(widths, default=1) if elementwise else prod(widths)
        total = np.zeros((matrix.shape[0], width))
        step = max(1, BLOCK // width)
        for first in range(0, len(self.cases), step):
            cases = self.cases[first : first + step]
            total += matrix[:, first : first + step] @ _products(tables, cases, elementwise)
        return total


def observations_of(design: Design, d: int, y: Floats, weight: Floats | None) -> ModeObservations:
    """Gather the observations by the rows of mode d and of the other modes."""
    modes, rows = len(design.modes), design.index[:, d]
    others = tuple(e for e in range(modes) if e != d)
    cases: Numbers
    case: Numbers
    if modes == 1:
        cases, case = np.zeros((1, 0), dtype=np.int64), np.zeros(len(y), dtype=np.int64)
    elif modes == 2:
        cases, case = np.arange(design.modes[others[0]].n_rows)[:, None], design.index[:, others[0]]
    else:
        cases, case = design.index[:, others], np.arange(len(y))
    each = np.ones(len(y)) if weight is None else weight
    shape = (design.modes[d].n_rows, len(cases))
    observations = [sparse.csc_array((values, (rows, case)), shape=shape) for values in (each, each * y)]
    return ModeObservations(others, cases, *observations)


def _products(tables: list[Floats], cases: Numbers, elementwise: bool) -> Floats:
    """Products over the other modes of their rows of tables in each case: elementwise, or of all entries with all."""
    out = np.ones((len(cases), 1))
    for table, rows in zip(tables, cases.T, strict=True):
        factor = table[rows]
        out = out * factor if elementwise else (out[:, :, None] * factor[:, None, :]).reshape(len(out), -1)
    return out


def row_statistics(
    core: Core, d: int, observations: ModeObservations, factors: Sequence[Factors], W: Normal
) -> tuple[Floats, Floats]:
    """Expected statistics E A (M, r, r) and E b (M, r) of the rows of mode d, for a noise of precision 1.

    ``W`` is the belief of the core's entries, (Q, 1), not read for an identity core.
    """
    r = int(core.ranks[d])
    # E A_m = sum_i w_i E z_i z_i', z = W x_{e != d} psi_e: the product of E psi_e psi_e' contracted with E W W'
    A, b = observations.sums(factors, core.kind == IDENTITY)
    if core.kind != IDENTITY:
        mean, square = _dense_moments(core, W)
        pairs = [axis for e in observations.others for axis in (e, core.modes + e)]
        A = A @ square.transpose(*pairs, d, core.modes + d).reshape(-1, r * r)
        b = b @ np.moveaxis(mean, d, -1).reshape(-1, r)
    rows = len(A)
    return np.broadcast_to(A, (rows, r * r)).reshape(rows, r, r), np.broadcast_to(b, (rows, r))


def core_statistics(core: Core, observations: ModeObservations, factors: Sequence[Factors]) -> tuple[Floats, Floats]:
    """Expected normal equations of the core's entries, (Q, Q) and (Q,), from the sums by the rows of mode 0."""
    ranks = [int(r) for r in core.ranks]
    A, b = observations.sums(factors, elementwise=False)
    first = factors[0]
    # gram = sum_i w_i (E psi_0 psi_0') kron (E psi_1 psi_1') kron ..., axes (r_0, r_0, r_1, r_1, ...), which are then
    # reordered to (r_0, r_1, ..., r_0, r_1, ...); right = sum_i w_i y_i E psi_0 kron E psi_1 kron ...
    gram = first.square.reshape(len(first.square), -1).T @ A
    gram = gram.reshape([r for rank in ranks for r in (rank, rank)])
    order = [*range(0, 2 * len(ranks), 2), *range(1, 2 * len(ranks), 2)]
    gram = gram.transpose(order).reshape(prod(ranks), prod(ranks))
    right = (first.mean.T @ b).ravel()
    if core.kind == SPARSE:
        places = _places(core)
        return gram[np.ix_(places, places)], right[places]
    return gram, right


def expected_squares(
    core: Core, observations: ModeObservations, factors: Sequence[Factors], W: Normal, y: Floats, weight: Floats | None
) -> float:
    """The expectation of sum_i weight_i (y_i - f_i)^2, from the statistics of mode 0."""
    A, b = row_statistics(core, 0, observations, factors, W)
    # sum w y^2 - 2 sum_m E b_m'E psi_m + sum_m tr(E A_m E psi_m psi_m')
    total = float(y @ y if weight is None else weight @ y**2)
    return total - 2 * float(np.sum(b * factors[0].mean)) + float(np.sum(A * factors[0].square))


def _places(core: Core) -> npt.NDArray[np.intp]:
    """The places of the entries of a sparse core in the flat dense one."""
    return np.asarray(np.ravel_multi_index(tuple(core.coords.T), tuple(map(int, core.ranks))))


def _dense_moments(core: Core, W: Normal) -> tuple[Floats, Floats]:
    """The expectations of W (r_1, ..., r_D) and of products of pairs of its entries, (r_1, ..., r_D, r_1, ..., r_D)."""
    mean, square = W.mean[:, 0], W.covariance + W.mean @ W.mean.T
    shape = tuple(map(int, core.ranks))
    if core.kind == SPARSE:
        places, size = _places(core), prod(shape)
        whole = np.zeros((size, size))
        whole[np.ix_(places, places)] = square
        square = whole
    return core.dense(mean), square.reshape(shape + shape)
