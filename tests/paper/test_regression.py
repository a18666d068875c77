"""California and wind: parts that do not overlap, cells filled once, tables from results. Quick runs: tests/report."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from tuckergp.data.datasets import load_california, load_wind
from tuckergp.errors import InputError
from tuckergp.gp import ExactGP
from tuckergp.paper import california, california_report, cells, tables, wind
from tuckergp.paper.store import Store

EXPERIMENTS = {"california": california, "wind": wind}


@pytest.fixture(scope="module")
def splits(data_dir):
    return {
        "california": california.split_of(load_california(data_dir)),
        "wind": wind.split_of(load_wind(data_dir)),
    }


def rows_of(part):
    """Inputs and target of every row as one comparable thing."""
    return list(zip(*[values.tolist() for values in part.X.values()], part.y.tolist(), strict=True))


def test_the_authors_split_has_the_error_of_a_zero_prediction_that_they_report(splits):
    split = splits["california"]
    assert len(split.train.y) == len(split.test.y) == 10_320
    mean = split.train.y.mean()
    assert round(float(np.sqrt(np.mean((split.test.y - mean) ** 2))), 4) == 0.5709


def test_wind_has_20_000_training_values_and_nothing_twice(splits):
    split = splits["wind"]
    assert (len(split.train.y), len(split.test.y)) == (20_000, 58_888)
    key = [
        set(zip(part.X["station"].tolist(), part.X["day"].tolist(), strict=True)) for part in (split.train, split.test)
    ]
    assert not key[0] & key[1]
    assert len(key[0]) + len(key[1]) == 78_888


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_choosing_sees_training_rows_alone(name, splits):
    split, inner = splits[name], EXPERIMENTS[name].held_out(splits[name])
    assert sorted(rows_of(inner.train) + rows_of(inner.test)) == sorted(rows_of(split.train))


def test_cells_can_be_asked_for_by_the_beginning_of_their_names(data_dir):
    asked = ["test", "--quick", "--data", str(data_dir), "--only", "nothing"]
    answer = CliRunner().invoke(california.app, asked)
    assert answer.exit_code == 2
    assert "No cell begins with 'nothing'" in answer.output
    assert list(cells.named({"a/1": dict, "a/2": dict, "b": dict}, "a/2, b")) == ["a/2", "b"]


def test_cells_of_two_runs_into_one_file_are_both_kept(tmp_path):
    path = tmp_path / "results.json"
    one, two = (Store(path, {"experiment": "x"}, {}) for _ in range(2))
    one.cell("a", lambda: {"rmse": 1.0})
    two.cell("b", lambda: {"rmse": 2.0})
    assert set(json.loads(path.read_text())["cells"]) == {"a", "b"}
    with pytest.raises(InputError, match="another file"):
        Store(path, {"experiment": "y"}, {})


def test_the_gp_of_the_authors_is_what_their_numbers_say_on_some_rows(splits):
    """The kernel of the experiment against one written out, on 300 rows."""
    part = splits["california"].train.take(np.arange(300))
    given = california.GIVEN
    gp = ExactGP(california.modes_of(given, None), given.scale, given.noise, learn=False).fit(part.X, part.y)
    Z = np.stack([(x - x.mean()) / x.std() for x in part.X.values()], axis=1) / [given.longitude, given.latitude]
    K = given.scale * np.exp(-0.5 * ((Z[:, None] - Z) ** 2).sum(-1))
    y = (part.y - part.y.mean()) / part.y.std()
    mean = K @ np.linalg.solve(K + given.noise * np.eye(300), y) * part.y.std() + part.y.mean()
    np.testing.assert_allclose(gp.predict(part.X), mean, atol=1e-8)


def test_turning_keeps_distances_and_equal_places_equal():
    X = {"longitude": np.array([-120.0, -119.0, -120.0]), "latitude": np.array([36.0, 37.0, 36.0])}
    straight, turned = california.turn(X, 0.0), california.turn(X, 30.0)

    def distance(at):
        return np.hypot(at["u"][0] - at["u"][1], at["v"][0] - at["v"][1])

    assert distance(straight) == pytest.approx(distance(turned), abs=2e-4)
    assert turned["u"][0] == turned["u"][2]
    assert straight["v"].tolist() == X["latitude"].tolist()


def test_claims_are_judged_by_every_size_that_was_run():
    def cell(error):
        return {"train_rmse": 0.1, "test_rmse": error, "seconds": 1.0}

    results = {"cells": {"gp/given": cell(0.29)}}
    for n in california.SIZES:
        results["cells"] |= {f"full/n={n}/seed 0": cell(0.3), f"gibbs/n={n}/r=5/seed 0": cell(0.28)}
    lines = california_report.claims_table(results).splitlines()
    assert any(line.startswith("| r = 5 below full rank for all n (Gibbs) | pass |") for line in lines)
    results["cells"]["gibbs/n=50/r=5/seed 0"] = cell(0.31)
    lines = california_report.claims_table(results).splitlines()
    assert any(line.startswith("| r = 5 below full rank for all n (Gibbs) | fail |") for line in lines)


def test_figures_are_shown_with_their_sd_over_seeds():
    assert tables.shown([], "rmse") == ""
    assert tables.shown([{"rmse": 0.5}], "rmse", 2) == "0.50"
    assert tables.mean_and_sd([{"rmse": 1.0}, {"rmse": 3.0}], "rmse") == (2.0, pytest.approx(2**0.5))
