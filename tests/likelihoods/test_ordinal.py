"""Truncated normals, interval probabilities and draws of cut points.

Random checks have fixed seeds; each would fail by chance for one seed in 10,000.
"""

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_ndtr, ndtr, ndtri

from tests.helpers import quick_and_long
from tuckergp.compute import ordinal as compute
from tuckergp.errors import DivergenceError, InputError
from tuckergp.likelihoods.given import Observed, Predicted
from tuckergp.likelihoods.levels import (
    CutPrior,
    draw_cuts,
    draw_latent,
    initial_cuts,
    level_interval,
    level_probabilities,
    log_probability,
)
from tuckergp.likelihoods.ordinal import Ordinal, OrdinalState
from tuckergp.likelihoods.row_noise import RowNoise

FALSE_ALARM = 1e-4

# (lower, upper, quantiles of N(0, 1) between them at 0.001, 0.5, 0.999, log of the mass): mpmath with 80 digits, by
# Newton's method on the logarithm of Q(x) = erfc(x / sqrt 2) / 2
TAILS = [
    (10, 11, (10.000099075176765, 10.068409369547619, 10.66022767370848), -53.231310225583125),
    (10, np.inf, (10.000099077662344, 10.068411836081429, 10.662528400789552), -53.231285150512471),
    (37.5, 38, (37.500026661067145, 37.518466268200274, 37.683626978820837), -707.66898932377257),
    (100, np.inf, (100.00001000400264, 100.00693053875243, 100.06904681455682), -5005.5242086942051),
    (10000.0, 10000.0001, (10000.000000063232, 10000.000037988549, 10000.000099828319), -50000010.587954056),
    (2, 2.000000001, (2.000000000001, 2.0000000005, 2.0000000009990001), -23.642204288410716),
    (30, 30.25, (30.000033295340294, 30.02305278415, 30.215050277939332), -454.32177574482901),
]

INTERVALS = [(-np.inf, 0.0), (-0.3, 0.2), (0.5, np.inf), (1.0, 1.5), (-3.0, -2.9), (-np.inf, np.inf), (5.0, 5.5)]


def truncated(f, lower, upper, u):
    u = np.atleast_1d(np.asarray(u, dtype=float))
    return compute.truncated_normals(*(np.full(u.size, float(x)) for x in (f, lower, upper)), u)


def simulate(f, cuts, rng):
    return ((f + rng.standard_normal(f.size))[:, None] > cuts).sum(axis=1)


def test_normal_quantiles_equal_scipys():
    q = np.concatenate([10.0 ** np.linspace(-300, -1, 500), np.linspace(0.01, 0.5, 500)])
    mine = np.array([compute.upper_quantile(p) for p in q])
    np.testing.assert_allclose(mine, -ndtri(q), rtol=1e-13, atol=2e-16)


@pytest.mark.parametrize(("lower", "upper"), INTERVALS)
@pytest.mark.parametrize("f", [0.0, -1.7, 2.4])
def test_truncated_draws_have_the_truncated_distribution(f, lower, upper):
    z = truncated(f, lower, upper, np.random.default_rng(0).random(20_000))
    exact = stats.truncnorm(lower - f, upper - f, loc=f)
    assert stats.kstest(z, exact.cdf).pvalue > FALSE_ALARM
    u = np.linspace(1e-4, 1 - 1e-4, 101)
    np.testing.assert_allclose(truncated(f, lower, upper, u), exact.ppf(u), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("lower", "upper", "quantiles", "log_mass"), TAILS)
def test_far_tails_keep_their_digits(lower, upper, quantiles, log_mass):
    u = np.array([0.001, 0.5, 0.999])
    z = truncated(0.0, lower, upper, u)
    np.testing.assert_allclose(z, quantiles, rtol=1e-15)
    # and within the interval, on its own scale, as far as numbers this large resolve it
    scale = min(upper - lower, 1 / lower)
    np.testing.assert_allclose((z - lower) / scale, (quantiles - np.array(lower)) / scale, atol=5e-16 * lower / scale)
    np.testing.assert_allclose(truncated(0.0, -upper, -lower, u), -z[::-1], rtol=1e-15)
    np.testing.assert_allclose(compute.log_mass(0.0, lower, upper), log_mass, rtol=1e-15 if upper > 2.1 else 1e-9)
    np.testing.assert_allclose(compute.log_mass(0.0, -upper, -lower), log_mass, rtol=1e-15 if upper > 2.1 else 1e-9)


