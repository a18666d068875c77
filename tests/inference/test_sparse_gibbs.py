"""Gibbs sampling with patterns of the core: does it leave the joint distribution of unknowns and data invariant?"""

import numpy as np
import pytest

from tests.helpers import quick_and_long, z_scores
from tests.inference.test_gibbs import TIGHT, draw_data, draw_prior, tiny_design, with_targets
from tuckergp.inference.base import Problem
from tuckergp.inference.gibbs import Gibbs
from tuckergp.likelihoods import Gaussian
from tuckergp.model.cores import Entries, Learned
from tuckergp.model.tucker import TuckerModel, make_core
from tuckergp.statistics import core as core_module

# A pairwise core of three modes has seven entries, drawn in blocks of at most three.
LEARNED = Entries([(0, 0, 0), (1, 1, None), (None, 1, 1), (1, None, None)])
CASES = {
    "blocks": ("pairwise", (2, 2, 2), ("rows", "weights", "rows")),
    "learned": (Learned(LEARNED, 0.4), (2, 2, 2), ("rows",) * 3),
    "learned, two modes": (Learned("pairwise"), (2, 2), ("rows", "weights")),
}


def summary(model, design, state, y):
    """Functions of unknowns and data with light tails."""
    f = model.contract([mode.psi for mode in state.modes], state.W, design.index)
    values = [
        np.log(state.likelihood.alpha),
        np.tanh(f[0]),
        np.tanh(f[1]) ** 2,
        np.log1p(np.mean(f**2)),
        np.log1p(np.mean(y**2)),
    ]
    for mode in state.modes:
        values += [np.linalg.slogdet(mode.precision)[1], np.log(np.mean(mode.psi**2)), np.tanh(mode.psi[0, 0])]
    return np.array([*values, np.mean(state.W != 0), *np.tanh(state.W), np.log1p(np.mean(state.W**2))])


@quick_and_long("restarts", 80, 250)
@pytest.mark.parametrize("case", CASES)
def test_sampler_and_data_together_keep_the_prior(case, restarts, monkeypatch):
    """Geweke's test (2004) with restarts, as for other cores. |z| < 4.5 on at most 25 functions, 3 cases: with a fresh
    seed, false alarms below 75 P(|t| > 4.5) for Student's t, which is 0.0008 for 250 restarts and 0.002 for 80.
    """
    monkeypatch.setattr(core_module, "BLOCK", 3)
    spec, ranks, kinds = CASES[case]
    rng = np.random.default_rng(11)
    design, shape = tiny_design(rng, kinds), make_core(spec, ranks, rng)
    model = TuckerModel(shape, Gaussian(1.0), shape.default_sigma_u(), shape.default_sigma_w())
    gibbs, prepared = Gibbs(**TIGHT), Problem(model, design, np.zeros(len(design.index)))
    changes = []
    for restart in range(restarts):
        state = draw_prior(model, design, gibbs, rng)._replace(sweep=restart)
        if shape.share < 1:
            probability = rng.beta(2 * shape.share, 2 - 2 * shape.share)
            state = state._replace(W=state.W * (rng.random(len(state.W)) < probability))
        y = draw_data(model, design, state, rng)
        before = summary(model, design, state, y)
        for _ in range(3):
            state, _ = gibbs.step(with_targets(prepared, y), state, rng)
            y = draw_data(model, design, state, rng)
        changes.append(summary(model, design, state, y) - before)
    changes = np.array(changes)
    assert changes.shape[1] <= 25
    z = z_scores(changes)
    assert np.abs(z).max() < 4.5, np.round(z, 1)
