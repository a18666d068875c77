"""The statistics A_m and b_m of every row of one mode, and the small solve for each row that follows from them.

Given the other modes, f = z'psi_d (and what entries of the core that leave mode d out add, which is taken from y), so
the data enter row m only through A_m = sum w z z' and b_m = sum w z y over its observations.
Observations come sorted by the row of mode d: those of row m are ``ptr[m]:ptr[m + 1]``. The order of the sums of a row
depends on its observations alone, not on how rows are divided among threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tuckergp.compute.contract import FULL, IDENTITY, SPARSE, Array, add_core_gradient, jit, locate, others
from tuckergp.compute.threads import run_ranges
from tuckergp.compute.tiles import add_gram, factorise, padded

# Observations whose z are laid side by side before they are multiplied: enough to vectorise, few enough for the cache.
BLOCK = 128

# Longer rows are summed in pieces of this length, so that threads share them.
PIECE = 32_768

# Observations whose derivatives in the core a thread writes at a time.
CORE_ROWS = 4_096


class Observations(NamedTuple):
    """Observations sorted by their row of one mode.

    ``order`` (N,) are their numbers in ``y`` (N,); ``other`` (N, D - 1) their rows of the other modes, in the order of
    the modes.
    """

    ptr: Array
    order: Array
    other: Array
    y: Array


class Noise(NamedTuple):
    """Noise precision alpha weight_i prod_d factors[start[d] + row]; weights and factors may be empty, for ones."""

    alpha: float
    weight: Array
    factors: Array
    start: Array


class Tensor(NamedTuple):
    """Core and factors, as in `tuckergp.compute.contract`; the factors of the mode that is solved for are not read."""

    kind: int
    w: Array
    coords: Array
    ranks: Array
    psi: Array
    start: Array


class Background(NamedTuple):
    """What cells that are not listed add to A_m: share_m times ``gram`` (r, r), or ``rows[m]`` (r, r).

    ``share`` (M,) and ``rows`` (M, r, r) are empty where there is nothing to add.
    """

    share: Array
    gram: Array
    rows: Array


class Scratch(NamedTuple):
    """Work arrays of one thread: z as columns of Z (padded r, BLOCK), precisions, targets, and those of one z.

    The modes that entry q of a sparse core does not leave out, but for mode d, are ``there[begin[q]:begin[q + 1]]``.
    """

    Z: Array
    precision: Array
    target: Array
    z: Array
    work: Array
    at: Array
    begin: Array
    there: Array


@jit
def sort(index: Array, d: int, ptr: Array, order: Array, other: Array) -> None:
    """Fill ``order`` and ``other`` of `Observations`, given where the rows of mode d begin."""
    free = ptr.copy()
    for i in range(len(index)):
        k = free[index[i, d]]
        free[index[i, d]] = k + 1
        order[k] = i
        column = 0
        for e in range(index.shape[1]):
            if e != d:
                other[k, column] = index[i, e]
                column += 1


@jit
def scratch(tensor: Tensor, d: int) -> Scratch:
    """Allocate the work arrays of one thread."""
    r = tensor.ranks[d]
    # a row of Z is 8 longer than a block, so that the entries of a column do not share one cache set
    Z = np.zeros((padded(r), BLOCK + 8))
    one, at = np.empty(tensor.w.size + 1), np.zeros(tensor.ranks.size, np.int64)
    coords = tensor.coords
    begin, there, n = np.zeros(len(coords) + 1, np.int64), np.zeros(coords.size, np.int64), 0
    for q in range(len(coords)):
        for e in range(tensor.ranks.size):
            if e != d and coords[q, e] >= 0:
                there[n] = e
                n += 1
        begin[q + 1] = n
    return Scratch(Z, np.empty(BLOCK), np.empty(BLOCK), np.empty(r), one, at, begin, there)


@jit
def write_precisions(
    d: int, row_precision: float, first: int, n: int, order: Array, other: Array,
    weight: Array, factors: Array, start: Array, out: Array,
) -> None:  # fmt: skip
    """Write precisions of n observations: ``row_precision`` times weights times the other modes' noise factors."""
    for i in range(n):
        out[i] = row_precision
    if weight.size:
        for i in range(n):
            out[i] *= weight[order[first + i]]
    if factors.size:
        for c in range(other.shape[1]):
            begin = start[c if c < d else c + 1]
            for i in range(n):
                out[i] *= factors[begin + other[first + i, c]]


@jit
def write_z(tensor: Tensor, d: int, rows: Array, at: Array, z: Array, work: Array, begin: Array, there: Array) -> float:
    """Write z of an observation with these rows of the other modes; return what is added to z'psi_d."""
    for c in range(rows.size):
        e = c if c < d else c + 1
        at[e] = tensor.start[e] + rows[c] * tensor.ranks[e]
    if tensor.kind == SPARSE:
        return sparse_others(tensor.w, tensor.coords, tensor.psi, at, d, z, begin, there)
    return others(tensor.kind, tensor.w, tensor.coords, tensor.ranks, tensor.psi, at, d, z, work)


