"""What the data say about one mode given the others: the statistics A_m and b_m of its rows.

Observations are sorted by row once for every mode; each update then passes over them in order.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from tuckergp.compute import rows as compute
from tuckergp.compute.blocks import LINE, Noise, Observations, Tensor, in_order, sort, sort_numbers, sort_values
from tuckergp.compute.contract import IDENTITY, SPARSE
from tuckergp.compute.threads import run_ranges
from tuckergp.compute.vectors import padded
from tuckergp.likelihoods.precision import Precision, RowSums
from tuckergp.linalg import Matrix
from tuckergp.model.design import Design
from tuckergp.model.tucker import Core, pack
from tuckergp.random import normals
from tuckergp.scratch import counts, empty
from tuckergp.statistics.background import NO_BACKGROUND, background_squares, background_statistics
from tuckergp.statistics.coding import coded

__all__ = ["NUMBERS", "Evidence", "Number", "Sorted", "sort_by_row", "sort_index"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Singles = npt.NDArray[np.float32]
Number: TypeAlias = np.float64 | np.float32
Made = TypeVar("Made")

# What factors may be rounded to, by name.
NUMBERS: dict[str, type[Number]] = {"float64": np.float64, "float32": np.float32}

# The fixed cost of each row, counted in observations.
ROW = 32

# Up to so many observations a copy of their targets takes little memory beside the rest.
FEW = 2**22

# Rows are divided among threads in at most PARTS groups, each of which costs at least LEAST, counted in observations.
PARTS, LEAST = 64, 4_096


@dataclass(frozen=True)
class Sorted:
    """Observations in the order of their rows of one mode; those of row m are ``ptr[m]:ptr[m + 1]``.

    Attributes
    ----------
    ptr : ndarray, shape (M + 1,)
    index : ndarray of int32, shape (N, D)
        The rows of the observations in the order of the design.
    d : int
        The mode.
    """

    ptr: Ints
    index: npt.NDArray[np.int32]
    d: int

    @cached_property
    def in_order(self) -> bool:
        """Whether the observations of the design come in this order already."""
        return bool(in_order(self.index, self.d))

    @cached_property
    def copies(self) -> bool:
        """Whether copies of targets and weights are made in this order, which is faster than to fetch them by number.

        Each takes 8 bytes per observation, where numbers take 4: only where there are few observations, or one mode
        needs neither.
        """
        return len(self.index) <= FEW or any(in_order(self.index, d) for d in range(self.index.shape[1]))

    @cached_property
    def other(self) -> npt.NDArray[np.int32]:
        """Rows of the other modes, (N, D - 1); made when asked for."""
        n, modes = self.index.shape
        other = empty((n, modes - 1), np.int32)
        sort(self.index, self.d, self.ptr, other)
        return other

    @cached_property
    def rows(self) -> npt.NDArray[np.int32]:
        """Rows of the other modes in the last D - 1 columns: the index itself where that has them there."""
        return np.require(self.index, None, ["C", "W"]) if self.in_order and self.d == 0 else self.other

    @cached_property
    def order(self) -> npt.NDArray[np.int32] | Ints:
        """Numbers of the observations in the design: int32, int64 from 2^31 observations on; made when asked for."""
        n = len(self.index)
        order = empty(n, np.int32 if n < 2**31 else np.int64)
        sort_numbers(self.index, self.d, self.ptr, order)
        return order

    @cached_property
    def _kept(self) -> dict[str, tuple[list[weakref.ref[Floats]], Any]]:
        return {}

    def _keep(self, name: str, columns: Sequence[Floats], make: Callable[..., Made]) -> Made:
        """What is made of values of the observations; that last made by this name is kept while they are."""
        of, made = self._kept.get(name, ([], None))
        if len(of) != len(columns) or any(kept() is not given for kept, given in zip(of, columns, strict=True)):
            made = make(*columns)
            self._kept[name] = [weakref.ref(column) for column in columns], made
        result: Made = made
        return result

    def _in_order(self, values: npt.NDArray[Any], number: type) -> npt.NDArray[Any]:
        out = empty(len(values), number)
        sort_values(self.index, self.d, self.ptr, values, out)
        return out

    def copied(self, name: str, values: Floats, number: type[Number]) -> npt.NDArray[Number]:
        """Values of the observations in the order of the rows, rounded; not a copy where they lie so."""
        if self.in_order and values.dtype == number:
            return _contiguous(values, number)
        return self._keep(name, [values], lambda given: self._in_order(given, number))

    def coded(self, *columns: Floats) -> tuple[npt.NDArray[np.int32], list[Floats]] | None:
        """In the order of the rows a code of the values of each observation, and by code these values.

        Few values, such as ratings of half stars, stay in the nearest cache, which saves fetching them by the numbers
        of their observations. None if there are many.
        """
        return self._keep("codes", columns, self._coded)

    def _coded(self, *columns: Floats) -> tuple[npt.NDArray[np.int32], list[Floats]] | None:
        found = coded(*columns)
        return None if found is None else (self._in_order(found[0], np.int32), found[1])

    @cached_property
    def pieces(self) -> Ints:
        """Bounds of the pieces of long rows, which threads share: row m has the pieces pieces[m]:pieces[m + 1]."""
        length = np.diff(self.ptr)
        count = np.where(length > compute.PIECE, -(-length // compute.PIECE), 0)
        return np.concatenate([[0], np.cumsum(count)]).astype(np.int64)

    @cached_property
    def shares(self) -> Ints:
        """Bounds between groups of rows that cost about the same; more groups than threads, unless they get small."""
        length = np.diff(self.ptr)
        cost = np.concatenate([[0], np.cumsum(np.where(length > compute.PIECE, 0, length) + ROW)])
        parts = min(PARTS, 1 + int(cost[-1] // LEAST))
        bounds = np.searchsorted(cost, np.linspace(0, cost[-1], parts + 1))
        bounds[0], bounds[-1] = 0, len(length)
        return bounds.astype(np.int64)


def sort_by_row(design: Design, d: int) -> Sorted:
    """Sort the observations by their row of mode d, keeping their order within a row."""
    return sort_index(design.index, d, design.modes[d].n_rows)


def sort_index(index: npt.NDArray[np.int32], d: int, rows: int) -> Sorted:
    """Sort observations of an index (N, D) by their row of mode d, of which there are so many."""
    return Sorted(np.concatenate([[0], np.cumsum(counts(index[:, d], rows))]).astype(np.int64), index, d)


_NONE, _NOWHERE, _UNNUMBERED = np.zeros(0), np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32)


def _contiguous(values: npt.NDArray[Any], number: type[Number] = np.float64) -> npt.NDArray[Any]:
    return np.require(values, number, ["C", "W"])  # one signature to compile


def _noise(precision: Precision, weight: npt.NDArray[Any]) -> Noise:
    factors, start = pack(precision.factors) if precision.factors else (_NONE, _NOWHERE)
    return Noise(float(precision.alpha), weight, factors, start)


def _in_whole_vectors(tables: Sequence[Floats], number: type[Number]) -> tuple[npt.NDArray[Number], Ints]:
    """`pack` of tables whose rows are filled up with zeros to whole vectors; they begin at a cache line."""
    widths = [padded(table.shape[1]) for table in tables]
    start = np.cumsum([0, *(len(table) * width for table, width in zip(tables, widths, strict=True))]).astype(np.int64)
    room = np.zeros(int(start[-1]) + LINE, dtype=number)
    skipped = -(room.ctypes.data // room.itemsize) % (LINE // room.itemsize)
    flat = room[skipped : skipped + int(start[-1])]
    for table, begin, width in zip(tables, start, widths, strict=False):
        flat[begin : begin + len(table) * width].reshape(len(table), width)[:, : table.shape[1]] = table
    return flat, start


@dataclass(frozen=True)
class Evidence:
    """The data as a regression on factors of mode d: y_i = z_i'psi_d + noise of precision w_i, z = W x_{e != d} psi_e.

    Attributes
    ----------
    data : Sorted
        By the rows of mode d.
    y : ndarray, shape (N,)
        Targets, in the order of the design (not sorted).
    precision : Precision
    core, W : Core and its weights
    psi : sequence of ndarray
        Factors of all modes; those of mode d are read by `residuals` alone.
    number : type
        What factors are rounded to, and multiplied in: np.float64 or np.float32. Sums over blocks of observations, and
        solves, are of float64 in any case.
    """

    data: Sorted
    y: Floats
    precision: Precision
    core: Core
    d: int
    psi: Sequence[Floats]
    W: Floats
    number: type[Number] = np.float64

    def _arguments(self) -> tuple[Observations, Noise, Tensor, int]:
        data, core, d = self.data, self.core, self.d
        tables, kind, ranks, w = list(self.psi), core.kind, core.ranks, self.W
        coords = core.coords
        if kind == SPARSE:  # entries that are 0 now cost nothing
            nonzero = np.flatnonzero(w)
            w, coords = w[nonzero], coords[nonzero]
        if core.modes == 2 and kind != IDENTITY and not core.leaves_out:
            # z depends on the other mode's row alone, so contract it once per row: then the core is the identity
            dense = core.dense(self.W)
            tables[1 - d] = tables[1 - d] @ (dense.T if d == 0 else dense)
            kind, ranks = IDENTITY, np.full(2, ranks[d])
        if kind == IDENTITY:
            w = np.ones(1)
        tables[d] = tables[d][:0]  # not read, so not copied
        if kind == IDENTITY:
            flat, start = _in_whole_vectors(tables, self.number)
        else:
            packed, start = pack(tables)
            flat = packed.astype(self.number, copy=False)
        order, y, weight = self._values()
        observations = Observations(data.ptr, order, data.rows, y)
        tensor = Tensor(kind, w, coords, ranks, flat, start)
        return observations, _noise(self.precision, weight), tensor, d

    def _values(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
        """Numbers of the observations in targets and weights, and these; no numbers where these are sorted by row."""
        data, number, weight = self.data, self.number, self.precision.weight
        given = {"y": self.y} if weight is None else {"y": self.y, "weight": weight}
        order, values = self._numbered(list(given.values()))
        if values is None:
            values = [data.copied(name, column, number) for name, column in given.items()]
        return order, values[0], np.zeros(0, number) if weight is None else values[1]

    def _numbered(self, columns: list[Floats]) -> tuple[npt.NDArray[Any], list[npt.NDArray[Any]] | None]:
        """Numbers of the observations, or of distinct values, and what they number; None where copies are better."""
        data = self.data
        if self.number is np.float32 or data.in_order:
            return _UNNUMBERED, None
        coded = data.coded(*columns)
        if coded is not None:
            return coded[0], list(coded[1])
        return (_UNNUMBERED, None) if data.copies else (data.order, [_contiguous(column) for column in columns])

    def _pieces(self, arguments: tuple[Any, ...]) -> tuple[Ints, Floats, Floats]:
        """Statistics of the pieces of long rows, and the bounds of each row's pieces."""
        begin, size = self.data.pieces, padded(int(self.core.ranks[self.d]))
        A, b = np.zeros((int(begin[-1]), size, size)), np.zeros((int(begin[-1]), size))
        row_of = np.repeat(np.arange(len(begin) - 1), np.diff(begin))
        run_ranges(compute.sum_pieces, np.arange(len(A) + 1), *arguments, row_of, begin, A, b)
        return begin, A, b

    def _background(self) -> compute.Background:
        """What cells that are not listed add to A."""
        precision = self.precision
        if precision.background is None:
            return NO_BACKGROUND
        return background_statistics(precision.background, precision.alpha, self.core, self.d, self.psi, self.W)

    def statistics(self) -> tuple[Floats, Floats]:
        """The statistics A_m = sum_i w_i z_i z_i' and b_m = sum_i w_i z_i y_i of all rows: A (M, r, r) and b (M, r)."""
        arguments, rows, r = self._arguments(), len(self.data.ptr) - 1, int(self.core.ranks[self.d])
        A, b = np.empty((rows, r, r)), np.empty((rows, r))
        given = (self._background(), *self._pieces(arguments))
        run_ranges(compute.statistics, self.data.shares, *arguments, *given, A, b)
        return A, b

    def solve(self, prior_shift: Floats, precision: Floats, noise: Floats) -> Floats:
        """Mean or draw of every row under the prior N(precision^-1 prior_shift_m, precision^-1).

        With zero ``noise`` the mean; see `tuckergp.compute.rows.solve`.
        """
        arguments, psi = self._arguments(), np.empty(prior_shift.shape)
        given = (self._background(), *self._pieces(arguments), *map(_contiguous, (prior_shift, precision, noise)))
        failed = sum(run_ranges(compute.solve, self.data.shares, *arguments, *given, psi))
        if failed:
            raise FloatingPointError(f"the precision of {failed} rows of mode {self.d} is not positive definite")
        return psi

    def rows(self, features: Matrix, B: Floats, precision: Floats, rng: np.random.Generator | None) -> Floats:
        """A draw of every row under the prior N(B'phi_m, precision^-1); the mean without ``rng``."""
        shift = np.asarray(features @ B) @ precision
        return self.solve(shift, precision, np.zeros_like(shift) if rng is None else normals(shift.shape, rng))

    def residuals(self) -> RowSums:
        """How far f is from the targets, summed over the observations of every row."""
        factors = _contiguous(self.psi[self.d])
        sums = np.zeros((len(factors), 2))
        run_ranges(compute.squared_residuals, self.data.shares, *self._arguments(), factors, sums)
        zeros = self.precision.background
        over_zeros = 0.0 if zeros is None else background_squares(zeros, self.core, self.psi, self.W)
        squares, scaled = np.ascontiguousarray(sums.T)
        return RowSums(squares, scaled, over_zeros)
