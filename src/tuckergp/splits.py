"""Ways to hold out a part of a table of ratings."""

from __future__ import annotations

import numpy as np

from tuckergp.errors import InputError
from tuckergp.random import stream
from tuckergp.tables import Table

__all__ = ["holdout"]


def holdout(
    ratings: Table, *, test_size: float = 0.2, new_users: float = 0.0, new_items: float = 0.0, seed: int = 0
) -> tuple[Table, Table]:
    """Split ratings at random into a training and a test part.

    Parameters
    ----------
    ratings : Table
        With columns user_id and item_id.
    test_size : float
        Share of the ratings held out.
    new_users, new_items : float
        Share of the users and items of which all ratings are held out.
    seed : int

    Returns
    -------
    train, test : Table

    Examples
    --------
    >>> from tuckergp.datasets import make_ratings
    >>> ratings = make_ratings(n_users=50, n_items=40, n_ratings=800, random_state=0).train
    >>> train, test = holdout(ratings, test_size=0.25, new_users=0.1)
    >>> len(train) + len(test) == len(ratings)
    True
    """
    for name, share in (("test_size", test_size), ("new_users", new_users), ("new_items", new_items)):
        if not 0 <= share < 1:
            raise InputError(f"{name} must be a share from 0 to below 1, not {share!r}.")
    rng = stream(seed)
    held_out = rng.random(len(ratings)) < test_size
    for key, share in (("user_id", new_users), ("item_id", new_items)):
        ids, code = np.unique(ratings[key], return_inverse=True)
        chosen = np.zeros(len(ids), dtype=bool)
        chosen[rng.permutation(len(ids))[: round(share * len(ids))]] = True
        held_out |= chosen[code]
    return ratings.take(np.flatnonzero(~held_out)), ratings.take(np.flatnonzero(held_out))
