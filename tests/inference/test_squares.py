"""Squared residuals on rows, against the log joint that multiplies the core once an observation."""

import numpy as np
import pytest

from tests.helpers import core_of, model_of, random_design
from tuckergp.inference.base import Problem
from tuckergp.inference.squares import FoldedSquares, PlainSquares, cheapest_fold
from tuckergp.inference.weights import LogJoint, vector_of
from tuckergp.statistics.evidence import sort_by_row


def problem_of(core, ranks, kind="dense", rows=5, n=60, weighted=True, seed=0):
    rng = np.random.default_rng(seed)
    design = random_design(rng, [rows + d for d in range(len(ranks))], [4] * len(ranks), n, kind)
    weight = rng.uniform(0.5, 2.0, n) if weighted else None
    return Problem(model_of(core_of(core, ranks, rng)), design, rng.standard_normal(n), weight)


def folded(problem, d):
    found = sort_by_row(problem.design, d)
    tables = tuple(mode.table for mode in problem.design.modes)
    return FoldedSquares(problem.model.core, tables, found, problem.y[found.order], problem.weight[found.order], d)


CASES = [("identity", [3, 3]), ("full", [2, 3]), ("full", [2, 3, 2]), ("full", [2, 1, 3, 2])]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["dense", "sparse", "rows"])
@pytest.mark.parametrize(
    ("core", "ranks"), [*CASES, ("full", [3]), ("identity", [2, 2, 2]), ("sparse", [2, 3]), ("sparse", [2, 3, 2])]
)
def test_the_log_joint_on_rows_is_that_of_the_generic_route(core, ranks, kind, weighted):
    problem = problem_of(core, ranks, kind, weighted=weighted)
    theta = vector_of(problem.model.init(problem.design, np.random.default_rng(1)))
    log_joint = LogJoint(problem, 3.0)
    assert isinstance(problem.squares, FoldedSquares if (core, ranks) in CASES else PlainSquares)
    value, gradient = log_joint(theta)
    expected, derivative = log_joint.of_batch(theta, None)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(gradient, derivative, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("core", "ranks"), CASES)
def test_it_does_not_matter_which_mode_is_folded(core, ranks):
    problem = problem_of(core, ranks)
    theta = vector_of(problem.model.init(problem.design, np.random.default_rng(1)))
    totals, gradients = zip(*(folded(problem, d)(theta) for d in range(len(ranks))), strict=True)
    np.testing.assert_allclose(totals, totals[0], rtol=1e-12)
    np.testing.assert_allclose(gradients, np.broadcast_to(gradients[0], np.shape(gradients)), rtol=1e-10, atol=1e-10)


def test_rows_without_observations_count_for_nothing():
    problem = problem_of("full", [2, 3], rows=40, n=20)
    theta = vector_of(problem.model.init(problem.design, np.random.default_rng(1)))
    found = folded(problem, 0)(theta)
    f = problem.model.predict(problem.model.init(problem.design, np.random.default_rng(1)), problem.design)
    assert found[0] == pytest.approx(float(problem.weight @ (problem.y - f) ** 2))


def test_large_sparse_tables_stay_sparse():
    problem = problem_of("identity", [3, 3], "rows", rows=300, n=400)
    theta = vector_of(problem.model.init(problem.design, np.random.default_rng(1)))
    assert not isinstance(problem.squares.tables[0], np.ndarray)
    gradient, derivative = LogJoint(problem, 1.0)(theta)[1], LogJoint(problem, 1.0).of_batch(theta, None)[1]
    np.testing.assert_allclose(gradient, derivative, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("core", "ranks", "rows", "expected"),
    [
        ("full", [2, 2], 5, 0),  # fewer rows
        ("full", [2, 9], 5, 1),  # a larger rank goes
        ("full", [3], 5, None),
        ("sparse", [3, 3], 5, None),
        ("identity", [3, 3, 3], 5, None),
        ("full", [2, 2], 100, None),  # more rows than observations
    ],
)
def test_the_mode_whose_fold_saves_most_is_folded(core, ranks, rows, expected):
    problem = problem_of(core, ranks, rows=rows)
    assert cheapest_fold(problem.model.core, problem.design) == expected
