"""Negative binomial counts: density, conditionals by integration, the posterior by quadrature, recovery, answers.

Simulations have fixed seeds; bounds in standard errors are 4.5, which fresh seeds break in fewer than 1 of 1,000 cases.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy import stats

from tests.contracts.test_samplers import ERRORS, errors_of, fixed_gibbs
from tests.helpers import core_of, quick_and_long, with_share_of_draws
from tuckergp import Mode, TuckerGPRegressor, TuckerRecommender
from tuckergp.errors import InputError, NotConvergedWarning
from tuckergp.inference import HMC, NUTS, SGLD
from tuckergp.inference.base import Problem
from tuckergp.kernels import SE, Identity
from tuckergp.likelihoods import NegativeBinomial, Poisson
from tuckergp.likelihoods.given import NoiseSettings, Observed, Predicted
from tuckergp.likelihoods.mixture import negative_binomial_quantiles, poisson_quantiles
from tuckergp.likelihoods.negative_binomial import NegativeBinomialState, draw_dispersion, log_rising
from tuckergp.model.design import Design
from tuckergp.model.mode_table import ModeTable
from tuckergp.model.tucker import TuckerModel
from tuckergp.running.loop import sample

pytestmark = pytest.mark.filterwarnings("ignore::tuckergp.errors.NotConvergedWarning")


def nbinom(mean, h):
    return stats.nbinom(h, h / (h + mean))


def draws_of_counts(mean, h, rng):
    return rng.poisson(mean * rng.gamma(h, 1 / h, np.shape(mean))).astype(float)


def observed(y, weight=None, offset=None):
    n = len(y)
    return Observed(np.asarray(y, float), weight, offset, np.zeros((n, 1), np.int32), (np.zeros(1, np.int32),), (0,))


@pytest.mark.parametrize("h", [0.03, 1.0, 40.0, 9_000.0, 1e6])
def test_the_density_is_that_of_scipy(h):
    y, f = np.repeat(np.arange(0.0, 60.0, 7), 3), np.tile([-3.0, 0.0, 4.0], 9)
    expected = nbinom(np.exp(f), h).logpmf(y)
    np.testing.assert_allclose(NegativeBinomial(dispersion=h).log_density(y, f), expected, rtol=1e-6, atol=1e-6)


def test_many_counts_of_large_dispersion_are_poisson():
    y, f = np.array([0.0, 3.0, 1e6]), np.array([-2.0, 1.0, 13.8])
    for h in (1e12, 1e15):
        np.testing.assert_allclose(
            NegativeBinomial(dispersion=h).log_density(y, f), Poisson().log_density(y, f), rtol=1e-5
        )
    # both formulas where one takes over from the other
    near = [log_rising(np.arange(50.0), h) for h in (9_999.999, 10_000.001)]
    np.testing.assert_allclose(near[0], near[1], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_slope_in_the_dispersion_is_that_of_finite_differences(weighted):
    rng = np.random.default_rng(0)
    y, f = rng.poisson(4.0, 50).astype(float), rng.standard_normal(50)
    weight = rng.uniform(0.5, 2.0, 50) if weighted else np.ones(50)
    for log_h in (-2.0, 1.0, 6.0):
        start, step = NegativeBinomial(), 1e-5
        ends = [weight @ start.with_free(np.array([log_h + s])).log_density(y, f) for s in (-step, step)]
        found = start.with_free(np.array([log_h])).slopes(y, f, weight if weighted else None)[2]
        np.testing.assert_allclose(found, [(ends[1] - ends[0]) / (2 * step)], rtol=1e-5, atol=1e-5)
        prior = [start.log_prior(np.array([log_h + s]))[0] for s in (-step, step)]
        np.testing.assert_allclose(start.log_prior(np.array([log_h]))[1], [(prior[1] - prior[0]) / (2 * step)])


@pytest.mark.parametrize("weight", [1.0, 3.0])
def test_given_omega_a_count_is_gaussian(weight):
    """The density of the working target, averaged over omega, is the density of the count as a function of f.

    p(y | f) / p(y | f0) = E exp(kappa (c - c0) - omega (c^2 - c0^2) / 2), omega ~ PG(y + h, c0) as drawn at f0.
    """
    rng = np.random.default_rng(0)
    h, offset, f0 = 2.5, 0.7, 0.4
    for y in (0.0, 3.0, 20.0):
        data = observed(np.full(40_000, y), np.full(40_000, weight), np.full(40_000, offset))
        target, precision = NegativeBinomial().augment(NegativeBinomialState(h), data, lambda: np.full(40_000, f0), rng)
        for f in (0.3, 0.5):
            logs = -0.5 * precision.weight * ((target - f) ** 2 - (target - f0) ** 2)
            likelihood = replace(NegativeBinomial(), dispersion=h)
            expected = weight * np.diff(likelihood.log_density(np.full(2, y), np.array([f0, f]) + offset))[0]
            found = np.exp(logs)
            assert abs(found.mean() - np.exp(expected)) < 4.5 * found.std() / np.sqrt(len(found))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("h", [0.5, 30.0])
def test_the_dispersion_has_its_conditional(h, weighted):
    """Against scipy's probabilities and the log-normal prior on a grid of log h; weights count equal counts."""
    rng = np.random.default_rng(1)
    f = rng.normal(1.0, 0.7, 80)
    y = draws_of_counts(np.exp(f), h, rng)
    weight = np.where(np.arange(80) < 30, 2.0, 1.0)
    x = np.linspace(-3, 8, 800)
    logs = np.array([nbinom(np.exp(f), np.exp(at)).logpmf(y) @ (weight if weighted else np.ones(80)) for at in x])
    share = np.exp(logs + stats.norm.logpdf(x, np.log(10), 1.5) - logs.max())
    share /= share.sum()
    mean = share @ x
    sd = np.sqrt(share @ (x - mean) ** 2)
    found, at = [], 10.0
    for _ in range(1500):
        at = draw_dispersion(y, f, weight if weighted else None, at, rng)
        found.append(np.log(at))
    mean_found, sd_found, error, sd_error = errors_of(np.array(found)[None, :, None])
    assert abs(mean_found[0] - mean) < ERRORS * error[0]
    assert abs(sd_found[0] - sd) < ERRORS * sd_error[0]


