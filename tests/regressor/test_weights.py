"""Weighted and repeated observations of a regressor."""

import numpy as np
import pytest

from tuckergp import TuckerGPRegressor
from tuckergp.errors import InputError


@pytest.mark.parametrize("outputs", [1, 2])
def test_weights_and_repeated_rows_in_any_order_give_the_same_draws(outputs):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, size=(20, 2)), rng.standard_normal((20, outputs)).squeeze()
    weight, order = rng.integers(0, 4, size=20), rng.permutation(20)
    settings = {"rank": 2, "draws": 40, "warmup": 40, "random_state": 0}  # far more than rounding takes to show
    weighted = TuckerGPRegressor(**settings).fit(X[order], y[order], sample_weight=weight[order])
    repeated = TuckerGPRegressor(**settings).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight, axis=0))
    np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))
    watched = np.array(weighted.fit_.draws.observations)  # entries of y as it was given
    assert set(watched // outputs) == set(np.flatnonzero(weight[order]))


def test_messages_name_the_rows_as_they_were_given():
    x = np.array([3.0, 2.0, np.nan, 1.0])
    with pytest.raises(InputError, match="row 2"):
        TuckerGPRegressor(["x"]).fit({"x": x}, [1.0, 2.0, 3.0, 4.0], sample_weight=[1, 0, 2, 1])
