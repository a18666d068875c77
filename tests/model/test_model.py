"""The contraction, the log joint and its gradient, and the models that are special cases of it."""

import numpy as np
import pytest

from tests.helpers import core_of, dense_f, flatten, model_of, random_design, unflatten
from tuckergp.errors import InputError
from tuckergp.likelihoods import Gaussian
from tuckergp.model.design import Design
from tuckergp.model.mode_table import ModeTable
from tuckergp.model.tucker import Parameters, SparseCore, TuckerModel, make_core
from tuckergp.random import BLOCK
from tuckergp.residuals import Rows


@pytest.mark.parametrize("kind", ["dense", "sparse", "rows"])
@pytest.mark.parametrize("core", ["identity", "full", "sparse"])
@pytest.mark.parametrize("modes", [1, 2, 3, 4])
def test_gradient_of_the_log_joint_matches_finite_differences(modes, core, kind):
    rng = np.random.default_rng(modes)
    ranks = [3] * modes if core == "identity" else [2, 3, 1, 2][:modes]
    design = random_design(rng, [5] * modes, [4] * modes, 30, kind)
    model = model_of(core_of(core, ranks, rng))
    at = model.init(design, rng)
    y, weight = rng.standard_normal(30), rng.uniform(0.5, 2.0, 30)
    value, gradient = model.log_joint_and_gradient(at, design, y, weight)
    assert value == pytest.approx(model.log_joint(at, design, y, weight), rel=1e-12)
    point, h = flatten(at), 1e-5
    numeric = [
        (
            model.log_joint(unflatten(point + h * e, at), design, y, weight)
            - model.log_joint(unflatten(point - h * e, at), design, y, weight)
        )
        / (2 * h)
        for e in np.eye(point.size)
    ]
    np.testing.assert_allclose(flatten(gradient), numeric, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("core", ["identity", "full", "sparse"])
def test_predictions_equal_a_dense_contraction(core):
    rng = np.random.default_rng(0)
    ranks = [3, 3, 3] if core == "identity" else [2, 4, 3]
    design = random_design(rng, [5, 6, 7], [4, 3, 2], 25, "mixed")
    model = model_of(core_of(core, ranks, rng))
    at = model.init(design, rng)
    psi = [mode.table @ U for mode, U in zip(design.modes, at.U, strict=True)]
    expected = [dense_f(model.core, at.W, [psi[d][row] for d, row in enumerate(rows)]) for rows in design.index]
    np.testing.assert_allclose(model.predict(at, design), expected, rtol=1e-12)


def identity_mode(n):
    return ModeTable(np.zeros((n, 0)), Rows.of(n))


def test_identity_features_with_identity_core_are_probabilistic_matrix_factorisation():
    rng = np.random.default_rng(1)
    i, j, y = rng.integers(5, size=30), rng.integers(7, size=30), rng.standard_normal(30)
    U, V, noise, sigma = rng.standard_normal((5, 3)), rng.standard_normal((7, 3)), 0.3, 0.8
    # PMF, plainly
    error = y - np.sum(U[i] * V[j], axis=1)
    log_joint = -0.5 * np.sum(error**2) / noise - 15 * np.log(2 * np.pi * noise)
    log_joint -= 0.5 * (np.sum(U**2) + np.sum(V**2)) / sigma**2
    d_U, d_V = -U / sigma**2, -V / sigma**2
    np.add.at(d_U, i, error[:, None] * V[j] / noise)
    np.add.at(d_V, j, error[:, None] * U[i] / noise)
    # the Tucker model
    design = Design((identity_mode(5), identity_mode(7)), np.stack([i, j], axis=1).astype(np.int32))
    model = TuckerModel(make_core("identity", [3, 3]), Gaussian(noise), np.full(2, sigma), 1.0)
    value, gradient = model.log_joint_and_gradient(Parameters((U, V), np.zeros(0)), design, y)
    assert value == pytest.approx(log_joint, rel=1e-12)
    np.testing.assert_allclose(gradient.U[0], d_U, rtol=1e-10)
    np.testing.assert_allclose(gradient.U[1], d_V, rtol=1e-10)


def test_side_information_equals_the_papers_formula():
    # f(u_i, v_j) = a (U_i + b sum_k U_{n1+k})' W (V_j + c sum_k V_{n2+k}), binary side information
    rng = np.random.default_rng(2)
    a, b, c, n1, n2, r = 0.5, 0.3, 0.45, 6, 5, 4
    side1, side2 = rng.random((n1, 3)) < 0.5, rng.random((n2, 2)) < 0.5
    U, V, W = rng.standard_normal((n1 + 3, r)), rng.standard_normal((n2 + 2, r)), rng.standard_normal((r, r))
    i, j = (grid.ravel() for grid in np.meshgrid(np.arange(n1), np.arange(n2), indexing="ij"))
    expected = [
        a
        * (U[p] + b * sum((U[n1 + k] for k in np.flatnonzero(side1[p])), np.zeros(r)))
        @ W
        @ (V[q] + c * sum((V[n2 + k] for k in np.flatnonzero(side2[q])), np.zeros(r)))
        for p, q in zip(i, j, strict=True)
    ]
    from tuckergp.data.tables import as_table
    from tuckergp.kernels import Identity, Linear
    from tuckergp.model.mode import Mode

    table = as_table(
        {
            "user": i,
            "item": j,
            "tags": [[str(k) for k in np.flatnonzero(side1[p])] for p in i],
            "genres": [[str(k) for k in np.flatnonzero(side2[q])] for q in j],
        },
        "ratings",
    )
    modes = [
        Mode(["user", "tags"], a**2 * Identity("user") + (a * b) ** 2 * Linear("tags"), constant=False),
        Mode(["item", "genres"], Identity("item") + c**2 * Linear("genres"), constant=False),
    ]
    design, fitted = Design.fit(modes, table)
    names = [[int(name.split("=")[1]) for name in mode.blocks[0].map.feature_names_] for mode in fitted]
    U_ours = np.vstack([U[:n1], U[n1:][names[0]]])
    V_ours = np.vstack([V[:n2], V[n2:][names[1]]])
    model = model_of(make_core("full", [r, r]))
    np.testing.assert_allclose(model.predict(Parameters((U_ours, V_ours), W.ravel()), design), expected, rtol=1e-12)


def test_bayesian_pmf_is_a_full_core_with_ones_appended():
    # U_i = mu_u + L_u u_i and V_j = mu_v + L_v v_j, so U_i'V_j = [u_i, 1] W [v_j; 1]
    rng = np.random.default_rng(3)
    r, n = 3, 50_000
    mu_u, mu_v = rng.standard_normal(r), rng.standard_normal(r)
    L_u, L_v = np.tril(rng.standard_normal((r, r))), np.tril(rng.standard_normal((r, r)))
    W = np.block([[L_u.T @ L_v, (L_u.T @ mu_v)[:, None]], [(mu_u @ L_v)[None, :], np.array([[mu_u @ mu_v]])]])
    u, v = rng.standard_normal((n, r)), rng.standard_normal((n, r))
    ones = np.ones((n, 1))
    model = model_of(make_core("full", [r + 1, r + 1]))
    index = np.stack([np.arange(n)] * 2, axis=1).astype(np.int32)
    f = model.contract([np.hstack([u, ones]), np.hstack([v, ones])], W.ravel(), index)
    U, V = mu_u + u @ L_u.T, mu_v + v @ L_v.T
    np.testing.assert_allclose(f, np.sum(U * V, axis=1), rtol=1e-9, atol=1e-9)
    # mean mu_u'mu_v and variance mu_u'S_v mu_u + mu_v'S_u mu_v + tr(S_u S_v); |z| < 4.5 has false-alarm rate 7e-6
    S_u, S_v = L_u @ L_u.T, L_v @ L_v.T
    variance = mu_u @ S_v @ mu_u + mu_v @ S_u @ mu_v + np.trace(S_u @ S_v)
    assert abs(f.mean() - mu_u @ mu_v) < 4.5 * f.std() / np.sqrt(n)
    squares = (f - mu_u @ mu_v) ** 2
    assert abs(squares.mean() - variance) < 4.5 * squares.std() / np.sqrt(n)
    # two ratings of one user share the covariance mu_v'S_u mu_v
    other = np.sum(U * (mu_v + rng.standard_normal((n, r)) @ L_v.T), axis=1)
    products = (f - mu_u @ mu_v) * (other - mu_u @ mu_v)
    assert abs(products.mean() - mu_v @ S_u @ mu_v) < 4.5 * products.std() / np.sqrt(n)


def prior_draws(core, modes, r, cores=600, rows=200, seed=0):
    """Entries of W x_d U_d' under the default prior: (cores, rows), a new W for every line."""
    rng = np.random.default_rng(seed)
    index = np.stack([np.arange(rows)] * modes, axis=1).astype(np.int32)
    design = Design(tuple(identity_mode(rows) for _ in range(modes)), index)
    draws = np.empty((cores, rows))
    for c in range(cores):
        model = model_of(core_of(core, [r] * modes, rng))
        draws[c] = model.predict(model.init(design, rng), design)
    return draws


@pytest.mark.parametrize("modes", [2, 3])
@pytest.mark.parametrize("core", ["identity", "full", "sparse"])
def test_prior_entries_have_mean_0_and_variance_1_at_every_rank(core, modes):
    # lines with different W are independent: z-scores over lines, |z| < 5 (false-alarm rate 6e-7 each, 6 tests)
    for r in (1, 3, 8):
        draws = prior_draws(core, modes, r)
        for value, moment in ((0.0, draws.mean(axis=1)), (1.0, (draws**2).mean(axis=1))):
            assert abs(moment.mean() - value) < 5 * moment.std(ddof=1) / np.sqrt(len(moment)), (r, value)


@pytest.mark.parametrize("modes", [2, 3])
def test_excess_kurtosis_falls_with_rank_for_the_full_core(modes):
    # given the squared norms of the factors f is normal, hence E f^4 = 3 (1 + 2/r)^D: tends to 3
    found = []
    for r in (1, 4, 12):
        fourth = (prior_draws("full", modes, r, cores=1000, rows=100, seed=r) ** 4).mean(axis=1)
        expected = 3 * (1 + 2 / r) ** modes
        assert abs(fourth.mean() - expected) < 5 * fourth.std(ddof=1) / np.sqrt(len(fourth))
        found.append(fourth.mean() - 3)
    assert found[0] > found[1] > found[2]


@pytest.mark.parametrize("modes", [2, 3])
def test_conditional_variances_of_the_appendix_martingale_concentrate_at_1(modes):
    # S_p sums the entries of W x_d u_d with all indices <= p. Given F_{p-1} the increment has variance
    # prod_d (a_d + 1/r) - prod_d a_d, a_d = sum of squares of u_d before p; their sum must tend to 1 in probability.
    rng = np.random.default_rng(4)
    spreads = []
    for r in (10, 40, 160):
        squares = rng.standard_normal((4000, modes, r)) ** 2 / r
        before = np.concatenate([np.zeros((4000, modes, 1)), np.cumsum(squares, axis=2)[:, :, :-1]], axis=2)
        total = (np.prod(before + 1 / r, axis=1) - np.prod(before, axis=1)).sum(axis=1)
        assert abs(total.mean() - 1) < 4.5 * total.std() / np.sqrt(4000)
        spreads.append(total.var())
    # the variance falls as 1/r: by 4 from line to line (sampling error about 4 %, bounds at 25 %)
    assert 3 < spreads[0] / spreads[1] < 5
    assert 3 < spreads[1] / spreads[2] < 5


def test_sparse_core_costs_only_its_nonzeros_where_the_full_one_could_not_exist():
    core = make_core(SparseCore(50), [20] * 8, np.random.default_rng(0))
    assert core.coords.shape == (50, 8)
    assert len(np.unique(core.coords, axis=0)) == 50
    design = Design(tuple(identity_mode(4) for _ in range(8)), np.zeros((3, 8), dtype=np.int32))
    model = model_of(core)
    assert np.isfinite(model.predict(model.init(design, np.random.default_rng(0)), design)).all()


def test_impossible_cores_are_refused_in_one_sentence():
    with pytest.raises(InputError, match="same rank in every mode"):
        make_core("identity", [2, 3])
    with pytest.raises(InputError, match=r"9,765,625 entries; lower the rank"):
        make_core("full", [5] * 10)
    with pytest.raises(InputError, match="between 1 and 4 nonzeros"):
        make_core(SparseCore(5), [2, 2])
    with pytest.raises(InputError, match="core must be"):
        make_core("diagonal", [2, 2])


def test_a_block_of_rows_starts_the_same_whatever_follows_it():
    """And so do the other modes, whatever the number of rows of the first."""
    model = model_of(make_core("identity", [2, 2]))
    starts = []
    for M in (2 * BLOCK + 7, BLOCK):
        modes = (ModeTable(np.zeros((M, 0)), Rows.of(M)), ModeTable(np.zeros((5, 0)), Rows.of(5)))
        design = Design(modes, np.zeros((4, 2), dtype=np.int32))
        starts.append(model.start(design, np.random.default_rng(1)).U)
    (whole, others), (part, same) = starts
    np.testing.assert_array_equal(whole[:BLOCK], part)
    np.testing.assert_array_equal(others, same)
    assert not np.isin(whole[BLOCK : 2 * BLOCK], part).any()
