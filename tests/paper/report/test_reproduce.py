"""A quick run of everything: all cells are filled, once; what is stored says where it comes from; bad folders."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from tuckergp.cli import app
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.paper import report
from tuckergp.paper.experiments import EXPERIMENTS
from tuckergp.paper.movielens_search import VARIANTS
from tuckergp.paper.sources import checksum, table_checksum

from ..test_experiments import RESULTS


def figures_of(found):
    """All numbers of a cell, however deep."""
    if isinstance(found, dict):
        return [number for value in found.values() for number in figures_of(value)]
    if isinstance(found, list):
        return [number for value in found for number in figures_of(value)]
    return [found] if isinstance(found, int | float) and not isinstance(found, bool) else []


def run(*arguments):
    return CliRunner().invoke(app, ["reproduce", *map(str, arguments)], catch_exceptions=False)


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda one: one.name)
def test_every_experiment_is_run_and_its_numbers_are_finite(quick, experiment):
    results = json.loads((quick / f"{experiment.name}.json").read_text())
    assert results["quick"]
    assert results["command"] == f"tuckergp reproduce {experiment.name} --quick"
    assert set(results["data"]) == set(experiment.data)
    assert all(len(digest) == 64 for digest in results["data"].values())
    assert results["cells"]
    for cell in results["cells"].values():
        assert np.isfinite(figures_of(cell)).all()
        assert cell["seconds"] >= 0


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda one: one.name)
def test_a_quick_run_makes_tables_and_pictures(quick, experiment):
    cells = report.cells_of(experiment, report.stored(quick))
    for table in experiment.tables:
        assert {len(row) for row in table.rows(cells)} == {len(table.rows(cells)[0])}
    for picture in experiment.pictures:
        if picture.name != "movielens_curves":  # it takes a search
            assert (quick / "figures" / f"{picture.name}.svg").read_text().startswith("<svg")


def test_all_numbers_are_in_one_file_too(quick):
    assert json.loads((quick / report.RESULTS).read_text()) == report.stored(quick)


def test_settings_chosen_before_reach_the_accuracy_of_the_full_run_on_u1(quick):
    quick_cells, full = (report.stored(folder)["movielens_map"]["cells"] for folder in (quick, RESULTS))
    for key in VARIANTS:
        assert quick_cells[f"{key}/u1"]["test_rmse"] == pytest.approx(full[f"{key}/u1"]["test_rmse"], abs=0.02)


def test_a_finished_cell_is_not_run_again_and_a_missing_one_is(quick, data_dir):
    path = quick / "california.json"
    before = json.loads(path.read_text())
    less = {**before, "cells": {name: cell for name, cell in before["cells"].items() if name != "full/n=25/seed 0"}}
    path.write_text(json.dumps(less))
    again = run("california", "--quick", "--data", data_dir, "-o", quick, "--json")
    assert "[1/1] california: full/n=25/seed 0" in again.stderr
    assert json.loads(again.stdout)["cells"] > 100
    after = json.loads(path.read_text())["cells"]
    assert after["full/n=25/seed 0"]["test_rmse"] == before["cells"]["full/n=25/seed 0"]["test_rmse"]
    assert {name: after[name] for name in less["cells"]} == less["cells"]


def test_a_full_run_does_not_mix_with_a_quick_one(quick, data_dir):
    with pytest.raises(InputError, match=r"california.json holds results with quick=True, not False"):
        run("california", "--data", data_dir, "-o", quick)


def test_without_a_name_the_experiments_are_listed():
    listed = run().output
    assert all(f"  {one.name} " in listed and one.title in listed for one in EXPERIMENTS)
    assert "choices:\n" in listed
    assert [one["name"] for one in json.loads(run("--json").output)] == [one.name for one in EXPERIMENTS]


def test_what_cannot_be_written_to_or_read_is_said_at_once(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(InputError, match="is a file; name a folder"):
        run("california", "-o", file)
    with pytest.raises(InputError, match="There is no experiment 'mars'"):
        run("mars", "-o", tmp_path)
    with pytest.raises(InputError, match="nowhere"):
        run("california", "--data", tmp_path / "nowhere", "-o", tmp_path / "out")
    with pytest.raises(InputError, match="No cell begins with 'nothing'"):
        run("columns", "--quick", "--only", "nothing", "-o", tmp_path)


def test_the_checksum_is_of_what_was_read(data_dir):
    stored = report.stored(RESULTS)["wind"]["data"]
    assert checksum("wind", data_dir) == stored["wind"]
    table = Table({"a": np.array([1, 2]), "b": np.array(["x", "y"])}, "table", 2)
    other = Table({"a": np.array([1, 2]), "b": np.array(["x", "z"])}, "table", 2)
    assert table_checksum(table) != table_checksum(other)
