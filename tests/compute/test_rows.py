"""Statistics of rows and their solves against NumPy."""

from dataclasses import replace

import numpy as np
import pytest

from tests.helpers import dense_others, random_problem
from tuckergp.compute.blocks import BLOCK
from tuckergp.compute.rows import PIECE, core_rows
from tuckergp.compute.triangular import cholesky, solve_lower, solve_upper
from tuckergp.likelihoods.precision import Precision
from tuckergp.model.design import Design
from tuckergp.model.mode_table import ModeTable
from tuckergp.model.tucker import make_core, pack
from tuckergp.statistics.evidence import Evidence, sort_by_row

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
        precision, prior_shift = root @ root.T + np.eye(r), rng.standard_normal((len(A), r))
        mean = evidence.solve(prior_shift, precision, np.zeros_like(prior_shift))
        posterior = A + precision
        np.testing.assert_allclose(mean, np.linalg.solve(posterior, (b + prior_shift)[..., None])[..., 0], rtol=1e-10)
        # the moves that unit noise makes, as columns, multiply to the inverse precision: they are its square root
        moves = np.stack(
            [evidence.solve(prior_shift, precision, np.tile(e, (len(A), 1))) - mean for e in np.eye(r)], axis=2
        )
        np.testing.assert_allclose(moves @ moves.transpose(0, 2, 1), np.linalg.inv(posterior), rtol=1e-9, atol=1e-12)


def lopsided_evidence(d, rank, rng, precision=None):
    """Two modes; one row of mode d is longer than a piece, others than a block, one is empty. Also z by NumPy."""
    lengths = np.array([0, 1, BLOCK - 1, PIECE + BLOCK + 3, BLOCK, 3 * BLOCK + 5])
    rows = rng.permutation(np.repeat(np.arange(len(lengths)), lengths))
    other = rng.integers(50, size=len(rows))
    index = np.stack([rows, other] if d == 0 else [other, rows], axis=1).astype(np.int32)
    sizes = (len(lengths), 50) if d == 0 else (50, len(lengths))
    design = Design(tuple(ModeTable(np.ones((size, 1))) for size in sizes), index)
    psi = [rng.standard_normal((size, rank)) for size in sizes]
    core, y = make_core("identity", (rank, rank)), rng.standard_normal(len(rows))
    precision = Precision(1.7) if precision is None else precision(sizes, len(rows))
    evidence = Evidence(sort_by_row(design, d), y, precision, core, d, psi, np.ones(1))
    return evidence, design, psi[1 - d][other]


@pytest.mark.parametrize("d", [0, 1])
@pytest.mark.parametrize("rank", [1, 6, 16])
def test_long_rows_are_summed_like_short_ones(d, rank):
    evidence, design, z = lopsided_evidence(d, rank, np.random.default_rng(rank))
    A, b = evidence.statistics()
    prior_shift, prior = np.zeros_like(b), np.eye(rank)
    solved = evidence.solve(prior_shift, prior, prior_shift)
    for m in range(len(A)):
        mine = design.index[:, d] == m
        expected = 1.7 * z[mine].T @ z[mine], 1.7 * z[mine].T @ evidence.y[mine]
        np.testing.assert_allclose(A[m], expected[0], rtol=1e-10, atol=1e-9)
        np.testing.assert_allclose(b[m], expected[1], rtol=1e-10, atol=1e-9)
        np.testing.assert_allclose(solved[m], np.linalg.solve(expected[0] + prior, expected[1]), rtol=1e-9, atol=1e-12)