def test_draws_are_finite_and_inside_however_far_f_is_and_whatever_the_uniform():
    u = np.array([0.0, 1e-300, 0.5, 1 - 2.0**-53])
    for f in (0.0, 10.0, -10.0, 40.0, -1e3, 1e8, -1e160):
        for lower, upper in [*INTERVALS, (0.3, 0.3 + 1e-12)]:
            z = truncated(f, lower, upper, u)
            assert np.isfinite(z).all()
            assert (z >= lower).all()
            assert (z <= upper).all()
            assert (np.diff(z) >= 0).all()
    assert np.isnan(truncated(np.nan, 0.0, 1.0, u)).all()


def test_log_mass_equals_scipys_where_that_is_accurate():
    rng = np.random.default_rng(1)
    lower, f = rng.normal(0, 4, 2000), rng.normal(0, 4, 2000)
    upper = lower + rng.uniform(0.5, 5, 2000)
    mine = compute.log_masses(f, lower, upper)
    flip = lower + upper > 2 * f
    a, b = np.where(flip, f - upper, lower - f), np.where(flip, f - lower, upper - f)
    np.testing.assert_allclose(mine, log_ndtr(b) + np.log1p(-np.exp(log_ndtr(a) - log_ndtr(b))), rtol=1e-12, atol=1e-14)
    one_sided = compute.log_masses(f, np.full(2000, -np.inf), upper)
    np.testing.assert_allclose(one_sided, log_ndtr(upper - f), rtol=1e-12, atol=1e-300)


def test_log_mass_of_narrow_intervals_approaches_the_density():
    for f in (0.0, 1.0, -7.0, 300.0):
        for width in (1e-3, 1e-6, 1e-9):
            # the interval is built around 0, where numbers are fine enough for its width
            expected = -0.5 * f**2 - 0.5 * np.log(2 * np.pi) + np.log(width)
            expected += np.log1p((f**2 - 1) * width**2 / 24 + (f**4 - 6 * f**2 + 3) * width**4 / 1920)
            np.testing.assert_allclose(compute.log_mass(f, -width / 2, width / 2), expected, rtol=1e-11)
    assert compute.log_mass(0.0, 1.0, 1.0) == -np.inf


def test_log_mass_is_continuous_where_its_formula_changes():
    for lower in (0.0, 3.0, 24.9, 25.1, 60.0):
        for upper in (lower + 0.2 * (1 + np.array([-1e-9, 1e-9]))) if lower == 0 else (lower + np.array([0.0019, 0.5])):
            whole = compute.log_mass(0.0, lower, upper)
            middle = (lower + upper) / 2
            parts = np.logaddexp(compute.log_mass(0.0, lower, middle), compute.log_mass(0.0, middle, upper))
            np.testing.assert_allclose(whole, parts, rtol=1e-13)


def test_probabilities_are_those_of_the_model_and_sum_to_one():
    rng = np.random.default_rng(2)
    f, cuts = np.concatenate([rng.normal(0, 3, 500), [60.0, -60.0]]), np.array([-1.0, 0.0, 0.4, 2.5])
    p = level_probabilities(f, cuts)
    assert p.shape == (502, 5)
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(np.cumsum(p, axis=1)[:, :-1], ndtr(cuts - f[:, None]), rtol=1e-13, atol=1e-15)
    likely = p > 1e-300
    for k in range(5):
        logs = log_probability(np.full(502, k), f, cuts)
        assert np.isfinite(logs).all()
        np.testing.assert_allclose(logs[likely[:, k]], np.log(p[likely[:, k], k]), rtol=1e-12, atol=1e-14)


