"""Variational inference: exact where q can be, below the evidence elsewhere, at a maximum of its bound in the end."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.integrate import quad

from tests.helpers import core_of, dense_f, dense_others, model_of, random_design, random_problem, z_scores
from tuckergp.errors import InputError
from tuckergp.inference import VI
from tuckergp.inference.base import Problem
from tuckergp.likelihoods import Gaussian
from tuckergp.model.design import Design
from tuckergp.model.mode_table import ModeTable
from tuckergp.model.tucker import TuckerModel, make_core
from tuckergp.posterior.draws import Draws
from tuckergp.priors.beliefs import Gammas, MatrixNormal, Normal, PrecisionBelief, normals
from tuckergp.priors.hyper import PrecisionPrior
from tuckergp.random import BLOCK
from tuckergp.residuals import Rows
from tuckergp.running import loop
from tuckergp.statistics.expected import Factors, core_statistics, expected_squares, observations_of, row_statistics

SURE = 1e8
"""A prior that counts for so much that its mean is as good as given."""


def given(noise=0.5, **settings):
    """All hyperparameters as good as fixed: noise, Lambda at the prior's, tau = 1."""
    return VI(
        tau_shape=SURE, tau_rate=SURE, alpha_shape=SURE, alpha_rate=SURE * noise, dof=SURE, tolerance=1e-13, **settings
    )


def rows_only(M):
    return ModeTable(np.zeros((M, 0)), Rows.of(M))


def bounds(result):
    return np.array([info.figures["elbo"] for info in result.steps])


@pytest.mark.parametrize("factorised", [False, True])
@pytest.mark.parametrize(
    ("core", "ranks"),
    [("identity", (2, 2)), ("full", (2, 3)), ("sparse", (3, 3)), ("identity", (2, 2, 2)), ("full", (2, 1, 2))],
)
@pytest.mark.parametrize("kind", ["mixed", "rows", "dense"])
def test_the_bound_never_decreases(core, ranks, kind, factorised):
    problem = random_problem(np.random.default_rng(3), core, ranks, kind)
    found = bounds(loop.run(VI(iterations=25, tolerance=1e-13, factorised=factorised), problem, seed=0))
    assert np.diff(found).min() > -1e-8 * abs(found[-1])
    assert found[-1] > found[0] + 1


def test_it_stops_when_the_bound_hardly_rises():
    problem = random_problem(np.random.default_rng(0))
    found = loop.run(VI(iterations=500, tolerance=1e-3), problem, seed=0)
    rises = np.diff(bounds(found))
    assert len(found.steps) < 500
    assert rises[-1] < 1e-3 * len(problem.y) <= rises[:-1].min()


def test_with_one_mode_and_features_alone_q_is_the_posterior_and_the_bound_the_evidence():
    rng = np.random.default_rng(1)
    Phi, index = rng.standard_normal((7, 3)), rng.integers(7, size=(20, 1)).astype(np.int32)
    y, weight = rng.standard_normal(20), rng.integers(1, 3, size=20).astype(float)
    model = TuckerModel(make_core("identity", [1]), Gaussian(1.0), np.array([0.8]), 1.0)
    problem = Problem(model, Design((ModeTable(Phi),), index), y, weight)
    result = loop.run(given(noise=0.5, iterations=3), problem, seed=0)
    often = np.repeat(np.arange(20), weight.astype(int))  # a weight counts equal observations
    X, t = Phi[index[often, 0]], y[often]
    system = X.T @ X / 0.5 + np.eye(3) / 0.8**2
    belief = result.state.modes[0].B
    np.testing.assert_allclose(belief.mean[:, 0], np.linalg.solve(system, X.T @ t / 0.5), atol=1e-5)
    np.testing.assert_allclose(belief.covariance, np.linalg.inv(system), atol=1e-5)
    covariance = 0.8**2 * X @ X.T + 0.5 * np.eye(len(t))
    exact = stats.multivariate_normal(np.zeros(len(t)), covariance).logpdf(t)
    assert bounds(result)[-1] == pytest.approx(exact, abs=1e-3)