def one_number(weight=None):
    """F is one number u ~ N(0, 1) at all observations, with exposures."""
    rng = np.random.default_rng(3)
    design = Design((ModeTable(np.ones((1, 1))),), np.zeros((30, 1), dtype=np.int32))
    exposure = rng.uniform(0.5, 4.0, 30)
    model = TuckerModel(core_of("identity", [1], rng), NegativeBinomial(), np.ones(1), 1.0)
    y = draws_of_counts(exposure * np.exp(0.8), 2.0, rng)
    return Problem(model, design, y, weight, np.log(exposure))


@cache
def by_quadrature(weighted=False):
    """Means and standard deviations of u and log h, on a grid."""
    problem = one_number()
    weight = np.where(np.arange(30) < 10, 2.0, 1.0) if weighted else np.ones(30)
    u, x = np.meshgrid(np.linspace(-0.5, 2.0, 120), np.linspace(-4, 8, 120), indexing="ij")
    logs = -0.5 * u**2 - 0.5 * ((x - np.log(10)) / 1.5) ** 2
    for y, offset, w in zip(problem.y, problem.offset, weight, strict=True):
        logs += w * nbinom(np.exp(u + offset), np.exp(x)).logpmf(y)
    share = np.exp(logs - logs.max())
    share /= share.sum()
    means = np.array([(share * v).sum() for v in (u, x)])
    return means, np.sqrt([(share * (v - m) ** 2).sum() for v, m in zip((u, x), means, strict=True)])


SAMPLERS = {
    "gibbs": fixed_gibbs(1.0, draws=2500, warmup=50),
    "hmc": HMC(draws=1200, warmup=200, leapfrogs=6),
    "nuts": NUTS(draws=600, warmup=150, chains=1),
    "sgld": SGLD(draws=5000, warmup=200, batch_size=10, step_size=0.6, delay=3000.0),
}


@quick_and_long("of_draws", 0.25, 1)
@pytest.mark.parametrize(("name", "weighted"), [*((name, False) for name in SAMPLERS), ("gibbs", True)])
def test_every_sampler_agrees_with_quadrature(name, weighted, of_draws):
    """SGLD has a bias: 0.2 posterior standard deviations are allowed for it."""
    problem = one_number(np.where(np.arange(30) < 10, 2.0, 1.0) if weighted else None)
    draws, history = sample(with_share_of_draws(SAMPLERS[name], of_draws), problem, 1)
    assert "log_probability" in history[-1].figures
    watched = draws.watched[0]
    values = np.stack([watched["f"][:, 0], np.log(watched["dispersion"])], axis=-1)
    mean, sd, mean_error, sd_error = errors_of(values[None])
    exact_mean, exact_sd = by_quadrature(weighted)
    slack = (0.2 if name == "sgld" else 0.0) * exact_sd
    assert (np.abs(mean - exact_mean) < ERRORS * mean_error + slack).all()
    assert (np.abs(sd - exact_sd) < ERRORS * sd_error + slack).all()