def test_two_levels_cut_at_zero_are_the_bernoulli_probit():
    f = np.linspace(-3, 3, 7)
    np.testing.assert_allclose(level_probabilities(f, np.zeros(1))[:, 1], ndtr(f), rtol=1e-14)
    assert draw_cuts(np.zeros(1), f, np.ones(7, dtype=int), np.random.default_rng(0)) == 0.0


def test_latent_draws_return_the_levels_they_came_from():
    rng = np.random.default_rng(3)
    f, cuts = rng.normal(0, 2, 1000), np.array([-1.0, 0.5, 0.6])
    y = rng.integers(0, 4, 1000)
    z = draw_latent(f, y, cuts, rng.random(1000))
    np.testing.assert_array_equal((z[:, None] > cuts).sum(axis=1), y)


def test_levels_then_latents_are_normal_again():
    rng = np.random.default_rng(4)
    f, cuts = rng.normal(0, 2, 20_000), np.array([-1.0, 0.5, 2.0])
    z = draw_latent(f, simulate(f, cuts, rng), cuts, rng.random(20_000))
    assert stats.kstest(z - f, "norm").pvalue > FALSE_ALARM


def test_initial_cuts_reproduce_the_shares():
    counts = np.array([10, 20, 40, 20, 10])
    shares = level_probabilities(np.zeros(1), initial_cuts(counts))[0]
    np.testing.assert_allclose(shares, (counts + 0.5) / (counts.sum() + 2.5), rtol=1e-12)
    shifted = initial_cuts([0, 0, 10**9, 0, 0], first=-1.5)
    assert shifted[0] == -1.5
    assert (np.diff(shifted) > 0).all()


@quick_and_long("restarts", 300, 1500)
@pytest.mark.parametrize(("fixed_first", "levels"), [(True, 5), (False, 5), (True, 8)])
def test_draws_of_cuts_leave_prior_times_likelihood_invariant(fixed_first, levels, restarts):
    # (cuts, y) from the joint; after steps that leave p(cuts | y) alone, cuts have their prior distribution still
    rng = np.random.default_rng(levels + fixed_first)
    prior = CutPrior(first_sd=1.0)
    f = rng.normal(0.5, 2.0, 30)
    ends, moved = np.empty((restarts, levels - 1)), np.empty((restarts, 2))

    def statistics(cuts, y):
        return np.array([log_probability(y, f, cuts).sum(), np.log(np.diff(cuts)).sum()])

    for i in range(len(ends)):
        cuts = prior.draw(levels, rng, first=-1.0 if fixed_first else None)
        y = simulate(f, cuts, rng)
        before = statistics(cuts, y)
        for _ in range(3):
            cuts = draw_cuts(cuts, f, y, rng, fixed_first, prior)
        ends[i], moved[i] = cuts, statistics(cuts, y) - before
    ranks = stats.gamma(prior.shape, scale=1 / prior.rate).cdf(np.diff(ends, axis=1))
    columns = [*ranks.T]
    if fixed_first:
        assert (ends[:, 0] == -1.0).all()
    else:
        columns.append(stats.norm(0, prior.first_sd).cdf(ends[:, 0]))
    for column in columns:
        counts = np.histogram(column, bins=15, range=(0, 1))[0]
        assert stats.chisquare(counts).pvalue > FALSE_ALARM / len(columns)
    # so has any function of cuts and y: the sharper test, because pairs share their y
    assert (stats.ttest_1samp(moved, 0.0).pvalue > FALSE_ALARM / 2).all()