def test_with_the_other_mode_fixed_the_rows_have_their_exact_posterior():
    rng = np.random.default_rng(2)
    index = np.array(list(product(range(4), range(5))), dtype=np.int32)
    design = Design((rows_only(4), rows_only(5)), index)
    y, z = rng.standard_normal(20), rng.standard_normal(5)
    model = TuckerModel(make_core("identity", [1, 1]), Gaussian(1.0), np.array([0.7, 0.7]), 1.0)
    problem, vi = Problem(model, design, y), given()
    state = vi.init(problem, rng)
    fixed = Factors(z[:, None], (z**2)[:, None, None])
    A, b = row_statistics(model.core, 0, problem.observations[0], [state.modes[0].factors, fixed], state.W)
    q = vi.priors(problem)[0].update(state.modes[0], A / 0.5, b / 0.5)
    precision = z @ z / 0.5 + 1 / 0.7**2
    np.testing.assert_allclose(q.psi[:, 0], y.reshape(4, 5) @ z / 0.5 / precision, rtol=1e-6)
    np.testing.assert_allclose(q.covariance[:, 0, 0], 1 / precision, rtol=1e-6)


@pytest.mark.parametrize(
    ("core", "ranks"),
    [
        *(("identity", (2,) * modes) for modes in (1, 2, 3)),
        *(("full", ranks) for ranks in ((3,), (2, 3), (2, 1, 3))),
        *(("sparse", ranks) for ranks in ((3, 2), (2, 3, 2))),
    ],
)
def test_expected_statistics_are_averages_over_all_values(core, ranks):
    """Factors and core are their means plus or minus a deviation, so that all cases can be gone through."""
    rng = np.random.default_rng(4)
    modes = len(ranks)
    core = core_of(core, list(ranks), rng)
    design = random_design(rng, [3] * modes, [1] * modes, 9)
    y, weight = rng.standard_normal(9), rng.uniform(0.5, 2, 9)
    mean, off = ([rng.standard_normal((3, r)) for r in ranks] for _ in range(2))
    w, w_off = (rng.standard_normal(core.n_weights) for _ in range(2))
    squares = [m[:, :, None] * m[:, None, :] + o[:, :, None] * o[:, None, :] for m, o in zip(mean, off, strict=True)]
    factors = [Factors(*pair) for pair in zip(mean, squares, strict=True)]
    W = Normal(w[:, None], np.outer(w_off, w_off), 0.0)
    values = []
    for *signs, last in product((1, -1), repeat=modes + 1):
        psi = [m + s * o for m, s, o in zip(mean, signs, off, strict=True)]
        values.append((psi, w + last * w_off))

    def average(what):
        return np.mean([what(*value) for value in values], axis=0)

    def rows_at(psi, i):
        return [table[row] for table, row in zip(psi, design.index[i], strict=True)]

    for d in range(modes):

        def statistics(psi, w, d=d):
            A, b = np.zeros((3, ranks[d], ranks[d])), np.zeros((3, ranks[d]))
            for i, row in enumerate(design.index[:, d]):
                z = dense_others(core, w, rows_at(psi, i), d)
                A[row] += weight[i] * np.outer(z, z)
                b[row] += weight[i] * y[i] * z
            return np.concatenate([A.ravel(), b.ravel()])

        found = row_statistics(core, d, observations_of(design, d, y, weight), factors, W)
        np.testing.assert_allclose(np.concatenate([part.ravel() for part in found]), average(statistics), atol=1e-10)
    observations = observations_of(design, 0, y, weight)

    def residuals(psi, w):
        return sum(weight[i] * (y[i] - dense_f(core, w, rows_at(psi, i))) ** 2 for i in range(9))

    assert expected_squares(core, observations, factors, W, y, weight) == pytest.approx(float(average(residuals)))
    if core.learned:
        unit = np.eye(core.n_weights)

        def normal_equations(psi, w):
            H = np.array([[dense_f(core, e, rows_at(psi, i)) for e in unit] for i in range(9)])
            return np.concatenate([((H * weight[:, None]).T @ H).ravel(), H.T @ (weight * y)])

        found = core_statistics(core, observations, factors)
        np.testing.assert_allclose(np.concatenate([part.ravel() for part in found]), average(normal_equations))


