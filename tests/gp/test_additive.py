"""The kernel that is a sum over groups of modes: the covariance of the Tucker model's prior, with its gradient."""

from __future__ import annotations

import numpy as np
import pytest
from tuckergp.cores import Entries

from tuckergp import Mode
from tuckergp.data.tables import as_table
from tuckergp.gp.additive import AdditiveKernel
from tuckergp.gp.exact import evidence
from tuckergp.kernels import SE, Identity, Matern32
from tuckergp.likelihoods.gaussian import Gaussian
from tuckergp.model.design import Design
from tuckergp.model.tucker import Summand, TuckerModel, make_core

RNG = np.random.default_rng(0)
TABLE = as_table({"a": RNG.uniform(-2, 2, 12), "b": RNG.uniform(5, 9, 12), "c": RNG.choice(["x", "y"], 12)}, "X")
MODES = [Mode("a", SE(1.0)), Mode("b", 0.5 * Matern32(1.0), whiten=True), Mode("c", Identity(), constant=False)]


@pytest.mark.parametrize("pattern", ["pairwise", "full", Entries([(0, None, 1), (1, None, 1), (None, None, None)])])
def test_it_is_the_covariance_of_functions_drawn_from_the_prior(pattern):
    """4,000 draws: six standard errors of a covariance, which allow for the heavy tails of products."""
    core = make_core(pattern, [2, 3, 2])
    design, _ = Design.fit(MODES, TABLE, any_residual=False)
    model = TuckerModel(core, Gaussian(), core.default_sigma_u(), core.default_sigma_w())
    rng = np.random.default_rng(1)
    f = np.array([model.predict(model.init(design, rng), design) for _ in range(4000)])
    products = f[:, :, None] * f[:, None, :]
    expected = AdditiveKernel.summed(MODES, TABLE, core.summands())(TABLE)
    error = np.abs(products.mean(axis=0) - expected) / (products.std(axis=0) / 4000**0.5)
    assert error.max() < 6
    assert sum(weight for weight, _ in core.summands()) == pytest.approx(1.0)


def test_gradients_are_finite_differences():
    summands = [Summand(0.5, ()), Summand(0.7, (0,)), Summand(0.2, (1, 2)), Summand(0.1, (0, 1, 2))]
    kernel = AdditiveKernel.summed(MODES, TABLE, summands)
    values = kernel.hyperparameters() | {"scale": np.array([0.8]), "noise": np.array([0.3])}
    y = np.random.default_rng(2).standard_normal(12)
    _, slopes = evidence(kernel, values, TABLE, y)
    assert {"scale", "noise", "c__scale", "a__k1__scale", "b__k1__kernel__lengthscale"} <= set(slopes)
    for name, slope in slopes.items():
        up, down = (evidence(kernel, values | {name: values[name] * np.exp(h)}, TABLE, y)[0] for h in (1e-5, -1e-5))
        assert slope[0] == pytest.approx((up - down) / 2e-5, rel=1e-5, abs=1e-7), name
    diagonal = np.diag(kernel(TABLE))
    np.testing.assert_allclose(kernel.diag(TABLE), diagonal)
    np.testing.assert_allclose(kernel.variances(TABLE).sum(), diagonal.mean())
