"""Modes that are fields, in Gibbs sampling and ALS: invariance, the dense solution, places on a sphere, odd places."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import block_diag
from scipy.special import logsumexp

from tests.helpers import core_of, quick_and_long, z_scores
from tests.inference.test_gibbs import TIGHT, draw_data, draw_prior, kernel_of, summary, tiny_design, with_targets
from tuckergp import Mode, TuckerGPRegressor
from tuckergp.data.datasets import load_california
from tuckergp.data.tables import as_table
from tuckergp.errors import InputError
from tuckergp.evaluation.metrics import rmse
from tuckergp.features import Cholesky, Field
from tuckergp.inference import ALS, SGD, Gibbs
from tuckergp.inference.base import Problem
from tuckergp.kernels import SE, Identity, Matern12, Matern32, Matern52
from tuckergp.likelihoods import Gaussian
from tuckergp.model.design import Design
from tuckergp.model.mode_table import ModeTable
from tuckergp.model.tucker import TuckerModel
from tuckergp.posterior.draws import Draws
from tuckergp.priors.given import ModeGiven, SharedNoise
from tuckergp.priors.hyper import PrecisionPrior
from tuckergp.random import DrawStreams
from tuckergp.residuals import lengthscales, places
from tuckergp.residuals.base import ModeDraws
from tuckergp.residuals.field import Field as FieldResidual
from tuckergp.residuals.places import Places

NEW = np.array([[0.2, 0.3], [0.25, 0.3], [2.0, -1.0]])


def at_new_places(design):
    """The fields at NEW, with features of zero, the other modes as they are."""
    modes = []
    for table in design.modes:
        if isinstance(table.residual, FieldResidual):
            features = np.zeros((len(NEW), table.features.shape[1]))
            table = ModeTable(features, replace(table.residual, points=NEW), blocks=table.blocks)
        modes.append(table)
    return Design(tuple(modes), np.zeros((1, len(modes)), dtype=np.int32))


def dense_new_places(table, mode, rng):
    """E at NEW given E at the training places, by the dense Gaussian process."""
    field = table.residual
    kernel = kernel_of(field.train.order, mode.own.lengthscale)
    E = mode.psi - table.features @ mode.B
    weights = np.linalg.solve(kernel(field.points) + 1e-9 * np.eye(len(E)), kernel(field.points, NEW)).T
    C = field.sd**2 * (kernel(NEW) - weights @ kernel(field.points, NEW))
    values, vectors = np.linalg.eigh(C)
    root = np.linalg.cholesky(np.linalg.inv(mode.precision))
    noise = vectors @ (np.sqrt(np.maximum(values, 0))[:, None] * rng.standard_normal((len(NEW), len(root))))
    return weights @ E + noise @ root.T


def new_summary(table, mode, E):
    """Light-tailed functions of new values, of their products and of what they share with the first place."""
    values = np.vstack([E, (mode.psi - table.features @ mode.B)[0]])
    products = np.tanh(values @ mode.precision @ values.T)
    return [*np.tanh(values[:, 0]), *products[np.triu_indices(len(values))]]


GEWEKE = [
    ("identity", (1,), ("field12",), "shared"),  # drawn with f and the noise integrated out
    ("identity", (1,), ("field32",), "shared"),
    ("identity", (2, 2), ("field12", "rows"), "rows"),
    ("full", (2, 2), ("field32", "weights"), "shared"),
    ("identity", (2, 2, 2), ("field32", "matern12", "rows"), "shared"),
]


@quick_and_long("restarts", 40, 400)
@pytest.mark.parametrize(("core", "ranks", "kinds", "noise"), GEWEKE)
def test_sampler_and_data_together_keep_the_prior(core, ranks, kinds, noise, restarts, monkeypatch):
    """Geweke's test (2004) with restarts, as that of lines: all places are neighbours, so that the prior is the dense
    Gaussian process, be it computed as that of few places or of many. |z| < 4.5 on at most 60 functions, 5 cases: with
    a fresh seed, false alarms below 300 P(|t| > 4.5) for Student's t, which is 0.003 for 400 restarts and 0.01 for 60.
    """
    monkeypatch.setattr(Places, "few", kinds[0] == "field12")
    rng = np.random.default_rng(11)
    design = tiny_design(rng, kinds)
    if kinds == ("field32",):
        design.index[design.index == 2] = 1  # a place without data
    new = at_new_places(design)
    shape = core_of(core, list(ranks), rng)
    model = TuckerModel(shape, Gaussian(1.0), shape.default_sigma_u(), shape.default_sigma_w())
    gibbs = Gibbs(noise=noise, **TIGHT)

    def functions(state, y, E):
        return np.concatenate([summary(model, design, state, y), new_summary(design.modes[0], state.modes[0], E)])

    prepared = Problem(model, design, np.zeros(len(design.index)))
    changes = []
    for restart in range(restarts):
        # sweeps in which lengthscales are drawn in one way or another
        state = draw_prior(model, design, gibbs, rng)._replace(sweep=14 + restart % 10)
        y = draw_data(model, design, state, rng)
        before = functions(state, y, dense_new_places(design.modes[0], state.modes[0], rng))
        for _ in range(4):
            problem = with_targets(prepared, y)
            state, _ = gibbs.step(problem, state, rng)
            y = draw_data(model, design, state, rng)
        one = Draws.of(model, [gibbs.draw(problem, state)])
        E = one.factors(0, new.modes[0], one.streams(rng))[:, 0]
        changes.append(functions(state, y, E) - before)
    changes = np.array(changes)
    assert changes.shape[1] <= 60
    z = z_scores(changes)
    assert np.abs(z).max() < 4.5, np.round(z, 1)


def test_new_places_are_drawn_with_the_covariance_of_the_components():
    """200 places far from all others in 40 draws: a variance of 1 has the standard deviation (2 / 8000)^1/2 = 0.016."""
    far = 1_000.0 * np.arange(1, 201)[:, None] * np.ones(2)
    field = FieldResidual(Places(np.zeros((1, 2)), 1, 4, 4), far, np.ones(1), 1.0)
    covariance = np.array([[1.0, 0.8], [0.8, 1.0]])
    kept, own = {"values": np.zeros((1, 40, 2))}, {"lengthscale": np.ones((40, 1))}
    draws = ModeDraws(np.zeros((1, 40, 2)), np.tile(covariance, (40, 1, 1)), kept, own)
    names = np.column_stack([np.zeros(40, dtype=np.int64), np.arange(40)])
    E = field.factors(np.zeros((200, 1)), draws, DrawStreams(0, names))
    np.testing.assert_allclose(np.cov(E.reshape(-1, 2).T), covariance, atol=5 * 0.016)


@pytest.mark.parametrize("n", [0, 2])
def test_lengthscales_given_values_have_the_density_of_a_multivariate_t(n, monkeypatch):
    """Lambda = lambda I, lambda ~ Gamma(nu r / 2, square r / 2): E, and n weights of features whose tau is 1, have
    nu r degrees of freedom, scale square / nu.
    """
    rng = np.random.default_rng(0)
    X, E, sd, nu, square = 2 * rng.random((7, 2)), rng.standard_normal((7, 3)), 0.7, 5.0, 2.0
    B = rng.standard_normal((n, 3))
    where = Places(X, 2, 8, 8)
    state = lengthscales.FieldState(where, np.ones(1), np.ones(1), np.eye(3), sd, np.ones(1))
    given = ModeGiven(np.zeros((7, n)), (slice(0, n),), None, PrecisionPrior(nu, square, True))
    nothing = np.zeros((7, 3, 3)), np.zeros((7, 3))
    densities = []
    monkeypatch.setattr(lengthscales.FieldState, "drawn", lambda self, f, rng: densities.append(f) or self)
    lengthscales.given_values(state, E, nothing, np.zeros((7, 3)), B.T @ B, given, rng)

    def log_density(lengthscale):
        covariance = block_diag(sd**2 * kernel_of(2, lengthscale)(X), np.eye(n))
        scale = square / nu * np.kron(covariance, np.eye(3))
        return stats.multivariate_t(np.zeros(len(scale)), scale, nu * 3).logpdf(np.vstack([E, B]).ravel())

    found, expected = zip(
        *((densities[-1](state.with_lengthscale(0, np.log(x))), log_density(np.array([x]))) for x in (0.3, 1.0, 2.0)),
        strict=True,
    )
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-4)


def lone_field(rng, M=5):
    """A lone field with two weights, its observations at all places but one, and what a sweep is given of both."""
    X, place = 2 * rng.random((M, 2)), rng.integers(M - 1, size=12)
    weight, y = rng.gamma(3.0, 1 / 3, 12), rng.standard_normal(12)
    alpha, sd, mean, B = 1.7, 0.7, rng.standard_normal((M, 1)), rng.standard_normal((2, 1))
    A, b = (alpha * np.bincount(place, values, M) for values in (weight, weight * y))
    noise = SharedNoise(alpha, 3.0, 2.0, 12, float((weight * y**2).sum()))
    given = ModeGiven(np.zeros((M, 2)), (slice(0, 2),), None, PrecisionPrior(5.0, 2.0, False), noise=noise)
    state = lengthscales.FieldState(Places(X, 2, 8, 8), np.ones(1), np.ones(1), np.array([[0.8]]), sd, np.ones(1))
    return state, (A[:, None, None], b[:, None]), mean, B.T @ B, given, (X, place, weight, y, B)


def test_a_lone_field_and_its_noise_have_the_density_that_integrating_out_lambda_gives():
    """Against a sum over Lambda of the densities of observations, weights and Lambda, and of the noise precision."""
    state, statistics, mean, weights, given, (X, place, weight, y, B) = lone_field(np.random.default_rng(2))
    responses = lengthscales.Responses.of(statistics, mean, given.noise)
    log_lambda = np.linspace(-9, 6, 3_000)

    def by_hand(lengthscale, log_h):
        K = kernel_of(2, np.array([lengthscale]))(X)[np.ix_(place, place)]
        rho = np.exp(log_lambda)
        # the covariance of the observations is (sd^2 / Lambda) (K + diag(1 / (h w)))
        covariance = state.sd**2 * (K + np.diag(1 / (np.exp(log_h) * weight)))
        left = y - mean[place, 0]
        square = left @ np.linalg.solve(covariance, left)
        of_data = 6 * log_lambda - np.linalg.slogdet(covariance)[1] / 2 - rho * square / 2
        of_weights = stats.norm(0, rho[:, None] ** -0.5).logpdf(B.T).sum(axis=1)
        alpha = np.exp(log_h) * rho / state.sd**2
        # log alpha - log h, and log Lambda, are as good as each other
        of_alpha = stats.gamma(given.noise.shape, scale=1 / given.noise.rate).logpdf(alpha) + np.log(alpha)
        of_lambda = stats.gamma(2.5, scale=1.0).logpdf(rho) + log_lambda  # degrees / 2, square / 2
        every = of_data + of_weights + of_alpha + of_lambda
        share = np.exp(every - logsumexp(every))
        return logsumexp(every), share @ rho

    found, expected = [], []
    for lengthscale, log_h in ((1.0, 0.0), (0.4, 0.0), (1.0, 1.5), (2.0, -1.0)):
        at = state.with_lengthscale(0, np.log(lengthscale))
        log_density, mean_of_lambda = by_hand(lengthscale, log_h)
        found.append(responses.log_density(at, log_h, weights, given))
        expected.append(log_density)
        rate, _ = responses.rate(at, log_h, weights, given)
        assert responses.shape(given) / rate == pytest.approx(mean_of_lambda, rel=1e-4)
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-4)


def test_values_of_a_lone_field_are_drawn_with_its_new_noise(monkeypatch):
    """With h held, and h over l^(2 nu) as the lengthscale moves, the new noise precision is h Lambda / sd^2."""
    rng = np.random.default_rng(2)
    state, (A, b), mean, weights, given, _ = lone_field(rng)
    monkeypatch.setattr(lengthscales, "log_slice", lambda f, x, width, rng: x)
    monkeypatch.setattr(lengthscales.FieldState, "drawn", lambda self, *rest: self.with_lengthscale(0, np.log(2.0)))
    new, (A_new, b_new) = lengthscales.given_responses(state, (A, b), mean, weights, given, given.noise, rng)
    assert new.precision[0, 0] != state.precision[0, 0]
    more = 2.0**3 * new.precision[0, 0] / state.precision[0, 0]  # order 2, so 2 nu = 3
    np.testing.assert_allclose(A_new, more * A, rtol=1e-12)
    np.testing.assert_allclose(b_new, more * b, rtol=1e-12)


# One mode of rank 1: plain Gaussian process regression

materns = pytest.mark.parametrize("kernel", [Matern12(0.8), 0.5 * Matern32([0.8, 1.5]), 2.0 * Matern52(0.8)])


def surface(rows=60, seed=0, columns=2):
    """Inputs, some of them twice, and targets with mean 0 and standard deviation 1."""
    rng = np.random.default_rng(seed)
    X = 2 * rng.random((rows, columns))
    X = np.vstack([X, X[:5]])
    y = np.sin(2 * X[:, 0]) * np.cos(X[:, 1]) + 0.2 * rng.standard_normal(len(X))
    return X, (y - y.mean()) / y.std()


def table(X):
    return {f"x{j}": column for j, column in enumerate(X.T)}


def field_of(kernel, columns=2, **settings):
    return Mode([f"x{j}" for j in range(columns)], kernel, features=Field(**settings), constant=False)


@materns
def test_als_with_all_neighbours_is_the_dense_gaussian_process(kernel):
    X, y = surface()
    model = TuckerGPRegressor([field_of(kernel, neighbours=64)], rank=1, core="identity", inference=ALS(noise=0.3))
    model.fit(table(X), y)
    points = np.vstack([X, surface(20, 1)[0]])
    expected = kernel(points, X) @ np.linalg.solve(kernel(X) + 0.3 * np.eye(len(X)), y)
    np.testing.assert_allclose(model.predict(table(points)), expected, atol=2e-5)


@materns
def test_gibbs_with_fixed_numbers_has_the_posterior_of_the_dense_process(kernel):
    """Means within 5 standard errors of 150 draws, 80 places; the covariance of all pairs of 12 new places together."""
    X, y = surface()
    mode = replace_features(field_of(kernel), Field(neighbours=64, learn=False))
    model = TuckerGPRegressor([mode], rank=1, draws=150, warmup=5, random_state=0).fit(table(X), y)
    draws = model.fit_.draws
    new = surface(12, 1)[0][:12]
    # variance and noise move; the dense posterior is averaged over those of the draws
    means, covariances = [], []
    for variance, alpha in zip(draws.modes[0].values["spread"][:, 0, 0], draws.unknowns["alpha"], strict=True):
        K = variance * kernel(X) + np.eye(len(X)) / alpha
        cross = variance * kernel(new, X)
        means.append(cross @ np.linalg.solve(K, y))
        covariances.append(variance * kernel(new) - cross @ np.linalg.solve(K, cross.T))
    mean, covariance = model.predict(table(new), return_cov=True, include_noise=False)
    expected = np.mean(covariances, axis=0) + np.cov(np.transpose(means))
    np.testing.assert_allclose(mean, np.mean(means, axis=0), atol=5 * np.sqrt(expected.max() / 150))
    assert np.linalg.norm(covariance - expected) < 0.35 * np.linalg.norm(expected)
    samples = model.sample_y(table(new), 300, include_noise=False, random_state=0)
    assert np.linalg.norm(np.cov(samples) - expected) < 0.35 * np.linalg.norm(expected)


def replace_features(mode, features):
    return Mode(mode.columns, mode.kernel, features=features, constant=mode.constant)


def test_few_neighbours_predict_nearly_as_all_do(monkeypatch):
    """The posterior standard deviation of f is about 0.15."""
    monkeypatch.setattr(places, "EXACT", 0)
    X, y = surface(150)
    points = surface(50, 1)[0]
    found = []
    for settings in ({"neighbours": 15, "predicting": 40}, {"neighbours": 149, "predicting": 150}):
        mode = field_of(Matern32(0.8), **settings)
        model = TuckerGPRegressor([mode], rank=1, core="identity", inference=ALS(noise=0.1))
        found.append(model.fit(table(X), y).predict(table(points)))
    assert 0 < rmse(*found) < 0.02


def test_lengthscales_of_columns_are_learned_apart():
    # the function does not depend on the second column, and the third is constant
    rng = np.random.default_rng(0)
    X = np.column_stack([4 * rng.random((250, 2)), np.full(250, 3.0)])
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(250)
    model = TuckerGPRegressor([field_of(Matern52([1.0] * 3), 3)], rank=1, draws=40, warmup=40, random_state=0)
    model.fit(table(X), y)
    lengthscale = np.median(model.fit_.draws.modes[0].values["lengthscale"], axis=0)
    assert lengthscale.shape == (3,)
    assert lengthscale[1] > 4 * lengthscale[0]
    mean, std = model.predict(table(X), return_std=True)
    assert rmse(np.sin(2 * X[:, 0]), mean) < 0.06
    assert 0.08 < np.median(std) < 0.14


def test_a_short_lengthscale_is_found_from_a_long_one_in_a_few_sweeps():
    X = np.random.default_rng(0).random((400, 2))
    f = np.sin(20 * X[:, 0])
    model = TuckerGPRegressor([field_of(Matern52([8.0, 8.0]))], rank=1, draws=3, warmup=2, random_state=0)
    model.fit(table(X[:350]), f[:350] + 0.1 * np.random.default_rng(1).standard_normal(350))
    assert (model.fit_.draws.modes[0].values["lengthscale"] < [0.5, np.inf]).all()
    assert rmse(f[350:], model.predict(table(X[350:]))) < 0.1


def test_answers_at_training_places_look_up_no_neighbours(monkeypatch):
    X, y = surface()
    model = TuckerGPRegressor([field_of(Matern12(1.0))], rank=1, draws=3, warmup=2, random_state=0).fit(table(X), y)
    monkeypatch.setattr(Places, "given", None)
    model.predict(table(X))


# A field among other modes


def test_a_field_times_rows_recovers_both():
    rng = np.random.default_rng(0)
    places, kinds = rng.random((40, 2)), rng.standard_normal(6)
    at, kind = rng.integers(40, size=500), rng.integers(6, size=500)
    f = np.sin(4 * places[:, 0] + 2 * places[:, 1])
    y = f[at] * kinds[kind] + 0.1 * rng.standard_normal(500)
    modes = [Mode(["x0", "x1"], Matern32(0.5)), Mode("kind", Identity())]
    X = {**table(places[at]), "kind": kind}
    model = TuckerGPRegressor(modes, rank=2, draws=40, warmup=40, random_state=0).fit(X, y)
    assert rmse(f[at] * kinds[kind], model.predict(X)) < 0.08
    new = rng.random((30, 2))
    expected = np.sin(4 * new[:, 0] + 2 * new[:, 1]) * kinds[2]
    mean, std = model.predict({**table(new), "kind": np.full(30, 2)}, return_std=True, include_noise=False)
    assert rmse(expected, mean) < 0.35
    assert np.mean(np.abs(expected - mean) < 2.5 * std) > 0.8


def test_sgd_takes_features_and_refuses_a_field_asked_for():
    X, y = surface()
    mode = Mode(["x0", "x1"], Matern12(1.0))
    model = TuckerGPRegressor([mode], rank=1, inference=SGD(epochs=2), random_state=0).fit(table(X), y)
    assert isinstance(model.modes_[0].blocks[1].map, Cholesky)
    with pytest.raises(InputError, match=r"Field\(\) of mode 'x0, x1' needs inference='gibbs' or 'als'"):
        TuckerGPRegressor([field_of(Matern12(1.0))], rank=1, inference="sgd").fit(table(X), y)


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        (Mode(["x0", "x1"], SE(), features=[Field()]), r"Field\(\) is for one Matern term"),
        (Mode(["x0", "x1"], Matern12(columns="x0"), features=Field()), "tell all inputs of the mode apart"),
        (Mode(["x0", "x1"], Matern12(), features=Field(neighbours=0)), "neighbours must be"),
        (Mode(["x0", "x1"], Matern12([1.0, 2.0]), features=Field(sphere=True)), "two columns, and a kernel with one"),
        (Mode(["x0", "x1"], Matern12(), features=Field(sphere=True)), "'x1' of a field on a sphere has latitudes"),
    ],
)
def test_what_cannot_be_a_field_is_refused(mode, message):
    X = as_table({"x0": [1.0, 1.0, 2.0], "x1": [0.0, 100.0, 1.0]}, "X")
    with pytest.raises(InputError, match=message):
        Design.fit([mode], X)


def test_what_is_watched_has_the_lengthscales_of_all_modes():
    X, y = surface()
    modes = [Mode(["x0", "x1"], Matern12([1.0, 1.0])), Mode("t", Matern12(1.0))]
    model = TuckerGPRegressor(modes, rank=1, draws=6, warmup=3, random_state=0).fit({**table(X), "t": X[:, 0]}, y)
    (watched,) = model.fit_.draws.watched
    kept = [mode.values["lengthscale"].reshape(6, -1) for mode in model.fit_.draws.modes]
    np.testing.assert_allclose(watched["lengthscale"], np.hstack(kept))


@pytest.mark.parametrize(("sweep", "follows"), [(8, True), (9, False), (32, True), (64, False)])
def test_neighbours_follow_the_lengthscales_in_some_sweeps_of_the_warm_up(sweep, follows):
    rng = np.random.default_rng(0)
    design = tiny_design(rng, ("field32",))
    core = core_of("identity", [1], rng)
    model = TuckerModel(core, Gaussian(1.0), core.default_sigma_u(), 1.0)
    gibbs = Gibbs(**TIGHT)
    state = draw_prior(model, design, gibbs, rng)
    own = state.modes[0].own._replace(metric=np.array([1.0, 5.0]))
    state = state._replace(sweep=sweep, modes=(state.modes[0]._replace(own=own),))
    moved, _ = gibbs.step(Problem(model, design, draw_data(model, design, state, rng)), state, rng)
    np.testing.assert_array_equal(moved.modes[0].own.metric, own.lengthscale if follows else own.metric)


def test_a_run_goes_on_from_its_checkpoint_as_if_it_had_not_stopped(tmp_path):
    X, y = surface()
    mode = Mode(["x0", "x1"], Matern12([1.0, 2.0]), features=Field(neighbours=5))

    def fit(draws, **more):
        return TuckerGPRegressor([mode], rank=1, draws=draws, warmup=3, random_state=0).fit(table(X), y, **more)

    fit(2, checkpoint=tmp_path)
    np.testing.assert_array_equal(fit(5, checkpoint=tmp_path).predict(table(X)), fit(5).predict(table(X)))


# Odd places


@pytest.mark.parametrize("rows", [1, 2, 5])
@materns
def test_fewer_places_than_neighbours(rows, kernel):
    rng = np.random.default_rng(rows)
    X, y = rng.random((rows, 2))[np.arange(12) % rows], rng.standard_normal(12)
    model = TuckerGPRegressor([Mode(["x0", "x1"], kernel)], rank=1, draws=5, warmup=5, random_state=0)
    model.fit(table(X), y)
    mean, std = model.predict(table(np.vstack([X, X + 0.1])), return_std=True)
    assert np.isfinite(mean).all()
    assert (std > 0).all()


@materns
def test_places_next_to_each_other_share_their_value(kernel):
    X, y = surface()
    X = np.vstack([X, X + 1e-10, X * (1 + 1e-15)])
    model = TuckerGPRegressor([Mode(["x0", "x1"], kernel)], rank=1, draws=10, warmup=10, random_state=0)
    model.fit(table(X), np.tile(y, 3))
    mean, std = model.predict(table(X), return_std=True, include_noise=False)
    np.testing.assert_allclose(mean[: len(y)], mean[len(y) : 2 * len(y)], atol=1e-3)
    assert np.isfinite(std).all()


# On a sphere


def chord(a, b):
    """In degrees of a great circle, of (longitude, latitude) in degrees; by the haversine formula."""
    (lon, lat), (other, to) = np.radians(a), np.radians(b)
    h = np.sin((to - lat) / 2) ** 2 + np.cos(lat) * np.cos(to) * np.sin((other - lon) / 2) ** 2
    return np.degrees(2 * np.sqrt(h))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((179.9, 10), (-179.9, 10)),
        ((0, 90), (123, 90)),
        ((10, -89.9), (-170, -89.9)),
        ((0, 0), (180, 0)),
        ((5, 50), (6, 51)),
    ],
)
def test_places_on_a_sphere_are_as_far_apart_as_their_chord(a, b):
    columns = as_table({"longitude": [float(a[0]), float(b[0])], "latitude": [float(a[1]), float(b[1])]}, "X")
    x, y = Field(sphere=True).fit(columns, Matern12()).points(columns)
    assert np.linalg.norm(x - y) == pytest.approx(chord(a, b), abs=1e-9)


def test_two_inputs_that_are_one_place_on_the_sphere_are_refused():
    X = as_table({"longitude": [26.0, 386.0, 5.0], "latitude": [0.0, 0.0, 0.0]}, "X")
    with pytest.raises(InputError, match="one place on the sphere; bring longitudes between"):
        Design.fit([Mode(["longitude", "latitude"], Matern12(1.0), features=Field(sphere=True))], X)


def test_on_a_sphere_the_date_line_and_the_poles_are_no_edges():
    rng = np.random.default_rng(0)
    longitude, latitude = rng.uniform(-180, 180, 600), np.degrees(np.arcsin(rng.uniform(-1, 1, 600)))
    x = np.cos(np.radians(latitude)) * np.cos(np.radians(longitude))
    X = {"longitude": longitude, "latitude": latitude}
    mode = Mode(["longitude", "latitude"], Matern52(40.0), features=Field(sphere=True))
    model = TuckerGPRegressor([mode], rank=1, draws=20, warmup=20, random_state=0)
    model.fit(X, x + 0.05 * rng.standard_normal(600))
    edges = {"longitude": [179.999, -180.0, 33.0, -120.0], "latitude": [20.0, 20.0, 90.0, 90.0]}
    mean = model.predict(edges)
    np.testing.assert_allclose(mean[[0, 2]], mean[[1, 3]], atol=1e-3)
    np.testing.assert_allclose(mean, [-np.cos(np.radians(20))] * 2 + [0, 0], atol=0.08)


@pytest.mark.slow
def test_california_as_a_field(data_dir):
    # every eighth training row of the authors' split; predicting the mean gives 0.57, two chains 0.36
    data = load_california(data_dir)
    columns = {name: data.table[name] for name in ("longitude", "latitude")}
    y = np.log(data.table["house_value"])
    model = TuckerGPRegressor([Mode(list(columns), Matern12(1.0))], rank=1, draws=12, warmup=12, random_state=0)
    train, test = data.train[::8], data.test[::12]
    model.fit({name: values[train] for name, values in columns.items()}, y[train])
    mean, band = model.predict({name: values[test] for name, values in columns.items()}, quantiles=[0.05, 0.95])
    assert rmse(y[test], mean) < 0.33
    assert 0.85 < np.mean((band[:, 0] < y[test]) & (y[test] < band[:, 1])) < 0.95