@pytest.mark.parametrize("y", [(0.3,), (1.5, 2.0)])
def test_the_bound_is_below_the_log_evidence(y):
    design = Design((rows_only(1), rows_only(1)), np.zeros((len(y), 2), dtype=np.int32))
    model = TuckerModel(make_core("identity", [1, 1]), Gaussian(1.0), np.array([0.9, 0.9]), 1.0)
    result = loop.run(given(noise=0.5, iterations=200), Problem(model, design, np.array(y)), seed=0)

    grid = np.linspace(-6, 6, 1_201)
    u, v = np.meshgrid(grid, grid)
    log_joint = sum(stats.norm.logpdf(values, scale=0.9) for values in (u, v))
    log_joint += sum(stats.norm.logpdf(value, u * v, np.sqrt(0.5)) for value in y)
    evidence = np.log(np.exp(log_joint).sum() * (grid[1] - grid[0]) ** 2)
    assert evidence - 1.5 < bounds(result)[-1] < evidence - 1e-4


@pytest.mark.parametrize(("core", "ranks"), [("identity", (2, 2)), ("full", (2, 3))])
@pytest.mark.parametrize("kind", ["mixed", "rows"])
def test_at_the_end_no_direction_raises_the_bound(core, ranks, kind):
    problem = random_problem(np.random.default_rng(5), core, ranks, kind)
    vi = VI(iterations=500, tolerance=1e-8)
    state = loop.run(vi, problem, seed=0).state
    rng, e = np.random.default_rng(6), 1e-4

    def with_mode(d, **changes):
        return state._replace(modes=(*state.modes[:d], state.modes[d]._replace(**changes), *state.modes[d + 1 :]))

    moves = []
    for d, (q, prior) in enumerate(zip(state.modes, vi.priors(problem), strict=True)):
        at = rng.standard_normal(q.B.mean.shape)
        if prior.has_rows:
            psi = rng.standard_normal(q.psi.shape)
            moves.append(lambda s, d=d, q=q, psi=psi: with_mode(d, psi=q.psi + s * psi))
            moves.append(
                lambda s, d=d, q=q: with_mode(
                    d, covariance=np.exp(s) * q.covariance, log_det=q.log_det + s * q.psi.size
                )
            )
            moves.append(lambda s, d=d, q=q, at=at: with_mode(d, B=q.B._replace(mean=q.B.mean + s * at)))
        moves.append(lambda s, d=d, q=q: with_mode(d, tau=Gammas(q.tau.shape, q.tau.rate * np.exp(s))))
        turned = q.precision._replace(inverse_scale=q.precision.inverse_scale * 2)
        moves.append(
            lambda s, d=d, q=q, turned=turned: with_mode(
                d, precision=q.precision._replace(inverse_scale=(1 - s) * q.precision.inverse_scale + s * turned[1])
            )
        )
    if problem.model.core.learned:
        at = rng.standard_normal(state.W.mean.shape)
        moves.append(lambda s: state._replace(W=state.W._replace(mean=state.W.mean + s * at)))
    moves.append(lambda s: state._replace(alpha=Gammas(state.alpha.shape, state.alpha.rate * np.exp(s))))
    best = vi.bound(problem, state)
    assert best == pytest.approx(state.bound)
    for move in moves:
        up, down = vi.bound(problem, move(e)), vi.bound(problem, move(-e))
        assert (up - down) / (2 * e) == pytest.approx(0.0, abs=0.02)
        assert vi.bound(problem, move(0.05)) < best
        assert vi.bound(problem, move(-0.05)) < best


