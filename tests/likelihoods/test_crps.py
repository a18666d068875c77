"""CRPS of predictive mixtures: against closed forms, sums over all counts, quadrature, and samples of the mixtures."""

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import beta

from tuckergp import TuckerRecommender
from tuckergp.data.datasets import make_ratings
from tuckergp.evaluation import scoring
from tuckergp.evaluation.metrics import levels_crps, normal_crps
from tuckergp.likelihoods import Gaussian, NegativeBinomial, Ordinal, Poisson, Student
from tuckergp.likelihoods.given import Predicted
from tuckergp.likelihoods.ranked import ranked_score

RNG = np.random.default_rng(0)
S, N = 5, 40
F, FACTORS = RNG.standard_normal((S, N)), RNG.uniform(0.5, 2, (S, N))
ALPHA, NU, H = RNG.uniform(0.5, 4, S), RNG.uniform(2.1, 30, S), np.array([0.1, 0.5, 2.0, 10.0, 100.0])
SD = (ALPHA[:, None] * FACTORS) ** -0.5
NUMBERS = Predicted(F, {"alpha": ALPHA, "nu": NU}, FACTORS)
LEVELS = Ordinal((0.0, 1.0), (1.0, 2.0, 5.0))
AT_LEVELS = Predicted(F, {"cuts": np.sort(RNG.standard_normal((S, 2)), axis=1)}, FACTORS)
COUNTS = Predicted(F, {"dispersion": H}, exposure=RNG.uniform(0.5, 2, N))


def test_of_a_mixture_of_normals_is_the_energy_form():
    """E|X - y| - E|X - X'| / 2 over all pairs of components, in closed form."""
    y = RNG.normal(1, 6, N)

    def absolute(mean, sd):
        return 2 * sd * stats.norm.pdf(mean / sd) + mean * (2 * stats.norm.cdf(mean / sd) - 1)

    mean, sd = 1 + 2 * F, 2 * SD
    pairs = absolute(mean[:, None] - mean, np.sqrt(sd[:, None] ** 2 + sd**2)).mean(axis=(0, 1))
    expected = absolute(y - mean, sd).mean(axis=0) - pairs / 2
    np.testing.assert_allclose(Gaussian(mean=1.0, scale=2.0).crps(NUMBERS, y), expected, rtol=2e-3)


@pytest.mark.parametrize("nu", [2.1, 4.0, 50.0])
def test_of_one_t_distribution_is_its_closed_form(nu):
    """Far outliers too: beyond the tails the score is a distance."""
    y = np.concatenate([np.linspace(-5, 5, 41), [-1e4, 1e4]])
    at = Predicted(np.zeros((1, len(y))), {"alpha": np.ones(1), "nu": np.array([nu])})
    t = stats.t(nu)
    away = y * (2 * t.cdf(y) - 1) + 2 * t.pdf(y) * (nu + y**2) / (nu - 1)
    expected = away - 2 * np.sqrt(nu) / (nu - 1) * beta(0.5, nu - 0.5) / beta(0.5, nu / 2) ** 2
    found = Student().crps(at, y)
    np.testing.assert_allclose(found, expected, rtol=3e-3)
    assert found.mean() == pytest.approx(expected.mean(), rel=5e-4)


def test_of_a_mixture_of_t_distributions_is_its_integral():
    y = RNG.normal(1, 6, N)
    found = Student(mean=1.0, scale=2.0).crps(NUMBERS, y)
    for i in range(0, N, 8):
        each = stats.t(NU, 1 + 2 * F[:, i], 2 * SD[:, i])
        below = integrate.quad(lambda x, each=each: each.cdf(x).mean() ** 2, -np.inf, y[i], limit=200)[0]
        above = integrate.quad(lambda x, each=each: each.sf(x).mean() ** 2, y[i], np.inf, limit=200)[0]
        assert found[i] == pytest.approx(below + above, rel=2e-3)


