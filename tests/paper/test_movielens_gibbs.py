"""The sampling experiments: cells are filled once, tables come from results."""

import numpy as np
import pytest
from typer.testing import CliRunner

from tuckergp.data.datasets import load_movielens_100k
from tuckergp.paper import movielens_gibbs as experiment
from tuckergp.paper.cells import fill
from tuckergp.paper.movielens_gibbs_report import choice_table, gibbs_table, scarce_table
from tuckergp.paper.store import Store

TINY = {"rank": 2, "draws": 4, "warmup": 2}


@pytest.mark.parametrize("key", experiment.SETTINGS)
def test_a_cell_of_every_setting_can_be_scored(key, data_dir):
    movielens = load_movielens_100k(data_dir)
    base, held = movielens.split(1)
    cell = experiment.score(movielens, experiment.SETTINGS[key], base.take(np.arange(0, 80_000, 20)), held, 0, **TINY)
    assert 0.8 < cell["rmse"] < 1.3
    assert 0.5 < cell["coverage"] <= 1.0


def test_cells_are_filled_once_and_become_tables(monkeypatch, data_dir):
    movielens, calls = load_movielens_100k(data_dir), []

    def score(movielens, setting, train, held, seed, **options):
        calls.append((setting.title, len(train), len(held)))
        return {"rmse": 0.9 + 0.001 * seed, "coverage": 0.9, "seconds": 1.0}

    monkeypatch.setattr(experiment, "score", score)
    store = Store(None, {}, {})
    for _ in range(2):
        fill(store, experiment.cells(movielens, [1, 2], [0, 1], ["ratings"]), print)
    assert calls == [("ratings alone", 80_000, 20_000)] * 4
    assert "| ratings alone | 15 | 0.8940 | 0.9005 ± 0.0000 | 0.0007 |" in gibbs_table(store.results)
    store = Store(None, {}, {})
    fill(store, experiment.choices(movielens, [3], ["side"]), print)
    assert calls[-1][1:] == (72_000, 8_000)
    assert "| + the paper's side information | 10: 0.9000, **15: 0.9000** |" in choice_table(store.results)


def test_scarce_ratings_are_thinned(monkeypatch, data_dir):
    sizes = []

    def score(movielens, setting, train, held, seed, **options):
        sizes.append((len(train), options["draws"] + options["warmup"]))
        return {"rmse": 1.0}

    monkeypatch.setattr(experiment, "score", score)
    store = Store(None, {}, {})
    fill(store, experiment.scarce(load_movielens_100k(data_dir), [1]), print)
    assert sizes == [(4_000, 200), (4_000, 2_000), (16_000, 200), (16_000, 2_000)]
    assert "| 5% | 1.0000 | 1.0000 | 1.0" in scarce_table(store.results)


def test_unknown_settings_are_refused(data_dir):
    found = CliRunner().invoke(experiment.app, ["test", "--settings", "magic", "--data", str(data_dir)])
    assert found.exit_code == 2
    assert "There is no setting 'magic'" in found.output
