"""Models that both tests and tools fit."""

import numpy as np

from tuckergp import TuckerGPRegressor


def map_model():
    """A regression model over a map, in two seasons."""
    rng = np.random.default_rng(0)
    X = {
        "longitude": rng.uniform(-2, 2, 200),
        "latitude": rng.uniform(0, 3, 200),
        "season": rng.choice(["dry", "wet"], 200),
    }
    y = np.sin(X["longitude"]) * X["latitude"] + (X["season"] == "wet") + 0.1 * rng.standard_normal(200)
    return TuckerGPRegressor(rank=3, draws=20, warmup=20, random_state=0).fit(X, y)