@pytest.mark.parametrize("level", [0.01, 0.5, 0.95, 0.999])
def test_quantiles_are_those_of_the_mixture(level):
    """The first count whose distribution function reaches the level; single ones are scipy's."""
    rng = np.random.default_rng(0)
    h, mean = rng.gamma(0.5, 4.0, 7) + 0.05, np.exp(rng.normal(1.0, 2.0, (7, 30)))
    found = negative_binomial_quantiles(mean, h, level)
    for i, k in enumerate(found):
        each = nbinom(mean[:, i], h)
        assert each.cdf(k).mean() >= level - 1e-9
        assert k == 0 or each.cdf(k - 1).mean() < level
    single = np.array([[1e-12, 0.3, 7.7, 1e4, 1e6]])
    np.testing.assert_array_equal(
        negative_binomial_quantiles(single, np.array([3.0]), level), nbinom(single[0], 3.0).ppf(level)
    )


def test_extremes_neither_overflow_nor_break():
    rates = np.array([[1e-300, 1e20, 1.0], [1e-200, 1e43, 1e43]])
    for h in (1e-3, 1.0, 1e8):
        found = negative_binomial_quantiles(rates, np.full(2, h), 0.9)
        assert (np.isfinite(found) & (found >= 0)).all()
    small = np.array([[0.1, 3.0, 800.0]])
    for level in (0.05, 0.5, 0.99):
        poisson = poisson_quantiles(small, level)
        np.testing.assert_array_equal(negative_binomial_quantiles(small, np.array([1e7]), level), poisson)
    given = Predicted(np.array([[-1e5, 1e5, 0.0]]), {"dispersion": np.array([0.01])})
    likelihood = NegativeBinomial(mean=2.0)
    for answer in (
        likelihood.means(given),
        likelihood.variances(given),
        likelihood.sample(given, np.random.default_rng(0)),
    ):
        assert np.isfinite(answer).all()


def test_means_variances_and_samples_agree():
    rng = np.random.default_rng(4)
    given = Predicted(
        rng.standard_normal((3, 4)), {"dispersion": np.array([0.8, 5.0, 300.0])}, None, np.array([1.0, 2.0, 0.1, 30.0])
    )
    likelihood = NegativeBinomial(mean=0.5)
    each = nbinom(given.exposure * np.exp(0.5 + given.f), given.unknowns["dispersion"][:, None])
    np.testing.assert_allclose(likelihood.means(given), each.mean())
    np.testing.assert_allclose(likelihood.variances(given), each.var())
    drawn = np.stack([likelihood.sample(given, rng) for _ in range(5000)])
    assert (drawn == np.floor(drawn)).all()
    assert (np.abs(drawn.mean(axis=0) - each.mean()) < 4.5 * each.std() / np.sqrt(5000)).all()
    np.testing.assert_allclose(drawn.var(axis=0), each.var(), rtol=0.25)
    _, ends = likelihood.quantiles(given, [0.1, 0.9]).T, likelihood.interval(given, 0.8)
    np.testing.assert_array_equal(ends, likelihood.quantiles(given, [0.1, 0.9]))


def test_folding_in_draws_omega():
    """Working precisions and targets are those of `augment` with the same unknowns, on average."""
    rng = np.random.default_rng(0)
    exposure = np.array([2.0, 0.25])
    given = Predicted(np.array([[0.3, -0.5]]), {"dispersion": np.array([2.0])}, None, exposure)
    likelihood, y = NegativeBinomial(mean=0.9), np.array([4.0, 0.0])
    offset = 0.9 + np.log(exposure)
    data = observed(np.repeat(y, 5000), offset=np.repeat(offset, 5000))
    target, precision = likelihood.augment(NegativeBinomialState(2.0), data, lambda: np.repeat(given.f[0], 5000), rng)
    drawn = np.stack([likelihood.working(given, y, rng)[1][0] for _ in range(5000)])
    expected = precision.weight.reshape(2, 5000)
    error = expected.std(axis=1) * np.sqrt(2 / 5000)
    assert (np.abs(drawn.mean(axis=0) - expected.mean(axis=1)) < 4.5 * error).all()
    at_mean, omega = likelihood.working(given, y, None)
    np.testing.assert_allclose(omega[0], expected.mean(axis=1), rtol=0.05)
    np.testing.assert_allclose((at_mean * omega)[0] - (np.log(2) - offset) * omega[0], (y - 2) / 2)
    np.testing.assert_allclose(target - (np.log(2) - data.offset), (data.y - 2) / 2 / precision.weight)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(InputError, match="dispersion must be a positive number, not 0"):
        NegativeBinomial(dispersion=0)
    with pytest.raises(InputError, match="noise='rows' has no meaning with likelihood='negative_binomial'"):
        NegativeBinomial().start(observed([1.0]), NoiseSettings(rows=True))
    likes = {"user_id": ["a", "b", "a"], "item_id": [1, 1, 2], "rating": [1, 2.5, 3]}
    model = TuckerRecommender(rank=1, likelihood="negative_binomial", draws=2, warmup=1)
    with pytest.raises(InputError, match=r"needs counts, whole .* but ratings column 'rating' at row 1 holds 2.5"):
        model.fit(likes)
    twice = {"user_id": ["a", "a", "b"], "item_id": [1, 1, 1], "rating": [1, 2, 3]}
    with pytest.raises(InputError, match="Means of ratings make no sense with likelihood='negative_binomial'"):
        model.set_params(duplicates="mean").fit(twice)


