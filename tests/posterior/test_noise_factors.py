"""Noise factors of rows never seen: drawn from their prior, one for each group, with nu of each draw."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from tests.helpers import model_of
from tuckergp import Mode, TuckerGPRegressor, TuckerRecommender
from tuckergp.data.tables import as_table
from tuckergp.inference.base import Problem
from tuckergp.kernels import Identity
from tuckergp.likelihoods.row_noise import NU
from tuckergp.model.design import Design
from tuckergp.model.draw import Draw, ModeDraw
from tuckergp.model.mode_table import ModeTable
from tuckergp.model.tucker import make_core
from tuckergp.posterior.replicates import replicates
from tuckergp.random import stream
from tuckergp.residuals import Rows

pytestmark = pytest.mark.filterwarnings("ignore::tuckergp.errors.NotConvergedWarning")


@pytest.fixture(scope="module")
def weeks():
    """A model of users in weeks, whose noise factors belong to the users, and of items."""
    rng = np.random.default_rng(0)
    user = rng.integers(40, size=2_000)
    X = {"user": user, "week": rng.integers(4, size=2_000), "item": rng.integers(25, size=2_000)}
    sd = rng.gamma(2.25, 1 / 2.25, 40) ** -0.5
    modes = [Mode(["user", "week"], Identity("user") + 0.1 * Identity()), Mode("item", Identity())]
    model = TuckerGPRegressor(modes, rank=2, noise="rows", draws=30, warmup=20, random_state=0)
    return model.fit(X, sd[user] * rng.standard_normal(2_000))


def asked(model, user, week):
    return Design.transform(model.modes_, as_table({"user": user, "week": week, "item": [0] * len(user)}, "asked"))


def asked_items(model, items):
    table = as_table({"user": [0] * len(items), "week": [0] * len(items), "item": items}, "asked")
    return Design.transform(model.modes_, table).modes[1]


def test_nu_is_kept_with_the_draws_and_learned(weeks):
    nu = weeks.fit_.draws.unknowns[NU]
    assert nu.shape == (30, 2)
    assert (nu >= 4).all()
    assert len(np.unique(nu)) == nu.size


def test_strangers_have_factors_from_the_prior_of_each_draw(weeks):
    draws = weeks.fit_.draws
    nu = np.column_stack([np.repeat([4.5, 40.0], 15), np.full(30, 12.0)])
    draws = replace(draws, unknowns={**draws.unknowns, NU: nu})
    design = asked(weeks, list(range(1_000, 1_400)), [0] * 400)
    factors = draws.row_factors(0, design.modes[0], draws.streams(stream(1)))
    for part, shape in ((factors[:, :15], 2.25), (factors[:, 15:], 20.0)):
        assert stats.kstest(part.ravel(), stats.gamma(shape, scale=1 / shape).cdf).pvalue > 0.01  # fixed numbers
    items = asked_items(weeks, np.arange(1_000, 1_400))
    of_items = draws.row_factors(1, items, draws.streams(stream(1)))
    assert stats.kstest(of_items.ravel(), stats.gamma(6, scale=1 / 6).cdf).pvalue > 0.01
    psi = draws.factors(0, design.modes[0], draws.streams(stream(1)))
    for k in range(2):  # independent of the rows' own random numbers
        assert abs(np.corrcoef(psi[:, :15, k].ravel(), factors[:, :15].ravel())[0, 1]) < 4 / np.sqrt(400 * 15)


def test_factors_of_strangers_share_no_random_numbers_with_their_rows(weeks):
    draws, mode = weeks.fit_.draws, asked_items(weeks, np.arange(1_000, 1_400))
    psi = draws.factors(1, mode, draws.streams(stream(1)))
    factors = draws.row_factors(1, mode, draws.streams(stream(1)))
    for k in range(2):
        assert abs(stats.spearmanr(psi[:, :, k].ravel(), factors.ravel()).statistic) < 4 / np.sqrt(400 * 30)


def test_replicated_targets_have_the_noise_factors_of_all_modes():
    """4,000 targets in each of 4 cells: a standard deviation has a relative error of 8000^-1/2 = 0.011."""
    index = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], 4_000, axis=0).astype(np.int32)
    factors, alpha = np.array([[1.0, 9.0], [4.0, 0.25]]), 2.0
    nothing, table = np.zeros((0, 1)), ModeTable(np.zeros((2, 0)), Rows.of(2))
    modes = tuple(ModeDraw(nothing, np.eye(1), {"psi": np.zeros((2, 1))}, {}, own) for own in factors)
    problem = Problem(model_of(make_core("identity", [1, 1])), Design((table, table), index), np.zeros(16_000))
    draw = Draw(modes, np.zeros(0), {"alpha": np.asarray(alpha)})
    found = replicates(problem, draw, np.full(16_000, 3.0), stream(0)).reshape(2, 2, 4_000)
    np.testing.assert_allclose(found.std(axis=2), (alpha * np.outer(*factors)) ** -0.5, rtol=5 * 0.011)


def test_their_noise_is_in_predictive_variances(weeks):
    design = asked(weeks, list(range(1_000, 1_400)), [0] * 400)
    draws = replace(weeks.fit_.draws, unknowns={**weeks.fit_.draws.unknowns, NU: np.full((30, 2), 6.0)})
    at = draws.predicted(design, stream(1))
    item = draws.row_factors(1, design.modes[1])[0]
    # E[1 / a] = nu / (nu - 2) = 1.5 under Gamma(3, 3), whose standard deviation is 1.5
    inverse = (item[:, None] / at.factors).mean()
    assert inverse == pytest.approx(1.5, abs=5 * 1.5 / np.sqrt(400 * 30))
    np.testing.assert_array_equal(draws.predicted(design).factors, np.broadcast_to(item[:, None], (30, 400)))


def test_all_weeks_of_a_stranger_have_one_factor_and_strangers_differ(weeks):
    draws = weeks.fit_.draws
    design = asked(weeks, [0, 0, 901, 901, 902, 901], [0, 99, 0, 99, 99, 98])
    at = draws.predicted(design, stream(1)).factors
    np.testing.assert_array_equal(at[:, 1], at[:, 0])  # a known user in a week never seen
    np.testing.assert_array_equal(at[:, 3], at[:, 2])
    np.testing.assert_array_equal(at[:, 5], at[:, 2])
    assert not np.isclose(at[:, 4], at[:, 2]).any()
    alone = draws.predicted(asked(weeks, [901], [98]), stream(1)).factors
    np.testing.assert_array_equal(alone[:, 0], at[:, 2])
    f = draws.predicted(design, stream(1)).f
    assert not np.isclose(f[:, 3], f[:, 2]).any()  # the weeks themselves differ


def test_a_period_never_seen_has_one_factor_for_all_users():
    rng = np.random.default_rng(0)
    ratings = {"user_id": rng.integers(20, size=400), "item_id": rng.integers(15, size=400),
               "rating": rng.normal(size=400), "timestamp": 86_400 * rng.integers(40, size=400)}  # fmt: skip
    model = TuckerRecommender(rank=2, draws=10, warmup=5, time="week", noise="rows", random_state=0).fit(ratings)
    later = {"user_id": [0, 1, 2], "item_id": [0, 0, 0], "timestamp": [86_400 * 900] * 3}
    design, draws = model.layout_.pairs(as_table(later, "later")), model.fit_.draws
    factors = draws.row_factors(2, design.modes[2], draws.streams(stream(1)))
    assert factors.shape == (3, 10)
    np.testing.assert_array_equal(factors[1:], factors[[0, 0]])
    assert (factors[0] != 1).all()


def test_nu_of_older_draws_is_read_off_their_factors(weeks):
    rng = np.random.default_rng(1)
    draws, nu = weeks.fit_.draws, np.linspace(4.5, 30, 30)
    modes = list(draws.modes)
    modes[1] = replace(modes[1], row_noise=rng.gamma(nu / 2, 2 / nu, (3_000, 30)).astype(np.float32))
    older = {name: values for name, values in draws.unknowns.items() if name != NU}
    found = replace(draws, modes=tuple(modes), unknowns=older).nu(1)
    np.testing.assert_allclose(found, nu, rtol=0.25)
    constant = replace(modes[1], row_noise=np.ones((1, 30), dtype=np.float32))
    assert np.isfinite(replace(draws, modes=(modes[0], constant), unknowns=older).nu(1)).all()
