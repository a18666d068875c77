"""The compiled epoch against plain NumPy steps that touch every parameter."""

from dataclasses import replace

import numpy as np
import pytest

from tests.helpers import random_problem
from tuckergp.inference.sgd import SGD
from tuckergp.model.tucker import Parameters
from tuckergp.random import stream


def numpy_batches(state, batch_size, rng):
    order = rng.permutation(state.train)
    return [order[i : i + batch_size] for i in range(0, len(order), batch_size)]


def data_gradient(problem, parameters, batch):
    """Gradient of the batch's log density alone."""
    part = problem.take(batch)
    _, gradient = part.model.log_joint_and_gradient(parameters, part.design, part.y, part.weight)
    model = part.model
    U = tuple(g + U / s**2 for g, U, s in zip(gradient.U, parameters.U, model.sigma_u, strict=True))
    return Parameters(U, gradient.W + parameters.W / model.sigma_w**2)


def initial(problem, algorithm, seed):
    state = algorithm.init(problem, stream(seed, 0))
    return state, algorithm.parameters(problem, state)


@pytest.mark.parametrize("kind", ["dense", "rows", "mixed"])
@pytest.mark.parametrize("core", ["identity", "full", "sparse"])
def test_lazy_prior_gives_the_same_steps_as_the_papers_update(core, kind):
    ranks = (2, 2, 2) if core == "identity" else (2, 3, 2)
    problem = random_problem(np.random.default_rng(0), core, ranks, kind)
    algorithm = SGD(epochs=3, method="sgd", batch_size=7, step_u=2e-4, step_w=1e-4, validation=0.0)
    state, at = initial(problem, algorithm, 1)
    N, model = len(problem.y), problem.model
    for t in (1, 2, 3):
        for batch in numpy_batches(state, 7, stream(1, t)):
            g = data_gradient(problem, at, batch)
            share = N / len(batch)
            U = tuple(U + 1e-4 * (share * d - U / s**2) for U, d, s in zip(at.U, g.U, model.sigma_u, strict=True))
            at = Parameters(U, at.W + 0.5e-4 * (share * g.W - at.W / model.sigma_w**2))
        state, _ = algorithm.step(problem, state, stream(1, t))
    found = algorithm.parameters(problem, state)
    for ours, theirs in zip(found.U, at.U, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.W, at.W, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("core", ["identity", "full"])
def test_adam_moves_the_features_met_by_adams_rule(core):
    problem = random_problem(np.random.default_rng(0), core, (2, 2), "mixed")
    algorithm = SGD(epochs=2, method="adam", batch_size=9, step_u=0.01, step_w=0.02, validation=0.0)
    state, at = initial(problem, algorithm, 1)
    N, model = len(problem.y), problem.model
    tables = [
        np.asarray(mode.table.toarray() if hasattr(mode.table, "toarray") else mode.table)
        for mode in problem.design.modes
    ]
    counts = [(tables[d][problem.design.index[:, d]] != 0).sum(axis=0) for d in range(2)]
    values = [U.copy() for U in at.U] + [at.W.copy()]
    first, second = [np.zeros_like(v) for v in values], [np.zeros_like(v) for v in values]
    steps = [np.zeros(len(U)) for U in at.U] + [0]

    def move(k, gradient, rows, size):
        first[k][rows] = 0.9 * first[k][rows] + 0.1 * gradient
        second[k][rows] = 0.999 * second[k][rows] + 0.001 * gradient**2
        t = np.reshape(steps[k][rows] if k < 2 else steps[k], (-1, 1) if k < 2 else ())
        values[k][rows] += size * (first[k][rows] / (1 - 0.9**t)) / (np.sqrt(second[k][rows] / (1 - 0.999**t)) + 1e-8)

    for t in (1, 2):
        for batch in numpy_batches(state, 9, stream(1, t)):
            m = len(batch)
            g = data_gradient(problem, Parameters(tuple(values[:2]), values[2]), batch)
            old_W = values[2].copy()
            for d in range(2):
                met = (tables[d][problem.design.index[batch, d]] != 0).sum(axis=0)
                rows = np.flatnonzero(met)
                steps[d][rows] += 1
                prior_shift = (met[rows] / (counts[d][rows] * m))[:, None] * values[d][rows] / model.sigma_u[d] ** 2
                move(d, g.U[d][rows] / m - prior_shift, rows, 0.01)
            if core == "full":
                steps[2] += 1
                move(2, g.W / m - old_W / model.sigma_w**2 / N, slice(None), 0.02)
        state, _ = algorithm.step(problem, state, stream(1, t))
    found = algorithm.parameters(problem, state)
    for ours, theirs in zip((*found.U, found.W), values, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)


def test_adams_share_of_the_prior_is_unbiased():
    # summed over one epoch of any batches, the pulls on a feature add up to its prior precision times the batches' 1/m
    problem = random_problem(np.random.default_rng(0), "identity", (2, 2), "rows")
    algorithm = SGD(validation=0.0)
    state, _ = initial(problem, algorithm, 0)
    tables = [mode.table.toarray() for mode in problem.design.modes]
    counts = np.concatenate([(tables[d][problem.design.index[:, d]] != 0).sum(axis=0) for d in range(2)])
    np.testing.assert_array_equal(state.counts, counts)


def test_features_that_no_observation_meets_stay_at_their_prior_mean():
    problem = random_problem(np.random.default_rng(0), "identity", (2, 2), "rows", n=4)
    for method in ("sgd", "adam"):
        algorithm = SGD(epochs=2, method=method, step_u=1e-3, validation=0.0)
        state, _ = initial(problem, algorithm, 0)
        state, _ = algorithm.step(problem, state, stream(0, 1))
        U = np.concatenate(algorithm.parameters(problem, state).U)
        unseen = state.counts == 0
        assert unseen.any()
        assert (U[unseen] == 0).all()
        assert (U[~unseen] != 0).any(axis=1).all()


@pytest.mark.parametrize("method", ["sgd", "adam"])
def test_weights_count_as_many_equal_observations(method):
    """In one batch of all, where the order does not matter."""
    problem = random_problem(np.random.default_rng(0), "full", (2, 2), "dense", n=10)
    weight = np.where(np.arange(10) < 4, 3.0, 1.0)
    weighted, repeated = replace(problem, weight=weight), problem.take(np.repeat(np.arange(10), weight.astype(int)))
    algorithm = SGD(epochs=1, method=method, batch_size=100, step_u=1e-3, step_w=1e-3, validation=0.0)
    start, at = initial(weighted, algorithm, 1)
    moved = algorithm.parameters(weighted, algorithm.step(weighted, start, stream(1, 1))[0])
    gradient = weighted.model.log_joint_and_gradient(at, weighted.design, weighted.y, weight)[1]
    same = repeated.model.log_joint_and_gradient(at, repeated.design, repeated.y)[1]
    np.testing.assert_allclose(gradient.W, same.W, rtol=1e-10)
    # the first step goes along the gradient: in its direction, or by its signs
    steps = moved.W - at.W
    expected = 0.5e-3 * gradient.W if method == "sgd" else 1e-3 * np.sign(gradient.W)
    np.testing.assert_allclose(steps, expected, rtol=1e-4)