def test_divergences_are_those_of_the_densities():
    q, p = stats.gamma(3.0, scale=1 / 2.0), stats.gamma(1.5, scale=1 / 0.5)
    numeric = quad(lambda x: q.pdf(x) * (q.logpdf(x) - p.logpdf(x)), 0, 60)[0]
    assert Gammas(np.array([3.0]), np.array([2.0])).divergence(1.5, 0.5) == pytest.approx(numeric, rel=1e-6)
    prior = PrecisionBelief.of(PrecisionPrior.centred(4.0, 0.5, 2, scalar=False), 2)
    belief = prior.given(np.array([[3.0, 1.0], [1.0, 2.0]]), 5)
    mine, other = (stats.wishart(b.dof, np.linalg.inv(b.inverse_scale)) for b in (belief, prior))
    drawn = mine.rvs(2_000, random_state=0).transpose(1, 2, 0)
    differences = mine.logpdf(drawn) - other.logpdf(drawn)
    error = differences.std() / np.sqrt(2_000)
    assert abs(belief.divergence(prior) - differences.mean()) < 4 * error
    log_dets = np.linalg.slogdet(drawn.transpose(2, 0, 1))[1]
    assert abs(belief.mean_log_det - log_dets.mean()) < 4 * log_dets.std() / np.sqrt(2_000)
    np.testing.assert_allclose(belief.mean, drawn.mean(axis=2), rtol=0.1, atol=0.1)
    one = [PrecisionBelief(7.0, np.array([[3.0]]), scalar) for scalar in (True, False)]
    base = [PrecisionBelief(2.0, np.array([[0.4]]), scalar) for scalar in (True, False)]
    assert one[0].divergence(base[0]) == pytest.approx(one[1].divergence(base[1]))
    assert one[0].mean_log_det == pytest.approx(one[1].mean_log_det)


def test_a_block_of_rows_draws_the_same_whatever_follows_it():
    """Given equal covariances, here the identity. Nor does what is drawn next depend on the number of rows."""
    drawn, then = [], []
    for M in (2 * BLOCK + 7, BLOCK):
        design = Design((rows_only(M), rows_only(3)), np.zeros((4, 2), dtype=np.int32))
        problem = Problem(model_of(make_core("identity", [2, 2])), design, np.arange(4.0))
        state, _ = VI().step(problem, VI().init(problem, np.random.default_rng(0)), np.random.default_rng(0))
        prior, q = VI().priors(problem)[0], state.modes[0]
        roots = (q.B.root(), np.broadcast_to(np.eye(2), (M, 2, 2)))
        rng = np.random.default_rng(1)
        drawn.append(prior.deviation(q, roots, rng)[0])
        then.append(rng.random())
    whole, part = drawn
    assert then[0] == then[1]
    np.testing.assert_array_equal(whole[:BLOCK], part)
    assert not np.isin(whole[BLOCK : 2 * BLOCK], part).any()


def test_deviations_of_a_matrix_normal_have_the_covariances_of_rows_and_columns():
    """Each covariance of 4,000 draws has a standard error below 2 (2 / 4000)^1/2 = 0.045 times the variances."""
    rng = np.random.default_rng(0)
    rows, columns = np.array([[1.0, 0.3], [0.3, 0.5]]), np.array([[4.0, 1.8], [1.8, 1.0]])
    q = MatrixNormal(np.zeros((2, 2)), rows, columns)
    root = q.root()
    drawn = np.stack([q.deviation(root, rng).ravel() for _ in range(4000)])
    np.testing.assert_allclose(np.cov(drawn.T), np.kron(rows, columns), atol=5 * 0.045 * 4)


