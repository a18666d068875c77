"""Mean and standard deviation of numbers of any size."""

import numpy as np
import pytest

from tuckergp.data.standard import mean_and_std


@pytest.mark.parametrize("size", [1e-300, 1e-12, 1.0, 1e12, 1e300])
def test_units_do_not_matter(size):
    values, weight = np.random.default_rng(0).normal(3, 2, 50), np.linspace(0, 2, 50)
    mean, spread = mean_and_std(size * values, weight)
    expected = (weight * values).sum() / weight.sum()
    assert mean / size == pytest.approx(expected, rel=1e-12)
    variance = (weight * (values - expected) ** 2).sum() / weight.sum()
    assert spread / size == pytest.approx(variance**0.5, rel=1e-12)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e-300, 1e300, 1 / 3])
def test_equal_numbers_have_no_spread(value):
    values = np.full(7, value)
    values[3] *= 1 + 1e-15
    assert mean_and_std(values, np.linspace(0.1, 0.7, 7)) == (pytest.approx(value), 0.0)


def test_small_differences_of_large_numbers_are_no_rounding():
    small = np.random.default_rng(0).normal(0, 1e-3, 200)
    mean, std = mean_and_std(1e9 + small)
    assert mean == pytest.approx(1e9)
    assert std == pytest.approx(small.std(), rel=1e-3)
