"""What a sweep costs: about what is measured, and announced before a long fit."""

import time

import numpy as np
import pytest

from tuckergp import Mode, TuckerGPRegressor
from tuckergp.errors import TimeWarning
from tuckergp.features import Fourier
from tuckergp.inference import cost
from tuckergp.kernels import SE, Identity
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
        (5000, 6, {}),
        (600, 4, {"core": "full"}),
        (1500, [Mode("x0", SE(1.0), Fourier(100)), Mode("x1", SE(1.0), Fourier(100))], {}),
    ],
)
def test_it_is_about_what_is_measured(n, modes, settings, monkeypatch):
    """Within a factor of ten, whatever the machine does beside."""
    columns = modes if isinstance(modes, int) else len(modes)
    X = RNG.standard_normal((n, columns))
    expected, seconds = estimate(monkeypatch, X, None if isinstance(modes, int) else modes, **settings)
    assert seconds / 10 < expected < 10 * seconds


def test_more_of_anything_costs_more(monkeypatch):
    def of(n=200, columns=3, modes=None, **settings):
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
