"""The statistics A_m and b_m of every row of one mode, and the small solve for each row that follows from them.

The data enter row m only through A_m = sum w z z' and b_m = sum w z y over its observations
(`tuckergp.compute.blocks`). The order of the sums of a row depends on its observations alone, not on how rows are
divided among threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tuckergp.compute.blocks import (
    BLOCK,
    Noise,
    Observations,
    Task,
    Tensor,
    fill,
    keep,
    place,
    scratch,
    subtract_products,
    task_of,
    write_precisions,
    write_targets,
    write_z,
)
from tuckergp.compute.compiled import jit
from tuckergp.compute.contract import FULL, IDENTITY, SPARSE, Array, add_core_gradient, locate
from tuckergp.compute.threads import run_ranges
from tuckergp.compute.tiles import add_gram, factorise, solve_lower, solve_upper
from tuckergp.compute.vectors import LANES, add_weighted, dot, pointer

# Longer rows are summed in pieces of this length, so that threads share them.
PIECE = 32_768

# Observations whose derivatives in the core a thread writes at a time.
CORE_ROWS = 4_096


@jit
def accumulate(task: Task, first: int, last: int, A: Any, b: Any) -> None:
    """Add the statistics of some observations to b and to the upper triangle of A, both of padded size.

    What the observations of a row share of their precision is left out.
    """
    width = task.width
    for begin in range(first, last, BLOCK):
        n = fill(task, begin, min(BLOCK, last - begin))
        # A += sum w z z', b += sum w z y
        add_gram(task.Z, n, A, width)
        for k in range(0, width, LANES):
            add_weighted(task.Z, width, task.target, k, n, 1.0, b)


@jit
def sum_pieces(
    first: int, last: int, data: Observations, noise: Noise, tensor: Tensor, d: int,
    row_of: Array, begin: Array, A: Array, b: Array,
) -> None:  # fmt: skip
    """Add the statistics of the pieces first:last of long rows to A[p] and b[p]; row m has begin[m]:begin[m + 1]."""
    room = scratch(tensor, d)
    task = task_of(data, noise, tensor, d, room)
    for p in range(first, last):
        m = row_of[p]
        at = data.ptr[m] + (p - begin[m]) * PIECE
        accumulate(task, at, min(at + PIECE, data.ptr[m + 1]), pointer(A[p]), pointer(b[p]))
    keep(room)


@jit
def sum_row(task: Task, m: int, begin: Any, piece_A: Any, piece_b: Any, A: Any, b: Any) -> None:
    """Write the statistics of row m to A (upper triangle) and b, from its pieces if it has any."""
    width = task.width
    for k in range(width):
        b[k] = 0.0
    for k in range(width * width):
        A[k] = 0.0
    if begin[m + 1] > begin[m]:
        for p in range(begin[m], begin[m + 1]):
            for k in range(width):
                b[k] += piece_b[p * width + k]
            for k in range(width * width):
                A[k] += piece_A[p * width * width + k]
    else:
        accumulate(task, task.ptr[m], task.ptr[m + 1], A, b)
    shared = task.alpha
    if task.scaled:
        shared *= task.factors[task.noise_start[task.d] + m]
    for k in range(width):
        b[k] *= shared
    for k in range(width * width):
        A[k] *= shared


class Background(NamedTuple):
    """What cells that are not listed add to A_m: share_m times ``gram`` (r, r), or ``rows[m]`` (r, r).

    ``share`` (M,) and ``rows`` (M, r, r) are empty where there is nothing to add.
    """

    share: Array
    gram: Array
    rows: Array


@jit
def add_background(m: int, r: int, share: Array, gram: Array, rows: Array, A: Array) -> None:
    """Add what the cells of row m that are not listed say to A; see `Background`."""
    if share.size:
        for j in range(r):
            for k in range(r):
                A[j, k] += share[m] * gram[j, k]
    if rows.size:
        for j in range(r):
            for k in range(r):
                A[j, k] += rows[m, j, k]


@jit
def statistics(
    first: int, last: int, data: Observations, noise: Noise, tensor: Tensor, d: int, background: Background,
    begin: Array, piece_A: Array, piece_b: Array, out_A: Array, out_b: Array,
) -> None:  # fmt: skip
    """Write A (M, r, r) and b (M, r) of the rows first:last of mode d."""
    room = scratch(tensor, d)
    task = task_of(data, noise, tensor, d, room)
    A, b = np.empty((task.width, task.width)), np.empty(task.width)
    pieces = pointer(begin), pointer(piece_A), pointer(piece_b)
    for m in range(first, last):
        sum_row(task, m, *pieces, pointer(A), pointer(b))
        add_background(m, task.r, background.share, background.gram, background.rows, A)
        for j in range(task.r):
            out_b[m, j] = b[j]
            for k in range(j, task.r):
                out_A[m, j, k] = A[j, k]
                out_A[m, k, j] = A[j, k]
    keep(room)


@jit
def solve(
    first: int, last: int, data: Observations, noise: Noise, tensor: Tensor, d: int, background: Background,
    begin: Array, piece_A: Array, piece_b: Array, prior_shift: Array, precision: Array, draws: Array, out: Array,
) -> int:  # fmt: skip
    """Write new factors of the rows first:last of mode d under the prior N(precision^-1 shift_m, precision^-1).

    Each is the mean of its conditional plus L^-T draws_m, with L L' the posterior precision A_m + precision: zero
    ``draws`` give the mean, standard normal ones a draw. A is never stored. Returns how many rows had a precision that
    is not positive definite (their factors are NaN).
    """
    room = scratch(tensor, d)
    task = task_of(data, noise, tensor, d, room)
    r, width = task.r, task.width
    A, b, prior = np.empty((width, width)), np.empty(width), np.zeros((width, width))
    inverse, u = np.empty(width), np.empty((4, 4))
    for j in range(width):
        prior[j, j] = 1.0
    for j in range(r):
        for k in range(r):
            prior[j, k] = precision[j, k]
    pieces = pointer(begin), pointer(piece_A), pointer(piece_b)
    given = pointer(prior), pointer(prior_shift), pointer(draws)
    at_A, at_b, at_out, at_inverse, at_u = pointer(A), pointer(b), pointer(out), pointer(inverse), pointer(u)
    failed = 0
    for m in range(first, last):
        sum_row(task, m, *pieces, at_A, at_b)
        add_background(m, r, background.share, background.gram, background.rows, A)
        failed += not finish_row(r, width, m, at_A, at_b, *given, at_out, at_inverse, at_u)
    keep((room, A, b, prior, inverse, u))
    return failed


@jit
def outer_products(first: int, last: int, ptr: Array, order: Array, X: Array, weight: Array, out: Array) -> None:
    """Write sum w x x' over ``order[ptr[m]:ptr[m + 1]]`` to ``out[m]`` for m in first:last; X (P, r), out (M, r, r)."""
    r = X.shape[1]
    for m in range(first, last):
        total = out[m]
        total[:] = 0.0
        for at in range(ptr[m], ptr[m + 1]):
            p = order[at]
            for j in range(r):
                scaled = weight[p] * X[p, j]
                for k in range(r):
                    total[j, k] += scaled * X[p, k]