@jit
def sparse_others(
    w: Array, coords: Array, psi: Array, at: Array, d: int, z: Array, begin: Array, there: Array
) -> float:
    """`others` of a sparse core, at the cost of the modes that its entries do not leave out."""
    rest = 0.0
    for k in range(z.size):
        z[k] = 0.0
    for q in range(w.size):
        product = w[q]
        for j in range(begin[q], begin[q + 1]):
            e = there[j]
            product *= psi[at[e] + coords[q, e]]
        if coords[q, d] >= 0:
            z[coords[q, d]] += product
        else:
            rest += product
    return rest


# Loops over observations avoid reading tuples and passing arrays on: each costs an atomic count of references, which
# takes longer than the arithmetic.


@jit
def fill(
    data: Observations, noise: Noise, tensor: Tensor, d: int, row_precision: float, first: int, n: int, room: Scratch
) -> int:
    """Write z and y of n observations, times the root of their precision, to columns of Z and to targets.

    Returns how many columns to sum over, a multiple of 8 to suit vector instructions: zeros follow the observations.
    """
    order, other, y, psi = data.order, data.other, data.y, tensor.psi
    Z, root, target, z = room.Z, room.precision, room.target, room.z
    r = tensor.ranks[d]
    write_precisions(d, row_precision, first, n, order, other, noise.weight, noise.factors, noise.start, root)
    for i in range(n):
        root[i] = np.sqrt(root[i])
        target[i] = root[i] * y[order[first + i]]
    if tensor.kind == IDENTITY and tensor.ranks.size == 2:
        start = tensor.start[1 - d]
        for i in range(n):
            begin = start + np.int64(other[first + i, 0]) * r
            row = psi[begin : begin + r]  # an index without an offset cannot be negative, so the loop vectorises
            for k in range(r):
                Z[k, i] = root[i] * row[k]
    else:
        for i in range(n):
            target[i] -= root[i] * write_z(tensor, d, other[first + i], room.at, z, room.work, room.begin, room.there)
            for k in range(r):
                Z[k, i] = root[i] * z[k]
    columns = (n + 7) // 8 * 8
    for i in range(n, columns):
        target[i] = 0.0
        for k in range(r):
            Z[k, i] = 0.0
    return columns


@jit
def accumulate(
    data: Observations, noise: Noise, tensor: Tensor, d: int, m: int, first: int, last: int,
    A: Array, b: Array, room: Scratch,
) -> None:  # fmt: skip
    """Add the statistics of some observations of row m to b and to the lower triangle of A, both of padded size."""
    row_precision = noise.alpha
    if noise.factors.size:
        row_precision *= noise.factors[noise.start[d] + m]
    for begin in range(first, last, BLOCK):
        columns = fill(data, noise, tensor, d, row_precision, begin, min(BLOCK, last - begin), room)
        # A += sum w z z', b += sum w z y
        add_gram(room.Z, columns, A)
        for k in range(tensor.ranks[d]):
            row = room.Z[k]
            total = 0.0
            for i in range(columns):
                total += row[i] * room.target[i]
            b[k] += total


@jit
def sum_pieces(
    first: int, last: int, data: Observations, noise: Noise, tensor: Tensor, d: int,
    row_of: Array, begin: Array, A: Array, b: Array,
) -> None:  # fmt: skip
    """Add the statistics of the pieces first:last of long rows to A[p] and b[p]; row m has begin[m]:begin[m + 1]."""
    room = scratch(tensor, d)
    for p in range(first, last):
        m = row_of[p]
        at = data.ptr[m] + (p - begin[m]) * PIECE
        accumulate(data, noise, tensor, d, m, at, min(at + PIECE, data.ptr[m + 1]), A[p], b[p], room)


@jit
def sum_row(
    data: Observations, noise: Noise, tensor: Tensor, d: int, m: int,
    begin: Array, piece_A: Array, piece_b: Array, A: Array, b: Array, room: Scratch,
) -> None:  # fmt: skip
    """Write the statistics of row m to A (lower triangle) and b, from its pieces if it has any."""
    for j in range(len(A)):
        b[j] = 0.0
        for k in range(len(A)):
            A[j, k] = 0.0
    if begin[m + 1] > begin[m]:
        for p in range(begin[m], begin[m + 1]):
            for j in range(len(A)):
                b[j] += piece_b[p, j]
                for k in range(len(A)):
                    A[j, k] += piece_A[p, j, k]
    else:
        accumulate(data, noise, tensor, d, m, data.ptr[m], data.ptr[m + 1], A, b, room)


@jit
def add_background(m: int, r: int, share: Array, gram: Array, rows: Array, A: Array) -> None:
    """Add what the cells of row m that are not listed say to the lower triangle of A; see `Background`."""
    if share.size:
        for j in range(r):
            for k in range(j + 1):
                A[j, k] += share[m] * gram[j, k]
    if rows.size:
        for j in range(r):
            for k in range(j + 1):
                A[j, k] += rows[m, j, k]


