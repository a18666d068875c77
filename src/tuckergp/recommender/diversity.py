"""Diverse lists: items are chosen one after the other by maximal marginal relevance (Carbonell and Goldstein, 1998).

The next item has the largest (1 - d) z - d s, with its standardised score z in the shortlist and its largest similarity
s to the items chosen before. Two items are similar where the posterior does not tell them apart: the correlation of
their expected ratings by this user over the draws. A MAP estimate has the cosine of their factors instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tuckergp.posterior.fitted import Fit
from tuckergp.recommender.layout import Layout
from tuckergp.stopping import stop_if_unwanted

if TYPE_CHECKING:
    from tuckergp.recommender.serving import Recommended, Request

__all__ = ["diversified", "marginal_relevance"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.integer]

# How many expected ratings are held at once, over all draws.
BLOCK = 4_000_000


def diversified(layout: Layout, fit: Fit, request: Request, shortlists: Recommended) -> Recommended:
    """The lists that maximal marginal relevance makes of longer ones, which are sorted by request and by score."""
    starts = np.flatnonzero(np.diff(shortlists.request, prepend=-1))
    if not len(starts):
        return shortlists
    ends = np.append(starts[1:], len(shortlists.request))
    chosen, ranks = [], []
    step = max(1, BLOCK // (len(fit.draws) * int((ends - starts).max())))
    for first in range(0, len(starts), step):
        bounds = list(zip(starts[first : first + step].tolist(), ends[first : first + step].tolist(), strict=True))
        low, high = bounds[0][0], bounds[-1][1]
        vectors = _vectors(layout, fit, request, shortlists.request[low:high], shortlists.item[low:high])
        for start, end in bounds:
            stop_if_unwanted()
            own = vectors[start - low : end - low]
            best = marginal_relevance(shortlists.score[start:end], own, request.n, request.diversity)
            chosen.append(start + best)
            ranks.append(np.arange(1, len(best) + 1))
    places = np.concatenate(chosen)
    return type(shortlists)(*(column[places] for column in shortlists))._replace(rank=np.concatenate(ranks))


def marginal_relevance(score: Floats, vectors: Floats, n: int, diversity: float) -> npt.NDArray[np.intp]:
    """The places of up to n items in the order of their choice, shape (min(n, m),).

    Parameters
    ----------
    score : ndarray, shape (m,)
    vectors : ndarray, shape (m, w)
        Of length 1, or 0; their inner products are similarities.
    n : int
    diversity : float
        The weight of similarity, from 0 to 1.

    Examples
    --------
    >>> marginal_relevance(np.array([3.0, 2.9, 1.0]), np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), 2, 0.8)
    array([0, 2])
    """
    spread = score.std()
    worth = (1 - diversity) * (score - score.mean()) / (spread if spread > 0 else 1.0)
    chosen = [int(np.argmax(score))]
    nearest = np.full(len(score), -np.inf)
    while len(chosen) < min(n, len(score)):
        worth[chosen[-1]] = -np.inf
        nearest = np.maximum(nearest, vectors @ vectors[chosen[-1]])
        chosen.append(int(np.argmax(worth - diversity * nearest)))
    return np.array(chosen)


def _vectors(layout: Layout, fit: Fit, request: Request, who: Ints, what: Ints) -> Floats:
    """A vector for each pair of a request and an item, of length 1 or 0, whose inner products are similarities."""
    if fit.draws.sampled:
        design = layout.design(request.users[who], what, request.occasion.take(who))
        expected = [fit.likelihood.means(at) for _, at in fit.blocks(design, unseen=True, noise=False)]
        vectors = np.ascontiguousarray(np.concatenate(expected, axis=1).T)
        vectors -= vectors.mean(axis=1, keepdims=True)
    else:
        distinct, place = np.unique(what, return_inverse=True)
        factors = fit.draws.factors(1, layout.sides[1].table.take(distinct))
        vectors = factors.reshape(len(distinct), -1).astype(np.float64)[place]
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0))
