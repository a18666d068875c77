"""Modes with a chain in Gibbs sampling and ALS: invariance, predictions between and beyond, the dense solution."""

import numpy as np
import pandas as pd
import pytest
from scipy import linalg

from tests.helpers import core_of, flatten
from tests.inference.test_gibbs import TIGHT, draw_data, draw_prior, kernel_of, summary, tiny_design
from tuckergp import Mode, TuckerGPRegressor
from tuckergp.datasets import load_california, load_wind
from tuckergp.design import Design, ModeTable
from tuckergp.errors import InputError
from tuckergp.features import Chain, Cholesky
from tuckergp.inference import ALS, SGD, Gibbs
from tuckergp.inference.base import Problem
from tuckergp.inference.draws import Draws
from tuckergp.inference.loop import run
from tuckergp.kernels import SE, Identity, Matern12, Matern32, Matern52, Periodic
from tuckergp.likelihoods import Gaussian
from tuckergp.metrics import rmse
from tuckergp.model import Parameters, TuckerModel
from tuckergp.tables import as_table

NEW = np.array([-0.3, 0.9, 4.0])  # before, between and mostly after the knots of `tiny_design`


def at_new_values(design):
    """The chain modes at NEW, with features of zero, the other modes as they are."""
    modes = []
    for table in design.modes:
        if table.line is not None:
            line = type(table.line)(table.line.knots, NEW, *(getattr(table.line, k) for k in ("order", "lengthscale", "scale")))
            table = ModeTable(np.zeros((len(NEW), table.features.shape[1])), None, None, table.blocks, line)
        modes.append(table)
    return Design(tuple(modes), np.zeros((1, len(modes)), dtype=np.int32))


def dense_new_values(table, mode, rng):
    """E at NEW given E at the knots, by the dense Gaussian process."""
    line = table.line
    kernel = kernel_of(line, mode.lengthscale)
    E = mode.psi - table.features @ mode.B
    K = kernel(line.t) + 1e-10 * np.eye(len(line.t))
    weights = np.linalg.solve(K, kernel(line.t, NEW)).T
    C = line.scale**2 * (kernel(NEW) - weights @ kernel(line.t, NEW))
    root = np.linalg.cholesky(np.linalg.inv(mode.precision))
    values, vectors = np.linalg.eigh(C)
    noise = vectors @ (np.sqrt(np.maximum(values, 0))[:, None] * rng.standard_normal((len(NEW), len(root))))
    return weights @ E + noise @ root.T


def new_summary(table, mode, E):
    """Light-tailed functions of new values, of their products and of what they share with the first knot."""
    first = (mode.psi - table.features @ mode.B)[table.line.sorter[0]]
    values = np.vstack([E, first])
    products = np.tanh(values @ mode.precision @ values.T)
    return [*np.tanh(values[:, 0]), *products[np.triu_indices(len(values))]]


GEWEKE = [
    ("identity", (2, 2), ("matern12", "rows"), "shared"),
    ("identity", (2, 2), ("matern32", "rows"), "rows"),
    ("full", (2, 2), ("matern32", "matern12"), "shared"),
    ("full", (2, 1, 2), ("matern12", "weights", "rows"), "rows"),
]


@pytest.mark.parametrize(("core", "ranks", "kinds", "noise"), GEWEKE)
def test_sampler_and_data_together_keep_the_prior(core, ranks, kinds, noise):
    # As in test_gibbs (Geweke 2004), with the lengthscales and the chain at new values among the functions; |z| < 5 on
    # at most 60 functions a case, 4 cases: false alarms below 240 P(|t_39| > 5) = 0.003.
    rng = np.random.default_rng(11)
    design = tiny_design(rng, kinds)
    new = at_new_values(design)
    shape = core_of(core, list(ranks), rng)
    model = TuckerModel(shape, Gaussian(1.0), shape.default_sigma_u(), shape.default_sigma_w())
    gibbs = Gibbs(noise=noise, **TIGHT)
    chains = [d for d, table in enumerate(design.modes) if table.line is not None]
    n = 1200
    prior = []
    for _ in range(n):
        state = draw_prior(model, design, gibbs, rng)
        more = [dense_new_values(design.modes[d], state.modes[d], rng) for d in chains]
        more = [value for d, E in zip(chains, more, strict=True) for value in new_summary(design.modes[d], state.modes[d], E)]
        prior.append([*summary(model, design, state, draw_data(model, design, state, rng)), *more])
    chain = []
    state = draw_prior(model, design, gibbs, rng)
    for _ in range(2 * n):
        y = draw_data(model, design, state, rng)
        problem = Problem(model, design, y)
        state, _ = gibbs.step(problem, state, rng)
        psi = Draws(model, [], True)._draw_factors(gibbs.draw(problem, state), new, rng)
        more = [value for d in chains for value in new_summary(design.modes[d], state.modes[d], psi[d])]
        chain.append([*summary(model, design, state, y), *more])
    prior, chain = np.array(prior), np.array(chain)
    batches = chain.reshape(40, -1, chain.shape[1]).mean(axis=1)
    spread = np.sqrt(prior.var(axis=0) / n + batches.var(axis=0, ddof=1) / 40)
    z = (chain.mean(axis=0) - prior.mean(axis=0)) / np.maximum(spread, 1e-12)
    assert prior.shape[1] <= 60
    assert np.abs(z).max() < 5, np.round(z, 1)
