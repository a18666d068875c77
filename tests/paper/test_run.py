"""Runs of an experiment: cells are computed once and kept at once, whatever stops a run; other results are refused."""

import json
import os
import signal
import subprocess
import threading

import pytest

from tuckergp.errors import InputError
from tuckergp.paper.experiment import Experiment, Table, Text
from tuckergp.paper.report import cells_of
from tuckergp.paper.run import Run, commit, fill


def made(cells, protocol="once", **more):
    """An experiment of given cells: functions of the run."""

    def work(run):
        return {name: lambda compute=compute: compute(run) for name, compute in cells.items()}

    return Experiment("made", "Made up", "theory", protocol, work, (Text("Words."),), **more)


def stored(folder):
    return json.loads((folder / "made.json").read_text())


def test_a_finished_cell_is_not_computed_again(tmp_path):
    calls = []
    cells = {name: lambda run, name=name: calls.append(name) or {"rmse": 0.5} for name in ("a", "b")}
    for _ in range(2):
        fill([Run(made(cells), tmp_path)])
    assert calls == ["a", "b"]
    assert set(stored(tmp_path)["cells"]) == {"a", "b"}
    assert stored(tmp_path)["cells"]["a"].keys() == {"rmse", "commit", "seconds", "cpu_seconds"}
    assert list(tmp_path.iterdir()) == [tmp_path / "made.json"]


def test_cells_of_another_commit_are_computed_again_and_those_of_others_stay(tmp_path, monkeypatch):
    """Where it was stopped it goes on; until a cell is there again the file has the old one."""
    calls = []

    def stop(run):
        calls.append("b")
        if calls.count("b") == 2:
            raise KeyboardInterrupt
        return {"rmse": run["a"]["rmse"]}

    experiment = made({"a": lambda run: calls.append("a") or {"rmse": len(calls)}, "b": stop})
    monkeypatch.setattr("tuckergp.paper.run.commit", lambda: "one")
    fill([Run(experiment, tmp_path)])
    path = tmp_path / "made.json"
    path.write_text(path.read_text().replace('"b": {', '"peer/b": {"rmse": 9.0},\n  "b": {'))
    monkeypatch.setattr("tuckergp.paper.run.commit", lambda: "two")
    with pytest.raises(KeyboardInterrupt):
        fill([Run(experiment, tmp_path)], again=True)
    assert {name: cell.get("commit") for name, cell in stored(tmp_path)["cells"].items()} == {
        "a": "two",
        "peer/b": None,
        "b": "one",
    }
    fill([Run(experiment, tmp_path)], again=True)
    fill([Run(experiment, tmp_path)], again=True)
    assert calls == ["a", "b", "a", "b", "b"]
    assert stored(tmp_path)["cells"]["b"]["commit"] == "two"
    assert stored(tmp_path)["cells"]["b"]["rmse"] == stored(tmp_path)["cells"]["a"]["rmse"] == 3
    assert stored(tmp_path)["cells"]["peer/b"] == {"rmse": 9.0}


def test_two_runs_that_renew_different_cells_do_not_undo_each_other(tmp_path, monkeypatch):
    experiment = made({name: lambda run: {"rmse": 0.5} for name in ("a", "b")})
    monkeypatch.setattr("tuckergp.paper.run.commit", lambda: "one")
    fill([Run(experiment, tmp_path)])
    monkeypatch.setattr("tuckergp.paper.run.commit", lambda: "two")
    first, second = Run(experiment, tmp_path), Run(experiment, tmp_path)
    fill([first], only="a", again=True)
    fill([second], only="b", again=True)
    assert {name: cell["commit"] for name, cell in stored(tmp_path)["cells"].items()} == {"a": "two", "b": "two"}


def test_the_commit_says_that_files_differ_unless_a_run_writes_them(tmp_path, monkeypatch):
    def git(*words):
        subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e", *words], cwd=tmp_path, check=True)

    files = [tmp_path / name for name in ("src/__init__.py", "benchmarks/results/a.json", "docs/a.svg", "b/README.md")]
    for file in files:
        file.parent.mkdir(parents=True)
        file.write_text("1")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "one")
    monkeypatch.setattr("tuckergp.__file__", str(files[0]))
    clean = commit.__wrapped__()
    assert len(clean) >= 7
    for file in reversed(files):
        assert commit.__wrapped__() == clean
        file.write_text("2")
    assert commit.__wrapped__() == f"{clean}-dirty"
    monkeypatch.setattr("tuckergp.__file__", str(tmp_path / "src" / "other" / "__init__.py"))
    (tmp_path / "src" / "other").mkdir()
    assert commit.__wrapped__() is None  # installed within some other project