def calls(h, n=1200, seed=0):
    """Counts by day and place with exposures."""
    rng = np.random.default_rng(seed)
    X = {"day": rng.uniform(-2, 2, n), "place": rng.choice(list("abcd"), n)}
    exposure = rng.uniform(0.5, 4.0, n)
    rate = np.exp(1.2 + np.sin(X["day"]) + 0.6 * (X["place"] == "b"))
    mean = exposure * rate
    return X, exposure, mean, rng.poisson(mean) if h is None else draws_of_counts(mean, h, rng)


def regression(h):
    X, exposure, _, y = calls(h)
    modes = [Mode("day", SE(1.0)), Mode("place", Identity())]
    model = TuckerGPRegressor(modes, rank=2, likelihood="negative_binomial", draws=150, warmup=100, random_state=0)
    return model.fit({name: values[:400] for name, values in X.items()}, y[:400], exposure=exposure[:400])


def coverages(model, h):
    """Share of new counts in 90 % intervals, and the length of these; also in those of Poissons with the same means."""
    X, exposure, _, y = calls(h)
    new = {name: values[400:] for name, values in X.items()}
    _, ends = model.predict(new, interval=0.9, exposure=exposure[400:])
    means = model.fit_.likelihood.means(model.fit_.draws.predicted(model._inputs(new), None, exposure[400:]))
    poisson = np.stack([poisson_quantiles(means, level) for level in (0.05, 0.95)], axis=1)
    return [
        (np.mean((each[:, 0] <= y[400:]) & (y[400:] <= each[:, 1])), np.mean(each[:, 1] - each[:, 0]))
        for each in (ends, poisson)
    ]


def test_intervals_of_overdispersed_counts_cover_where_those_of_poissons_do_not():
    """90 % or a little more, for counts are whole, and less than 70 % by Poisson; h and means are found."""
    model = regression(1.5)
    (covered, _), (of_poissons, _) = coverages(model, 1.5)
    assert 0.87 < covered < 0.96
    assert of_poissons < 0.7
    low, high = np.quantile(model.fit_.draws.unknowns["dispersion"], [0.01, 0.99])
    assert low < 1.5 < high < 3
    X, exposure, mean, _ = calls(1.5)
    new = {name: values[400:] for name, values in X.items()}
    predicted = model.predict(new, exposure=exposure[400:])
    assert np.sqrt(np.mean(np.log(predicted / mean[400:]) ** 2)) < 0.2
    few = {name: values[:4] for name, values in new.items()}
    np.testing.assert_allclose(model.predict(few, exposure=3.0), 3 * model.predict(few))
    drawn = model.sample_y(few, 50, exposure=2.0)
    assert drawn.shape == (4, 50)
    assert (drawn == np.floor(drawn)).all()


def test_poisson_counts_break_nothing():
    """The dispersion goes where prior and data let it; intervals are hardly longer than those of Poissons."""
    model = regression(None)
    assert np.quantile(model.fit_.draws.unknowns["dispersion"], 0.1) > 8
    (covered, length), (_, of_poissons) = coverages(model, None)
    assert 0.88 < covered < 0.97
    assert length < 1.15 * of_poissons


