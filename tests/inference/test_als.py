"""Alternating least squares: exact conditionals, an objective that never gets worse."""

import numpy as np
import pytest

from tests.helpers import flatten, random_problem
from tuckergp.inference.als import ALS
from tuckergp.model.mode_table import ModeTable
from tuckergp.priors import regression
from tuckergp.priors import weights as weights_prior
from tuckergp.random import stream
from tuckergp.residuals import Rows
from tuckergp.running.loop import run
from tuckergp.statistics import core as core_prior

SHAPES = [
    ("identity", (2, 2)),
    ("full", (2, 3)),
    ("sparse", (2, 3)),
    ("identity", (2, 2, 2)),
    ("full", (2, 3, 2)),
    ("full", (3,)),
]
CASES = [(core, ranks, kind) for core, ranks in SHAPES for kind in ("dense", "sparse", "rows", "mixed")]


@pytest.mark.parametrize(("core", "ranks", "kind"), CASES)
def test_the_log_joint_never_decreases(core, ranks, kind):
    problem = random_problem(np.random.default_rng(0), core, ranks, kind, n=60)
    history = run(ALS(iterations=15, noise=0.5, tolerance=1e-12), problem, seed=1).steps
    values = np.array([info.figures["log_joint"] for info in history])
    assert (np.diff(values) >= -1e-9 * np.abs(values[1:])).all()
    assert values[-1] > values[0]


@pytest.mark.parametrize(("core", "ranks", "kind"), [case for case in CASES if case[2] == "mixed" and len(case[1]) < 3])
def test_the_reported_log_joint_is_the_models_and_a_fixed_point_is_stationary(core, ranks, kind):
    problem = random_problem(np.random.default_rng(0), core, ranks, kind, n=60)
    result = run(ALS(iterations=1000, noise=0.5, tolerance=1e-14), problem, seed=1)
    value, gradient = problem.model.log_joint_and_gradient(result.parameters, problem.design, problem.y)
    assert result.steps[-1].figures["log_joint"] == pytest.approx(value, rel=1e-10)
    start = problem.model.init(problem.design, stream(1, 0))
    _, at_start = problem.model.log_joint_and_gradient(start, problem.design, problem.y)
    assert np.abs(flatten(gradient)).max() < 1e-3 * np.abs(flatten(at_start)).max()


def test_conjugate_gradients_agree_with_cholesky(monkeypatch):
    for core, ranks, kind in (("full", (2, 3, 2), "mixed"), ("full", (2, 3), "rows"), ("sparse", (2, 3), "sparse")):
        problem = random_problem(np.random.default_rng(0), core, ranks, kind, n=60)
        direct = run(ALS(iterations=5), problem, seed=1).parameters
        with monkeypatch.context() as patch:
            patch.setattr(regression, "LARGEST_DENSE", 0)
            patch.setattr(weights_prior, "LARGEST_DENSE", 0)
            patch.setattr(core_prior, "LARGEST_DENSE", 0)
            fresh = type(problem)(problem.model, problem.design, problem.y)
            iterative = run(ALS(iterations=5), fresh, seed=1).parameters
        np.testing.assert_allclose(flatten(iterative), flatten(direct), rtol=1e-4, atol=1e-5)


def test_repeated_observations_equal_their_weight():
    problem = random_problem(np.random.default_rng(0), "full", (2, 2), "mixed", n=30)
    weight = np.random.default_rng(1).integers(1, 4, size=30)
    repeated = problem.take(np.repeat(np.arange(30), weight))
    weighted = type(problem)(problem.model, problem.design, problem.y, weight.astype(float))
    a, b = (run(ALS(iterations=5, tolerance=1e-12), p, seed=1).parameters for p in (repeated, weighted))
    np.testing.assert_allclose(flatten(a), flatten(b), rtol=1e-8)


def test_a_mode_with_a_single_row_is_fine():
    problem = random_problem(np.random.default_rng(0), "full", (2, 2), "rows", n=30)
    one = ModeTable(np.ones((1, 1)), Rows.of(1))
    index = problem.design.index.copy()
    index[:, 1] = 0
    design = type(problem.design)((problem.design.modes[0], one), index)
    result = run(ALS(iterations=5), type(problem)(problem.model, design, problem.y), seed=0)
    assert np.isfinite(flatten(result.parameters)).all()


def test_single_precision_ends_near_double_precision():
    problem = random_problem(np.random.default_rng(5), "identity", (3, 3), n=200)
    single, double = (
        run(ALS(iterations=30, precision=precision), problem, seed=0) for precision in ("float32", "float64")
    )
    np.testing.assert_allclose(
        problem.model.predict(single.parameters, problem.design),
        problem.model.predict(double.parameters, problem.design),
        rtol=1e-3,
        atol=1e-3,
    )
    assert (single.parameters.U[0] != double.parameters.U[0]).any()