def noise_in_parts(rng, weighted=True):
    def make(sizes, n):
        weight = rng.uniform(0.5, 2.0, n) if weighted else None
        return Precision(0.3, weight, [rng.uniform(0.5, 2.0, size) for size in sizes])

    return make


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("d", [0, 1])
def test_precisions_in_parts_equal_one_each(d, weighted):
    rng = np.random.default_rng(d)
    evidence, design, z = lopsided_evidence(d, 3, rng, noise_in_parts(rng, weighted))
    parts = evidence.precision
    precision = parts.at(design.index)
    expected = 0.3 * (1.0 if parts.weight is None else parts.weight)
    for e in (0, 1):
        expected = expected * parts.factors[e][design.index[:, e]]
    np.testing.assert_allclose(precision, expected, rtol=1e-12)
    np.testing.assert_array_equal(parts.at(design.index, slice(5, 9)), precision[5:9])
    A, b = evidence.statistics()
    for m in range(len(A)):
        mine = design.index[:, d] == m
        np.testing.assert_allclose(A[m], (z[mine] * precision[mine, None]).T @ z[mine], rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(b[m], z[mine].T @ (precision * evidence.y)[mine], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("d", [0, 1])
def test_squared_residuals_are_summed_by_rows(d, weighted):
    rng = np.random.default_rng(d)
    evidence, design, z = lopsided_evidence(d, 3, rng, noise_in_parts(rng, weighted))
    rows, other = design.index[:, d], design.index[:, 1 - d]
    weight = np.ones(len(rows)) if evidence.precision.weight is None else evidence.precision.weight
    squares = weight * (evidence.y - np.einsum("ij,ij->i", z, evidence.psi[d][rows])) ** 2
    sums = evidence.residuals()
    for got, terms in [
        (sums.squares, squares),
        (sums.scaled, squares * evidence.precision.factors[1 - d][other]),
    ]:
        np.testing.assert_allclose(got, np.bincount(rows, terms, minlength=len(got)), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("core", "ranks"), CASES)
def test_squared_residuals_of_any_core(core, ranks):
    for d in range(len(ranks)):
        evidence, problem, weight, z = evidence_and_design_vectors(core, ranks, d, np.random.default_rng(d))
        rows = problem.design.index[:, d]
        squares = weight * (problem.y - np.einsum("ij,ij->i", z, evidence.psi[d][rows])) ** 2
        sums = evidence.residuals()
        np.testing.assert_allclose(sums.squares, np.bincount(rows, squares, minlength=6), rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(sums.scaled, sums.squares, rtol=1e-12)


def test_sorting_keeps_the_order_within_a_row():
    problem = random_problem(np.random.default_rng(0), "identity", (2, 2, 2), n=300)
    index = problem.design.index
    for d in range(3):
        data = sort_by_row(problem.design, d)
        np.testing.assert_array_equal(data.order, np.argsort(index[:, d], kind="stable"))
        np.testing.assert_array_equal(data.other, np.delete(index, d, axis=1)[data.order])
        np.testing.assert_array_equal(np.diff(data.ptr), np.bincount(index[:, d], minlength=6))
        assert data.order.dtype == data.other.dtype == np.int32


def test_shares_of_rows_cover_them_and_cost_alike():
    evidence, _, _ = lopsided_evidence(0, 2, np.random.default_rng(0))
    rng = np.random.default_rng(1)
    rows = rng.integers(2_000, size=200_000)
    index = np.stack([rows, 0 * rows], axis=1).astype(np.int32)
    design = Design((ModeTable(np.ones((2_000, 1))), ModeTable(np.ones((1, 1)))), index)
    data = sort_by_row(design, 0)
    assert data.shares[0] == 0
    assert data.shares[-1] == 2_000
    loads = np.diff(data.ptr[data.shares])
    assert len(loads) > 8
    assert loads.max() < 1.2 * loads.mean()
    assert sort_by_row(design, 1).pieces.tolist() == [0, -(-200_000 // PIECE)]
    assert evidence.data.pieces.tolist() == [0, 0, 0, 0, 2, 2, 2]


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


@pytest.mark.parametrize(("core", "ranks"), CASES)
def test_single_precision_changes_statistics_and_residuals_by_rounding_alone(core, ranks):
    for d in range(len(ranks)):
        exact, _, _, _ = evidence_and_design_vectors(core, ranks, d, np.random.default_rng(d))
        rounded = replace(exact, number=np.float32)
        pairs = list(zip(exact.statistics(), rounded.statistics(), strict=True))
        pairs.append((exact.residuals().squares, rounded.residuals().squares))
        for double, single in pairs:
            np.testing.assert_allclose(single, double, rtol=1e-4, atol=1e-5)
        if len(ranks) > 1:  # with one mode z is the core itself, which is not rounded
            assert any((single != double).any() for double, single in pairs)


def test_values_kept_in_the_order_of_rows_are_those_last_asked_for():
    evidence, _, _ = lopsided_evidence(1, 2, np.random.default_rng(0))
    data, y = evidence.data, evidence.y
    for values in (y, y + 1, y):
        np.testing.assert_array_equal(data.copied("y", values, np.float32), values[data.order].astype(np.float32))
    assert data.copied("y", y, np.float32) is data.copied("y", y, np.float32)


def test_single_precision_sums_long_rows_in_double():
    evidence, design, z = lopsided_evidence(0, 16, np.random.default_rng(3))
    A, _ = replace(evidence, number=np.float32).statistics()
    mine = z[design.index[:, 0] == 3]
    # 33,000 products rounded one by one; a running sum in single precision is off by far more on the diagonal
    np.testing.assert_allclose(np.diag(A[3]), 1.7 * (mine**2).sum(axis=0), rtol=3e-7)