@jit
def statistics(
    first: int, last: int, data: Observations, noise: Noise, tensor: Tensor, d: int, background: Background,
    begin: Array, piece_A: Array, piece_b: Array, out_A: Array, out_b: Array,
) -> None:  # fmt: skip
    """Write A (M, r, r) and b (M, r) of the rows first:last of mode d."""
    r = tensor.ranks[d]
    room = scratch(tensor, d)
    A, b = np.empty((padded(r), padded(r))), np.empty(padded(r))
    for m in range(first, last):
        sum_row(data, noise, tensor, d, m, begin, piece_A, piece_b, A, b, room)
        add_background(m, r, background.share, background.gram, background.rows, A)
        for j in range(r):
            out_b[m, j] = b[j]
            for k in range(j + 1):
                out_A[m, j, k] = A[j, k]
                out_A[m, k, j] = A[j, k]


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
    r = tensor.ranks[d]
    room = scratch(tensor, d)
    A, b = np.empty((padded(r), padded(r))), np.empty(padded(r))
    failed = 0
    for m in range(first, last):
        sum_row(data, noise, tensor, d, m, begin, piece_A, piece_b, A, b, room)
        add_background(m, r, background.share, background.gram, background.rows, A)
        # L L' = A_m + precision; psi_m = L^-T (L^-1 (b_m + shift_m) + draws_m)
        for j in range(r):
            b[j] += prior_shift[m, j]
            for k in range(j + 1):
                A[j, k] += precision[j, k]
        for j in range(r, len(A)):
            A[j, j] = 1.0
        if factorise(A):
            solve_lower(A, b)
            for j in range(r):
                b[j] += draws[m, j]
            solve_upper(A, b)
        else:
            for j in range(r):
                b[j] = np.nan
            failed += 1
        for j in range(r):
            out[m, j] = b[j]
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
def squared_residuals(
    first: int, last: int, data: Observations, noise: Noise, tensor: Tensor, d: int, mine: Array, out: Array
) -> None:
    """Sum squared residuals over the observations of the rows first:last of mode d, with factors ``mine`` (M, r).

    Adds the weighted squares, and these times the noise factors of the other modes, to ``out`` (M, 2).
    """
    room = scratch(tensor, d)
    for m in range(first, last):
        sum_squares(data, noise, tensor, d, m, mine[m], out[m], room)


@jit
def sum_squares(
    data: Observations, noise: Noise, tensor: Tensor, d: int, m: int, mine: Array, out: Array, room: Scratch
) -> None:
    """Sum the squared residuals of one row; see `squared_residuals`."""
    order, other, y, psi = data.order, data.other, data.y, tensor.psi
    weight, precision, f, z = noise.weight, room.precision, room.target, room.z
    r = tensor.ranks[d]
    for begin in range(data.ptr[m], data.ptr[m + 1], BLOCK):
        n = min(BLOCK, data.ptr[m + 1] - begin)
        if tensor.kind == IDENTITY and tensor.ranks.size == 2:
            start = tensor.start[1 - d]
            for i in range(n):
                at = start + np.int64(other[begin + i, 0]) * r
                row = psi[at : at + r]
                total = 0.0
                for k in range(r):
                    total += mine[k] * row[k]
                f[i] = total
        else:
            for i in range(n):
                f[i] = write_z(tensor, d, other[begin + i], room.at, z, room.work, room.begin, room.there)
                for k in range(r):
                    f[i] += mine[k] * z[k]
        write_precisions(d, 1.0, begin, n, order, other, weight, noise.factors, noise.start, precision)
        for i in range(n):
            square = (y[order[begin + i]] - f[i]) ** 2
            share = weight[order[begin + i]] if weight.size else 1.0
            out[0] += share * square
            out[1] += precision[i] * square


@jit
def cholesky(A: Array) -> bool:
    """Overwrite the lower triangle of A with its Cholesky factor; False if A is not positive definite."""
    r = len(A)
    for j in range(r):
        pivot = A[j, j]
        for k in range(j):
            pivot -= A[j, k] * A[j, k]
        if not pivot > 0.0:
            return False
        pivot = np.sqrt(pivot)
        A[j, j] = pivot
        for i in range(j + 1, r):
            total = A[i, j]
            for k in range(j):
                total -= A[i, k] * A[j, k]
            A[i, j] = total / pivot
    return True


@jit
def solve_lower(L: Array, x: Array) -> None:
    """Replace x by L^-1 x, L lower triangular."""
    for i in range(len(L)):
        total = x[i]
        for k in range(i):
            total -= L[i, k] * x[k]
        x[i] = total / L[i, i]


@jit
def solve_upper(L: Array, x: Array) -> None:
    """Replace x by L'^-1 x, L lower triangular."""
    for i in range(len(L) - 1, -1, -1):
        x[i] /= L[i, i]
        for k in range(i):
            x[k] -= L[i, k] * x[i]


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