@pytest.mark.parametrize("core", ["identity", "full"])
def test_draws_have_the_moments_of_q_and_means_of_predictions_are_exact(core):
    problem = random_problem(np.random.default_rng(7), core, (2, 2), "mixed")
    vi = VI(iterations=20, draws=1_600)
    state = loop.run(vi, problem, seed=0).state
    drawn = vi.sample(problem, state, np.random.default_rng(0))
    sets = len(drawn) / 2 ** (2 + problem.model.core.learned)
    draws = Draws.of(problem.model, drawn)
    f = draws.predicted(problem.design).f.mean(axis=0)
    np.testing.assert_allclose(f, problem.model.predict(vi.parameters(problem, state), problem.design), atol=1e-6)
    for d, q in enumerate(state.modes):
        psi = draws.factors(d, problem.design.modes[d]).swapaxes(0, 1)
        found = np.einsum("smk,sml->mkl", psi - q.psi, psi - q.psi) / len(psi)
        # signs say nothing of squares: as many independent ones as sets, each with variance S_kk S_ll + S_kl^2
        variance = np.diagonal(q.covariance, axis1=1, axis2=2)
        error = np.sqrt((variance[:, :, None] * variance[:, None] + q.covariance**2) / sets)
        assert (np.abs(found - q.covariance) < 5 * error + 1e-12).all()
    for q, mode in zip(state.modes, draws.modes, strict=True):
        r, S = len(q.precision.inverse_scale), q.precision.inverse_scale
        if q.precision.scalar:  # of 1 / lambda, lambda a gamma variable
            expected = np.eye(r) * np.trace(S) / (q.precision.dof * r - 2)
        else:
            expected = S / (q.precision.dof - r - 1)
        assert np.abs(z_scores((mode.values["spread"] - expected).reshape(len(drawn), -1))).max() < 5
        assert np.abs(z_scores(mode.values["tau"] - q.tau.mean)).max(initial=0.0) < 5
    # Gamma variables have a relative variance of 1 / shape
    error = (float(state.alpha.shape[0]) * len(drawn)) ** -0.5
    assert draws.unknowns["alpha"].mean() == pytest.approx(float(state.alpha.mean[0]), rel=5 * error)


def test_what_q_has_no_form_for_is_refused():
    rng = np.random.default_rng(0)
    problem = random_problem(rng, "full", (33, 33), "dense")
    with pytest.raises(InputError, match="more than 1,024 entries"):
        VI().init(problem, rng)
    wide = ModeTable(sparse.csr_array((5, 3_001)), Rows.of(5))
    design = Design((wide, rows_only(5)), np.zeros((4, 2), dtype=np.int32))
    with pytest.raises(InputError, match="3,001 features are more than 3,000"):
        VI().init(Problem(model_of(make_core("identity", [2, 2])), design, np.zeros(4)), rng)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"iterations": 0}, "iterations must be a whole number from 1 on"),
        ({"iterations": 2.5}, "iterations must be a whole number"),
        ({"draws": 0}, "draws must be a whole number from 1 on"),
        ({"tolerance": -1.0}, "tolerance must be positive"),
        ({"factorised": "yes"}, "factorised must be True or False"),
        ({"alpha_rate": np.nan}, "alpha_rate must be positive"),
    ],
)
def test_bad_settings_are_refused(setting, message):
    with pytest.raises(InputError, match=message):
        VI(**setting)


def test_entries_that_are_independent_under_q_stay_at_the_mean_of_the_joint_one():
    rng = np.random.default_rng(5)
    root = rng.standard_normal((4, 3, 3))
    precision, right = root @ np.swapaxes(root, 1, 2) + np.eye(3), rng.standard_normal((4, 3))
    mean, _, _ = normals(precision, right, np.zeros((4, 3)), factorised=False)
    again, covariance, log_det = normals(precision, right, mean, factorised=True)
    np.testing.assert_allclose(again, mean, rtol=1e-10)
    diagonal = np.diagonal(precision, axis1=1, axis2=2)
    np.testing.assert_allclose(np.diagonal(covariance, axis1=1, axis2=2), 1 / diagonal)
    assert log_det == pytest.approx(-np.log(diagonal).sum())


def test_the_core_has_its_prior_in_the_bound():
    problem = random_problem(np.random.default_rng(3), "full", (2, 3), "rows")
    state = loop.run(VI(iterations=3), problem, seed=0).state
    squares, scales = float(state.W.squares.sum()), (0.5, 3.0)
    found = [VI().bound(problem.with_model(replace(problem.model, sigma_w=scale)), state) for scale in scales]
    # E log N(W; 0, sigma_w^2)
    expected = [-0.5 * (6 * 2 * np.log(scale) + squares / scale**2) for scale in scales]
    assert found[1] - found[0] == pytest.approx(expected[1] - expected[0])
