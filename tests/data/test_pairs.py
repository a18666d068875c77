"""One value for a pair that several rows have."""

import numpy as np
import pytest

from tuckergp.data.pairs import one_of_each


@pytest.mark.parametrize("how", ["last", "mean", "sum"])
def test_each_pair_has_one_row_and_the_value_of_all_its_rows(how):
    rng = np.random.default_rng(0)
    pairs, values = rng.integers(0, 30, size=200), rng.standard_normal(200)
    rows, found = one_of_each(pairs, values, how)
    assert sorted(pairs[rows]) == sorted(set(pairs))
    assert (np.diff(rows) > 0).all()
    for row, value in zip(rows, found, strict=True):
        of_pair = np.flatnonzero(pairs == pairs[row])
        assert row == of_pair[-1 if how == "last" else 0]
        expected = {"last": values[of_pair[-1]], "mean": values[of_pair].mean(), "sum": values[of_pair].sum()}
        assert value == pytest.approx(expected[how])