def test_strange_counts_are_fine():
    X = np.linspace(0, 1, 20)[:, None]
    for y in (np.zeros(20), np.full(20, 10**9), np.arange(20) ** 6):
        model = TuckerGPRegressor(rank=1, likelihood="negative_binomial", draws=30, warmup=30, random_state=0)
        mean, std = model.fit(X, y).predict(X, return_std=True)
        assert np.isfinite(mean).all()
        assert np.isfinite(std).all()
        assert np.isfinite(model.predict(X, quantiles=[0.1, 0.9])[1]).all()


@cache
def plays():
    """How often 60 users played each of some of 40 songs, and the pairs left."""
    rng = np.random.default_rng(1)
    user, item = (side.ravel() for side in np.meshgrid(np.arange(60), np.arange(40), indexing="ij"))
    f = 2 + 0.7 * (rng.standard_normal((60, 2)) @ rng.standard_normal((2, 40))).ravel()
    y = draws_of_counts(np.exp(f), 3.0, rng)
    parts = np.array_split(rng.permutation(2400), 2)
    return tuple({"user_id": user[part], "item_id": item[part], "rating": y[part], "f": f[part]} for part in parts)


def recommender(**settings):
    settings = {"draws": 80, "warmup": 60, "implicit": False, **settings}
    return TuckerRecommender(rank=4, likelihood="negative_binomial", time=None, random_state=0, **settings)


@cache
def recommender_of_plays():
    return recommender().fit(plays()[0])


def test_a_recommender_learns_from_counts():
    model, test = recommender_of_plays(), plays()[1]
    assert model.fit_.draws.modes[0].row_noise is None
    assert model.rating_range_ == (0.0, np.inf)  # the most seen is no limit
    mean, ends = model.predict(test, interval=0.9)
    assert np.corrcoef(np.log(mean), test["f"])[0, 1] > 0.8
    assert 0.87 < np.mean((ends[:, 0] <= test["rating"]) & (test["rating"] <= ends[:, 1])) < 0.97
    found = model.recommend([3], n=5)
    assert (np.diff(found["score"]) <= 0).all()
    explained = model.explain(3, int(found["item_id"].iloc[0]))
    assert explained.latent == "log of the mean"
    assert explained.total == pytest.approx(np.log(explained.predicted), abs=0.5)  # the mean of logs is less


def test_fold_in_is_near_a_refit():
    train, test = plays()
    late, theirs = train["user_id"] < 12, test["user_id"] < 12
    before, after = ({name: values[part] for name, values in train.items()} for part in (~late, late))
    pairs = {name: values[theirs] for name, values in test.items()}
    folded = recommender().fit(before).fold_in(after)
    predicted = [np.log(model.predict(pairs)) for model in (folded, recommender_of_plays())]
    assert np.corrcoef(*predicted)[0, 1] > 0.9
    _, ends = folded.predict(pairs, interval=0.9)
    assert 0.85 < np.mean((ends[:, 0] <= pairs["rating"]) & (pairs["rating"] <= ends[:, 1])) < 0.98
    with pytest.raises(InputError, match="needs counts, whole numbers from 0 on, but ratings column 'rating' at row 0"):
        folded.fold_in({"user_id": [1], "item_id": [1], "rating": [0.5]})


def test_going_on_keeps_the_dispersion():
    train, test = plays()
    model = recommender(draws=10, warmup=30).fit(train)
    before = model.fit_.draws.unknowns["dispersion"][-1]
    model.partial_fit({name: values[:50] for name, values in test.items()}, warmup=0)
    assert model.fit_.draws.unknowns["dispersion"][0] == pytest.approx(before, rel=0.6)
    assert np.isfinite(model.predict(test)).all()


def test_arviz_gets_the_dispersion():
    pytest.importorskip("arviz")
    data = recommender_of_plays().inference_data()
    assert data["posterior"]["dispersion"].shape == (1, 80)
    assert np.isfinite(data["log_likelihood"]["y"].values).all()


def test_counts_beyond_what_floats_tell_apart_are_refused():
    with pytest.raises(InputError, match=r"counts up to 1e\+12"):
        NegativeBinomial.read(np.array([1.0, 1e15]))
    assert NegativeBinomial.read(np.array([1.0, 1e12])).mean > 0


def test_large_counts_are_warned_of_before_gibbs_sampling():
    y, model = np.full(5, 5e3), NegativeBinomial()
    observed = Observed(y, None, None, np.zeros((5, 1), dtype=np.int32), (np.full(1, -1, dtype=np.int32),), (0,))
    with pytest.warns(NotConvergedWarning, match="Counts of 5,000 on average hold f where it is in Gibbs sampling"):
        model.initial(observed, NoiseSettings())