def test_results_say_what_they_depend_on(tmp_path):
    experiment = made({"a": lambda run: {"found": run.settings["seed"]}}, settings={"seed": 3}, quick={"seed": 5})
    fill([Run(experiment, tmp_path, quick=True)])
    head = stored(tmp_path)
    assert head["cells"]["a"]["found"] == head["settings"]["seed"] == 5
    assert head["command"] == "tuckergp reproduce made --quick"
    assert {"numpy", "numba", "python", "tuckergp"} == set(head["versions"])
    assert head["machine"]["processors"] == os.cpu_count()


def test_results_of_something_else_are_refused(tmp_path):
    fill([Run(made({"a": lambda run: {}}), tmp_path)])
    for other, quick, said in (
        (made({}, "twice"), False, "protocol='once', not 'twice'"),
        (made({}), True, "quick=False"),
    ):
        with pytest.raises(InputError, match=f"holds results with {said}.*name another folder"):
            Run(other, tmp_path, quick=quick)
    for text in ("[]", "{", '{"cells": 3}'):
        (tmp_path / "made.json").write_text(text)
        with pytest.raises(InputError, match="does not hold results"):
            Run(made({}), tmp_path)


def test_cells_of_two_runs_into_one_file_are_both_kept(tmp_path):
    experiment = made({"a": lambda run: {"rmse": 1.0}, "b": lambda run: {"rmse": 2.0}})
    one, two = Run(experiment, tmp_path), Run(experiment, tmp_path)
    assert one["a"]["rmse"] == 1.0
    assert two["b"]["rmse"] == 2.0
    assert set(stored(tmp_path)["cells"]) == {"a", "b"}


def test_a_cell_may_ask_for_another_which_is_kept_too():
    calls = []
    cells = {"first": lambda run: calls.append(1) or {"n": 2}, "second": lambda run: {"n": run["first"]["n"] + 1}}
    run = Run(made(cells))
    fill([run], only="second")
    assert run.done["second"]["n"] == 3
    fill([run])
    assert calls == [1]


def test_cells_can_be_asked_for_by_the_beginning_of_their_names():
    run = Run(made({name: lambda run: {} for name in ("a/1", "a/2", "b")}))
    fill([run], only="a/2, b")
    assert list(run.done) == ["a/2", "b"]
    with pytest.raises(InputError, match="No cell begins with 'c'; there are a/1, a/2, b"):
        fill([run], only="c")


def test_it_says_which_cell_and_how_many_are_left():
    said = []
    run = Run(made({"a": lambda run: {"rmse": 0.25, "words": "none"}, "b": lambda run: {}}))
    run["b"]
    fill([run], say=said.append)
    assert said[0] == "[1/1] made: a"
    assert "rmse 0.25" in said[1]
    assert "words" not in said[1]


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals need the main thread")
def test_a_cell_that_ctrl_c_cut_short_is_not_kept(tmp_path):
    """A sampler takes the first Ctrl-C as the wish to stop early and returns what it has."""

    def cut_short(run):
        before = signal.signal(signal.SIGINT, lambda number, frame: None)
        signal.raise_signal(signal.SIGINT)
        signal.signal(signal.SIGINT, before)
        return {"rmse": 0.5}

    run = Run(made({"a": lambda run: {"rmse": 0.1}, "b": cut_short, "c": lambda run: {"rmse": 0.1}}), tmp_path)
    with pytest.raises(KeyboardInterrupt):
        fill([run])
    assert set(stored(tmp_path)["cells"]) == {"a"}
    with pytest.raises(KeyboardInterrupt):  # and once more
        run["b"]
    assert run["c"]["rmse"] == 0.1


def test_blocks_see_the_cells_of_experiments_beside():
    experiment = made({}, beside=("other", "missing"))
    results = {"made": {"cells": {"a": {"n": 1}}}, "other": {"cells": {"a": {"n": 2}}}}
    assert cells_of(experiment, results) == {"a": {"n": 1}, "other/a": {"n": 2}}
    assert experiment.tables == ()
    assert Table("t", "", lambda cells: [["head"]]).rows({}) == [["head"]]
