"""The progress line where a kernel of Jupyter runs the code."""

import sys
from types import SimpleNamespace

import pytest

from tuckergp.inference.base import Info
from tuckergp.running.progress import progress_line


@pytest.fixture
def notebook(monkeypatch):
    class ZMQInteractiveShell:
        pass

    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=ZMQInteractiveShell))


def steps(**options):
    with progress_line("Gibbs", 3, unit=2.0, **options) as advance:
        for step in range(3):
            advance(Info(step, {"train_rmse": 0.5}))


def test_the_line_is_written_over_itself_and_ends_complete(notebook, capsys):
    steps(show=None)
    written = capsys.readouterr().err
    first, *states = written.split("\r")
    assert first == ""
    assert states[0].startswith("Gibbs 1/3 ")
    assert states[-1].startswith("Gibbs 3/3 0:00:00 left ")
    assert "RMSE 1" in states[-1]
    assert written.count("\n") == 1
    assert written.endswith("\n")


def test_false_is_silent_in_a_notebook_too(notebook, capsys):
    steps(show=False)
    assert capsys.readouterr().err == ""
