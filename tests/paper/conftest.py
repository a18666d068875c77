"""Small data with the columns of MovieLens."""

from __future__ import annotations

import numpy as np
import pytest

from tuckergp.data.tables import as_table
from tuckergp.paper.movielens_data import Entities, Ratings, age_bins


@pytest.fixture(scope="session")
def small() -> tuple[Entities, Ratings]:
    """40 users and 30 items whose ratings follow a rank-2 model with an effect of sex and genre."""
    rng = np.random.default_rng(0)
    sex = rng.integers(2, size=40)
    genres = [[name for name in ("Drama", "War") if rng.random() < 0.5] for _ in range(30)]
    users = as_table(
        {
            "user_id": np.arange(1, 41),
            "age": age_bins(rng.integers(10, 70, size=40)),
            "sex": ["FM"[s] for s in sex],
            "occupation": ["writer"] * 40,
        },
        "users",
    )
    items = as_table({"item_id": np.arange(1, 31), "genres": genres}, "items")
    index = np.stack([rng.integers(40, size=900), rng.integers(30, size=900)], axis=1).astype(np.int32)
    u, v = rng.standard_normal((40, 2)), rng.standard_normal((30, 2))
    drama = np.array(["Drama" in kinds for kinds in genres])
    f = np.sum(u[index[:, 0]] * v[index[:, 1]], axis=1) + (sex[index[:, 0]] - 0.5) * drama[index[:, 1]]
    rating = np.clip(np.round(3.5 + 0.7 * f + 0.3 * rng.standard_normal(900)), 1, 5)
    return Entities(users, items), Ratings(index, rating)
