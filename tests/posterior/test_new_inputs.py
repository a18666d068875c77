"""Away from the data, predictions are as uncertain as the prior says: gaps, extrapolation, levels never seen."""

import numpy as np
import pytest

from tests.helpers import quick_and_long
from tuckergp import Mode, TuckerGPRegressor
from tuckergp.data.tables import as_table
from tuckergp.features import Cholesky, Nystrom
from tuckergp.inference.base import Problem
from tuckergp.inference.weights import draw_of_weights
from tuckergp.kernels import SE, Identity, Linear
from tuckergp.likelihoods import Gaussian
from tuckergp.model.design import Design
from tuckergp.model.mode_table import ModeTable
from tuckergp.model.tucker import TuckerModel, make_core
from tuckergp.posterior.draws import PREDICTION_SEED, Draws
from tuckergp.random import mixed, stream
from tuckergp.residuals import Rows

RANGE, GAP, OUTSIDE = 0, 1, 2


def data_with_a_gap(seed, n=120):
    """A function drawn from SE(0.3), observed on two pieces of the line; and its values in, between and beside them."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.uniform(0, 3, n // 2), rng.uniform(4, 7, n // 2)])
    asked = np.concatenate([np.linspace(0, 3, 20), np.linspace(3.2, 3.8, 10), np.linspace(7.4, 9, 10)])
    where = np.repeat([RANGE, GAP, OUTSIDE], [20, 10, 10])
    values, vectors = np.linalg.eigh(SE(0.3)(np.concatenate([x, asked])))
    f = vectors @ (np.sqrt(np.maximum(values, 0)) * rng.standard_normal(len(values)))
    return {"x": x}, f[:n] + 0.2 * rng.standard_normal(n), {"x": asked}, f[n:], where


def coverage(seeds, features):
    inside = []
    for seed in range(seeds):
        X, y, asked, f, where = data_with_a_gap(seed)
        model = TuckerGPRegressor([Mode("x", SE(0.3), features)], rank=1, draws=100, warmup=50, random_state=seed)
        low, high = model.fit(X, y).predict(asked, quantiles=[0.05, 0.95], include_noise=False)[1].T
        within = (low < f) & (f < high)
        inside.append([within[where == place].mean() for place in (RANGE, GAP, OUTSIDE)])
    return np.mean(inside, axis=0)


@quick_and_long("seeds", 6, 40)
@pytest.mark.parametrize("features", [None, Nystrom(25), Cholesky(max_features=20)], ids=repr)
@pytest.mark.filterwarnings("ignore::tuckergp.errors.ApproximationWarning")
def test_intervals_cover_in_gaps_and_outside(seeds, features):
    """Nominal 90 %; without what features leave out, 0.25 to 0.5 outside. A false alarm is less than one in 1,000."""
    covered = coverage(seeds, features)
    assert (covered > (0.72 if seeds < 20 else 0.82)).all(), covered


@pytest.fixture(scope="module")
def fitted():
    X, y, asked, _, where = data_with_a_gap(0)
    model = TuckerGPRegressor([Mode("x", SE(0.3))], rank=1, draws=600, warmup=100, random_state=0)
    return model.fit(X, y, moments_of=asked), asked, where


def test_samples_and_covariances_are_joint(fitted):
    """Neighbours outside the data move together, as the kernel says, in `sample_y` and `return_cov` alike."""
    model, asked, where = fitted
    outside = {"x": asked["x"][where == OUTSIDE]}
    kernel = SE(0.3)(outside["x"])
    for covariance in (
        np.cov(model.sample_y(outside, 600, include_noise=False, random_state=1)),
        model.predict(outside, return_cov=True, include_noise=False)[1],
    ):
        sd = np.sqrt(np.diag(covariance))
        correlation = covariance / np.outer(sd, sd)
        np.testing.assert_allclose(correlation, kernel, atol=0.25)  # the constant is uncertain too
        assert sd.min() > 0.5


def test_moments_taken_while_sampling_are_those_of_predict(fitted):
    model, asked, _ = fitted
    mean, std = model.predict(asked, return_std=True)
    np.testing.assert_allclose(model.moments_.std, std, rtol=1e-5)
    np.testing.assert_allclose(model.moments_.mean, mean, rtol=1e-5, atol=1e-6)


def test_the_mean_far_away_has_no_noise_of_its_own(fitted):
    model, _, _ = fitted
    far = {"x": np.array([50.0, 51.0, 60.0])}
    mean, _ = model.predict(far, return_std=True)
    np.testing.assert_allclose(mean, mean[0], rtol=1e-9)
    np.testing.assert_allclose(mean, model.predict(far), rtol=1e-9)


@pytest.mark.parametrize("inference", ["gibbs", "vi", "hmc", "sgld", "nuts"])
def test_every_sampler_is_unsure_far_away(inference):
    """Far away the sd of f is that of the prior given the posterior's scales: at least half that of the targets."""
    if inference == "nuts":
        pytest.importorskip("nutpie")
    X, y, _, _, _ = data_with_a_gap(1, 80)
    lengths = {} if inference == "vi" else {"draws": 60, "warmup": 60}
    model = TuckerGPRegressor([Mode("x", SE(0.3))], rank=1, inference=inference, random_state=0, **lengths).fit(X, y)
    _, std = model.predict({"x": [30.0, 40.0]}, return_std=True, include_noise=False)
    assert (std > 0.5 * y.std()).all()


# Levels never seen