@quick_and_long("size", 1000, 4000)
def test_draws_of_a_cut_follow_its_density_on_a_grid(size):
    rng = np.random.default_rng(7)
    f = rng.normal(0, 1, 25)
    y = simulate(f, np.array([-0.5, 0.7]), rng)
    grid = np.linspace(-0.5, 8, 40_001)[1:]
    logs = stats.gamma(2).logpdf(grid + 0.5)
    for level, value in zip(y, f, strict=True):
        if level == 1:
            logs += np.log(ndtr(grid - value) - ndtr(-0.5 - value))
        elif level == 2:
            logs += log_ndtr(value - grid)
    cdf = np.cumsum(np.exp(logs - logs.max()))
    cdf /= cdf[-1]
    cuts, draws = np.array([-0.5, 0.5]), np.empty(size)
    for i in range(len(draws)):
        for _ in range(3):
            cuts = draw_cuts(cuts, f, y, rng)
        draws[i] = cuts[1]
    assert stats.kstest(draws, lambda c: np.interp(c, grid, cdf)).pvalue > FALSE_ALARM


@pytest.mark.parametrize("fixed_first", [True, False])
def test_cuts_are_recovered(fixed_first):
    rng = np.random.default_rng(8)
    truth = np.array([-1.0, -0.2, 0.3, 1.8])
    f = rng.normal(0.2, 1.2, 20_000)
    y = simulate(f, truth, rng)
    cuts = initial_cuts(np.bincount(y, minlength=5), first=truth[0])
    draws = []
    for _ in range(150):
        cuts = draw_cuts(cuts, f, y, rng, fixed_first)
        draws.append(cuts)
    kept = np.array(draws)[50:]
    error, spread = np.abs(kept.mean(axis=0) - truth), kept.std(axis=0)
    assert (error <= 4.5 * spread).all()
    assert (spread < 0.03).all()


@pytest.mark.parametrize("counts", [(0, 0, 500, 0, 0), (500, 0, 0, 0, 500), (0, 3, 0, 1, 0), (0, 0, 0, 0, 0)])
@pytest.mark.parametrize("fixed_first", [True, False])
def test_empty_levels_and_far_starts_are_no_trouble(counts, fixed_first):
    rng = np.random.default_rng(9)
    y = np.repeat(np.arange(5), counts)
    f = rng.normal(0, 1, y.size)
    for start in (initial_cuts(counts), np.array([-2.0, 10.0, 100.0, 101.0])):
        cuts = start
        for _ in range(200):
            cuts = draw_cuts(cuts, f, y, rng, fixed_first)
        assert np.isfinite(cuts).all()
        assert (np.diff(cuts) > 0).all()
        assert np.abs(cuts).max() < 60


def test_bad_input_is_refused():
    rng, f, y = np.random.default_rng(0), np.zeros(3), np.array([0, 1, 2])
    with pytest.raises(InputError, match="increase"):
        draw_cuts(np.array([1.0, 0.0]), f, y, rng)
    with pytest.raises(InputError, match="0 to 1"):
        draw_cuts(np.array([1.0]), f, y, rng)
    with pytest.raises(InputError, match="whole numbers"):
        log_probability(y + 0.5, f, np.array([0.0, 1.0]))
    with pytest.raises(InputError, match="Expected 3"):
        draw_latent(np.zeros(2), y, np.array([0.0, 1.0]), np.zeros(3))
    with pytest.raises(DivergenceError):
        draw_cuts(np.array([0.0, 1.0]), np.array([0.0, np.nan, 0.0]), y, rng)
    with pytest.raises(InputError, match="two levels"):
        initial_cuts([3])
    with pytest.raises(InputError, match="CutPrior"):
        CutPrior(shape=0.5)


def test_intervals_of_levels_are_the_best_runs_and_hold_their_share_on_average():
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.array([0.6, 1.2, 2.5, 3.5, 2.0]), size=4_000)
    for share in (0.5, 0.8, 0.9, 0.95):
        band = level_interval(probabilities, np.arange(5), share).astype(int)
        mass = np.array([p[a : b + 1].sum() for p, (a, b) in zip(probabilities, band, strict=True)])
        assert mass.mean() == pytest.approx(share, abs=0.02)
        for p, (a, b), m in zip(probabilities[:50], band[:50], mass[:50], strict=True):
            assert m == pytest.approx(max(p[k : k + b - a + 1].sum() for k in range(5 - (b - a))))
    np.testing.assert_array_equal(level_interval(np.eye(3), [1, 2, 5], 0.9), [[1, 1], [2, 2], [5, 5]])
    # roots of what is missing: of 0.18 and 0.03 the first is nearer to that of 0.1, though the second is by itself
    np.testing.assert_array_equal(level_interval(np.array([[0.03, 0.15, 0.82]]), [1, 2, 5], 0.9), [[5, 5]])


