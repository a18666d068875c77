"""Derivatives of kernels in the logarithms of their numbers, against finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from tuckergp.data.tables import as_table
from tuckergp.kernels import SE, Constant, Identity, Linear, Matern12, Matern32, Matern52, Periodic

RNG = np.random.default_rng(0)
X = as_table({"a": [0.3, -1.2, 0.3, 2.0], "b": [1.0, 0.4, 1.0, -0.7]}, "X")
Y = as_table({"a": [0.3, 0.9, -0.1], "b": [1.0, 0.2, 2.2]}, "Y")
WEIGHT = RNG.normal(size=(4, 3))
KERNELS = [
    *(family(length) for family in (SE, Matern12, Matern32, Matern52) for length in (0.7, [0.7, 1.9])),
    Periodic(1.3, 0.8),
    Periodic([1.3, 2.1], 0.8),
    Periodic(1.3, [0.8, 1.4]),
    0.3 * (SE(0.5, "a") * (2.0 * Matern32(1.5, "b") + Linear("a"))) + Periodic(3.0, 1.0, "b"),
    Identity() + Constant(),
]


def total(kernel):
    return float(np.sum(WEIGHT * kernel(X, Y)))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_gradients_are_those_of_finite_differences(kernel):
    found, values = kernel.gradient(WEIGHT, X, Y), kernel.hyperparameters()
    assert {name: v.shape for name, v in found.items()} == {name: v.shape for name, v in values.items()}
    for name, value in values.items():
        for j in range(len(value)):
            step = np.zeros(len(value))
            step[j] = 1e-5
            above, below = (kernel.with_hyperparameters({name: value * np.exp(s)}) for s in (step, -step))
            assert found[name][j] == pytest.approx((total(above) - total(below)) / 2e-5, rel=1e-6, abs=1e-8)


def test_replacing_numbers_leaves_the_kernel_alone():
    kernel = 0.5 * SE([1.0, 2.0]) + Identity()
    other = kernel.with_hyperparameters({"k1__scale": np.array([3.0]), "k1__kernel__lengthscale": np.array([4.0, 5.0])})
    assert other == 3.0 * SE([4.0, 5.0]) + Identity()
    assert kernel == 0.5 * SE([1.0, 2.0]) + Identity()


@pytest.mark.parametrize("family", [SE, Matern12, Matern32, Matern52])
@pytest.mark.parametrize("far", [1e3, 1e5, 1e8, 1e12])
def test_lengthscales_of_places_that_are_far_from_most_have_exact_derivatives(family, far):
    """Two groups of places far from each other: derivatives are those of each group alone."""
    rng = np.random.default_rng(0)
    near = 2.0**-10 * rng.integers(-2000, 2000, (2, 20, 2))  # which are exact beside large numbers
    weight, kernel = rng.standard_normal((40, 40)), family([0.5, 2.0])
    both = as_table(np.vstack([near[0], np.round(far) + near[1]]), "X")
    found = kernel.gradient(weight, both, both)["lengthscale"]
    groups = (as_table(rows, "X") for rows in near)
    own = (weight[:20, :20], weight[20:, 20:])
    expected = sum(kernel.gradient(w, rows, rows)["lengthscale"] for w, rows in zip(own, groups, strict=True))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
