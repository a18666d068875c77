"""Expected ratings, or probabilities of a choice, of many users and items at once: a matrix, without circumstances.

Where the mean of an observation is linear in f, the posterior mean is one product over all draws. Elsewhere there is
one product for each draw, and what turns f into the mean is applied to it: the mean over draws of a link is not the
link of the mean. Pairs are predicted one by one only where rows have noise factors of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.data.tables import Table
from tuckergp.likelihoods.given import Predicted
from tuckergp.posterior.draws import PREDICTION_SEED
from tuckergp.posterior.fitted import Fit
from tuckergp.recommender.factors import Factors
from tuckergp.recommender.layout import Layout

__all__ = ["expected_matrix"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.integer]


def expected_matrix(
    layout: Layout, fit: Fit, users: Ints, items: Ints, worth: Callable[[Floats], Floats] | None = None
) -> Floats:
    """The posterior mean of each pair of some rows of users and of items, not clipped, shape (n_users, n_items).

    With ``worth``, the mean over the draws of what this makes of the expected rating in each.
    """
    if not len(users) or not len(items):
        return np.zeros((len(users), len(items)))
    if fit.likelihood.linear and worth is None:
        return _by_one_product(layout, fit, users, items)
    noisy = not fit.likelihood.linear and any(mode.row_noise is not None for mode in fit.draws.modes)
    return (_by_pairs if noisy else _by_draws)(layout, fit, users, items, worth or np.asarray)


def _by_one_product(layout: Layout, fit: Fit, users: Ints, items: Ints) -> Floats:
    factors = Factors(layout, fit)
    vectors, alone = factors.users(users, Table({}, "users", len(users)))
    V = factors.of_items(items)
    width = V.shape[1] * V.shape[2]
    f = vectors.reshape(len(users), width) @ V.reshape(len(items), width).T
    total = f.astype(np.float64) + alone.sum(axis=1)[:, None]
    return np.asarray(fit.mean + fit.scale * total / len(fit.draws))


def _by_draws(layout: Layout, fit: Fit, users: Ints, items: Ints, worth: Callable[[Floats], Floats]) -> Floats:
    factors = Factors(layout, fit, unseen=PREDICTION_SEED)
    vectors, alone = factors.users(users, Table({}, "users", len(users)))
    V, total = factors.of_items(items), np.zeros(len(users) * len(items))
    for s in range(len(fit.draws)):
        f: Any = vectors[:, s] @ V[:, s].T + alone[:, s, None].astype(np.float32)
        unknowns = {name: values[s : s + 1] for name, values in fit.draws.unknowns.items()}
        total += worth(fit.likelihood.means(Predicted(f.reshape(1, -1), unknowns)))[0]
    return total.reshape(len(users), len(items)) / len(fit.draws)


def _by_pairs(layout: Layout, fit: Fit, users: Ints, items: Ints, worth: Callable[[Floats], Floats]) -> Floats:
    who, what = np.repeat(users, len(items)), np.tile(items, len(users))
    design = layout.design(who, what, Table({}, "pairs", len(who)))
    each = [worth(fit.likelihood.means(at)).mean(axis=0) for _, at in fit.blocks(design, unseen=True)]
    return np.concatenate(each).reshape(len(users), len(items))
