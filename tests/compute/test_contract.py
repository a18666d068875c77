"""Compiled contractions against their NumPy twins."""

import numpy as np
import pytest

from tests.helpers import core_of, dense_f, dense_others
from tuckergp.compute import contract
from tuckergp.compute.contract import add_core_gradient, all_others, evaluate, evaluate_draws, others
from tuckergp.model.tucker import pack

RANKS = [(3,), (2, 3), (1, 1), (3, 1, 2), (5, 1, 1), (1, 1, 4), (2, 3, 2, 4)]


@pytest.mark.parametrize("name", ["identity", "full", "sparse"])
@pytest.mark.parametrize("ranks", RANKS)
def test_contractions_equal_tensordot(name, ranks):
    rng = np.random.default_rng(0)
    ranks = [max(ranks)] * len(ranks) if name == "identity" else list(ranks)
    core = core_of(name, ranks, rng)
    W = rng.standard_normal(core.n_weights)
    w = W if core.learned else np.ones(1)
    psi = [rng.standard_normal((4, r)) for r in ranks]
    flat, start = pack(psi)
    index = rng.integers(4, size=(6, len(ranks))).astype(np.int32)
    f = evaluate(core.kind, w, core.coords, core.ranks, flat, start, index)
    for i, rows in enumerate(index):
        vectors = [psi[d][row] for d, row in enumerate(rows)]
        assert f[i] == pytest.approx(dense_f(core, W, vectors), rel=1e-12, abs=1e-12)
        at = start[:-1] + rows * core.ranks
        z_all, work = np.empty(sum(ranks)), np.empty(2 * w.size + len(ranks))
        assert all_others(core.kind, w, core.coords, core.ranks, flat, at, z_all, work) == pytest.approx(f[i])
        for d in range(len(ranks)):
            z = np.empty(ranks[d])
            others(core.kind, w, core.coords, core.ranks, flat, at, d, z, work)
            expected = dense_others(core, W, vectors, d)
            np.testing.assert_allclose(z, expected, rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(np.split(z_all, np.cumsum(ranks)[:-1])[d], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["identity", "full", "sparse"])
@pytest.mark.parametrize("ranks", [(3,), (3, 1, 2)])
def test_the_gradient_of_a_core_is_f_with_one_weight_at_a_time(name, ranks):
    """f is linear in the weights; an identity core has none that are learned."""
    rng = np.random.default_rng(0)
    ranks = [max(ranks)] * len(ranks) if name == "identity" else list(ranks)
    core = core_of(name, ranks, rng)
    vectors = [rng.standard_normal(r) for r in ranks]
    flat, start = pack([vector[None] for vector in vectors])
    gradient, work = np.ones(core.n_weights), np.empty(2 * core.n_weights + len(ranks))
    add_core_gradient(core.kind, core.coords, core.ranks, flat, start[:-1], 0.7, gradient, work)
    slopes = [dense_f(core, W, vectors) for W in np.eye(core.n_weights)] if core.learned else 0.0
    np.testing.assert_allclose(gradient, 1 + 0.7 * np.asarray(slopes), rtol=1e-12)


@pytest.mark.parametrize("few", [0, 10**6])
@pytest.mark.parametrize("name", ["identity", "full"])
@pytest.mark.parametrize("ranks", [(3,), (2, 2), (3, 3, 3)])
def test_contractions_of_all_draws_equal_those_of_each(name, ranks, few, monkeypatch):
    monkeypatch.setattr(contract, "FEW", few)  # compiled, and by NumPy
    rng = np.random.default_rng(0)
    core = core_of(name, list(ranks), rng)
    W = rng.standard_normal((4, core.n_weights)) if core.learned else np.ones((4, 1))
    psi = [rng.standard_normal((5 + d, 4, r)) for d, r in enumerate(ranks)]
    flat, start = pack(psi)
    index = np.stack([rng.integers(5 + d, size=7) for d in range(len(ranks))], axis=1).astype(np.int32)
    found = evaluate_draws(core.kind, W, core.coords, core.ranks, flat, start, index)
    assert found.shape == (7, 4)
    for i, rows in enumerate(index):
        for s in range(4):
            expected = dense_f(core, W[s] if core.learned else None, [psi[d][row, s] for d, row in enumerate(rows)])
            assert found[i, s] == pytest.approx(expected, rel=1e-12, abs=1e-12)
    none = evaluate_draws(core.kind, W, core.coords, core.ranks, flat, start, index[:0])
    assert none.shape == (0, 4)
