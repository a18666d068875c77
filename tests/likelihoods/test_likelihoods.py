"""Log densities and their derivatives: against other formulas and finite differences, at extremes too."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_ndtr, ndtr

from tests.helpers import core_of, flatten, random_design
from tuckergp.compute import densities
from tuckergp.errors import InputError
from tuckergp.likelihoods import Gaussian, NegativeBinomial, Ordinal, Poisson, Student
from tuckergp.likelihoods.given import NoiseSettings, Observed
from tuckergp.likelihoods.levels import CutPrior
from tuckergp.model.tucker import Parameters, TuckerModel

F = np.array([-30.0, -7.0, -1.3, -0.2, 0.0, 0.4, 2.5, 6.0, 30.0])
LIKELIHOODS = {
    "gaussian": (Gaussian(0.3), np.array([-1.0, 0.0, 2.5])),
    "bernoulli": (Ordinal((0.0,)), np.array([0.0, 1.0])),
    "ordinal": (Ordinal((-1.0, 0.2, 0.21, 3.0)), np.arange(5.0)),
    "poisson": (Poisson(), np.array([0.0, 1.0, 7.0, 400.0])),
    "student": (Student(0.3, nu=2.5), np.array([-1.0, 0.0, 2.5])),
    "negative_binomial": (NegativeBinomial(dispersion=1.7), np.array([0.0, 1.0, 7.0, 400.0])),
}
COMPILED = [name for name, (likelihood, _) in LIKELIHOODS.items() if likelihood.code >= 0]


def pairs(y, f):
    return np.repeat(y, len(f)), np.tile(f, len(y))


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_the_score_is_the_derivative_of_the_log_density(name):
    likelihood, values = LIKELIHOODS[name]
    y, f = pairs(values, F)
    h = 1e-5 * np.maximum(1.0, np.abs(f))
    numeric = (likelihood.log_density(y, f + h) - likelihood.log_density(y, f - h)) / (2 * h)
    np.testing.assert_allclose(likelihood.score(y, f), numeric, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_loops_have_the_same_score_and_density(name):
    likelihood, values = LIKELIHOODS[name]
    y, f = pairs(values, F)
    known = likelihood.code, likelihood.parameters
    score = [densities.score(*known, *at) for at in zip(y, f, strict=True)]
    misfit = [densities.misfit(*known, *at) for at in zip(y, f, strict=True)]
    expected = (y - f) ** 2 if name == "gaussian" else -likelihood.log_density(y, f)
    np.testing.assert_allclose(score, likelihood.score(y, f), rtol=1e-12)
    np.testing.assert_allclose(misfit, expected, rtol=1e-12)


def test_counts_have_the_poisson_distribution():
    y, f = pairs(np.arange(30.0), np.array([-3.0, 0.0, 2.0]))
    np.testing.assert_allclose(Poisson().log_density(y, f), stats.poisson.logpmf(y, np.exp(f)), rtol=1e-12)


def test_levels_have_the_probabilities_between_the_cut_points():
    cuts = np.array([-1.0, 0.2, 3.0])
    y, f = pairs(np.arange(4.0), np.array([-2.0, 0.1, 4.0]))
    ends = np.concatenate([[-np.inf], cuts, [np.inf]])
    expected = np.log(ndtr(ends[y.astype(int) + 1] - f) - ndtr(ends[y.astype(int)] - f))
    np.testing.assert_allclose(Ordinal(tuple(cuts)).log_density(y, f), expected, rtol=1e-9)


def test_nothing_overflows_far_from_the_data():
    far = np.array([-1e6, -800.0, 800.0, 1e6])
    for likelihood, values in LIKELIHOODS.values():
        y, f = pairs(values, far)
        assert np.isfinite(likelihood.log_density(y, f)).all()
        assert np.isfinite(likelihood.score(y, f)).all()
    # towards the data, and steeper the farther
    assert (np.diff(Poisson().score(np.ones(3), np.array([50.0, 90.0, 110.0]))) <= 0).all()
    np.testing.assert_array_equal(np.sign(Poisson().score(np.full(4, 3.0), far)), [1, 1, -1, -1])


def test_beyond_the_largest_log_the_density_goes_on_along_its_tangent():
    f, y, h = np.array([105.0, 300.0]), np.full(2, 3.0), 1.0
    slope = (Poisson().log_density(y, f + h) - Poisson().log_density(y, f - h)) / (2 * h)
    np.testing.assert_allclose(slope, Poisson().score(y, f), rtol=1e-9)


def test_far_levels_have_the_score_of_a_tail():
    """Of one cut point phi / Q, by its logarithm; of an interval far away, that of its nearer end."""
    f = np.array([-3.0, 20.0, 30.0, 300.0])
    expected = -np.exp(-0.5 * f**2 - 0.5 * math.log(2 * math.pi) - log_ndtr(-f))
    np.testing.assert_allclose(Ordinal((0.0,)).score(np.zeros(4), f), expected, rtol=1e-11)
    far = np.array([1e3, 1e5, 1e7])
    np.testing.assert_allclose(Ordinal((0.0, 1.0)).score(np.ones(3), far), -(far - 1.0), rtol=1e-5)
    np.testing.assert_allclose(Ordinal((0.0, 1.0)).score(np.ones(3), -far), far, rtol=1e-5)


@pytest.mark.parametrize("width", [1e-2, 1e-6, 1e-9])
@pytest.mark.parametrize("f", [-40.0, -3.0, 0.0, 0.7, 500.0])
def test_narrow_levels_have_the_score_of_a_point(width, f):
    """As an interval shrinks, its log mass is that of the normal density, whose derivative is middle - f."""
    cut = 0.7
    score = Ordinal((cut, cut + width)).score(np.ones(1), np.array([f]))
    np.testing.assert_allclose(score, cut + width / 2 - f, rtol=0.01, atol=width)


@pytest.mark.parametrize("gaps", [[0.0, -1.0], [-12.0, 3.0], [2.0, -5.0]])
@pytest.mark.parametrize("weighted", [False, True])
def test_slopes_in_gaps_are_those_of_finite_differences(gaps, weighted):
    rng = np.random.default_rng(0)
    y, f = pairs(np.arange(4.0), F[1:-1])
    weight = rng.uniform(0.5, 2.0, len(y)) if weighted else None
    start = Ordinal((-0.5, 0.0, 1.0))

    def total(at):
        logs = start.with_free(np.asarray(at)).log_density(y, f)
        return float(np.sum(logs if weight is None else weight * logs))

    h = 1e-6
    numeric = [(total(gaps + h * e) - total(gaps - h * e)) / (2 * h) for e in np.eye(2)]
    found = start.with_free(np.asarray(gaps)).slopes(y, f, weight)[2]
    np.testing.assert_allclose(found, numeric, rtol=1e-5, atol=1e-4)


def test_gaps_that_make_no_sense_still_give_increasing_cut_points():
    for gaps in ([1e9, -1e9], [np.nan, np.inf], [-np.inf, 10.0]):
        assert (np.diff(Ordinal((0.0, 1.0, 2.0)).with_free(np.array(gaps)).cuts) > 0).all()


def test_the_prior_of_gaps_is_that_of_spacings():
    prior, gaps = CutPrior(), np.array([-1.0, 0.5])
    density = stats.gamma(prior.shape, scale=1 / prior.rate)
    expected = np.diff([density.logpdf(np.exp(g)).sum() + g.sum() for g in (gaps, gaps + 0.3)])
    np.testing.assert_allclose(np.diff([prior.log_gaps(g)[0] for g in (gaps, gaps + 0.3)]), expected)
    h = 1e-6 * np.eye(2)
    numeric = [(prior.log_gaps(gaps + e)[0] - prior.log_gaps(gaps - e)[0]) / 2e-6 for e in h]
    np.testing.assert_allclose(prior.log_gaps(gaps)[1], numeric, rtol=1e-6)
    drawn = np.log(np.random.default_rng(0).gamma(prior.shape, 1 / prior.rate, 100_000))
    assert drawn.std() == pytest.approx(prior.gap_sd, rel=0.02)


def test_most_probable_gaps_leave_no_slope():
    rng = np.random.default_rng(0)
    f = rng.standard_normal(300)
    y = ((f + rng.standard_normal(300))[:, None] > np.array([-0.8, 0.3, 2.0])).sum(axis=1).astype(float)
    start = Ordinal((-0.8, 0.0, 1.0))
    gaps = start.most_probable(y, f)
    slope = start.with_free(gaps).slopes(y, f)[2] + CutPrior().log_gaps(gaps)[1]
    np.testing.assert_allclose(slope, 0.0, atol=0.05)
    np.testing.assert_allclose(start.with_free(gaps).cuts, [-0.8, 0.3, 2.0], atol=0.4)


@pytest.mark.parametrize("core", ["identity", "full", "sparse"])
@pytest.mark.parametrize("name", ["bernoulli", "ordinal", "poisson", "negative_binomial"])
def test_the_gradient_of_the_log_joint_is_that_of_finite_differences(name, core):
    rng = np.random.default_rng(0)
    likelihood, values = LIKELIHOODS[name]
    shape = core_of(core, [2, 2], rng)
    model = TuckerModel(shape, likelihood, shape.default_sigma_u(), shape.default_sigma_w())
    design = random_design(rng, [5, 5], [3, 3], 30, "mixed")
    y, weight = rng.choice(values[:4], 30), rng.uniform(0.5, 2.0, 30)
    offset = rng.normal(size=30) if likelihood.counts else None
    at = model.init(design, rng)
    free = at.free + 0.1
    assert len(free) == {"ordinal": 3, "negative_binomial": 1}.get(name, 0)
    at = Parameters(at.U, at.W, free=free)

    def vector(p):
        return np.concatenate([flatten(p), p.free])

    def moved(change):
        sizes = np.cumsum([*(U.size for U in at.U), at.W.size])
        parts = np.split(change, sizes)
        U = tuple(U + part.reshape(U.shape) for U, part in zip(at.U, parts, strict=False))
        return Parameters(U, at.W + parts[-2], free=at.free + parts[-1])

    def log_joint(p):
        return model.log_joint(p, design, y, weight, offset)

    value, gradient = model.log_joint_and_gradient(at, design, y, weight, offset)
    assert value == pytest.approx(log_joint(at))
    h = 1e-6
    numeric = [(log_joint(moved(h * e)) - log_joint(moved(-h * e))) / (2 * h) for e in np.eye(len(vector(at)))]
    np.testing.assert_allclose(vector(gradient), numeric, rtol=1e-4, atol=1e-4)


def test_levels_outside_are_refused():
    with pytest.raises(InputError, match="Levels must be 0 to 2, not 0 to 3"):
        Ordinal((0.0, 1.0)).log_density(np.array([0.0, 3.0]), np.zeros(2))


def test_gibbs_sampling_sees_the_weights_of_observations():
    y, weight, likelihood = np.arange(4.0), np.array([0.5, 1.0, 2.0, 7.0]), Gaussian(0.3)
    index, rng = np.zeros((4, 1), np.int32), np.random.default_rng(0)
    found = []
    for given in (None, weight):
        observed = Observed(y, given, None, index, (np.zeros(1, np.int32),), (0,))
        state = likelihood.start(observed, NoiseSettings(False, 1.0, 0.5))
        found.append(likelihood.augment(state, observed, lambda: np.zeros(4), rng)[1].at(index))
    np.testing.assert_allclose(found[1], weight * found[0])
