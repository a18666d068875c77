"""Similar users and items, and their vectors for nearest-neighbour indexes.

Factors are not identified: an invertible map of the users' factors, undone in the items', gives the same predictions.
So items are compared by their predictions for users: the covariance over users, averaged over the draws, is an inner
product of the items' vectors in the metric of the users' (and the other way round).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.recommender.factors import Factors
from tuckergp.stopping import stop_if_unwanted

__all__ = ["Embeddings", "embeddings", "positions", "similarities"]

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Ints = npt.NDArray[np.integer]

# The largest number of draws that comparisons use: similarities of the mean hardly change with more.
MOST_DRAWS = 50
# The largest number of users, or items, whose factors give the metric.
MOST_ROWS = 20_000
# Of compressed vectors: columns beside those wanted, and passes, which make the singular vectors accurate.
MORE_COLUMNS, PASSES = 16, 6


@dataclass(frozen=True)
class Embeddings:
    """Vectors whose inner products are predictions: ``offset + users @ items.T``.

    Attributes
    ----------
    user_ids, item_ids : list
    users : ndarray of float32, shape (n_users, width)
    items : ndarray of float32, shape (n_items, width)
    offset : float
    """

    user_ids: list[Any]
    users: Singles
    item_ids: list[Any]
    items: Singles
    offset: float

    def compressed(self, width: int) -> Embeddings:
        """Vectors of at most this width, whose products are the nearest in least squares over all pairs."""
        if isinstance(width, bool) or not isinstance(width, int | np.integer) or width < 1:
            raise InputError(f"width must be a whole number from 1 on or None, not {width!r}.")
        users, items = _compressed(self.users, self.items, int(width))
        return replace(self, users=users, items=items)


def similarities(factors: Factors, d: int, row: int) -> Floats:
    """Similarities of one user (d = 0) or item (d = 1), given by its row, to all rows, from -1 to 1, shape (M,).

    The correlation of their predictions over items or users, after what all like or dislike is removed.
    """
    flat = _by_predictions(factors, d)
    length = np.sqrt(np.einsum("ij,ij->i", flat, flat, dtype=np.float64))
    product = (flat @ flat[row]).astype(np.float64)
    both = length * length[row]
    return np.asarray(np.divide(product, both, out=np.zeros(len(flat)), where=both > 0))


def positions(factors: Factors, d: int, width: int) -> tuple[Floats, Floats]:
    """Principal axes of the predictions of all users (d = 0) or items (d = 1): where each row lies.

    Rows that the same others are predicted to like lie close together, and the average row at the origin.

    Returns
    -------
    ndarray, shape (M, width)
        Coordinates, in standard deviations of f.
    ndarray, shape (width,)
        The share of the variance between rows that each axis holds.
    """
    flat = _by_predictions(factors, d)
    side = factors.layout.sides[d]
    rows = flat[side.current & side.table.seen]
    values, axes = np.linalg.eigh((rows.T @ rows).astype(np.float64))
    best = np.argsort(-values)[:width]
    largest = axes[np.argmax(np.abs(axes[:, best]), axis=0), best]
    turned = (axes[:, best] * np.sign(largest)).astype(np.float32)  # eigenvectors have no sign of their own
    places = (flat @ turned).astype(np.float64) / np.sqrt(len(factors.draws))
    return places, np.maximum(values[best], 0.0) / max(float(values.sum()), np.finfo(float).tiny)


def _by_predictions(factors: Factors, d: int) -> Singles:
    """Vectors of all rows whose inner products are covariances of predictions, summed over draws, (M, S r).

    Relative to the mean of the rows with ratings: what all like or dislike is removed.
    """
    rated, those = (np.flatnonzero(side.current & side.table.seen) for side in factors.layout.sides[:: 1 - 2 * d])
    own, other = _vectors(factors, d), _vectors(factors, 1 - d, those[:: max(1, -(-len(those) // MOST_ROWS))])
    mapped = np.zeros(own.shape, dtype=np.float32)
    if not len(other):  # all of them were forgotten
        return mapped.reshape(len(mapped), -1)
    for s in range(own.shape[1]):
        stop_if_unwanted()
        spread = other[:, s] - other[:, s].mean(axis=0)
        covariance = (spread.T @ spread).astype(np.float64) / len(spread)
        values, axes = np.linalg.eigh(covariance)
        root = (axes * np.sqrt(np.maximum(values, 0.0))).astype(np.float32)
        mapped[:, s] = (own[:, s] - own[rated, s].mean(axis=0)) @ root
    return mapped.reshape(len(mapped), -1)


def _vectors(factors: Factors, d: int, rows: Ints | None = None) -> Singles:
    """The vectors of some users or items, else of all known and last of an unknown one, without time and context."""
    core = factors.draws.model.core
    if d == 0:
        rows = np.arange(factors.layout.sides[0].table.n_rows) if rows is None else rows
        vectors, alone = factors.users(rows, Table({}, "questions", len(rows)))
        return np.concatenate([vectors, alone[:, :, None].astype(np.float32)], axis=2) if core.leaves_out else vectors
    out = np.ones((factors.layout.sides[1].table.n_rows, len(factors.draws), int(core.ranks[1]) + core.leaves_out))
    for numbers, table in factors.items:
        out[numbers, :, : table.shape[2]] = table
    return out.astype(np.float32) if rows is None else out[rows].astype(np.float32)


def embeddings(factors: Factors) -> Embeddings:
    """Vectors of all known users and items: the draws side by side."""
    layout, fit = factors.layout, factors.fit
    rows = [np.flatnonzero(side.current) for side in layout.sides]
    Q, V = (_vectors(factors, d)[rows[d]] for d in range(2))
    Q, V = (table.reshape(len(table), -1) for table in (Q, V))
    Q = Q * np.float32(fit.scale / len(fit.draws))
    ids = [side.ids_at(own) for side, own in zip(layout.sides, rows, strict=True)]
    return Embeddings(ids[0], np.ascontiguousarray(Q), ids[1], np.ascontiguousarray(V), fit.mean)


def _compressed(Q: Singles, V: Singles, width: int) -> tuple[Singles, Singles]:
    """Vectors of a smaller width whose products are nearest to Q V', in least squares over all pairs.

    The leading singular vectors by subspace iteration: each pass multiplies by Q V' and its transpose, never formed.
    """
    start = np.random.default_rng(0).standard_normal((len(V), min(width + MORE_COLUMNS, len(V), *Q.shape)))
    right = start.astype(np.float32)
    for _ in range(PASSES):
        left = np.linalg.qr(Q @ (V.T @ right))[0]
        right = np.linalg.qr(V @ (Q.T @ left))[0]
    left, sizes, turn = np.linalg.svd((Q @ (V.T @ right)).astype(np.float64), full_matrices=False)
    roots = np.sqrt(sizes[:width])
    return (left[:, :width] * roots).astype(np.float32), (right @ (turn[:width].T * roots)).astype(np.float32)
