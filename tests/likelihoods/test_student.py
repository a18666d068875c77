"""Student's t noise: each conditional against numerical integration, the posterior by quadrature, recovery, answers.

Simulations have fixed seeds; bounds in standard errors are 4.5, which fresh seeds break in fewer than 1 of 1,000 cases.
"""

from functools import cache

import numpy as np
import pytest
from scipy import optimize, stats

from tests.contracts.test_samplers import ERRORS, SURE, errors_of
from tests.helpers import core_of, quick_and_long, with_share_of_draws
from tuckergp import Mode, TuckerGPRegressor, TuckerRecommender
from tuckergp.errors import InputError
from tuckergp.inference import Gibbs
from tuckergp.inference.base import Problem
from tuckergp.kernels import SE
from tuckergp.likelihoods import Gaussian, Student
from tuckergp.likelihoods.given import NoiseSettings, Observed, Predicted
from tuckergp.likelihoods.precision import Precision, RowSums
from tuckergp.likelihoods.row_noise import RowNoise
from tuckergp.likelihoods.student import StudentState, draw_nu
from tuckergp.model.design import Design
from tuckergp.model.mode_table import ModeTable
from tuckergp.model.tucker import TuckerModel
from tuckergp.random import BLOCK
from tuckergp.residuals import Rows
from tuckergp.running.loop import sample

pytestmark = pytest.mark.filterwarnings("ignore::tuckergp.errors.NotConvergedWarning")

DRAWS = 20_000


def observed(y, weight=None, groups=None):
    """Observations of one mode, in groups of rows."""
    y = np.asarray(y, dtype=float)
    rows = np.zeros(len(y), dtype=np.int32) if groups is None else np.asarray(groups, dtype=np.int32)
    each = np.arange(rows.max() + 1, dtype=np.int32)
    return Observed(y, weight, None, rows[:, None], (each,), (len(each),))


def moments_on(grid, logs):
    """Mean and standard deviation of a density on an even grid."""
    share = np.exp(logs - logs.max())
    share /= share.sum()
    mean = share @ grid
    return mean, np.sqrt(share @ (grid - mean) ** 2)


def test_the_density_is_that_of_scipy():
    y, f = np.array([-30.0, 0.0, 0.2, 4.0]), np.array([0.1, 0.2, -0.3, 4.0])
    for noise, nu in [(0.3, 2.1), (2.0, 7.0), (1.0, 300.0)]:
        expected = stats.t.logpdf(y, nu, f, np.sqrt(noise))
        np.testing.assert_allclose(Student(noise, nu=nu).log_density(y, f), expected, rtol=1e-9)


@pytest.mark.parametrize(("residual", "nu"), [(0.1, 3.0), (4.0, 3.0), (-1.5, 12.0)])
def test_scales_of_observations_have_their_conditional(residual, nu):
    """p(lambda | e) is proportional to Gamma(lambda; nu / 2, nu / 2) N(e; 0, 1 / (precision lambda))."""
    alpha, factor = 2.0, 0.7
    state = StudentState(alpha, nu, RowNoise((np.array([factor]),), (10.0,)))
    data = observed(np.full(DRAWS, residual))
    y, precision = Student().augment(state, data, lambda: np.zeros(DRAWS), np.random.default_rng(0))
    np.testing.assert_array_equal(y, data.y)
    np.testing.assert_allclose(precision.at(data.index), alpha * factor * precision.weight)
    grid = np.linspace(1e-4, 12.0, 20_000)
    logs = stats.gamma.logpdf(grid, nu / 2, scale=2 / nu)
    logs += stats.norm.logpdf(residual, 0, (alpha * factor * grid) ** -0.5)
    mean, sd = moments_on(grid, logs)
    assert abs(precision.weight.mean() - mean) < 4.5 * sd / np.sqrt(DRAWS)
    squares = (precision.weight - mean) ** 2
    assert abs(squares.mean() - sd**2) < 4.5 * squares.std() / np.sqrt(DRAWS)