@jit
def finish_row(
    r: int, width: int, m: int, A: Any, b: Any, prior: Any, prior_shift: Any, draws: Any,
    out: Any, inverse: Any, u: Any,
) -> bool:  # fmt: skip
    """Write the factors of row m given its statistics; see `solve`. False if its precision is not positive definite."""
    # U'U = A_m + precision; psi_m = U^-1 (U'^-1 (b_m + shift_m) + draws_m)
    for k in range(width * width):
        A[k] += prior[k]
    for k in range(r):
        b[k] += prior_shift[m * r + k]
    positive = factorise(A, width, inverse, u)
    if positive:
        solve_lower(A, width, inverse, b)
        for k in range(r):
            b[k] += draws[m * r + k]
        solve_upper(A, width, inverse, b)
    for k in range(r):
        out[m * r + k] = b[k] if positive else np.nan
    return positive


@jit
def squared_residuals(
    first: int, last: int, data: Observations, noise: Noise, tensor: Tensor, d: int, mine: Array, out: Array
) -> None:
    """Sum squared residuals over the observations of the rows first:last of mode d, with factors ``mine`` (M, r).

    Writes the weighted squares, and these times the noise factors of the other modes, to ``out`` (M, 2).
    """
    room = scratch(tensor, d)
    task = task_of(data, noise, tensor, d, room)
    own = np.zeros(task.width, room.Z.dtype)
    for m in range(first, last):
        for k in range(task.r):
            own[k] = mine[m, k]
        out[m, 0], out[m, 1] = sum_squares(task, m, pointer(own))
    keep(room)


@jit
def sum_squares(task: Task, m: int, mine: Any) -> tuple[float, float]:
    """Sum the squared residuals of one row; see `squared_residuals`."""
    width, root, target = task.width, task.root, task.target
    squares = scaled = 0.0
    for begin in range(task.ptr[m], task.ptr[m + 1], BLOCK):
        n = min(BLOCK, task.ptr[m + 1] - begin)
        write_targets(task, begin, n)
        if task.kind == IDENTITY and task.modes == 2:
            subtract_products(task, begin, n, mine)
        else:
            for i in range(n):
                root[i] = 1.0
            write_z(task, begin, n)
            for i in range(n):
                target[i] -= dot(task.Z, i * width, mine, 0, width)
        write_precisions(task, begin, n, root)
        for i in range(n):
            square = np.float64(target[i]) ** 2
            squares += square * (task.weight[place(task, begin + i)] if task.weighted else 1.0)
            scaled += square * root[i]
    return squares, scaled


def core_rows(
    first: int,
    last: int,
    n_weights: int,
    coords: Array,
    ranks: Array,
    psi: Array,
    start: Array,
    index: Array,
) -> Array:
    """df/dw for the observations first:last, (last - first, n_weights): the regressors of W."""
    out = np.zeros((last - first, n_weights))
    bounds = np.append(np.arange(first, last, CORE_ROWS), last)
    run_ranges(core_rows_range, bounds, first, coords, ranks, psi, start, index, out)
    return out


@jit
def core_rows_range(
    first: int, last: int, begin: int, coords: Array, ranks: Array, psi: Array, start: Array, index: Array, out: Array
) -> None:
    """Write df/dw for the observations first:last into the rows of ``out``, which begins at observation ``begin``."""
    kind = FULL if coords.shape[0] == 0 else SPARSE
    at, work = np.empty(ranks.size, dtype=np.int64), np.empty(out.shape[1])
    for i in range(first, last):
        locate(index, i, start, ranks, at)
        add_core_gradient(kind, coords, ranks, psi, at, 1.0, out[i - begin], work)
