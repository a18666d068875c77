"""What a terminal shows while a model learns."""

import io
import re
from types import SimpleNamespace

import numpy as np
import pytest

from tuckergp import TuckerGPRegressor
from tuckergp.inference.base import Info
from tuckergp.running import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True

    def lines(self):
        """What was shown, one entry a refresh, without colours and cursor moves."""
        text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.getvalue())
        return [line.strip() for line in re.split(r"[\r\n]+", text) if line.strip()]


def terminal_of(monkeypatch):
    """Put a fake terminal in the place of standard error; in the test itself, because pytest undoes it before."""
    fake = Terminal()
    monkeypatch.setattr("sys.stderr", fake)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    for name in ("NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    return fake


def test_one_line_says_how_far_how_fast_how_long_and_how_well(monkeypatch):
    terminal = terminal_of(monkeypatch)
    clock = iter(np.arange(1000.0))
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with progress.progress_line("Gibbs", 1200, None, unit=10.0, done=600) as advance:
        for step in range(601, 621):
            advance(Info(step, {"train_rmse": 0.08765, "noise": 0.0912}))
    last = terminal.lines()[-1]
    assert re.search(r"Gibbs .* 620/1200 \S+ 1\.0/s RMSE 0\.8765 noise 0\.912", last), terminal.lines()
    assert all(len(line) <= 80 and line.startswith("Gibbs") for line in terminal.lines())


def test_a_fit_shows_its_figures_in_units_of_the_targets(monkeypatch):
    terminal = terminal_of(monkeypatch)
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(60, 2))
    y = 1000 * np.sin(X[:, 0])
    model = TuckerGPRegressor(rank=2, draws=20, warmup=10, chains=2, random_state=0).fit(X, y)
    shown = re.findall(r"60/60 .* RMSE (\S+) noise (\S+)", "\n".join(terminal.lines()))
    last = model.fit_.steps[-1].figures
    assert float(shown[-1][0]) == pytest.approx(model.fit_.scale * last["train_rmse"], rel=1e-3)
    assert float(shown[-1][1]) == pytest.approx(model.fit_.scale * last["noise"], rel=1e-3)


@pytest.mark.parametrize("inference", ["gibbs", "als"])
def test_progress_can_be_switched_off_and_on(inference, monkeypatch):
    terminal = terminal_of(monkeypatch)
    X, y = [[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0]
    TuckerGPRegressor(rank=1, inference=inference).fit(X, y, progress=False, max_time=0.1)
    assert terminal.getvalue() == ""
    monkeypatch.setattr(terminal, "isatty", lambda: False)
    TuckerGPRegressor(rank=1, inference=inference).fit(X, y, max_time=0.1)
    assert terminal.getvalue() == ""
    TuckerGPRegressor(rank=1, inference=inference).fit(X, y, progress=True, max_time=0.1)
    assert "/" in terminal.getvalue()


@pytest.mark.parametrize("inference", ["als", "sgd"])
def test_a_time_limit_and_callbacks_are_for_every_inference(inference):
    X = np.random.default_rng(0).uniform(size=(50, 2))
    seen = []
    model = TuckerGPRegressor(rank=2, inference=inference).fit(X, X[:, 0], max_time=0, callback=seen.append)
    assert len(seen) == 1
    assert seen == model.fit_.steps