@pytest.mark.parametrize(("nu", "n"), [(3.0, 200), (30.0, 60)])
def test_degrees_of_freedom_have_their_conditional(nu, n):
    """Against t densities and the gamma prior of nu - 2 on a grid of log(nu - 2); slice steps hardly depend."""
    rng = np.random.default_rng(1)
    z = rng.standard_t(nu, n)
    x = np.linspace(-4, 6, 2000)
    grid = 2 + np.exp(x)
    logs = [stats.t.logpdf(z, at).sum() + stats.gamma.logpdf(at - 2, 2, scale=10) + np.log(at - 2) for at in grid]
    mean, sd = moments_on(x, np.array(logs))
    found, at = [], 10.0
    for _ in range(1500):
        at = draw_nu(z**2, at, rng)
        found.append(np.log(at - 2))
    mean_found, sd_found, error, sd_error = errors_of(np.array(found)[None, :, None])
    assert abs(mean_found[0] - mean) < ERRORS * error[0]
    assert abs(sd_found[0] - sd) < ERRORS * sd_error[0]


def test_shared_precision_and_factors_of_rows_have_their_conditionals():
    """Given lambda: N / 2, not sums of lambda, in the shapes; lambda in the sums. By integration over each."""
    rng = np.random.default_rng(2)
    n, groups = 12, np.repeat([0, 1], 6)
    e, weight = rng.standard_normal(n), rng.gamma(1.0, 2.0, n)
    data, settings = observed(e, groups=groups), NoiseSettings(True, 3.0, 2.0)

    def sums(d, precision):
        squares = precision.weight * e**2
        totals = np.bincount(groups, squares, 2)
        return RowSums(totals, totals)

    sure = RowNoise((np.array([0.6, 1.9]),), (1e7,))  # nu so large that factors are 1
    given = Precision(1.0, weight, [np.ones(2)])
    found = np.array(
        [
            Student().draw_noise(StudentState(1.0, 5.0, sure), data, given, sums, settings, rng)[0].alpha
            for _ in range(3000)
        ]
    )
    grid = np.linspace(1e-3, 8, 8000)
    logs = stats.gamma.logpdf(grid, 3.0, scale=0.5)
    logs += stats.norm.logpdf(e[:, None], 0, (grid * weight[:, None]) ** -0.5).sum(axis=0)
    mean, sd = moments_on(grid, logs)
    assert abs(found.mean() - mean) < 4.5 * sd / np.sqrt(len(found))
    assert abs(found.std() - sd) < 0.1 * sd

    alpha, nu = 1.7, 6.0
    state, given = StudentState(alpha, 5.0, RowNoise((np.ones(2),), (nu,))), Precision(alpha, weight, [np.ones(2)])
    drawn = [Student().draw_noise(state, data, given, sums, settings, rng)[0].rows.factors[0] for _ in range(3000)]
    for m in (0, 1):
        logs = stats.gamma.logpdf(grid, nu / 2, scale=2 / nu)
        mine = groups == m
        scale = (alpha * grid * weight[mine, None]) ** -0.5
        mean, sd = moments_on(grid, logs + stats.norm.logpdf(e[mine, None], 0, scale).sum(axis=0))
        assert abs(np.mean(drawn, axis=0)[m] - mean) < 4.5 * sd / np.sqrt(len(drawn))
        assert abs(np.std(drawn, axis=0)[m] - sd) < 0.1 * sd


def test_scales_of_observations_have_streams_of_their_own():
    n = 2 * BLOCK
    state, e = StudentState(1.0, 4.0, RowNoise()), np.random.default_rng(0).standard_normal(n)
    whole, part = (
        Student().augment(state, observed(e[:m]), lambda m=m: np.zeros(m), np.random.default_rng(5))[1].weight
        for m in (n, BLOCK)
    )
    np.testing.assert_array_equal(whole[:BLOCK], part)


def one_number():
    """F is one number u ~ N(0, 1) at all observations, which have a few outliers."""
    rng = np.random.default_rng(3)
    design = Design((ModeTable(np.ones((1, 1))),), np.zeros((25, 1), dtype=np.int32))
    model = TuckerModel(core_of("identity", [1], rng), Student(), np.ones(1), 1.0)
    return Problem(model, design, 0.4 + 0.5 * rng.standard_t(2.5, 25))