@pytest.mark.parametrize("mean", [-2.0, 1.0, 5.0])
@pytest.mark.parametrize("kind", [Poisson, NegativeBinomial])
def test_of_counts_is_the_sum_over_all_of_them(kind, mean):
    """Without error where few counts are probable, and with a small one where thousands are."""
    rate, h = COUNTS.exposure * np.exp(mean + F), H[:, None]
    each = stats.poisson(rate) if kind is Poisson else stats.nbinom(h, h / (h + rate))
    y = each.rvs(random_state=1)[RNG.integers(0, S, N), np.arange(N)].astype(float)
    found = kind(mean=mean).crps(COUNTS, y)
    most = max(each.ppf(1 - 1e-10).max(), y.max()) + 2
    some = range(N) if most < 1000 else range(0, N, N // 5)
    k, expected = np.arange(most)[:, None], []
    for i in some:
        column = stats.poisson(rate[:, i]) if kind is Poisson else stats.nbinom(H, H / (H + rate[:, i]))
        expected.append(((column.cdf(k).mean(axis=1) - (y[i] <= k[:, 0])) ** 2).sum())
    np.testing.assert_allclose(found[some], expected, rtol=1e-6 if most < 60 else 3e-3)


@pytest.mark.parametrize(
    ("likelihood", "at"),
    [
        (Gaussian(mean=1.0, scale=2.0), NUMBERS),
        (Student(mean=1.0, scale=2.0), NUMBERS),
        (Poisson(mean=1.0), COUNTS),
        (NegativeBinomial(mean=1.0), COUNTS),
        (LEVELS, AT_LEVELS),
    ],
)
def test_agrees_with_samples_of_the_mixture(likelihood, at):
    """The energy form of 4,000 samples, within 6 standard errors of its two halves: no false alarm to speak of."""
    rng = np.random.default_rng(2)
    drawn = np.concatenate([likelihood.sample(at, rng) for _ in range(1600)])
    rng.shuffle(drawn)
    first, second = drawn[:4000], drawn[4000:]
    y = first[0]
    terms = np.abs(second - y) - 0.5 * np.abs(first - second)
    error = terms.std(axis=0) / np.sqrt(len(terms))
    assert (np.abs(likelihood.crps(at, y) - terms.mean(axis=0)) < 6 * error + 2e-3 * error.max()).all()


def test_of_levels_is_that_of_their_probabilities():
    y = RNG.choice([1.0, 2.0, 5.0, 3.0, 9.0], N)
    expected = levels_crps(y, LEVELS.levels, LEVELS.probabilities(AT_LEVELS).mean(axis=0))
    np.testing.assert_allclose(LEVELS.crps(AT_LEVELS, y), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("likelihood", "at"),
    [(Poisson(mean=3.0), COUNTS), (NegativeBinomial(mean=3.0), COUNTS), (LEVELS, AT_LEVELS), (Student(), NUMBERS)],
)
def test_the_distribution_function_belongs_to_the_quantiles(likelihood, at):
    """The least value that reaches a level does, and a little less does not."""
    for level in (0.05, 0.5, 0.99):
        quantile = likelihood.quantiles(at, [level])[:, 0]
        assert (likelihood.distribution(at, quantile) >= level - 1e-6).all()
        assert (likelihood.distribution(at, quantile - 1e-3) < level).all()


def test_two_distant_components_are_both_found():
    """A flat stretch of F between narrow steps: each number is within the bound of its piece."""
    mean, y = np.array([[0.0], [1e4]]), np.array([3e3])
    found = ranked_score(
        lambda x: stats.norm.cdf(x, mean, [[1.0], [5.0]]).mean(axis=0), np.array([-9.0]), np.array([10050.0]), y
    )
    # (1/2)^2 everywhere between the components
    assert found[0] == pytest.approx(0.25e4, rel=1e-3)


@pytest.mark.parametrize("likelihood", ["student", "ordinal", "gaussian"])
def test_evaluation_takes_the_models_own_but_for_normal_noise(likelihood):
    data = make_ratings(n_users=40, n_items=30, n_ratings=600, random_state=0)
    model = TuckerRecommender(rank=2, likelihood=likelihood, draws=8, warmup=5, time=None, random_state=0)
    model.fit(data.train)
    y, at = data.test.numeric("rating"), model.fit_.draws.predicted(model.layout_.pairs(data.test))
    own = model.crps(data.test)
    assert own.shape == y.shape
    if not model.fit_.likelihood.linear or likelihood == "student":
        expected = own.mean()
    else:
        expected = normal_crps(y, *model.predict(data.test, return_std=True, clip=False)).mean()
    part = scoring.rate(model, data.test, ["crps"], {}, 0.9)["crps"]
    assert part.value == pytest.approx(expected)
    assert own.mean() == pytest.approx(model.fit_.likelihood.crps(at, y).mean(), rel=0.05)
