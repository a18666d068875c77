"""Upper bounds of products q . v that need only the first coordinates: for `tuckergp.compute.topk`.

Coordinates are changed, q -> A'q and v -> B'v with A B' = I, so that the product stays and as much of it as possible is
in the first ones: balanced, the singular vectors of Q V'. Draws of a posterior resemble each other, so a few
coordinates of all that the draws have together carry nearly everything. With s the product of the first ones,
Cauchy and Schwarz bound the rest,

    q . v <= s + |rest of q| |rest of v|.

The two norms are enlarged so that this holds in float32 arithmetic too: by all errors of rounding that there can be.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.compute.contract import Array, jit
from tuckergp.compute.threads import share

__all__ = ["STEP", "Bounds", "Rotated", "Tile", "make_bounds", "rotate", "tighten"]

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]

# Level l of a bound uses the first l STEP coordinates.
STEP = 16

# Rows from which the coordinates are found, and by which levels are chosen; items of a tile, rows changed at once.
BASIS_ROWS, SAMPLE, TILE, ROTATED = 8192, 64, 2048, 1024

# The least part of an average direction's variance that a direction is taken to have.
RIDGE = 1e-6

# Nanoseconds of: a multiply-add in a matrix product, comparing a bound, looking at an item whose bound reaches the
# threshold, one more step of its bound, multiplying it out. Only their ratios matter, and only for speed.
MULTIPLY, COMPARE, LOOK, TIGHTEN, EXACT = 0.025, 0.3, 100.0, 6.0, 100.0


class Rotated(NamedTuple):
    """Rows in the new coordinates, each divided by its unit.

    Attributes
    ----------
    rows : ndarray of float32, shape (n, STEP levels)
    tails : ndarray of float32, shape (n, 1 + levels)
        Enlarged norms of what each level leaves out.
    units : ndarray, shape (n,)
        What the row's products with items are divided by; infinite for rows of zeros.
    """

    rows: Singles
    tails: Singles
    units: Floats


class Tile(NamedTuple):
    """Items from first to last, bounded at a level: their coordinates, transposed, and norms of the rest."""

    first: int
    last: int
    level: int
    columns: Singles
    tail: Singles


class Bounds(NamedTuple):
    """All that bounds need of the items.

    Attributes
    ----------
    tiles : list of Tile
        The most promising items first, each with as many coordinates as pay.
    items : Rotated
        In the order of the tiles.
    number : ndarray of int, shape (m,)
        Which items these are.
    to_rows : ndarray, shape (w, w)
        A.
    error : float
        At least the largest singular value of A B' - I, with errors of rounding in A'q and B'v.
    unit : float
        Of the items.
    """

    tiles: list[Tile]
    items: Rotated
    number: npt.NDArray[np.intp]
    to_rows: Floats
    error: float
    unit: float


def make_bounds(Q: Singles, V: Singles, candidates: npt.NDArray[Any], k: int, indptr: Array, seen: Array) -> Bounds:
    """Choose coordinates, the order of items and the levels of tiles, by a sample of the rows."""
    A, B, error = balanced(Q[every(len(Q), BASIS_ROWS)], V[candidates[every(len(candidates), BASIS_ROWS)]])
    unit = float(np.sqrt(np.max(np.einsum("ij,ij->i", V, V, dtype=np.float64))) * np.linalg.norm(B, 2)) or 1.0
    items = rotate_items(V, candidates, B, error, unit)
    sample = every(len(Q), SAMPLE)
    rows = rotate(Q[sample], A, error, unit)
    products = rows.rows @ items.rows.T
    for i, row in enumerate(sample):
        own = seen[indptr[row] : indptr[row + 1]]
        place = np.searchsorted(candidates, own)
        place = place[(place < len(candidates)) & (candidates[np.minimum(place, len(candidates) - 1)] == own)]
        products[i, place] = -np.inf
    limit = np.partition(products, -k, axis=1)[:, -k] if k < len(candidates) else np.full(len(sample), -np.inf)
    order = np.argsort(-np.max(products - np.maximum(limit, -1e30)[:, None], axis=0), kind="stable")
    items = Rotated(items.rows[order], items.tails[order], items.units)
    starts = [*range(0, len(order), TILE), len(order)]
    tiles = []
    for first, last in pairwise(starts):
        part = items.rows[first:last], items.tails[first:last]
        level = best_level(needed(limit.astype(np.float32), *rows, *part), len(sample) * (last - first))
        tiles.append(Tile(first, last, level, part[0][:, : level * STEP].T, part[1][:, level].copy()))
    return Bounds(tiles, items, candidates[order], A, error, unit)


def every(n: int, most: int) -> npt.NDArray[np.intp]:
    """Evenly spaced numbers below n."""
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(np.intp)


def balanced(Q: Singles, V: Singles) -> tuple[Floats, Floats, float]:
    """A and B with A B' = I such that Q A and V B have the same, diagonal, second moments, largest first.

    Rows of Q count alike, whatever their norms. Also how far A B' is from I.
    """
    roots = []
    for table, alike in ((Q, True), (V, False)):
        X = table.astype(np.float64)
        norms = np.linalg.norm(X, axis=1, keepdims=True)
        X /= np.maximum(norms if alike else norms.max(initial=0.0), np.finfo(np.float64).tiny)
        G = X.T @ X
        size = float(np.trace(G)) / len(G)
        values, vectors = np.linalg.eigh(G / size if size > 0 else G)
        scale = np.sqrt(np.maximum(values, 0.0) + RIDGE)
        roots.append(((vectors * scale) @ vectors.T, (vectors / scale) @ vectors.T))
    (root_q, inverse_q), (root_v, inverse_v) = roots
    left, values, right = np.linalg.svd(root_q @ root_v)
    A, B = inverse_q @ left * np.sqrt(values), inverse_v @ right.T * np.sqrt(values)
    rounding = len(A) * np.finfo(np.float64).eps * np.linalg.norm(A) * np.linalg.norm(B)
    return A, B, float(np.linalg.norm(A @ B.T - np.eye(len(A))) + 2 * rounding)


def rotate(X: Singles, A: Floats, error: float, unit: float) -> Rotated:
    """Rows of Q in the new coordinates, each of norm 1; units are for products with items of this unit."""
    double = X.astype(np.float64)
    Y = double @ A
    norms, plain = np.linalg.norm(Y, axis=1), np.linalg.norm(double, axis=1)
    own = np.where(norms > 0, norms, np.inf)
    rows, tails = enlarged(Y / own[:, None], plain / own, error)
    tails[norms == 0] = 0.0
    return Rotated(rows, tails, own * unit)


def rotate_items(V: Singles, candidates: npt.NDArray[Any], B: Floats, error: float, unit: float) -> Rotated:
    """Items in the new coordinates, all divided by one unit."""
    levels = -(-V.shape[1] // STEP)
    out = Rotated(
        np.empty((len(candidates), levels * STEP), dtype=np.float32),
        np.empty((len(candidates), levels + 1), dtype=np.float32),
        np.full(1, unit),
    )

    def part(first: int, last: int) -> None:
        for start in range(first, last, ROTATED):
            rows = slice(start, min(start + ROTATED, last))
            X = V[candidates[rows]].astype(np.float64) / unit
            # the smallest numbers are not relative to an item's norm
            out.rows[rows], tails = enlarged(X @ B, np.linalg.norm(X, axis=1), error)
            out.tails[rows] = tails + np.float32(1e-30)

    share(part, np.append(np.arange(0, len(candidates), ROTATED), len(candidates)))
    return out


def enlarged(Y: Floats, plain: Floats, error: float) -> tuple[Singles, Singles]:
    """Y in float32, filled up to whole levels, and norms of the rest after every level.

    A norm d becomes (d^2 + c |y|^2 + error |x|^2)^(1/2), x the row before the change of coordinates. By Cauchy and
    Schwarz the product of two of them is at least d e + c |y_q| |y_v| + error |x_q| |x_v|; c is twice the relative
    error of sums of w + 1 products and of entries rounded to float32.
    """
    n, w = Y.shape
    levels = -(-w // STEP)
    rows = np.zeros((n, levels * STEP))
    rows[:, :w] = Y
    squares = np.square(rows).reshape(n, levels, STEP).sum(axis=2)
    rest = np.zeros((n, levels + 1))
    rest[:, :-1] = np.cumsum(squares[:, ::-1], axis=1)[:, ::-1]
    c = 2 * (levels * STEP + 8) * 2.0**-24
    tails = np.sqrt(rest + c * rest[:, :1] + error * np.square(plain)[:, None]) * (1 + c)
    return rows.astype(np.float32), tails.astype(np.float32)


@jit
def part_of_product(q: Array, v: Array, first: int, last: int) -> np.float32:
    """Q . v over some coordinates; places are unsigned, so that the sum is vectorised."""
    total = np.float32(0.0)
    for j in range(np.uintp(first), np.uintp(last)):
        total += q[j] * v[j]
    return total


@jit
def tighten(
    total: np.float32, limit: np.float32, level: int, row: Array, row_tails: Array, item: Array, item_tails: Array
) -> bool:
    """Whether the bound reaches the limit at later levels too, each twice the one before; ``total`` is the product."""
    levels = row_tails.size - 1
    while level < levels:
        after = min(2 * level, levels)
        total += part_of_product(row, item, level * STEP, after * STEP)
        if total + row_tails[after] * item_tails[after] < limit:
            return False
        level = after
    return True


@jit
def needed(limit: Array, rows: Array, tails: Array, units: Array, items: Array, item_tails: Array) -> Array:
    """How many pairs of rows and items are still in question after each level, shape (1 + levels,)."""
    left = np.zeros(tails.shape[1], dtype=np.int64)
    for i in range(len(rows)):
        for j in range(len(items)):
            total = np.float32(0.0)
            for level in range(tails.shape[1]):
                if level > 0:
                    total += part_of_product(rows[i], items[j], (level - 1) * STEP, level * STEP)
                if total + tails[i, level] * item_tails[j, level] < limit[i]:
                    break
                left[level] += 1
    return left


def best_level(left: npt.NDArray[np.int64], pairs: int) -> int:
    """The level, 1 or more, at which a tile is cheapest, ``left`` of the pairs being in question after each."""
    levels = np.arange(len(left))
    later = np.append(np.cumsum(left[-2::-1])[::-1], 0)  # steps that pairs still in question take
    costs = pairs * (MULTIPLY * levels * STEP + COMPARE) + LOOK * left + TIGHTEN * later + EXACT * left[-1]
    return 1 + int(np.argmin(costs[1:]))