@cache
def by_quadrature():
    """Means and standard deviations of u, log alpha and log(nu - 2), on a grid; alpha ~ Gamma(1, 0.5)."""
    y = one_number().y
    u, a, x = np.linspace(-0.6, 1.4, 41), np.linspace(-2, 4, 41), np.linspace(-4, 6, 41)
    U, A, X = np.meshgrid(u, a, x, indexing="ij")
    logs = -0.5 * U**2 + A - 0.5 * np.exp(A) + 2 * X - 0.1 * np.exp(X)
    for value in y:
        logs += stats.t.logpdf(value, 2 + np.exp(X), U, np.exp(-A / 2))
    share = np.exp(logs - logs.max())
    share /= share.sum()
    means = np.array([(share * v).sum() for v in (U, A, X)])
    return means, np.sqrt([(share * (v - m) ** 2).sum() for v, m in zip((U, A, X), means, strict=True)])


@quick_and_long("of_draws", 0.25, 1)
def test_the_sampler_agrees_with_quadrature(of_draws):
    sampler = with_share_of_draws(Gibbs(dof=SURE, tau_shape=SURE, tau_rate=SURE, draws=5000, warmup=50), of_draws)
    draws, history = sample(sampler, one_number(), 1)
    assert {"log_probability", "noise", "nu"} == history[-1].figures.keys()
    watched = draws.watched[0]
    columns = [watched["f"][:, 0], -2 * np.log(watched["noise"]), np.log(watched["nu"] - 2)]
    mean, sd, mean_error, sd_error = errors_of(np.stack(columns, axis=-1)[None])
    exact_mean, exact_sd = by_quadrature()
    assert (np.abs(mean - exact_mean) < ERRORS * mean_error).all()
    assert (np.abs(sd - exact_sd) < ERRORS * sd_error).all()


def at(S=9, n=5, factors=True):
    """Draws that differ much, with factors of rows."""
    rng = np.random.default_rng(4)
    unknowns = {"alpha": rng.gamma(2.0, 1.0, S), "nu": 2 + rng.gamma(0.7, 6.0, S)}
    return Predicted(2 * rng.standard_normal((S, n)), unknowns, rng.gamma(3.0, 0.3, (S, n)) if factors else None)


