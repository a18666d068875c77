"""What a sweep costs: about what is measured, and announced before a long fit."""

import time

import numpy as np
import pytest

from tests.helpers import model_of
from tuckergp import Mode, TuckerGPRegressor, TuckerRecommender
from tuckergp.data.datasets import make_ratings
from tuckergp.errors import TimeWarning
from tuckergp.features import Fourier
from tuckergp.inference import cost
from tuckergp.inference.base import Problem
from tuckergp.kernels import SE, Identity, Matern32
from tuckergp.model.design import Design
from tuckergp.model.mode_table import ModeTable
from tuckergp.model.tucker import make_core
from tuckergp.residuals import NoResidual, Rows
from tuckergp.running import fit as running

RNG = np.random.default_rng(0)


def estimate(monkeypatch, X, modes=None, **settings):
    """The estimated seconds of a sweep, and the least that one took."""
    estimates, times = [], []
    once = cost.sweep_seconds
    monkeypatch.setattr("tuckergp.inference.gibbs.sweep_seconds", lambda p: estimates.append(once(p)) or estimates[-1])
    model = TuckerGPRegressor(modes, draws=1, warmup=4, random_state=0, **settings)
    model.fit(X, RNG.standard_normal(len(X)), callback=lambda info: times.append(time.process_time()))
    return estimates[0], np.diff(times).min()


@pytest.mark.filterwarnings("ignore:The draws", "ignore:Mode")
@pytest.mark.parametrize(
    ("n", "modes", "settings"),
    [
        (5000, [Mode(f"x{j}", SE(1.0), whiten=True) for j in range(6)], {}),
        (600, [Mode(f"x{j}", SE(1.0), whiten=True) for j in range(4)], {"core": "full"}),
        (2000, [Mode("x0", Matern32(1.0)), Mode("x1", Matern32(1.0))], {}),
        (1500, [Mode("x0", SE(1.0), Fourier(100)), Mode("x1", SE(1.0), Fourier(100))], {}),
    ],
)
def test_it_is_about_what_is_measured(n, modes, settings, monkeypatch):
    """Within a factor of ten, whatever the machine does beside."""
    expected, seconds = estimate(monkeypatch, RNG.standard_normal((n, len(modes))), modes, **settings)
    assert seconds / 10 < expected < 10 * seconds


@pytest.mark.parametrize(("rank", "implicit"), [(4, False), (100, False), (16, True)])
def test_that_of_a_recommender_is_about_what_is_measured(rank, implicit, monkeypatch):
    """Within a factor of ten; rows of rank 100 were taken for 50 times as costly as they are."""
    data, estimates, times = make_ratings(n_users=600, n_items=400, n_ratings=20_000, random_state=0), [], []
    once = cost.sweep_seconds
    monkeypatch.setattr("tuckergp.inference.gibbs.sweep_seconds", lambda p: estimates.append(once(p)) or estimates[-1])
    rec = TuckerRecommender(rank=rank, implicit=implicit, time=None, objective="rating", draws=1, warmup=4)
    rec.fit(data.train, data.users, data.items, callback=lambda info: times.append(time.process_time()))
    seconds = np.diff(times).min()
    assert seconds / 10 < estimates[0] < 10 * seconds


def test_more_of_anything_costs_more(monkeypatch):
    def of(n=200, columns=3, modes=None, **settings):
        modes = [Mode(f"x{j}", SE(1.0)) for j in range(columns)] if modes is None else modes
        return estimate(monkeypatch, RNG.standard_normal((n, columns)), modes, **settings)[0]

    assert of() < of(n=400) < of(n=400, columns=5) < of(n=400, columns=5, rank=8)
    wide = [Mode("x0", SE(1.0), Fourier(200)), Mode("x1", SE(1.0), Fourier(200))]
    rows = [Mode("x0", Identity()), Mode("x1", Identity())]
    assert of(columns=2, modes=rows) < of(columns=2, modes=wide, rank=2) < of(columns=2, modes=wide)


@pytest.mark.filterwarnings("ignore:The draws")
def test_a_long_fit_is_announced_with_what_makes_it_shorter(monkeypatch):
    X, y = RNG.standard_normal((50, 2)), RNG.standard_normal(50)
    model = TuckerGPRegressor(rank=2, draws=3, warmup=2, chains=2, random_state=0)
    monkeypatch.setattr("tuckergp.inference.gibbs.sweep_seconds", lambda problem: 360.0)
    with pytest.warns(TimeWarning, match=r"about 60 minutes: 5 steps of 3.6e.02 s for each of 2 chains.*max_time"):
        model.fit(X, y)
    monkeypatch.setattr(running, "LONG", 3601.0)
    model.fit(X, y)  # would be an error with a warning
    monkeypatch.setattr(running, "LONG", 0.0)
    model.fit(X, y, max_time=100)


def counted(rows=50, features=6, r=4, sd=0.0):
    residual = Rows.of(rows, sd) if sd else NoResidual()
    return cost._mode(ModeTable(np.ones((rows, features)), residual), r)


def test_the_cost_of_a_mode_grows_with_what_is_multiplied():
    assert counted(r=800, sd=1.0) / counted(r=400, sd=1.0) == pytest.approx(8.0, rel=0.02)  # r x r solves of each row
    assert counted(rows=100, sd=1.0) / counted(rows=50, sd=1.0) == pytest.approx(2.0)
    many = cost.LARGEST_DENSE
    # n r beyond the largest dense matrix: conjugate gradients, of which a step is linear in rows and features
    assert counted(features=many // 2, r=4) < 0.01 * ((many * 2) ** 3 / 3 / cost.FAST)
    assert counted(features=many // 4, r=4) > many**3 / 3 / cost.FAST


def test_the_cost_of_a_core_grows_with_its_entries():
    full = make_core("full", [3, 3], RNG)
    assert cost._core(full, 2000) / cost._core(full, 1000) == pytest.approx(2.0)
    assert cost._core(full, 1000) > 0
    cubic = make_core("full", [3, 3, 3], RNG)
    assert cost._core(cubic, 0) == pytest.approx(27**3 / 3 / cost.FAST)
    assert cost._core(cubic, 10**6) == pytest.approx(27**2 * 1e6 / cost.FAST, rel=1e-3)


def test_each_mode_passes_over_the_observations():
    def passes(modes):
        design = Design(tuple(ModeTable(np.ones((2, 1))) for _ in range(modes)), np.zeros((10**6, modes), np.int32))
        return cost.sweep_seconds(Problem(model_of(make_core("identity", [2] * modes, RNG)), design, np.zeros(10**6)))

    assert passes(4) / passes(2) == pytest.approx(2.0, rel=0.05)
