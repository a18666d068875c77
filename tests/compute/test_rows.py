"""Statistics of rows and their solves against NumPy."""

import numpy as np
import pytest

from tests.helpers import dense_others, random_problem
from tuckergp.compute.rows import cholesky, core_rows, solve_lower, solve_upper
from tuckergp.model import pack
from tuckergp.priors.evidence import Evidence, Precision, sort_by_row

CASES = [
    ("identity", (3, 3)),
    ("full", (2, 3)),
    ("sparse", (2, 3)),
    ("identity", (2, 2, 2)),
    ("full", (2, 3, 2)),
    ("full", (3,)),
]


def evidence_and_design_vectors(core, ranks, d, rng):
    """Evidence of mode d, and by NumPy the row and the vector z of every observation."""
    problem = random_problem(rng, core, ranks)
    weight = rng.uniform(0.5, 2.0, len(problem.y))
    at = problem.model.init(problem.design, rng)
    psi = problem.model.factors(at, problem.design)
    evidence = Evidence(
        sort_by_row(problem.design, d), problem.y, Precision(1.0, weight), problem.model.core, d, psi, at.W
    )
    z = np.array(
        [
            dense_others(problem.model.core, at.W, [p[m] for p, m in zip(psi, rows, strict=True)], d)
            for rows in problem.design.index
        ]
    )
    return evidence, problem, weight, z


@pytest.mark.parametrize(("core", "ranks"), CASES)
def test_statistics_of_rows_equal_sums_over_observations(core, ranks):
    for d in range(len(ranks)):
        evidence, problem, weight, z = evidence_and_design_vectors(core, ranks, d, np.random.default_rng(d))
        A, b = evidence.statistics()
        rows = problem.design.index[:, d]
        for m in range(len(A)):
            mine = rows == m
            np.testing.assert_allclose(A[m], (z[mine] * weight[mine, None]).T @ z[mine], rtol=1e-11, atol=1e-11)
            np.testing.assert_allclose(b[m], z[mine].T @ (weight * problem.y)[mine], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(("core", "ranks"), CASES)
def test_rows_are_solved_to_their_conditional_and_noise_has_its_covariance(core, ranks):
    rng = np.random.default_rng(5)
    for d in range(len(ranks)):
        evidence, _, _, _ = evidence_and_design_vectors(core, ranks, d, rng)
        A, b = evidence.statistics()
        r = ranks[d]
        root = rng.standard_normal((r, r))
        precision, pull = root @ root.T + np.eye(r), rng.standard_normal((len(A), r))
        mean = evidence.solve(pull, precision, np.zeros_like(pull))
        posterior = A + precision
        np.testing.assert_allclose(mean, np.linalg.solve(posterior, (b + pull)[..., None])[..., 0], rtol=1e-10)
        # the moves that unit noise makes, as columns, multiply to the inverse precision: they are its square root
        moves = np.stack([evidence.solve(pull, precision, np.tile(e, (len(A), 1))) - mean for e in np.eye(r)], axis=2)
        np.testing.assert_allclose(moves @ moves.transpose(0, 2, 1), np.linalg.inv(posterior), rtol=1e-9, atol=1e-12)


def test_small_cholesky_and_triangular_solves_match_numpy():
    rng = np.random.default_rng(0)
    root = rng.standard_normal((6, 6))
    A, x = root @ root.T + np.eye(6), rng.standard_normal(6)
    L = A.copy()
    assert cholesky(L)
    expected = np.linalg.cholesky(A)
    np.testing.assert_allclose(np.tril(L), expected, rtol=1e-12)
    lower, upper = x.copy(), x.copy()
    solve_lower(L, lower)
    solve_upper(L, upper)
    np.testing.assert_allclose(lower, np.linalg.solve(expected, x), rtol=1e-10)
    np.testing.assert_allclose(upper, np.linalg.solve(expected.T, x), rtol=1e-10)
    assert not cholesky(-np.eye(2))


@pytest.mark.parametrize(
    ("core", "ranks"), [("full", (2, 3)), ("full", (2, 3, 2)), ("sparse", (2, 3, 2)), ("full", (3,))]
)
def test_core_rows_are_the_derivatives_of_f_in_the_core(core, ranks):
    rng = np.random.default_rng(1)
    problem = random_problem(rng, core, ranks)
    at = problem.model.init(problem.design, rng)
    flat, start = pack(problem.model.factors(at, problem.design))
    c = problem.model.core
    rows = core_rows(3, 20, c.n_weights, c.coords, c.ranks, flat, start, problem.design.index)
    np.testing.assert_allclose(rows @ at.W, problem.model.predict(at, problem.design)[3:20], rtol=1e-11, atol=1e-12)
