"""A quick run of everything: all cells are filled, once; what is stored says where it comes from; bad folders."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from tuckergp.cli import app
from tuckergp.errors import InputError
from tuckergp.paper import california_report, cells, wind_report
from tuckergp.paper.report import results, stored

pytestmark = pytest.mark.xdist_group("reproduce")


def figures_of(found):
    """All numbers of a cell, however deep."""
    if isinstance(found, dict):
        return [number for value in found.values() for number in figures_of(value)]
    if isinstance(found, list):
        return [number for value in found for number in figures_of(value)]
    return [found] if isinstance(found, int | float) and not isinstance(found, bool) else []


def test_every_experiment_is_run_and_its_numbers_are_finite(quick):
    found = results.load(quick / results.FILE)
    assert set(found["experiments"]) == set(stored.EXPERIMENTS)
    for name, experiment in found["experiments"].items():
        assert experiment["quick"], name
        assert experiment["command"].startswith("python -m tuckergp.paper.")
        assert experiment["versions"]["tuckergp"]
        for cell in experiment["cells"].values():
            assert np.isfinite(figures_of(cell)).all()
            assert cell["seconds"] >= 0
    assert {"ml-100k", "california", "wind"} <= set(found["data"])
    assert all(len(digest) == 64 for digest in found["data"].values())


@pytest.mark.parametrize("report", [california_report, wind_report])
def test_a_quick_run_makes_tables(quick, report):
    for file, made in report.TABLES.items():
        if "choice" not in file:
            for table in made.values():
                assert table(json.loads((quick / file).read_text())).startswith("| ")


def test_a_finished_cell_is_not_run_again_and_a_missing_one_is(quick, data_dir, monkeypatch):
    run = ["reproduce", "california", "--quick", "--data", str(data_dir), "-o", str(quick), "--json"]
    path, called = quick / "california.json", []
    before = json.loads(path.read_text())
    monkeypatch.setattr(cells, "timed", lambda compute: called.append(compute) or before["cells"]["forest"])
    first = CliRunner().invoke(app, run)
    assert first.exit_code == 0, first.output
    assert not called
    assert json.loads(first.output)["cells"] > 20
    less = {**before, "cells": {name: cell for name, cell in before["cells"].items() if name != "forest"}}
    path.write_text(json.dumps(less))
    try:
        assert CliRunner().invoke(app, run).exit_code == 0
        assert len(called) == 1
        assert set(json.loads(path.read_text())["cells"]) == set(before["cells"])
    finally:
        path.write_text(json.dumps(before))


def test_a_full_run_does_not_mix_with_a_quick_one(quick, data_dir):
    with pytest.raises(InputError, match=r"california.json holds results with quick=True, not False"):
        CliRunner().invoke(
            app, ["reproduce", "california", "--data", str(data_dir), "-o", str(quick)], catch_exceptions=False
        )


def test_what_cannot_be_written_to_or_read_is_said_at_once(tmp_path, data_dir):
    file = tmp_path / "file"
    file.write_text("")

    def run(*arguments):
        return CliRunner().invoke(app, ["reproduce", *arguments], catch_exceptions=False)

    with pytest.raises(InputError, match="is a file; name a folder"):
        run("california", "-o", str(file))
    assert run("mars", "-o", str(tmp_path)).exit_code == 2
    (tmp_path / "results.json").write_text("{}")
    with pytest.raises(InputError, match="does not hold results of a report"):
        results.collect(tmp_path, {}, {})
    with pytest.raises(InputError, match="nowhere"):
        run("california", "--data", str(tmp_path / "nowhere"), "-o", str(tmp_path / "out"))


def test_the_checksum_is_of_what_was_read(data_dir):
    one = results.checksums(["wind"], data_dir)
    assert one == results.checksums(["wind"], data_dir)
    from tuckergp.data.tables import Table

    table = Table({"a": np.array([1, 2]), "b": np.array(["x", "y"])}, "table", 2)
    other = Table({"a": np.array([1, 2]), "b": np.array(["x", "z"])}, "table", 2)
    assert results.checksum(table) != results.checksum(other)
