"""Held-out parts."""

import numpy as np
import pytest

from tuckergp.datasets import make_ratings
from tuckergp.errors import InputError
from tuckergp.splits import holdout


def test_parts_are_disjoint_and_complete_and_new_users_and_items_are_only_in_the_test_part():
    ratings = make_ratings(n_users=100, n_items=80, n_ratings=3000, random_state=0).train
    train, test = holdout(ratings, test_size=0.2, new_users=0.1, new_items=0.05, seed=3)
    pairs = [set(zip(part["user_id"], part["item_id"], strict=True)) for part in (train, test)]
    assert not pairs[0] & pairs[1]
    assert len(pairs[0]) + len(pairs[1]) == len(ratings)
    for key, share in (("user_id", 0.1), ("item_id", 0.05)):
        new = set(test[key]) - set(train[key])
        assert len(new) >= round(share * len(set(ratings[key])))
    again, _ = holdout(ratings, test_size=0.2, new_users=0.1, new_items=0.05, seed=3)
    np.testing.assert_array_equal(train["user_id"], again["user_id"])


def test_shares_must_be_shares():
    ratings = make_ratings(n_users=20, n_items=20, n_ratings=200, random_state=0).train
    with pytest.raises(InputError, match=r"test_size must be a share from 0 to below 1, not 1\.5"):
        holdout(ratings, test_size=1.5)