def test_new_groups_have_the_variance_of_their_term():
    """Users who differ much, weeks that differ little: newcomers are as uncertain as users differ."""
    rng = np.random.default_rng(0)
    users, weeks = 80, 4
    level = 2.0 * rng.standard_normal(users + 200)
    user, week = np.repeat(np.arange(users), weeks), np.tile(np.arange(weeks), users)
    y = level[user] + 0.3 * rng.standard_normal(len(user))
    kernel = Identity("user", "week") + Identity("user")
    model = TuckerGPRegressor([Mode(["user", "week"], kernel)], rank=1, draws=150, warmup=100, random_state=0)
    model.fit({"user": user, "week": week}, y)
    new = np.arange(users, users + 200)
    low, high = model.predict({"user": new, "week": np.zeros(200, dtype=int)}, quantiles=[0.05, 0.95])[1].T
    truth = level[new] + 0.3 * rng.standard_normal(200)
    assert 0.82 < np.mean((low < truth) & (truth < high)) < 0.97
    # two weeks of one newcomer share the newcomer's level
    twice = {"user": np.repeat(new[:2], 2), "week": [0, 1, 0, 1]}
    covariance = model.predict(twice, return_cov=True, include_noise=False)[1]
    correlation = covariance / np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    assert correlation[0, 1] > 0.8
    assert abs(correlation[0, 2]) < 0.4


def test_new_categories_have_the_variance_of_categories():
    rng = np.random.default_rng(1)
    kinds = 40
    effect = 1.5 * rng.standard_normal(kinds + 100)
    kind = rng.integers(kinds, size=600)
    y = effect[kind] + 0.3 * rng.standard_normal(600)
    names = np.array([f"kind {k}" for k in range(kinds + 100)], dtype=object)
    model = TuckerGPRegressor([Mode("kind", Linear("kind"))], rank=1, draws=150, warmup=100, random_state=0)
    model.fit({"kind": names[kind]}, y)
    new = np.arange(kinds, kinds + 100)
    low, high = model.predict({"kind": names[new]}, quantiles=[0.05, 0.95], include_noise=False)[1].T
    assert np.mean((low < effect[new]) & (effect[new] < high)) > 0.8


def test_the_same_new_input_has_random_numbers_of_its_own_in_each_mode():
    """Two modes of one column: the factors of a level or value never seen in one say nothing of those in the other."""
    rng, names = np.random.default_rng(0), ("row", "row", "x", "x")
    X = {name: rng.integers(10, size=60).astype(float) for name in names}
    modes = [Mode(name, SE(0.3) if name == "x" else Identity()) for name in names]
    model = TuckerGPRegressor(modes, rank=1, draws=8, warmup=2, random_state=0).fit(X, rng.standard_normal(60))
    draws, new = model.fit_.draws, 100.0 + 5 * np.arange(300)
    design = Design.transform(model.modes_, as_table(dict.fromkeys(names, new), "new"))
    psi = [draws.factors(d, table, draws.streams(stream(1)))[:, :, 0] for d, table in enumerate(design.modes)]
    for first, second in ((0, 1), (2, 3)):
        for s in range(8):  # below 1e-4 for all together
            assert abs(np.corrcoef(psi[first][:, s], psi[second][:, s])[0, 1]) < 4.8 / np.sqrt(300)


@pytest.mark.parametrize("likelihood", ["gaussian", "ordinal"])
def test_the_mean_of_a_level_never_seen_is_that_of_its_draws_where_it_is_no_linear_function_of_f(likelihood):
    rng = np.random.default_rng(0)
    X, new = {"shop": rng.integers(12, size=200)}, {"shop": [3, 90, 91]}
    y = rng.poisson(np.exp(rng.standard_normal(12))[X["shop"]]).clip(0, 4)
    settings = {"rank": 1, "draws": 12, "warmup": 12, "random_state": 0}
    fit = TuckerGPRegressor([Mode("shop", Identity())], likelihood=likelihood, **settings).fit(X, y)
    alone, beside = fit.predict(new), fit.predict(new, return_std=True)[0]
    np.testing.assert_allclose(alone, beside, rtol=1e-12)
    design = Design.transform(fit.modes_, as_table(new, "new"))
    draws = fit.fit_.draws
    at = draws.predicted(design, None if likelihood == "gaussian" else stream(PREDICTION_SEED))
    np.testing.assert_allclose(alone, fit.fit_.likelihood.means(at).mean(axis=0), rtol=1e-12)
    if likelihood != "gaussian":
        assert abs(alone[1] - fit.fit_.likelihood.means(draws.predicted(design)).mean(axis=0)[1]) > 0.01


@pytest.mark.parametrize("sigma", [0.3, 1.7])
def test_samplers_of_weights_draw_rows_never_seen_with_the_variance_of_the_prior(sigma):
    """3,000 rows of rank 2 with the standard deviation 0.8 sigma; a relative error of 6000^-1/2 = 0.013 each."""
    new = Rows(np.full(3_000, -1, dtype=np.int32), 4, 0.8, names=mixed(np.arange(3_000, dtype=np.uint64)))
    core = make_core("identity", [2])
    model = TuckerModel(core, Gaussian(1.0), np.array([sigma]), 1.0)
    table = ModeTable(np.ones((4, 1)), Rows.of(4, 0.8))
    problem = Problem(model, Design((table,), np.arange(4, dtype=np.int32)[:, None]), np.zeros(4))
    start = model.init(problem.design, np.random.default_rng(0))
    draws = Draws.of(model, [draw_of_weights(problem, start, {})])
    E = draws.factors(0, ModeTable(np.zeros((3_000, 1)), new), draws.streams(stream(1)))[:, 0]
    np.testing.assert_allclose(E.std(axis=0), 0.8 * sigma, rtol=5 * 0.013)
    np.testing.assert_allclose(draws.modes[0].values["spread"][0], sigma**2 * np.eye(2))
