"""Noise factors of rows: each mode's are drawn given those of the other modes that were drawn just before."""

import numpy as np
from scipy import stats

from tuckergp.likelihoods import row_noise
from tuckergp.likelihoods.given import Observed
from tuckergp.likelihoods.precision import Precision, RowSums
from tuckergp.likelihoods.row_noise import RowNoise

ROWS = (6, 4)
ALPHA = 2.0


def data(rng, n=400):
    index = np.stack([rng.integers(0, m, n) for m in ROWS], axis=1).astype(np.int32)
    weight = rng.integers(1, 4, n).astype(float)
    groups = tuple(np.arange(m, dtype=np.int32) for m in ROWS)
    return Observed(np.zeros(n), weight, None, index, groups, ROWS), rng.standard_normal(n) ** 2


def row_sums(observed, squares, asked):
    """Sums over the observations of each row, in plain NumPy; what was asked for is noted."""

    def sums(d, precision):
        asked.append((d, precision))
        other = precision.factors[1 - d][observed.index[:, 1 - d]]
        each = observed.weight * squares
        rows = observed.index[:, d]
        return RowSums(np.bincount(rows, each, ROWS[d]), np.bincount(rows, each * other, ROWS[d]))

    return sums


def test_the_second_mode_is_drawn_given_the_new_factors_of_the_first():
    """The factors that its sums are taken with, and the mean of its draws, are those of the new first mode."""
    rng = np.random.default_rng(0)
    observed, squares = data(rng)
    # factors far from what the data say, so that old and new ones differ
    before = RowNoise((np.full(ROWS[0], 20.0), np.ones(ROWS[1])), (8.0, 8.0))
    precision = Precision(ALPHA, observed.weight, list(before.factors))
    ratios = []
    for _ in range(200):
        asked = []
        after, total, scaled = row_noise.draw(before, precision, observed, row_sums(observed, squares, asked), rng)
        assert [d for d, _ in asked] == [0, 1]
        np.testing.assert_array_equal(asked[0][1].factors[1], before.factors[1])
        np.testing.assert_array_equal(asked[1][1].factors[0], after.factors[0])
        # b_m ~ Gamma((nu + N_m) / 2, (nu + S_m) / 2), S_m with the new factors of the first mode
        each = ALPHA * observed.weight * squares * after.factors[0][observed.index[:, 0]]
        S = np.bincount(observed.index[:, 1], each, ROWS[1])
        N = np.bincount(observed.index[:, 1], observed.weight, ROWS[1])
        ratios.append(after.factors[1] * (8.0 + S) / (8.0 + N))
        both = after.factors[0][observed.index[:, 0]] * after.factors[1][observed.index[:, 1]]
        np.testing.assert_allclose(scaled, observed.weight @ (squares * both))
        np.testing.assert_allclose(total, observed.weight @ squares)
    # ratios have mean 1; the standard deviation of each is about sqrt(2 / 200)
    assert abs(np.mean(ratios) - 1) < 6 * np.std(ratios) / np.sqrt(np.size(ratios))


def test_nu_has_its_density_given_the_factors():
    """An exponential prior of mean 20 cut at 4, by a grid; means over 40 batches of a chain, 5 standard errors."""
    rng = np.random.default_rng(1)
    factors = rng.gamma(4.0, 1 / 4.0, 40)
    grid = np.linspace(4.0, 200.0, 4_000)
    logs = stats.gamma.logpdf(factors[:, None], grid / 2, scale=2 / grid).sum(axis=0) - grid / 20
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    nu, drawn = 10.0, []
    for _ in range(4_000):
        nu = row_noise.draw_shape(factors, nu, rng)
        drawn.append(np.log(nu))
    for power in (1, 2):
        batches = (np.array(drawn) ** power).reshape(40, 100).mean(axis=1)
        assert abs(batches.mean() - weights @ np.log(grid) ** power) < 5 * batches.std() / np.sqrt(40)