def test_intervals_of_two_levels_are_the_nearer_of_one_and_both():
    """By hand: at a share of 0.9 one level stands for both only where it has more than 0.8."""
    likely = np.linspace(0.005, 0.995, 100)
    for share in (0.5, 0.8, 0.9, 0.95):
        low, high = level_interval(np.column_stack([1 - likely, likely]), [0, 1], share).T
        alone = np.abs(np.maximum(likely, 1 - likely) - share) < 1 - share
        np.testing.assert_array_equal(low == high, alone)
        np.testing.assert_array_equal(high[alone], (likely > 0.5)[alone])


@pytest.mark.parametrize("root", [0.3, 3.0])
@pytest.mark.parametrize("level", [0, 1, 2])
def test_latent_draws_have_the_variance_of_the_noise_factor(root, level):
    rng, n, f = np.random.default_rng(level), 4_000, 0.4
    cuts = np.array([-0.5, 1.0])
    lower, upper = np.array([-np.inf, *cuts])[level], np.array([*cuts, np.inf])[level]
    exact = stats.truncnorm((lower - f) * root, (upper - f) * root, loc=f, scale=1 / root).cdf
    y = np.full(n, level)
    z = draw_latent(np.full(n, f), y, cuts, rng.random(n), np.full(n, root))
    assert stats.kstest(z, exact).statistic < 0.031  # a false alarm in fewer than one of 1,000 seeds
    # the same from what Gibbs sampling and folding in call
    likelihood, a = Ordinal(tuple(cuts)), root**2
    observed = Observed(y.astype(float), None, None, np.zeros((n, 1), np.int32), (np.zeros(1, np.int32),), (1,))
    state = OrdinalState(cuts, RowNoise((np.array([a]),), (5.0,)))
    z, precision = likelihood.augment(state, observed, lambda: np.full(n, f), rng)
    assert stats.kstest(z, exact).statistic < 0.031
    np.testing.assert_allclose(precision.at(observed.index), a)
    at = Predicted(np.full((1, n), f), {"cuts": cuts[None]}, np.full((1, n), a))
    z, w = likelihood.working(at, y.astype(float), rng)
    assert stats.kstest(z[0], exact).statistic < 0.031
    np.testing.assert_array_equal(w, a)


def test_without_data_cut_points_have_their_prior():
    prior, rng = CutPrior(shape=3.0, rate=2.0), np.random.default_rng(0)
    cuts, none = np.array([0.0, 1.0, 2.0]), np.zeros(0)
    spacings = []
    for _ in range(3000):
        cuts = draw_cuts(cuts, none, none.astype(int), rng, prior=prior)
        spacings.append(np.diff(cuts))
    # about 500 independent ones: five standard errors, false alarm below 1e-5
    np.testing.assert_allclose(np.mean(spacings, axis=0), 1.5, atol=5 * np.sqrt(3) / 2 / np.sqrt(500))
    np.testing.assert_allclose(np.std(spacings, axis=0), np.sqrt(3) / 2, atol=0.2)


def test_the_prior_of_cut_points_is_normal_and_gamma():
    prior = CutPrior(shape=2.5, rate=0.7, first_sd=3.0)
    at = np.array([-4.0, 0.5, 7.0])
    found = np.array([prior.log_first(cut) for cut in at])
    exact = stats.norm(0, 3.0).logpdf(at)
    np.testing.assert_allclose(found - found[0], exact - exact[0])
    spacing = np.array([0.1, 1.0, 5.0])
    found, exact = np.array([prior.log_spacing(x) for x in spacing]), stats.gamma(2.5, scale=1 / 0.7).logpdf(spacing)
    np.testing.assert_allclose(found - found[0], exact - exact[0])