@pytest.mark.parametrize("level", [1e-4, 0.05, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("factors", [False, True])
def test_quantiles_are_those_of_the_mixture(level, factors):
    """Bisection of the mean of scipy's distribution functions."""
    given, likelihood = at(factors=factors), Student(mean=3.0, scale=2.0)
    found = likelihood.quantiles(given, [level])[:, 0]
    nu, scale = given.unknowns["nu"], likelihood.precisions(given) ** -0.5

    def below(x, i):
        return stats.t.cdf((x - 3) / 2, nu, given.f[:, i], scale[:, i]).mean() - level

    expected = [optimize.brentq(below, -1e6, 1e6, args=(i,), xtol=1e-11) for i in range(5)]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


def test_means_variances_and_samples_agree():
    given, likelihood = at(S=3), Student(mean=3.0, scale=2.0)
    given.unknowns["nu"][:] = [5.0, 9.0, 40.0]  # fourth moments exist
    precision = given.unknowns["alpha"][:, None] * given.factors
    nu = given.unknowns["nu"][:, None]
    expected = [stats.t(nu, 3 + 2 * given.f, 2 * precision**-0.5).stats(moment) for moment in ("m", "v")]
    np.testing.assert_allclose(likelihood.means(given), expected[0])
    np.testing.assert_allclose(likelihood.variances(given), expected[1])
    rng = np.random.default_rng(0)
    drawn = np.stack([likelihood.sample(given, rng) for _ in range(4000)])
    assert (np.abs(drawn.mean(axis=0) - expected[0]) < 4.5 * np.sqrt(expected[1] / 4000)).all()
    np.testing.assert_allclose(drawn.var(axis=0), expected[1], rtol=0.4)


def test_folding_in_draws_scales_of_observations():
    """Working precisions have the mean of their conditional, and are it without random numbers."""
    given, likelihood, y = at(S=4, n=3), Student(), np.array([0.0, 8.0, -1.0])
    targets, mean = likelihood.working(given, y, None)
    np.testing.assert_array_equal(targets, np.broadcast_to(y, (4, 3)))
    precision, nu = given.unknowns["alpha"][:, None] * given.factors, given.unknowns["nu"][:, None]
    np.testing.assert_allclose(mean, precision * (nu + 1) / (nu + precision * (y - given.f) ** 2))
    rng = np.random.default_rng(0)
    drawn = np.stack([likelihood.working(given, y, rng)[1] for _ in range(4000)])
    sd = mean * np.sqrt(2 / (nu + 1))
    assert (np.abs(drawn.mean(axis=0) - mean) < 4.5 * sd / np.sqrt(4000)).all()


def test_what_makes_no_sense_is_refused():
    with pytest.raises(InputError, match="degrees of freedom must be a number above 2, not 2"):
        Student(nu=2)
    data = observed([0.0, 1.0], np.array([1.0, 2.0]))
    with pytest.raises(InputError, match="likelihood='student' takes no weights but 1; repeat the rows instead"):
        Student().start(data, NoiseSettings())
    assert Student().start(observed([0.0, 1.0], np.ones(2)), NoiseSettings()).nu == 10


def outliers(n=1200):
    """A smooth f with t noise of 2.2 degrees of freedom: about 1 target in 20 is far off."""
    rng = np.random.default_rng(0)
    X = {"a": rng.uniform(-2, 2, n), "b": rng.uniform(-2, 2, n)}
    f = np.sin(X["a"]) * X["b"]
    return X, f, f + 0.3 * rng.standard_t(2.2, n)


@cache
def by_regression(likelihood):
    X, _, y = outliers()
    modes = [Mode("a", SE(1.0)), Mode("b", SE(1.0))]
    model = TuckerGPRegressor(modes, rank=2, likelihood=likelihood, draws=150, warmup=100, random_state=0)
    return model.fit({name: values[:250] for name, values in X.items()}, y[:250])


def test_outliers_do_not_pull_the_regression():
    """The error of f is at most two thirds of that with Gaussian noise, nu and the scale are found, and 90 % intervals
    cover within 4 binomial standard errors of 950 new targets, and are shorter.
    """
    X, f, y = outliers()
    new = {name: values[250:] for name, values in X.items()}
    errors, covered, widths = {}, {}, {}
    for likelihood in ("gaussian", "student"):
        mean, ends = by_regression(likelihood).predict(new, interval=0.9)
        errors[likelihood] = np.sqrt(np.mean((mean - f[250:]) ** 2))
        covered[likelihood] = np.mean((ends[:, 0] < y[250:]) & (y[250:] < ends[:, 1]))
        widths[likelihood] = np.mean(ends[:, 1] - ends[:, 0])
    assert errors["student"] < 0.67 * errors["gaussian"]
    assert abs(covered["student"] - 0.9) < 4 * 0.01
    assert widths["student"] < 0.8 * widths["gaussian"]
    unknowns = by_regression("student").fit_.draws.unknowns
    low, high = np.quantile(unknowns["nu"], [0.01, 0.99])
    assert low < 2.2 < high < 8
    scale = by_regression("student").fit_.scale * unknowns["alpha"] ** -0.5
    assert 0.2 < np.median(scale) < 0.4


def test_arviz_gets_noise_and_degrees_of_freedom():
    pytest.importorskip("arviz")
    model = by_regression("student")
    data = model.inference_data()
    posterior = data["posterior"]
    assert posterior["nu"].shape == posterior["noise"].shape == (1, 150)
    unknowns = model.fit_.draws.unknowns
    np.testing.assert_allclose(posterior["noise"].values[0], model.fit_.scale * unknowns["alpha"] ** -0.5)
    f, y = posterior["f"].values[0], outliers()[2][:250][posterior["observation"].values]
    scale = model.fit_.scale * unknowns["alpha"][:, None] ** -0.5
    expected = stats.t.logpdf(y, unknowns["nu"][:, None], f, scale)
    np.testing.assert_allclose(data["log_likelihood"]["y"].values[0], expected, rtol=1e-4, atol=1e-4)


@cache
def ratings():
    """Half of all pairs of 60 users and 40 items, with heavy-tailed noise, and the other half."""
    rng = np.random.default_rng(1)
    user, item = (side.ravel() for side in np.meshgrid(np.arange(60), np.arange(40), indexing="ij"))
    f = 3 + (rng.standard_normal((60, 2)) @ rng.standard_normal((2, 40))).ravel()
    parts = np.array_split(rng.permutation(2400), 2)
    y = f + 0.3 * rng.standard_t(2.2, 2400)
    return tuple({"user_id": user[part], "item_id": item[part], "rating": y[part], "f": f[part]} for part in parts)


def recommender(likelihood, **settings):
    settings = {"draws": 80, "warmup": 60, "rating_scale": (-100, 100), **settings}
    return TuckerRecommender(rank=4, likelihood=likelihood, implicit=False, time=None, random_state=0, **settings)


@cache
def recommender_of(likelihood):
    return recommender(likelihood).fit(ratings()[0])


def test_a_recommender_shrugs_off_outliers():
    """Factors of rows, the default, help Gaussian noise a little; without them it is lost."""
    train, test = ratings()
    errors = {}
    for likelihood in ("gaussian", "student"):
        for noise, model in (("rows", recommender_of(likelihood)), ("shared", recommender(likelihood, noise="shared"))):
            model = model if noise == "rows" else model.fit(train)
            assert (model.fit_.draws.modes[0].row_noise is not None) == (noise == "rows")
            mean, ends = model.predict(test, interval=0.9)
            errors[likelihood, noise] = np.sqrt(np.mean((mean - test["f"]) ** 2))
            covered = np.mean((ends[:, 0] <= test["rating"]) & (test["rating"] <= ends[:, 1]))
        assert model.recommend(test["user_id"][:3], n=4).shape[0] >= 4
    assert abs(covered - 0.9) < 4 * np.sqrt(0.09 / 1200)
    assert errors["student", "shared"] < 0.6 * errors["gaussian", "shared"]
    assert errors["student", "rows"] < 0.95 * errors["gaussian", "rows"]


def test_fold_in_is_near_a_refit():
    """Users whose ratings come later: intervals of f and of new ratings cover as those of a refit do."""
    train, test = ratings()
    late, theirs = train["user_id"] < 12, test["user_id"] < 12
    before, after = ({name: values[part] for name, values in train.items()} for part in (~late, late))
    pairs = {name: values[theirs] for name, values in test.items()}
    folded, refit = recommender("student").fit(before).fold_in(after), recommender_of("student")
    for of, include_noise in (("rating", True), ("f", False)):
        covered = []
        for model in (folded, refit):
            _, ends = model.predict(pairs, interval=0.9, include_noise=include_noise)
            covered.append(np.mean((ends[:, 0] <= pairs[of]) & (pairs[of] <= ends[:, 1])))
        assert len(pairs[of]) > 200
        assert covered[0] > 0.82
        assert abs(covered[0] - covered[1]) < 0.07
    away = folded.predict(pairs) - refit.predict(pairs)
    assert np.sqrt(np.mean(away**2)) < 0.15


def test_going_on_keeps_the_unknowns():
    train, test = ratings()
    model = recommender("student", draws=10, warmup=30).fit(train)
    alpha = model.fit_.draws.unknowns["alpha"][-1]
    model.partial_fit({name: values[:50] for name, values in test.items()}, warmup=0)
    assert np.isfinite(model.predict(test)).all()
    assert model.fit_.draws.unknowns["alpha"][0] == pytest.approx(alpha, rel=0.5)  # its prior mean is 2
    assert alpha > 8


def test_rows_with_factors_work_in_a_regressor():
    rng = np.random.default_rng(0)
    design = Design(
        (ModeTable(np.ones((20, 1)), Rows.of(20), blocks=(slice(0, 1),)),),
        np.repeat(np.arange(20, dtype=np.int32), 10)[:, None],
    )
    model = TuckerModel(core_of("identity", [1], rng), Student(), np.ones(1), 1.0)
    scale = np.where(np.arange(20) < 10, 0.1, 1.0)[design.index[:, 0]]
    problem = Problem(model, design, scale * rng.standard_t(4, 200))
    draws, _ = sample(Gibbs(draws=60, warmup=40, noise="rows"), problem, 0)
    factors = draws.modes[0].row_noise.mean(axis=1)
    assert factors[:10].min() > factors[10:].max()


@pytest.mark.parametrize("size", [50.0, 1e6, 1e9])
def test_one_wild_target_does_not_set_the_scale(size):
    rng = np.random.default_rng(0)
    y = rng.standard_normal(500)
    plain, wild = Student.read(y), Student.read(np.append(y, size))
    assert abs(wild.mean - plain.mean) < 0.05
    assert abs(wild.scale - plain.scale) < 0.05
    ratings = rng.integers(1, 6, 500).astype(float)
    assert Student.read(ratings).scale == pytest.approx(ratings.std())


def test_targets_too_large_for_their_squares_are_refused():
    with pytest.raises(InputError, match=r"The targets reach 1e\+300, which is too large; divide them"):
        Gaussian.read(np.array([1e300, -1e300, 0.0]))
