"""Blocks of observations as a regression on the factors of one mode: z and y, times the root of their precision.

Observations come sorted by the row of mode d: those of row m are ``ptr[m]:ptr[m + 1]``. Given the other modes,
f = z'psi_d (and what entries of the core that leave mode d out add, which is taken from y). A block's z lie one after
the other in a table that fits the nearest cache.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tuckergp.compute.compiled import from_module, jit
from tuckergp.compute.contract import IDENTITY, SPARSE, Array, others
from tuckergp.compute.vectors import CHAINS, LANES, dot, move, multiply, padded, pointer, prefetch

carray = from_module("numba", "carray")

# Observations of a block: few enough for the nearest cache.
BLOCK = 64

# How many observations before their turn factors are fetched, and the bytes that memory gives at once.
AHEAD, LINE = 16, 64


class Observations(NamedTuple):
    """Observations sorted by their row of one mode.

    ``order`` (N,) are their numbers in ``y`` (N,) and in weights, or empty where these are sorted as well. The last
    D - 1 columns of ``other`` are their rows of the other modes, in the order of the modes.
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
    """Core and factors, as in `tuckergp.compute.contract`; the factors of the mode that is solved for are not read.

    The factors of an identity core lie in rows of padded length, and may be of float32.
    """

    kind: int
    w: Array
    coords: Array
    ranks: Array
    psi: Array
    start: Array


class Scratch(NamedTuple):
    """Work arrays of one thread: z as rows of Z (BLOCK, padded r), roots of precisions, targets, and those of one z.

    The modes that entry q of a sparse core does not leave out, but for mode d, are ``there[begin[q]:begin[q + 1]]``.
    """

    Z: Array
    root: Array
    target: Array
    z: Array
    work: Array
    at: Array
    begin: Array
    there: Array


class Task(NamedTuple):
    """All of the above by pointers, and sizes: see `tuckergp.compute.vectors`."""

    d: int
    modes: int
    r: int
    width: int
    last: int
    stride: int
    skipped: int
    ptr: Any
    numbered: bool
    order: Any
    other: Any
    y: Any
    alpha: float
    weighted: bool
    weight: Any
    scaled: bool
    factors: Any
    noise_start: Any
    kind: int
    entries: int
    w: Any
    coords: Any
    ranks: Any
    psi: Any
    start: Any
    Z: Any
    root: Any
    target: Any
    z: Any
    work: Any
    at: Any
    begin: Any
    there: Any


@jit
def in_order(index: Array, d: int) -> bool:
    """Whether observations come sorted by their row of mode d."""
    i = 1
    while i < len(index) and index[i, d] >= index[i - 1, d]:
        i += 1
    return i >= len(index)


@jit
def sort(index: Array, d: int, ptr: Array, other: Array) -> None:
    """Fill ``other`` of `Observations`, given where the rows of mode d begin."""
    free = ptr.copy()
    for i in range(len(index)):
        k = free[index[i, d]]
        free[index[i, d]] = k + 1
        column = 0
        for e in range(index.shape[1]):
            if e != d:
                other[k, column] = index[i, e]
                column += 1


@jit
def sort_numbers(index: Array, d: int, ptr: Array, order: Array) -> None:
    """Fill ``order`` of `Observations`, given where the rows of mode d begin."""
    free = ptr.copy()
    for i in range(len(index)):
        order[free[index[i, d]]] = i
        free[index[i, d]] += 1


@jit
def sort_values(index: Array, d: int, ptr: Array, values: Array, out: Array) -> None:
    """Write values of the observations in the order of the rows of mode d, given where these begin."""
    free = ptr.copy()
    for i in range(len(index)):
        out[free[index[i, d]]] = values[i]
        free[index[i, d]] += 1


@jit
def scratch(tensor: Tensor, d: int) -> Scratch:
    """Allocate the work arrays of one thread."""
    r, kind = tensor.ranks[d], tensor.psi.dtype
    Z = np.zeros((BLOCK, padded(r)), kind)
    one, at = np.empty(tensor.w.size + 1), np.zeros(tensor.ranks.size, np.int64)
    coords = tensor.coords
    begin, there, n = np.zeros(len(coords) + 1, np.int64), np.zeros(coords.size, np.int64), 0
    for q in range(len(coords)):
        for e in range(tensor.ranks.size):
            if e != d and coords[q, e] >= 0:
                there[n] = e
                n += 1
        begin[q + 1] = n
    root = np.empty(BLOCK, kind)
    for i in range(BLOCK):
        root[i] = 1.0
    return Scratch(Z, root, np.empty(BLOCK, kind), np.zeros(padded(r), kind), one, at, begin, there)


@jit
def task_of(data: Observations, noise: Noise, tensor: Tensor, d: int, room: Scratch) -> Task:
    """Pointers to arrays, which the caller keeps alive."""
    stride = data.other.shape[1]
    return Task(
        d, tensor.ranks.size, tensor.ranks[d], room.Z.shape[1], len(data.other) - 1,
        stride, stride - tensor.ranks.size + 1,
        pointer(data.ptr), data.order.size > 0, pointer(data.order), pointer(data.other), pointer(data.y),
        noise.alpha, noise.weight.size > 0, pointer(noise.weight),
        noise.factors.size > 0, pointer(noise.factors), pointer(noise.start),
        tensor.kind, tensor.w.size, pointer(tensor.w), pointer(tensor.coords), pointer(tensor.ranks),
        pointer(tensor.psi), pointer(tensor.start),
        pointer(room.Z), pointer(room.root), pointer(room.target), pointer(room.z), pointer(room.work),
        pointer(room.at), pointer(room.begin), pointer(room.there),
    )  # fmt: skip


@jit
def place(task: Task, i: int) -> int:
    """Where y and the weight of an observation lie."""
    return task.order[i] if task.numbered else i


@jit
def row_of(task: Task, i: int, c: int) -> np.int64:
    """The row of an observation in the mode that comes at place c among the others."""
    return np.int64(task.other[i * task.stride + task.skipped + c])


@jit
def write_targets(task: Task, first: int, n: int) -> None:
    """Write y of n observations, and fetch those of the block after them."""
    for i in range(n):
        task.target[i] = task.y[place(task, first + i)]
        if task.numbered:
            prefetch(task.y, task.order[min(first + i + BLOCK, task.last)])


@jit
def write_precisions(task: Task, first: int, n: int, out: Any) -> None:
    """Write precisions of n observations but for what they share: weights times the other modes' noise factors."""
    for i in range(n):
        out[i] = 1.0
    if task.weighted:
        for i in range(n):
            out[i] = task.weight[place(task, first + i)]
            if task.numbered:
                prefetch(task.weight, task.order[min(first + i + BLOCK, task.last)])
    if task.scaled:
        for c in range(task.modes - 1):
            begin = task.noise_start[c if c < task.d else c + 1]
            for i in range(n):
                out[i] *= task.factors[begin + row_of(task, first + i, c)]


@jit
def write_products(task: Task, first: int, n: int) -> None:
    """Write z of n observations under an identity core, the product of the other modes' factors, times the roots."""
    psi, width = task.psi, task.width
    for c in range(task.modes - 1):
        begin = task.start[c if c < task.d else c + 1]
        for i in range(n):
            soon = begin + row_of(task, min(first + i + AHEAD, task.last), c) * width
            for k in range(0, width, LANES):
                prefetch(psi, soon + k)
            at = begin + row_of(task, first + i, c) * width
            for k in range(0, width, LANES):
                if c == 0:
                    move(psi, at + k, task.root[i], task.Z, i * width + k)
                else:
                    multiply(psi, at + k, task.Z, i * width + k)


@jit
def subtract_products(task: Task, first: int, n: int, mine: Any) -> None:
    """Take z'psi_d, psi_d = ``mine``, from targets of n observations: two modes, an identity core, so z as it lies."""
    psi, width, begin = task.psi, task.width, task.start[1 - task.d]
    for i in range(n):
        soon = begin + row_of(task, min(first + i + AHEAD, task.last), 0) * width
        for k in range(0, width, LANES):
            prefetch(psi, soon + k)
        task.target[i] -= dot(psi, begin + row_of(task, first + i, 0) * width, mine, 0, width)


@jit
def write_contractions(task: Task, first: int, n: int) -> None:
    """Write z of n observations under any core, times the roots; take from targets what is added to z'psi_d."""
    # arrays around pointers, whose references are not counted
    modes, entries, d = task.modes, task.entries, task.d
    w, coords, ranks = carray(task.w, entries), carray(task.coords, (entries, modes)), carray(task.ranks, modes)
    begin, there, at = carray(task.begin, entries + 1), carray(task.there, entries * modes), carray(task.at, modes)
    z, work, psi = carray(task.z, task.width), carray(task.work, entries + 1), carray(task.psi, 1)
    for i in range(n):
        for c in range(modes - 1):
            e = c if c < d else c + 1
            at[e] = task.start[e] + row_of(task, first + i, c) * ranks[e]
        if task.kind == SPARSE:
            rest = sparse_others(w, coords, psi, at, d, z, begin, there)
        else:
            rest = others(task.kind, w, coords, ranks, psi, at, d, z, work)
        task.target[i] -= task.root[i] * rest
        for k in range(task.width):
            task.Z[i * task.width + k] = task.root[i] * z[k]


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


@jit
def write_z(task: Task, first: int, n: int) -> None:
    """Write z of n observations times the roots, by the cheapest way."""
    if task.kind == IDENTITY and task.modes > 1:
        write_products(task, first, n)
    else:
        write_contractions(task, first, n)


@jit
def fill(task: Task, first: int, n: int) -> int:
    """Write z and y of n observations, times the root of their precision, to rows of Z and to targets.

    What the observations of a row share of their precision is left out. Returns how many rows to sum over, zeros
    included that follow the observations.
    """
    root, target = task.root, task.target
    if task.weighted or task.scaled:
        write_precisions(task, first, n, root)
        for i in range(n):
            root[i] = np.sqrt(root[i])
    write_targets(task, first, n)
    for i in range(n):
        target[i] *= root[i]
    write_z(task, first, n)
    rows = (n + CHAINS - 1) // CHAINS * CHAINS
    for i in range(n, rows):
        target[i] = 0.0
        for k in range(task.width):
            task.Z[i * task.width + k] = 0.0
    return rows


@jit
def keep(arrays: Any) -> None:
    """Use arrays, so that they live until here: pointers do not keep them."""
